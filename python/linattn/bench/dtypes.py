"""The element types of a run, by name."""

import ml_dtypes
import numpy as np

__all__ = ["DTYPES"]

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
