"""Memory for the results of recorded calls and for gradients: large pages, or a caller's own.

A caller that computes arrays part by part has each part written where it belongs, instead of
copying it there.
"""

from __future__ import annotations

import contextlib
import math
import threading

import torch

from .. import _linattn

__all__ = ["allows_output", "empty", "gradients", "output", "records_into", "take_gradient", "take_output"]

# Bytes; in fewer, pages do not matter.
_LARGE = 2 << 20


def empty(shape, dtype, device):
    """A contiguous tensor with unspecified contents, on a CPU in large pages."""
    size = math.prod(shape) * dtype.itemsize
    if device.type != "cpu" or size < _LARGE:
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.from_numpy(_linattn.memory(size)).view(dtype).view(shape)


class _Local(threading.local):
    records = False
    output = None
    gradients = ()


_local = _Local()


@contextlib.contextmanager
def _having(**values):
    before = {name: getattr(_local, name) for name in values}
    vars(_local).update(values)
    try:
        yield
    finally:
        vars(_local).update(before)


def records_into():
    """Inside the block, calls that record gradients write to `out` and return a view of it."""
    return _having(records=True)


def allows_output():
    """Whether the call is inside `records_into`."""
    return _local.records


def output(memory):
    """Inside the block, the next kernel writes its output there."""
    return _having(output=memory)


def take_output():
    """The memory for the output of this kernel, or None."""
    memory, _local.output = _local.output, None
    return memory


def gradients(pairs):
    """Inside of it, the gradients of arrays are computed in memory of the same shapes.

    Args:
      pairs: an array and the memory of its gradient, each. An operand that is not that array, but
        is computed from it, has its gradient elsewhere.
    """
    return _having(gradients=[(_describe(array), memory) for array, memory in pairs])


def take_gradient(array):
    """The memory for the gradient of an operand, or new memory."""
    if _local.gradients:
        needed = _describe(array)
        for index, (description, memory) in enumerate(_local.gradients):
            if description == needed:  # an operand twice has two gradients, which are summed
                del _local.gradients[index]
                return memory
    return empty(array.shape, array.dtype, array.device)


def _describe(array):
    return array.data_ptr(), array.shape, array.stride(), array.dtype
