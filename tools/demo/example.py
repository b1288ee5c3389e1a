"""A layer small enough to check by hand, compiled from MLIR text."""

from __future__ import annotations

import pathlib

import numpy as np

import linattn
from report import cell

Q = [[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
K = [[0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0.5, 0.5]]
V = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]]

TITLES = {
    "noncausal": "φ = elu + 1, every token sees all",
    "causal": "φ = elu + 1, every token sees those before it and itself",
    "softmax": "softmax(QKᵀ/2)",
}

# Computed by hand in exact arithmetic, rounded to four digits.
EXPECTED = {
    "noncausal": [
        [0.2802, 0.3242, 0.3022, 0.3022],
        [0.3252, 0.2670, 0.3058, 0.2864],
        [0.2905, 0.3095, 0.3095, 0.2905],
        [0.3000, 0.3000, 0.2778, 0.3222],
        [0.3022, 0.3022, 0.3022, 0.3022],
    ],
    "causal": [
        [1.0000, 0.0000, 0.0000, 0.0000],
        [0.5714, 0.4286, 0.0000, 0.0000],
        [0.3125, 0.3438, 0.3438, 0.0000],
        [0.2500, 0.2500, 0.2222, 0.2778],
        [0.3022, 0.3022, 0.3022, 0.3022],
    ],
    "softmax": [
        [0.2254, 0.4135, 0.2964, 0.2964],
        [0.4602, 0.1475, 0.3018, 0.2058],
        [0.2495, 0.3481, 0.3481, 0.2495],
        [0.2854, 0.2854, 0.2106, 0.4089],
        [0.3108, 0.3108, 0.3108, 0.3108],
    ],
}

# Half a unit of the last printed digit, and the rounding of float32.
TOLERANCE = 0.5e-4 + 1e-6


def run(report):
    path = pathlib.Path(__file__).with_name("example.mlir")
    report.section("A layer to check by hand: 5 tokens, 4 features")
    report.note(f"compiled from tools/demo/{path.name}; left the compiled result, right the expected one")
    arrays = [np.array([[x]], np.float32) for x in (Q, K, V)]
    for name, title in TITLES.items():
        result = linattn.compile(path, entry=name)(*arrays)[0, 0]
        expected = np.array(EXPECTED[name])
        close = np.abs(result - expected) <= TOLERANCE  # False for NaN, too
        rows = []
        for t in range(len(result)):
            compiled = [cell(f"{x:.4f}", good) for x, good in zip(result[t], close[t])]
            rows.append([f"token {t + 1}", *compiled, "   ", *(f"{x:.4f}" for x in expected[t])])
        report.say()
        report.table(f"@{name}: {title}", ["<", *["compiled"] * 4, "", *["expected"] * 4], rows)
        for t, j in np.ndindex(*close.shape):
            report.check(
                f"@{name}, token {t + 1}, feature {j + 1}",
                close[t, j],
                f"expected {expected[t, j]:.4f}, but got {result[t, j]:.6f}",
            )
