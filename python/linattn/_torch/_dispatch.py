"""Calls of plans by PyTorch's operators."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import torch

from .._core._checks import UnsupportedError
from .._graph import _calls
from .._recurrence._plans import find
from . import _gradient, _operators, _places

__all__ = ["differentiable", "dispatch"]

# The flag of a plan whose initial state must become the final one.
_ALWAYS = 2


class _Local(threading.local):
    is_strict = False


_local = _Local()


@contextlib.contextmanager
def differentiable(is_strict):
    """Inside of it, if `is_strict`, a call that records gradients raises an UnsupportedError
    where they have no kernel; else their computation does."""
    before, _local.is_strict = _local.is_strict, is_strict
    try:
        yield
    finally:
        _local.is_strict = before


def dispatch(plan, operands, state, out, in_place, num_threads, destination, refusal):
    """A call of a plan with tensors that PyTorch must look at. Returns what the plan does.

    Args:
      refusal: why the plan does not take the call itself.
    """
    state = () if state is None else state
    arrays = (*operands, *state)
    if not any(isinstance(array, torch.Tensor) for array in arrays):
        raise ValueError(refusal)
    name = _calls.name_of(plan)
    operands = [_as_tensor(array, refusal) for array in operands]
    state = [_as_tensor(array, refusal) for array in state[: plan.state_parts]]
    recorded = torch.is_grad_enabled() and any(array.requires_grad for array in (*operands, *state))
    if recorded and in_place == _ALWAYS:
        raise UnsupportedError(
            f"inplace: expected False where gradients are recorded, but got True for {plan.build.what}"
        )
    if recorded and out is not None and not _places.allows_output():
        raise UnsupportedError("out: expected None where gradients are recorded, but got a tensor")
    if recorded and plan.build.recorded and _keeps(operands[0], plan):
        plan = find((plan.build.recorded, *plan.build.key[1:]))
        name = _calls.name_of(plan)
    if recorded and _local.is_strict:
        _gradient.compile(_calls.find(name), [*operands, *state], [x.requires_grad for x in (*operands, *state)])
    if in_place == _ALWAYS and plan.build.has_state:
        o = _operators.run_(name, operands, state, num_threads)
        return _finish(plan, [o, *state], out)
    if recorded and out is not None:
        with _places.output(out):
            return _finish(plan, _operators.transform(name, operands, state, num_threads), None)
    return _finish(plan, _operators.transform(name, operands, state, num_threads), out)


def _keeps(tokens, plan):
    """Whether a forward pass keeps numbers for its gradient: not those that 16 bits would round, and not on a GPU, where
    it has no kernel."""
    return tokens.dtype in (torch.float32, torch.float64) and plan.build.resolve(tokens.is_cuda) in ("cpu", "reference")


def _finish(plan, results, out):
    recipe = plan.build
    if recipe.keeps_results:
        results = results[:1]
    if recipe.output is None:
        results = [None, *results]
    if out is not None:
        out.copy_(results[0])
        results = [out, *results[1:]]
    return tuple(results) if len(results) > 1 else results[0]


def _as_tensor(array, refusal):
    """Converts gates and offsets, which may be NumPy arrays, to tensors."""
    if isinstance(array, torch.Tensor):
        return array
    if isinstance(array, np.ndarray):
        return torch.as_tensor(array)
    raise ValueError(refusal)
