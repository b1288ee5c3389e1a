"""The short convolutions before a recurrence."""

from __future__ import annotations

import torch
from transformers.activations import ACT2FN

from .. import conv
from .._operators import _conv
from ._guard import PassOn, trains
from ._run import detach

__all__ = ["causal_conv1d_fn", "causal_conv1d_update"]


def _split(activation):
    """The activation of the convolution itself, and the one for its result."""
    if activation in _conv.ACTIVATIONS:
        return activation, None
    return None, ACT2FN[activation]


def _check_width(weight):
    if weight.ndim == 2 and weight.shape[1] > _conv.MAX_WIDTH:
        raise PassOn(f"{weight.shape[1]} weights per channel, more than {_conv.MAX_WIDTH}")


@trains
def causal_conv1d_fn(hidden_states, weight, bias=None, activation=None, **kwargs):
    """`linattn.conv.causal_conv1d_fn`, whose result has the memory layout of its input.
    Packed sequences are kept apart by seq_idx, or by the offsets cu_seq_lens_q."""
    _check_width(weight)
    own, after = _split(activation)
    x, weight, bias = detach(hidden_states), detach(weight), detach(bias)
    offsets = kwargs.get("cu_seq_lens_q")
    if kwargs.get("seq_idx") is None and _delimits(offsets, x):
        y = conv._run(x, weight, bias, own, None, False, offsets, None, False)
    else:
        y = conv.causal_conv1d_fn(x, weight, bias, seq_idx=kwargs.get("seq_idx"), activation=own)
    return y if after is None else after(y)


def _delimits(offsets, x):
    """Whether offsets are those of the one row of x; a cache may have put inputs of before
    in front of it."""
    return isinstance(offsets, torch.Tensor) and x.shape[0] == 1 and int(offsets[-1]) == x.shape[2]


def causal_conv1d_update(hidden_states, conv_state, weight, bias=None, activation=None):
    """`linattn.conv.causal_conv1d_update`; the state is overwritten."""
    _check_width(weight)
    if conv_state.dtype is not hidden_states.dtype:
        raise PassOn(f"a state of {conv_state.dtype} beside {hidden_states.dtype}")
    own, after = _split(activation)
    y = conv.causal_conv1d_update(
        detach(hidden_states), detach(conv_state), detach(weight), detach(bias), own
    )
    return y if after is None else after(y)
