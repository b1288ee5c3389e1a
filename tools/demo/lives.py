"""One layer computed in every way there is; all must agree."""

from __future__ import annotations

import pathlib

import numpy as np

import linattn
from report import cell

HEADS, D, CHUNK = 2, 64, 64

# Largest difference allowed, relative to the largest output: float32 sums over
# this many tokens in another order.
TOLERANCE = 1e-5


def run(report, tokens):
    report.section("One layer, many ways to compute it")
    report.note(f"the same random input, {tokens} tokens, {HEADS} heads, {D} features, float32")
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, tokens, HEADS, D)).astype(np.float32) for _ in range(3))
    rows = []
    for causal, ways in ((False, _noncausal(q, k, v)), (True, _causal(q, k, v))):
        oracle = linattn.reference.attention(q, k, v, causal=causal)
        first = next(iter(ways.values()))
        for name, result in ways.items():
            pair, truth = difference(result, first), difference(result, oracle)
            good = pair <= TOLERANCE and truth <= TOLERANCE
            kind = "causal" if causal else "non-causal"
            rows.append([kind, name, cell(f"{pair:.1e}", pair <= TOLERANCE), cell(f"{truth:.1e}", truth <= TOLERANCE)])
            report.check(f"{kind}, {name}", good, f"differs by {max(pair, truth):.1e}, more than {TOLERANCE}")
        rows.append([""] * 4)
    report.say()
    report.table(
        "Largest difference, relative to the largest output",
        ["<", "<computed", "from the first of its kind", "from the float64 oracle"],
        rows[:-1],
    )


def difference(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / np.abs(b).max())


def _noncausal(q, k, v):
    path = pathlib.Path(__file__).with_name("lives.mlir")
    arrays = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v)]
    return {
        title: linattn.compile(path, entry=entry)(*arrays).transpose(0, 2, 1, 3)
        for title, entry in (
            ("quadratic, (φ(Q)φ(K)ᵀ)V", "quadratic"),
            ("reassociated, φ(Q)(φ(K)ᵀV)", "reassociated"),
        )
    }


def _causal(q, k, v):
    return {
        "quadratic, masked": linattn.attention(q, k, v, causal=True, form="quadratic"),
        "scan over all tokens": linattn.attention(q, k, v, causal=True),
        f"chunks of {CHUNK}, state carried": _stepwise(q, k, v, CHUNK),
        "token by token, state carried": _stepwise(q, k, v, 1),
    }


def _stepwise(q, k, v, size):
    state = linattn.State.zeros(1, HEADS, D, D, normalize=True)
    parts = []
    for t in range(0, q.shape[1], size):
        now = slice(t, t + size)
        parts.append(state.step(q[:, now], k[:, now], v[:, now], feature_map="elu", scale=1.0))
    return np.concatenate(parts, axis=1)
