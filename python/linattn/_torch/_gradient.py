"""Gradients, by kernels that are derived from those of the calls."""

from __future__ import annotations

import torch

from .._checks import UnsupportedError

__all__ = ["check", "run"]


def check(call, arrays, wanted):
    """Raises an UnsupportedError that names an operand without a gradient."""
    for name, role, array, is_wanted in zip(call.names, call.roles, arrays, wanted):
        if is_wanted and not array.dtype.is_floating_point:
            raise UnsupportedError(f"{call.what}: expected no gradient of {name}, but one is required")


def run(call, arrays, cotangents, given, wanted, num_threads):
    raise UnsupportedError(f"{call.what}: has no gradient yet")
