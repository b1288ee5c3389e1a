"""Programs: calls as XLA runs them, by the names that compiled graphs know.

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
from .._core._arrays import dtype_name
from .._graph import _gradient
from .._graph._calls import find
from .._graph._layouts import result_layouts, results

__all__ = ["TARGET", "describe_results", "gradient_program", "make_program", "run_program"]

TARGET = "linattn"

# Name -> Program.
_programs = {}
# In a name, between the call with its dtypes and the shapes of its arrays.
_SIZES = "\n"


class _Array(NamedTuple):
    """The shape and dtype of an array."""

    dtype: np.dtype
    shape: tuple


class _View(NamedTuple):
    """The strides of a view, with the methods that `Layout.to_logical` calls."""

    shape: tuple
    strides: tuple

    @staticmethod
    def contiguous(shape):
        strides = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1] if len(shape) else ()
        return _View(tuple(shape), tuple(int(stride) for stride in strides))

    def unflatten(self, i, sizes):
        outer, inner = sizes
        shape = *self.shape[:i], outer, inner, *self.shape[i + 1 :]
        return _View(shape, (*self.strides[:i], self.strides[i] * inner, *self.strides[i:]))

    def select(self, i, index):
        """Drops a dimension of extent 1."""
        return _View(self.shape[:i] + self.shape[i + 1 :], self.strides[:i] + self.strides[i + 1 :])

    def permute(self, order):
        return _View(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order))

    def unsqueeze(self, i):
        return _View((*self.shape[:i], 1, *self.shape[i:]), (*self.strides[:i], 0, *self.strides[i:]))


def describe(arrays):
    """The (dtype, shape) of arrays, for names and compiled calls."""
    return [(dtype_name(array), tuple(array.shape)) for array in arrays]


def is_sized(arrays):
    """Whether all sizes are numbers. In an exported function they may be symbols."""
    return all(isinstance(size, int) for array in arrays for size in array.shape)


def describe_results(call, arrays):
    """The results, (dtype, shape), of a call with arrays like these.

    Raises:
      ValueError, TypeError: for arrays that do not fit. Where sizes are symbols, the call itself
        finds most of that.
    """
    if is_sized(arrays):
        split, known = len(call.recipe.operands), describe(arrays)
        return call.plan.describe(known[:split], known[split:])
    shapes = results(call.recipe, call.bind([array.shape for array in arrays]))
    return [(dtype, shape) for dtype, (_, shape) in zip(call.result_dtypes(dtype_name(arrays[0])), shapes)]


def run_program(call, arrays, num_threads):
    """The name of a call with arrays like these, and its `Program`, None where it depends on
    sizes that are symbols."""
    return _find(arrays, "run", call, num_threads)


def gradient_program(call, arrays, given, needed, num_threads):
    """The program of the call's gradient, which must have a kernel for these arrays."""
    return _find(arrays, "gradient", call, num_threads, list(given), list(needed))


def _find(arrays, *description):
    dtypes = [dtype_name(array) for array in arrays]
    if not is_sized(arrays):  # XLA's handler appends those that it meets.
        return json.dumps([*description, dtypes]) + _SIZES, None
    name = json.dumps([*description, dtypes]) + _SIZES + json.dumps([list(array.shape) for array in arrays])
    return name, _programs.get(name) or make_program(name)


def make_program(name):
    """Makes the program of a name, which XLA can call afterwards."""
    description, _, sizes = name.partition(_SIZES)
    kind, call, num_threads, *options, dtypes = json.loads(description)
    arrays = list(zip(dtypes, json.loads(sizes)))
    program = {"run": _make_run, "gradient": _make_gradient}[kind](find(call), arrays, num_threads, *options)
    _linattn.add_program(name, program)
    _programs[name] = program
    return program


def _make_run(call, arrays, num_threads):
    split = len(call.recipe.operands)
    return call.plan.program(arrays[:split], arrays[split:], num_threads)


def _make_gradient(call, arrays, num_threads, given, needed):
    arrays = [_Array(jnp.dtype(dtype), tuple(shape)) for dtype, shape in arrays]
    kernel, binding, _ = _gradient.compile(call, arrays, needed, jnp)
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
    chosen = [(layout, array) for layout, array, is_needed in zip(binding.layouts, arrays, needed) if is_needed]
    outputs = [
        slot(index, dtype_name(array), layout, _View.contiguous(array.shape))
        for index, (layout, array) in enumerate(chosen)
    ]
    return _linattn.Program(kernel, inputs, outputs, num_threads)
