"""Between the tensors of a model and the plans of a family."""

from __future__ import annotations

import torch

__all__ = ["detach", "initial", "is_recorded", "of_dtype", "run", "state_dtype"]


def is_recorded(*tensors):
    """Whether a gradient is recorded of one of them; None requires none."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def detach(tensor):
    """The tensor as arrays are passed on: a parameter may require a gradient that is not
    recorded."""
    if tensor is None or not tensor.requires_grad or torch.is_grad_enabled():
        return tensor
    return tensor.detach()


def of_dtype(tensor, dtype):
    """The tensor with elements of a dtype; itself if it has them."""
    return tensor if tensor is None or tensor.dtype is dtype else tensor.to(dtype)


def state_dtype(tokens):
    """The dtype of the state beside these tokens."""
    return torch.float64 if tokens.dtype is torch.float64 else torch.float32


def initial(state, tokens):
    """The initial state as the family takes it beside these tokens: itself, where it has
    their dtype and a place in memory for every element."""
    if state is None:
        return None
    state = detach(of_dtype(state, state_dtype(tokens)))
    expanded = any(size > 1 and stride == 0 for size, stride in zip(state.shape, state.stride()))
    return state.clone() if expanded else state


# Elements of a state that one thread passes over before another has woken up.
_SMALL_STATE = 1 << 21


def _threads(tokens, state):
    """1 for a step of a small state, else None for the setting of the process. PyTorch's
    threads keep spinning on their cores for a while after each of its operations, and a
    step that waits for a thread of ours there takes milliseconds."""
    if state is None:
        return None
    parts = state if isinstance(state, tuple) else (state,)
    size = max(part.numel() for part in parts)
    return None if size > _SMALL_STATE or 4 * tokens.numel() > size else 1


def run(family, operands, options, state, returns_state):
    """The output of a family and its final state, which is `state`, overwritten, unless
    gradients are recorded; the state is None unless it is returned.

    Args:
      family: a `Family`.
      operands, options: as the family takes them, all of them.
      state: a tensor, or None for zeros.
      returns_state: whether the final state is needed.
    """
    threads = _threads(operands[0], state)
    parts = state if isinstance(state, tuple) else (state,)
    if state is not None and returns_state and not is_recorded(*operands, *parts):
        return family(operands, options, state, True, None, threads, "auto", None, True)
    result = family(operands, options, state, returns_state, None, threads, "auto", None)
    return result if returns_state else (result, None)
