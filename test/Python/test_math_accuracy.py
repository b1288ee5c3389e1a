"""The accuracy of the exponential and the logarithm in compiled code.

The numbers in docs/RationaleCode.md come from here.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest

import linattn

pytestmark = pytest.mark.optimized

# name, dtype: lowest and highest argument, and the bound in units in the last
# place of the result.
BOUNDS = {
    ("exp", "f32"): (-87.0, 88.0, 2.0),
    ("log", "f32"): (1e-37, 1e37, 2.0),
    ("exp", "f64"): (-708.0, 709.0, 1.0),
    ("log", "f64"): (1e-300, 1e300, 1.0),
}


@pytest.mark.parametrize("name, dtype", BOUNDS)
def test_units_in_the_last_place(rng, name, dtype):
    low, high, bound = BOUNDS[name, dtype]
    kernel = linattn.compile(
        f"""func.func @f(%x: tensor<?x64x{dtype}>) -> tensor<?x64x{dtype}> {{
          %y = math.{name} %x : tensor<?x64x{dtype}>
          return %y : tensor<?x64x{dtype}>
        }}"""
    )
    count = (3000, 64)
    x = rng.uniform(low, high, count) if name == "exp" else np.exp(rng.uniform(np.log(low), np.log(high), count))
    x = x.astype(np.float32 if dtype == "f32" else np.float64)
    expected = getattr(np, name)(x.astype(np.longdouble))
    error = np.abs(kernel(x).astype(np.longdouble) - expected) / np.spacing(np.abs(expected).astype(x.dtype))
    print(f"{name} {dtype}: {float(error.max()):.3f} ulp")
    assert error.max() <= bound


def test_exponential_at_the_ends():
    """Finite up to the largest f32; then infinity, 0, and NaN for NaN."""
    kernel = linattn.compile(
        """func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
          %y = math.exp %x : tensor<?x64xf32>
          return %y : tensor<?x64xf32>
        }"""
    )
    x = np.zeros((1, 64), np.float32)
    x[0, :9] = [0.0, -0.0, -np.inf, -1e30, np.inf, 1e30, 88.9, np.nan, 88.72]
    y = kernel(x)[0]
    np.testing.assert_array_equal(y[:8], np.float32([1, 1, 0, 0, np.inf, np.inf, np.inf, np.nan]))
    np.testing.assert_allclose(y[8], np.exp(np.float64(x[0, 8])), rtol=1e-5)


def test_the_logarithm_of_softplus(rng):
    """log(1 + e^-|x|) by a polynomial of e^-|x|, whose argument is at most 1."""
    kernel = linattn.compile(
        """func.func @f(%x: tensor<?x67xf32>) -> tensor<?x67xf32> {
          %y = linalg.map ins(%x : tensor<?x67xf32>) outs(%x : tensor<?x67xf32>) (%a: f32, %o: f32) {
            %0 = math.absf %a : f32
            %1 = arith.negf %0 : f32
            %2 = math.exp %1 : f32
            %3 = math.log1p %2 : f32
            linalg.yield %3 : f32
          }
          return %y : tensor<?x67xf32>
        }"""
    )
    x = np.concatenate([rng.uniform(-90.0, 90.0, 100000), rng.uniform(-3.0, 3.0, 101000)]).astype(np.float32).reshape(-1, 67)
    expected = np.log1p(np.exp(-np.abs(x).astype(np.longdouble)))
    normal = expected > np.finfo(np.float32).tiny
    error = np.abs(kernel(x).astype(np.longdouble) - expected) / np.spacing(expected.astype(np.float32))
    print(f"{float(error[normal].max()):.3f} ulp")
    assert error[normal].max() <= 2.5
    special = np.zeros((1, 67), np.float32)
    special[0, :5] = [-np.inf, np.inf, np.nan, -0.0, 1e-30]
    np.testing.assert_allclose(kernel(special)[0, :5], [0.0, 0.0, np.nan, np.log(2.0), np.log(2.0)], rtol=2e-7)


def test_limits():
    """A decay of 0 is exactly 1, one of −∞ exactly 0, and nothing overflows in between."""
    q = np.ones((1, 2, 1, 16), np.float32)
    for form in ("token", "state-tile"):
        for shape in ((1, 2, 1), (1, 2, 1, 16)):
            for log, kept in ((0.0, 1.0), (-np.inf, 0.0), (-1e30, 0.0)):
                decay = np.full(shape, log, np.float32)
                state = linattn.scan(q, q, q, decay=decay, form=form, return_state=True)[1]
                assert (state.S == 1.0 + kept).all()


# Lowest and highest argument, and the bound in units in the last place.
DOUBLE_BOUNDS = {
    "exp": (-745.0, 709.0, 1.0), "exp2": (-1074.0, 1023.0, 1.0), "expm1": (-30.0, 30.0, 4.0), "tanh": (-22.0, 22.0, 6.0),
    "log": (1e-320, 1e300, 2.0), "log2": (1e-300, 1e300, 3.0), "log10": (1e-300, 1e300, 3.0), "log1p": (1e-20, 1e20, 4.0),
    "sin": (-1e6, 1e6, 2.0), "cos": (-1e6, 1e6, 2.0),
}  # fmt: skip
OPT = pathlib.Path(os.path.abspath(linattn.__file__)).parents[2] / "bin" / "linattn-opt"


def compile_expanded(name):
    text = f"""func.func @f(%x: tensor<?xf64>) -> tensor<?xf64> {{
      %y = linalg.map ins(%x : tensor<?xf64>) outs(%x : tensor<?xf64>) (%a: f64, %o: f64) {{
        %b = math.{name} %a : f64
        linalg.yield %b : f64
      }}
      return %y : tensor<?xf64>
    }}"""
    done = subprocess.run([OPT, "--linattn-expand-double-math"], input=text, capture_output=True, text=True, check=True)
    assert f"math.{name} " not in done.stdout
    return linattn.compile(done.stdout, target="reference")


@pytest.mark.skipif(not OPT.exists(), reason="the package is not in its build")
@pytest.mark.parametrize("name", DOUBLE_BOUNDS)
def test_doubles_on_a_gpu(rng, name):
    low, high, bound = DOUBLE_BOUNDS[name]
    kernel, x = compile_expanded(name), rng.uniform(low, high, 100000)
    if low > 0:
        x = np.exp(rng.uniform(np.log(low), np.log(high), 100000))
    x = np.concatenate([x, rng.standard_normal(100000) * (x[0] if low < 0 else 0) * 1e-3, x[:1000] * 0 + 1])
    x = x[x > 0] if name.startswith("log") else x
    expected = getattr(np, name)(x.astype(np.longdouble))
    error = np.abs(kernel(x).astype(np.longdouble) - expected) / np.spacing(np.abs(expected).astype(np.float64))
    print(f"{name}: {float(error.max()):.3f} ulp at {x[error.argmax()]}")
    assert error.max() <= bound
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 5e-324, 1e300, -1e300])
    special = special[:-2] if name in ("sin", "cos") else special
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(kernel(special), getattr(np, name)(special), rtol=1e-15, atol=0)
