"""results.json as Markdown, and as plots where matplotlib is.

    python3 -m acceptance.report RESULTS.json FOLDER
"""

import json
import pathlib
import sys

__all__ = ["markdown", "plots"]


# What authors have published of kernels of these rules.
PUBLISHED = (
    ("lightning prefill", "flash-linear-attention", "GB200", "2 × 16384 × 64 × 128", 1.14, 1880, "cuLA, BENCHMARK_GB200"),
    ("lightning prefill", "cuLA", "GB200", "2 × 16384 × 64 × 128", 0.632, 3400, "cuLA, BENCHMARK_GB200"),
    ("gated delta rule", "flash-linear-attention", "H200", "4 × 8192 × 64 (16 of keys) × 128", 3.362, 400, "FlashQLA, benchmark_results_H200"),
    ("gated delta rule", "FlashQLA", "H200", "4 × 8192 × 64 (16 of keys) × 128", 1.214, 1120, "FlashQLA, benchmark_results_H200"),
    ("gated delta rule", "FlashInfer", "H200", "4 × 8192 × 64 (16 of keys) × 128", 0.827, 1640, "FlashQLA, benchmark_results_H200"),
    ("gated delta rule", "FlashQLA", "H200", "1 × 32768 × 64 (16 of keys) × 128", 1.521, 890, "FlashQLA, benchmark_results_H200"),
    ("gated delta rule", "FlashInfer", "H200", "1 × 32768 × 64 (16 of keys) × 128", 1.552, 870, "FlashQLA, benchmark_results_H200"),
    ("gated delta rule", "FlashQLA", "H200", "1 × 2048 × 8 (2 of keys) × 128", 0.061, "–", "FlashQLA, benchmark_results_H200"),
    ("KDA", "flash-linear-attention", "H200", "2 × 16384 × 64 × 128", 7.173, 370, "cuLA, BENCHMARK_H200"),
    ("KDA", "cuLA", "H200", "2 × 16384 × 64 × 128", 4.485, 600, "cuLA, BENCHMARK_H200"),
    ("KDA", "FlashKDA", "H20", "1 × 8192 × 64 × 128", 1.62, "–", "FlashKDA, BENCHMARK_H20"),
    ("Mamba-2, chunks alone", "TileLang", "H800", "8 × 8192 × 80 × 64, state of 128", 1.278, 1350, "tilelang, benchmark/mamba2"),
    ("GLA", "flash-linear-attention", "not named", "4 × 4096 × 64 × 128", 3.31, "–", "FlagGems-vllm, pull request 43"),
    ("lightning decode", "flash-linear-attention", "GB200", "256 × 1 × 64 × 128", 0.349, 6150, "cuLA"),
    ("lightning decode", "cuLA", "GB200", "256 × 1 × 64 × 128", 0.313, 6850, "cuLA"),
    ("KDA decode", "cuLA", "H20-3e", "256 × 1 × 128 × 128", 1.77, 2400, "cuLA"),
    ("GLA decode", "TileOPs", "H200", "64 × 1 × 32 × 128", 0.408, 660, "TileOPs, pull request 1621"),
)


def _number(value, digits=3):
    return "–" if value is None else f"{value:.{digits}g}"


def _percent(value):
    return "–" if value is None else f"{100 * value:.0f} %"


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def _machine(results):
    machine, limits = results["machine"], results["ceilings"] or {}
    rows = [(key, value) for key, value in machine.items()]
    rows += [("compiled for", results["compiled"]["chips"] + (", machine code" if results["compiled"]["cubin"] else ", PTX"))]
    rows += [("commit", results["compiled"]["commit"] or "–")]
    rows += [("copy, read and written", _number(limits.get("copy_gbytes_per_s"), 4) + " GB/s")]
    rows += [("bf16 product 8192³", _number(limits.get("gemm_tflops"), 4) + " TFLOP/s")]
    rows += [("launch from Python, host", _number(results["launch_us"]) + " µs")]
    return _table(("", ""), rows)


def _checks(results):
    """A row per rule and form: the worst of each element type over all head sizes."""
    checks = results["checks"]
    if not checks:
        return "None ran."
    good = sum(record["ok"] for record in checks)
    lines = [f"{good} of {len(checks)} kernels agree with float64, and give the same bits twice. Errors are "
             "max|o − reference| / max|reference|, the worst over all head sizes.", ""]  # fmt: skip
    groups = {}
    for record in checks:
        if "rule" not in record:  # It gave no result.
            continue
        groups.setdefault((record["rule"], record["form"]), []).append(record)
    dtypes = list(dict.fromkeys(record["dtype"] for record in checks if "dtype" in record))
    rows = []
    for (rule, form), records in groups.items():
        cells = [max((r["output_error"] for r in records if r["dtype"] == dtype and "output_error" in r), default=None) for dtype in dtypes]
        state = max((r["state_error"] for r in records if r.get("state_error") is not None), default=None)
        sizes = sorted({r["size"] for r in records})
        rows.append((rule, form, ", ".join(map(str, sizes)), *map(_error, cells), _error(state)))
    lines.append(_table(("rule", "form", "D", *(f"o, {dtype}" for dtype in dtypes), "state"), rows))
    failed = [record for record in checks if not record["ok"]]
    lines += [f"\nFailed: `{record['kernel']}`: {record.get('problem') or {k: record[k] for k in ('output_error', 'state_error', 'same_bits')}}" for record in failed]
    return "\n".join(lines)


def _calls(results):
    """How many public functions agree, and those that do not."""
    calls = results.get("calls")
    if not calls:
        return []
    good = sum(record["ok"] for record in calls)
    lines = [f"{good} of {len(calls)} public calls agree with float64.", ""]
    return lines + [f"- Failed: {record['case']}: {record['problem'] or record['error']}" for record in calls if not record["ok"]]


def _pipes(results):
    """Measured beside what predictions take."""
    rows = []
    for record in results.get("pipes", []):
        cycles, latency = record["model"]
        rows.append((f"`{record['pipe']}`", _number(record["cycles"]), _number(cycles), _number(record["latency"]), _number(latency)))
    if not rows:
        return []
    return [
        "## Instructions", "",
        "Cycles of a scheduler for an instruction of a warp, of which 16 run 8 independent chains each; cycles until the result is there. Beside them is "
        "what docs/generated/Predictions.md counts with.",
        "", _table(("instruction", "cycles", "predicted", "latency", "predicted"), rows), "",
    ]  # fmt: skip


def _published():
    return [
        "## Published by others", "",
        "By the authors of other kernels, on the machines and shapes that are named; none was measured in this run. GB/s counts what has to be moved, as above.", "",
        _table(("rule", "kernel", "GPU", "B × T × H × D", "ms", "GB/s", "source"), PUBLISHED), "",
    ]  # fmt: skip


def _error(value):
    return "–" if value is None else f"{value:.1e}"


def _time(record):
    if record is None:
        return "–"
    return _number(record["ms"], 4) + ("" if record["captured"] or record["ms"] is None else " (no graph)")


def _times(results, group):
    records = [record for record in results["times"] if record["group"] == group]
    if not records:
        return "None."
    names = list(dict.fromkeys(record["implementation"] for record in records))
    rows, seen = [], {}
    for record in records:
        key = (record["rule"], record["batch"], record["tokens"], record["heads"], record["size"])
        seen.setdefault(key, {})[record["implementation"]] = record
    for (rule, batch, tokens, heads, size), by_name in seen.items():
        ours = by_name.get("linattn")
        rivals = [by_name[name]["ms"] for name in names if name in by_name and name not in ("linattn", "softmax (SDPA)") and by_name[name]["ms"]]
        ratio = f"{min(rivals) / ours['ms']:.2f}" if rivals and ours and ours["ms"] else "–"
        cells = [_time(by_name.get(name)) for name in names if name != "linattn"]
        numbers = ours or dict.fromkeys(("gbytes_per_s", "share_of_copy", "tflops"))
        rows.append((rule, f"{batch} × {tokens} × {heads} × {size}", _time(ours), _number(numbers["gbytes_per_s"], 4),
                     _percent(numbers["share_of_copy"]), _number(numbers["tflops"]), *cells, ratio))  # fmt: skip
    others = [name + ", ms" for name in names if name != "linattn"]
    head = ("rule", "B × T × H × D", "linattn, ms", "GB/s", "of the copy", "TFLOP/s", *others, "over the fastest peer")
    return _table(head, rows)


def markdown(results):
    parts = ["# On a GPU", ""]
    if results["dry_run"]:
        parts += ["**A dry run: kernels were launched on a driver that runs none. Nothing here was measured.**", ""]
    parts += [
        "Written by `tools/gpu/acceptance.sh`. Times are medians of replayed graphs, by events; every call works on buffers "
        "that the caches no longer hold. GB/s counts q, k, v, o and gates once, and for decoding the state read and written; "
        "TFLOP/s counts 4·D² per token and head. Tokens are bf16, states float32.",
        "", _machine(results), "", "## Correctness", "", _checks(results), "", *_calls(results),
    ]  # fmt: skip
    for tool in results["sanitizer"]:
        parts += [f"`compute-sanitizer --tool {tool['tool']}`: exit code {tool['status']}. {tool['summary']}", ""]
    for group, title in (("standard", "Prefill, the shapes of flash-linear-attention"), ("decode", "Decoding, one token"), ("small", "Few heads, and many of 64")):
        parts += [f"## {title}", "", _times(results, group), ""]
    parts += _pipes(results) + _published()
    if results["broken"]:
        parts += ["## Broken", "", *(f"- {text}" for text in results["broken"]), ""]
    parts += ["## Missing", ""]
    missing = [f"- {name}: {why}" for name, why in results["missing"]] + [f"- {text}" for text in results["skipped"]]
    return "\n".join(parts + (missing or ["Nothing."])) + "\n"


def plots(results, folder):
    """Bars of the share of the copy's bandwidth, and of times over the fastest peer."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "linattn", "axes.axisbelow": True,
                                "axes.spines.top": False, "axes.spines.right": False})  # fmt: skip
    folder, written = pathlib.Path(folder), []
    for group in dict.fromkeys(record["group"] for record in results["times"]):
        records = [record for record in results["times"] if record["group"] == group and record["ms"] is not None]
        if not records:
            continue
        label = lambda r: f"{r['rule']}\n{r['batch']}×{r['tokens']}×{r['heads']}×{r['size']}"  # noqa: E731
        labels = list(dict.fromkeys(map(label, records)))
        names = list(dict.fromkeys(record["implementation"] for record in records))
        figure, axes = pyplot.subplots(2, 1, figsize=(max(6, 0.45 * len(labels) + 2), 7), sharex=True)
        width = 0.8 / len(names)
        for i, name in enumerate(names):
            mine = [record for record in records if record["implementation"] == name]
            places = [labels.index(label(record)) + i * width for record in mine]
            axes[0].bar(places, [record["ms"] for record in mine], width, label=name)
            axes[1].bar(places, [100 * (record["share_of_copy"] or 0) for record in mine], width)
        axes[0].set_yscale("log")
        axes[0].set_ylabel("ms")
        axes[0].legend(fontsize=7, frameon=False)
        axes[1].set_ylabel("of the copy's bandwidth, %")
        axes[1].set_xticks([x + 0.4 - width / 2 for x in range(len(labels))], labels, rotation=90, fontsize=6)
        figure.tight_layout()
        figure.savefig(folder / f"{group}.svg", metadata={"Date": None})
        pyplot.close(figure)
        written.append(folder / f"{group}.svg")
    return written


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    results = json.loads(source.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    if source.resolve() != (folder / "results.json").resolve():
        (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "README.md").write_text(markdown(results))
    try:
        written = plots(results, folder)
    except ImportError as error:
        print(f"no plots: {error}")
        written = []
    for path in [folder / "results.json", folder / "README.md", *written]:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
