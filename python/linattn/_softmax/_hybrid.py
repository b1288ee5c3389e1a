"""`hybrid`: softmax in a window beside linear attention to everything, in one function."""

from __future__ import annotations

import numpy as np

from .._core._checks import check_flag, check_number
from .._core._literals import float_literal
from .._core._recipe import makers
from .._maps import _features
from .._recurrence import _function, _plans
from .._recurrence._function import tensor_type

__all__ = ["hybrid"]

_TOKENS = "(b, h, t, d) -> (b, h, t, d)"
_SHARES = {1: "(b, h, t, d) -> (h)", 3: "(b, h, t, d) -> (b, h, t)"}


def hybrid(
    q, k, v, share, *, window, feature_map="elu", normalize=True, eps=None, scale=None, out=None, num_threads=None,
    target=None,
):  # fmt: skip
    """Causal softmax attention in a window, and causal linear attention, mixed::

        o = share · softmax_window(scale · q kᵀ) v + (1 − share) · linear(φ(q) φ(k)ᵀ) v

    in one compiled function of three passes. See Arora et al., "Simple linear attention
    language models balance the recall-throughput tradeoff" (Based), 2024.

    Args:
      q, k, v: as in `linattn.attention`, T tokens each.
      share: ``[H]`` for the heads of the result, or ``[B, T, H]``; any floating-point dtype.
      window: how many tokens, itself among them, the softmax of a token sees.
      feature_map, normalize, eps: of the linear attention, as in `linattn.attention`: ``taylor()`` for Based.
      scale: multiplies the scores of the softmax; K**-0.5 unless given.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      ``o`` ``[B, T, H, V]`` with H = max(Hq, Hk, Hv), of q's kind, rank and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    feature_map, maps = _features.split(feature_map, q, k, False)
    plan = _plans.find(("hybrid", window, feature_map, normalize, eps, scale, target))
    return plan((q, k, v, *maps, share), None, out, False, num_threads)


def _make_plan(window, feature_map, normalize, eps, scale, target):
    if isinstance(window, bool) or not isinstance(window, (int, np.integer)):
        raise TypeError(f"window: expected an integer, but got {type(window).__name__}")
    if not 0 < window < 2**31:
        raise ValueError(f"window: expected a number in [1, 2**31), but got {window}")
    normalize, softmax_scale = check_flag("normalize", normalize), check_number("scale", scale)
    phi = _features.parse(feature_map)
    options = _function.Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, normalize=normalize, causal=True,
        denominator=_plans.check_denominator((eps, None, None, None), normalize), gates=("share",),
    )  # fmt: skip

    def text(options, sizes, others, maps=()):
        return _hybrid_text(options, sizes, others, maps, int(window), softmax_scale)

    return _plans.make_plan(
        options, text, scale=None, target=_plans.parse_target(target), what="hybrid",
        gates=[("share", "gate", "Ho | B T Ho")], same_length=True,
    )  # fmt: skip


makers["hybrid"] = _make_plan


def _hybrid_text(options, sizes, others, maps, window, scale):
    f = _function.Function(options, sizes, maps)
    f.chosen = [f"softmax in a window of {window}, a scan over all tokens, then their mix: three passes"]
    f.refused = ["one pass over blocks of tokens: no more tasks than heads, where the window has one for every few queries"]
    tokens = f.token_arguments()
    mapped = f.mapped_tokens(tokens)
    ((rank, dtype),) = others
    shape = (sizes.Ho,) if rank == 1 else (None, sizes.Ho, sizes.T)
    share = f.argument("share", tensor_type(*shape, dtype))
    near_type = tensor_type(None, sizes.Ho, sizes.T, sizes.V, f.dtype)
    scale = sizes.K**-0.5 if scale is None else scale
    near = f"linattn.attention {', '.join(tokens)} weights(softmax) {{causal, scale = {float_literal(scale)}, "
    f.op(["near"], f"{near}pattern = #linattn.pattern<window = {window}>}}", tokens, [near_type])
    far = f"linattn.attention {', '.join(mapped)}{f.attributes('causal', 'feature_map', 'normalize')}"
    f.op(["far"], far, mapped, [f.output_type])
    dest = f.empty("dest", near_type, f.dim("Bq", tokens[0], 0), None if sizes.Ho else f.dim("Ho", "%near", 1),
                   f.dim("T", tokens[0], 2) if sizes.T is None else None)  # fmt: skip
    values = (("share", dtype), ("near", f.dtype), ("far", f.op_dtype))
    body = []
    for i, (name, given) in enumerate(values):
        op = "" if given == f.scalar else "extf" if given in ("f16", "bf16") or f.scalar == "f64" else "truncf"
        text = f"arith.{op} %x{i} : {given} to {f.scalar}" if op else f"arith.addf %x{i}, %none : {f.scalar}"
        body.append(f"%{name}_n = {text}")
    body += [
        f"%difference = arith.subf %near_n, %far_n : {f.scalar}", f"%part = arith.mulf %share_n, %difference : {f.scalar}",
        f"%sum = arith.addf %far_n, %part : {f.scalar}",
    ]  # fmt: skip
    last = "%sum"
    if f.dtype != f.scalar:
        body.append(f"%last = arith.truncf %sum : {f.scalar} to {f.dtype}")
        last = "%last"
    f.define("none", f"arith.constant -0.0 : {f.scalar}")
    inputs = ", ".join(f"%x{i}: {given}" for i, (_, given) in enumerate(values))
    maps = ", ".join(f"affine_map<{map_}>" for map_ in (_SHARES[rank], _TOKENS, _TOKENS, _TOKENS))
    lines = "\n".join("    " + line for line in (*body, f"linalg.yield {last} : {f.dtype}"))
    f.define(
        "o", f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} '
        f"ins({share}, %near, %far : {f.types[share]}, {near_type}, {f.output_type}) outs({dest} : {near_type}) {{\n"
        f"  ^bb0({inputs}, %y: {f.dtype}):\n{lines}\n  }} -> {near_type}", near_type,
    )  # fmt: skip
    return f.finish("hybrid", ["%o"])
