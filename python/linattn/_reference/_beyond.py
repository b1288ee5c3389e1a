"""The families beyond the scan by their formulas, in float64 and token by token.

Nothing here is shared with the compiler, not even the table of families.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np

from .._core import _arrays
from .._families import _beyond, _named
from .._recurrence._parts import check_inplace
from ._define import assign_state

__all__ = ["log_linear", "lru", "rwkv4", "s4d", "selective_scan"]


def _wide(array):
    return np.asarray(array, np.complex128 if np.iscomplexobj(array) else np.float64)


def _reference(first, **token_axes):
    """Makes a function with the signature of the public one of that name.

    Its operands come as float64 arrays with a batch; the one that computes returns
    o [B, …] and the parts of the state.

    Args:
      first: the operand whose rank says whether there is a batch.
      token_axes: operand -> its rank with a batch and heads, where it has them.
    """

    def decorate(compute):
        public = getattr(_beyond if compute.__name__ == "selective_scan" else _named, compute.__name__)
        signature = inspect.signature(public)

        @functools.wraps(public)
        def function(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            a = bound.arguments
            like, given = a[first], a["initial_state"]
            missing = token_axes[first] - _arrays.to_numpy(like, first).ndim
            has_heads = token_axes[first] == 4
            batched = missing < (2 if has_heads else 1)
            for name, value in a.items():
                if name == "initial_state" and value is not None:
                    parts = value if isinstance(value, (tuple, list)) else (value,)
                    a[name] = [_wide(_arrays.to_numpy(x, name)) for x in parts]
                elif hasattr(value, "__dlpack__") and name not in ("out", "cu_seqlens"):
                    array = _wide(_arrays.to_numpy(value, name))
                    if name in token_axes and has_heads and missing:
                        array = np.expand_dims(array, -2 if token_axes[name] == 4 else -1)
                    a[name] = array[None] if name in token_axes and not batched else array
            options = {"out", "num_threads", "target", "output_final_state", "return_last_state", "inplace"}
            o, state = compute(**{name: x for name, x in a.items() if name not in options})
            o = o[:, :, 0] if has_heads and missing else o
            o = o if batched else o[0]
            if a["out"] is not None:
                np.copyto(_arrays.to_numpy(a["out"], "out"), o, casting="same_kind")
                o = a["out"]
            else:
                o = _arrays.convert_like(np.ascontiguousarray(o), like)
            returns_state = a.get("output_final_state", a.get("return_last_state"))
            if check_inplace(a["inplace"], given):
                assign_state(given, state)
                return (o, given) if returns_state else o
            if not returns_state:
                return o
            state = tuple(_arrays.convert_like(np.ascontiguousarray(x), like) for x in state)
            return o, state[0] if len(state) == 1 else state

        function.__signature__ = signature
        function.__doc__ = f"`linattn.{public.__name__}` by its formula, in float64."
        return function

    return decorate


@_reference("u", u=3, delta=3, z=3)
def selective_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state):
    batch, channels, T = u.shape
    h = np.zeros((batch, channels, A.shape[1]), A.dtype) if initial_state is None else initial_state[0].copy()
    if np.iscomplexobj(A):  # real projections of twice the tokens are pairs
        B, C = (x[..., ::2] + 1j * x[..., 1::2] if np.isrealobj(x) and x.shape[-1] == 2 * T else x for x in (B, C))
    if delta_bias is not None:
        delta = delta + delta_bias[:, None]
    if delta_softplus:
        delta = np.logaddexp(0, delta)

    def at(x, t):  # [B, C, S]
        if x.ndim == 2 and x.shape[0] == channels:
            return x[None]
        if x.ndim == 2:
            x = x[None]
        if x.ndim == 3:
            x = x[:, None]
        return x[..., t].repeat(channels // x.shape[1], axis=1)

    o = np.zeros_like(u)
    for t in range(T):
        step = delta[:, :, t, None]
        h = np.exp(step * A) * h + step * at(B, t) * u[:, :, t, None]
        y = (at(C, t) * h).sum(-1)
        o[:, :, t] = 2 * y.real if np.iscomplexobj(A) else y
    if D is not None:
        o = o + D[:, None] * u
    if z is not None:
        o = o * z / (1 + np.exp(-z))
    return o, (h,)


@_reference("k", k=3, v=3)
def rwkv4(w, u, k, v, initial_state, reverse, cu_seqlens):
    T = k.shape[1]
    offsets = [0, T] if cu_seqlens is None else np.asarray(cu_seqlens).tolist()
    o, states = np.zeros_like(k), []
    for n, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        if initial_state is None:
            num, den, m = np.zeros_like(k[:, 0]), np.zeros_like(k[:, 0]), np.full_like(k[:, 0], -np.inf)
        else:
            num, den, m = (x if cu_seqlens is None else x[n : n + 1] for x in initial_state)
        for t in range(begin, end)[:: -1 if reverse else 1]:
            top = np.maximum(m, u + k[:, t])
            past, own = np.exp(m - top), np.exp(u + k[:, t] - top)
            o[:, t] = (past * num + own * v[:, t]) / (past * den + own)
            top = np.maximum(m + w, k[:, t])
            past, own, m = np.exp(m + w - top), np.exp(k[:, t] - top), top
            num, den = past * num + own * v[:, t], past * den + own
        states.append((num, den, m))
    return o, tuple(np.concatenate(part) for part in zip(*states))


@_reference("q", q=4, k=4, v=4, g=3, level_scales=4)
def log_linear(q, k, v, g, level_scales, scale, initial_state):
    B, T, Hq, K = q.shape
    H, V, L = max(k.shape[2], v.shape[2]), v.shape[3], level_scales.shape[3]
    Ho = max(Hq, H)
    scale = K**-0.5 if scale is None else scale
    S, position = np.zeros((B, H, L, K, V)), np.zeros(B)
    if initial_state is not None:
        S, position = initial_state[0].copy(), initial_state[1]
    q, k, v = q.repeat(Ho // Hq, 2), k.repeat(H // k.shape[2], 2), v.repeat(H // v.shape[2], 2)
    o = np.zeros((B, T, Ho, V))
    for b in range(B):
        for t in range(T):
            p = int(position[b]) + t
            if p > 0:
                into = min((p & -p).bit_length(), L - 1)
                merged = S[b, :, : into + 1].sum(1)
                S[b, :, :into], S[b, :, into] = 0, merged
            S[b] *= np.exp(g[b, t])[:, None, None, None]
            S[b, :, 0] += np.einsum("hk,hv->hkv", k[b, t], v[b, t])
            read = np.einsum("hl,hlkv->hkv", level_scales[b, t], S[b]).repeat(Ho // H, 0)
            o[b, t] = scale * np.einsum("hk,hkv->hv", q[b, t], read)
    return o, (S, position + T)


@_reference("u", u=3)
def lru(u, nu_log, theta_log, B_re, B_im, C_re, C_im, gamma_log, D, initial_state):
    factor = np.exp(-np.exp(nu_log) + 1j * np.exp(theta_log))
    gamma = np.sqrt(1 - abs(factor) ** 2) if gamma_log is None else np.exp(gamma_log)
    h = np.zeros((u.shape[0], len(factor)), np.complex128)
    if initial_state is not None:
        h = initial_state[0] + 1j * initial_state[1]
    o = np.zeros_like(u)
    for t in range(u.shape[1]):
        h = factor * h + gamma * (u[:, t] @ (B_re + 1j * B_im).T)
        o[:, t] = (h @ (C_re + 1j * C_im).T).real
    return o if D is None else o + D * u, (h.real, h.imag)


def s4d(
    u, dt, A, C, B=None, D=None, *, method="zoh", initial_state=None, return_last_state=False, num_threads=None,
    target=None,
):  # fmt: skip
    """`linattn.s4d` by its formula, in float64."""
    like, u = u, np.asarray(_arrays.to_numpy(u, "u"), np.float64)
    dt = np.asarray(_arrays.to_numpy(dt), np.float64)[:, None]
    A, C = (np.asarray(_arrays.to_numpy(x), np.complex128) for x in (A, C))
    B = np.ones_like(A) if B is None else np.asarray(_arrays.to_numpy(B), np.complex128)
    if method == "zoh":
        factor, written = np.exp(dt * A), (np.exp(dt * A) - 1) / A * B
    else:
        factor, written = (1 + dt * A / 2) / (1 - dt * A / 2), dt * B / (1 - dt * A / 2)
    o = np.zeros_like(u)
    h = 0j if initial_state is None else np.asarray(_arrays.to_numpy(initial_state), np.complex128)
    for t in range(u.shape[-1]):
        h = factor * h + written * u[..., t, None]
        o[..., t] = 2 * (C * h).real.sum(-1)
    if D is not None:
        o = o + np.asarray(_arrays.to_numpy(D), np.float64)[:, None] * u
    o = _arrays.convert_like(o, like)
    return (o, _arrays.convert_like(h, like)) if return_last_state else o
