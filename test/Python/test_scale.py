"""A scale that a call gives: one kernel for all of them, with the bits of one that has it as
a constant."""

import threading

import numpy as np
import pytest
from conftest import assert_agrees
from test_families import CASES, Draw, parts, state_flag

import linattn
from linattn import reference
from linattn._families import _family
from linattn._recurrence import _plans

module = linattn._linattn
FAMILIES = _family._families
SCALED = [case for case in CASES if "-" not in case and FAMILIES[CASES[case][0]].takes_scale]


@pytest.fixture
def as_constant(monkeypatch):
    """Runs a function whose scales are constants of their kernels."""

    def run(function, *args, **kwargs):
        with monkeypatch.context() as patch:
            for place in (_plans, _family):
                patch.setattr(place, "split_scale", lambda scale, target: (scale, ()))
            return function(*args, **kwargs)

    return run


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def compiled(function):
    """The number of requests for kernels meanwhile, cached or not."""
    before = sum(module.cache_stats().values())
    function()
    return sum(module.cache_stats().values()) - before


def test_a_thousand_scales_are_one_kernel():
    q, k, v = draw(1, 9, 2, 4), draw(1, 9, 2, 4, seed=1), draw(1, 9, 2, 4, seed=2)
    scales = np.random.default_rng(3).uniform(-4, 4, 1000).tolist()
    expected = reference.scan(q, k, v, scale=1.0)
    linattn.scan(q, k, v, scale=0.75)

    def call():
        for scale in scales:
            assert_agrees(linattn.scan(q, k, v, scale=scale), expected * scale)

    before, plans = module.count_kernels(), len(_plans.known)
    assert compiled(call) == 0
    assert (module.count_kernels(), len(_plans.known)) == (before, plans)


def test_no_scale_and_one_have_kernels_without_it():
    q = draw(1, 5, 2, 4)
    linattn.scan(q, q, q, scale=0.3)
    before = module.count_kernels()
    linattn.scan(q, q, q)
    linattn.scan(q, q, q, scale=1)
    assert module.count_kernels() <= before + 2
    np.testing.assert_array_equal(linattn.scan(q, q, q, scale=0.5), linattn.scan(q, q, q))  # K**-0.5


def gates_of(update, T):
    uniform = np.random.default_rng(4).uniform
    if update == "delta":
        return {"update": "delta", "beta": uniform(size=(2, T, 2)).astype(np.float32)}
    return {"decay": -uniform(size=(2, T, 2)).astype(np.float32)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("update", ["add", "delta"])
@pytest.mark.parametrize("form, T", [("auto", 1), ("auto", 70), ("token", 70), ("chunk", 70), ("segments:32", 70)])
def test_bits_of_a_constant(dtype, update, form, T, as_constant):
    q, k, v = (draw(2, T, 2, 16, dtype=dtype, seed=i) / 4 for i in range(3))
    gates = {name: x if isinstance(x, str) else x.astype(np.float64 if dtype == np.float64 else np.float32) for name, x in gates_of(update, T).items()}
    call = dict(**gates, form=form, scale=0.3, return_state=True)
    o, state = linattn.scan(q, k, v, **call)
    expected, expected_state = as_constant(linattn.scan, q, k, v, **call)
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(state.S, expected_state.S)


@pytest.mark.parametrize("more", [
    dict(causal=True), dict(causal=False), dict(causal=True, normalize=True, feature_map="elu"),
    dict(causal=False, weights="softmax"), dict(causal=True, weights="softmax"), dict(form="quadratic"),
    dict(causal=True, prefix=3), dict(causal=False, return_state=True), dict(target="reference", causal=True),
])  # fmt: skip
def test_attention(more, as_constant):
    q, k, v = (draw(2, 33, 2, 8, seed=i) for i in range(3))
    call = dict(more, scale=-0.7)
    o, expected = linattn.attention(q, k, v, **call), as_constant(linattn.attention, q, k, v, **call)
    if more.get("return_state"):
        o, expected = o[0], expected[0]
    np.testing.assert_array_equal(o, expected)
    oracle = {name: x for name, x in call.items() if name not in ("form", "return_state", "target")}
    assert_agrees(o, reference.attention(q, k, v, **oracle))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", SCALED)
def test_families(case, as_constant):
    name, make = CASES[case]
    function, operands = getattr(linattn, name), make(Draw())
    call = {**operands, "scale": 0.3, state_flag(function): True}
    o, state = function(**call)
    expected, expected_state = as_constant(function, **call)
    np.testing.assert_array_equal(o, expected)
    for part, other in zip(parts(state), parts(expected_state), strict=True):
        np.testing.assert_array_equal(part, other)
    # The op of log_linear, which is not here, has no operand for it.
    assert compiled(lambda: function(**{**call, "scale": 0.4})) == 0


def test_bidirectional(as_constant):
    q, k, v = (draw(1, 20, 2, 8, seed=i) for i in range(3))
    decay = -abs(draw(1, 20, 2))
    o = linattn.bidirectional(q, k, v, decay=decay, scale=0.3)
    np.testing.assert_array_equal(o, as_constant(linattn.bidirectional, q, k, v, decay=decay, scale=0.3))


def test_steps_and_queries():
    q, k, v = (draw(1, 40, 2, 8, seed=i) for i in range(3))
    state = linattn.State.zeros(1, 2, 8, 8)
    scales = np.random.default_rng(5).uniform(0.1, 2, 40).tolist()
    expected = reference.scan(q, k, v, scale=1.0)
    for t, scale in enumerate(scales):
        at = slice(t, t + 1)
        o = state.step(q[:, at], k[:, at], v[:, at], scale=scale)
        assert_agrees(o, expected[:, at] * scale)
        again = state.query(q[:, at], scale=scale / 2)
        assert_agrees(again, expected[:, at] * (scale / 2))
    # The same step again, which nothing looks up.
    first = state.copy().step(q[:, :1], k[:, :1], v[:, :1], scale=0.3)
    repeated = state.copy()
    repeated.step(q[:, :1], k[:, :1], v[:, :1], scale=0.3)
    twice = repeated.step(q[:, :1], k[:, :1], v[:, :1], scale=0.3)
    assert not np.array_equal(first, twice)


def test_flash_linear_attention():
    q, k, v = (draw(1, 9, 2, 4, seed=i) for i in range(3))
    expected = reference.scan(q, k, v, scale=1.0)
    linattn.fla.chunk_linear_attn(q, k, v, scale=0.7, normalize=False)
    for scale in (0.2, 0.2, -3.0, 1.0, None, 2):
        o, _ = linattn.fla.chunk_linear_attn(q, k, v, scale=scale, normalize=False)
        assert_agrees(o, expected * (0.5 if scale is None else scale))


def test_threads():
    q, k, v = (draw(2, 100, 4, 16, seed=i) for i in range(3))
    scales = np.random.default_rng(6).uniform(0.5, 2, 40).tolist()
    expected = linattn.scan(q, k, v, scale=1.0).astype(np.float64)
    found, errors = {}, []

    def work(own):
        try:
            for scale in own:
                found[scale] = linattn.scan(q, k, v, scale=scale)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(scales[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(found) == len(scales)
    for scale, o in found.items():
        assert_agrees(o, expected * scale)


@pytest.mark.parametrize("scale, error, message", [
    (float("nan"), ValueError, "scale: expected a finite number, but got nan"),
    (float("inf"), ValueError, "scale: expected a finite number, but got inf"),
    (1e300, ValueError, "scale: expected 0 or a normal number of float32, but got 1e\\+300"),
    (1e-40, ValueError, "scale: expected 0 or a normal number of float32, but got 1e-40"),
    ("2", TypeError, "scale: expected a number or None, but got str"),
    (True, TypeError, "scale: expected a number or None, but got bool"),
    (np.ones(1), TypeError, "scale: expected a number or None, but got ndarray"),
])  # fmt: skip
def test_refused(scale, error, message):
    q = draw(1, 5, 2, 4)
    for _ in range(2):
        with pytest.raises(error, match=message):
            linattn.scan(q, q, q, scale=scale)
        with pytest.raises(error, match=message):
            linattn.simple_gla(q, q, q, scale=scale)
        linattn.scan(q, q, q, scale=0.2)  # The next call meets a plan that has run.


def test_zero_and_numbers_of_other_types():
    q = draw(1, 5, 2, 4)
    assert not linattn.scan(q, q, q, scale=0).any()
    expected = linattn.scan(q, q, q, scale=3.0)
    for scale in (3, np.float32(3), np.int64(3)):
        np.testing.assert_array_equal(linattn.scan(q, q, q, scale=scale), expected)
    # Small for float32, not for sums in float64.
    wide = q.astype(np.float64)
    assert_agrees(linattn.scan(wide, wide, wide, scale=1e-40), 1e-40 * reference.scan(wide, wide, wide, scale=1.0), "float64", 0)


def test_pytorch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.tensor(draw(1, 9, 2, 4, seed=i), dtype=torch.float64) for i in range(3))
    linattn.scan(q, k, v, scale=0.7)
    expected = reference.scan(q.numpy(), k.numpy(), v.numpy(), scale=1.0)

    def call():
        for scale in (0.3, -2.0, 1.5):
            assert_agrees(linattn.scan(q, k, v, scale=scale).numpy(), expected * scale)

    assert compiled(call) == 0
    # Where gradients are recorded, a scale is a constant of its kernels.
    grads = []
    for scale in (0.3, 0.6):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        linattn.scan(*leaves, scale=scale).square().sum().backward()
        grads.append([leaf.grad for leaf in leaves])
    for small, large in zip(*grads):
        torch.testing.assert_close(4 * small, large, rtol=1e-12, atol=1e-12)


def test_jax():
    jax = pytest.importorskip("jax")
    q = jax.numpy.asarray(draw(1, 9, 2, 4))
    expected = reference.scan(np.asarray(q), np.asarray(q), np.asarray(q), scale=0.3)
    assert_agrees(np.asarray(linattn.scan(q, q, q, scale=0.3)), expected)
    assert_agrees(np.asarray(jax.jit(lambda x: linattn.scan(x, x, x, scale=0.3))(q)), expected)


@pytest.mark.parametrize("op", ["attention", "softmax", "scan"])
def test_gradients_carry_an_argument(op):
    """By name or by number, for cotangents of the tokens."""
    type_ = "tensor<1x2x7x4xf64>"
    states = ["tensor<1x2x4x4xf64>"] if op == "scan" else []

    def compiled_with(scale, attributes):
        operands = ["%q", "%k", "%v"]
        types = [type_] * 3
        text = f"linattn.{'scan' if op == 'scan' else 'attention'} {', '.join(operands)}{scale}"
        types += ["f64"] if scale else []
        if op == "softmax":
            text += " weights(softmax)"
        if op == "scan":
            text += " into(%e) init(%s)"
            types += [type_, *states]
        results = f"({type_}, {states[0]})" if op == "scan" else type_
        text += f" {{{attributes}}}" if attributes else ""
        return linattn.compile(
            f"func.func @f(%q: {type_}, %k: {type_}, %v: {type_}, %scale: f64, %s: tensor<1x2x4x4xf64>) -> {type_} {{\n"
            f"  %e = tensor.empty() : {type_}\n"
            f"  %r{':2' if op == 'scan' else ''} = {text} : ({', '.join(types)}) -> {results}\n"
            f"  return %r{'#0' if op == 'scan' else ''} : {type_}\n}}",
            differentiate=[0, 1, 2],
        )

    arrays = [draw(1, 2, 7, 4, dtype=np.float64, seed=i) for i in range(3)]
    more = [np.float64(0.3), draw(1, 2, 4, 4, dtype=np.float64, seed=5), draw(1, 2, 7, 4, dtype=np.float64, seed=6)]
    found = compiled_with(" scale(%scale)", "")(*arrays, *more)
    expected = compiled_with("", "scale = 0.3")(*arrays, *more)
    assert len(found) == len(expected) == 3 and np.abs(expected[0]).max() > 0
    # A number scales what a sweep reads, an argument what it writes.
    for got, number in zip(found, expected):
        np.testing.assert_allclose(got, number, rtol=1e-13, atol=1e-14)
