"""The commands and programs that the pages show do what the pages say."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import linattn

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tools/gpu/README.md"]
PAGES += sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs/benchmarks").glob("*.md"))

# Scripts build, test or measure for minutes: the test only finds them. Of a
# benchmark it checks the options, or runs one call of the smallest size.
SCRIPTS = ("tools/", "test/Fuzz/", "build/test/Unit/", "cmake", "ninja", "pip", "git")
BENCHMARKS = ("build/bin/linattn-bench", "python -m linattn bench")
SMALLEST = {"build/bin/linattn-unit-bench": {"-d": 64, "-t": 64, "--repetitions": 1}}


def fences(language):
    """(page:line, text) of every fenced block of a language."""
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.M | re.S):
            line = text.count("\n", 0, match.start()) + 1
            yield pytest.param(match[1], id=f"{page.relative_to(ROOT)}:{line}")


def words_of(command):
    """A command's words, without comments, variables of its own and its choice of a core."""
    words = shlex.split(command, comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    return words[3:] if words[:2] == ["taskset", "-c"] else words


def at_its_smallest(command):
    """A benchmark's command with the smallest value of each option that it does not name."""
    sizes = SMALLEST.get(words_of(command)[0], {})
    missing = [f"{name}={value}" for name, value in sizes.items() if f"{name}=" not in command]
    return " ".join([command.split(" #")[0], *missing])


def commands_of(block):
    """The commands of a fenced block, in order: later ones may need files of earlier ones."""
    text = re.sub(r"\\\n|(?<=\|)\n", " ", block)
    return [command for command in text.splitlines() if words_of(command)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder that looks like the project's, in which commands may write."""
    folder = tmp_path_factory.mktemp("checkout")
    build = pathlib.Path(linattn._linattn.__file__).resolve().parents[2]
    if not (build / "bin/linattn-run").exists():
        pytest.skip("the tools are not built beside the Python module")
    for name in ("examples", "test", "tools"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").symlink_to(build)
    return folder


def run(command, folder):
    shell = ["bash", "-o", "pipefail", "-c", command]
    # `python` is the one of this test, with the package of this build.
    search = {"PATH": pathlib.Path(sys.executable).parent, "PYTHONPATH": pathlib.Path(linattn.__file__).parents[1]}
    variables = {name: os.pathsep.join(filter(None, [str(path), os.environ.get(name)])) for name, path in search.items()}
    return subprocess.run(
        shell, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120
    )


def test_chunk_level_shows_the_delta_rule(checkout):
    """The page has names and comments of its own; parsed, it is what the pass makes."""
    page = (ROOT / "docs/ChunkLevel.md").read_text()
    shown = re.search(r"^```mlir\n(.*?)^```", page, re.M | re.S)[1]
    loop = shown[shown.index("scf.for") : shown.index("\n  }\n")]
    ops = [line for line in loop.splitlines() if not line.strip().startswith("//")]
    assert len(ops) <= 60
    (checkout / "shown.mlir").write_text(shown)
    made = run("build/bin/linattn-opt examples/delta_rule.mlir --linattn-expand-form --canonicalize --cse", checkout)
    parsed = run("build/bin/linattn-opt shown.mlir", checkout)
    assert made.returncode == 0 and parsed.stdout == made.stdout, parsed.stderr + made.stdout


@pytest.mark.parametrize("block", list(fences("sh")))
def test_commands(block, checkout):
    for command in commands_of(block):
        words = words_of(command)
        if shlex.join(words).startswith(BENCHMARKS):
            # No repetitions are refused once all other options have been read.
            result = run(f"{shlex.join(words)} --repetitions=0", checkout)
            assert "argument --repetitions: expected a positive integer, but got 0" in result.stderr
        elif words[0].startswith(SCRIPTS):
            if "/" in words[0] and not words[0].startswith("build/"):
                assert (ROOT / words[0]).exists(), command
        else:
            command = at_its_smallest(command)
            result = run(command, checkout)
            assert result.returncode == 0, command + "\n" + result.stdout + result.stderr


@pytest.mark.parametrize("source", list(fences("mlir")))
def test_modules_parse(source, checkout):
    if "…" in source:
        pytest.skip("an excerpt, with parts left out")
    (checkout / "fence.mlir").write_text(source)
    result = run("build/bin/linattn-opt fence.mlir", checkout)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("source", list(fences("python")))
def test_python(source, checkout, monkeypatch):
    monkeypatch.chdir(checkout)  # for files that a page reads or writes
    if any(name in source for name in ("torch", "linattn_runner", "linattn_onnxruntime", "transformers")):
        compile(source, "<page>", "exec")
        pytest.skip("needs a GPU, a bundle or a model; its syntax was checked")
    exec(compile(source, "<page>", "exec"), {"np": np})  # noqa: S102


def test_there_are_commands():
    assert sum(len(commands_of(fence.values[0])) for fence in fences("sh")) > 15
