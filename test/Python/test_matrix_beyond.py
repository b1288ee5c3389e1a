"""The families that are no scan × dtypes × the field's shapes and gate laws, against
float64: as test_matrix does for those that are. They have one form each.

A seeded sample runs by default, all of it with LINATTN_MATRIX=all.
"""

import os

import numpy as np
import pytest
from conftest import rank_of
from test_beyond import flag, parts
from test_families import error
from test_matrix import (
    DENSE, DTYPES, EXACT, HEADS, KEYS, NORMS, PACKED, TOKENS, VALUES, assert_linear_in_tokens, cost, rms,
)  # fmt: skip

import linattn
from linattn import reference

# One more than a block of 64 tokens is in DENSE; and the power of two past 1024.
SHAPES = [*DENSE, (1, 64, 2, 60, 100), (1, 2048, 2, 32, 48)]
LOOSE = {"log_linear": 2e-3}
STATES = 16


class Law:
    """Operands at the sizes of one shape; gates forget 1 / norm times as much."""

    def __init__(self, dtype, shape, norm, seed):
        self.B, self.T, self.H, self.K, self.V = shape
        self.rng, self.dtype, self.norm = np.random.default_rng(seed), dtype, norm
        self.gate = np.float64 if dtype == np.float64 else np.float32

    def normal(self, *shape):
        # NumPy widens bf16 elsewhere: every operand is made here.
        return self.rng.standard_normal(shape).astype(self.dtype)

    def parameter(self, *shape):
        return self.rng.standard_normal(shape).astype(self.gate)

    def decay(self, *shape):
        gate = -np.logaddexp(0.0, -self.rng.standard_normal(shape)) / self.norm
        gate[self.rng.random(shape) < 0.1] = 0.0  # a masked gate keeps all
        return gate.astype(self.gate)

    def unit(self, *shape):
        x = self.rng.standard_normal(shape)
        return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(self.dtype)


def selective_scan(d):
    C = d.H * d.V
    return {
        "u": d.normal(d.B, C, d.T), "delta": d.normal(d.B, C, d.T), "delta_softplus": True,
        "A": (-np.exp(d.parameter(C, STATES)) / d.norm).astype(d.gate),
        "B": d.parameter(d.B, STATES, d.T), "C": d.parameter(d.B, STATES, d.T), "D": d.parameter(C),
    }  # fmt: skip


def s4d(d):
    """Its case of constants: one step and one projection for all tokens."""
    C = d.H * d.V
    step = np.broadcast_to(np.exp(d.normal(C, 1) - 3).astype(d.dtype), (d.B, C, d.T)).copy()
    return {
        "u": d.normal(d.B, C, d.T), "delta": step,
        "A": np.broadcast_to(-(np.arange(STATES, dtype=d.gate) + 0.5), (C, STATES)).copy(),
        "B": d.parameter(C, STATES), "C": d.parameter(C, STATES),
    }  # fmt: skip


def rwkv4(d):
    C = d.H * d.K
    return {"w": d.decay(C), "u": d.parameter(C), "k": 2 * d.normal(d.B, d.T, C), "v": d.normal(d.B, d.T, C)}


def log_linear(d):
    levels = max(d.T - 1, 1).bit_length() + 1
    return {
        "q": d.normal(d.B, d.T, d.H, d.K), "k": d.unit(d.B, d.T, d.H, d.K), "v": d.normal(d.B, d.T, d.H, d.V),
        "g": d.decay(d.B, d.T, d.H), "level_scales": d.rng.random((d.B, d.T, d.H, levels)).astype(d.gate),
    }  # fmt: skip


def lru(d):
    matrix = lambda *shape: (d.rng.standard_normal(shape) / np.sqrt(shape[1])).astype(d.gate)  # noqa: E731
    radius = np.log(d.rng.uniform(0.001, 1.0, d.V) / d.norm)
    return {
        "u": d.normal(d.B, d.T, d.K), "nu_log": radius.astype(d.gate), "theta_log": d.parameter(d.V),
        "B_re": matrix(d.V, d.K), "B_im": matrix(d.V, d.K), "C_re": matrix(d.K, d.V), "C_im": matrix(d.K, d.V),
        "D": d.parameter(d.K),
    }  # fmt: skip


def momentum_delta_rule(d):
    tokens = d.B, d.T, d.H
    return {
        "q": d.normal(*tokens, d.K), "k": d.normal(*tokens, d.K), "v": d.normal(*tokens, d.V),
        "log_alpha": d.decay(*tokens), "log_mu": d.decay(*tokens),
        "beta": d.rng.random(tokens).astype(d.gate), "eta": d.rng.random(tokens).astype(d.gate),
    }  # fmt: skip


CASES = {
    "momentum_delta_rule": ("momentum_delta_rule", momentum_delta_rule),
    "selective_scan": ("selective_scan", selective_scan), "selective_scan-s4d": ("selective_scan", s4d),
    "rwkv4": ("rwkv4", rwkv4), "log_linear": ("log_linear", log_linear), "lru": ("lru", lru),
}  # fmt: skip


def points():
    for case in CASES:
        for dtype in DTYPES:
            for i, shape in enumerate(SHAPES):
                yield case, dtype, shape, None, NORMS[i % len(NORMS)]
    for dtype in DTYPES:
        for i, cuts in enumerate(PACKED):
            yield "rwkv4", dtype, (1, cuts[-1], 2, 64, 64), cuts, NORMS[i % len(NORMS)]


def name_of(point):
    case, dtype, shape, cuts, norm = point
    where = "x".join(map(str, shape)) if cuts is None else "-".join(map(str, cuts))
    return f"{case} {dtype} {where} /{norm:g}"


def sample(all_points):
    """Every family in every dtype on short sequences of all lengths, and one longer
    shape each that the seed picks."""
    if os.environ.get("LINATTN_MATRIX") == "all":
        return all_points
    chosen = {}
    for point in all_points:
        case, dtype, shape, cuts, _ = point
        key = case, dtype, cuts is None
        if cost((None, None, None, shape)) <= 8_000_000:
            rank = rank_of(name_of(point))
            if key not in chosen or rank < chosen[key][0]:
                chosen[key] = rank, point
    edges = [x for x in all_points if x[1] == "f32" and x[3] is None and x[2][1] in (1, 63, 64, 65)]
    return edges + [point for _, point in chosen.values() if point not in edges]


def assert_close(name, dtype, out, ref):
    out = np.asarray(out).astype(np.float64)
    if dtype in EXACT or not ref.size:
        assert error(out, ref) <= EXACT.get(dtype, 0.0)
        return
    tolerance = max(LOOSE.get(name, 2.5e-3), 3e-3 if dtype == "bf16" else 0.0)
    assert rms(out - ref) <= tolerance * rms(ref) + 1e-6


def states(name, state, ref):
    """Pairs of parts to compare. The m of RWKV-4 is but the scale of its sums: they
    make up for what rounding does to it at every token."""
    pairs = [(np.asarray(x), np.asarray(exact, np.float64)) for x, exact in zip(parts(state), parts(ref), strict=True)]
    if name != "rwkv4":
        return pairs
    *sums, (scale, exact_scale) = pairs
    apart = np.subtract(scale, exact_scale, where=scale != exact_scale, out=np.zeros(scale.shape))
    assert np.abs(apart).max(initial=0.0) <= 1e-3
    return [(x * np.exp(apart), exact) for x, exact in sums]


@pytest.mark.parametrize("point", sample(list(points())), ids=name_of)
def test_matrix(point):
    case, dtype, shape, cuts, norm = point
    name, make = CASES[case]
    operands = make(Law(DTYPES[dtype], shape, norm, seed=0))
    more = {} if cuts is None else {"cu_seqlens": cuts}
    o, state = getattr(linattn, name)(**operands, **more, **flag(name))
    ref, ref_state = getattr(reference, name)(**operands, **more, **flag(name))
    assert_close(name, dtype, o, np.asarray(ref, np.float64))
    for part, expected in states(name, state, ref_state):
        # States are f32 or better, what goes into them is as given.
        assert_close(name, "f64" if dtype == "f64" else "f32", part, expected)


@pytest.mark.parametrize("case", CASES)
def test_long_sequences(case):
    """T = 16384 with unit keys, in f32: no error that grows with T."""
    name, make = CASES[case]
    operands = make(Law(np.float32, (1, 16384, 1, 32, 32), 10.0, seed=0))
    o = getattr(linattn, name)(**operands)
    assert error(o, getattr(reference, name)(**operands)) <= 3e-6


@pytest.mark.parametrize("norm", [1.0, 10.0, 1000.0])
def test_slow_averages_do_not_drift(norm):
    """RWKV-4 rounds a running maximum, and a factor, at every token."""
    operands = rwkv4(Law(np.float32, (1, 1024, 8, 64, 64), norm, seed=0))
    o, state = linattn.rwkv4(**operands, **flag("rwkv4"))
    ref, expected = reference.rwkv4(**operands, **flag("rwkv4"))
    assert error(o, ref) <= 1e-6
    for part, exact in states("rwkv4", state, expected):
        assert error(part, exact) <= 1e-6


@pytest.mark.parametrize("case", CASES)
def test_memory_is_linear_in_tokens(case, monkeypatch):
    """No T × T value and no state per token."""
    name, make = CASES[case]
    operands = make(Law(np.float32, (1, 33, HEADS, KEYS, VALUES), 1.0, seed=1))
    assert_linear_in_tokens(monkeypatch, name, operands, HEADS * TOKENS * max(KEYS, VALUES))
