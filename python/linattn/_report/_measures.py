"""The figures of a report, as numbers: none is kept, all are computed from calls."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import linattn

from .. import _linattn

__all__ = [
    "CONTEXTS", "FEATURES", "Growth", "copying", "effective_rank", "entropy", "feature_errors", "grow", "overwriting",
    "peak", "roofline", "seconds_of", "softmax_weights",
]  # fmt: skip

CONTEXTS = tuple(1 << n for n in range(7, 21))
FEATURES = (16, 64, 256, 1024)
LENGTHS = (4, 8, 16, 32, 64, 128, 256)
_SYMBOLS = 16


# ----------------------------------------------------------------------------
# Attention matrices
# ----------------------------------------------------------------------------


def softmax_weights(call):
    """softmax(QKᵀ/√D) ``[H, T, T]`` of the call's queries and keys, masked as the call is."""
    q, k = call.operand("q"), call.operand("k")
    heads = max(q.shape[1], call.sizes[0])
    q, k = np.repeat(q, heads // q.shape[1], 1), np.repeat(k, heads // k.shape[1], 1)
    scores = np.einsum("thd,uhd->htu", q, k, dtype=np.float64) / np.sqrt(q.shape[-1])
    if call.is_causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def entropy(weights):
    """The entropy of every row in bits, of shares of |w|; a row of zeros has 0."""
    shares = np.abs(weights) / np.maximum(np.abs(weights).sum(-1, keepdims=True), 1e-30)
    return -(shares * np.log2(np.maximum(shares, 1e-30))).sum(-1)


def effective_rank(weights):
    """exp of the entropy of the singular values' shares, of each matrix (Roy and Vetterli,
    "The effective rank", 2007)."""
    values = np.linalg.svd(weights.astype(np.float64), compute_uv=False)
    shares = values / np.maximum(values.sum(-1, keepdims=True), 1e-30)
    return np.exp(-(shares * np.log(np.maximum(shares, 1e-30))).sum(-1))


# ----------------------------------------------------------------------------
# Random features
# ----------------------------------------------------------------------------


def feature_errors(call, draws=16, most=96):
    """‖o − softmax's o‖ / ‖softmax's o‖ of FAVOR+ with each number of `FEATURES`.

    Returns ``{kind: [features, draws]}`` for rows that are drawn independently ("iid") and for
    orthogonal ones. Choromanski et al., "Rethinking attention with Performers", 2021.
    """
    q, k, v = (np.ascontiguousarray(call.operand(role)[None, :most, :1]) for role in "qkv")
    expected = linattn.attention(q, k, v, causal=call.is_causal, weights="softmax")
    q, k, v = (np.repeat(x, draws, axis=2) for x in (q, k, v))  # a head for each draw
    errors = {}
    for kind in ("iid", "orthogonal"):
        rows = []
        for features in FEATURES:
            W = linattn.random_projection(features, q.shape[-1], kind=kind, heads=draws)
            o = linattn.attention(q, k, v, causal=call.is_causal, feature_map=linattn.feature_maps.favor(W))
            rows.append(np.sqrt(((o - expected) ** 2).sum((0, 1, 3))) / np.linalg.norm(expected))
        errors[kind] = np.stack(rows)
    return errors


# ----------------------------------------------------------------------------
# Copying and recall
# ----------------------------------------------------------------------------


def _read(rule, keys, symbols, queries):
    """Which symbol every query finds: `keys` ``[n, trials, D]`` with one-hot `symbols` are
    written, then `queries` ``[m, trials, D]`` are read."""
    n, m = len(keys), len(queries)
    k = np.concatenate([keys, np.zeros_like(queries)])[None]
    q = np.concatenate([np.zeros_like(keys), queries])[None]
    v = np.zeros((1, n + m, keys.shape[1], _SYMBOLS), np.float32)
    v[0, :n] = np.eye(_SYMBOLS, dtype=np.float32)[symbols]
    if rule == "softmax":
        o = linattn.attention(q, k, v, causal=True, weights="softmax", scale=16.0)
    elif rule == "sum":
        o = linattn.scan(q, k, v, scale=1.0)
    elif rule == "decay":
        decay = np.zeros(k.shape[:3], np.float32)
        decay[:, :n] = np.log(0.97)
        o = linattn.scan(q, k, v, scale=1.0, decay=decay)
    else:
        o = linattn.delta_rule(q, k, v, np.ones(k.shape[:3], np.float32), scale=1.0)
    return o[0, n:].argmax(-1)


RULES = {"softmax": "softmax", "sum": "sum", "decay": "decay of 0.97", "delta": "delta rule"}


def _keys(rng, count, trials, size):
    keys = rng.standard_normal((count, trials, size)).astype(np.float32)
    return keys / np.linalg.norm(keys, axis=-1, keepdims=True)


def copying(size, trials=32, seed=0):
    """The share of tokens that are read back rightly, against how many there are; every token
    has a random key of `size`. ``{rule: (lengths, shares)}``."""
    curves = {rule: (LENGTHS, []) for rule in RULES}
    for length in LENGTHS:
        rng = np.random.default_rng(seed + length)
        keys, symbols = _keys(rng, length, trials, size), rng.integers(_SYMBOLS, size=(length, trials))
        for rule, (_, shares) in curves.items():
            shares.append(float((_read(rule, keys, symbols, keys) == symbols).mean()))
    return curves


def overwriting(size, names=4, trials=64, seed=0):
    """The share of names whose last value is read, against how many assignments were written
    to them. ``{rule: (assignments, shares)}``."""
    curves = {rule: (LENGTHS, []) for rule in RULES}
    for length in LENGTHS:
        rng = np.random.default_rng(seed + length)
        known, symbols = _keys(rng, names, trials, size), rng.integers(_SYMBOLS, size=(length, trials))
        # Every name is written as often as the others, in turn.
        order = np.arange(length) % names
        last = np.stack([symbols[np.flatnonzero(order == name)[-1]] for name in range(names)])
        for rule, (_, shares) in curves.items():
            shares.append(float((_read(rule, known[order], symbols, known) == last).mean()))
    return curves


# ----------------------------------------------------------------------------
# A whole model
# ----------------------------------------------------------------------------


@dataclass
class Growth:
    """Against `CONTEXTS`: bytes of states and of the cache of keys and values, and the same
    with softmax in each layer; operations of a prefill, and the same with softmax."""

    states: np.ndarray
    cache: np.ndarray
    all_softmax: np.ndarray
    flops: np.ndarray
    all_softmax_flops: np.ndarray

    @property
    def memory(self):
        return self.states + self.cache


def grow(calls, parameters, bytes_per_number=2):
    """The `Growth` of a model with these calls, one token of a batch of 1 after another.

    Keys and values are cached in `bytes_per_number`, states in float32. Operations are those of
    `linattn.costs`, and two for each of the model's `parameters` and tokens.
    """
    n = np.array(CONTEXTS, float)
    parts = np.zeros((5, len(n)))
    states, cache, all_softmax, flops, all_flops = parts
    layers = set()
    for call in calls:
        heads, key_heads, K, V = call.sizes
        keys = bytes_per_number * key_heads * (K + V) * n
        softmax = heads * np.array([linattn.costs.softmax_flops(t, (K + V) / 2) for t in n])
        # One softmax would take the place of all calls of a layer.
        if not call.kind or (call.layer, call.kind) not in layers:
            all_softmax += keys
            all_flops += softmax
        layers.add((call.layer, call.kind))
        if call.is_softmax:
            seen = np.minimum(n, call.window or np.inf) / n
            cache += keys * seen
            flops += softmax * seen
        else:
            states += 4 * heads * K * V
            flops += 2 * heads * np.array([linattn.costs.reassociated_multiply_adds(t, K, V) for t in n])
    return Growth(states, cache, all_softmax, flops + 2 * parameters * n, all_flops + 2 * parameters * n)


def seconds_of(function, least=0.02, most=50):
    """The least time of repeated calls."""
    function()
    times = []
    # A machine with other work may stop a call: three of them, unless they are long.
    while (sum(times) < least or len(times) < 3 and sum(times) < 1) and len(times) < most:
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def peak():
    """GFLOP/s of a loop of multiply-adds on one thread."""
    return _linattn.fma_gflops(1)


def roofline(calls):
    """((GFLOP/s of multiply-adds, GB/s of a copy), [(call, FLOP per byte, GFLOP/s)]) on one thread.

    FLOP are the useful ones of the recurrence, 4 T K V of a head, and for softmax 4 T² D, half of
    that where it is causal; bytes those of the operands and the output.
    """
    points = []
    for call in calls:
        if call.name == "softmax":
            continue  # PyTorch's, on PyTorch's threads
        heads, _, K, V = call.sizes
        T = call.tokens
        pairs = T * min(T, call.window or T) / (2 if call.is_causal and not call.window else 1)
        flops = 2 * heads * (K + V) * pairs if call.is_softmax else 4 * heads * T * K * V
        arrays = [x for x in call.arguments.values() if hasattr(x, "ndim")]
        moved = sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in arrays)
        moved += heads * T * V * call.arguments[call.v_name].dtype.itemsize
        seconds = seconds_of(lambda call=call: call.run(num_threads=1))
        points.append((call, flops / moved, flops / seconds / 1e9))
    return (peak(), _linattn.copy_gbytes(64 << 20, 1)), points
