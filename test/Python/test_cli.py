"""``python -m linattn``: what each command prints, and how each ends."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import linattn
from linattn import cli
from linattn.cli import doctor, info

LAYER = pathlib.Path(__file__).parents[2] / "examples/layer.mlir"
TWO = """
func.func @first(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @second(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }
"""


@pytest.fixture
def call(capsys):
    def run(*arguments):
        status = cli.main(list(map(str, arguments)))
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "two.mlir"
    path.write_text(TWO)
    return path


def test_info_as_json_matches_the_process(call, monkeypatch):
    monkeypatch.setenv("LINATTN_MATH", "strict")
    status, out, _ = call("info", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["version"] == linattn.__version__
    assert found["cpu"]["threads"] == linattn.get_num_threads()
    assert found["settings"]["LINATTN_MATH"] == "strict"
    assert found["libraries"]["numpy"] == __import__("numpy").__version__
    assert found["cache"]["files"] >= 0 and found["cache"]["max_bytes"] > 0


def test_info_has_a_line_for_each_library(call):
    _, out, _ = call("info")
    assert out.startswith(f"linattn    {linattn.__version__} in ")
    assert [line[11:].split()[0] for line in out.splitlines()[-len(info.LIBRARIES) :]] == list(info.LIBRARIES)


def test_info_counts_the_kernels_of_the_cache(tmp_path):
    program = "import linattn.cli as c; c.main(['compile', %r]); c.main(['info', '--json'])" % str(LAYER)
    out = run_process(tmp_path, program).stdout
    cache = json.loads(out[out.index("\n{") :])["cache"]
    assert cache["directory"] == str(tmp_path / "cache")
    assert cache["files"] == 1
    assert cache["bytes"] == sum(file.stat().st_size for file in (tmp_path / "cache").iterdir())


def test_doctor_finds_a_working_installation(call):
    status, out, _ = call("doctor")
    assert status == 0
    assert "ok   kernels       a scan is within" in out
    assert out.endswith("linattn works here\n")


def test_doctor_knows_of_threads_that_spin(call, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(doctor, "_CHECKS", {"PyTorch": doctor._CHECKS["PyTorch"]})
    monkeypatch.setattr(doctor._linattn, "get_num_threads", lambda: 2)
    advice = "OMP_WAIT_POLICY=passive lends their cores to linattn"
    for policy, is_advised in (("active", True), ("PASSIVE", False)):
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
        assert (advice in call("doctor")[1]) == is_advised


def test_doctor_names_problems(call, monkeypatch):
    monkeypatch.setenv("LINATTN_NUM_THREAD", "3")
    monkeypatch.setattr(doctor, "TOLERANCE", 0.0)
    status, out, _ = call("doctor")
    assert status == 1
    assert "warn settings      LINATTN_NUM_THREAD is set, but linattn does not read it; LINATTN_NUM_THREADS it does" in out
    assert "FAIL kernels       expected a scan within 0.0 of the float64 oracle, but its error is" in out
    assert out.endswith(f"1 of {len(doctor._CHECKS)} checks failed\n")


def test_doctor_ends_with_a_bad_setting_as_a_failure(tmp_path):
    done = run_process(tmp_path, "import sys, linattn.cli as c; sys.exit(c.main(['doctor']))", LINATTN_NUM_THREADS="abc")
    assert done.returncode == 1
    assert "FAIL kernels       expected LINATTN_NUM_THREADS to be a positive number, but got 'abc'" in done.stdout


def test_explain_prints_the_remarks_of_every_function(call):
    status, out, _ = call("explain", LAYER)
    assert status == 0
    assert out.startswith("<linattn.Kernel func @layer(")
    assert "select-form: chunks of" in out


def test_compile_takes_all_functions_or_one(call, module):
    _, out, _ = call("compile", module)
    assert ["@first" in line for line in out.splitlines()] == [True, False]
    _, out, _ = call("compile", module, "--entry", "second")
    assert "@second" in out and "@first" not in out


def test_compile_emits_each_stage(call, module):
    _, stages, _ = call("compile", module, "--entry=first", "--emit=stages")
    assert stages.splitlines()[0] == "input" and stages.splitlines()[-1] == "llvm"
    assert "define" in call("compile", module, "--entry=first", "--emit=llvm")[1]
    assert "func.func @first" in call("compile", module, "--entry=first", "--emit=source")[1]
    assert "ret" in call("compile", module, "--entry=first", "--emit=asm")[1]


def test_compile_writes_to_a_file(call, module, tmp_path):
    status, out, _ = call("compile", module, "--emit=asm", "-o", tmp_path / "two.s")
    assert (status, out) == (0, "")
    assert "ret" in (tmp_path / "two.s").read_text()


@pytest.mark.parametrize("text, arguments, problem", [
    ("func.func @f(", [], "bad.mlir:1:13: error: expected"),
    ("module {}", [], "expected a public function, but found none"),
    (TWO, ["--entry=third"], "third"),
    (TWO, ["--emit=nothing"], "expected a stage among input, "),
])  # fmt: skip
def test_errors_name_the_file_and_end_with_1(call, tmp_path, text, arguments, problem):
    path = tmp_path / "bad.mlir"
    path.write_text(text)
    status, _, err = call("compile", path, *arguments)
    assert status == 1
    assert err.startswith("linattn: error: ") and problem in err


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["compile"], ["compile", "/no/such/file"], ["info", "--xml"]])
def test_wrong_calls_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    assert "usage: python -m linattn" in capsys.readouterr().err


def test_bench_has_its_own_options(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["bench", "--help"])
    assert end.value.code == 0
    assert "--case" in capsys.readouterr().out


def test_the_package_runs_as_a_module(tmp_path):
    done = run_process(tmp_path, None, "info")
    assert done.returncode == 0
    assert done.stdout.startswith("linattn ")


def test_importing_takes_little(tmp_path):
    """0.3 s; of CPU time, which other programs on a machine change least."""
    program = "import time; start = time.process_time(); import linattn; print(time.process_time() - start)"
    assert min(float(run_process(tmp_path, program).stdout) for _ in range(3)) < 0.3


def run_process(tmp_path, program, *arguments, **variables):
    packages = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": packages, "LINATTN_CACHE_DIR": str(tmp_path / "cache"), **variables}
    command = ["-m", "linattn", *arguments] if program is None else ["-c", program]
    return subprocess.run([sys.executable, *command], env=environment, cwd=tmp_path, capture_output=True, text=True)
