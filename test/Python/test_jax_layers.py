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
}  # fmt: skip


def error(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / np.abs(expected).max()


def make(name):
    layer, other = LAYERS[name]
    torch.manual_seed(0)
    other = other()
    x = torch.randn(2, T, SIZE)
    return layer, nn.params_from_torch(other.state_dict()), other, x


@pytest.mark.parametrize("name", LAYERS)
def test_like_pytorch(name):
    layer, params, other, x = make(name)
    shapes = jax.tree.map(jnp.shape, params)
    assert jax.tree.map(jnp.shape, layer.init(jax.random.key(0))) == shapes
    y = other(x)
    y.square().sum().backward()
    (loss, found), gradients = jax.jit(
        jax.value_and_grad(lambda p, x: (lambda y: ((y * y).sum(), y))(layer.apply(p, x)), has_aux=True)
    )(params, jnp.asarray(x))
    assert error(found, y.detach()) <= 5e-6
    expected = nn.params_from_torch({name: parameter.grad for name, parameter in other.named_parameters()})
    for found, wanted in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected), strict=True):
        assert error(found, wanted) <= 1e-4


@pytest.mark.parametrize("name", LAYERS)
def test_decoding(name):
    layer, params, _, x = make(name)
    x = jnp.asarray(x)
    whole, step = layer.apply(params, x), jax.jit(layer.apply)
    y, cache = step(params, x[:, :13], layer.make_cache(2))
    outputs = [y]
    for t in range(13, T):
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


def test_refusals():
    with pytest.raises(ValueError, match="heads: expected a number that divides hidden_size, 32, but got 5"):
        nn.GatedDeltaNet(SIZE, 5)
    with pytest.raises(ValueError, match="head_dim: expected a number that divides expand"):
        nn.Mamba2(SIZE, head_dim=60)
    with pytest.raises(ValueError, match="groups: expected a number that divides the heads, 4, but got 3"):
        nn.Mamba2(SIZE, head_dim=16, groups=3)
    with pytest.raises(ValueError, match="feature_map: expected a function or one of"):
        nn.LinearAttention(SIZE, 4, feature_map="elu1")
    layer, params, _, _ = make("linear")
    with pytest.raises(ValueError, match=r"x: expected shape \(B, T, 32\), but got \(2, 8\)"):
        layer.apply(params, jnp.zeros((2, 8)))
