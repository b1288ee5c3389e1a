"""Reports of a run: JSON, CSV, a table, plots."""

from __future__ import annotations

import csv
import json
import pathlib
import statistics

__all__ = ["KEYS", "plot", "table", "training_table", "write_csv", "write_json"]

KEYS = (
    "case", "implementation", "d", "t", "heads", "batch", "threads", "dtype", "form", "ms", "ms_min",
    "ms_max", "gflops", "fma_gflops", "fma_range", "share", "gbytes_per_s", "copy_gbytes_per_s",
    "update_gbytes_per_s", "update_share", "over_open", "max_rel_error",
)  # fmt: skip


def write_json(path, records):
    pathlib.Path(path).write_text(json.dumps(records, indent=1) + "\n")


def write_csv(path, records):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, KEYS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)


def _cell(value):
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2e}" if value and abs(value) < 1e-3 else f"{value:.3g}"
    return str(value)


def table(records):
    """The records as lines of Markdown."""
    columns = ("case", "implementation", "d", "t", "threads", "dtype", "ms", "gflops", "share", "gbytes_per_s", "update_share", "over_open", "max_rel_error")
    columns = [key for key in columns if key not in ("update_share", "over_open") or any(record[key] for record in records)]
    rows = [[_cell(record[key]) for key in columns] for record in records]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *rows])


def _trainings(records):
    """Of every gradient: its record, that of the forward pass, and the fastest peer's or
    None. The least times are compared, to which neighbours have added the least."""
    same = lambda x, y: all(x[key] == y[key] for key in ("case", "d", "t", "heads", "batch", "threads", "dtype"))  # noqa: E731
    rows = []
    for ours in records:
        if not ours["case"].startswith("train-") or ours["implementation"] != "linattn":
            continue
        others = {r["implementation"]: r for r in records if same(ours, r)}
        del others["linattn"]
        forward = others.pop("forward alone")
        rows.append((ours, forward, min(others.values(), key=lambda r: r["ms_min"], default=None)))
    return rows


def training_table(records):
    """Gradients beside the fastest other, as lines of Markdown; empty without any."""
    columns = ("case", "d", "t", "threads", "forward", "forward and backward", "backward / forward", "fastest other", "its", "ratio")
    rows = []
    for ours, forward, other in _trainings(records):
        cells = [ours["case"], ours["d"], ours["t"], ours["threads"], forward["ms_min"], ours["ms_min"], ours["ms_min"] / forward["ms_min"] - 1]
        cells += [other["implementation"], other["ms_min"], other["ms_min"] / ours["ms_min"]] if other else [None] * 3
        rows.append([_cell(cell) for cell in cells])
    if not rows:
        return ""
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *rows])


def plot(folder, records):
    """roofline.svg, share.svg, time.svg, speedup.svg, decode.svg, maps.svg and
    training.svg, as far as the records hold something to show."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Text stays text, ids do not change from run to run.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "linattn", "axes.grid": True,
                                "axes.axisbelow": True, "grid.color": "0.9", "grid.linewidth": 0.6,
                                "axes.spines.top": False, "axes.spines.right": False})  # fmt: skip

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []

    def save(figure, name):
        figure.tight_layout()
        figure.savefig(folder / name, metadata={"Date": None})
        pyplot.close(figure)
        written.append(folder / name)

    _plot_roofline(pyplot, records, save)
    _plot_share(pyplot, records, save)
    _plot_lines(pyplot, records, save)
    _plot_speedup(pyplot, records, save)
    _plot_decode(pyplot, records, save)
    _plot_maps(pyplot, records, save)
    _plot_training(pyplot, records, save)
    return written


def _plot_training(pyplot, records, save):
    """How much faster gradients are than the fastest other's."""
    rows = [(ours, other["ms_min"] / ours["ms_min"]) for ours, _, other in _trainings(records) if other]
    if not rows:
        return
    figure, axes = pyplot.subplots(figsize=(7, 0.35 * len(rows) + 1.2))
    places = range(len(rows), 0, -1)
    axes.barh(places, [ratio for _, ratio in rows], color="tab:blue", height=0.7)
    for place, (_, ratio) in zip(places, rows):
        axes.text(ratio, place, f" {ratio:.3g}", va="center", fontsize=8)
    axes.set_yticks(places, [_label(ours).removeprefix("train-") for ours, _ in rows])
    axes.set_xscale("log")
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_xlabel("times faster than the fastest other, forward and backward pass")
    save(figure, "training.svg")


def _label(record):
    return f"{record['case']}, D={record['d']}" + (f", {record['threads']} threads" if record["threads"] > 1 else "")


def _label_ticks(axes, values):
    """Ticks of a logarithmic axis where there is something, spelled out."""
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.set_xticks([], minor=True)


def _is_decoding(record):
    return record["case"].startswith("decode")


def _plot_roofline(pyplot, records, save):
    """Arithmetic against what memory has to move for it, under both ceilings: a copy
    of a large array and the FMA loop."""
    # Softmax weights do other work than is counted.
    rows = [r for r in records if r["implementation"] == "linattn" and r["copy_gbytes_per_s"] and "softmax" not in r["case"]]
    if not rows:
        return
    peak = statistics.median(r["fma_gflops"] for r in rows)
    copy = statistics.median(r["copy_gbytes_per_s"] for r in rows)
    intensity = lambda r: r["gflops"] / r["gbytes_per_s"]  # noqa: E731
    figure, axes = pyplot.subplots(figsize=(7.5, 4.5))
    ends = [min([intensity(r) for r in rows] + [0.5 * peak / copy]) / 1.5, max([intensity(r) for r in rows] + [peak / copy]) * 2]
    xs = [ends[0], peak / copy, ends[1]]
    axes.loglog(xs, [min(peak, copy * x) for x in xs], color="black", linewidth=1)
    axes.text(ends[1], peak * 1.05, f"FMA loop, {peak:.0f} GFLOP/s", ha="right", va="bottom", fontsize=8)
    axes.text(ends[0], copy * ends[0] * 1.15, f" copy, {copy:.1f} GB/s", ha="left", va="bottom", fontsize=8)
    cases = list(dict.fromkeys(r["case"] for r in rows))
    sizes = sorted({r["d"] for r in rows})
    markers = dict(zip(sizes, "os^Dv" * len(sizes)))
    colors = pyplot.get_cmap("tab10" if len(cases) <= 10 else "tab20")
    for i, case in enumerate(cases):
        for d in sizes:
            points = [(intensity(r), r["gflops"]) for r in rows if r["case"] == case and r["d"] == d]
            if points:
                axes.scatter(*zip(*points), marker=markers[d], color=colors(i), s=28, zorder=3,
                             label=f"{case}, D={d}")  # fmt: skip
    _label_ticks(axes, [x for x in (1, 2, 5, 10, 20, 50, 100) if ends[0] <= x <= ends[1]])
    axes.set_xlabel("FLOP per byte of tokens, gates and results")
    axes.set_ylabel("GFLOP/s")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    save(figure, "roofline.svg")


def _plot_decode(pyplot, records, save):
    """Time of one token against its position: softmax over a cache that grows, and
    recurrences, whose state does not."""
    rows = [r for r in records if _is_decoding(r) and r["implementation"] == "linattn"]
    series = {}
    for r in rows:
        if r["case"] == "decode-softmax":
            series.setdefault(_label(r), []).append((r["t"], r["ms"]))
    if not series:
        return
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for label, points in series.items():
        axes.loglog(*zip(*sorted(points)), marker="o", label=label)
    ends = [end(t for points in series.values() for t, _ in points) for end in (min, max)]
    flat = {}
    for r in rows:
        if r["case"] != "decode-softmax":
            flat.setdefault(_label(r), []).append(r["ms"])
    for label, times in flat.items():
        axes.loglog(ends, [statistics.median(times)] * 2, linewidth=1.2, label=label)
    _label_ticks(axes, sorted({t for points in series.values() for t, _ in points}))
    axes.set_xlabel("position of the token")
    axes.set_ylabel("ms per token")
    axes.legend(fontsize=7, frameon=False)
    save(figure, "decode.svg")


def _plot_maps(pyplot, records, save):
    """The cost of each feature map over identity, projections included."""
    rows = [r for r in records if r["case"].startswith("map-") and r["implementation"] == "linattn"]
    key = lambda r: (r["d"], r["t"], r["heads"], r["batch"], r["threads"], r["dtype"])  # noqa: E731
    plain = {key(r): r["ms"] for r in rows if r["case"] == "map-identity"}
    bars = [(f"{_label(r)}\nT={r['t']}", r["ms"] / plain[key(r)]) for r in rows if key(r) in plain]
    if len(bars) < 2:
        return
    figure, axes = pyplot.subplots(figsize=(max(6, 0.6 * len(bars) + 2), 4.5))
    axes.bar(range(len(bars)), [ratio for _, ratio in bars])
    axes.set_xticks(range(len(bars)), [label for label, _ in bars], rotation=45, ha="right", fontsize=7)
    axes.axhline(1, color="gray", linewidth=0.8)
    axes.set_ylabel("time over identity")
    save(figure, "maps.svg")


def _plot_share(pyplot, records, save):
    """Arithmetic against its ceiling: bars of all implementations."""
    rows = [r for r in records if not _is_decoding(r)]
    if not rows:
        return
    labels = list(dict.fromkeys((_label(r), r["t"]) for r in rows))
    names = list(dict.fromkeys(r["implementation"] for r in rows))
    figure, axes = pyplot.subplots(figsize=(max(6, 0.8 * len(labels) + 2), 4))
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        at = {(_label(r), r["t"]): 100 * r["share"] for r in rows if r["implementation"] == name}
        axes.bar([x + i * width for x, l in enumerate(labels) if l in at], [at[l] for l in labels if l in at], width, label=name)
    axes.set_xticks([x + 0.4 - width / 2 for x in range(len(labels))], [f"{l}\nT={t}" for l, t in labels], rotation=45, ha="right", fontsize=8)
    axes.set_ylabel("share of the FMA loop, %")
    axes.grid(axis="x", visible=False)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    save(figure, "share.svg")


def _plot_lines(pyplot, records, save):
    """Time against T, where a case was measured at several lengths."""
    series = {}
    for r in records:
        if not _is_decoding(r):
            series.setdefault((r["implementation"], _label(r), r["dtype"]), []).append((r["t"], r["ms"]))
    series = {key: sorted(points) for key, points in series.items() if len(points) > 1}
    if not series:
        return
    figure, axes = pyplot.subplots(figsize=(7.5, 4.5))
    only = len({(name, dtype) for name, _, dtype in series}) == 1
    for i, ((name, label, dtype), points) in enumerate(series.items()):
        axes.loglog(*zip(*points), marker="os^Dv"[i // 10 % 5], markersize=4, linewidth=1.2,
                    label=label if only else f"{label}, {dtype} ({name})")  # fmt: skip
    _label_ticks(axes, sorted({t for points in series.values() for t, _ in points}))
    axes.set_xlabel("tokens")
    axes.set_ylabel("ms")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    save(figure, "time.svg")


def _plot_speedup(pyplot, records, save):
    """How much faster than softmax weights, where both were measured."""
    ours = [r for r in records if r["implementation"] == "linattn"]
    key = lambda r: (r["d"], r["t"], r["heads"], r["batch"], r["threads"], r["dtype"])  # noqa: E731
    softmax = {key(r): r["ms"] for r in ours if r["case"] == "softmax"}
    series = {}
    for r in ours:
        if r["case"] != "softmax" and not _is_decoding(r) and key(r) in softmax:
            series.setdefault(_label(r), []).append((r["t"], softmax[key(r)] / r["ms"]))
    if not series:
        return
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for i, (label, points) in enumerate(series.items()):
        axes.loglog(*zip(*sorted(points)), marker="os^Dv"[i // 10 % 5], markersize=4, linewidth=1.2, label=label)
    axes.axhline(1, color="gray", linewidth=0.8)
    _label_ticks(axes, sorted({t for points in series.values() for t, _ in points}))
    axes.set_xlabel("tokens")
    axes.set_ylabel("times faster than causal softmax weights")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    save(figure, "speedup.svg")
