"""Families whose weights are a polynomial of q·k, by their features."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._core._checks import UnsupportedError, check_flag, check_number
from .._recurrence import _scan
from ._define import define

_RETURNS = "``o [B, T, H, V]``, of q's kind and dtype."


def _pairs(x):
    """Features whose product is (x·y)²: x_i², and √2 x_i x_j for i < j."""
    first, second = np.triu_indices(x.shape[-1])
    return x[..., first] * x[..., second] * np.where(first == second, 1.0, 2**0.5).astype(x.dtype)


def _taylor(x):
    """Features whose product is 1 + x·y + (x·y)²/2."""
    ones = np.ones((*x.shape[:-1], 1), x.dtype)
    return np.concatenate([ones, x, _pairs(x) * x.dtype.type(0.5**0.5)], axis=-1)


def _run(features, q, k, v, scale, normalize, eps):
    """Features in float32, or in the float64 of the tokens, and a scan over them.

    Args:
      scale: None is K**-0.5.
    """
    like, tokens = q, []
    for name, array in (("q", q), ("k", k), ("v", v)):
        array = _arrays.to_numpy(array, name)
        if _arrays.dtype_name(array) not in ("float16", "bfloat16", "float32", "float64"):
            raise TypeError(f"{name}: expected float16, bfloat16, float32 or float64, but got {array.dtype}")
        if array.ndim != 4:
            raise ValueError(f"{name}: expected shape (B, T, H, D), but got {array.shape}")
        tokens.append(array if array.dtype == np.float64 else array.astype(np.float32))
    q, k, v = tokens
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"k: expected the head size of q, {q.shape[-1]}, but got {k.shape[-1]}")
    if scale is None:
        scale = q.shape[-1] ** -0.5
    root = q.dtype.type(abs(scale) ** 0.5)
    sign = q.dtype.type(-1 if scale < 0 else 1)
    o = _scan.scan(
        features(q * (root * sign)), features(k * k.dtype.type(root)), v, normalize=normalize,
        eps=eps if normalize else None, scale=1.0,
    )  # fmt: skip
    return _arrays.cast_like(_arrays.convert_like(o, like), like)


def _based(q, k, v, scale, use_norm):
    scale = check_number("scale", scale)
    use_norm = check_flag("use_norm", use_norm)
    return _run(_taylor, q, k, v, scale, use_norm, 1e-6)


parallel_based, fused_chunk_based = define(
    _based,
    "Based: the second Taylor polynomial of the exponential as weights, causal.",
    "w_tj = 1 + y + y²/2,  y = scale · q_t·k_j,  j ≤ t\no_t = Σ_j w_tj v_j / (Σ_j w_tj + 1e-6)",
    [
        "parallel_based(q, k, v, scale=None, use_norm=True)",
        "fused_chunk_based(q, k, v, scale=None, use_norm=True)",
    ],
    "The weights are a product of 1 + K + K(K+1)/2 features, which are formed, of any head size K.",
    scale="multiplies q·k; K**-0.5 if None.",
    use_norm="divide by the sum of the weights.",
    returns=_RETURNS,
)


def _rebased(q, k, v, eps, use_scale, use_normalize, return_both):
    if check_flag("return_both", return_both):
        raise UnsupportedError("return_both: expected False, but got True")
    scale = None if check_flag("use_scale", use_scale) else 1.0
    eps = check_number("eps", eps, minimum=0.0)
    return _run(_pairs, q, k, v, scale, check_flag("use_normalize", use_normalize), eps)


(parallel_rebased,) = define(
    _rebased,
    "ReBased: squares as weights, causal.",
    "w_tj = (scale · q_t·k_j)²,  j ≤ t\no_t = Σ_j w_tj v_j / (Σ_j w_tj + eps)",
    ["parallel_rebased(q, k, v, eps=1e-5, use_scale=True, use_normalize=True, return_both=False)"],
    "The weights are a product of K(K+1)/2 features, which are formed, of any head size K.",
    eps="added to the sum of the weights.",
    use_scale="whether scale is K**-0.5 or 1.",
    use_normalize="divide by the sum of the weights.",
    return_both="False: the sums apart are not returned.",
    returns=_RETURNS,
)
