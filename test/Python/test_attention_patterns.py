"""Windows, dilations, global tokens, softcap, slopes and sinks of `attention`."""

import numpy as np
import pytest
from conftest import SEED, assert_agrees

import linattn
from linattn import reference

RNG = np.random.default_rng(SEED)


def draw(T, Tk, Hq=4, H=2, K=24, V=40, B=2):
    shapes = ((B, T, Hq, K), (B, Tk, H, K), (B, Tk, H, V))
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


# Windows below, at and beyond blocks of keys; globals that meet the window and that do not.
PATTERNS = {
    "window": dict(window=9),
    "wide": dict(window=70),
    "one": dict(window=1),
    "dilated": dict(window=5, dilation=3),
    "strided": dict(dilation=4),
    "globals": dict(window=17, global_tokens=3),
    "dilated-globals": dict(window=4, dilation=2, global_tokens=5),
    "strided-globals": dict(dilation=7, global_tokens=2),
}
SCORES = {
    "plain": lambda: {},
    "softcap": lambda: {"softcap": 1.5},
    "slopes": lambda: {"slopes": RNG.random(4, dtype=np.float32)},
    "sinks": lambda: {"sinks": 3 * RNG.standard_normal(4, dtype=np.float32)},
    "all": lambda: {
        "softcap": 2.0,
        "slopes": RNG.random(4, dtype=np.float32) / 8,
        "sinks": np.float32([-np.inf, 0.0, 4.0, -4.0]),
    },
}


def by_formula(q, k, v, causal, window=None, dilation=1, global_tokens=0, softcap=None, slopes=None, sinks=None):
    """Softmax attention in NumPy, with a T×Tk array of what each query sees."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    T, Tk, heads = q.shape[1], k.shape[1], q.shape[2]
    k, v = (np.repeat(x, heads // x.shape[2], axis=2) for x in (k, v))
    p, j = np.arange(Tk - T, Tk)[:, None], np.arange(Tk)[None]
    sees = abs(p - j) % dilation == 0
    if window is not None:
        sees &= abs(p - j) < window * dilation
    sees |= (j < global_tokens) | (p < global_tokens)
    if causal:
        sees &= j <= p
    s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    if softcap is not None:
        s = softcap * np.tanh(s / softcap)
    if slopes is not None:
        s = s - slopes[:, None, None] * abs(p - j)
    s = np.where(sees, s, -np.inf)
    sink = np.full(heads, -np.inf) if sinks is None else np.asarray(sinks, np.float64)
    s = np.concatenate([np.broadcast_to(sink[:, None, None], s.shape[:3] + (1,)), s], axis=-1)
    w = np.exp(s - s.max(-1, keepdims=True))
    w = (w / w.sum(-1, keepdims=True))[..., 1:]
    return np.einsum("bhij,bjhd->bihd", w, v)


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("pattern", (*PATTERNS, "none"))
def test_the_oracle_is_the_formula(pattern, scores, causal):
    q, k, v = draw(11, 29)
    options = {**PATTERNS.get(pattern, {}), **SCORES[scores]()}
    expected = by_formula(q, k, v, causal, **options)
    out = reference.attention(*(x.astype(np.float64) for x in (q, k, v)), causal=causal, weights="softmax", **options)
    assert_agrees(out, expected)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("target", ("cpu", "reference"))
@pytest.mark.parametrize("T, Tk", ((150, 150), (1, 150), (37, 150), (5, 5)))
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("pattern", (*PATTERNS, "none"))
def test_softmax_agrees(pattern, scores, causal, T, Tk, target):
    q, k, v = draw(T, Tk)
    options = {**PATTERNS.get(pattern, {}), **SCORES[scores](), "causal": causal, "weights": "softmax"}
    out = linattn.attention(q, k, v, target=target, **options)
    assert_agrees(out, reference.attention(q, k, v, **options))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("feature_map", ("elu", "exp"))
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_linear_weights_agree(pattern, causal, feature_map):
    q, k, v = draw(90, 90)
    mask = RNG.random((2, 90)) > 0.2
    options = {**PATTERNS[pattern], "causal": causal, "feature_map": feature_map, "mask": mask}
    assert_agrees(linattn.attention(q, k, v, **options), reference.attention(q, k, v, **options))


@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float64"))
def test_dtypes(dtype):
    import ml_dtypes

    q, k, v = (x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for x in draw(70, 70))
    options = dict(causal=True, weights="softmax", window=20, softcap=5.0, sinks=np.zeros(4, np.float32))
    assert_agrees(linattn.attention(q, k, v, **options), reference.attention(q, k, v, **options), dtype)


@pytest.mark.parametrize("options", (dict(causal=True, window=6, global_tokens=2), dict(window=6), dict(dilation=3)))
@pytest.mark.parametrize("T", (3, 100))
def test_masked_tokens_do_not_matter(T, options):
    q, k, v = draw(T, 100)
    w = reference.weights(q, k, weights="softmax", **options)
    for token in RNG.choice(100, 5, replace=False):
        hidden = (w[:, :, :, token] == 0).all(axis=(0, 1))
        broken_k, broken_v = k.copy(), v.copy()
        broken_k[:, token], broken_v[:, token] = np.nan, np.nan
        out = linattn.attention(q, k, v, weights="softmax", **options)
        broken = linattn.attention(q, broken_k, broken_v, weights="softmax", **options)
        np.testing.assert_array_equal(broken[:, hidden], out[:, hidden])


def test_a_window_as_wide_as_the_keys_is_none():
    q, k, v = draw(64, 64)
    whole = linattn.attention(q, k, v, causal=True, weights="softmax")
    np.testing.assert_array_equal(linattn.attention(q, k, v, causal=True, weights="softmax", window=64), whole)


def test_queries_follow_a_cache_of_keys():
    q, k, v = draw(80, 80)
    whole = linattn.attention(q, k, v, causal=True, weights="softmax", window=30)
    parts = [
        linattn.attention(q[:, t : t + 20], k[:, : t + 20], v[:, : t + 20], causal=True, weights="softmax", window=30)
        for t in range(0, 80, 20)
    ]
    assert_agrees(np.concatenate(parts, axis=1), whole)


@pytest.mark.parametrize("options, error, message", (
    (dict(window=0), ValueError, r"window: expected a number in \[1, 2\*\*31\), but got 0"),
    (dict(window=2.5), TypeError, "window: expected an integer, but got float"),
    (dict(dilation=0), ValueError, "dilation: expected a number in"),
    (dict(global_tokens=2), ValueError, "global_tokens: expected a window or dilation beside them, but got neither"),
    (dict(window=4, prefix=2, causal=True), ValueError, "prefix: expected either a prefix or a window"),
    (dict(window=4, return_state=True), ValueError, "return_state: expected no window"),
    (dict(window=4, form="chunk"), ValueError, "form: expected auto or quadratic with a window"),
    (dict(softcap=2.0), ValueError, "softcap: expected weights='softmax' with softcap"),
    (dict(slopes=np.zeros(2, np.float32)), ValueError, "slopes: expected weights='softmax' with slopes"),
    (dict(sinks=np.zeros(2, np.float32)), ValueError, "sinks: expected weights='softmax' with sinks"),
    (dict(softcap=-1.0, weights="softmax"), ValueError, "softcap: expected a positive number, but got -1.0"),
    (dict(sinks=np.zeros(3, np.float32), weights="softmax"), ValueError, r"sinks: expected shape"),
    (dict(slopes=np.zeros(2, np.int32), weights="softmax"), TypeError, "slopes: expected dtype"),
))  # fmt: skip
def test_errors(options, error, message):
    q, k, v = draw(6, 6, Hq=2)
    with pytest.raises(error, match=message):
        linattn.attention(q, k, v, **options)


def softmax_in_torch(torch, q, k, v, causal, mask, window=None, dilation=1, global_tokens=0, softcap=None, slopes=None, sinks=None):
    """The formula by PyTorch's own operators; rows without a key give 0."""
    T, Tk, heads = q.shape[1], k.shape[1], q.shape[2]
    k, v = (x.repeat_interleave(heads // x.shape[2], 2) for x in (k, v))
    p, j = torch.arange(Tk - T, Tk)[:, None], torch.arange(Tk)[None]
    distance = (p - j).abs()
    sees = distance % dilation == 0
    if window is not None:
        sees &= distance < window * dilation
    if global_tokens:
        sees |= (j < global_tokens) | (p < global_tokens)
    if causal:
        sees &= j <= p
    sees = sees[None, None] if mask is None else sees[None, None] & mask[:, None, None]
    s = torch.einsum("bihd,bjhd->bhij", q, k) / q.shape[-1] ** 0.5
    if softcap is not None:
        s = softcap * torch.tanh(s / softcap)
    if slopes is not None:
        s = s - slopes[:, None, None] * distance
    s = s.masked_fill(~sees, -torch.inf)
    if sinks is not None:
        s = torch.cat([s, sinks[None, :, None, None].expand(*s.shape[:3], 1)], -1)
    e = (s - s.detach().amax(-1, keepdim=True).clamp(min=-1e30)).exp()
    w = e / e.sum(-1, keepdim=True).clamp(min=1e-300)
    return torch.einsum("bhij,bjhd->bihd", w[..., :Tk], v)


def draw_tensors(torch, T, Tk, scores, dtype="float64"):
    """Tokens, options in numbers of heads, and a cotangent, all of which f32 holds exactly."""
    tokens = [torch.from_numpy(x).to(getattr(torch, dtype)) for x in draw(T, Tk)]
    options = SCORES[scores]()
    numbers = {name: torch.from_numpy(options.pop(name)).to(tokens[0]) for name in ("slopes", "sinks") if name in options}
    d = torch.from_numpy(RNG.standard_normal((2, T, 4, 40), dtype=np.float32)).to(tokens[0])
    return tokens, options, numbers, d


def gradients(torch, function, tokens, numbers, d):
    leaves = [x.detach().requires_grad_() for x in (*tokens, *numbers.values())]
    out = function(*leaves[:3], **dict(zip(numbers, leaves[3:])))
    return [x.numpy() for x in torch.autograd.grad(out, leaves, d.to(out))]


@pytest.mark.sampled(120)
@pytest.mark.parametrize("target, dtype", (("cpu", "float32"), ("cpu", "float64"), ("reference", "float64")))
@pytest.mark.parametrize("masked", (False, True))
@pytest.mark.parametrize("T, Tk", ((150, 150), (37, 150), (90, 60), (5, 5)))
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("pattern", (*PATTERNS, "none"))
def test_gradients(pattern, scores, causal, T, Tk, masked, target, dtype):
    torch = pytest.importorskip("torch")
    tokens, options, numbers, d = draw_tensors(torch, T, Tk, scores)
    options.update(PATTERNS.get(pattern, {}))
    mask = torch.from_numpy(RNG.random((2, Tk)) > 0.3) if masked else None
    expected = gradients(
        torch, lambda *x, **more: softmax_in_torch(torch, *x, causal, mask, **options, **more), tokens, numbers, d
    )
    tokens = [x.to(getattr(torch, dtype)) for x in tokens]
    numbers = {name: x.to(tokens[0]) for name, x in numbers.items()}
    got = gradients(
        torch,
        lambda *x, **more: linattn.attention(
            *x, causal=causal, mask=mask, weights="softmax", target=target, **options, **more
        ),
        tokens, numbers, d,
    )  # fmt: skip
    for a, b in zip(got, expected):
        # A query with one key has no gradient but the rounding of numbers around one.
        assert np.abs(a - b).max() <= (1e-5 if dtype == "float32" else 1e-12) * max(np.abs(b).max(), 1.0)


def test_gradients_on_a_device():
    torch = pytest.importorskip("torch")
    tokens, options, numbers, d = draw_tensors(torch, 20, 24, "all", "float32")
    options.update(causal=True, window=7)
    expected, got = (
        gradients(torch, lambda *x, **more: linattn.attention(*x, weights="softmax", target=target, **options, **more),
                  tokens, numbers, d)
        for target in ("cpu", "nvvm-emulated")
    )  # fmt: skip
    for a, b in zip(got, expected):
        assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


def test_gradients_have_the_same_bits_for_any_threads_and_batch():
    torch = pytest.importorskip("torch")
    # More queries than one segment has.
    q, k, v, d = (torch.randn(2, 4200, 1, 8, generator=torch.Generator().manual_seed(SEED + i)) for i in range(4))

    def run(threads, *arrays):
        before = linattn.get_num_threads()
        linattn.set_num_threads(threads)
        try:
            *tokens, cotangent = arrays
            return gradients(
                torch, lambda *x: linattn.attention(*x, weights="softmax", causal=True, window=64), tokens, {}, cotangent
            )
        finally:
            linattn.set_num_threads(before)

    expected = run(1, q, k, v, d)
    for got in (run(2, q, k, v, d), run(3, q, k, v, d)):
        for a, b in zip(got, expected):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(run(2, *(x[1:] for x in (q, k, v, d))), expected):
        np.testing.assert_array_equal(a, b[1:])


def test_gradients_of_parts_add_up():
    torch = pytest.importorskip("torch")
    tokens, _, _, d = draw_tensors(torch, 80, 80, "plain")
    options = dict(weights="softmax", causal=True, window=30)
    whole = gradients(torch, lambda *x: linattn.attention(*x, **options), tokens, {}, d)
    sums = [np.zeros_like(x) for x in whole]
    for begin, end in ((0, 1), (1, 37), (37, 80)):
        part = [tokens[0][:, begin:end], tokens[1][:, :end], tokens[2][:, :end]]
        dq, dk, dv = gradients(torch, lambda *x: linattn.attention(*x, **options), part, {}, d[:, begin:end])
        sums[0][:, begin:end] = dq
        sums[1][:, :end] += dk
        sums[2][:, :end] += dv
    for a, b in zip(sums, whole):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * np.abs(b).max())


def test_the_forward_pass_keeps_a_number_for_each_row():
    torch = pytest.importorskip("torch")
    import linattn.torch  # noqa: F401

    q, k, v = (x.requires_grad_() for x in draw_tensors(torch, 20, 20, "plain", "float32")[0])

    def attend(q, k, v):
        return linattn.attention(q, k, v, causal=True, weights="softmax")

    out = attend(q, k, v)
    kept = out.grad_fn.saved_tensors[3:]
    assert [tuple(x.shape) for x in kept] == [(2, 20, 4, 40), (2, 4, 20)]
    s = torch.einsum("bihd,bjhd->bhij", q, k.repeat_interleave(2, 2)) / 24**0.5
    s = s.masked_fill(~torch.ones(20, 20, dtype=torch.bool).tril(), -torch.inf)
    assert_agrees(kept[1].detach().numpy(), s.logsumexp(-1).detach().numpy())
    operands, d = [x.detach() for x in (q, k, v)], torch.ones(2, 20, 4, 40)
    arguments = (out.grad_fn.call, operands, [], [*(x.detach() for x in kept), d], [True, False], [True, False, True])
    torch.library.opcheck(torch.ops.linattn.run_backward.default, arguments)
    # The output of 16 bits is rounded, and computed again.
    assert len(attend(*(x.bfloat16() for x in (q, k, v))).grad_fn.saved_tensors) == 3


@pytest.mark.parametrize("options", (dict(causal=True), dict(window=20), dict(causal=True, softcap=2.0)))
def test_the_output_has_the_bits_of_a_call_without_gradients(options):
    torch = pytest.importorskip("torch")
    tokens = draw_tensors(torch, 150, 150, "plain", "float32")[0]
    expected = linattn.attention(*tokens, weights="softmax", **options)
    out = linattn.attention(*(x.requires_grad_() for x in tokens), weights="softmax", **options)
    np.testing.assert_array_equal(out.detach().numpy(), expected.numpy())


def test_gradients_that_keep_results_are_transformed():
    torch = pytest.importorskip("torch")
    import linattn.torch  # noqa: F401

    q, k, v = (torch.randn(3, 2, 9, 2, 8, generator=torch.Generator().manual_seed(SEED + i)) for i in range(3))

    def loss(q, k, v):
        return linattn.attention(q, k, v, causal=True, weights="softmax", window=4).square().sum()

    def gradient(*arrays):
        leaves = [x.detach().requires_grad_() for x in arrays]
        return torch.autograd.grad(loss(*leaves), leaves)

    expected = [torch.stack(x) for x in zip(*(gradient(*x) for x in zip(q, k, v)))]
    got = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(q, k, v)
    leaf = q[0].clone().requires_grad_()
    compiled = torch.compile(lambda q: loss(q, k[0], v[0]), fullgraph=True, backend="aot_eager")
    traced = torch.autograd.grad(compiled(leaf), leaf)
    for a, b in (*zip(got, expected), (traced[0], expected[0][0])):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
