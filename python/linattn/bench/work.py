"""The work that a case stands for, its sizes and element types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "Sizes", "Work"]

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Sizes:
    d: int
    t: int
    heads: int = 8
    batch: int = 1
    dtype: str = "f32"
    seed: int = 0


@dataclass
class Work:
    """One computation, as arrays; `run` is ours and `reference` the oracle."""

    case: str
    sizes: Sizes
    run: Callable  # threads, form -> output [B, T, H, D]
    reference: Callable  # () -> output in float64
    arrays: dict = field(default_factory=dict)  # q, k, v, decay, beta: what peers take
    flops: float = 0.0
    bytes: float = 0.0
    footprint: int = 0  # of a state that every step passes over; 0: none
    run_open: Callable | None = None  # under gates that let pass; takes turns with `run`
    beside: dict = field(default_factory=dict)  # name -> threads -> …, timed in the same turns
    portion: dict = field(default_factory=dict)  # of those: name -> how much of the flops and bytes it does
