"""`linformer`: softmax attention to projected keys and values."""

from __future__ import annotations

from .._core._checks import check_number
from .._core._recipe import makers
from .._recurrence import _plans
from .._recurrence._function import tensor_type
from ._module import Module, check_causal, make_plan

__all__ = ["linformer"]

# Of Σ_t e[t, r] k[t, d], the projection of one head or of all.
_SOURCE, _RESULT = "(b, h, r, d, t) -> (b, h, t, d)", "(b, h, r, d, t) -> (b, h, r, d)"
_PROJECTIONS = {2: "(b, h, r, d, t) -> (t, r)", 3: "(b, h, r, d, t) -> (h, t, r)"}


def linformer(q, k, v, e, f=None, *, causal=False, scale=None, out=None, num_threads=None, target=None):
    """Softmax attention to R sums of keys and values over all tokens, in O(T · R) time::

        o = softmax(scale · q (eᵀk)ᵀ) (fᵀv)

    See Wang et al., "Linformer: Self-Attention with Linear Complexity", 2020. The sums are
    products of matrices inside the compiled function.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32 or float64.
      k, v: ``[B, Tk, Hk, K]`` and ``[B, Tk, Hv, V]``, of q's rank and dtype. Head counts divide
        one another.
      e: ``[Tk, R]``, or ``[Hk, Tk, R]`` with weights for each head; any floating-point dtype.
      f: ``[Tk, R]`` or ``[Hv, Tk, R]``; e unless given.
      causal: False. A sum over all tokens shows every query its future.
      scale: multiplies the scores; K**-0.5 unless given.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      ``o`` ``[B, T, max(Hq, Hk, Hv), V]``, of q's kind, rank and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    key = ("linformer", f is None, causal, scale, target)
    operands = (q, k, v, e) if f is None else (q, k, v, e, f)
    return _plans.find(key)(operands, None, out, False, num_threads)


def _make_plan(is_shared, causal, scale, target):
    check_causal(causal, "linformer", "whose projected keys are sums over the tokens of all positions")
    scale = check_number("scale", scale)
    operands = [("e", "parameter", "Tk R | Hk Tk R")]
    if not is_shared:
        operands.append(("f", "parameter", "Tk R | Hv Tk R"))

    def text(dtype, extents, types):
        return _linformer_text(dtype, extents, types, scale)

    return make_plan("linformer", text, operands, [], target)


makers["linformer"] = _make_plan


def _linformer_text(dtype, extents, types, scale):
    module, R = Module(dtype, extents, scale), extents["R"]
    q, k, v = module.wide_tokens()
    s = module.sizes
    module.chosen = [f"keys and values are summed to {R} each by products of matrices; softmax of [T, {R}] scores"]
    projections = []
    for name, heads, (_, rank, scalar) in zip("ef", (s.Hk, s.Hv), types):
        shape = (s.Tk, R) if rank == 2 else (heads, s.Tk, R)
        projections.append(module.convert(module.argument(name, tensor_type(*shape, scalar)), scalar))
    projections = projections * 2 if len(projections) == 1 else projections
    projected = []
    for name, token, projection, heads, size in zip("kv", (k, v), projections, (s.Hk, s.Hv), (s.K, s.V)):
        (batch,) = module.sizes_of(name, token, [0])
        zeros = module.zeros(name, tensor_type(None, heads, R, size, module.scalar), batch)
        rank = module.types[projection].count("x")
        maps = (_PROJECTIONS[rank], _SOURCE, _RESULT)
        projected.append(module.contract(f"{name}_sums", maps, projection, token, zeros))
    o = module.attend("o", q, *projected, module.output_type)
    return module.finish("linformer", [module.narrow(o)])
