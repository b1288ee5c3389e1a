"""Traces a Python function of one number into scalar MLIR arithmetic.

A feature map is called once with a `Tracer` in place of its number. Operators
and NumPy's functions on it record what they would compute; the recorded
expression becomes the region of an op, so that a user's φ costs no more than a
built-in one.
"""

from __future__ import annotations

import numbers

import numpy as np

from .._core._literals import float_literal

__all__ = ["Tracer", "trace", "emit_region", "apply"]

_UNARY = {
    "absolute": "math.absf",
    "ceil": "math.ceil",
    "cos": "math.cos",
    "erf": "math.erf",
    "exp": "math.exp",
    "exp2": "math.exp2",
    "expm1": "math.expm1",
    "floor": "math.floor",
    "log": "math.log",
    "log1p": "math.log1p",
    "log2": "math.log2",
    "negative": "arith.negf",
    "sin": "math.sin",
    "sqrt": "math.sqrt",
    "tanh": "math.tanh",
}
_BINARY = {
    "add": "arith.addf",
    "divide": "arith.divf",
    "fmax": "arith.maxnumf",
    "fmin": "arith.minnumf",
    "maximum": "arith.maximumf",
    "minimum": "arith.minimumf",
    "multiply": "arith.mulf",
    "power": "math.powf",
    "subtract": "arith.subf",
}
# Ordered: a comparison with NaN is false, and only != is true, as in Python.
_COMPARE = {
    "equal": "oeq",
    "greater": "ogt",
    "greater_equal": "oge",
    "less": "olt",
    "less_equal": "ole",
    "not_equal": "une",
}
_LOGIC = {
    "bitwise_and": "arith.andi",
    "bitwise_or": "arith.ori",
    "bitwise_xor": "arith.xori",
    "logical_and": "arith.andi",
    "logical_or": "arith.ori",
    "logical_xor": "arith.xori",
}
_COMPOSED = {
    "cosh": lambda x: (apply("exp", x) + apply("exp", -x)) * 0.5,
    "deg2rad": lambda x: x * (np.pi / 180),
    "fabs": lambda x: apply("absolute", x),
    "float_power": lambda x, y: x**y,
    "invert": lambda x: apply("logical_not", x),
    "log10": lambda x: apply("log", x) * float(1 / np.log(10)),
    "logaddexp": lambda x, y: apply("maximum", x, y)
    + apply("log1p", apply("exp", -abs(x - y))),
    "logical_not": lambda x: Tracer("logical_not", (_as_bool(x),), True),
    "positive": lambda x: x,
    "rad2deg": lambda x: x * (180 / np.pi),
    "reciprocal": lambda x: 1.0 / x,
    "sign": lambda x: apply("where", x > 0, 1.0, apply("where", x < 0, -1.0, x)),
    "sinh": lambda x: (apply("exp", x) - apply("exp", -x)) * 0.5,
    "square": lambda x: x * x,
    "true_divide": lambda x, y: x / y,
}

# Powers up to this are multiplications, which are faster and exact at small
# integers, where pow is neither.
_MAX_UNROLLED_POWER = 16


class Tracer:
    """A symbolic number: the value of a recorded expression."""

    __slots__ = ("op", "args", "is_bool")
    # NumPy scalars on the left defer to our operators through __array_ufunc__.

    def __init__(self, op, args=(), is_bool=False):
        self.op = op
        self.args = args
        self.is_bool = is_bool

    # Arithmetic.
    def __add__(self, other):
        return apply("add", self, other)

    def __radd__(self, other):
        return apply("add", other, self)

    def __sub__(self, other):
        return apply("subtract", self, other)

    def __rsub__(self, other):
        return apply("subtract", other, self)

    def __mul__(self, other):
        return apply("multiply", self, other)

    def __rmul__(self, other):
        return apply("multiply", other, self)

    def __truediv__(self, other):
        return apply("divide", self, other)

    def __rtruediv__(self, other):
        return apply("divide", other, self)

    def __pow__(self, other):
        return _power(self, other)

    def __rpow__(self, other):
        return apply("power", other, self)

    def __neg__(self):
        return apply("negative", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return apply("absolute", self)

    # Comparisons and logic.
    def __lt__(self, other):
        return apply("less", self, other)

    def __le__(self, other):
        return apply("less_equal", self, other)

    def __gt__(self, other):
        return apply("greater", self, other)

    def __ge__(self, other):
        return apply("greater_equal", self, other)

    def __eq__(self, other):
        return apply("equal", self, other)

    def __ne__(self, other):
        return apply("not_equal", self, other)

    __hash__ = object.__hash__

    def __and__(self, other):
        return apply("logical_and", self, other)

    def __or__(self, other):
        return apply("logical_or", self, other)

    def __xor__(self, other):
        return apply("logical_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self):
        return apply("logical_not", self)

    # NumPy.
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs:
            raise TypeError(
                f"feature_map: expected np.{ufunc.__name__} of one number, but got "
                f"np.{ufunc.__name__}.{method} with arguments {sorted(kwargs)}"
            )
        return apply(ufunc.__name__, *inputs)

    def __array_function__(self, function, types, args, kwargs):
        name = function.__name__
        if name == "where" and len(args) == 3 and not kwargs:
            return apply("where", *args)
        if name == "clip" and len(args) == 3 and not kwargs:
            x, low, high = args
            x = x if low is None else apply("maximum", x, low)
            return x if high is None else apply("minimum", x, high)
        raise _unknown(name)

    def __array__(self, *args, **kwargs):
        raise TypeError("feature_map: expected arithmetic on a number, but got its conversion to an array")

    # Operations that cannot be recorded.
    def __bool__(self):
        raise TypeError(
            "feature_map: expected a function without branches on its number, but got an "
            "if, and, or, min or max; use np.where, &, |, np.minimum or np.maximum"
        )

    def __float__(self):
        raise TypeError(
            "feature_map: expected NumPy's functions, but got one that needs the number "
            "itself, such as those of math; use np.exp for math.exp"
        )

    __int__ = __index__ = __complex__ = __float__

    def __iter__(self):
        raise TypeError("feature_map: expected arithmetic on one number, but got an iteration")

    def __repr__(self):
        return "<the number that the feature map is traced on>"


def _unknown(name):
    known = sorted({*_UNARY, *_BINARY, *_COMPARE, *_COMPOSED, "where", "clip"})
    return TypeError(
        f"feature_map: expected functions of one number among {', '.join(known)}, but got {name}"
    )


def _lift(value):
    """A traced operand for a number that the user combined with one."""
    if isinstance(value, Tracer):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Tracer("bool", (bool(value),), True)
    if isinstance(value, numbers.Real):
        return Tracer("constant", (float(value),))
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf":
        return _lift(value.item())
    raise TypeError(
        f"feature_map: expected numbers beside the traced one, but got {type(value).__name__}"
    )


def _as_number(value):
    value = _lift(value)
    return Tracer("number", (value,)) if value.is_bool else value


def _as_bool(value):
    value = _lift(value)
    return value if value.is_bool else apply("not_equal", value, 0.0)


def _power(base, exponent):
    if isinstance(exponent, Tracer) or not isinstance(exponent, numbers.Real):
        return apply("power", base, exponent)
    value = float(exponent)
    if value == 0.5:
        return apply("sqrt", base)
    if value == 0.0:
        return _lift(1.0)
    if not value.is_integer() or abs(value) > _MAX_UNROLLED_POWER:
        return apply("power", base, exponent)
    base, count, product = _as_number(base), int(abs(value)), None
    while count:
        if count & 1:
            product = base if product is None else product * base
        count >>= 1
        if count:
            base = base * base
    return 1.0 / product if value < 0 else product


def apply(name, *args):
    """Records the function called `name`, or computes it if no argument is traced."""
    if not any(isinstance(arg, Tracer) for arg in args):
        return _compute(name, *args)
    if name in _UNARY and len(args) == 1:
        return Tracer(name, (_as_number(args[0]),))
    if name == "power" and isinstance(args[0], Tracer) and not isinstance(args[1], Tracer):
        exponent = float(_lift(args[1]).args[0])
        if exponent.is_integer() and abs(exponent) <= _MAX_UNROLLED_POWER or exponent == 0.5:
            return _power(args[0], exponent)
    if name in _BINARY and len(args) == 2:
        return Tracer(name, tuple(map(_as_number, args)))
    if name in _COMPARE and len(args) == 2:
        return Tracer(name, tuple(map(_as_number, args)), True)
    if name in _LOGIC and len(args) == 2:
        return Tracer(name, tuple(map(_as_bool, args)), True)
    if name == "where" and len(args) == 3:
        return Tracer("where", (_as_bool(args[0]), _as_number(args[1]), _as_number(args[2])))
    if name in _COMPOSED:
        return _COMPOSED[name](*args)
    raise _unknown(name)


def _compute(name, *args):
    if name == "erf":
        import math

        return np.vectorize(math.erf, otypes=[np.float64])(args[0])[()]
    return getattr(np, name)(*args)


def trace(function):
    """The expression that `function` computes from one number."""
    result = function(Tracer("argument"))
    if isinstance(result, (tuple, list)) or result is None:
        raise TypeError(
            f"feature_map: expected a function that returns one number, but got {type(result).__name__}"
        )
    return _as_number(result)


def emit_region(expression, scalar):
    """The op's region for a traced expression; `scalar` is f32 or f64."""
    lines, names = [], {}

    def define(text):
        name = f"%{len(lines)}"
        lines.append(f"  {name} = {text}")
        return name

    def visit(node):
        key = id(node)
        if key not in names:
            names[key] = emit(node, [visit(arg) for arg in node.args if isinstance(arg, Tracer)])
        return names[key]

    def emit(node, args):
        op = node.op
        if op == "argument":
            return "%x"
        if op == "constant":
            return define(f"arith.constant {float_literal(node.args[0], scalar)} : {scalar}")
        if op == "bool":
            return define(f"arith.constant {'true' if node.args[0] else 'false'}")
        if op == "number":
            return define(f"arith.uitofp {args[0]} : i1 to {scalar}")
        if op == "logical_not":
            true = define("arith.constant true")
            return define(f"arith.xori {args[0]}, {true} : i1")
        if op == "where":
            return define(f"arith.select {', '.join(args)} : {scalar}")
        if op in _COMPARE:
            return define(f"arith.cmpf {_COMPARE[op]}, {', '.join(args)} : {scalar}")
        if op in _LOGIC:
            return define(f"{_LOGIC[op]} {', '.join(args)} : i1")
        name = _UNARY.get(op) or _BINARY[op]
        return define(f"{name} {', '.join(args)} : {scalar}")

    result = visit(expression)
    body = "\n".join(lines + [f"  linattn.yield {result} : {scalar}"])
    return f"phi {{\n^bb0(%x: {scalar}):\n{body}\n}}"
