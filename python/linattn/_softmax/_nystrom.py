"""`nystrom`: softmax attention from the scores of landmarks."""

from __future__ import annotations

import numpy as np

from .._core._checks import check_flag, check_number
from .._core._literals import float_literal
from .._core._recipe import makers
from .._recurrence import _plans
from .._recurrence._function import tensor_type
from ._module import PRODUCT, Module, check_causal, make_plan

__all__ = ["nystrom"]

_MATRIX = "(b, h, i, j) -> (b, h, i, j)"
_TRANSPOSED = "(b, h, i, j) -> (b, h, j, i)"
_OF_HEAD = "(b, h, i, j) -> (b, h)"
_PARALLEL = ("parallel",) * 4


def nystrom(
    q, k, v, *, landmarks=64, iterations=6, return_residual=False, causal=False, scale=None, out=None,
    num_threads=None, target=None,
):  # fmt: skip
    """Softmax attention by Nyström's method from m landmarks, in O(T · m) time::

        o = softmax(q k̃ᵀ) · A⁺ · (softmax(q̃ kᵀ) v)        A = softmax(q̃ k̃ᵀ)

    with the landmarks q̃, k̃ the means of m segments, whose lengths differ by one at most, and A⁺ the pseudo-inverse
    of each head by the iteration ``Z ← Z/4 (13 − AZ (15 − AZ (7 − AZ)))`` from ``Aᵀ / (‖A‖₁ ‖A‖∞)``. See
    Xiong et al., "Nyströmformer", 2021.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32 or float64.
      k, v: ``[B, Tk, Hk, K]`` and ``[B, Tk, Hv, V]``, of q's rank and dtype. Head counts divide
        one another.
      landmarks: m, at most T and Tk; fastest where it divides them.
      iterations: of the pseudo-inverse.
      return_residual: also return how far the iteration is from its limit.
      causal: False. The means of segments, and A⁺, show every query its future.
      scale: multiplies the scores; K**-0.5 unless given.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      ``o`` ``[B, T, H, V]`` with H = max(Hq, Hk, Hv), of q's kind, rank and dtype; with
      `return_residual`, ``(o, residual)``: ``‖A Z A − A‖ / ‖A‖`` in the Frobenius norm, ``[B, H]``, float32 or
      float64.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    lengths = [_count_tokens(name, tokens) for name, tokens in (("q", q), ("k", k))]
    divides = _divides(landmarks, lengths)
    key = ("nystrom", landmarks, divides, iterations, return_residual, causal, scale, target)
    return _plans.find(key)((q, k, v), None, out, False, num_threads)


def _count_tokens(name, tokens):
    shape = getattr(tokens, "shape", None)
    if shape is None or len(shape) < 2:
        got = type(tokens).__name__ if shape is None else f"shape {tuple(shape)}"
        raise TypeError(f"{name}: expected an array of tokens, but got {got}")
    return shape[1 if len(shape) > 2 else 0]


def _divides(landmarks, lengths):
    """Whether all segments are of one length."""
    if isinstance(landmarks, bool) or not isinstance(landmarks, (int, np.integer)):
        raise TypeError(f"landmarks: expected an integer, but got {type(landmarks).__name__}")
    for name, length in zip("qk", lengths):
        if not 0 < landmarks <= length:
            raise ValueError(f"landmarks: expected a number in [1, {length}], the tokens of {name}, but got {landmarks}")
    return all(length % landmarks == 0 for length in lengths)


def _make_plan(landmarks, divides, iterations, return_residual, causal, scale, target):
    check_causal(causal, "nystrom", "whose landmarks are means over the tokens of all positions")
    if isinstance(iterations, bool) or not isinstance(iterations, (int, np.integer)):
        raise TypeError(f"iterations: expected an integer, but got {type(iterations).__name__}")
    if not 0 < iterations < 2**31:
        raise ValueError(f"iterations: expected a number in [1, 2**31), but got {iterations}")
    scale, return_residual = check_number("scale", scale), check_flag("return_residual", return_residual)

    def text(dtype, extents, types):
        return _nystrom_text(dtype, extents, landmarks, divides, iterations, return_residual, scale)

    results = [("residual", "state", "N Ho")] if return_residual else []
    return make_plan("nystrom", text, [], [], target, results)


makers["nystrom"] = _make_plan


def _nystrom_text(dtype, extents, m, divides, iterations, return_residual, scale):
    f = Module(dtype, extents, scale)
    s, scalar = f.sizes, f.scalar
    means = "means of segments of one length" if divides else "products with weights, since their number does not divide the tokens"
    f.chosen = [
        f"{m} landmarks, {means}; softmax of [T, {m}], [{m}, {m}] and [{m}, T] scores",
        f"pseudo-inverse by {iterations} iterations of four products; return_residual=True returns how far it is from its limit",
    ]  # fmt: skip
    q, k, v = f.wide_tokens()
    f.lines.append(f"  %zero = arith.constant 0.0 : {scalar}")
    f.lines.append(f"  %one = arith.constant 1.0 : {scalar}")
    means = _means if divides else _uneven_means
    few_q, few_k = (means(f, name, x, m, heads) for name, x, heads in (("q", q, s.Hq), ("k", k, s.Hk)))
    (batch,) = f.sizes_of("v", v, [0])
    unit = f.empty("unit_empty", tensor_type(None, s.Hv, m, m, scalar), batch)
    unit = f.generic("unit", [_MATRIX], _PARALLEL, [], unit, _diagonal(1.0, scalar, "%zero"))
    a = f.attend("a", few_q, few_k, unit, tensor_type(None, s.Ho, m, m, scalar))
    inverse = _pseudo_inverse(f, a, batch, m, iterations)
    values = f.attend("read", few_q, k, v, tensor_type(None, s.Ho, m, s.V, scalar))
    maps = [PRODUCT[name] for name in ("left", "right", "result")]
    values = f.contract("values", maps, inverse, values, f.zeros("values", tensor_type(None, s.Ho, m, s.V, scalar), batch))
    results = [f.narrow(f.attend("o", q, few_k, values, f.output_type))]
    if return_residual:
        results.append(_residual(f, a, inverse, batch))
    return f.finish("nystrom", results)


def _means(f, name, tokens, m, heads):
    """The means of m segments, `[B, H, m, D]`."""
    batch, length = f.sizes_of(name, tokens, [0, 2])
    size = f.sizes.K
    if length is None:
        extent = f.sizes.T if name == "q" else f.sizes.Tk
        part, count = str(extent // m), extent // m
    else:
        f.lines.append(f"  %{name}_m = arith.constant {m} : index")
        part = f.define(f"{name}_part", f"arith.divsi {length}, %{name}_m : index")
        count = None
    type_ = tensor_type(None, heads, m, count, size, f.scalar)
    split = f.define(
        f"{name}_split",
        f"tensor.expand_shape {tokens} [[0], [1], [2, 3], [4]] output_shape [{batch}, {heads}, {m}, {part}, {size}] "
        f": {f.types[tokens]} into {type_}",
        type_,
    )
    if count is None:
        f.define(f"{name}_wide_part", f"arith.index_cast {part} : index to i64")
        f.define(f"{name}_count", f"arith.sitofp %{name}_wide_part : i64 to {f.scalar}")
    else:
        f.define(f"{name}_count", f"arith.constant {float_literal(float(count), f.scalar)} : {f.scalar}")
    weight = f.define(f"{name}_weight", f"arith.divf %one, %{name}_count : {f.scalar}")
    zeros = f.zeros(f"{name}_means", tensor_type(None, heads, m, size, f.scalar), batch)
    # All heads of a segment in turn: their rows are neighbours in memory.
    maps = ["(b, i, h, d, t) -> (b, h, i, t, d)", "(b, i, h, d, t) -> (b, h, i, d)"]
    body = [
        f"%0 = arith.mulf %x0, {weight} : {f.scalar}", f"%1 = arith.addf %y, %0 : {f.scalar}",
        f"linalg.yield %1 : {f.scalar}",
    ]  # fmt: skip
    return f.generic(f"{name}_means", maps, (*_PARALLEL, "reduction"), [split], zeros, body)


def _uneven_means(f, name, tokens, m, heads):
    """The means where segment i is [i T / m, (i + 1) T / m), rounded down: a product with the weights."""
    scalar, size = f.scalar, f.sizes.K
    batch, length = f.sizes_of(name, tokens, [0, 2])
    extent = f.sizes.T if name == "q" else f.sizes.Tk
    if length is None:
        length = f"%{name}_length"
        f.lines.append(f"  {length} = arith.constant {extent} : index")
        type_, dims = tensor_type(m, extent, scalar), ()
    else:
        type_, dims = tensor_type(m, None, scalar), (length,)
    body = [
        f"%m = arith.constant {m} : index", "%i = linalg.index 0 : index", "%t = linalg.index 1 : index",
        "%n = arith.constant 1 : index", "%i1 = arith.addi %i, %n : index",
        f"%0 = arith.muli %i, {length} : index", "%begin = arith.divsi %0, %m : index",
        f"%1 = arith.muli %i1, {length} : index", "%end = arith.divsi %1, %m : index",
        "%after = arith.cmpi sge, %t, %begin : index", "%before = arith.cmpi slt, %t, %end : index",
        "%inside = arith.andi %after, %before : i1", "%count = arith.subi %end, %begin : index",
        "%wide = arith.index_cast %count : index to i64", f"%number = arith.sitofp %wide : i64 to {scalar}",
        f"%weight = arith.divf %one, %number : {scalar}", f"%w = arith.select %inside, %weight, %zero : {scalar}",
        f"linalg.yield %w : {scalar}",
    ]  # fmt: skip
    empty = f.empty(f"{name}_weights_empty", type_, *dims)
    weights = f.generic(f"{name}_weights", ["(i, t) -> (i, t)"], _PARALLEL[:2], [], empty, body)
    maps = ["(b, h, i, d, t) -> (i, t)", "(b, h, i, d, t) -> (b, h, t, d)", "(b, h, i, d, t) -> (b, h, i, d)"]
    zeros = f.zeros(f"{name}_means", tensor_type(None, heads, m, size, scalar), batch)
    return f.contract(f"{name}_means", maps, weights, tokens, zeros)


def _diagonal(number, scalar, other, subtract=None):
    """A body that gives `number` on the diagonal and `other` beside it, less a value."""
    return [
        f"%n = arith.constant {float_literal(number, scalar)} : {scalar}",
        "%i = linalg.index 2 : index", "%j = linalg.index 3 : index", "%is = arith.cmpi eq, %i, %j : index",
        f"%0 = arith.select %is, %n, {other} : {scalar}",
        *([f"%1 = arith.subf %0, {subtract} : {scalar}"] if subtract else []),
        f"linalg.yield {'%1' if subtract else '%0'} : {scalar}",
    ]  # fmt: skip


def _pseudo_inverse(f, a, batch, m, iterations):
    """Z of every head. Rows of A sum to one, so that ‖A‖∞ = 1."""
    scalar, heads = f.scalar, f.sizes.Ho
    columns = f.zeros("columns", tensor_type(None, heads, m, scalar), batch)
    body = [f"%0 = arith.addf %y, %x0 : {scalar}", f"linalg.yield %0 : {scalar}"]
    columns = f.generic(
        "columns", ["(b, h, j, i) -> (b, h, i, j)", "(b, h, j, i) -> (b, h, j)"],
        ("parallel", "parallel", "parallel", "reduction"), [a], columns, body,
    )  # fmt: skip
    body = [f"%0 = arith.maximumf %y, %x0 : {scalar}", f"linalg.yield %0 : {scalar}"]
    norm = f.generic(
        "norm", ["(b, h, j) -> (b, h, j)", "(b, h, j) -> (b, h)"], ("parallel", "parallel", "reduction"), [columns],
        f.zeros("norm", tensor_type(None, heads, scalar), batch), body,
    )  # fmt: skip
    matrix = f.types[a]
    body = [f"%0 = arith.divf %x0, %x1 : {scalar}", f"linalg.yield %0 : {scalar}"]
    start = f.generic("z0", [_TRANSPOSED, _OF_HEAD, _MATRIX], _PARALLEL, [a, norm], f.empty("z0_empty", matrix, batch), body)
    empty = f.empty("matrix", matrix, batch)
    count, f.types["%z"] = len(f.lines), matrix
    az = _multiply(f, "az", a, "%z", batch)
    inner = az
    for number in (7.0, 15.0, 13.0):
        name = f"factor{int(number)}"
        inner = f.generic(name, [_MATRIX, _MATRIX], _PARALLEL, [inner], empty, _diagonal(number, scalar, "%zero", "%x0"))
        if number != 13.0:
            inner = _multiply(f, f"{name}_az", az, inner, batch)
    product = _multiply(f, "four_z", "%z", inner, batch)
    body = [
        f"%n = arith.constant 0.25 : {scalar}", f"%0 = arith.mulf %x0, %n : {scalar}", f"linalg.yield %0 : {scalar}",
    ]  # fmt: skip
    # In the place of Z, whose sizes are then those of the loop's result.
    f.generic("z1", [_MATRIX, _MATRIX], _PARALLEL, [product], "%z", body)
    lines = f.lines[count:]
    del f.lines[count:]
    for name, number in (("first", 0), ("step", 1), ("last", iterations)):
        f.lines.append(f"  %{name} = arith.constant {number} : index")
    loop = f"scf.for %iteration = %first to %last step %step iter_args(%z = {start}) -> ({matrix}) {{"
    return f.define("inverse", "\n".join([loop, *lines, f"  scf.yield %z1 : {matrix}", "  }"]), matrix)


def _multiply(f, name, left, right, batch):
    """The product of square matrices, which starts from zeros of its own: they need no pass over memory."""
    maps = [PRODUCT[name] for name in ("left", "right", "result")]
    return f.contract(name, maps, left, right, f.zeros(name, f.types[left], batch))


def _residual(f, a, z, batch):
    """‖A Z A − A‖ / ‖A‖ of every head."""
    scalar = f.scalar
    aza = _multiply(f, "residual_aza", _multiply(f, "residual_az", a, z, batch), a, batch)
    type_ = tensor_type(None, f.sizes.Ho, scalar)
    sums = []
    for name, inputs, value in (("error", [aza, a], "%d"), ("size", [a, a], "%x0")):
        body = [f"%d = arith.subf %x0, %x1 : {scalar}", f"%0 = arith.mulf {value}, {value} : {scalar}",
                f"%1 = arith.addf %y, %0 : {scalar}", f"linalg.yield %1 : {scalar}"]  # fmt: skip
        sums.append(f.generic(
            name, [_MATRIX, _MATRIX, _OF_HEAD], ("parallel", "parallel", "reduction", "reduction"), inputs,
            f.zeros(name, type_, batch), body,
        ))  # fmt: skip
    body = [f"%0 = arith.divf %x0, %x1 : {scalar}", f"%1 = math.sqrt %0 : {scalar}", f"linalg.yield %1 : {scalar}"]
    of_head = "(b, h) -> (b, h)"
    return f.generic("residual", [of_head] * 3, _PARALLEL[:2], sums, f.empty("residual_empty", type_, batch), body)
