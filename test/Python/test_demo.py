"""The demo runs, writes what it promises, and notices wrong results."""

import pathlib
import subprocess
import sys

import pytest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo"

pytest.importorskip("matplotlib")
pytest.importorskip("rich")


def run(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=DEMO, timeout=300
    )


def test_quick(tmp_path):
    result = run("demo.py", "--quick", "--output", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.startswith("demo: all ") and last.endswith(" checks passed")
    for name in ("scaling.png", "crossover.png", "decode.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert f"{tmp_path / name}: " in result.stdout
    stages = {path.name.split("-", 2)[2] for path in (tmp_path / "ir").iterdir()}
    assert {"linattn-reassociate.mlir", "linattn-causal-to-scan.mlir", "llvm.mlir"} <= stages
    assert "A = scores −K, K {strict}  " in result.stdout and "δ = solve A gate(β)  " in result.stdout


def test_wrong_expectation_fails():
    code = """
import sys, example
from report import Report
example.EXPECTED["causal"][1][0] += 1e-4
report = Report()
example.run(report)
sys.exit(report.finish())
"""
    result = run("-c", code)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "FAILED: @causal, token 2, feature 1: expected 0.5715, but got 0.5714" in result.stdout
    assert "demo: 1 of 60 checks failed" in result.stdout


def test_another_chunk_fails(tmp_path):
    code = """
import pathlib, sys, delta_chunk
from report import Report
delta_chunk.STEPS[7] = ("δ", "update", "")
report = Report()
delta_chunk.run(report, pathlib.Path(sys.argv[1]))
sys.exit(report.finish())
"""
    result = run("-c", code, tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "demo: 1 of 4 checks failed: a chunk has the steps of the paper" in result.stdout


def test_text_must_exist_and_be_long_enough(tmp_path):
    result = run("demo.py", "--quick", "--text", tmp_path / "none.txt")
    assert result.returncode == 2
    assert "--text: expected a file, but got" in result.stderr
    short = tmp_path / "short.txt"
    short.write_text("too short")
    result = run("demo.py", "--quick", "--text", short)
    assert result.returncode == 2
    assert "expected at least 1024 bytes, but got 9" in result.stderr


def test_embedding_is_causal_and_deterministic(monkeypatch):
    numpy = pytest.importorskip("numpy")
    monkeypatch.syspath_prepend(str(DEMO))
    import document

    text = b"what was written before decides what is read"
    whole, prefix = document.embed(text, 2, 64), document.embed(text[:20], 2, 64)
    for a, b in zip(whole, prefix):
        assert a.shape == (1, len(text), 2, 64)
        numpy.testing.assert_array_equal(a[:, :20], b)
    q, k, v = whole
    numpy.testing.assert_array_equal(k[:, 1:], q[:, :-1])
    numpy.testing.assert_allclose(numpy.linalg.norm(v, axis=-1), 8, rtol=1e-5)


def test_crossover_is_where_linear_wins_for_good(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    from crossover import crossover

    flat = {8: 1.0, 16: 1.0, 32: 1.0}
    assert crossover({8: 0.5, 16: 0.5, 32: 2.0}, flat) == pytest.approx(16 * 2**0.5)
    assert crossover({8: 2.0, 16: 0.5, 32: 2.0}, flat) == pytest.approx(16 * 2**0.5)
    assert crossover({8: 2.0, 16: 2.0, 32: 2.0}, flat) == 8
    assert crossover({8: 0.5, 16: 0.5, 32: 0.5}, flat) is None
