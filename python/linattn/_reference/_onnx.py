"""The oracle of `onnx_linear_attention`: the specification, token by token."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._operators import _conv

__all__ = ["onnx_causal_conv_with_state", "onnx_linear_attention"]


def onnx_linear_attention(
    query, key, value, past_state=None, decay=None, beta=None, *, q_num_heads, kv_num_heads,
    update_rule="gated_delta", scale=0.0, chunk_size=0, erase_gate=None,
):  # fmt: skip
    """`linattn.onnx_linear_attention` by its formula, in float64."""
    groups, rest = divmod(q_num_heads, kv_num_heads)
    if rest:
        raise ValueError(
            f"q_num_heads: expected a multiple of kv_num_heads, {kv_num_heads}, but got {q_num_heads}"
        )
    gated, delta = update_rule.startswith("gated"), update_rule.endswith("delta")
    for name, operand, needed in (("decay", decay, gated), ("beta", beta, delta)):
        if (operand is not None) != needed:
            raise ValueError(
                f"{name}: expected {'an array' if needed else 'None'} with update_rule {update_rule}, "
                f"but got {'an array' if operand is not None else 'None'}"
            )
    arrays = (query, key, value, past_state, decay, beta, erase_gate)
    q, k, v, S, g, b, e = (
        None if x is None else _arrays.to_numpy(x).astype(np.float64) for x in arrays
    )
    B, T, _ = q.shape

    def split(x, *heads):
        return x.reshape(B, T, *heads, x.shape[-1] // int(np.prod(heads)))

    q = split(q, kv_num_heads, groups)
    k, v = split(k, kv_num_heads), split(v, kv_num_heads)
    if S is None:
        S = np.zeros((B, kv_num_heads, k.shape[-1], v.shape[-1]))
    if g is not None:
        # Per head or per channel: the last of four dimensions is 1 or d_k.
        g = split(g, kv_num_heads)
    read = k if e is None else k * e.reshape(k.shape)
    factor = scale or k.shape[-1] ** -0.5
    o = np.empty((B, T, kv_num_heads, groups, v.shape[-1]))
    for t in range(T):
        if gated:
            S = S * np.exp(g[:, t])[..., None]
        write = v[:, t]
        if delta:
            write = b[:, t, :, None] * (write - np.einsum("bhkv,bhk->bhv", S, read[:, t]))
        S = S + k[:, t, :, :, None] * write[:, :, None, :]
        o[:, t] = factor * np.einsum("bhkv,bhgk->bhgv", S, q[:, t])
    o = o.reshape(B, T, q_num_heads * v.shape[-1])
    return tuple(_arrays.convert_like(np.ascontiguousarray(x), query) for x in (o, S))


def onnx_causal_conv_with_state(input, weight, bias=None, past_state=None, *, activation="none"):
    """`linattn.onnx_causal_conv_with_state` by its formula, in float64."""
    y, state = _conv.reference_causal_conv1d(
        input.swapaxes(1, 2), weight, bias, activation=None if activation == "none" else activation,
        initial_state=past_state, return_state=True,
    )  # fmt: skip
    return y.swapaxes(1, 2), state
