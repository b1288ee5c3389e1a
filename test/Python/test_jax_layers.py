"""Layers of JAX compute what those of PyTorch do, with the same parameters."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
import jax.numpy as jnp  # noqa: E402
from linattn.jax import nn  # noqa: E402
from linattn.torch import nn as torch_nn  # noqa: E402

SIZE, T = 32, 17
LAYERS = {
    "linear": (nn.LinearAttention(SIZE, 4, kv_heads=2), lambda: torch_nn.LinearAttention(SIZE, 4, kv_heads=2)),
    "gla": (nn.GatedLinearAttention(SIZE, 4), lambda: torch_nn.GatedLinearAttention(SIZE, 4)),
    "gated-delta": (
        nn.GatedDeltaNet(SIZE, 2, value_heads=4, head_dim=8),
        lambda: torch_nn.GatedDeltaNet(SIZE, 2, value_heads=4, head_dim=8),
    ),
    "mamba2": (
        nn.Mamba2(SIZE, head_dim=16, state_size=8, groups=2),
        lambda: torch_nn.Mamba2(SIZE, head_dim=16, state_size=8, groups=2),
    ),
    "window": (
        nn.SlidingWindowAttention(SIZE, 4, kv_heads=2, window=6),
        lambda: torch_nn.SlidingWindowAttention(SIZE, 4, kv_heads=2, window=6),
    ),
    "hybrid": (nn.HybridAttention(SIZE, 4, window=6), lambda: torch_nn.HybridAttention(SIZE, 4, window=6)),
    "linformer": (
        nn.LinformerAttention(SIZE, 4, length=20, rank=6),
        lambda: torch_nn.LinformerAttention(SIZE, 4, length=20, rank=6),
    ),
    "nystrom": (
        nn.NystromAttention(SIZE, 4, kv_heads=2, landmarks=5, iterations=3, conv_size=3),
        lambda: torch_nn.NystromAttention(SIZE, 4, kv_heads=2, landmarks=5, iterations=3, conv_size=3),
    ),
    "fnet": (nn.FNet(SIZE), lambda: torch_nn.FNet(SIZE)),
}  # fmt: skip
# Heads of other sizes, rotary embeddings and biases.
SHARED = {"kv_heads": 2, "head_dim": 6, "bias": True}
ROTARY = SHARED | {"rotary_base": 100.0}
for _name, _options in {
    "LinearAttention": ROTARY, "SlidingWindowAttention": ROTARY | {"window": 6}, "HybridAttention": ROTARY | {"window": 6},
    "NystromAttention": ROTARY | {"landmarks": 5, "conv_size": 3}, "LinformerAttention": SHARED | {"length": 20, "rank": 6},
    "GatedLinearAttention": {"kv_heads": 2, "head_dim": 6, "value_head_dim": 10},
}.items():  # fmt: skip
    LAYERS[f"{_name}-sizes"] = (
        getattr(nn, _name)(SIZE, 4, **_options), lambda name=_name, options=_options: getattr(torch_nn, name)(SIZE, 4, **options)
    )  # fmt: skip
WHOLE = ("linformer", "nystrom", "fnet", "NystromAttention-sizes", "LinformerAttention-sizes")


def error(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / np.abs(expected).max()


def make(name):
    layer, other = LAYERS[name]
    torch.manual_seed(0)
    other = other()
    x = torch.randn(2, T, SIZE)
    return layer, nn.params_from_torch(other.state_dict()), other, x


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", LAYERS)
def test_like_pytorch(name):
    layer, params, other, x = make(name)
    shapes = jax.tree.map(jnp.shape, params)
    assert jax.tree.map(jnp.shape, layer.init(jax.random.key(0))) == shapes
    x.requires_grad_()
    y = other(x)
    y.square().sum().backward()
    (loss, found), gradients = jax.jit(
        jax.value_and_grad(lambda p, x: (lambda y: ((y * y).sum(), y))(layer.apply(p, x)), has_aux=True, argnums=(0, 1))
    )(params, jnp.asarray(x.detach()))
    assert error(found, y.detach()) <= 5e-6
    expected = nn.params_from_torch({name: parameter.grad for name, parameter in other.named_parameters()})
    expected = (expected, jnp.asarray(x.grad))
    for found, wanted in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected), strict=True):
        assert error(found, wanted) <= 1e-4


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in LAYERS if name not in WHOLE])
def test_decoding(name):
    layer, params, _, x = make(name)
    x = jnp.asarray(x)
    whole, step = layer.apply(params, x), jax.jit(layer.apply)
    prompt = 2 if name in ("window", "SlidingWindowAttention-sizes") else 13  # shorter than the window, and longer
    y, cache = step(params, x[:, :prompt], layer.make_cache(2))
    outputs = [y]
    for t in range(prompt, T):
        y, cache = step(params, x[:, t : t + 1], cache)
        outputs.append(y)
    assert error(jnp.concatenate(outputs, 1), whole) <= 5e-6


def test_packed():
    layer, params, _, x = make("gated-delta")
    x = jnp.asarray(x)
    y, cache = layer.apply(params, jnp.concatenate([x[:1], x[1:, :9]], 1), layer.make_cache(2), jnp.array([0, T, T + 9]))
    assert error(y[:, T:], layer.apply(params, x[1:, :9])) <= 5e-6
    following, _ = layer.apply(params, x[:, 9:10], cache)
    assert error(following[1], layer.apply(params, x[1:, :10])[0, 9:]) <= 5e-6


def test_packed_positions():
    """Rotary embeddings count the tokens of each sequence, behind those of its cache."""
    layer, params, _, x = make("LinearAttention-sizes")
    x = jnp.asarray(x)
    packed = jnp.concatenate([x[:1, :10], x[1:, :9]], 1)
    y, cache = layer.apply(params, packed, layer.make_cache(2), jnp.array([0, 10, 19]))
    assert error(y[:, 10:], layer.apply(params, x[1:, :9])) <= 5e-6
    assert error(y, layer.apply(params, packed, cu_seqlens=jnp.array([0, 10, 19]))) <= 5e-6
    following, _ = layer.apply(params, jnp.concatenate([x[:1, 10:], x[1:, 9:10]], 1), cache, jnp.array([0, 7, 8]))
    assert error(following[:, :7], layer.apply(params, x[:1])[:, 10:]) <= 5e-6
    assert error(following[:, 7:], layer.apply(params, x[1:, :10])[:, 9:]) <= 5e-6


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
    y, cache = layer.apply(params, x[:, :3], layer.make_cache(2))
    following, _ = layer.apply(params, x[:, 3:], cache)
    assert error(jnp.concatenate([y, following], 1), layer.apply(params, x)) <= 5e-6


@pytest.mark.parametrize("name", ("window", "hybrid"))
def test_packed_windows(name):
    layer, params, _, x = make(name)
    x = jnp.asarray(x)
    y = layer.apply(params, jnp.concatenate([x[:1], x[1:, :9]], 1), cu_seqlens=jnp.array([0, T, T + 9]))
    assert error(y[:, T:], layer.apply(params, x[1:, :9])) <= 5e-6


@pytest.mark.parametrize("name", WHOLE)
def test_refusals_of_whole_sequences(name):
    layer, params, _, x = make(name)
    with pytest.raises(ValueError, match="make_cache: expected a causal layer, but got"):
        layer.make_cache(2)
    with pytest.raises(ValueError, match="cu_seqlens: expected None for .*, whose tokens depend on all others"):
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
    with pytest.raises(ValueError, match="head_dim: expected a number that divides expand"):
        nn.Mamba2(SIZE, head_dim=60)
    with pytest.raises(ValueError, match="groups: expected a number that divides the heads, 4, but got 3"):
        nn.Mamba2(SIZE, head_dim=16, groups=3)
    with pytest.raises(ValueError, match="feature_map: expected a function or one of"):
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
    layer, params, _, x = make("linformer")
    with pytest.raises(ValueError, match="x: expected at most 20 tokens, but got 34"):
        layer.apply(params, jnp.concatenate([jnp.asarray(x)] * 2, 1))
