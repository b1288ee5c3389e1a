"""The additive families by their own definitions, in float64 and token by token.

Nothing here is shared with the compiler, not even the table of families.
"""

from __future__ import annotations

from functools import wraps

import numpy as np

from .._families import _named
from .._recurrence._plans import default_eps
from .._recurrence._state import State
from ._define import loop_additive, loop_tokens, outer_product, per_head, read_state, reference, repeat_heads, set_up, share_heads

__all__ = [
    "linear_attention", "rfa", "retnet", "lightning", "simple_gla", "mamba2", "mlstm",
    "gla", "hgrn", "hgrn2", "rwkv5", "rwkv6",
]  # fmt: skip


_PHI = {
    "identity": lambda x: x,
    "elu": lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "softmax_kernel": lambda x: np.exp(x - x.max(-1, keepdims=True)),
}


def _normalized(a, initial, keep, write):
    """With a column of ones beside the values, the sum of the keys is a column of
    the state."""
    phi = _PHI[a.feature_map]
    q, k, v, scale, _ = set_up(a, None)
    q, k = phi(q), phi(k)
    B, T, H, K = k.shape
    v = np.concatenate([v, np.ones((B, T, H, 1))], axis=3)
    S = np.zeros((B, H, K, v.shape[3]))
    if initial is not None:
        S[..., :-1] = initial[0]
        if a.normalize:
            S[..., -1] = initial[1]
    o, S = loop_tokens(q, S, lambda S, t: keep(t) * S + write(t) * outer_product(k[:, t], v[:, t]), scale)
    num, den = o[..., :-1], o[..., -1:]
    if not a.normalize:
        return num, [S[..., :-1]]
    eps = a.eps if a.eps is not None else default_eps(a.dtype)
    return num / (den + eps), [S[..., :-1], S[..., -1]]


def _with_state(function):
    """(S, z) as a `State`, with the eps of the tokens' dtype."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        result = function(*args, **kwargs)
        if isinstance(result, tuple) and isinstance(result[1], tuple):
            return result[0], State(*result[1])
        return result

    wrapped.__signature__ = function.__signature__
    return wrapped


@_with_state
@reference(_named.linear_attention)
def linear_attention(a, initial):
    return _normalized(a, initial, lambda t: 1.0, lambda t: 1.0)


@_with_state
@reference(_named.rfa, gates=("g",))
def rfa(a, initial):
    return _normalized(a, initial, lambda t: per_head(a.g, t), lambda t: 1 - per_head(a.g, t))


@reference(_named.retnet)
def retnet(a, initial):
    gamma = 1 - 2.0 ** (-5 - np.arange(share_heads(a.k, a.v)))
    return loop_additive(a, initial, lambda t: gamma[:, None, None])


@reference(_named.lightning)
def lightning(a, initial):
    H = share_heads(a.k, a.v)
    gamma = np.exp(-(8 / H) * (1 - a.layer_idx / a.num_layers) * np.arange(H))
    return loop_additive(a, initial, lambda t: gamma[:, None, None])


@reference(_named.simple_gla, gates=("g",), parameters=("g_gamma",))
def simple_gla(a, initial):
    if a.g_gamma is not None:
        return loop_additive(a, initial, lambda t: np.exp(a.g_gamma)[:, None, None])
    return loop_additive(a, initial, lambda t: 1.0 if a.g is None else per_head(a.g, t))


@reference(_named.mamba2, gates=("dt",), parameters=("A", "D", "dt_bias"))
def mamba2(a, initial):
    H = share_heads(a.x, a.B)
    step = a.dt if a.dt_bias is None else a.dt + a.dt_bias
    if a.dt_softplus:
        step = np.logaddexp(0, step)
    x, B = repeat_heads(a.x, H), repeat_heads(a.B, H)
    # The state is [B,H,P,N]: here and in the result.
    S = np.zeros((x.shape[0], H, x.shape[3], B.shape[3])) if initial is None else initial[0]
    S = S.swapaxes(2, 3)
    write = lambda t: outer_product(B[:, t], step[:, t, :, None] * x[:, t])  # noqa: E731
    y, S = loop_tokens(a.C, S, lambda S, t: np.exp(step[:, t] * a.A)[:, :, None, None] * S + write(t), 1.0)
    if a.D is not None:
        y = y + (a.D[:, None] if a.D.ndim == 1 else a.D) * x
    return y, [S.swapaxes(2, 3)]


@_with_state
@reference(_named.mlstm, gates=("i", "f"))
def mlstm(a, initial):
    q, k, v, scale, S = set_up(a, initial)
    B, T, H, K = k.shape
    z = np.zeros((B, H, K)) if initial is None else initial[1]
    m = np.full((B, H), -np.inf) if initial is None else initial[2]
    Ho = max(q.shape[2], H)
    q, o = repeat_heads(q, Ho), np.zeros((B, T, Ho, v.shape[3]))
    for t in range(T):
        keep = -np.logaddexp(0, -a.f[:, t]) + m
        m = np.maximum(keep, a.i[:, t])
        f, i = np.exp(keep - m), np.exp(a.i[:, t] - m)
        S = f[..., None, None] * S + i[..., None, None] * outer_product(k[:, t], v[:, t])
        z = f[..., None] * z + i[..., None] * k[:, t]
        num, den, floor = (np.repeat(x, Ho // H, axis=1) for x in (S, z, np.exp(-m)))
        num, den = scale * read_state(num, q[:, t]), scale * (den * q[:, t]).sum(-1)
        o[:, t] = num / (np.maximum(abs(den), floor) + a.eps)[..., None]
    return o, [S, z, m]


@reference(_named.gla, gates=("g", "gv"))
def gla(a, initial):
    def decay(t):
        keys = 1.0 if a.g is None else np.exp(a.g[:, t])[..., :, None]
        return keys * (1.0 if a.gv is None else np.exp(a.gv[:, t])[..., None, :])

    return loop_additive(a, initial, decay)


@reference(_named.hgrn, headless=("x", "g"))
def hgrn(a, initial):
    h = np.zeros((a.x.shape[0], a.x.shape[2])) if initial is None else initial[0]
    o = np.zeros_like(a.x)
    for t in range(a.x.shape[1]):
        h = np.exp(a.g[:, t]) * h + a.x[:, t]
        o[:, t] = h
    return o, [h]


@reference(_named.hgrn2, gates=("g",))
def hgrn2(a, initial):
    a.k = 1 - np.exp(a.g)
    return loop_additive(a, initial, lambda t: np.exp(a.g[:, t])[..., None])


def _rwkv(a, initial, decay):
    r, k, v, scale, S = set_up(a, initial, "r")
    u = a.u.reshape(-1, a.u.shape[-1])
    own = lambda S, t: S + outer_product(u * k[:, t], v[:, t])  # noqa: E731
    step = lambda S, t: decay(t) * S + outer_product(k[:, t], v[:, t])  # noqa: E731
    o, S = loop_tokens(r, S, step, scale, before=own)
    return o, [S]


@reference(_named.rwkv5, parameters=("w", "u"))
def rwkv5(a, initial):
    return _rwkv(a, initial, lambda t: np.exp(a.w.reshape(-1, a.w.shape[-1]))[..., None])


@reference(_named.rwkv6, gates=("w",), parameters=("u",))
def rwkv6(a, initial):
    return _rwkv(a, initial, lambda t: np.exp(a.w[:, t])[..., None])
