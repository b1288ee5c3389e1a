"""linattn-bench --calibrate: the constants of the model that chooses forms.

Times every legal form of several recurrences at several sizes, in units of one
multiply-add of a vector at the machine's peak, and fits what a unit of each kind of
work costs in each form: non-negative least squares of relative errors. The kinds of
work are counted by the compiler itself (include/linattn/Analysis/FormCost.h). Prints
the constants as they stand in lib/Analysis/FormCost.cpp and a table of the sweep.
"""

from __future__ import annotations

import itertools
import json
import statistics

import numpy as np

from .. import _linattn
from .cases import make
from .timing import measure
from .work import Sizes

__all__ = ["CASES", "calibrate"]

# A case of the model: update, decay, normaliser.
CASES = {
    "linear": ("add", "none", False),
    "scalar-decay": ("add", "scalar", False),
    "gate": ("add", "channel", False),
    "normalized": ("add", "none", True),
    "delta": ("delta", "none", False),
    "gated-delta": ("delta", "scalar", False),
    "kda": ("delta", "channel", False),
    "dplr": ("dplr", "channel", False),
    "causal": ("add", "none", False),
}
FORMS = ("token", "state-tile", "chunk:16", "chunk:32")
KINDS = ("token", "state-tile", "chunk", "quadratic")
WORK = ("products", "near", "far", "pairs", "rows", "tokens")
HEADS = 8
# Head size and tokens. Where tokens are few, states are many.
LONG = [(d, t, 1) for d in (32, 64, 96, 128, 256) for t in (512, 2048)]
SHORT = [(d, t, 4) for d in (32, 64, 128) for t in (2, 6, 16)]
CAUSAL = [(d, t, 4) for d in (32, 64, 128) for t in (16, 32, 64, 128, 256)]


def _target():
    """The registers that code is made for, as (bits, number)."""
    return _linattn.vector_unit()


def _forms(case):
    if case == "causal":
        return ("state-tile", "chunk:16", "quadratic")
    return FORMS if CASES[case][0] == "add" else ("token", *FORMS[2:])


def predict(record):
    """(work, cost) of a record's form as the compiler counts and predicts it."""
    update, decay, normalized = CASES[record["case"]]
    return _linattn.costs.count_work(
        record["form"], update, decay, normalized, record["t"], record["d"], record["d"], 32, *_target()
    )


def _measure(case, d, t, batch, repetitions):
    work = make(case, Sizes(d, t, HEADS, batch))
    calls = {form: (lambda form=form: work.run(1, form)) for form in _forms(case)}
    series = measure(calls, repetitions, 1)
    # Others on the machine only ever add time.
    lanes = {"avx512": 16, "avx2": 8}.get(_linattn.fma_kind().lower().replace("-", ""), 4)
    unit = 2 * lanes / (max(series.gflops) * 1e9)
    for form in calls:
        cost = min(series.seconds[form]) / unit / (t * HEADS * batch)
        yield {"case": case, "d": d, "t": t, "batch": batch, "form": form, "cost": cost}


def sweep(cases, ds, repetitions, show):
    points = [(case, *point) for case in cases for point in (CAUSAL if case == "causal" else LONG + SHORT) if point[0] in ds]
    records = []
    for done, (case, d, t, batch) in enumerate(points):
        show(f"{case} D={d} T={t}", done, len(points))
        records += _measure(case, d, t, batch, repetitions)
    show("done", len(points), len(points))
    return records


def _solve(columns, target):
    """Non-negative least squares, by trying every set of columns."""
    best, solution = np.inf, np.zeros(columns.shape[1])
    present = [i for i in range(columns.shape[1]) if columns[:, i].any()]
    for size in range(1, len(present) + 1):
        for chosen in itertools.combinations(present, size):
            x, *_ = np.linalg.lstsq(columns[:, chosen], target, rcond=None)
            error = np.square(columns[:, chosen] @ x - target).sum()
            if (x >= 0).all() and error < best:
                best, solution = error, np.zeros(columns.shape[1])
                solution[list(chosen)] = x
    return solution


def fit(records):
    """The cost of each kind of work, by form; a call's own cost is fitted and dropped."""
    weights = {}
    for kind in KINDS:
        rows = [r for r in records if r["form"].split(":")[0] == kind]
        if not rows:
            continue
        counts = np.array([[count / r["t"] for count in predict(r)[0]] + [1 / (r["t"] * r["batch"])] for r in rows])
        costs = np.array([r["cost"] for r in rows])
        weights[kind] = _solve(counts / costs[:, None], np.ones(len(rows)))
    return weights


def _fitted(weights, record):
    work, _ = predict(record)
    kind = record["form"].split(":")[0]
    return float(np.dot(weights[kind][:-1], work)) / record["t"]


def _groups(records):
    groups = {}
    for r in records:
        groups.setdefault((r["case"], r["d"], r["t"]), []).append(r)
    return groups


def report(records, weights, cost):
    """Markdown: cost measured / predicted per form, and what the choice costs."""
    forms = [*FORMS, "quadratic"]
    lines = ["| case | D | T | " + " | ".join(forms) + " | chosen | over best |", "|" + "---|" * (len(forms) + 5)]
    errors, regrets = {}, []
    for (case, d, t), rows in _groups(records).items():
        by_form = {r["form"]: r for r in rows}
        cells = []
        for form in forms:
            if form not in by_form:
                cells.append("")
                continue
            measured, predicted = by_form[form]["cost"], cost(by_form[form])
            errors.setdefault(form.split(":")[0], []).append(abs(predicted / measured - 1))
            cells.append(f"{measured:.0f} / {predicted:.0f}")
        recurrent = {form: r for form, r in by_form.items() if form != "quadratic"}
        chosen = _choose(recurrent, cost)
        over = by_form[chosen]["cost"] / min(r["cost"] for r in recurrent.values())
        regrets.append(over)
        lines.append(f"| {case} | {d} | {t} | " + " | ".join(cells) + f" | {chosen} | {over:.2f} |")
    lines.append("")
    for kind, values in errors.items():
        lines.append(f"{kind}: mean error {100 * statistics.mean(values):.0f} %, median {100 * statistics.median(values):.0f} %")
    lines.append(f"chosen over best: mean {statistics.mean(regrets):.2f}, worst {max(regrets):.2f}")
    return "\n".join(lines)


def _choose(by_form, cost):
    """As chooseScanForm does."""
    order = [form for form in ("chunk:16", "state-tile", "token") if form in by_form]
    best = order[0]
    margin = 1 / 3 if by_form[best]["t"] >= 1024 else 0.1
    for form in order[1:]:
        bar = 1 - margin if best == "chunk:16" else 1
        if cost(by_form[form]) < bar * cost(by_form[best]):
            best = form
    return best


def initializer(weights):
    """The constants as they stand in FormCost.cpp."""
    names = {"token": "Token    ", "state-tile": "StateTile", "chunk": "Chunk    ", "quadratic": "Quadratic"}
    return "\n".join(
        f"    /* {names[kind]} */ {{" + ", ".join(f"{w:.3g}" if w else "0" for w in weights[kind][:-1]) + "},"
        for kind in KINDS if kind in weights
    )  # fmt: skip


def calibrate(cases, ds, repetitions, show, read=(), write=None):
    """Sweeps, or reads records of earlier sweeps, fits and prints."""
    records = []
    for path in read:
        with open(path, encoding="utf-8") as file:
            records += json.load(file)
    if not read:
        records = sweep(cases, ds, repetitions, show)
    if write:
        with open(write, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)
    weights = fit(records)
    print("Costs of a unit of work (" + ", ".join(WORK) + "), fitted:")
    print(initializer(weights))
    print("\nMeasured / fitted:\n")
    print(report(records, weights, lambda r: _fitted(weights, r)))
    print("\nThe constants this build has:\n")
    print(report(records, weights, lambda r: predict(r)[1]).split("\n\n")[-1])
