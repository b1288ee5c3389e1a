"""Linformer, Nyströmformer and FNet: values, gradients, refusals."""

import numpy as np
import pytest
from conftest import SEED, assert_agrees

import linattn
from linattn import reference

torch = pytest.importorskip("torch")
import linattn.torch  # noqa: E402

RNG = np.random.default_rng(SEED)
T, R = 48, 8


def draw(heads=(4, 4, 4), tokens=(T, T), K=16, V=12, dtype=np.float32):
    shapes = ((2, tokens[0], heads[0], K), (2, tokens[1], heads[1], K), (2, tokens[1], heads[2], V))
    return [RNG.standard_normal(shape).astype(dtype) for shape in shapes]


def project(*shape):
    return (RNG.standard_normal(shape) / 4).astype(np.float32)


CALLS = {
    "linformer": lambda: (linattn.linformer, reference.linformer, (*draw(), project(T, R)), {}),
    "linformer-two": lambda: (
        linattn.linformer, reference.linformer, (*draw((4, 2, 1)), project(2, T, R), project(T, R)), {"scale": 0.2},
    ),
    "nystrom": lambda: (linattn.nystrom, reference.nystrom, draw(), {"landmarks": 8}),
    "nystrom-uneven": lambda: (
        linattn.nystrom, reference.nystrom, draw((4, 2, 1), (50, 47)), {"landmarks": 8, "iterations": 3, "scale": 0.3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", ("cpu", "reference"))
@pytest.mark.parametrize("name", CALLS)
def test_values(name, target):
    function, oracle, operands, options = CALLS[name]()
    assert_agrees(function(*operands, target=target, **options), oracle(*operands, **options))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CALLS)
def test_on_an_emulated_gpu(name):
    function, oracle, operands, options = CALLS[name]()
    assert_agrees(function(*operands, target="nvvm-emulated", **options), oracle(*operands, **options))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float64"))
@pytest.mark.parametrize("name", ("linformer", "nystrom"))
def test_dtypes(name, dtype):
    import ml_dtypes

    function, oracle, operands, options = CALLS[name]()
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    operands = [x.astype(dtype) for x in operands]
    out = function(*operands, **options)
    assert out.dtype == dtype
    # The pseudo-inverse enlarges rounding by the condition of A.
    assert_agrees(out, oracle(*operands, **options), str(dtype), scale=0.5 if name == "nystrom" else 0.0)


def by_oracle(name, tensors, options):
    """The formula in PyTorch's float64, whose gradients PyTorch finds."""
    q, k, v, *others = (x.detach().double().requires_grad_() for x in tensors)
    heads = max(x.shape[2] for x in (q, k, v))
    Q, K, V = (x.transpose(1, 2) for x in (q, k, v))
    scale = options.get("scale", K.shape[-1] ** -0.5)
    if "linformer" in name:
        e, f = others[0], others[-1]
        K, V = e.transpose(-1, -2) @ K, f.transpose(-1, -2) @ V
        Q, K, V = (x.repeat_interleave(heads // x.shape[1], 1) for x in (Q, K, V))
        o = torch.softmax(scale * Q @ K.mT, -1) @ V
    else:
        Q, K, V = (x.repeat_interleave(heads // x.shape[1], 1) for x in (Q, K, V))
        m = options["landmarks"]
        cuts = [[i * x.shape[2] // m for i in range(m + 1)] for x in (Q, K)]
        few_q, few_k = (
            torch.stack([x[:, :, a:b].mean(2) for a, b in zip(cut, cut[1:])], 2) for x, cut in zip((Q, K), cuts)
        )
        A = torch.softmax(scale * few_q @ few_k.mT, -1)
        Z = A.mT / (A.sum(2).amax(-1) * A.sum(3).amax(-1))[..., None, None]
        for _ in range(options.get("iterations", 6)):
            AZ, one = A @ Z, torch.eye(m, dtype=torch.float64)
            Z = Z / 4 @ (13 * one - AZ @ (15 * one - AZ @ (7 * one - AZ)))
        o = torch.softmax(scale * Q @ few_k.mT, -1) @ Z @ (torch.softmax(scale * few_q @ K.mT, -1) @ V)
    o = o.transpose(1, 2)
    return o, torch.autograd.grad((o * torch.linspace(-1, 1, o.shape[-1])).sum(), [q, k, v, *others])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CALLS)
def test_gradients(name):
    function, _, operands, options = CALLS[name]()
    tensors = [torch.from_numpy(x).requires_grad_() for x in operands]
    o = function(*tensors, **options)
    found = torch.autograd.grad((o * torch.linspace(-1, 1, o.shape[-1])).sum(), tensors)
    expected_o, expected = by_oracle(name, tensors, options)
    assert_agrees(o.detach().numpy(), expected_o.detach().numpy())
    for gradient, other in zip(found, expected):
        assert float((gradient - other).abs().max() / other.abs().max()) <= 1e-4


def test_the_residual_of_the_pseudo_inverse():
    q, k, v = draw()
    residuals = []
    for iterations in (2, 6, 30):
        _, residual = linattn.nystrom(q, k, v, landmarks=8, iterations=iterations, return_residual=True)
        _, expected = reference.nystrom(q, k, v, landmarks=8, iterations=iterations, return_residual=True)
        np.testing.assert_allclose(residual, expected, rtol=1e-2, atol=1e-3)
        residuals.append(residual.max())
    assert residuals[0] > residuals[1] > residuals[2] < 1e-3


def test_as_many_landmarks_as_tokens_are_softmax():
    q, k, v = draw(tokens=(16, 16))
    exact = linattn.attention(q, k, v, weights="softmax")
    found = linattn.nystrom(q, k, v, landmarks=16, iterations=40)
    assert np.abs(found - exact).max() <= 1e-3


def test_batches_do_not_meet():
    for name in ("linformer", "nystrom"):
        function, _, (q, k, v, *others), options = CALLS[name]()
        alone = function(q[1:], k[1:], v[1:], *others, num_threads=1, **options)
        np.testing.assert_array_equal(function(q, k, v, *others, num_threads=2, **options)[1:], alone)


# ----------------------------------------------------------------------------
# FNet
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ((2, 15, 10), (3, 16, 9), (1, 1), (2, 1, 7), (5, 1), (4, 2)))
def test_fnet(shape):
    jnp = pytest.importorskip("jax.numpy")
    x = RNG.standard_normal(shape, dtype=np.float32)
    expected = reference.fnet(x)
    np.testing.assert_allclose(expected, np.fft.fft2(x.astype(np.float64)).real, atol=1e-10)
    for library in (np.asarray, torch.from_numpy, jnp.asarray):
        y = linattn.fnet(library(x))
        assert type(y) is type(library(x)) and y.dtype == library(x).dtype
        assert_agrees(np.asarray(y), expected)
    for short in (torch.from_numpy(x).bfloat16(), torch.from_numpy(x).half(), x.astype(np.float16)):
        y = linattn.fnet(short)
        assert y.dtype == short.dtype
        expected_of_short = reference.fnet(np.asarray(torch.as_tensor(short).double()))
        tolerance = 2.0**-8 if short.dtype == torch.bfloat16 else 2.0**-11
        np.testing.assert_allclose(np.asarray(torch.as_tensor(y).double()), expected_of_short, rtol=tolerance, atol=2e-6)
    assert_agrees(linattn.fnet(x.astype(np.float64)), expected)


def test_fnet_by_loops_and_by_the_library():
    """Compiled loops take arrays in memory, of any strides and leading dimensions, and no others."""
    x = torch.from_numpy(RNG.standard_normal((2, 3, 7, 10)))
    expected = torch.fft.fft2(x).real

    def kind(function, *arrays):
        text = linattn.explain(function, *arrays)
        assert "the others by" in text
        return "loops" if "the others by compiled loops" in text else "library"

    turned = x.mT.contiguous().mT
    for tokens in (x, turned, turned.numpy(), x[:, ::2], torch.nn.Parameter(x, requires_grad=False)):
        assert kind(linattn.fnet, tokens) == "loops"
        of_tokens = expected[:, ::2] if tokens.shape != x.shape else expected
        np.testing.assert_allclose(np.asarray(linattn.fnet(tokens)), of_tokens, atol=1e-12)
    recorded = x.clone().requires_grad_()
    assert kind(linattn.fnet, recorded) == "library"
    with torch.no_grad():
        assert kind(linattn.fnet, recorded) == "loops"
    functions = linattn.fnet, torch.func.vmap(linattn.fnet), torch.compile(linattn.fnet, fullgraph=True, backend="eager")
    for function in functions:
        torch.testing.assert_close(function(recorded.detach()), expected, atol=1e-12, rtol=0.0)
    tangent = torch.func.jvp(linattn.fnet, (x,), (x,))[1]
    torch.testing.assert_close(tangent, expected, atol=1e-12, rtol=0.0)


def test_the_gradient_of_fnet():
    x = torch.from_numpy(RNG.standard_normal((2, 6, 5))).requires_grad_()
    assert torch.autograd.gradcheck(linattn.fnet, x)
    # The map is symmetric.
    y = torch.randn(2, 6, 5, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((linattn.fnet(x) * y).sum(), x)
    assert_agrees(gradient.numpy(), linattn.fnet(y).numpy())


# ----------------------------------------------------------------------------
# Layers
# ----------------------------------------------------------------------------


def make_layers():
    nn = linattn.torch.nn
    torch.manual_seed(0)
    return {
        "linformer": nn.LinformerAttention(32, 4, length=40, rank=8, kv_heads=2),
        "linformer-shared": nn.LinformerAttention(32, 4, length=40, rank=8, sharing="kv"),
        "nystrom": nn.NystromAttention(32, 4, landmarks=4, conv_size=5, kv_heads=2),
        "fnet": nn.FNet(32),
        "blocks": nn.BlockSparseAttention(32, 4, block_size=4, kv_heads=2),
        "diagonal": nn.DiagAttention(32, 4, block_size=4),
        "causal-blocks": nn.BlockSparseAttention(32, 4, block_size=4, kv_heads=2, causal=True),
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ("linformer", "linformer-shared", "nystrom", "fnet", "blocks", "causal-blocks", "diagonal"))
def test_layers(name):
    layer, x = make_layers()[name], torch.randn(2, 20, 32, generator=torch.Generator().manual_seed(SEED))
    y = layer(x)
    if name == "fnet":
        expected = torch.fft.fft2(x.double()).real
    else:
        q, k, v = (p(x).unflatten(-1, (-1, 8)).detach() for p in (layer.q_proj, layer.k_proj, layer.v_proj))
        if name == "nystrom":
            o = torch.from_numpy(reference.nystrom(*(z.numpy() for z in (q, k, v)), landmarks=4))
            conv = layer.conv(v.transpose(1, 2)).transpose(1, 2).detach()
            o = o + conv.repeat_interleave(2, 2)
        elif "blocks" in name or name == "diagonal":
            options = {"block_mask": linattn.block_mask(5, **layer.pattern), "block_size": 4, "causal": layer.causal}
            o = torch.from_numpy(reference.attention(*(z.numpy() for z in (q, k, v)), weights="softmax", **options))
        else:
            projections = [p[:20].detach().numpy() for p in (layer.proj_k, layer.proj_v) if p is not None]
            o = torch.from_numpy(reference.linformer(*(z.numpy() for z in (q, k, v)), *projections))
        expected = o.flatten(2) @ layer.o_proj.weight.detach().double().T
    assert_agrees(y.detach().numpy(), expected.numpy())
    # Padding, and packed sequences, which never meet.
    mask = torch.ones(2, 20, dtype=torch.bool)
    mask[1, 12:] = False
    padded = layer(x, mask=mask).detach()
    assert_agrees(padded[:1].numpy(), y[:1].detach().numpy())
    assert_agrees(padded[1:, :12].numpy(), layer(x[1:, :12]).detach().numpy())
    assert not padded[1, 12:].any()
    packed = layer(torch.cat([x[:1], x[1:, :12]], 1), cu_seqlens=[0, 20, 20, 32])
    assert_agrees(packed.detach()[:, 20:].numpy(), padded[1:, :12].numpy())
    if list(layer.parameters()):
        y.square().sum().backward()
    for parameter, gradient in ((key, p.grad) for key, p in layer.named_parameters()):
        assert gradient is not None and gradient.abs().max() > 0, parameter
    with pytest.raises(ValueError, match="cache: expected None for .*, whose"):
        layer(x, cache=linattn.torch.nn.Cache())


# ----------------------------------------------------------------------------
# JAX and refusals
# ----------------------------------------------------------------------------


def test_jax():
    jax = pytest.importorskip("jax")
    operands = [jax.numpy.asarray(x) for x in (*draw(), project(T, R))]
    found = jax.jit(linattn.linformer)(*operands)
    assert_agrees(np.asarray(found), reference.linformer(*(np.asarray(x) for x in operands)))
    gradient = jax.grad(lambda e: (linattn.linformer(*operands[:3], e) ** 2).sum())(operands[3])
    assert gradient.shape == (T, R) and float(abs(gradient).max()) > 0


REFUSED = {
    "causal: expected False for linformer, whose projected keys are sums over the tokens of all positions, but got True":
        lambda: linattn.linformer(*draw(), project(T, R), causal=True),
    r"e: expected shape \(48, R\) or .*but got \(7, 8\)": lambda: linattn.linformer(*draw(), project(7, R)),
    r"f: expected shape \(48, 8\) or .*but got \(48, 9\)":
        lambda: linattn.linformer(*draw(), project(T, R), project(T, 9)),
    "e: expected .*float.*int64": lambda: linattn.linformer(*draw(), np.zeros((T, R), np.int64)),
    "scale: expected": lambda: linattn.linformer(*draw(), project(T, R), scale="2"),
    "causal: expected False for nystrom, whose landmarks are means": lambda: linattn.nystrom(*draw(), landmarks=8, causal=True),
    r"landmarks: expected a number in \[1, 48\], the tokens of q, but got 64": lambda: linattn.nystrom(*draw()),
    "landmarks: expected an integer, but got float": lambda: linattn.nystrom(*draw(), landmarks=8.0),
    "iterations: expected an integer, but got str": lambda: linattn.nystrom(*draw(), landmarks=8, iterations="6"),
    r"iterations: expected a number in \[1, 2\*\*31\), but got 0":
        lambda: linattn.nystrom(*draw(), landmarks=8, iterations=0),
    "q: expected an array of tokens, but got NoneType": lambda: linattn.nystrom(None, None, None),
    r"x: expected shape \(\.\.\., T, D\) with tokens and features, but got \(3,\)": lambda: linattn.fnet(np.zeros(3)),
    "x: expected at most 40 tokens, but got 41": lambda: make_layers()["linformer"](torch.zeros(1, 41, 32)),
    "sharing: expected one of none, kv, but got 'all'":
        lambda: linattn.torch.nn.LinformerAttention(32, 4, length=4, sharing="all"),
    "conv_size: expected an odd number, but got 4": lambda: linattn.torch.nn.NystromAttention(32, 4, conv_size=4),
    "x: expected a floating-point dtype, but got int64": lambda: linattn.fnet(np.zeros((3, 3), np.int64)),
    "x: expected an array of NumPy, PyTorch or JAX, but got list": lambda: linattn.fnet([[1.0]]),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises((ValueError, TypeError), match=message):
        REFUSED[message]()
