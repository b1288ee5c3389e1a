"""Values of a graph while it is written as MLIR: tensors, constants, and numbers that stand for
sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ELEMENTS", "NotCovered", "Value", "is_float", "width_of"]

# Types of the standard by their number in TensorProto.
ELEMENTS = {1: "f32", 6: "i32", 7: "i64", 9: "i1", 10: "f16", 11: "f64", 16: "bf16"}
_WIDTHS = {"i1": 1, "f16": 16, "bf16": 16, "f32": 32, "i32": 32, "f64": 64, "i64": 64}


class NotCovered(ValueError):
    """A node that the importer does not read; the message names its operator and its name."""


def is_float(element):
    return element in ("f16", "bf16", "f32", "f64")


def width_of(element):
    return _WIDTHS[element]


@dataclass(frozen=True)
class Value:
    """One value of the graph.

    Attributes:
      element: MLIR's element type.
      dims: for each dimension its size, or the name of an SSA value of type index.
      name: the SSA value that holds the tensor, or None.
      known: the elements where the importer knows them, an array; those of integers may be names
        of SSA values of type index, such as the sizes that Shape returns.
    """

    element: str
    dims: tuple
    name: str | None = None
    known: np.ndarray | None = None

    @property
    def rank(self):
        return len(self.dims)

    @property
    def type(self):
        sizes = "".join(f"{size if isinstance(size, int) else '?'}x" for size in self.dims)
        return f"tensor<{sizes}{self.element}>"

    def with_dims(self, dims):
        return Value(self.element, tuple(dims), self.name, self.known)
