"""Softmax attention whose weights are dropped by a seed."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._core import _arrays
from .._core._checks import check_number
from .._core._recipe import makers
from .._recurrence import _function, _plans
from .._recurrence._function import tensor_type
from ._module import make_plan

__all__ = ["attend_with_dropout", "check_dropout"]


def check_dropout(dropout, seed, refused):
    """The share of weights to drop as a number.

    Args:
      refused: options that dropout does not go with, those that are given, by name.
    """
    dropout = check_number("dropout", dropout, minimum=0.0)
    if dropout is None or dropout >= 1:
        raise ValueError(f"dropout: expected a number in [0, 1), but got {dropout}")
    if seed is None:
        raise ValueError("seed: expected an integer with dropout, but got None")
    for name in refused:
        raise ValueError(f"{name}: expected none beside dropout, but got one")
    return dropout


def attend_with_dropout(q, k, v, dropout, seed, mask, causal, scale, softcap, out, num_threads, target):
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not 0 <= seed < 2**63:
            raise ValueError(f"seed: expected a number in [0, 2**63), but got {seed}")
        seed = _arrays.integers_like([int(seed)], q)
    elif getattr(seed, "shape", None) != (1,):
        raise TypeError(f"seed: expected an integer or an array of one, but got {type(seed).__name__}")
    key = ("dropout", dropout, mask is None, causal, scale, softcap, target)
    operands = (q, k, v, seed) if mask is None else (q, k, v, seed, mask)
    return _plans.find(key)(operands, None, out, False, num_threads)


def _make_plan(dropout, no_mask, causal, scale, softcap, target, recorded=False):
    operands = [("seed", "positions", "Ts"), *([] if no_mask else [("mask", "mask", "B Tk")])]

    def text(dtype, extents, types):
        return _dropout_text(dropout, causal, scale, softcap, dtype, extents, types[0][2], not no_mask, recorded)

    results = [("log_sum", "state", "B Ho T")] if recorded else []
    recording = {"keeps_results": True} if recorded else {"recorded": "recorded_dropout"}
    return make_plan("attention", text, operands, [], target, results, **recording)


makers["dropout"] = _make_plan
makers["recorded_dropout"] = partial(_make_plan, recorded=True)


def _dropout_text(dropout, causal, scale, softcap, dtype, extents, seed_type, has_mask, recorded):
    """`linattn.softmax` with a seed that lies in memory; `recorded` as well its log-sum-exp, for the gradient."""
    options = _function.Options(
        weights="softmax", causal=causal, softcap=softcap, dropout=dropout, scale=extents["K"] ** -0.5 if scale is None else scale
    )
    f = _function.Function(options, _function.Sizes.of(dtype, extents))
    f.chosen = ["weights drawn by Philox4x32-10 of their places, where they are used"]
    tokens = f.token_arguments()
    seed = f.argument("seed", f"tensor<?x{seed_type}>")
    mask = f.argument("mask", tensor_type(None, f.sizes.Tk, "i1")) if has_mask else None
    f.constant_index(0)
    number = f.define("number", f"tensor.extract {seed}[%c0] : tensor<?x{seed_type}>", seed_type)
    if seed_type != "i64":
        number = f.define("wide_number", f"arith.extsi {number} : {seed_type} to i64", "i64")
    results = f.softmax(tokens, {"mask": mask, "seed": number})
    return f.finish("attention", results if recorded else results[:1], keeps_results=recorded)
