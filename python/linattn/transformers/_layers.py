"""Recurrences in layers that have no decorator of transformers."""

from __future__ import annotations

import torch

from .._families._named import families, rwkv4
from ._guard import PassOn, trains
from ._run import detach, initial, of_dtype, run

__all__ = ["lightning_attention", "mlstm", "rg_lru", "rwkv_linear_attention"]


# ----------------------------------------------------------------------------
# MiniMax
# ----------------------------------------------------------------------------


@trains
def lightning_attention(
    self, hidden_states, position_embeddings, attention_mask, past_key_values=None, **kwargs
):
    """The whole layer, whose attention is `linattn.simple_gla` with a decay per head."""
    _check_parameters(self)
    rows, length, _ = hidden_states.shape
    qkv = self.act_fn(self.qkv_proj(hidden_states))
    if attention_mask is not None:
        qkv = (qkv * attention_mask[:, :, None]).to(qkv.dtype)
    qkv = qkv.reshape(rows, length, self.num_attention_heads, 3 * self.head_dim)
    q, k, v = torch.split(qkv, self.head_dim, dim=3)
    state = None if past_key_values is None else past_key_values.get_linear_cache(self.layer_idx)
    dtype = v.dtype
    o, state = run(
        families["simple_gla"], (q, k, v, None, -_slopes(self), None), {"scale": 1.0, "reverse": False},
        initial(state, v), True,
    )  # fmt: skip
    o = self.norm(o.reshape(rows, length, -1))
    o = self.out_proj(torch.sigmoid(self.output_gate(hidden_states)) * o)
    # The states of a model in 16 bits have 16 bits, between calls.
    state = of_dtype(state, dtype)
    if past_key_values is not None:
        past_key_values.set_linear_cache(self.layer_idx, state)
    return o, state


def _slopes(layer):
    """The decays per head. A buffer of 16 bits has lost most of their digits."""
    slopes = layer.slope_rate
    if slopes.dtype.itemsize < 4:
        exact = layer.get_slope_rate(slopes.device).float()
        slopes = exact if torch.equal(exact.to(slopes.dtype), slopes) else slopes.float()
    return slopes.reshape(-1)


def _check_parameters(layer):
    for parameter in layer.parameters():
        if not parameter.is_cpu:
            raise PassOn(f"tensors on {parameter.device.type}")


# ----------------------------------------------------------------------------
# RWKV-4
# ----------------------------------------------------------------------------


@trains
def rwkv_linear_attention(time_decay, time_first, key, value, state=None, return_state=False):
    """`linattn.rwkv4`; the state is a list of numerator, denominator and maximum."""
    returns_state = bool(return_state) or state is not None
    result = rwkv4(
        -torch.exp(detach(time_decay)), detach(time_first), detach(key), detach(of_dtype(value, key.dtype)),
        None if state is None else tuple(detach(part) for part in state), returns_state,
    )  # fmt: skip
    return (result[0], list(result[1])) if returns_state else (result, None)


# ----------------------------------------------------------------------------
# xLSTM
# ----------------------------------------------------------------------------


def mlstm(
    self, query, key, value, igate, fgate, c_initial=None, n_initial=None, m_initial=None,
    return_last_states=None, mode=None,
):  # fmt: skip
    """`linattn.mlstm` in mode "inference"; initial states are overwritten by the final ones,
    and are then what is returned."""
    mode = self.config.mode if mode is None else mode
    if "inference" not in mode:
        raise PassOn(f"mode {mode!r}")
    given = (c_initial, n_initial, m_initial)
    if any(part is None for part in given):
        # As the original: a running maximum of 0 is part of where it starts.
        (rows, heads, _, width), size = query.shape, value.shape[-1]
        like = {"dtype": getattr(torch, self.config.inference_state_dtype)}
        shapes = (rows, heads, width, size), (rows, heads, width), (rows, heads, 1)
        given = tuple(torch.zeros(shape, **like) if part is None else part for part, shape in zip(given, shapes))
    c, n, m = (initial(part, query) for part in given)
    tokens = tuple(detach(x).transpose(1, 2) for x in (query, key, value, igate, fgate))
    options = {"scale": None, "eps": float(self.config.eps), "reverse": False}
    o, parts = run(families["mlstm"], (*tokens, None), options, (c, n, m.squeeze(-1)), True)
    return o.transpose(1, 2), _written(given, parts)


def _written(given, parts):
    """The given tensors, with what the parts hold."""
    written = []
    for tensor, part in zip(given, parts):
        part = part.reshape(tensor.shape)
        if part.data_ptr() != tensor.data_ptr():
            tensor.copy_(part)
        written.append(tensor)
    return tuple(written)


# ----------------------------------------------------------------------------
# RecurrentGemma
# ----------------------------------------------------------------------------


# The logarithm of a decay that nothing survives.
_NOTHING = -1.0e4


@trains
def rg_lru(self, hidden_states, recurrent_gate, reset, recurrent_states, acc_dtype=torch.float32):
    """`linattn.hgrn`, whose decays are logarithms; a reset forgets all."""
    if acc_dtype is not torch.float32 or hidden_states.dtype is torch.float64:
        raise PassOn(f"states of {acc_dtype} beside {hidden_states.dtype}")
    decay = detach(recurrent_gate).to(torch.float32).log().clamp(min=_NOTHING).masked_fill(reset, _NOTHING)
    state = initial(recurrent_states, hidden_states)
    return run(families["hgrn"], (detach(hidden_states), decay, None), {"reverse": False}, state, True)
