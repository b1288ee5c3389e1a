"""Whole ONNX models as MLIR: the operators of the standard around LinearAttention and
CausalConvWithState.

    >>> kernel = linattn.compile(linattn.onnx.to_mlir("model.onnx"))
    >>> logits, state = kernel(tokens, state)

It needs the package `onnx`; `linattn` itself does not import it.
"""

from __future__ import annotations

import os

from ._values import NotCovered

__all__ = ["COVERED", "NotCovered", "to_mlir"]


def to_mlir(model, entry=None):
    """The text of a module with one public function that computes what an ONNX model computes.

    The function takes the model's inputs in their order and returns its outputs; initializers are
    constants. Sizes without a number stay open, and sizes that a node demands to be equal are checked
    in every call. Sums are float32, float64 for float64; other arithmetic is of the operands' type.

    Args:
      model: an `onnx.ModelProto`, or the path of a file; external data is read from beside it.
      entry: the name of the function; the graph's own if None.

    Returns:
      A string, for `linattn.compile` or ``linattn-compile``.

    Raises:
      NotCovered: (a ValueError) naming the node and what it has that is not covered: an operator
        that is not in `COVERED`, or an operand or attribute.
      ValueError: a model that breaks the standard.
      ImportError: the package `onnx` is not installed.
    """
    try:
        import onnx
        import onnx.inliner
    except ImportError as error:
        raise ImportError("linattn.onnx needs the package onnx: pip install onnx") from error
    from . import _graph

    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model)
        try:
            model = onnx.load(name)
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{name}: expected a model of ONNX, but got another file") from error
    elif not isinstance(model, onnx.ModelProto):
        raise TypeError(f"model: expected an onnx.ModelProto or a path, but got {type(model).__name__}")
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        if "No Op registered" not in str(error) and "No opset import" not in str(error):
            raise ValueError(f"model: {str(error).strip().splitlines()[0]}") from None
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return _graph.write(model, entry)


def __getattr__(name):
    if name == "COVERED":
        from ._operators import HANDLERS

        return tuple(sorted(HANDLERS))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
