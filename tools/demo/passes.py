"""The IR after the passes that matter, shortened to the lines that matter."""

from __future__ import annotations

import pathlib
import re

import linattn

# (function, what it is, [(stage, what happened)]). A stage is the IR after the
# pass of that name, or after the second pass of "one, then two".
STORIES = [
    (
        "chain",
        "(QKᵀ)V as two plain matrix products becomes Q(KᵀV)",
        [
            ("input", "the 4096×4096 product comes first"),
            ("linattn-reassociate, then linattn-canonicalize", "nothing has 4096×4096 elements any more"),
        ],
    ),
    (
        "noncausal",
        "attention over all tokens becomes a sum and a read",
        [
            ("input", "one op that means (φ(Q)φ(K)ᵀ)V"),
            ("linattn-reassociate", "φ(K)ᵀV is a state of 64×64, and φ(Q) reads it"),
            ("linattn-select-form", "how many rows and columns of the state stay in registers"),
            ("linattn-bufferize-module", "tensors become memory; the result goes where the caller wants it"),
        ],
    ),
    (
        "causal",
        "causal attention becomes a scan",
        [
            ("input", "one op that means the masked product"),
            ("linattn-causal-to-scan", "a recurrence over tokens that carries the state"),
            ("linattn-select-form", "the tile that stays in registers"),
            ("linattn-bufferize-module", "tensors become memory, the state is updated in place"),
            ("linattn-lower-to-vector", "the innermost loop over tokens: the tile travels in registers"),
        ],
    ),
]

_SQUARE = re.compile(r"4096x4096x")
_RESULT = re.compile(r"^\s*((?:%[\w:#]+ = )?)(.*)$")
_SHAPE = re.compile(r"(?:tensor|memref)<((?:\d+x|\?x)+)(\w+)")


def run(report, output):
    report.section("The compiler, pass by pass")
    report.note("lines are abridged: shapes instead of types, the main attributes")
    folder = output / "ir"
    folder.mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(__file__).with_name("passes.mlir")
    for entry, title, stages in STORIES:
        kernel = linattn.compile(path, entry=entry)
        texts = {stage: kernel.mlir(stage) for stage in kernel.stages()}
        for index, (stage, text) in enumerate(texts.items()):
            name = f"{entry}-{index:02}-{stage.replace('#', '-')}.mlir"
            (folder / name).write_text(text, encoding="utf-8")
        report.say()
        report.console.print(f"[bold]@{entry}: {title}[/bold]")
        for stage, caption in stages:
            found = _find(texts, stage)
            if not report.check(f"@{entry} passes through {stage}", found):
                continue
            report.note(f"  {stage}: {caption}")
            body = _function(texts[found], entry)
            lines = _loop(body) if stage == "linattn-lower-to-vector" else _ops(body)
            for line in lines:
                report.code(f"    {_rename(line, entry)}")
        _check(report, entry, texts)
    report.note(f"the whole IR after every pass: {folder}/*.mlir")


def _find(texts, stage):
    """The full name of a stage: a pass's later runs carry a number, `#2`."""
    rest = list(texts)
    for part in stage.split(", then "):
        index = next((i for i, name in enumerate(rest) if name.partition("#")[0] == part), None)
        if index is None:
            return None
        found, rest = rest[index], rest[index + 1 :]
    return found


def _check(report, entry, texts):
    if entry == "chain":
        report.check("@chain states the N×N product", _SQUARE.search(texts["input"]))
        report.check("@chain ends without N×N values", not _SQUARE.search(texts["llvm"]))
        optimised = texts.get(_find(texts, "linattn-reassociate, then linattn-canonicalize"), "")
    else:
        after = {"noncausal": "linattn-reassociate", "causal": "linattn-causal-to-scan"}[entry]
        expected = {"noncausal": ("linattn.state", "linattn.read"), "causal": ("linattn.scan",)}[entry]
        optimised = texts.get(after, "")
        for op in expected:
            report.check(f"@{entry} becomes {op}", op in optimised)
        report.check(f"@{entry} holds no linattn.attention any more", "linattn.attention" not in optimised)
    report.check(f"@{entry} has no N×N value", not _SQUARE.search(optimised))


def _function(text, entry):
    """The function alone: the module of the first stage has others beside it."""
    return text.partition(f"@{entry}(")[2].partition("func.func")[0]


def _rename(line, entry):
    """Arguments under the names that the source gives them."""
    for index, name in enumerate(("q", "kt" if entry == "chain" else "k", "v", "out")):
        line = re.sub(rf"%arg{index}\b", f"%{name}", line)
    return line


def _ops(text):
    """The ops that compute, without what only makes room for them."""
    lines = []
    for line in text.splitlines():
        if re.search(r"= linalg\.(matmul|generic)|linattn\.\w+ %", line):
            lines.append(_shorten(line))
    return lines


def _shorten(line):
    """`%o = linalg.matmul %a, %b : 4096x64, 64x4096 -> 4096x4096`."""
    result, rest = _RESULT.match(line).groups()
    name, _, arguments = rest.partition(" ")
    if name.startswith("linalg."):
        inside = re.search(r"ins\((.*?) : (.*?)\) outs\((.*?) : (.*?)\)", arguments)
        operands, types, _, target = inside.groups()
        return f"{result}{name} {operands} : {_shapes(types)} -> {_shapes(target)}"
    arguments, _, types = arguments.partition(" : (")
    config = re.search(r"#linattn\.config<form = (.*?)>", arguments)
    phi = re.search(r"#linattn\.feature_map<(\w+)>", arguments)
    arguments, _, attributes = arguments.partition(" {")
    causal = "causal, " if attributes.startswith("causal") else ""
    said = config.group(1) if config else f"{causal}φ = {phi.group(1)}"
    targets = _shapes(types.rpartition("-> ")[2])
    return f"{result}{name} {arguments} {{{said}}}" + (f" -> {targets}" if targets else "")


def _shapes(types):
    return ", ".join(match.group(1).rstrip("x") for match in _SHAPE.finditer(types))


def _loop(text):
    """The loop with the most vector.fma: its head, its first row, its end."""
    lines = text.splitlines()
    best, count = None, 0
    for index, line in enumerate(lines):
        if "scf.for" not in line or "iter_args" not in line or "vector<" not in line:
            continue
        indent = len(line) - len(line.lstrip())
        end = next(
            i for i in range(index + 1, len(lines)) if lines[i].startswith(" " * indent + "}")
        )
        fmas = sum("vector.fma" in x for x in lines[index:end])
        if fmas > count:
            best, count = lines[index : end + 1], fmas
    if best is None:
        return ["(no such loop)"]
    indent = len(best[0]) - len(best[0].lstrip())
    inner = [x[indent:] for x in best]
    carried = r"iter_args\((%\w+ = %\w+), .*\) -> \((vector<[^>]*>), .*\) \{"
    head = re.sub(carried, r"iter_args(\1, …) -> (\2, …) {", inner[0])
    seen = [x for x in inner[1:-1] if "vector.fma" in x]
    return [head, *seen[:2], f"  … {count} vector.fma in all", "}"]
