"""The families that are no scan, against their own definitions in float64."""

import numpy as np
import pytest

import linattn
from linattn import reference

B, T, C, S, K, V, L = 2, 70, 24, 5, 8, 12, 6
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5, np.float16: 2.5e-3}


def selective_scan(rng, dtype, **options):
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)
    return {
        "u": normal(B, C, T), "delta": normal(B, C, T), "A": -np.exp(normal(C, S)), "B": normal(B, S, T),
        "C": normal(B, S, T), "delta_softplus": True, **{name: make(normal) for name, make in options.items()},
    }  # fmt: skip


def grouped(rng, dtype):
    return selective_scan(rng, dtype, B=lambda n: n(B, 3, S, T), C=lambda n: n(B, 3, S, T))


def everything(rng, dtype):
    return selective_scan(
        rng, dtype, C=lambda n: n(C, S), D=lambda n: n(C), z=lambda n: n(B, C, T), delta_bias=lambda n: n(C)
    )


def rwkv4(rng, dtype):
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)
    return {"w": -abs(normal(C)), "u": normal(C), "k": 3 * normal(B, T, C), "v": normal(B, T, C)}


def log_linear(rng, dtype):
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)
    return {
        "q": normal(B, T, 4, K), "k": normal(B, T, 1, K), "v": normal(B, T, 2, V),
        "g": -abs(normal(B, T, 2)) / 4, "level_scales": abs(normal(B, T, 2, L)),
    }  # fmt: skip


def lru(rng, dtype, **options):
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)
    return {
        "u": normal(B, T, C), "nu_log": normal(S) - 2, "theta_log": normal(S), "B_re": normal(S, C),
        "B_im": normal(S, C), "C_re": normal(C, S), "C_im": normal(C, S),
        **{name: make(normal) for name, make in options.items()},
    }  # fmt: skip


def whole_lru(rng, dtype):
    return lru(rng, dtype, gamma_log=lambda n: n(S), D=lambda n: n(C))


def momentum_delta_rule(rng, dtype, **options):
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)
    return {
        "q": normal(B, T, 4, K), "k": normal(B, T, 1, K), "v": normal(B, T, 2, V),
        "log_alpha": -abs(normal(B, T, 2)) / 4, "log_mu": -abs(normal(B, T, 2)) / 4,
        **{name: make(normal) for name, make in options.items()},
    }  # fmt: skip


def corrected(rng, dtype):
    return momentum_delta_rule(
        rng, dtype, p=lambda n: n(B, T, 1, K), beta=lambda n: abs(n(B, T, 2)) / 2, eta=lambda n: abs(n(B, T, 2)) / 2,
        use_p_times_alpha=lambda n: False,
    )


def unnormalized(rng, dtype):
    operands = momentum_delta_rule(rng, dtype, use_qk_l2norm_in_kernel=lambda n: False, scale=lambda n: 0.5)
    return operands | {"k": operands["k"] / 3}


CASES = {
    "momentum_delta_rule": momentum_delta_rule, "momentum_delta_rule-corrected": corrected,
    "momentum_delta_rule-unnormalized": unnormalized, "selective_scan": selective_scan, "selective_scan-grouped": grouped, "selective_scan-everything": everything,
    "rwkv4": rwkv4, "log_linear": log_linear, "lru": lru, "lru-whole": whole_lru,
}  # fmt: skip


def flag(name):
    return {"return_last_state" if name == "selective_scan" else "output_final_state": True}


def parts(state):
    return state if isinstance(state, tuple) else (state,)


def error(out, ref):
    out, ref = np.asarray(out, np.float64), np.asarray(ref, np.float64)
    assert out.shape == ref.shape
    return abs(out - ref).max() / abs(ref).max()


def check(name, operands, tolerance, **more):
    o, state = getattr(linattn, name)(**operands, **more, **flag(name))
    expected, ends = getattr(reference, name)(**operands, **more, **flag(name))
    assert error(o, expected) <= tolerance
    assert len(parts(state)) == len(parts(ends))
    for part, end in zip(parts(state), parts(ends)):
        assert error(part, end) <= tolerance
    return o, state


def cut(name, operands, begin, end):
    """The tokens [begin, end)."""

    def of(x):
        if not isinstance(x, np.ndarray) or x.ndim < 3:
            return x
        return x[..., begin:end] if name == "selective_scan" else x[:, begin:end]

    return {key: of(x) for key, x in operands.items()}


@pytest.mark.parametrize("case", CASES)
def test_reference(case):
    name = case.partition("-")[0]
    o, state = check(name, CASES[case](np.random.default_rng(0), np.float32), TOLERANCE[np.float32])
    assert o.dtype == np.float32 and all(part.dtype == np.float32 for part in parts(state))


@pytest.mark.parametrize("case", ["selective_scan", "rwkv4", "log_linear", "lru", "momentum_delta_rule"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_dtypes(case, dtype):
    operands = cut(case, CASES[case](np.random.default_rng(1), dtype), 0, 9)
    o, state = check(case, operands, TOLERANCE[dtype])
    assert o.dtype == dtype
    assert all(part.dtype == (np.float64 if dtype == np.float64 else np.float32) for part in parts(state))


@pytest.mark.parametrize("case", ["selective_scan", "rwkv4", "log_linear", "momentum_delta_rule"])
def test_split_is_whole(case):
    """A prefix, then the rest from its state: the same bits as one pass."""
    operands = CASES[case](np.random.default_rng(2), np.float32)
    function = getattr(linattn, case)
    whole, end = function(**operands, **flag(case))
    axis = -1 if case == "selective_scan" else 1
    first, state = function(**cut(case, operands, 0, 37), **flag(case))
    rest, last = function(**cut(case, operands, 37, T), initial_state=state, **flag(case))
    np.testing.assert_array_equal(np.concatenate([first, rest], axis), whole)
    for part, expected in zip(parts(last), parts(end)):
        np.testing.assert_array_equal(part, expected)


def test_lru_goes_on():
    operands = lru(np.random.default_rng(3), np.float32)
    whole, _ = linattn.lru(**operands, output_final_state=True)
    _, state = linattn.lru(**cut("lru", operands, 0, 37), output_final_state=True)
    rest, _ = check("lru", cut("lru", operands, 37, T), 1e-5, initial_state=state)
    assert error(rest, whole[:, 37:]) <= 1e-5


def test_packed_and_reversed():
    operands = cut("rwkv4", rwkv4(np.random.default_rng(4), np.float32), 0, 20)
    operands = {name: x[:1] if x.ndim == 3 else x for name, x in operands.items()}
    check("rwkv4", operands, 1e-5, cu_seqlens=[0, 7, 8, 20])
    check("rwkv4", operands, 1e-5, reverse=True)


def test_without_batch():
    for name in ("selective_scan", "lru"):
        operands = CASES[name](np.random.default_rng(5), np.float32)
        alone = {key: x[0] if isinstance(x, np.ndarray) and x.ndim == 3 else x for key, x in operands.items()}
        batched, single = (getattr(linattn, name)(**x) for x in (operands, alone))
        np.testing.assert_array_equal(single, batched[0])
        batched, single = (getattr(reference, name)(**x) for x in (operands, alone))
        np.testing.assert_allclose(single, batched[0], atol=1e-12)


def test_messages():
    operands = selective_scan(np.random.default_rng(6), np.float32)
    with pytest.raises(ValueError, match="delta"):
        linattn.selective_scan(**{**operands, "delta": operands["delta"][:, :, :5]})
    with pytest.raises(TypeError, match="delta_softplus"):
        linattn.selective_scan(**{**operands, "delta_softplus": "yes"})
    with pytest.raises(TypeError, match="chunk"):
        linattn.lru(**lru(np.random.default_rng(7), np.float32), chunk=3)
    operands = momentum_delta_rule(np.random.default_rng(8), np.float32)
    with pytest.raises(ValueError, match=r"log_mu: expected shape \(2, 70, 2\), but got \(2, 70, 1\)"):
        linattn.momentum_delta_rule(**{**operands, "log_mu": operands["log_mu"][:, :, :1]})
    with pytest.raises(ValueError, match="initial_state: expected 2 arrays for momentum_delta_rule, but got one array"):
        linattn.momentum_delta_rule(**operands, initial_state=operands["q"])
    with pytest.raises(TypeError, match="use_p_times_alpha: expected True or False"):
        linattn.momentum_delta_rule(**operands, use_p_times_alpha=2)
