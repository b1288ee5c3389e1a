"""Layers of PyTorch: outputs, decoding, packed and padded sequences, gradients."""

import numpy as np
import pytest

import linattn

torch = pytest.importorskip("torch")
from linattn.torch import nn  # noqa: E402

SIZE, HEADS, T = 32, 4, 21
# Every layer with the options that change its computation.
LAYERS = {
    "linear": lambda: nn.LinearAttention(SIZE, HEADS),
    "linear-shared": lambda: nn.LinearAttention(SIZE, HEADS, kv_heads=2, feature_map="hedgehog", output_norm="rms"),
    "linear-t2r": lambda: nn.LinearAttention(SIZE, HEADS, feature_map="t2r", bias=True),
    "linear-plain": lambda: nn.LinearAttention(
        SIZE, HEADS, feature_map="hadamard", normalize=False, value_head_dim=12, output_norm="rms"
    ),
    "linear-rotary": lambda: nn.LinearAttention(SIZE, HEADS, feature_map="relu", rotary_base=1e4),
    "performer": lambda: nn.PerformerAttention(SIZE, HEADS, features=24),
    "hybrid": lambda: nn.HybridAttention(SIZE, HEADS, kv_heads=2, window=5),
    "softmax": lambda: nn.MultiHeadAttention(SIZE, HEADS, kv_heads=2, rotary_base=1e4),
    "window": lambda: nn.SlidingWindowAttention(SIZE, HEADS, window=6),
    "gla": lambda: nn.GatedLinearAttention(SIZE, HEADS),
    "gla-conv": lambda: nn.GatedLinearAttention(SIZE, HEADS, kv_heads=2, conv_size=4, use_gate=False),
    "retnet": lambda: nn.RetNet(SIZE, HEADS),
    "retnet-shared": lambda: nn.RetNet(SIZE, HEADS, kv_heads=2, conv_size=3, use_gate=False),
    "delta": lambda: nn.DeltaNet(SIZE, HEADS, use_gate=True),
    "delta-plain": lambda: nn.DeltaNet(SIZE, HEADS, conv_size=None, allow_neg_eigval=True),
    "gated-delta": lambda: nn.GatedDeltaNet(SIZE, 2, value_heads=4, head_dim=8, value_head_dim=12),
    "kda": lambda: nn.KimiDeltaAttention(SIZE, HEADS, conv_bias=True),
    "kda-bounded": lambda: nn.KimiDeltaAttention(SIZE, HEADS, lower_bound=-5.0, conv_size=None),
    "mamba2": lambda: nn.Mamba2(SIZE, head_dim=16, state_size=8, groups=2),
    "mamba2-bounded": lambda: nn.Mamba2(SIZE, head_dim=16, state_size=8, dt_limit=(0.01, 0.2)),
    "rwkv7": lambda: nn.RWKV7(SIZE, HEADS),
    "s4d": lambda: nn.S4D(SIZE, state_size=8),
    "norm": lambda: nn.NormAttention(SIZE, HEADS, kv_heads=2),
}  # fmt: skip


@pytest.fixture(params=LAYERS)
def layer(request):
    torch.manual_seed(0)
    layer = LAYERS[request.param]()
    # Parameters of ones, zeros or an identity would hide mistakes.
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return layer


def call(layer, x, **options):
    y = layer(x, **options)
    return y[0] if isinstance(y, tuple) else y


def error(found, expected):
    return float((found - expected).detach().abs().max() / expected.detach().abs().max())


def draw(rows=2, tokens=T, seed=1):
    return torch.randn(rows, tokens, SIZE, generator=torch.Generator().manual_seed(seed))


# ----------------------------------------------------------------------------
# Sequences
# ----------------------------------------------------------------------------


@pytest.mark.sampled(4)
@torch.no_grad()
def test_decoding(layer):
    x, cache = draw(), nn.Cache()
    whole = call(layer, x)
    outputs = [call(layer, x[:, :8], cache=cache), call(layer, x[:, 8:11], cache=cache)]
    fork = cache.copy()
    outputs += [call(layer, x[:, t : t + 1], cache=cache) for t in range(11, T)]
    assert error(torch.cat(outputs, 1), whole) <= 5e-6
    assert cache.length == T and fork.length == 11
    # Steps that overwrote the cache have left its copy alone; rows go their own ways.
    swapped = fork.select(torch.tensor([1, 0]))
    assert error(call(layer, x.flip(0)[:, 11:], cache=swapped), whole[:, 11:].flip(0)) <= 5e-6
    assert error(call(layer, x[:, 11:], cache=fork), whole[:, 11:]) <= 5e-6


@pytest.mark.sampled(3)
@torch.no_grad()
def test_packed(layer):
    x, cuts, cache = draw(1, 30), [0, 13, 13, 30], nn.Cache()
    packed = call(layer, x, cu_seqlens=cuts, cache=cache)
    parts = [call(layer, x[:, begin:end]) for begin, end in ((0, 13), (13, 30))]
    assert error(packed, torch.cat(parts, 1)) <= 5e-6
    assert cache.length.tolist() == [13, 0, 17]
    # One more token of each sequence.
    more = draw(3, 1, seed=2)
    found = call(layer, more, cache=cache)
    for row, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        expected = call(layer, torch.cat([x[:, begin:end], more[row : row + 1]], 1))[:, -1:]
        assert error(found[row : row + 1], expected) <= 5e-6


@pytest.mark.sampled(4)
@torch.no_grad()
def test_padding(layer):
    x, mask, cache = draw(), torch.ones(2, T, dtype=torch.bool), nn.Cache()
    mask[0, :6], mask[1, 15:] = False, False
    found = call(layer, x, mask=mask, cache=cache)
    assert error(found[0, 6:], call(layer, x[:1, 6:])[0]) <= 5e-6
    assert error(found[1, :15], call(layer, x[1:, :15])[0]) <= 5e-6
    assert not found[~mask].any()
    assert cache.length.tolist() == [15, 15]


@pytest.mark.sampled(12)
def test_gradients_of_packed_sequences(layer):
    x = draw(1, 30)

    def gradients(function):
        layer.zero_grad()
        function().square().sum().backward()
        return {name: parameter.grad.clone() for name, parameter in layer.named_parameters() if parameter.grad is not None}

    packed = gradients(lambda: call(layer, x, cu_seqlens=[0, 13, 30]))
    apart = gradients(lambda: torch.cat([call(layer, x[:, :13]), call(layer, x[:, 13:])], 1))
    # Every parameter takes part.
    assert set(packed) == {name for name, _ in layer.named_parameters()}
    for name, gradient in packed.items():
        assert apart[name].abs().max() > 0, name
        assert error(gradient, apart[name]) <= 2e-4, name


@pytest.mark.sampled(12)
def test_gradients_through_a_cache(layer):
    x = draw(1).requires_grad_()
    (whole,) = torch.autograd.grad(call(layer, x).square().sum(), x)
    cache = nn.Cache()
    y = torch.cat([call(layer, x[:, :9], cache=cache), call(layer, x[:, 9:], cache=cache)], 1)
    (found,) = torch.autograd.grad(y.square().sum(), x)
    assert error(found, whole) <= 1e-4


@pytest.mark.sampled(5)
@torch.no_grad()
def test_later_tokens_change_nothing(layer):
    x = draw()
    before = call(layer, x)[:, :10]
    x[:, 10:] += 1
    assert error(call(layer, x)[:, :10], before) <= 1e-6


def test_attention_of_packed_sequences_in_both_directions():
    torch.manual_seed(0)
    layer, x = nn.LinearAttention(SIZE, HEADS, causal=False), draw(1, 30)
    parts = [layer(x[:, :13]), layer(x[:, 13:])]
    assert error(layer(x, cu_seqlens=[0, 13, 30]), torch.cat(parts, 1)) <= 5e-6
    with pytest.raises(ValueError, match="cache: expected it only for a causal layer"):
        layer(x, cache=nn.Cache())


# ----------------------------------------------------------------------------
# Performer
# ----------------------------------------------------------------------------


def test_performer_estimates_softmax():
    torch.manual_seed(0)
    softmax, performer = nn.MultiHeadAttention(SIZE, 2), nn.PerformerAttention(SIZE, 2, features=4096)
    performer.load_state_dict(softmax.state_dict(), strict=False)
    x = 0.5 * draw()
    expected = softmax(x)
    with torch.no_grad():
        few = nn.PerformerAttention(SIZE, 2, features=8)
        few.load_state_dict(softmax.state_dict(), strict=False)
        assert error(performer(x), expected) <= 0.03 < error(few(x), expected)
    # Gradients change nothing.
    assert torch.equal(performer(x), performer.eval().requires_grad_(False)(x))


def test_performer_draws_anew():
    layer, x = nn.PerformerAttention(SIZE, HEADS, redraw_every=2), draw()
    first = layer.projection_matrix.clone()
    layer(x)
    assert torch.equal(layer.projection_matrix, first)
    layer(x)
    assert not torch.equal(layer.projection_matrix, first)
    assert np.array_equal(layer.projection_matrix, linattn.random_projection(layer.features, 8, draw=1))
    layer.eval()
    with torch.no_grad():
        cache = nn.Cache()
        layer(x, cache=cache)
        layer(x)
        assert int(layer.draws) == 1
        layer.redraw()
        with pytest.raises(ValueError, match="cache: expected one of draw 2 of the features, but got one of draw 1"):
            layer(x, cache=cache)
    other = nn.PerformerAttention(SIZE, HEADS)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.projection_matrix, layer.projection_matrix)


# ----------------------------------------------------------------------------
# Names, compilation, refusals
# ----------------------------------------------------------------------------

# The names of flash-linear-attention's layers.
NAMES = {
    "linear": "q_proj.weight k_proj.weight v_proj.weight o_proj.weight",
    "gla": "q_proj.weight k_proj.weight v_proj.weight g_proj.weight gk_proj.0.weight gk_proj.1.weight gk_proj.1.bias "
    "o_proj.weight g_norm_swish_gate.weight",
    "retnet-shared": "q_proj.weight k_proj.weight v_proj.weight q_conv1d.weight k_conv1d.weight v_conv1d.weight "
    "o_proj.weight g_norm.weight",
    "delta": "q_proj.weight k_proj.weight v_proj.weight q_conv1d.weight k_conv1d.weight v_conv1d.weight b_proj.weight "
    "g_proj.weight o_norm.weight o_proj.weight",
    "gated-delta": "q_proj.weight k_proj.weight v_proj.weight q_conv1d.weight k_conv1d.weight v_conv1d.weight a_proj.weight "
    "b_proj.weight A_log dt_bias g_proj.weight o_norm.weight o_proj.weight",
    "kda": "q_proj.weight k_proj.weight v_proj.weight q_conv1d.weight q_conv1d.bias k_conv1d.weight k_conv1d.bias "
    "v_conv1d.weight v_conv1d.bias f_proj.0.weight f_proj.1.weight b_proj.weight A_log dt_bias g_proj.0.weight "
    "g_proj.1.weight g_proj.1.bias o_norm.weight o_proj.weight",
    "mamba2": "in_proj.weight conv1d.weight conv1d.bias dt_bias A_log D norm.weight out_proj.weight",
    "s4d": "D kernel.C kernel.log_dt kernel.log_A_real kernel.A_imag output_linear.0.weight output_linear.0.bias",
    "rwkv7": "x_r x_w x_k x_v x_a x_g k_k k_a r_k r_proj.weight k_proj.weight v_proj.weight o_proj.weight "
    "w_lora.lora.0.weight w_lora.lora.2.weight w_lora.lora.2.bias a_lora.lora.0.weight a_lora.lora.2.weight "
    "a_lora.lora.2.bias g_lora.lora.0.weight g_lora.lora.2.weight g_norm.weight g_norm.bias",
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    assert set(LAYERS[name]().state_dict()) == set(NAMES[name].split())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["linear", "gated-delta", "mamba2"])
def test_compiled(name):
    torch.manual_seed(0)
    torch._dynamo.reset()  # its limit counts what other tests have compiled
    layer, x = LAYERS[name](), draw()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    y = compiled(x)
    assert torch.equal(y, layer(x))
    gradients = torch.autograd.grad(y.square().sum(), list(layer.parameters()))
    for found, expected in zip(gradients, torch.autograd.grad(layer(x).square().sum(), list(layer.parameters()))):
        assert error(found, expected) <= 1e-5
    with torch.no_grad():
        cache, plain = nn.Cache(), nn.Cache()
        for t in range(3):
            part = x[:, 4 * t : 4 * t + 4]
            assert torch.equal(compiled(part, cache=cache), layer(part, cache=plain))
        assert cache.length == 12


@pytest.mark.parametrize("name", ["linear-shared", "gated-delta"])
def test_exported(name):
    torch.manual_seed(0)
    layer = LAYERS[name]().eval().requires_grad_(False)
    sizes = {0: torch.export.Dim("rows", max=8), 1: torch.export.Dim("tokens", min=2, max=64)}
    program = torch.export.export(layer, (draw(),), dynamic_shapes=(sizes,))
    x = draw(3, 11)
    assert error(program.module()(x), layer(x)) <= 1e-6


@pytest.mark.sampled(5)
def test_short_tokens(layer):
    layer = layer.to(torch.bfloat16).requires_grad_(False)
    y = call(layer, draw().bfloat16())
    assert y.dtype == torch.bfloat16
    assert error(y.float(), call(layer.float(), draw())) <= 0.1


@pytest.mark.sampled(12)
def test_autocast(layer):
    with torch.autocast("cpu", torch.bfloat16):
        y = call(layer, draw())
        y.float().square().sum().backward()
    assert error(y.float(), call(layer, draw())) <= 0.1


def test_dropout():
    torch.manual_seed(0)
    layer = nn.GatedDeltaNet(SIZE, 2, dropout=0.5)
    assert 0.3 < float((layer(draw()) == 0).float().mean()) < 0.7
    assert (layer.eval()(draw()) != 0).all()


REFUSED = {
    "hidden_size: expected a positive integer, but got 0": lambda: nn.LinearAttention(0, 1),
    "heads: expected a number that divides hidden_size, 32, but got 5": lambda: nn.LinearAttention(SIZE, 5),
    "heads: expected an integer, but got float": lambda: nn.LinearAttention(SIZE, 4.0),
    "kv_heads: expected a number that divides heads, 4, but got 3": lambda: nn.GatedLinearAttention(SIZE, 4, kv_heads=3),
    "heads: expected a number that divides value_heads, 6, but got 4": lambda: nn.GatedDeltaNet(SIZE, 4, value_heads=6),
    "feature_map: expected one of identity": lambda: nn.LinearAttention(SIZE, 4, feature_map="elu1"),
    "output_norm: expected one of None, rms, but got 'layer'": lambda: nn.LinearAttention(SIZE, 4, output_norm="layer"),
    "head_dim: expected an even number with rotary_base, but got 3": lambda: nn.RetNet(SIZE, 4, head_dim=3),
    r"heads: expected expand \* hidden_size / head_dim = 64 / 16, but got 5": lambda: nn.Mamba2(SIZE, 5, head_dim=16),
    "groups: expected a number that divides heads, 4, but got 3": lambda: nn.Mamba2(SIZE, head_dim=16, groups=3),
    r"x: expected shape \(B, T, 32\), but got \(2, 21, 8\)": lambda: nn.LinearAttention(SIZE, 4)(draw()[..., :8]),
    "cache: expected a linattn.torch.nn.Cache, but got dict": lambda: nn.LinearAttention(SIZE, 4)(draw(), cache={}),
    "x: expected one row of packed sequences with cu_seqlens, but got 2": lambda: nn.DeltaNet(SIZE, 4)(
        draw(), cu_seqlens=[0, 3, 21]
    ),
    "mask: expected it only without cu_seqlens, but got both": lambda: nn.DeltaNet(SIZE, 4)(
        draw(1), cu_seqlens=[0, 3, 21], mask=torch.ones(1, 21)
    ),
    r"mask: expected shape \(2, 21\), but got \(21,\)": lambda: nn.DeltaNet(SIZE, 4)(draw(), mask=torch.ones(21)),
    "cache: expected one of this LinearAttention, but got that of another DeltaNet": lambda: _share_a_cache(),
    "v_first: expected a tensor for layer_idx=1, but got None": lambda: nn.RWKV7(SIZE, HEADS, layer_idx=1)(draw()),
    "v_first: expected None for layer_idx=0, but got a tensor": lambda: nn.RWKV7(SIZE, HEADS)(draw(), v_first=draw()),
}  # fmt: skip


def _share_a_cache():
    cache, first = nn.Cache(), nn.DeltaNet(SIZE, 4)
    first(draw(), cache=cache)
    nn.LinearAttention(SIZE, 4)(draw(), cache=cache)


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message):
    with pytest.raises((ValueError, TypeError), match=message):
        REFUSED[message]()
