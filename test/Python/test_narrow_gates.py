"""How exact silu and sigmoid are where their results have 16 bits.

Every number of bf16 and f16 is tried. The bounds in docs/RationaleCode.md come from here.
"""

import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import linattn

# Of a unit in the last place of the result: half of one for the rounding, and what is
# computed roughly.
BOUNDS = {"bfloat16": 0.52, "float16": 0.52}
DTYPES = {"bfloat16": (ml_dtypes.bfloat16, 7), "float16": (np.float16, 10)}


def all_numbers(dtype):
    return np.arange(1 << 16, dtype=np.uint16).view(DTYPES[dtype][0])


def ulps(y, x, function, dtype):
    """Distances from the exact value. Where x lies below the bound of −87, and where subnormal numbers
    of f32 are zeros, results are next to nothing."""
    x, y = (np.asarray(a, np.float32).astype(np.float64) for a in (x, y))
    smallest = 2.0**-125  # Rounding down from there gives one.
    with np.errstate(all="ignore"):
        expected = function(x)
        last_bits = np.exp2(np.maximum(np.floor(np.log2(np.abs(expected))), -14 if dtype == "float16" else -126) - DTYPES[dtype][1])
        error = np.abs(y - expected) / last_bits
    assert (np.isnan(y) == np.isnan(x)).all()
    deep, flushed = x < -86.9, np.abs(expected) < smallest
    assert (np.abs(y[deep]) <= 1.5e-36).all() and (np.abs(y[flushed & ~deep]) <= smallest).all()
    return error[np.isfinite(x) & ~deep & ~flushed]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_convolution(dtype):
    """The sum is its one input, whichever axis is contiguous."""
    x = all_numbers(dtype).reshape(1, 2048, 32)
    weight = np.ones((32, 1), x.dtype)
    for layout in (x, np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)):
        y = np.asarray(linattn.causal_conv1d(layout, weight, activation="silu"))
        error = ulps(y, x, silu, dtype)
        print(f"{dtype}: {error.max():.4f} ulp")
        assert error.max() <= BOUNDS[dtype]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("activation", ("silu", "sigmoid"))
@pytest.mark.parametrize("gates", ("same", "float32"))
def test_gate(dtype, activation, gates):
    gate = all_numbers(dtype).reshape(1, 32, 64, 32)
    x = np.ones(gate.shape, gate.dtype)
    given = gate.astype(np.float32) if gates == "float32" else gate
    y = linattn.output_norm(x, gate=given, kind="none", activation=activation)
    error = ulps(y, gate, silu if activation == "silu" else sigmoid, dtype)
    print(f"{dtype} {activation} {gates}: {error.max():.4f} ulp")
    assert error.max() <= BOUNDS[dtype]


def test_nan_of_any_bits():
    """A gate of f32 beside tokens of bf16: rough or not, a NaN stays one."""
    gate = np.array([0x7F800001, 0x7FFFFFFF, 0xFF800001, 0x7FC00123], np.uint32).view(np.float32)
    gate = np.tile(gate, 16).reshape(1, 1, 1, 64)
    x = np.ones(gate.shape, ml_dtypes.bfloat16)
    for activation in ("silu", "sigmoid"):
        assert np.isnan(linattn.output_norm(x, gate=gate, kind="none", activation=activation)).all()


@pytest.mark.skipif(os.environ.get("LINATTN_CPU") is not None, reason="these are the tests of another CPU")
def test_without_avx512():
    """The same in code for AVX2, which has none of these instructions."""
    packages = pathlib.Path(linattn.__file__).parents[1]
    environment = os.environ | {"LINATTN_CPU": "x86-64-v3", "PYTHONPATH": os.pathsep.join([str(packages), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(pathlib.Path(__file__).parent), __file__],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
