"""A chunk of the delta rule as the ops between a recurrence and its loops."""

from __future__ import annotations

import pathlib
import re
import subprocess

import linattn

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_SOURCE = _ROOT / "examples/delta_rule.mlir"
_BIN = pathlib.Path(linattn.__file__).parents[2] / "bin"

# The results of the chunk's ops in their order, and what each of them is.
STEPS = [
    ("β", "pack", ""),
    ("K", "pack", ""),
    ("V", "pack", ""),
    ("Q", "pack", ""),
    ("−K", "pack", ""),
    ("A", "scores", "−k_t·k_j for j < t"),
    ("E", "read", "V − K S"),
    ("δ", "solve", "(I − Diag(β) A)⁻¹ β E"),
    ("P", "scores", "q_t·k_j for j ≤ t"),
    ("O", "read", "Q S + P δ"),
    ("o", "unpack", ""),
    ("S′", "update", "S + Kᵀ δ"),
]
_OP = re.compile(r"^\s*(%\w+) = linattn\.chunk\.(\w+) (.*?) : \(")
_MOST_LINES = 60


def run(report, output):
    report.section("A chunk of the delta rule")
    report.note("S ← S + β k (v − Sᵀk)ᵀ, 16 tokens at a time, as linattn-expand-form writes it; types are left out")
    path = output / "ir" / "delta-rule-chunks.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    made = _call("linattn-opt", _SOURCE, "--linattn-expand-form", "--canonicalize", "--cse", "-o", path)
    if not report.check("the delta rule is expanded to chunks", made.returncode == 0, made.stderr):
        return
    loop = path.read_text(encoding="utf-8").partition("scf.for")[2].partition("\n    }\n")[0]
    found = [match.groups() for match in map(_OP.match, loop.splitlines()) if match]
    report.check("a chunk has the steps of the paper", [op for _, op, _ in found] == [op for _, op, _ in STEPS])
    report.check(f"a chunk has at most {_MOST_LINES} lines", len(loop.splitlines()) <= _MOST_LINES)
    for line in _lines(found):
        report.code(f"    {line}")
    same = _call("linattn-run", path, _SOURCE, "--open-size=20", "--compare=exact")
    report.check("the chunks are the delta rule, exactly", same.stdout.count("equal in both fields") == 2, same.stderr)
    report.note(f"in both prime fields the chunks give what the recurrence gives; the whole IR: {path}")


def _call(tool, *arguments):
    return subprocess.run([_BIN / tool, *arguments], capture_output=True, text=True)


def _lines(found):
    """`A = scores −K, K {strict}`, and the formula beside it; destinations are shown where they hold something."""
    tokens = ("", "_0", "_1", "_2")
    names = {f"%extracted_slice{suffix}": name for suffix, name in zip(tokens, ("q_t", "k_t", "v_t", "β_t"))}
    names["%arg8"] = "S"
    for (value, op, operands), (name, _, formula) in zip(found, STEPS):
        text = re.sub(r" into\((%\w+)\)", lambda match: match[0] if match[1] in names and op == "read" else "", operands)
        text = re.sub(r"%\w+", lambda match: names.get(match[0], match[0]), text)
        text = re.sub(r"(\S+) : f64", lambda match: f"{float(match[1]):g}", text)
        line = f"{name} = {op} {text}"
        yield f"{line:<44}{formula}".rstrip()
        names[value] = name
