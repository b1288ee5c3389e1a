"""Products of matrices, reductions, and norms."""

from __future__ import annotations

import numpy as np

from ._elementwise import join, pointwise
from ._shapes import transpose
from ._values import Value, is_float

__all__ = ["HANDLERS"]


def _sums_of(element):
    return "f64" if element == "f64" else "f32" if is_float(element) else element


def _narrow(node, value, element):
    if value.element == element:
        return value
    return pointwise(node, [value], element, lambda body, x: body.convert(x, value.element, element))


def product(node, a, b):
    """[…, M, K] · […, K, N] with leading dimensions that broadcast; sums are float32 or better."""
    if a.element != b.element or not is_float(a.element):
        raise node.refuse("matrices of one type of floating point", f"{a.element} and {b.element}")
    join(node, [(a.dims[-1],), (b.dims[-2],)])
    batch = join(node, [a.dims[:-2], b.dims[:-2]])
    rank, sums = len(batch), _sums_of(a.element)
    into = node.writer.filled(sums, (*batch, a.dims[-2], b.dims[-1]), 0)

    def loops(value, *last):
        lead = [None if size == 1 else rank - (value.rank - 2) + i for i, size in enumerate(value.dims[:-2])]
        return [*lead, *last]

    m, n, k = rank, rank + 1, rank + 2

    def compute(body, x, y, sum_):
        x, y = (body.convert(scalar, a.element, sums) for scalar in (x, y))
        return body.apply("arith.addf", sums, sum_, body.apply("arith.mulf", sums, x, y))

    maps = [loops(a, m, k), loops(b, k, n), [*range(rank), m, n]]
    return _narrow(node, node.writer.generic(into, [a, b], maps, compute, reductions=(k,)), a.element)


def _matmul(node):
    a, b = node.inputs
    w = node.writer
    if min(a.rank, b.rank) < 1:
        raise node.refuse("operands of rank 1 and more", "a scalar")
    left, right = a, b
    if a.rank == 1:
        left = w.reshape(a, (1, *a.dims))
    if b.rank == 1:
        right = w.reshape(b, (*b.dims, 1))
    result = product(node, left, right)
    dims = list(result.dims)
    if b.rank == 1:
        dims.pop(-1)
    if a.rank == 1:
        dims.pop(-1 if b.rank == 1 else -2)
    return w.reshape(result, dims)


def _gemm(node):
    a, b, c = node.input(0), node.input(1), node.input(2)
    if a.rank != 2 or b.rank != 2:
        raise node.refuse("two matrices", f"ranks {a.rank} and {b.rank}")
    a = transpose(node, a, [1, 0]) if node.get("transA", 0) else a
    b = transpose(node, b, [1, 0]) if node.get("transB", 0) else b
    result = product(node, a, b)
    alpha, beta, element = node.get("alpha", 1.0), node.get("beta", 1.0), result.element

    def compute(body, x, *rest):
        if alpha != 1:
            x = body.apply("arith.mulf", element, x, body.number(element, alpha))
        for y in rest:
            if beta != 1:
                y = body.apply("arith.mulf", element, y, body.number(element, beta))
            x = body.apply("arith.addf", element, x, y)
        return x

    if c is None and alpha == 1:
        return result
    return pointwise(node, [result, *([] if c is None else [c])], element, compute)


def reduce(node, value, axes, start, compute, element=None):
    """A reduction that leaves sizes of 1. `compute` takes the body, a scalar and the one so far."""
    element = element or value.element
    dims = [1 if axis in axes else size for axis, size in enumerate(value.dims)]
    into = node.writer.filled(element, dims, start)
    maps = [list(range(value.rank)), [None if axis in axes else axis for axis in range(value.rank)]]

    def convert(body, x, so_far):
        return compute(body, body.convert(x, value.element, element), so_far)

    return node.writer.generic(into, [value], maps, convert, reductions=tuple(axes))


def _sum(node, value, axes, square=False):
    """Sums in float32 or better, of numbers or of their squares."""
    element = _sums_of(value.element)
    add = "arith.addf" if is_float(element) else "arith.addi"

    def compute(body, x, so_far):
        return body.apply(add, element, so_far, body.apply("arith.mulf", element, x, x) if square else x)

    return reduce(node, value, axes, 0, compute, element)


def _mean(node, value, axes, square=False):
    total = _sum(node, value, axes, square)
    return _divide(node, total, node.writer.product([value.dims[axis] for axis in axes]))


def _divide(node, value, count):
    """By a number of elements."""
    element = value.element
    if isinstance(count, int):
        return pointwise(
            node, [value], element, lambda body, x: body.apply("arith.divf", element, x, body.number(element, count))
        )

    def compute(body, x):
        whole = body.emit(f"arith.index_cast {count} : index to i64")
        return body.apply("arith.divf", element, x, body.emit(f"arith.sitofp {whole} : i64 to {element}"))

    return pointwise(node, [value], element, compute)


def _reduction(compute):
    def write(node):
        value = node.inputs[0]
        axes = node.integers(1, "axes") if len(node.inputs) > 1 else node.get("axes")
        if not axes:
            if axes is not None and node.get("noop_with_empty_axes", 0):
                return value
            axes = range(value.rank)
        axes = sorted(node.axis(axis, value.rank) for axis in axes)
        result = _narrow(node, compute(node, value, axes), value.element)
        if node.get("keepdims", 1):
            return result
        return node.writer.reshape(result, [size for axis, size in enumerate(result.dims) if axis not in axes])

    return write


def _extreme(operation, start):
    def compute(node, value, axes):
        if not is_float(value.element):
            raise node.refuse("an operand of floating point", value.element)
        return reduce(node, value, axes, start, lambda body, x, y: body.apply(f"arith.{operation}", value.element, x, y))

    return compute


def _softmax(node, logarithm=False):
    (x,) = node.inputs
    if node.opset < 13:
        raise node.refuse("opset 13 or later", str(node.opset))
    axes = [node.axis(node.get("axis", -1), x.rank)]
    wide = _narrow(node, x, _sums_of(x.element))
    most = _extreme("maximumf", float("-inf"))(node, wide, axes)
    element = wide.element
    powers = pointwise(
        node, [wide, most], element, lambda body, a, b: body.apply("math.exp", element, body.apply("arith.subf", element, a, b))
    )
    total = _sum(node, powers, axes)
    return pointwise(
        node, [powers, total], x.element,
        lambda body, a, b: body.convert(body.apply("arith.divf", element, a, b), element, x.element),
    )  # fmt: skip


def _stash(node, x):
    """The operand in the type that the standard computes norms in."""
    return _narrow(node, x, _sums_of(x.element))


def _inverse_root(body, element, x, epsilon):
    root = body.apply("math.sqrt", element, body.apply("arith.addf", element, x, body.number(element, epsilon)))
    return body.apply("arith.divf", element, body.number(element, 1), root)


def _layer_norm(node):
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    axes = list(range(node.axis(node.get("axis", -1), x.rank), x.rank))
    wide = _stash(node, x)
    element, epsilon = wide.element, node.get("epsilon", 1e-5)
    mean = _mean(node, wide, axes)
    centred = pointwise(node, [wide, mean], element, lambda body, a, b: body.apply("arith.subf", element, a, b))
    variance = _mean(node, centred, axes, square=True)
    factor = pointwise(node, [variance], element, lambda body, v: _inverse_root(body, element, v, epsilon))
    return [_scaled(node, centred, factor, scale, bias, x.element), mean, factor]


def _rms_norm(node):
    x, scale = node.inputs
    axes = list(range(node.axis(node.get("axis", -1), x.rank), x.rank))
    wide = _stash(node, x)
    element, epsilon = wide.element, node.get("epsilon", 1e-5)
    square = _mean(node, wide, axes, square=True)
    factor = pointwise(node, [square], element, lambda body, v: _inverse_root(body, element, v, epsilon))
    return _scaled(node, wide, factor, scale, None, x.element)


def _scaled(node, wide, factor, scale, bias, element):
    """The normalized numbers, rounded, times `scale`, plus `bias`."""

    def compute(body, x, by, weight, *shift):
        x = body.convert(body.apply("arith.mulf", wide.element, x, by), wide.element, element)
        x = body.apply("arith.mulf", element, x, body.convert(weight, scale.element, element))
        return body.apply("arith.addf", element, x, *shift) if shift else x

    return pointwise(node, [wide, factor, scale, *([] if bias is None else [bias])], element, compute)


def _lp_norm(node):
    (x,) = node.inputs
    if node.get("p", 2) != 2:
        raise node.refuse("p = 2", str(node.get("p")))
    square = _sum(node, x, [node.axis(node.get("axis", -1), x.rank)], square=True)

    def compute(body, a, b):
        root = body.apply("math.sqrt", square.element, b)
        return body.apply("arith.divf", x.element, a, body.convert(root, square.element, x.element))

    return pointwise(node, [x, square], x.element, compute)


def _range(node):
    bounds = [node.integers(i, "bounds") for i in range(3)]
    (start,), (limit,), (step,) = bounds
    if step != 1:
        raise node.refuse("a step of 1", str(step))
    count = node.writer.size("subi", limit, start) if isinstance(limit, str) or isinstance(start, str) else max(limit - start, 0)
    element = node.inputs[0].element
    if isinstance(count, int):
        array = np.arange(start, limit, dtype=np.int64 if element == "i64" else np.int32)
        return Value(element, array.shape, None, array)
    first = node.writer.index(start)

    def compute(body, _):
        place = body.apply("arith.addi", "index", body.emit("linalg.index 0 : index"), first)
        return body.emit(f"arith.index_cast {place} : index to {element}")

    return node.writer.generic(node.writer.empty(element, (count,)), [], [[0]], compute)


HANDLERS = {
    "MatMul": _matmul, "Gemm": _gemm, "Softmax": _softmax, "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm, "LpNormalization": _lp_norm, "Range": _range,
    "ReduceSum": _reduction(_sum), "ReduceMean": _reduction(_mean),
    "ReduceSumSquare": _reduction(lambda node, value, axes: _sum(node, value, axes, square=True)),
    "ReduceMax": _reduction(_extreme("maximumf", float("-inf"))), "ReduceMin": _reduction(_extreme("minimumf", float("inf"))),
}  # fmt: skip
