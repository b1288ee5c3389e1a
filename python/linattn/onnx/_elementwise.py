"""Operators on one element of each operand, with NumPy's broadcasting."""

from __future__ import annotations

import numpy as np

from ._values import ELEMENTS, Value, is_float

__all__ = ["HANDLERS", "broadcast", "join", "pointwise"]


def join(node, shapes):
    """The shape that shapes broadcast to. Of two sizes that are both open one is taken, and that they
    are equal is checked in every call; an open size is never stretched."""
    rank = max(len(shape) for shape in shapes)
    result = []
    for axis in range(rank):
        sizes = [shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0]
        sizes = [size for size in sizes if size != 1] or [1]
        numbers = {size for size in sizes if isinstance(size, int)}
        if len(numbers) > 1:
            raise node.refuse("operands that broadcast", f"sizes {sorted(numbers)}")
        result.append(numbers.pop() if numbers else sizes[0])
    return tuple(result)


def loops_of(value, rank):
    """The loop of each dimension; None where it is stretched."""
    return [None if size == 1 else rank - value.rank + axis for axis, size in enumerate(value.dims)]


def pointwise(node, operands, element, compute):
    """One scalar of each operand -> one of the result."""
    dims = join(node, [value.dims for value in operands])
    into = node.writer.empty(element, dims)
    maps = [*(loops_of(value, len(dims)) for value in operands), list(range(len(dims)))]
    return node.writer.generic(into, operands, maps, lambda body, *scalars: compute(body, *scalars[:-1]))


def broadcast(node, value, dims):
    if value.dims == tuple(dims):
        return value
    into = node.writer.empty(value.element, dims)
    maps = [loops_of(value, len(dims)), list(range(len(dims)))]
    return node.writer.generic(into, [value], maps, lambda body, x, _: x)


def _arithmetic(floats, integers, fold, sizes=None):
    def write(node):
        a, *rest = _same_type(node)
        for b in rest:
            a = _binary(node, a, b, floats, integers, fold, sizes)
        return a

    return write


def _binary(node, a, b, floats, integers, fold, sizes):
    if a.known is not None and b.known is not None:
        known = _fold(node, a, b, fold, sizes)
        if known is not None:
            return known
    operation = floats if is_float(a.element) else integers
    if operation is None:
        raise node.refuse("numbers with a fraction", a.element)
    return pointwise(node, [a, b], a.element, lambda body, x, y: body.apply(f"arith.{operation}", a.element, x, y))


def _fold(node, a, b, fold, sizes):
    """The result of two known operands of which one may hold sizes, or None."""
    if a.known.dtype != object and b.known.dtype != object:
        with np.errstate(all="ignore"):
            result = np.asarray(fold(a.known, b.known)).astype(a.known.dtype)
        return Value(a.element, result.shape, None, result)
    if sizes is None:
        return None
    x, y = np.broadcast_arrays(a.known, b.known)
    result = np.empty(x.shape, object)
    for place in np.ndindex(x.shape):
        pair = [item if isinstance(item, str) else int(item) for item in (x[place], y[place])]
        if any(isinstance(item, str) for item in pair):
            result[place] = node.writer.product(pair) if sizes == "muli" else _quotient(node, pair, sizes)
        else:
            result[place] = int(fold(*pair))
    return Value(a.element, result.shape, None, result)


def _quotient(node, pair, operation):
    if operation == "divsi":
        exact = node.writer.divide(pair[:1], pair[1:])
        if exact is not None:
            return exact
    return node.writer.size(operation, *pair)


def _same_type(node):
    values = [value for value in node.inputs if value is not None]
    for value in values[1:]:
        if value.element != values[0].element:
            raise node.refuse("operands of one type", f"{values[0].element} and {value.element}")
    return values


def _unary(operation, fold=None):
    def write(node):
        (x,) = _floats(node, 1)
        return pointwise(node, [x], x.element, lambda body, a: body.apply(operation, x.element, a))

    return write


def _floats(node, count):
    values = _same_type(node)[:count]
    if not is_float(values[0].element):
        raise node.refuse("operands of floating point", values[0].element)
    return values


def sigmoid(body, element, x):
    """1 / (1 + e^−x)."""
    one = body.number(element, 1)
    power = body.apply("math.exp", element, body.apply("arith.negf", element, x))
    return body.apply("arith.divf", element, one, body.apply("arith.addf", element, one, power))


def _computed(compute):
    """An operator of one operand; `compute` takes the node, the body, the element type and x."""

    def write(node):
        (x,) = _floats(node, 1)
        return pointwise(node, [x], x.element, lambda body, a: compute(node, body, x.element, a))

    return write


def _swish(node, body, element, x):
    """x · σ(alpha · x)."""
    scaled = body.apply("arith.mulf", element, x, body.number(element, node.get("alpha", 1.0)))
    return body.apply("arith.mulf", element, x, sigmoid(body, element, scaled))


def _softplus(node, body, element, x):
    """max(x, 0) + ln(1 + e^−|x|)."""
    small = body.apply("arith.negf", element, body.apply("math.absf", element, x))
    rest = body.apply("math.log1p", element, body.apply("math.exp", element, small))
    return body.apply("arith.addf", element, body.apply("arith.maximumf", element, x, body.number(element, 0)), rest)


def _gelu(node, body, element, x):
    """x · Φ(x), or its approximation by tanh."""
    half, one = body.number(element, 0.5), body.number(element, 1)
    if node.get("approximate", "none") == "tanh":
        cube = body.apply("arith.mulf", element, x, body.apply("arith.mulf", element, x, x))
        inner = body.apply("arith.addf", element, x, body.apply("arith.mulf", element, cube, body.number(element, 0.044715)))
        inner = body.apply("arith.mulf", element, inner, body.number(element, np.sqrt(2 / np.pi)))
        part = body.apply("math.tanh", element, inner)
    else:
        part = body.apply("math.erf", element, body.apply("arith.mulf", element, x, body.number(element, np.sqrt(0.5))))
    part = body.apply("arith.addf", element, one, part)
    return body.apply("arith.mulf", element, body.apply("arith.mulf", element, half, x), part)


def _relu(node, body, element, x):
    return body.apply("arith.maximumf", element, x, body.number(element, 0))


def _reciprocal(node, body, element, x):
    return body.apply("arith.divf", element, body.number(element, 1), x)


def _negate(node):
    (x,) = _same_type(node)
    if is_float(x.element):
        return pointwise(node, [x], x.element, lambda body, a: body.apply("arith.negf", x.element, a))
    zero = Value(x.element, (), None, np.zeros((), np.int32 if x.element == "i32" else np.int64))
    return _binary(node, zero, x, "subf", "subi", np.subtract, "subi")


def _power(node):
    base, exponent = node.inputs
    if not is_float(base.element):
        raise node.refuse("a base of floating point", base.element)
    number = None
    if exponent.known is not None and exponent.known.size == 1 and exponent.known.dtype != object:
        number = float(np.asarray(exponent.known, np.float64).reshape(()))
    if number == 2 and exponent.rank <= base.rank:
        return pointwise(node, [base], base.element, lambda body, x: body.apply("arith.mulf", base.element, x, x))
    if number == 0.5 and exponent.rank <= base.rank:
        return pointwise(node, [base], base.element, lambda body, x: body.apply("math.sqrt", base.element, x))

    def compute(body, x, y):
        return body.apply("math.powf", base.element, x, body.convert(y, exponent.element, base.element))

    return pointwise(node, [base, exponent], base.element, compute)


def _compare(floats, integers):
    def write(node):
        a, b = _same_type(node)
        kind = f"cmpf {floats}" if is_float(a.element) else f"cmpi {integers}"
        return pointwise(
            node, [a, b], "i1", lambda body, x, y: body.emit(f"arith.{kind}, {x}, {y} : {a.element}")
        )

    return write


def _where(node):
    condition, a, b = node.inputs
    if a.element != b.element:
        raise node.refuse("operands of one type", f"{a.element} and {b.element}")
    return pointwise(
        node, [condition, a, b], a.element, lambda body, c, x, y: body.emit(f"arith.select {c}, {x}, {y} : {a.element}")
    )


def _cast(node):
    (x,) = node.inputs
    element = ELEMENTS.get(node.get("to"))
    if element is None:
        raise node.refuse(f"a type of {', '.join(ELEMENTS.values())}", str(node.get("to")))
    if element == x.element:
        return x
    if x.known is not None and element in ("i32", "i64") and x.element in ("i32", "i64"):
        known = x.known if x.known.dtype == object else x.known.astype({"i32": np.int32, "i64": np.int64}[element])
        return Value(element, x.dims, None, known)
    return pointwise(node, [x], element, lambda body, a: body.convert(a, x.element, element))


def _not(node):
    (x,) = node.inputs
    return pointwise(node, [x], "i1", lambda body, a: body.apply("arith.xori", "i1", a, body.number("i1", -1)))


def _clip(node):
    x, low, high = node.inputs[0], node.input(1), node.input(2)
    if node.opset < 11:
        raise node.refuse("opset 11 or later", str(node.opset))
    operations = ("arith.maximumf", "arith.minimumf") if is_float(x.element) else ("arith.maxsi", "arith.minsi")
    for bound, operation in zip((low, high), operations):
        if bound is not None:
            x = pointwise(
                node, [x, bound], x.element, lambda body, a, b: body.apply(operation, x.element, a, b)
            )
    return x


HANDLERS = {
    "Add": _arithmetic("addf", "addi", np.add, "addi"),
    "Sub": _arithmetic("subf", "subi", np.subtract, "subi"),
    "Mul": _arithmetic("mulf", "muli", np.multiply, "muli"),
    "Div": _arithmetic("divf", None, lambda a, b: a / b if np.asarray(a).dtype.kind == "f" else np.trunc(np.divide(a, b)), "divsi"),
    "Max": _arithmetic("maximumf", "maxsi", np.maximum),
    "Min": _arithmetic("minimumf", "minsi", np.minimum),
    "And": _arithmetic(None, "andi", np.logical_and),
    "Or": _arithmetic(None, "ori", np.logical_or),
    "Neg": _negate, "Pow": _power, "Where": _where, "Cast": _cast, "Not": _not, "Clip": _clip,
    "Abs": _unary("math.absf"), "Exp": _unary("math.exp"), "Log": _unary("math.log"), "Sqrt": _unary("math.sqrt"),
    "Tanh": _unary("math.tanh"), "Erf": _unary("math.erf"), "Sin": _unary("math.sin"), "Cos": _unary("math.cos"),
    "Floor": _unary("math.floor"), "Ceil": _unary("math.ceil"),
    "Sigmoid": _computed(lambda node, body, element, x: sigmoid(body, element, x)),
    "Swish": _computed(_swish), "Softplus": _computed(_softplus), "Gelu": _computed(_gelu), "Relu": _computed(_relu),
    "Reciprocal": _computed(_reciprocal),
    "Equal": _compare("oeq", "eq"), "Less": _compare("olt", "slt"), "Greater": _compare("ogt", "sgt"),
    "LessOrEqual": _compare("ole", "sle"), "GreaterOrEqual": _compare("oge", "sge"),
    "Identity": lambda node: node.inputs[0],
}  # fmt: skip
