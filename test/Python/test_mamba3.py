"""Mamba-3, of one and of several queries per token, against its recurrence in
float64 at half of flash-linear-attention's tolerances."""

import inspect
import os

import ml_dtypes
import numpy as np
import pytest
from conftest import rank_of
from test_families import error
from test_matrix import DENSE, DTYPES, EXACT, FORMS, NORMS, PACKED, assert_linear_in_tokens, rms

import linattn
from linattn import reference

B, T, G, H, N, P, S, R = 2, 19, 2, 4, 16, 24, 5, 3
NAMES = ["mamba3", "mamba3_mimo"]
# FLA's tolerance of gated states is 5e-3.
LOOSE = 2.5e-3


def draw(name, dtype=np.float32, B=B, T=T, G=G, H=H, N=N, P=P, S=S, norm=1.0, seed=0, **options):
    """Biases and norms as the layers have them: queries and keys of unit variance."""
    rng = np.random.default_rng(seed)
    gate = np.float64 if dtype == np.float64 else np.float32
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)  # noqa: E731
    parameter = lambda *shape: rng.standard_normal(shape).astype(gate)  # noqa: E731
    rank = () if name == "mamba3" else (R,)
    step = np.logaddexp(0.0, rng.standard_normal((B, H, T)) - 2)
    operands = {
        "Q": normal(B, T, *rank, G, N), "K": normal(B, T, *rank, G, N), "V": normal(B, T, H, P),
        "ADT": (-step * rng.random((B, H, T)) / norm).astype(gate), "DT": step.astype(gate),
        "Trap": parameter(B, H, T), "Q_bias": parameter(H, *rank, N), "K_bias": parameter(H, *rank, N),
        "Angles": parameter(B, T, H, S), "D": parameter(H), "Z": normal(B, T, H, P),
    }  # fmt: skip
    if rank:
        operands.update({name: parameter(H, R, P) for name in ("MIMO_V", "MIMO_Z", "MIMO_Out")})
    return operands | options


def draw_states(name, count, dtype=np.float32, seed=1):
    rng = np.random.default_rng(seed)
    keys = (count, H, N) if name == "mamba3" else (count, R, H, N)
    shapes = (count, H, S), (count, H, P, N), keys, (count, H, P)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def cut(operands, begin, end):
    axes = {"Q": 1, "K": 1, "V": 1, "Angles": 1, "Z": 1, "ADT": 2, "DT": 2, "Trap": 2}
    return {
        name: x if x is None or name not in axes else np.take(x, range(begin, end), axes[name])
        for name, x in operands.items()
    }


def run(module, name, operands, **more):
    return getattr(module, name)(**operands, **more, return_final_states=True)


def turns_apart(out, ref):
    """Angles are the same where they differ by 2π."""
    return abs((np.asarray(out, np.float64) - ref + np.pi) % (2 * np.pi) - np.pi).max(initial=0) / np.pi


def check(name, operands, tolerance=3e-6, **more):
    o, states = run(linattn, name, operands, **more)
    ref, expected = run(reference, name, operands, **more)
    assert error(o, ref) <= tolerance
    assert turns_apart(states[0], expected[0]) <= tolerance
    for part, exact in zip(states[1:], expected[1:], strict=True):
        assert error(part, exact) <= tolerance
    return o, states


@pytest.mark.parametrize("name", NAMES)
def test_reference(name):
    o, states = check(name, draw(name))
    assert o.dtype == np.float32 and all(x.dtype == np.float32 for x in states)
    check(name, draw(name, G=H, S=N // 2))
    none = {"Z": None, "D": None, "Q_bias": None, "K_bias": None}
    check(name, draw(name, **none, **({} if name == "mamba3" else {"MIMO_Z": None})))
    if name == "mamba3_mimo":
        check(name, draw(name), rotate_pairwise=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_dtypes(name, dtype):
    states = np.float64 if dtype == np.float64 else np.float32
    operands = draw(name, dtype, T=7)
    o, ends = check(name, operands, {np.float64: 1e-13, np.float16: LOOSE}[dtype], Input_States=draw_states(name, B, states))
    assert o.dtype == dtype and all(x.dtype == states for x in ends)


def test_one_of_several_is_one():
    """R = 1 with weights of one is the other family."""
    operands = draw("mamba3")
    o, states = run(linattn, "mamba3", operands)
    wide = operands | {name: operands[name][:, :, None] for name in "QK"}
    wide |= {name: operands[name][:, None] for name in ("Q_bias", "K_bias")}
    ones = np.ones((H, 1, P), np.float32)
    other, ends = run(linattn, "mamba3_mimo", wide, MIMO_V=ones, MIMO_Z=ones, MIMO_Out=ones, rotate_pairwise=True)
    assert error(other, o) <= 1e-6
    for part, end in zip(states, ends):
        assert error(end.reshape(part.shape), part) <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_decoding(name):
    """Prefill, then one token at a time, is one pass."""
    operands = draw(name)
    whole, ends = run(linattn, name, operands)
    first, states = run(linattn, name, cut(operands, 0, T - 3))
    outputs = [first]
    for t in range(T - 3, T):
        o, states = run(linattn, name, cut(operands, t, t + 1), Input_States=states)
        outputs.append(o)
    assert error(np.concatenate(outputs, axis=1), whole) <= 1e-6
    assert turns_apart(states[0], ends[0]) <= 1e-6
    for part, end in zip(states[1:], ends[1:]):
        assert error(part, end) <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_later_tokens_change_nothing(name):
    operands = draw(name)
    whole = getattr(linattn, name)(**operands)
    for key in ("Q", "K", "V", "DT", "ADT", "Trap", "Angles"):
        changed = operands[key].copy()
        changed[(slice(None),) * (2 if key in ("DT", "ADT", "Trap") else 1) + (slice(12, None),)] = np.nan
        o = getattr(linattn, name)(**operands | {key: changed}, form="token")
        exact = getattr(linattn, name)(**operands, form="token")
        np.testing.assert_array_equal(o[:, :12], exact[:, :12])
    assert error(exact, whole) <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_packed(name):
    operands = draw(name, B=1)
    check(name, operands, cu_seqlens=[0, 7, 7, 8, 19])
    # Empty first, within and last; of one token.
    cuts = [0, 0, 7, 7, 8, 19, 19]
    check(name, operands, cu_seqlens=np.array(cuts, np.int32), Input_States=draw_states(name, len(cuts) - 1))


@pytest.mark.parametrize("name", NAMES)
def test_no_tokens(name):
    states = draw_states(name, B)
    o, ends = run(linattn, name, draw(name, T=0), Input_States=states)
    assert o.shape == (B, 0, H, P)
    assert turns_apart(ends[0], states[0]) <= 1e-6
    for part, start in zip(ends[1:], states[1:]):
        np.testing.assert_array_equal(part, start)


def points():
    for name in NAMES:
        for dtype in DTYPES:
            for i, shape in enumerate(DENSE):
                for form in FORMS:
                    yield name, form, dtype, shape, None, NORMS[i % len(NORMS)]
            for i, cuts in enumerate(PACKED):
                yield name, "auto", dtype, (1, cuts[-1], 2, 64, 64), cuts, NORMS[i % len(NORMS)]


def sample():
    """Every form, and packed, each on the shape, dtype and gates that the seed picks;
    all of them with LINATTN_MATRIX=all."""
    if os.environ.get("LINATTN_MATRIX") == "all":
        return list(points())
    chosen = {}
    for point in points():
        name, form, _, shape, cuts, _ = point
        # The forms differ in their scans alone; of several queries per token, even less.
        if form == "chunk:64" or (name == "mamba3_mimo" and form not in ("auto", "chunk:16")):
            continue
        if np.prod(shape) <= 2_500_000:
            key = name, form, cuts is None
            rank = rank_of(point)
            if key not in chosen or rank < chosen[key][0]:
                chosen[key] = rank, point
    return [point for _, point in chosen.values()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("point", sample(), ids=lambda point: " ".join(map(str, point[:4])) + f" {point[4] or ''}")
def test_matrix(point):
    name, form, dtype, (batch, tokens, heads, keys, values), cuts, norm = point
    operands = draw(name, DTYPES[dtype], batch, tokens, heads, heads, keys, values, keys // 4, norm)
    if cuts is not None:
        operands["cu_seqlens"] = cuts
    ref, expected = run(reference, name, operands)
    o, states = run(linattn, name, operands, form=form)
    for out, exact in zip((o, *states[1:]), (ref, *expected[1:]), strict=True):
        out, exact = np.asarray(out).astype(np.float64), np.asarray(exact, np.float64)
        if dtype in EXACT:
            assert error(out, exact) <= EXACT[dtype]
        else:
            # Keys and queries are rounded once turned, and keys with their steps.
            assert rms(out - exact) <= (LOOSE if dtype == "f16" else 2 * LOOSE) * rms(exact) + 1e-6


@pytest.mark.parametrize("rate", [0.02, 1.0])
def test_angles_do_not_drift(rate):
    """The same rate at every one of 16384 tokens: θ grows to thousands of turns."""
    operands = draw("mamba3", B=1, T=16384, G=1, H=1, N=8, P=8, S=4, norm=10.0)
    operands["Angles"] = np.full_like(operands["Angles"], rate)
    operands["DT"] = np.full_like(operands["DT"], 0.1)
    check("mamba3", operands)


def test_large_angles():
    """tanh saturates; its argument may be anything."""
    operands = draw("mamba3")
    operands["Angles"] = operands["Angles"] * np.float32(10) ** np.arange(-3, S - 3, dtype=np.float32) ** 3
    check("mamba3", operands)
    infinite = operands | {"Angles": np.full_like(operands["Angles"], -np.inf)}
    one = operands | {"Angles": np.full_like(operands["Angles"], -50.0)}
    np.testing.assert_array_equal(linattn.mamba3(**infinite), linattn.mamba3(**one))


def test_bfloat16_angles_repeat_along_heads():
    """As layers pass them: one row of angles for all heads, other dtypes beside."""
    operands = draw("mamba3", ml_dtypes.bfloat16)
    operands["Angles"] = np.broadcast_to(operands["Angles"][:, :, :1], (B, T, H, S))
    o = linattn.mamba3(**operands)
    ref = reference.mamba3(**operands)
    assert rms(o.astype(np.float64) - np.asarray(ref, np.float64)) <= 2 * LOOSE * rms(np.asarray(ref, np.float64))


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_linear_in_tokens(name, monkeypatch):
    operands = draw(name, B=1, T=33, G=2, H=2, N=16, P=24, S=4)
    steps = 1 if name == "mamba3" else R
    # One row more than there are tokens, and the products of queries with keys.
    assert_linear_in_tokens(monkeypatch, name, operands, 2 * 978 * 24 * steps)


def test_arrays_and_threads():
    operands = draw("mamba3")
    o = linattn.mamba3(**operands)
    out = np.empty_like(o)
    assert linattn.mamba3(**operands, out=out, num_threads=2) is out
    np.testing.assert_array_equal(out, o)


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    function, oracle = getattr(linattn, name), getattr(reference, name)
    signature = inspect.signature(function)
    assert signature == inspect.signature(oracle)
    assert {"out", "num_threads", "form", "target", "cu_seqlens"} <= set(signature.parameters)
    for parameter in signature.parameters:
        assert parameter in function.__doc__, parameter


def test_errors():
    one, several = draw("mamba3"), draw("mamba3_mimo")
    states = draw_states("mamba3", B)
    cases = [
        (lambda: linattn.mamba3(**one | {"DT": one["DT"][:, :, 1:]}), ValueError, "DT: expected"),
        (lambda: linattn.mamba3(**one | {"Trap": one["Trap"].swapaxes(1, 2)}), ValueError, "Trap: expected"),
        (lambda: linattn.mamba3(**one | {"Angles": np.zeros((B, T, H, 9), np.float32)}), ValueError, "Angles: expected at most half the head size of K, 8, but got 9"),
        (lambda: linattn.mamba3(**one | {"V": one["V"][:, :, :1]}), ValueError, "expected"),
        (lambda: linattn.mamba3(**one | {"K": one["K"].astype(np.float64)}), TypeError, "K: expected the dtype of Q, float32, but got float64"),
        (lambda: linattn.mamba3(**one | {"Angles": None}), TypeError, "Angles: expected an array"),
        (lambda: linattn.mamba3(**one, Input_States=states[:3]), ValueError, "expected 4 arrays for mamba3, but got 3 arrays"),
        (lambda: linattn.mamba3(**one, Input_States=(states[1], *states[1:])), ValueError, r"Input_States\[0\]: expected shape \(2, 4, 5\), but got"),
        (lambda: linattn.mamba3(**one, cu_seqlens=[0, T]), ValueError, "cu_seqlens: expected a batch size of 1"),
        (lambda: linattn.mamba3(**one, form="quadratic"), ValueError, "form: expected a recurrent form"),
        (lambda: linattn.mamba3(**one, chunk_size=64), TypeError, "chunk_size"),
        (lambda: linattn.mamba3_mimo(**several | {"MIMO_Z": None}), ValueError, "MIMO_Z: expected it with Z"),
        (lambda: linattn.mamba3_mimo(**several | {"MIMO_V": several["MIMO_V"][:, :2]}), ValueError, "MIMO_V: expected"),
    ]  # fmt: skip
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
