"""The functions that a feature map may be made of.

They work on the number that a feature map is traced on, on plain numbers and on
arrays alike; NumPy's functions of the same names do too.

    >>> import linattn
    >>> from linattn import feature_maps as fm
    >>> o = linattn.attention(q, k, v, feature_map=lambda x: fm.softplus(x) ** 2)
"""

from functools import partial as _partial

from ._trace import apply as _apply

__all__ = [
    "abs", "ceil", "clip", "cos", "erf", "exp", "exp2", "expm1", "floor", "gelu", "log", "log1p",
    "log2", "maximum", "minimum", "relu", "sigmoid", "sign", "silu", "sin", "softplus", "sqrt",
    "square", "tanh", "where",
]  # fmt: skip

abs = _partial(_apply, "absolute")
ceil = _partial(_apply, "ceil")
cos = _partial(_apply, "cos")
erf = _partial(_apply, "erf")
exp = _partial(_apply, "exp")
exp2 = _partial(_apply, "exp2")
expm1 = _partial(_apply, "expm1")
floor = _partial(_apply, "floor")
log = _partial(_apply, "log")
log1p = _partial(_apply, "log1p")
log2 = _partial(_apply, "log2")
maximum = _partial(_apply, "maximum")
minimum = _partial(_apply, "minimum")
sign = _partial(_apply, "sign")
sin = _partial(_apply, "sin")
sqrt = _partial(_apply, "sqrt")
square = _partial(_apply, "square")
tanh = _partial(_apply, "tanh")
where = _partial(_apply, "where")


def clip(x, low, high):
    """`x` limited to [low, high]."""
    return minimum(maximum(x, low), high)


def relu(x):
    """max(x, 0)"""
    return maximum(x, 0.0)


def sigmoid(x):
    """1 / (1 + e^-x)"""
    return 1.0 / (1.0 + exp(-x))


def silu(x):
    """x · sigmoid(x)"""
    return x * sigmoid(x)


def softplus(x):
    """log(1 + e^x), without overflow."""
    return maximum(x, 0.0) + log1p(exp(-abs(x)))


def gelu(x):
    """x · Φ(x), with the normal distribution's Φ."""
    return x * (0.5 * (1.0 + erf(x * 0.7071067811865476)))
