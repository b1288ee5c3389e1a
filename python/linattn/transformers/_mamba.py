"""Mamba-2's scan, Mamba-1's scan, and one step of each."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .._families import _beyond
from .._families._named import families
from ._guard import PassOn, trains
from ._packed import find_packing
from ._run import detach, initial, is_recorded, of_dtype, run, state_dtype

__all__ = ["mamba_chunk_scan_combined", "selective_scan_fn", "selective_state_update"]


@trains
def mamba_chunk_scan_combined(
    hidden_states, dt, A, B, C, chunk_size, D=None, dt_bias=None, initial_states=None, dt_softplus=False,
    dt_limit=(0.0, float("inf")), return_final_states=False, **kwargs,
):  # fmt: skip
    """`linattn.mamba2`; initial states are overwritten by the final ones if those are
    returned, and are then what is returned. z gates the output, seq_idx keeps packed
    sequences apart."""
    x, dtype = detach(hidden_states), hidden_states.dtype
    state = initial(initial_states, x)
    dt, dt_bias = detach(dt), detach(dt_bias)
    low, high = dt_limit
    # A softplus is never below 0.
    if not (dt_softplus and low <= 0) or high != math.inf:
        dt = dt.to(state_dtype(x))
        dt = dt if dt_bias is None else dt + dt_bias
        dt = (F.softplus(dt) if dt_softplus else dt).clamp(low, high)
        dt_bias, dt_softplus = None, False
    B, C = detach(of_dtype(B, dtype)), detach(of_dtype(C, dtype))
    packing = find_packing(kwargs.get("seq_idx"), x)
    arguments = (detach(A), detach(D), dt_bias, dt_softplus)
    if packing is None:
        y, state = _mamba2(x, dt, B, C, *arguments, None, state, return_final_states)
    else:
        y, state = _packed_mamba2(x, dt, B, C, arguments, packing, state, return_final_states)
    z = kwargs.get("z")
    if z is not None:
        y = _gated(y, detach(z))
    return (y, state) if return_final_states else y


def _mamba2(x, dt, B, C, A, D, dt_bias, dt_softplus, offsets, state, returns_state):
    return run(
        families["mamba2"], (x, B, C, dt, A, D, dt_bias, offsets), {"dt_softplus": bool(dt_softplus)}, state,
        bool(returns_state),
    )  # fmt: skip


def _gated(y, z):
    return (y * F.silu(z.to(state_dtype(y)))).to(y.dtype)


def _packed_mamba2(x, dt, B, C, arguments, packing, state, returns_state):
    """All rows as one row of sequences. A row's initial state is that of its first sequence,
    its final state that of its last."""
    rows, length, heads, width = x.shape
    states = None
    if state is not None:
        states = state.new_zeros((len(packing.offsets) - 1, heads, width, B.shape[-1]))
        states = states.index_put((packing.first,), state)
    flat = [tensor.reshape(1, rows * length, *tensor.shape[2:]) for tensor in (x, dt, B, C)]
    y, states = _mamba2(*flat, *arguments, packing.offsets, states, returns_state)
    y = y.reshape(x.shape)
    if not returns_state:
        return y, None
    if state is None:
        return y, states[packing.last]
    final = states[packing.last]
    return y, final if is_recorded(final) else state.copy_(final)


def _selective_scan(operands, softplus, state, returns_state):
    """`linattn.selective_scan` with a real A."""
    options = {"delta_softplus": bool(softplus), "complex": False}
    return run(_beyond._selective_scan, (*operands, None, None, None), options, state, bool(returns_state))


@trains
def selective_scan_fn(
    hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False,
    use_mambapy=False, use_associative_scan=False, **kwargs,
):  # fmt: skip
    """`linattn.selective_scan`, from a state of zeros, as the original."""
    if kwargs.get("seq_idx") is not None or kwargs.get("cu_seqlens") is not None:
        raise PassOn("packed sequences, which Mamba-1's scan does not keep apart")
    u = detach(hidden_states)
    operands = (u, detach(dt), detach(A), detach(B), detach(C), detach(D), detach(of_dtype(z, u.dtype)), detach(delta_bias))
    y, state = _selective_scan(operands, delta_softplus, None, return_last_state)
    return (y, state) if return_last_state else y


def selective_state_update(
    state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **kwargs
):
    """One token of Mamba-1 (``[B, D]``) or Mamba-2 (``[B, H, P]``); `state` is overwritten."""
    if hidden_states.ndim == 2:
        step = _step_mamba1
    elif hidden_states.ndim == 3:
        step = _step_mamba2
    else:
        raise ValueError(
            f"hidden_states: expected shape (B, D) or (B, H, P), but got {tuple(hidden_states.shape)}"
        )
    if state is None:
        raise TypeError("state: expected a tensor, but got NoneType")
    own = initial(state, hidden_states)
    y, new = step(own, detach(hidden_states), detach(dt), detach(A), detach(B), detach(C), detach(D), detach(dt_bias), dt_softplus, detach(z))
    if new is not state:
        state.copy_(new)
    return y


def _step_mamba1(state, x, dt, A, B, C, D, dt_bias, dt_softplus, z):
    tokens = [tensor if tensor is None else tensor.unsqueeze(-1) for tensor in (x, dt, B, C, of_dtype(z, x.dtype))]
    u, dt, B, C, z = tokens
    y, state = _selective_scan((u, dt, A, B, C, D, z, dt_bias), dt_softplus, state, True)
    return y.squeeze(-1), state


def _step_mamba2(state, x, dt, A, B, C, D, dt_bias, dt_softplus, z):
    """Steps, decays and biases are one number per head here, expanded by the model."""
    dt = _head("dt", dt, 1)
    A = _head("A", A, 2)
    dt_bias = _head("dt_bias", dt_bias, 1)
    tokens = (tensor.unsqueeze(1) for tensor in (x, of_dtype(B, x.dtype), of_dtype(C, x.dtype), dt))
    y, state = run(
        families["mamba2"], (*tokens, A, D, dt_bias, None), {"dt_softplus": bool(dt_softplus)}, state, True
    )
    y = y.squeeze(1)
    if z is not None:
        y = _gated(y, z)
    return y, state


def _head(name, tensor, trailing):
    """The one number per head of a tensor that is expanded along its last dimensions."""
    if tensor is None:
        return None
    for size, stride in zip(tensor.shape[-trailing:], tensor.stride()[-trailing:]):
        if size != 1 and stride != 0:
            raise PassOn(f"{name} differs within a head")
    return tensor[(..., *(0,) * trailing)]
