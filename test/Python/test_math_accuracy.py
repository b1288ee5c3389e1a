"""The accuracy of the exponential and the logarithm in compiled code.

The numbers in docs/Rationale.md come from here.
"""

import numpy as np
import pytest

import linattn

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
    want = getattr(np, name)(x.astype(np.longdouble))
    error = np.abs(kernel(x).astype(np.longdouble) - want) / np.spacing(np.abs(want).astype(x.dtype))
    print(f"{name} {dtype}: {float(error.max()):.3f} ulp")
    assert error.max() <= bound


def test_limits():
    """A decay of 0 is exactly 1, one of −∞ exactly 0, and nothing overflows in between."""
    q = np.ones((1, 2, 1, 16), np.float32)
    for form in ("token", "state-tile"):
        for shape in ((1, 2, 1), (1, 2, 1, 16)):
            for log, kept in ((0.0, 1.0), (-np.inf, 0.0), (-1e30, 0.0)):
                decay = np.full(shape, log, np.float32)
                state = linattn.scan(q, q, q, decay=decay, form=form, return_state=True)[1]
                assert (state.S == 1.0 + kept).all()
