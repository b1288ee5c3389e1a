"""Between the tensors of a model and the plans of a family."""

from __future__ import annotations

import torch

from .._families import _remember_in

__all__ = ["detach", "of_dtype", "run", "state_dtype"]


def detach(tensor):
    """The tensor as arrays are passed on: parameters are no part of a graph here, since
    calls that record one do not come this far."""
    return tensor.detach() if tensor is not None and tensor.requires_grad else tensor


def of_dtype(tensor, dtype):
    """The tensor with elements of a dtype; itself if it has them."""
    return tensor if tensor is None or tensor.dtype is dtype else tensor.to(dtype)


def state_dtype(tokens):
    """The dtype of the state beside these tokens."""
    return torch.float64 if tokens.dtype is torch.float64 else torch.float32


def run(family, operands, options, state, returns_state):
    """The output of a family and its final state, which is `state`, overwritten, if one
    is given and can be written; the state is None unless it is returned.

    Args:
      family: a `Family` whose state is one array.
      operands, options: as the family takes them, all of them.
      state: a tensor, or None for zeros.
      returns_state: whether the final state is needed.
    """
    key = (
        tuple([x is None for x in operands]), tuple(options.values()), state is None, returns_state, "auto", None,
    )  # fmt: skip
    plan = family.plans.get(key)
    if plan is None:
        plan = family._make_plan(key[0], options, state is not None, *key[3:])
        _remember_in(family.plans, key, plan)
    given = None if state is None else (state,)
    result = plan(tuple([x for x in operands if x is not None]), given, None, returns_state, None)
    return result if returns_state else (result, None)
