"""Operators that move elements, and those that say sizes."""

from __future__ import annotations

import numpy as np

from ._elementwise import broadcast, join
from ._values import Value, is_float

__all__ = ["HANDLERS"]


def _numbers(items, element="i64"):
    """A value of known integers and sizes."""
    kind = np.int64 if element == "i64" else np.int32
    symbolic = any(isinstance(item, str) for item in items)
    known = np.empty(len(items), object) if symbolic else np.array(items, kind)
    known[:] = items
    return Value(element, known.shape, None, known)


def _move(value, known):
    return Value(value.element, known.shape, None, known)


def _shape(node):
    rank = node.inputs[0].rank
    start, end, _ = slice(node.get("start", 0), node.get("end", rank)).indices(rank)
    return _numbers(node.inputs[0].dims[start:end])


def _size(node):
    known = np.empty((), object)
    known[()] = node.writer.product(node.inputs[0].dims)
    return Value("i64", (), None, known)


def _reshape(node):
    value, sizes = node.inputs[0], node.integers(1, "sizes")
    if sizes is None:
        raise node.refuse("an operand with the shape", "none")
    keeps = not node.get("allowzero", 0)
    dims = []
    for axis, size in enumerate(sizes):
        if size == 0 and keeps:
            if axis >= value.rank:
                raise node.refuse(f"a 0 among the first {value.rank} sizes", f"one at {axis}")
            size = value.dims[axis]
        dims.append(size)
    if dims.count(-1) > 1:
        raise node.refuse("one size of -1", f"{dims.count(-1)}")
    others = [size for size in dims if not _is(size, -1)]
    rest = node.writer.divide(value.dims, others)
    if rest is None or (-1 not in dims and rest != 1):
        if -1 not in dims and 0 in others and 0 in value.dims:
            rest = 1
        else:
            raise node.refuse("sizes whose product is that of the operand, as its dimensions show", f"{dims} of {list(value.dims)}")
    return node.writer.reshape(value, [rest if _is(size, -1) else size for size in dims])


def _is(size, number):
    return isinstance(size, int) and size == number


def _flatten(node):
    value = node.inputs[0]
    axis = node.get("axis", 1)
    axis = axis + value.rank if axis < 0 else axis
    return node.writer.reshape(value, [node.writer.product(value.dims[:axis]), node.writer.product(value.dims[axis:])])


def _squeeze(node):
    value, axes = node.inputs[0], node.integers(1, "axes") or node.get("axes")
    axes = [axis for axis, size in enumerate(value.dims) if size == 1] if axes is None else axes
    axes = {node.axis(axis, value.rank) for axis in axes}
    for axis in axes:
        if value.dims[axis] != 1:
            raise node.refuse(f"a size of 1 in dimension {axis}", _say(value.dims[axis]))
    return node.writer.reshape(value, [size for axis, size in enumerate(value.dims) if axis not in axes])


def _unsqueeze(node):
    value = node.inputs[0]
    axes = node.integers(1, "axes") if len(node.inputs) > 1 else node.get("axes")
    rank = value.rank + len(axes)
    axes = {node.axis(axis, rank) for axis in axes}
    rest = iter(value.dims)
    dims = [1 if axis in axes else next(rest) for axis in range(rank)]
    return node.writer.reshape(value, dims)


def _say(size):
    return str(size) if isinstance(size, int) else "an open one"


def transpose(node, value, order):
    if order == sorted(order):
        return value
    dims = tuple(value.dims[axis] for axis in order)
    if value.known is not None and value.known.dtype != object:
        return _move(value, np.ascontiguousarray(value.known.transpose(order)))
    into = node.writer.empty(value.element, dims)
    name = node.writer.emit(
        f"linalg.transpose ins({node.writer.tensor(value)} : {value.type}) outs({into.name} : {into.type}) permutation = {order}"
    )
    return Value(value.element, dims, name)


def _transpose(node):
    value = node.inputs[0]
    return transpose(node, value, list(node.get("perm") or range(value.rank)[::-1]))


def _slice(node):
    value = node.inputs[0]
    if node.opset < 10:
        raise node.refuse("opset 10 or later", str(node.opset))
    starts, ends = node.integers(1, "starts"), node.integers(2, "ends")
    axes = node.integers(3, "axes") or list(range(len(starts)))
    steps = node.integers(4, "steps") or [1] * len(starts)
    axes = [node.axis(axis, value.rank) for axis in axes]
    if value.known is not None:
        if all(isinstance(x, int) for x in (*starts, *ends, *steps)):
            places = [slice(None)] * value.rank
            for axis, start, end, step in zip(axes, starts, ends, steps):
                end = None if step < 0 and end < -value.dims[axis] else end
                places[axis] = slice(start, end, step)
            return _move(value, value.known[tuple(places)])
    offsets, sizes, strides = [0] * value.rank, list(value.dims), [1] * value.rank
    for axis, start, end, step in zip(axes, starts, ends, steps):
        if not isinstance(step, int) or step < 1:
            raise node.refuse("steps of 1 and more", _say(step))
        begin, end = _place(node, start, value.dims[axis]), _place(node, end, value.dims[axis])
        offsets[axis], strides[axis] = begin, step
        sizes[axis] = _count(node, begin, end, step)
    return node.writer.slice(value, offsets, sizes, strides)


def _place(node, place, size):
    """A start or an end in [0, size]; from the end where it is negative."""
    w = node.writer
    if isinstance(place, int):
        if place < 0:
            return w.size("maxsi", w.size("addi", size, place), 0)
        # The standard's way to say "to the end".
        return size if place >= 2**31 - 1 else 0 if place == 0 else w.size("minsi", place, size)
    if place == size:
        return size
    below = w.emit(f"arith.cmpi slt, {place}, {w.index(0)} : index")
    moved = w.emit(f"arith.select {below}, {w.size('addi', place, size)}, {place} : index")
    return w.size("minsi", w.size("maxsi", moved, 0), size)


def _count(node, begin, end, step):
    w = node.writer
    length = end if begin == 0 else w.size("maxsi", w.size("subi", end, begin), 0)
    return length if step == 1 else w.size("ceildivsi", length, step)


def _concat(node):
    values = node.inputs
    axis = node.axis(node.get("axis"), values[0].rank)
    if all(value.known is not None for value in values):
        return _move(values[0], np.concatenate([value.known for value in values], axis))
    dims, total = list(values[0].dims), 0
    for value in values:
        if value.rank != len(dims):
            raise node.refuse(f"operands of rank {len(dims)}", f"one of {value.rank}")
        total = node.writer.size("addi", total, value.dims[axis])
    for other in range(len(dims)):
        if other != axis:
            dims[other] = join(node, [(value.dims[other],) for value in values])[0]
    dims[axis] = total
    into, place = node.writer.empty(values[0].element, dims), 0
    for value in values:
        offsets = [0] * len(dims)
        offsets[axis] = place
        into = node.writer.insert(value, into, offsets)
        place = node.writer.size("addi", place, value.dims[axis])
    return into


def _split(node):
    value = node.inputs[0]
    axis = node.axis(node.get("axis", 0), value.rank)
    whole, parts = value.dims[axis], node.integers(1, "sizes") or node.get("split")
    if parts is None:
        if not isinstance(whole, int):
            raise node.refuse("a size to split that is known, or the sizes of the parts", "an open one")
        each = -(-whole // node.outputs)
        parts = [min(each, whole - each * i) for i in range(node.outputs)]
    if isinstance(whole, int) and all(isinstance(x, int) for x in parts) and sum(parts) != whole:
        raise node.refuse(f"parts that are {whole} in all", str(sum(parts)))
    results, place = [], 0
    for part in parts:
        offsets, sizes = [0] * value.rank, list(value.dims)
        offsets[axis], sizes[axis] = place, part
        results.append(node.writer.slice(value, offsets, sizes, [1] * value.rank))
        place = node.writer.size("addi", place, part)
    return results


def _gather(node):
    data, indices = node.inputs
    axis = node.axis(node.get("axis", 0), data.rank)
    if data.known is not None and indices.known is not None and indices.known.dtype != object:
        return _move(data, np.asarray(np.take(data.known, indices.known.astype(np.int64), axis), data.known.dtype))
    if not is_float(data.element):
        raise node.refuse("a table of floating point, or indices that are constants", f"computed indices into {data.element}")
    return _look_up(node, data, indices, axis)


def _look_up(node, data, indices, axis):
    """Elements by computed indices. An index outside of the table has nothing to return: the element
    is a NaN, and memory beside the table is not read."""
    w = node.writer
    dims = (*data.dims[:axis], *indices.dims, *data.dims[axis + 1 :])
    table, size = w.tensor(data), w.index(data.dims[axis])
    into = w.empty(data.element, dims)
    maps = [[axis + i for i in range(indices.rank)], list(range(len(dims)))]

    def compute(body, index, _):
        index = body.emit(f"arith.index_cast {index} : {indices.element} to index")
        zero = body.emit("arith.constant 0 : index")
        below = body.emit(f"arith.cmpi slt, {index}, {zero} : index")
        index = body.emit(f"arith.select {below}, {body.apply('arith.addi', 'index', index, size)}, {index} : index")
        inside = body.emit(f"arith.cmpi ult, {index}, {size} : index")
        safe = body.emit(f"arith.select {inside}, {index}, {zero} : index")
        places = [body.emit(f"linalg.index {i} : index") for i in range(len(dims))]
        places = [*places[:axis], safe, *places[axis + indices.rank :]]
        element = body.emit(f"tensor.extract {table}[{', '.join(places)}] : {data.type}")
        return body.emit(f"arith.select {inside}, {element}, {body.number(data.element, float('nan'))} : {data.element}")

    return w.generic(into, [indices], maps, compute)


def _expand(node):
    value, sizes = node.inputs[0], node.integers(1, "sizes")
    return broadcast(node, value, join(node, [value.dims, tuple(sizes)]))


def _constant_of_shape(node):
    sizes, given = node.integers(0, "sizes"), node.get("value")
    scalar = node.tensor_of(given) if given is not None else Value("f32", (1,), None, np.zeros(1, np.float32))
    if all(isinstance(size, int) for size in sizes):
        return Value(scalar.element, tuple(sizes), None, np.full(sizes, scalar.known.reshape(()), scalar.known.dtype))
    return node.writer.filled(scalar.element, sizes, scalar.known.reshape(()).item())


def _constant(node):
    if node.get("value") is not None:
        return node.tensor_of(node.get("value"))
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    for name, kind in kinds.items():
        if node.get(name) is not None:
            array = np.array(node.get(name), kind)
            return Value("f32" if kind is np.float32 else "i64", array.shape, None, array)
    raise node.refuse("numbers", "another constant")


HANDLERS = {
    "Shape": _shape, "Size": _size, "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Transpose": _transpose, "Slice": _slice, "Concat": _concat, "Split": _split, "Gather": _gather, "Expand": _expand,
    "ConstantOfShape": _constant_of_shape, "Constant": _constant,
}  # fmt: skip
