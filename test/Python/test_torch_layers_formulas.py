"""Layers of PyTorch beside their formulas in float64: outputs, gradients of every parameter, steps of a cache."""

import math

import numpy as np
import pytest

import linattn

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from linattn.torch import nn  # noqa: E402

SIZE, HEADS, HEAD, T = 32, 4, 8, 21
# Layers that `test_torch_layers_transformers.py` compares with the modules of transformers.
PUBLISHED = {"GatedDeltaNet", "KimiDeltaAttention", "Mamba2"}


def draw(seed=1):
    return torch.randn(2, T, SIZE, generator=torch.Generator().manual_seed(seed))


V_FIRST = draw(2)

# ----------------------------------------------------------------------------
# Formulas of (layer, parameters and buffers in float64, tokens in float64)
# ----------------------------------------------------------------------------


def heads_of(x, size=HEAD):
    return x.unflatten(-1, (-1, size))


def project(p, x, sizes=(HEAD,) * 3):
    return [heads_of(x @ p[f"{name}_proj.weight"].T + p.get(f"{name}_proj.bias", 0), size) for name, size in zip("qkvg", sizes)]


def output(p, o):
    return o.flatten(2) @ p["o_proj.weight"].T + p.get("o_proj.bias", 0)


def scores_of(q, k):
    return torch.einsum("bthk,bshk->bhts", q, k.repeat_interleave(q.shape[2] // k.shape[2], 2))


def read(weights, v):
    return torch.einsum("bhts,bshv->bthv", weights, v.repeat_interleave(weights.shape[1] // v.shape[2], 2))


def divide(weights, eps=1e-6):
    return weights / (weights.sum(-1, keepdim=True) + eps)


def soften(q, k, mask):
    """The weights of softmax where `mask` is true."""
    return (scores_of(q, k) * q.shape[-1] ** -0.5).masked_fill(~mask, -torch.inf).softmax(-1)


def rms(x, weight, eps=1e-5):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rotate(x, base):
    """Rotations are products of complex numbers."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float64) / half)
    x = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * torch.arange(T)[:, None] * rates)[:, None]
    return torch.cat([x.real, x.imag], -1)


def recur(q, decay, write):
    """o = Sᵀq of S ← decay ⊙ S + write(t, S), token by token."""
    S, outputs = 0, []
    for t in range(T):
        S = decay[:, t] * S
        S = S + write(t, S)
        outputs.append(torch.einsum("bhkv,bhk->bhv", S, q[:, t]))
    return torch.stack(outputs, 1)


def outer(k, v):
    return k[..., :, None] * v[..., None, :]


def elu1(x):
    return F.elu(x) + 1


def linear(layer, p, x):
    q, k, v = project(p, x)
    weights = scores_of(elu1(q), elu1(k))
    return output(p, read(divide(weights.tril() if layer.causal else weights), v))


def trained(layer, p, x):
    def map_(x, name):
        matrix, maps = (lambda key: torch.einsum("bthd,hmd->bthm", x, p[f"feature_map_{name}.{key}"])), layer.feature_map_q.kind
        y = matrix("weight")
        if maps == "hedgehog":
            return torch.cat([y, -y], -1).softmax(-1)
        return (y + p[f"feature_map_{name}.bias"]).relu() if maps == "t2r" else y * matrix("weight2")

    q, k, v = project(p, x)
    weights = scores_of(map_(q, "q"), map_(k, "k")).tril()
    o = read(divide(weights) if layer.normalize else weights * layer.scale, v)
    return output(p, rms(o, p["norm.weight"]) if "norm.weight" in p else o)


def performer(_, p, x):
    q, k, v = project(p, x)
    q, k = (torch.exp(y @ p["projection_matrix"].T - y.square().sum(-1, keepdim=True) / 2) for y in (q * HEAD**-0.25, k * HEAD**-0.25))
    return output(p, read(divide(scores_of(q, k).tril()), v))


def transnormer(_, p, x):
    q, k, v = project(p, x)
    return output(p, rms(read(scores_of(elu1(q), elu1(k)).tril() * HEAD**-0.5, v), p["norm.weight"]))


def gla(_, p, x):
    q, k, v, gate = project(p, x, (4, 4, 8, 8))
    decay = x @ p["gk_proj.0.weight"].T @ p["gk_proj.1.weight"].T + p["gk_proj.1.bias"]
    decay = heads_of(decay.sigmoid() ** (1 / 16), 4)[..., None]
    o = recur(q, decay, lambda t, S: outer(k[:, t], v[:, t])) / 2
    return output(p, rms(o, p["g_norm_swish_gate.weight"]) * F.silu(gate))


def retention(_, p, x):
    q, k, v, gate = project(p, x, (8, 8, 16, 16))
    rates = torch.log1p(-(2.0 ** (-5 - torch.arange(HEADS, dtype=torch.float64))))
    decay = torch.exp(rates[:, None, None] * (torch.arange(T)[:, None] - torch.arange(T))).tril()
    o = read(scores_of(rotate(q, 100.0), rotate(k, 100.0)) * decay * HEAD**-0.5, v)
    return output(p, rms(o, p["g_norm_swish_gate.weight"]) * F.silu(gate))


def delta(layer, p, x):
    def convolve(name):
        y = F.pad((x @ p[f"{name}_proj.weight"].T).mT, (3, 0))
        return heads_of(F.silu(F.conv1d(y, p[f"{name}_conv1d.weight"], groups=SIZE)).mT)

    q, k, v = map(convolve, "qkv")
    q, k = (y / torch.sqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
    beta = (x @ p["b_proj.weight"].T).sigmoid()[..., None] * (2 if layer.allow_neg_eigval else 1)

    def write(t, S):
        held = torch.einsum("bhkv,bhk->bhv", S + torch.zeros(HEAD, HEAD), k[:, t])
        return outer(beta[:, t] * k[:, t], v[:, t] - held)

    zeros = torch.zeros(2, HEADS, HEAD, HEAD, dtype=torch.float64)
    o = recur(q, torch.ones(1, T), lambda t, S: write(t, zeros + S)) * HEAD**-0.5
    return output(p, rms(o, p["o_norm.weight"]) * F.silu(heads_of(x @ p["g_proj.weight"].T)))


def rwkv7(_, p, x):
    def low_rank(name, z, activation=lambda z: z):
        return activation(z @ p[f"{name}_lora.lora.0.weight"].T) @ p[f"{name}_lora.lora.2.weight"].T + p.get(f"{name}_lora.lora.2.bias", 0)

    before = torch.cat([torch.zeros(2, 1, SIZE), x[:, :-1]], 1)
    mixed = {name: x + (before - x) * p[f"x_{name}"] for name in "rwkvag"}
    r, k, v = (mixed[name] @ p[f"{name}_proj.weight"].T for name in "rkv")
    decay = torch.exp(-math.exp(-0.5) * low_rank("w", mixed["w"], torch.tanh).sigmoid())
    v = v + low_rank("v", mixed["v"]).sigmoid() * (V_FIRST.double() - v)
    a, gate = low_rank("a", mixed["a"]).sigmoid(), low_rank("g", mixed["g"], torch.sigmoid)
    unit = heads_of(k * p["k_k"])
    unit = unit / unit.norm(dim=-1, keepdim=True)
    k = k * (1 + (a - 1) * p["k_a"])
    r, k, v, a, decay = map(heads_of, (r, k, v, a, decay))
    S, outputs = torch.zeros(2, HEADS, HEAD, HEAD, dtype=torch.float64), []
    for t in range(T):
        erased = torch.einsum("bhkv,bhk->bhv", S, -unit[:, t])
        S = decay[:, t, ..., None] * S + outer(unit[:, t] * a[:, t], erased) + outer(k[:, t], v[:, t])
        outputs.append(torch.einsum("bhkv,bhk->bhv", S, r[:, t]))
    o = torch.stack(outputs, 1)
    o = (o - o.mean(-1, keepdim=True)) / torch.sqrt(o.var(-1, unbiased=False, keepdim=True) + 8e-5)
    o = o * heads_of(p["g_norm.weight"]) + heads_of(p["g_norm.bias"])
    o = o + (r * k * p["r_k"]).sum(-1, keepdim=True) * v
    return (o.flatten(2) * gate) @ p["o_proj.weight"].T


def s4d(_, p, x):
    """A convolution with K_t = 2 Re Σ C e^(t Δ A) (e^(Δ A) − 1) / A."""
    A, dt = torch.complex(-p["kernel.log_A_real"].exp(), p["kernel.A_imag"]), p["kernel.log_dt"].exp()[:, None]
    C = torch.view_as_complex(p["kernel.C"]) * (torch.exp(dt * A) - 1) / A
    kernel = 2 * torch.einsum("cs,cst->ct", C, torch.exp((dt * A)[..., None] * torch.arange(T))).real
    kernel = torch.cat([p["D"][:, None] + kernel[:, :1], kernel[:, 1:]], 1)
    y = F.gelu(F.conv1d(F.pad(x.mT, (T - 1, 0)), kernel.flip(1)[:, None], groups=SIZE))
    return F.glu(F.conv1d(y, p["output_linear.0.weight"], p["output_linear.0.bias"]), -2).mT


def distances():
    return torch.arange(T)[:, None] - torch.arange(T)


def softmax(layer, p, x):
    q, k, v = project(p, x)
    q, k = (rotate(y, layer.rotary_base) if layer.rotary_base else y for y in (q, k))
    mask = distances() >= 0
    if layer.window:
        mask &= distances() < layer.window
    return output(p, read(soften(q, k, mask), v))


def hybrid(layer, p, x):
    q, k, v = project(p, x)
    near = read(soften(q, k, (distances() >= 0) & (distances() < layer.window)), v)
    share = p["mix_logit"].sigmoid()[:, None]
    return output(p, share * near + (1 - share) * read(divide(scores_of(elu1(q), elu1(k)).tril()), v))


def blocks(layer, p, x):
    count = -(-T // layer.block_size)
    mask = torch.from_numpy(linattn.block_mask(count, **layer.pattern)).bool()
    mask = mask.repeat_interleave(layer.block_size, 0).repeat_interleave(layer.block_size, 1)[:T, :T]
    q, k, v = project(p, x)
    return output(p, read(soften(q, k, mask & (distances() >= 0) if layer.causal else mask), v))


def linformer(_, p, x):
    q, k, v = project(p, x)
    k, v = (torch.einsum("bthd,tr->brhd", y, p[f"proj_{name}"][:T]) for name, y in (("k", k), ("v", v)))
    return output(p, read(soften(q, k, torch.tensor(True)), v))


# Layer -> how it is made and called, and its formula.
FORMULAS = {
    "linear": (lambda: nn.LinearAttention(SIZE, HEADS, kv_heads=2), linear),
    "linear-whole": (lambda: nn.LinearAttention(SIZE, HEADS, causal=False, bias=True), linear),
    "linear-hedgehog": (lambda: nn.LinearAttention(SIZE, HEADS, feature_map="hedgehog", output_norm="rms"), trained),
    "linear-t2r": (lambda: nn.LinearAttention(SIZE, HEADS, feature_map="t2r", bias=True), trained),
    "linear-hadamard": (
        lambda: nn.LinearAttention(SIZE, HEADS, feature_map="hadamard", normalize=False, output_norm="rms"), trained,
    ),
    "performer": (lambda: nn.PerformerAttention(SIZE, HEADS, features=24), performer),
    "norm": (lambda: nn.NormAttention(SIZE, HEADS, kv_heads=2), transnormer),
    "gla": (lambda: nn.GatedLinearAttention(SIZE, HEADS), gla),
    "retnet": (lambda: nn.RetNet(SIZE, HEADS, rotary_base=100.0), retention),
    "delta": (lambda: nn.DeltaNet(SIZE, HEADS, use_gate=True), delta),
    "delta-negative": (lambda: nn.DeltaNet(SIZE, HEADS, use_gate=True, allow_neg_eigval=True), delta),
    "rwkv7": (lambda: nn.RWKV7(SIZE, HEADS, layer_idx=1), rwkv7),
    "s4d": (lambda: nn.S4D(SIZE, state_size=8), s4d),
    "softmax": (lambda: nn.MultiHeadAttention(SIZE, HEADS, kv_heads=2, rotary_base=1e4), softmax),
    "window": (lambda: nn.SlidingWindowAttention(SIZE, HEADS, window=6), softmax),
    "hybrid": (lambda: nn.HybridAttention(SIZE, HEADS, window=5, feature_map="elu"), hybrid),
    "blocks": (lambda: nn.BlockSparseAttention(SIZE, HEADS, block_size=4, kv_heads=2), blocks),
    "diagonal": (lambda: nn.DiagAttention(SIZE, HEADS, block_size=4), blocks),
    "linformer": (lambda: nn.LinformerAttention(SIZE, HEADS, length=24, rank=6, kv_heads=2), linformer),
    "fnet": (lambda: nn.FNet(SIZE), lambda _, p, x: torch.fft.fft2(x).real),
}  # fmt: skip
WITHOUT_CACHE = ("linear-whole", "blocks", "diagonal", "linformer", "fnet")


def error(found, expected):
    return float((found - expected).detach().abs().max() / expected.detach().abs().max())


def call(layer, x, part=slice(None), **options):
    """The tokens of `part`, and for a later layer of RWKV-7 the values of the first one."""
    if isinstance(layer, nn.RWKV7):
        return layer(x[:, part], v_first=V_FIRST[:, part], **options)[0]
    return layer(x[:, part], **options)


@pytest.mark.parametrize("name", FORMULAS)
def test_outputs_gradients_and_steps(name):
    make, formula = FORMULAS[name]
    torch.manual_seed(0)
    layer, x = make(), draw().requires_grad_()
    # Parameters of ones, zeros or an identity would hide mistakes.
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    wide = {key: tensor.detach().double() for key, tensor in layer.state_dict().items()}
    parameters = {key: wide[key].requires_grad_() for key, _ in layer.named_parameters()}
    wide_x = x.detach().double().requires_grad_()
    y, expected = call(layer, x), formula(layer, wide, wide_x)
    assert error(y, expected) <= 1e-5
    weight = draw(3)
    found = torch.autograd.grad((y * weight).sum(), [x, *layer.parameters()])
    derived = torch.autograd.grad((expected * weight).sum(), [wide_x, *parameters.values()])
    for key, gradient, by_formula in zip(("x", *parameters), found, derived):
        assert by_formula.abs().max() > 0 and error(gradient, by_formula) <= 1e-4, key
    if name not in WITHOUT_CACHE:
        with torch.no_grad():
            cache = nn.Cache()
            steps = [call(layer, x, slice(t, t + 1), cache=cache) for t in range(T)]
        assert error(torch.cat(steps, 1), expected) <= 1e-5


def test_every_layer_has_a_reference():
    found = {type(make()).__name__ for make, _ in FORMULAS.values()} | PUBLISHED | {"NystromAttention"}
    layers = {name for name in nn.__all__ if hasattr(getattr(nn, name), "mix")} - {"Layer"}
    assert layers == found
