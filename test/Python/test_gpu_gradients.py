"""The gradient of every family on a GPU: its kernels in the emulator beside plain loops."""

import pathlib
import subprocess

import pytest
from test_gpu_families import BUILD, FAMILIES, ROOT

TOKENS = 3

pytestmark = pytest.mark.skipif(not (BUILD / "bin" / "linattn-opt").exists(), reason="the package is not in its build")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


def differentiate(source, function, folder):
    """The file with @FUNCTION_vjp of all operands."""
    path = folder / "gradient.mlir"
    run(BUILD / "bin" / "linattn-opt", source, f"--linattn-differentiate=function={function}", "--canonicalize", "--cse", "-o", path)
    return path


def emulate(path, function, *options):
    out = run(BUILD / "bin" / "linattn-run", path, f"--entry={function}_vjp", "--target=nvvm-emulated", "--compare=reference", *options)
    assert "no findings" in out and "agrees with the reference" in out, out[-2000:]
    return out


@pytest.mark.sampled(11)
@pytest.mark.parametrize("family", FAMILIES)
def test_emulated(family, tmp_path):
    path = differentiate(ROOT / "test" / "Families" / f"{family}.mlir", family, pathlib.Path(tmp_path))
    emulate(path, family, f"--open-size={TOKENS}")


@pytest.mark.parametrize("clauses, scans", [("decay(%d)", 3), ("decay(%d) beta(%b) update(delta)", 7)], ids=["gate", "kda"])
def test_decays_per_channel_run_by_chunks(clauses, scans, tmp_path):
    """Reads along the values, whose columns decay, too."""
    rows, beta, state = "tensor<1x2x40x16xbf16>", "tensor<1x2x40xf32>", "tensor<1x2x16x16xf32>"
    gates = "tensor<1x2x40x16xf32>"
    betas = f"{beta}, " if "beta" in clauses else ""
    source = tmp_path / "scan.mlir"
    source.write_text(f"""
func.func @f(%q: {rows}, %k: {rows}, %v: {rows}, %g: {gates}, %b: {beta}, %s: {state}) -> {rows} {{
  %a = math.absf %g : {gates}
  %d = arith.negf %a : {gates}
  %e = tensor.empty() : {rows}
  %o, %last = linattn.scan %q, %k, %v {clauses} into(%e) init(%s)
    : ({rows}, {rows}, {rows}, {gates}, {betas}{rows}, {state}) -> ({rows}, {state})
  return %o : {rows}
}}""")
    out = emulate(differentiate(source, "f", tmp_path), "f", "--explain")
    assert out.count("passed: select-schedule: chunk kernel") == scans
    assert "passed: select-schedule: token kernel" not in out
