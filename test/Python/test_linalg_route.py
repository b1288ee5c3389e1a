"""Families by way of linalg are what the naive loops compute.

One family of each kind runs by default, all of them with LINATTN_MATRIX=all.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest

import linattn

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = sorted(path.stem for path in (ROOT / "test/Families").glob("*.mlir"))
# Sums of both signs make denominators close to 0: only sums in the order of the
# reference agree to the last digits, or elements of prime fields.
EXACT = ("rfa",)
# Additive with a decay, delta with one per channel, dplr, a bonus, an input gate, no
# chunk form, loops over tokens.
KINDS = ("mamba2", "kda", "rwkv7", "rwkv6", "mlstm", "gated_oja", "selective_scan", "log_linear", "rwkv4", "lru")


def chosen():
    return FAMILIES if os.environ.get("LINATTN_MATRIX") == "all" else KINDS


def run(*options):
    program = pathlib.Path(linattn._linattn.__file__).resolve().parents[2] / "bin/linattn-run"
    if not program.exists():
        pytest.skip("the tools are not built beside the Python module")
    command = [program, *options, "--target=linalg"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("family", chosen())
def test_family(family):
    path = ROOT / "test/Families" / f"{family}.mlir"
    if family in EXACT:
        assert "equal in both fields" in run(path, path, "--open-size=7", "--compare=exact")
        return
    # One token, a chunk and a short one behind two.
    assert "agrees with the reference" in run(path, "--open-size=1,16,37", "--compare=reference")


PACKED = """
func.func @packed(%cu: tensor<4xi32>, %rows: tensor<3xi64>, %q: tensor<1x4x23x8xf32>, %k: tensor<1x2x23x8xf32>,
                  %g: tensor<1x2x23xf32>, %s: tensor<5x2x8x8xf32>) -> (tensor<1x4x23x8xf32>, tensor<5x2x8x8xf32>) {
  %e = tensor.empty() : tensor<1x4x23x8xf32>
  %o:2 = linattn.scan %q, %k, %k decay(%g) cu_seqlens(%cu) state_indices(%rows) into(%e) init(%s) {REVERSE}
    : (tensor<1x4x23x8xf32>, tensor<1x2x23x8xf32>, tensor<1x2x23x8xf32>, tensor<1x2x23xf32>, tensor<4xi32>,
       tensor<3xi64>, tensor<1x4x23x8xf32>, tensor<5x2x8x8xf32>) -> (tensor<1x4x23x8xf32>, tensor<5x2x8x8xf32>)
  return %o#0, %o#1 : tensor<1x4x23x8xf32>, tensor<5x2x8x8xf32>
}
"""


@pytest.mark.parametrize("reverse", ["", "reverse"])
def test_packed_sequences_and_a_pool(tmp_path, reverse):
    """A sequence of a chunk and a bit, one without a state, a short one."""
    path = tmp_path / "packed.mlir"
    path.write_text(PACKED.replace("REVERSE", reverse))
    arrays = [np.array([0, 17, 20, 23], np.int32), np.array([3, -1, 0]), None, None, -np.random.default_rng(0).random((1, 2, 23))]
    options = []
    for number, array in enumerate(arrays):
        if array is None:
            options.append(f"--arg=random:1x{4 if number == 2 else 2}x23x8xf32")
            continue
        file = tmp_path / f"{number}.npy"
        np.save(file, array.astype(np.float32) if number == 4 else array)
        options.append(f"--arg={file}")
    out = run(path, *options, "--arg=random:5x2x8x8xf32", "--compare=reference")
    assert out.count("agrees with the reference") == 2, out
