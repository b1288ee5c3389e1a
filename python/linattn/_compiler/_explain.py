"""`explain`: what the compiler decided about a call, and why."""

from __future__ import annotations

from .. import _linattn
from .._core._notes import collect

__all__ = ["explain", "explain_call"]


def explain(function, *args, **kwargs):
    """The compiler's decisions about a call of a function of this package.

        >>> print(linattn.explain(linattn.scan, q, k, v, decay=g))

    Everything the call needs is compiled, nothing is computed: arrays and states
    that the call would write to are left alone.

    Args:
      function: `attention`, `scan`, a named family, a method of a `State`, a kernel,
        or a function that calls some of these.
      *args, **kwargs: its arguments.

    Returns:
      A line per remark, as ``kernel.explain()``: the form of every recurrence with
      its predicted cost and that of the other forms, forms that are illegal or
      slower and why, arguments whose layout costs time. `fnet` and `s4d` report the functions that they call.

    Raises:
      TypeError: `function` cannot be called, or compiles nothing.
      ValueError, TypeError: those of the call.
    """
    if not callable(function):
        raise TypeError(f"function: expected a callable, but got {type(function).__name__}")
    text = explain_call(lambda: function(*args, **kwargs))
    if not text:
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(f"function: expected one that runs compiled code, but {name} ran none")
    return text


def explain_call(call):
    """The explanation of a call without arguments, empty if there is none."""
    with collect() as notes:
        remarks = _linattn.explain(call)
    return "\n".join([*notes, *([remarks] if remarks else [])])
