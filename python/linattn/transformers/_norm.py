"""Gated RMS norms: methods ``forward(self, hidden_states, gate)`` of the models."""

from __future__ import annotations

import torch

from .._operators._norm import output_norm
from ._guard import PassOn, trains
from ._run import detach

__all__ = ["gate_first", "norm_first", "norm_of_groups"]

_ACTIVATIONS = ("silu", "swish", "sigmoid")


def _norm(x, gate, weight, eps, activation, first):
    """The norm over the last dimension; the gate may be narrower than x, and None."""
    if not weight.is_cpu:
        raise PassOn(f"tensors on {weight.device.type}")
    if activation not in _ACTIVATIONS:
        raise PassOn(f"the activation {activation!r}, which linattn's norm does not have")
    if gate is not None and gate.dtype is not x.dtype:
        if torch.promote_types(gate.dtype, x.dtype) is not x.dtype:
            raise PassOn(f"a gate of {gate.dtype} beside {x.dtype}")
        gate = gate.to(x.dtype)
    return output_norm(
        detach(x), weight=detach(weight), gate=detach(gate), activation=activation, gate_first=first, eps=eps
    )


@trains
def norm_first(self, hidden_states, gate=None):
    """``norm(x) · weight · act(gate)``, as gated delta rules have it."""
    if gate is None:
        raise TypeError("gate: expected a tensor, but got NoneType")
    return _norm(hidden_states, gate, self.weight, self.variance_epsilon, self.activation, False)


@trains
def gate_first(self, hidden_states, gate=None):
    """``norm(x · silu(gate)) · weight`` in groups of features, as Mamba-2 has it."""
    groups = hidden_states.shape[-1] // self.group_size
    x = _in_groups(hidden_states, gate, self.weight, groups, self.variance_epsilon, True)
    return x.to(torch.promote_types(self.weight.dtype, hidden_states.dtype))


@trains
def norm_of_groups(self, hidden_states, gate=None):
    """Either order, in groups of features, as Falcon-H1 has it."""
    return _in_groups(
        hidden_states, gate, self.weight, self.n_groups, self.variance_epsilon, not self.norm_before_gate
    )


def _in_groups(x, gate, weight, groups, eps, first):
    if x.ndim not in (2, 3) or groups < 1 or x.shape[-1] % groups:
        raise PassOn(f"{groups} groups of {tuple(x.shape)}")

    def split(tensor):
        if tensor is None:
            return None
        return (tensor if tensor.ndim == 3 else tensor[None]).unflatten(-1, (groups, -1))

    o = _norm(split(x), split(gate), weight.unflatten(0, (groups, -1)), eps, "silu", first and gate is not None)
    return o.reshape(x.shape)
