"""Time and memory over the length of a real document."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import document
import forms
import plots
from forms import FORMS
from lives import difference
from report import milliseconds, size

D = 64
TOLERANCE = 1e-4  # relative to the largest output

# The weights of one point may take half of the memory that is free.
_MEMORY_SHARE = 0.5


def run(report, text, source, lengths, seconds, output):
    report.section("A real document: time and memory over its length")
    report.note(
        f"{source}: {len(text):,} bytes, one token each; byte n-grams hashed into {D} features\n"
        "one head, one thread; each point in a process of its own; the fastest of several calls;\n"
        "N×N stored runs in plain loops, the others in the compiler's tiled kernels;\n"
        "memory: what the process's peak grows by during a call, inputs and output excluded"
    )
    arrays = document.embed(text, heads=1, features=D)
    _check(report, arrays, min(512, len(text)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "document.npy"
        np.save(path, np.stack(arrays))
        points = _measure_all(report, path, lengths, seconds)
    _print(report, points, lengths, seconds)
    finding = _describe(points, lengths)
    picture = output / "scaling.png"
    plots.scaling(picture, points, lengths, finding, state_bytes())
    report.picture(picture, finding)
    return points


def state_bytes():
    """The d×d state and the sum of the keys, in float32."""
    return 4 * (D * D + D)


def score_bytes(tokens):
    """The weights of every pair of tokens, in float32."""
    return 4 * tokens * tokens


def _check(report, arrays, tokens):
    q, k, v = (x[:, :tokens] for x in arrays)
    for name, form in FORMS.items():
        error = difference(forms.make(name)(q, k, v, np.empty_like(v)), forms.oracle(name, q, k, v))
        report.check(f"{form.title} on {tokens} tokens of the document", error <= TOLERANCE, f"differs by {error:.1e}")


def _measure_all(report, path, lengths, seconds):
    """{form: {length: measurement or the reason why there is none}}"""
    points = {name: {} for name in FORMS}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    terminal = report.console.is_terminal
    with Progress(*columns, console=report.console, transient=True, disable=not terminal) as progress:
        task = progress.add_task("measuring", total=len(FORMS) * len(lengths))
        for name, form in FORMS.items():
            for tokens in lengths:
                progress.update(task, description=f"{form.short}, {tokens:,} tokens")
                reason = _why_not(name, points[name], tokens, seconds)
                points[name][tokens] = reason or _measure(report, name, path, tokens)
                progress.advance(task)
    return points


def _why_not(name, measured, tokens, seconds):
    """Why a point is left out, or None."""
    done = {n: point for n, point in measured.items() if isinstance(point, dict)}
    if not done:
        return None
    last = max(done)
    predicted = done[last]["ms"] * (tokens / last) ** FORMS[name].growth
    if predicted > 1e3 * seconds:
        return f"skipped: ~{milliseconds(predicted)}"
    if name == "stored" and score_bytes(tokens) > _MEMORY_SHARE * _free_memory():
        return f"skipped: {size(score_bytes(tokens))}"
    return None


def _free_memory():
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["MemAvailable"].split()[0]) * 1024


def _measure(report, name, path, tokens):
    command = [sys.executable, str(pathlib.Path(__file__).with_name("measure.py")), name, str(path), str(tokens)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        ok, detail = result.returncode == 0, result.stderr.strip()[-500:]
    except subprocess.TimeoutExpired:
        ok, detail = False, "took more than two minutes"
    report.check(f"{FORMS[name].title} on {tokens:,} tokens runs", ok, detail)
    return json.loads(result.stdout) if ok else "failed"


def _print(report, points, lengths, seconds):
    shorts = [form.short for form in FORMS.values()]
    times, memory = [], []
    for n in lengths:
        cells = [points[name][n] for name in FORMS]
        times.append([f"{n:,}", *(milliseconds(p["ms"]) if isinstance(p, dict) else p for p in cells)])
        memory.append(
            [f"{n:,}", *(_bytes(p) for p in cells), size(score_bytes(n)), size(state_bytes())]
        )
    report.say()
    report.table(f"Time per call; what would take longer than {seconds:.3g} s is predicted and skipped", ["tokens", *shorts], times)
    report.say()
    report.table(
        "Memory beyond inputs and output",
        ["tokens", *shorts, "4N² bytes of weights", "4(d²+d) bytes of state"],
        memory,
    )


def _bytes(point):
    if not isinstance(point, dict) or point["bytes"] is None:
        return "-"
    return size(point["bytes"])


def _describe(points, lengths):
    """The finding, at the longest length that both were measured at."""
    both = [n for n in lengths if all(isinstance(points[x][n], dict) for x in ("softmax", "causal"))]
    if not both:
        return "no length was measured for softmax and for linear attention"
    n = both[-1]
    ratio = points["softmax"][n]["ms"] / points["causal"][n]["ms"]
    return f"at {n:,} tokens causal linear attention is {ratio:,.0f} times as fast as causal softmax"
