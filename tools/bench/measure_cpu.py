"""Measures the CPU kernels beside the machine's own FMA peak and writes docs/benchmarks.

Every figure is the median of repeated calls on one thread, run by linattn-run, which times an
FMA loop before and after in the same process. Two tables:

* causal attention, f32, as a share of one core's FMA peak (flops counted as 4·T·H·K·V);
* the choice between (QKᵀ)V and Q(KᵀV): both forms, what was chosen at run time, and what a
  wrong choice cost.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADS = 8


def attention(tokens, size, attributes):
    """A module with one attention over HEADS heads of `size`; `tokens` may be "?"."""
    kind = f"tensor<1x{HEADS}x{tokens}x{size}xf32>"
    return f"""
func.func @f(%q: {kind}, %k: {kind}, %v: {kind}) -> {kind} {{
  %o = linattn.attention %q, %k, %v {{{attributes}}} : ({kind}, {kind}, {kind}) -> {kind}
  return %o : {kind}
}}"""


def run(module, tokens, size, repetitions, extra=()):
    """Runs a module through linattn-run; returns its "time" record."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "module.mlir")
        report = pathlib.Path(folder, "report.json")
        source.write_text(module)
        argument = f"random:1x{HEADS}x{tokens}x{size}xf32"
        command = [ROOT / "build/bin/linattn-run", source, f"--time={repetitions}"]
        command += ["--threads=1", f"--json={report}", *extra]
        for seed in range(3):
            command += ["--arg", f"{argument}:{seed}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())["time"]


MAPPED = (
    "feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>"
)


def causal_table(quick):
    """Rows of (size, label, GFLOP/s, peak, share)."""
    rows = []
    tokens = 512 if quick else 4096
    for size in (64, 128):
        for label, attributes in (
            ("φ = elu+1, normalised", f"causal, {MAPPED}"),
            ("plain", "causal"),
        ):
            time = run(attention(tokens, size, attributes), tokens, size, 5 if quick else 31)
            gflops = 4 * tokens * HEADS * size * size / time["median_ms"] / 1e6
            peak = statistics.mean([time["fma_gflops_before"], time["fma_gflops_after"]])
            rows.append((size, label, gflops, peak, gflops / peak))
    return rows


def reassociation_table(quick):
    """Rows of (size, tokens, quadratic µs, reassociated µs, chosen µs)."""
    rows = []
    lengths = (16, 64) if quick else (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 512, 1024)
    for size in (64,) if quick else (32, 64, 128):
        # One function for any N, so that the three differ in the choice alone.
        module = attention("?", size, MAPPED)
        for tokens in lengths:
            repetitions = 11 if quick else max(31, min(401, 40000 // tokens))
            times = {"never": [], "always": [], "auto": []}
            for _ in range(1 if quick else 5):  # in turn: the machine's speed drifts
                for mode, measured in times.items():
                    time = run(module, tokens, size, repetitions, [f"--reassociate={mode}"])
                    measured.append(time["median_ms"] * 1e3)
            rows.append((size, tokens, *map(statistics.median, times.values())))
    return rows


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = line.split()
            return "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE"
    return platform.machine()


def other_cpu():
    """Notes on code made for another CPU."""
    cpu = os.environ.get("LINATTN_CPU")
    if not cpu:
        return []
    return [
        f"Code for {cpu} (LINATTN_CPU), and an FMA loop in vectors of that width.",
    ]


def render(causal, choice):
    lines = [
        "# CPU measurements",
        "",
        "Made by `tools/bench/measure_cpu.py`: one thread, f32, 8 heads, medians of repeated calls.",
        f"This run: a shared virtual machine, {machine()}.",
        *other_cpu(),
        "Absolute times mean nothing there; shares and ratios do.",
        "",
        "## Causal attention, share of one core's FMA peak",
        "",
        "T = 4096; flops counted as 4·T·H·K·V; the peak is an FMA loop timed before and after in the",
        "same process.",
        "",
        "| head size | attention | GFLOP/s | FMA peak | share |",
        "|---|---|---|---|---|",
    ]
    for size, label, gflops, peak, share in causal:
        lines.append(f"| {size} | {label} | {gflops:.0f} | {peak:.0f} | {100 * share:.0f} % |")
    lines += [
        "",
        "## (QKᵀ)V or Q(KᵀV), non-causal",
        "",
        "A function compiled for any N, with either form forced and with the choice made at run time. The",
        "last column is the price of the choice against the better of the two forms; the medians of five",
        "runs of each, taken in turn, still differ by a few percent on a shared machine.",
        "",
        "| head size | N | (QKᵀ)V, µs | Q(KᵀV), µs | chosen, µs | chosen over better |",
        "|---|---|---|---|---|---|",
    ]
    for size, tokens, quadratic, linear, chosen in choice:
        ratio = chosen / min(quadratic, linear)
        lines.append(
            f"| {size} | {tokens} | {quadratic:.1f} | {linear:.1f} | {chosen:.1f} | {ratio:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the program")
    parser.add_argument(
        "--output", type=pathlib.Path, default=ROOT / "docs/benchmarks/README.md"
    )
    options = parser.parse_args()
    text = render(causal_table(options.quick), reassociation_table(options.quick))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
