"""Programs: what XLA runs of a call, by the names that its graphs know them by.

A name is JSON and says everything: a process that loads a compiled graph makes the
program of it.
"""

from __future__ import annotations

import json
from itertools import count
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .. import _linattn
from .._arrays import dtype_name
from .._checks import UnsupportedError
from .._graph import _gradient
from .._graph._calls import find
from .._graph._layouts import result_layouts

__all__ = ["TARGET", "describe", "gradient_program", "make_program", "run_program"]

TARGET = "linattn"

# Name -> Program.
_programs = {}


class _Array(NamedTuple):
    """An array without elements."""

    dtype: np.dtype
    shape: tuple


class _View(NamedTuple):
    """The layout of a view in memory, with what `Layout.to_logical` calls."""

    shape: tuple
    strides: tuple

    @staticmethod
    def contiguous(shape):
        strides = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1] if len(shape) else ()
        return _View(tuple(shape), tuple(int(stride) for stride in strides))

    def unflatten(self, i, sizes):
        outer, inner = sizes
        strides = self.strides[i] * inner, self.strides[i]
        return _View((*self.shape[:i], outer, inner, *self.shape[i + 1 :]), (*self.strides[:i], *strides, *self.strides[i + 1 :]))

    def select(self, i, index):
        """Of a dimension of extent 1."""
        return _View(self.shape[:i] + self.shape[i + 1 :], self.strides[:i] + self.strides[i + 1 :])

    def permute(self, order):
        return _View(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order))

    def unsqueeze(self, i):
        return _View((*self.shape[:i], 1, *self.shape[i:]), (*self.strides[:i], 0, *self.strides[i:]))


def describe(call, arrays):
    """Arrays of a call as names and compiled calls know them: (dtype, shape).

    Raises:
      UnsupportedError: a size is a symbol.
    """
    for name, array in zip(call.names, arrays):
        if not all(isinstance(size, int) for size in array.shape):
            raise UnsupportedError(f"{name}: expected a shape of numbers, but got ({', '.join(map(str, array.shape))})")
    return [(dtype_name(array), tuple(array.shape)) for array in arrays]


def run_program(call, arrays, num_threads):
    """The name of a call with arrays like these, and its `Program`."""
    return _find("run", call, describe(find(call), arrays), num_threads)


def gradient_program(call, arrays, given, wanted, num_threads):
    """The same for its gradient, which must have a kernel for arrays like these."""
    known = describe(find(call), arrays)
    return _find("gradient", call, known, list(given), list(wanted), num_threads)


def _find(*description):
    name = json.dumps(description)
    return name, _programs.get(name) or make_program(name)


def make_program(name):
    """The program of a name, which XLA can call from now on."""
    kind, call, *rest = json.loads(name)
    program = {"run": _make_run, "gradient": _make_gradient}[kind](find(call), *rest)
    _linattn.add_program(name, program)
    _programs[name] = program
    return program


def _make_run(call, arrays, num_threads):
    split = len(call.recipe.operands)
    return call.plan.program(arrays[:split], arrays[split:], num_threads)


def _make_gradient(call, arrays, given, wanted, num_threads):
    arrays = [_Array(jnp.dtype(dtype), tuple(shape)) for dtype, shape in arrays]
    kernel, binding, _ = _gradient.compile(call, arrays, wanted, jnp)
    extents = binding.extents

    def slot(buffer, dtype, layout, view):
        return buffer, dtype, *layout.to_logical(view, extents)

    inputs = [
        slot(index, dtype_name(array), layout, _View.contiguous(array.shape))
        for index, (layout, array) in enumerate(zip(binding.layouts, arrays))
    ]
    buffers = count(len(arrays))
    dtypes = call.result_dtypes(dtype_name(arrays[0]))
    for layout, dtype, is_given in zip(result_layouts(call.recipe, binding), dtypes, given):
        shape = layout.shape(extents)
        if is_given:
            inputs.append(slot(next(buffers), dtype, layout, _View.contiguous(shape)))
        else:  # -1: zeros
            inputs.append(slot(-1, dtype, layout, _View(tuple(shape), (0,) * len(shape))))
    chosen = [(layout, array) for layout, array, is_wanted in zip(binding.layouts, arrays, wanted) if is_wanted]
    outputs = [
        slot(index, dtype_name(array), layout, _View.contiguous(array.shape))
        for index, (layout, array) in enumerate(chosen)
    ]
    return _linattn.Program(kernel, inputs, outputs, num_threads)
