"""Layers of JAX compute what those of PyTorch do, with the same parameters."""

import functools
import inspect

import numpy as np
import pytest

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
import jax.numpy as jnp  # noqa: E402
from linattn.jax import nn  # noqa: E402
from linattn.torch import nn as torch_nn  # noqa: E402

SIZE, T = 32, 17
# Every layer with the options that change its computation: heads of other sizes, rotary embeddings, biases, gates, norms.
SHARED = {"kv_heads": 2, "head_dim": 6, "bias": True}
ROTARY = SHARED | {"rotary_base": 100.0}
OPTIONS = {
    "linear": ("LinearAttention", 4, {"kv_heads": 2}),
    "linear-sizes": ("LinearAttention", 4, ROTARY | {"value_head_dim": 10}),
    "linear-trained": ("LinearAttention", 4, {"feature_map": "t2r", "output_norm": "rms", "normalize": False}),
    "linear-hadamard": ("LinearAttention", 4, {"kv_heads": 2, "feature_map": "hadamard", "causal": False}),
    "norm": ("NormAttention", 4, {"kv_heads": 2, "feature_map": "taylor"}),
    "performer": ("PerformerAttention", 4, {"kv_heads": 2, "features": 24, "seed": 3}),
    "performer-whole": ("PerformerAttention", 4, {"causal": False, "bias": True}),
    "gla": ("GatedLinearAttention", 4, {}),
    "gla-sizes": ("GatedLinearAttention", 4, {"kv_heads": 2, "head_dim": 6, "value_head_dim": 10, "conv_size": 3, "use_gate": False}),
    "retnet": ("RetNet", 4, {}),
    "retnet-shared": ("RetNet", 4, {"kv_heads": 2, "conv_size": 3, "conv_bias": True, "use_gate": False, "rotary_base": None}),
    "delta": ("DeltaNet", 4, {"use_gate": True}),
    "delta-plain": ("DeltaNet", 4, {"conv_size": None, "allow_neg_eigval": True}),
    "gated-delta": ("GatedDeltaNet", 2, {"value_heads": 4, "head_dim": 8}),
    "kda": ("KimiDeltaAttention", 2, {"value_heads": 4, "conv_bias": True, "value_head_dim": 12}),
    "kda-bounded": ("KimiDeltaAttention", 4, {"lower_bound": -5.0, "conv_size": None, "gate_rank": 5, "gate_bias": False}),
    "mamba2": ("Mamba2", None, {"head_dim": 16, "state_size": 8, "groups": 2}),
    "mamba2-bounded": ("Mamba2", 4, {"head_dim": 16, "state_size": 8, "dt_limit": (0.01, 0.2), "bias": True, "conv_bias": False}),
    "rwkv7": ("RWKV7", 4, {}),
    "s4d": ("S4D", None, {"state_size": 8}),
    "softmax": ("MultiHeadAttention", 4, ROTARY),
    "softmax-whole": ("MultiHeadAttention", 4, {"causal": False}),
    "softmax-window": ("MultiHeadAttention", 4, {"window": 6}),
    "window": ("SlidingWindowAttention", 4, {"kv_heads": 2, "window": 6}),
    "window-sizes": ("SlidingWindowAttention", 4, ROTARY | {"window": 6}),
    "hybrid": ("HybridAttention", 4, {"window": 6}),
    "hybrid-sizes": ("HybridAttention", 4, ROTARY | {"window": 6}),
    "blocks": ("BlockSparseAttention", 4, ROTARY | {"block_size": 4, "random_blocks": 1}),
    "diag": ("DiagAttention", 4, {"block_size": 4}),
    "linformer": ("LinformerAttention", 4, {"length": 20, "rank": 6}),
    "linformer-sizes": ("LinformerAttention", 4, SHARED | {"length": 20, "rank": 6}),
    "nystrom": ("NystromAttention", 4, {"kv_heads": 2, "landmarks": 5, "iterations": 3, "conv_size": 3}),
    "nystrom-sizes": ("NystromAttention", 4, ROTARY | {"landmarks": 5, "conv_size": 3}),
    "fnet": ("FNet", None, {}),
}  # fmt: skip
WHOLE = ("blocks", "diag", "linformer", "linformer-sizes", "nystrom", "nystrom-sizes", "fnet")
BOTH_WAYS = ("linear-hadamard", "performer-whole", "softmax-whole")


def build(name, library=nn):
    kind, heads, options = OPTIONS[name]
    return getattr(library, kind)(SIZE, *(() if heads is None else (heads,)), **options)


def error(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / np.abs(expected).max()


def make(name):
    torch.manual_seed(0)
    other = build(name, torch_nn)
    # Parameters of ones, zeros or an identity would hide mistakes.
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return build(name), nn.params_from_torch(other.state_dict()), other, torch.randn(2, T, SIZE)


@functools.partial(jax.jit, static_argnums=0)
def apply(layer, *operands, **options):
    """As users call it: one compilation, where calls outside of `jit` compile every operation."""
    return layer.apply(*operands, **options)


def output(result):
    """Without what RWKV-7 returns beside it."""
    return result[0] if isinstance(result, tuple) else result


def test_options():
    """The layers of both libraries have the same names, options and defaults."""
    layers = {name for name in torch_nn.__all__ if hasattr(getattr(torch_nn, name), "mix")}
    assert layers == {name for name in nn.__all__ if hasattr(getattr(nn, name), "apply")}
    for name in layers - {"Layer"}:
        found, expected = (
            {option: parameter.default for option, parameter in inspect.signature(getattr(library, name)).parameters.items()}
            for library in (nn, torch_nn)
        )
        if name == "NormAttention":  # which passes the options of linear attention on
            del expected["options"]
            known = inspect.signature(torch_nn.LinearAttention).parameters
            expected |= {option: known[option].default for option in found if option in known}
        expected.pop("redraw_every", None)  # of a layer that counts its calls
        assert found == expected, name


@pytest.mark.parametrize("name", OPTIONS)
def test_parameters(name):
    layer, params, _, _ = make(name)
    drawn = jax.eval_shape(layer.init, jax.random.key(0))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), drawn) == jax.tree.map(lambda x: (x.shape, x.dtype), params)
    assert hash(layer) == hash(build(name)) and layer == build(name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", OPTIONS)
def test_drawn_parameters_are_finite(name):
    drawn = jax.jit(build(name).init)(jax.random.key(0))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(drawn))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", OPTIONS)
def test_like_pytorch(name):
    layer, params, other, x = make(name)
    x.requires_grad_()
    y = output(other(x))
    y.square().sum().backward()
    (loss, found), gradients = jax.jit(
        jax.value_and_grad(lambda p, x: (lambda y: ((y * y).sum(), y))(output(layer.apply(p, x))), has_aux=True, argnums=(0, 1))
    )(params, jnp.asarray(x.detach()))
    assert error(found, y.detach()) <= 5e-6
    gradients[0].pop("projection_matrix", None)  # PyTorch's layer keeps it as a buffer
    expected = nn.params_from_torch({name: parameter.grad for name, parameter in other.named_parameters()})
    expected = (expected, jnp.asarray(x.grad))
    for (path, found), other in zip(jax.tree.leaves_with_path(gradients), jax.tree.leaves(expected), strict=True):
        assert error(found, other) <= 1e-4, path


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in (*WHOLE, *BOTH_WAYS)])
def test_decoding(name):
    layer, params, _, x = make(name)
    x = jnp.asarray(x)
    whole = output(apply(layer, params, x))
    prompt = 2 if name in ("window", "window-sizes") else 13  # shorter than the window, and longer
    y, *_, cache = apply(layer, params, x[:, :prompt], make_cache(layer, 2))
    outputs = [y]
    for t in range(prompt, T):
        y, *_, cache = apply(layer, params, x[:, t : t + 1], cache)
        outputs.append(y)
    assert error(jnp.concatenate(outputs, 1), whole) <= 5e-6


def make_cache(layer, batch):
    room = {"length": T} if isinstance(layer, nn.MultiHeadAttention) and layer.window is None else {}
    return layer.make_cache(batch, **room)


PACKED = ("linear-sizes", "performer", "gla-sizes", "retnet", "delta", "gated-delta", "kda", "mamba2", "rwkv7")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PACKED)
def test_packed(name):
    """Packed sequences are those apart, and their caches go on row by row; offsets may be traced."""
    layer, params, _, x = make(name)
    x, offsets = jnp.asarray(x), jnp.array([0, T, T, T + 9])
    packed = jnp.concatenate([x[:1], x[1:, :9]], 1)
    y, *_, cache = apply(layer, params, packed, layer.make_cache(3), offsets)
    assert error(y[:, :T], output(apply(layer, params, x[:1]))) <= 5e-6
    assert error(y[:, T:], output(apply(layer, params, x[1:, :9]))) <= 5e-6
    assert error(output(apply(layer, params, packed, cu_seqlens=offsets)), y) <= 5e-6
    following, *_ = apply(layer, params, jnp.broadcast_to(x[1:, 9:10], (3, 1, SIZE)), cache)
    assert error(following[2], output(apply(layer, params, x[1:, :10]))[0, 9:]) <= 5e-6
    assert error(following[1], output(apply(layer, params, x[1:, 9:10]))[0]) <= 5e-6


def test_packed_positions():
    """Rotary embeddings count the tokens of each sequence, behind those of its cache."""
    layer, params, _, x = make("linear-sizes")
    x = jnp.asarray(x)
    packed = jnp.concatenate([x[:1, :10], x[1:, :9]], 1)
    y, cache = apply(layer, params, packed, layer.make_cache(2), jnp.array([0, 10, 19]))
    assert error(y[:, 10:], apply(layer, params, x[1:, :9])) <= 5e-6
    assert error(y, apply(layer, params, packed, cu_seqlens=jnp.array([0, 10, 19]))) <= 5e-6
    following, _ = apply(layer, params, jnp.concatenate([x[:1, 10:], x[1:, 9:10]], 1), cache, jnp.array([0, 7, 8]))
    assert error(following[:, :7], apply(layer, params, x[:1])[:, 10:]) <= 5e-6
    assert error(following[:, 7:], apply(layer, params, x[1:, :10])[:, 9:]) <= 5e-6


def test_dropout():
    _, params, _, x = make("linear")
    layer, x = nn.LinearAttention(SIZE, 4, kv_heads=2, dropout=0.25), jnp.asarray(x)
    whole, keys = layer.apply(params, x), jax.random.split(jax.random.key(3))
    dropped = [np.asarray(layer.apply(params, x, key=key)) for key in keys]
    for y in dropped:
        np.testing.assert_allclose(y[y != 0], np.asarray(whole)[y != 0] / 0.75, rtol=1e-6)
        assert abs((y == 0).mean() - 0.25) < 0.05
    assert ((dropped[0] == 0) != (dropped[1] == 0)).any()
    np.testing.assert_array_equal(jax.jit(layer.apply)(params, x, key=keys[0]), dropped[0])


def test_shared_projection():
    layer, params, _, x = make("linformer")
    shared = nn.LinformerAttention(SIZE, 4, length=20, rank=6, sharing="kv")
    assert set(shared.init(jax.random.key(0))) == set(params) - {"proj_v"}
    params["proj_v"], x = params["proj_k"], jnp.asarray(x)
    assert error(shared.apply(params, x), layer.apply(params, x)) <= 5e-6


def test_hybrid_of_a_fixed_map():
    layer, (_, params, _, x) = nn.HybridAttention(SIZE, 4, window=6, feature_map="elu"), make("hybrid")
    x = jnp.asarray(x)
    y, cache = apply(layer, params, x[:, :3], layer.make_cache(2))
    following, _ = apply(layer, params, x[:, 3:], cache)
    assert error(jnp.concatenate([y, following], 1), apply(layer, params, x)) <= 5e-6


@pytest.mark.parametrize("name", ("window", "hybrid", "softmax", "softmax-whole"))
def test_packed_softmax(name):
    layer, params, _, x = make(name)
    x = jnp.asarray(x)
    y = apply(layer, params, jnp.concatenate([x[:1], x[1:, :9]], 1), cu_seqlens=jnp.array([0, T, T + 9]))
    assert error(y[:, T:], apply(layer, params, x[1:, :9])) <= 5e-6


def test_first_values():
    """The other layers of RWKV-7 take a part of the values of the first one."""
    torch.manual_seed(0)
    first, second = torch_nn.RWKV7(SIZE, 4), torch_nn.RWKV7(SIZE, 4, layer_idx=1)
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    x = torch.randn(2, T, SIZE)
    _, v_first = first(x)
    layer, params = nn.RWKV7(SIZE, 4, layer_idx=1), nn.params_from_torch(second.state_dict())
    assert jax.tree.map(jnp.shape, jax.eval_shape(layer.init, jax.random.key(0))) == jax.tree.map(jnp.shape, params)
    x, values = jnp.asarray(x), jnp.asarray(v_first.detach())
    _, found = apply(nn.RWKV7(SIZE, 4), nn.params_from_torch(first.state_dict()), x)
    assert error(found, values) <= 5e-6
    y, found, cache = apply(layer, params, x[:, :9], layer.make_cache(2), v_first=values[:, :9])
    assert (found == values[:, :9]).all()
    following, *_ = apply(layer, params, x[:, 9:], cache, v_first=values[:, 9:])
    assert error(jnp.concatenate([y, following], 1), second(torch.from_numpy(np.array(x)), v_first=v_first)[0].detach()) <= 5e-6
    with pytest.raises(ValueError, match="v_first: expected an array for layer_idx=1, but got None"):
        layer.apply(params, x)


def test_features_drawn_anew():
    """Draw n is the n-th of PyTorch's layer; the matrix is an operand, no constant of a compiled function."""
    layer, params, other, x = make("performer")
    x, step = jnp.asarray(x), jax.jit(layer.apply)
    before = step(params, x)
    other.redraw()
    params = layer.redraw(params, 1)
    np.testing.assert_array_equal(params["projection_matrix"], other.projection_matrix)
    after = step(params, x)
    assert step._cache_size() == 1 and error(after, before) > 1e-3
    assert error(after, other(torch.from_numpy(np.array(x))).detach()) <= 5e-6
    gradient = jax.jit(jax.grad(lambda params: layer.apply(params, x).sum()))(params)
    assert not gradient["projection_matrix"].any() and gradient["q_proj"]["kernel"].any()
    with pytest.raises(ValueError, match="draw: expected an integer from 0"):
        layer.redraw(params, -1)


def test_room_of_a_cache():
    """Tokens beyond the room of a cache of keys do not go unnoticed."""
    layer, params, _, x = make("softmax")
    x = jnp.asarray(x)
    y, cache = apply(layer, params, x[:, :9], layer.make_cache(2, length=10))
    assert jnp.isfinite(y).all()
    y, cache = apply(layer, params, x[:, 9:10], cache)
    assert error(y, apply(layer, params, x)[:, 9:10]) <= 5e-6
    y, cache = apply(layer, params, x[:, 10:11], cache)
    assert jnp.isnan(y).all()
    with pytest.raises(ValueError, match="length: expected a number of tokens, but got None"):
        layer.make_cache(2)
    with pytest.raises(ValueError, match="length: expected None with a window, but got 10"):
        build("softmax-window").make_cache(2, length=10)


def test_dropout_of_weights():
    _, params, _, x = make("softmax")
    layer, x = nn.MultiHeadAttention(SIZE, 4, attention_dropout=0.5, **ROTARY), jnp.asarray(x)
    whole, first, second = (layer.apply(params, x, key=key) for key in (None, *jax.random.split(jax.random.key(0))))
    assert error(whole, build("softmax").apply(params, x)) == 0
    assert error(first, whole) > 0.1 and error(first, second) > 0.1
    assert error(jax.jit(layer.apply)(params, x, key=jax.random.split(jax.random.key(0))[0]), first) <= 1e-6
    gradient = jax.grad(lambda x: layer.apply(params, x, key=jax.random.key(0)).sum())(x)
    assert jnp.isfinite(gradient).all() and gradient.any()
    with pytest.raises(ValueError, match="cache: expected None with attention_dropout in training, but got one"):
        layer.apply(params, x, layer.make_cache(2, length=T), key=jax.random.key(0))


@pytest.mark.parametrize("name", (*WHOLE, *BOTH_WAYS))
def test_refusals_of_whole_sequences(name):
    layer, params, _, x = make(name)
    why = "whose (tokens depend on all others|blocks are those of whole sequences)" if name in WHOLE else "of causal=False"
    with pytest.raises(ValueError, match=f"make_cache: expected a causal layer, but got .*, {why}"):
        layer.make_cache(2)
    if name != "softmax-whole":
        with pytest.raises(ValueError, match=f"cu_seqlens: expected None for .*, {why}"):
            layer.apply(params, jnp.asarray(x), cu_seqlens=jnp.array([0, T]))


def test_refusals():
    with pytest.raises(ValueError, match="heads: expected a number that divides hidden_size, 32, but got 5"):
        nn.GatedDeltaNet(SIZE, 5)
    with pytest.raises(ValueError, match="head_dim: expected an even number with rotary_base, but got 5"):
        nn.LinearAttention(SIZE, 4, head_dim=5, rotary_base=1e4)
    with pytest.raises(ValueError, match="head_dim: expected a positive integer, but got 0"):
        nn.GatedDeltaNet(SIZE, 2, head_dim=0)
    with pytest.raises(ValueError, match=r"dropout: expected a number in \[0, 1\), but got 1.0"):
        nn.FNet(SIZE, dropout=1.0)
    with pytest.raises(ValueError, match="heads: expected expand . hidden_size / head_dim = 64 / 60, but got 1"):
        nn.Mamba2(SIZE, head_dim=60)
    with pytest.raises(ValueError, match="groups: expected a number that divides heads, 4, but got 3"):
        nn.Mamba2(SIZE, head_dim=16, groups=3)
    with pytest.raises(ValueError, match="feature_map: expected one of identity"):
        nn.LinearAttention(SIZE, 4, feature_map="elu1")
    layer, params, _, _ = make("linear")
    with pytest.raises(ValueError, match=r"x: expected shape \(B, T, 32\), but got \(2, 8\)"):
        layer.apply(params, jnp.zeros((2, 8)))
    layer, params, _, x = make("window")
    with pytest.raises(ValueError, match="cu_seqlens: expected None beside a cache of keys, but got both"):
        layer.apply(params, jnp.asarray(x[:1]), layer.make_cache(1), jnp.array([0, T]))
    with pytest.raises(ValueError, match="kv_heads: expected a number that divides heads, 4, but got 3"):
        nn.LinearAttention(SIZE, 4, kv_heads=3)
    with pytest.raises(ValueError, match="window: expected a positive integer, but got 0"):
        nn.SlidingWindowAttention(SIZE, 4, window=0)
    with pytest.raises(ValueError, match="sharing: expected one of none, kv, but got 'k'"):
        nn.LinformerAttention(SIZE, 4, length=8, sharing="k")
    with pytest.raises(ValueError, match="conv_size: expected an odd number, but got 4"):
        nn.NystromAttention(SIZE, 4, conv_size=4)
    with pytest.raises(ValueError, match="state_size: expected an even number, but got 7"):
        nn.S4D(SIZE, state_size=7)
    with pytest.raises(ValueError, match="head_dim: expected a number that divides hidden_size, 32, but got 5"):
        nn.RWKV7(SIZE, head_dim=5)
    with pytest.raises(ValueError, match="block_size: expected a positive integer, but got 0"):
        nn.DiagAttention(SIZE, 4, block_size=0)
    with pytest.raises(ValueError, match="features: expected a positive integer, but got 0"):
        nn.PerformerAttention(SIZE, 4, features=0)
    with pytest.raises(ValueError, match=r"attention_dropout: expected a number in \[0, 1\), but got -1"):
        nn.MultiHeadAttention(SIZE, 4, attention_dropout=-1)
    layer, params, _, x = make("s4d")
    with pytest.raises(ValueError, match="cu_seqlens: expected None for S4D, whose recurrence has one sequence in a row"):
        layer.apply(params, jnp.asarray(x[:1]), cu_seqlens=jnp.array([0, T]))
    layer, params, _, x = make("gla")
    with pytest.raises(ValueError, match="x: expected one row of packed sequences with cu_seqlens, but got 2"):
        layer.apply(params, jnp.asarray(x), cu_seqlens=jnp.array([0, T]))
    layer, params, _, x = make("linformer")
    with pytest.raises(ValueError, match="x: expected at most 20 tokens, but got 34"):
        layer.apply(params, jnp.concatenate([jnp.asarray(x)] * 2, 1))
