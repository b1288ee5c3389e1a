"""Where the linear order begins to win, beside what the cost model expects."""

from __future__ import annotations

import math
import pathlib
import re
import time

import numpy as np

import linattn
import plots
from report import milliseconds

D = 64

# Pairs (quadratic, linear) of the columns below.
PAIRS = {
    "(φ(Q)φ(K)ᵀ)V and φ(Q)(φ(K)ᵀV)": ("quadratic", "reassociated"),
    "masked quadratic and scan": ("causal quadratic", "scan"),
    "causal softmax and scan": ("causal softmax", "scan"),
}

# The remark in which the compiler says how it will choose at run time.
_CHOICE = re.compile(r"where (\d+)·up(\d+)\(Nq\)·\(Nk \+ (\d+)\) > (\d+)·\(Nq \+ Nk\) \+ (\d+)")


def run(report, lengths, heads, seconds, output):
    report.section("Where linear attention begins to win")
    report.note(f"{heads} heads of {D} features, one thread, random input; time for all heads")
    calls = _make_calls()
    times = {name: {} for name in calls}
    rng = np.random.default_rng(3)
    for n in lengths:
        arrays = [rng.standard_normal((1, heads, n, D)).astype(np.float32) for _ in range(3)]
        for name, elapsed in _time(calls, arrays, seconds).items():
            times[name][n] = elapsed
    rows = [[n, *(milliseconds(times[name][n]) for name in calls)] for n in lengths]
    report.say()
    report.table("Time per call", ["tokens", *calls], rows)

    model = predicted_crossover()
    report.check("the compiler says how it chooses between the orders", model is not None)
    measured = {pair: crossover(times[a], times[b]) for pair, (a, b) in PAIRS.items()}
    by_count = {"quadratic": D, "causal quadratic": 2 * D}
    rows = []
    for pair, (a, _) in PAIRS.items():
        expected = _tokens(model) if a == "quadratic" else "-"
        rows.append([pair, _tokens(measured[pair]), expected, _tokens(by_count.get(a))])
    report.say()
    report.table(
        "From how many tokens on linear wins",
        ["<between", "measured", "cost model", "multiply-adds alone"],
        rows,
    )
    first = next(iter(measured.values()))
    finding = f"Q(KᵀV) wins from {_tokens(first)} tokens on; the cost model expects {_tokens(model)}"
    subtitle = f"Time of one call, {heads} heads of {D} features, one thread"
    picture = output / "crossover.png"
    plots.crossover(picture, times, lengths, first, model, finding, subtitle)
    report.picture(picture, finding)


def _tokens(value):
    return "-" if value is None else f"{value:.0f}"


def _make_calls():
    """{title: function of q, k, v, out in [1, H, T, D]}"""
    path = pathlib.Path(__file__).with_name("lives.mlir")

    def kernel(entry):
        compiled = linattn.compile(path, entry=entry)
        return lambda q, k, v, out: compiled(q, k, v, out=out, num_threads=1)

    def attention(**options):
        def call(*arrays):
            q, k, v, out = (x.transpose(0, 2, 1, 3) for x in arrays)
            linattn.attention(q, k, v, causal=True, out=out, num_threads=1, **options)

        return call

    return {
        "quadratic": kernel("quadratic"),
        "reassociated": kernel("reassociated"),
        "causal quadratic": attention(form="quadratic"),
        "scan": attention(),
        "causal softmax": attention(weights="softmax"),
    }


def _time(calls, arrays, seconds):
    """The fastest of interleaved calls in ms, so that a slow moment of the machine
    meets all of them."""
    out = np.empty_like(arrays[2])
    best = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        call(*arrays, out)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for name, call in calls.items():
            started = time.perf_counter()
            call(*arrays, out)
            best[name] = min(best[name], (time.perf_counter() - started) * 1e3)
    return best


def crossover(quadratic, linear):
    """Where linear begins to win for good, interpolated between lengths on the
    logarithmic scale; None if it does nowhere."""
    lengths = sorted(quadratic)
    gap = [math.log(quadratic[n] / linear[n]) for n in lengths]
    losses = [i for i, value in enumerate(gap) if value <= 0]
    if not losses:
        return float(lengths[0])
    i = losses[-1]
    if i + 1 == len(lengths):
        return None
    share = -gap[i] / (gap[i + 1] - gap[i])
    return math.exp(math.log(lengths[i]) + share * math.log(lengths[i + 1] / lengths[i]))


def predicted_crossover():
    """The first length at which the compiled code chooses Q(KᵀV)."""
    tokens = f"tensor<1x1x?x{D}xf32>"
    kernel = linattn.compile(
        f"""func.func @layer(%q: {tokens}, %k: {tokens}, %v: {tokens}) -> {tokens} {{
          %o = linattn.attention %q, %k, %v {{
              feature_map = #linattn.feature_map<elu1>,
              normalize = #linattn.normalize<eps = 1.0e-6>}}
            : ({tokens}, {tokens}, {tokens}) -> {tokens}
          return %o : {tokens}
        }}"""
    )
    choice = _CHOICE.search(kernel.explain())
    if choice is None:
        return None
    quadratic, panel, packed, linear, fixed = map(int, choice.groups())
    for n in range(1, 1 << 16):
        panels = -(-n // panel) * panel
        if quadratic * panels * (n + packed) > linear * 2 * n + fixed:
            return n
    return None
