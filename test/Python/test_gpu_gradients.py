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


def differentiate(family, folder):
    """The file with @FAMILY_vjp of all operands."""
    path = folder / "gradient.mlir"
    source = ROOT / "test" / "Families" / f"{family}.mlir"
    run(BUILD / "bin" / "linattn-opt", source, f"--linattn-differentiate=function={family}", "--canonicalize", "--cse", "-o", path)
    return path


@pytest.mark.sampled(11)
@pytest.mark.parametrize("family", FAMILIES)
def test_emulated(family, tmp_path):
    path = differentiate(family, pathlib.Path(tmp_path))
    out = run(BUILD / "bin" / "linattn-run", path, f"--entry={family}_vjp", "--target=nvvm-emulated", f"--open-size={TOKENS}",
              "--compare=reference")  # fmt: skip
    assert "no findings" in out and "agrees with the reference" in out, out[-2000:]
