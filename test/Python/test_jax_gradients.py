"""Gradients through JAX."""

import numpy as np
import pytest
import test_families

import linattn

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import linattn.jax  # noqa: E402


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def draw(*shape, dtype=jnp.float64, seed=0):
    return jnp.asarray(np.random.default_rng(seed + sum(shape)).standard_normal(shape), dtype)


def operands(dtype=jnp.float64, T=6, B=2):
    q, k, v = draw(B, T, 4, 8, dtype=dtype), draw(B, T, 2, 8, seed=1), draw(B, T, 4, 5, dtype=dtype)
    k = (k / jnp.linalg.norm(k, axis=-1, keepdims=True)).astype(dtype)
    wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
    g, beta = -abs(draw(B, T, 4, dtype=wide)), jax.nn.sigmoid(draw(B, T, 4, dtype=wide))
    return q, k, v, g, beta, draw(B, 4, 8, 5, dtype=wide)


def gated_delta(q, k, v, g, beta, S):
    return linattn.gated_delta_rule(q, k, v, g, beta, initial_state=S, output_final_state=True)


def gated(q, k, v, g):
    return linattn.simple_gla(q, k, v, g)


def by_the_formula(q, k, v, g, beta=None, S=None):
    """The gated delta rule, or without beta the additive one, token by token."""
    q, k, v = (jnp.repeat(x, 4 // x.shape[2], 2) for x in (q, k, v))
    is_delta = beta is not None

    def step(S, token):
        q, k, v, g, beta = token
        S = S * jnp.exp(g)[..., None, None]
        error = beta[..., None] * (v - is_delta * jnp.einsum("bhkv,bhk->bhv", S, k))
        S = S + k[..., None] * error[..., None, :]
        return S, jnp.einsum("bhkv,bhk->bhv", S, q) * q.shape[-1] ** -0.5

    start = jnp.zeros((*g.shape[::2], q.shape[-1], v.shape[-1])) if S is None else S
    tokens = (q, k, v, g, beta if is_delta else jnp.ones_like(g))
    S, o = jax.lax.scan(step, start, tuple(jnp.moveaxis(x, 1, 0) for x in tokens))
    return (jnp.moveaxis(o, 0, 1), S) if is_delta else jnp.moveaxis(o, 0, 1)


def gradients(function, arrays):
    """Of all operands, of a loss that weighs every result."""

    def loss(*arrays):
        return sum((x * draw(*x.shape, seed=7).astype(x.dtype)).sum().astype(float) for x in jax.tree.leaves(function(*arrays)))

    return jax.jit(jax.grad(loss, tuple(range(len(arrays)))))(*arrays)


def assert_close(found, expected, tolerance=1e-11):
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        assert abs(x.astype(float) - y).max() <= tolerance * max(abs(y).max(), 1e-30)


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float64, 1e-11), (jnp.float32, 1e-5), (jnp.bfloat16, 8e-3)])
def test_every_operand_against_the_formula(dtype, tolerance):
    arrays = operands(dtype, T=70)
    found = gradients(gated_delta, arrays)
    assert [x.dtype for x in found] == [x.dtype for x in arrays]
    assert_close(found, gradients(by_the_formula, [x.astype(float) for x in arrays]), tolerance)


@pytest.mark.parametrize("case", ["kda-bound", "mamba2-all"])
def test_families_have_the_gradients_that_pytorch_gets(case):
    torch = pytest.importorskip("torch")
    name, make = test_families.CASES[case]
    given = make(test_families.Draw(np.float64, T=5, B=1, HQ=2, HK=1, HV=2, K=4, V=3))
    arrays = {key: x for key, x in given.items() if isinstance(x, np.ndarray)}
    rest = {key: x for key, x in given.items() if key not in arrays}
    tensors = [torch.from_numpy(x.copy()).requires_grad_() for x in arrays.values()]
    call = lambda *x: getattr(linattn, name)(**dict(zip(arrays, x)), **rest)  # noqa: E731
    expected = torch.autograd.grad((call(*tensors) ** 2).sum(), tensors)
    found = jax.jit(jax.grad(lambda *x: (call(*x) ** 2).sum(), tuple(range(len(arrays)))))(*map(jnp.asarray, arrays.values()))
    assert_close(found, [jnp.asarray(x.numpy()) for x in expected], 1e-14)


def test_float16():
    arrays = operands(jnp.float16, T=20)[:4]
    found = gradients(gated, arrays)
    assert_close(found, gradients(by_the_formula, [x.astype(float) for x in arrays]), 1e-3)


def test_by_differences():
    check_grads(gated, operands()[:4], order=1, modes=["rev"])


def backward_of(function, *arrays):
    (equation,) = [e for e in jax.make_jaxpr(function)(*arrays).jaxpr.eqns if e.primitive.name == "linattn_run_backward"]
    return equation.params["given"], equation.params["needed"]


def test_only_active_operands():
    q, k, v, g, _, S = operands()
    call = lambda q, k, v, g, S: linattn.simple_gla(q, k, v, g, initial_state=S, output_final_state=True)  # noqa: E731
    outputs = jax.grad(lambda *x: call(*x)[0].sum(), (0, 3))
    assert backward_of(outputs, q, k, v, g, S) == ((True, False), (True, False, False, True, False))
    states = jax.grad(lambda *x: call(*x)[1].sum(), (0, 3))
    assert backward_of(states, q, k, v, g, S)[0] == (False, True)
    dq, dg = jax.jit(states)(q, k, v, g, S)
    assert not dq.any() and dg.any()


def test_parameters_of_feature_maps():
    q, k, v, *_ = operands()
    maps = linattn.feature_maps.hedgehog(draw(4, 8, 8), draw(2, 8, 8, seed=1))
    call = lambda maps: linattn.attention(q, k, v, feature_map=maps, causal=True)  # noqa: E731
    assert (jax.jit(call)(maps) == call(maps)).all()
    found = jax.grad(lambda maps: call(maps).sum())(maps)
    assert isinstance(found, type(maps)) and [x.shape for x in jax.tree.leaves(found)] == [(4, 8, 8), (2, 8, 8)]
    check_grads(lambda maps: call(maps), (maps,), order=1, modes=["rev"])


def test_all_ways_have_the_same_bits():
    q, k, v, g, _, _ = operands()
    loss = lambda q, g: (gated(q, k, v, g) ** 2).sum()  # noqa: E731
    expected = jax.grad(loss, (0, 1))(q, g)
    saved = jax.checkpoint(loss, policy=jax.checkpoint_policies.nothing_saveable)
    for found in (jax.jit(jax.grad(loss, (0, 1)))(q, g), jax.jit(jax.grad(saved, (0, 1)))(q, g)):
        assert all((x == y).all() for x, y in zip(found, expected))
    many = jnp.stack([q, 2 * q, -q])
    found = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), (0, None)))(many, g)
    apart = [jax.grad(loss, (0, 1))(x, g) for x in many]
    assert all((x == jnp.stack(y)).all() for x, y in zip(found, zip(*apart)))
    # A gradient of what all elements share is a sum of theirs.
    whole = jax.jit(jax.grad(lambda g: jax.vmap(loss, (0, None))(many, g).sum()))(g)
    assert_close([whole], [sum(x for _, x in apart)])
    heads = -abs(draw(4))
    decays = lambda g: (linattn.scan(q, k, v, decay=g) ** 2).sum()  # noqa: E731
    found = jax.jit(jax.vmap(jax.grad(decays)))(jnp.stack([heads, heads / 2]))
    assert (found == jnp.stack([jax.grad(decays)(heads), jax.grad(decays)(heads / 2)])).all()


def test_packed_sequences():
    q, k, v, g, _, _ = operands(B=1, T=9)
    packed = lambda *x: linattn.simple_gla(*x, cu_seqlens=np.array([0, 4, 4, 9]))  # noqa: E731
    apart = lambda *x: jnp.concatenate([gated(*(y[:, t] for y in x)) for t in (slice(0, 4), slice(4, 9))], 1)  # noqa: E731
    assert_close(gradients(packed, (q, k, v, g)), gradients(apart, (q, k, v, g)))


def test_no_tokens():
    q, k, v, g, _, _ = operands(T=0)
    found = gradients(gated, (q, k, v, g))
    assert [x.shape for x in found] == [(2, 0, 4, 8), (2, 0, 2, 8), (2, 0, 4, 5), (2, 0, 4)]


def test_refusals():
    q, k, v, g, beta, _ = operands()
    loss = lambda q: (gated(q, k, v, g) ** 2).sum()  # noqa: E731
    with pytest.raises(linattn.UnsupportedError, match="simple_gla: expected one derivative, but got a second one"):
        jax.jit(jax.grad(lambda q: jax.grad(loss)(q).sum()))(q)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(loss, (q,), (q,))
    decay = -abs(draw(2, 6, 4, 8))
    without = lambda q: linattn.scan(q, k, v, decay=decay, beta=beta, update="oja").sum()  # noqa: E731
    with pytest.raises(linattn.UnsupportedError, match="scan: expected a call that has the gradient of q, but got one without: .*oja"):
        jax.jit(jax.grad(without))(q)
