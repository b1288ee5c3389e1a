"""Mamba-3 by its formula, in float64 and token by token.

Nothing here is shared with the compiler, not even the table of families.
"""

from __future__ import annotations

import functools
import inspect
from types import SimpleNamespace

import numpy as np

from .._core import _arrays
from .._families import _named

__all__ = ["mamba3", "mamba3_mimo"]

# Where the tokens are, in arrays that have any.
_TOKENS = {"Q": 1, "K": 1, "V": 1, "Angles": 1, "Z": 1, "ADT": 2, "DT": 2, "Trap": 2}
_PARAMETERS = ("Q_bias", "K_bias", "MIMO_V", "MIMO_Z", "MIMO_Out", "D")


def _reference(compute):
    """A function with the signature of the public one of that name; the one
    that computes gets float64 arrays of one sequence or of a batch, and the states
    before."""
    public = getattr(_named, compute.__name__)
    signature = inspect.signature(public)

    @functools.wraps(public)
    def function(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        widen = lambda x, name: np.asarray(_arrays.to_numpy(x, name), np.float64)  # noqa: E731
        arrays = {
            name: None if given.get(name) is None else widen(given[name], name)
            for name in (*_TOKENS, *_PARAMETERS)
        }
        states = given["Input_States"]
        states = None if states is None else [widen(x, "Input_States") for x in states]
        cu_seqlens = given["cu_seqlens"]
        offsets = None if cu_seqlens is None else np.asarray(cu_seqlens).tolist()
        outputs, ends = [], []
        for n, (begin, end) in enumerate(zip(offsets, offsets[1:]) if offsets else [(0, arrays["V"].shape[1])]):
            part = {
                name: x if x is None or name not in _TOKENS else np.take(x, range(begin, end), _TOKENS[name])
                for name, x in arrays.items()
            }
            start = states if states is None or offsets is None else [x[n : n + 1] for x in states]
            options = {"rotate_pairwise": given.get("rotate_pairwise", True)}
            o, state = compute(SimpleNamespace(**part, **options), start)
            outputs.append(o)
            ends.append(state)
        o = np.concatenate(outputs, axis=1)
        if given["out"] is not None:
            np.copyto(_arrays.to_numpy(given["out"], "out"), o, casting="same_kind")
            o = given["out"]
        else:
            o = _arrays.convert_like(np.ascontiguousarray(o), given["Q"])
        if not given["return_final_states"]:
            return o
        final = [np.ascontiguousarray(np.concatenate(parts)) for parts in zip(*ends)]
        return o, tuple(_arrays.convert_like(x, given["Q"]) for x in final)

    function.__signature__ = signature
    function.__doc__ = f"`linattn.{public.__name__}` by its formula, in float64."
    return function


def _rotate(x, theta, pairwise):
    """x [B, R, H, N] with pairs of its elements rotated by theta [B, H, S]."""
    S = theta.shape[-1]
    first = slice(0, 2 * S, 2) if pairwise else slice(0, S)
    second = slice(1, 2 * S, 2) if pairwise else slice(x.shape[-1] // 2, x.shape[-1] // 2 + S)
    cos, sin = np.cos(theta)[:, None], np.sin(theta)[:, None]
    rotated = x.copy()
    rotated[..., first] = x[..., first] * cos - x[..., second] * sin
    rotated[..., second] = x[..., first] * sin + x[..., second] * cos
    return rotated


def _silu(z):
    return z / (1 + np.exp(-z))


def _walk(a, states):
    """y [B, T, R, H, P] before its gates, and the states (θ, S, k̃ [B, R, H, N], V);
    queries and keys are [B, T, R, G, N], biases and MIMO_V [H, R, ·]."""
    B, T, H, P = a.V.shape
    R, G, N = a.Q.shape[2:]
    theta, S, k, v = states or (
        np.zeros((B, H, a.Angles.shape[3])), np.zeros((B, H, P, N)), np.zeros((B, R, H, N)), np.zeros((B, H, P)),
    )  # fmt: skip
    bias = {name: 0.0 if x is None else x.swapaxes(0, 1) for name, x in (("Q", a.Q_bias), ("K", a.K_bias))}
    share = a.MIMO_V.swapaxes(0, 1)
    write = lambda k, v: np.einsum("brhn,brhp->bhpn", k, v[:, None] * share)  # noqa: E731
    y = np.zeros((B, T, R, H, P))
    for t in range(T):
        step, trap = a.DT[:, :, t], 1 / (1 + np.exp(-a.Trap[:, :, t]))
        theta = theta + np.pi * np.tanh(a.Angles[:, t]) * step[..., None]
        S = S + ((1 - trap) * step)[..., None, None] * write(k, v)
        q = _rotate(a.Q[:, t].repeat(H // G, 2) + bias["Q"], theta, a.rotate_pairwise)
        k = _rotate(a.K[:, t].repeat(H // G, 2) + bias["K"], theta, a.rotate_pairwise)
        v = a.V[:, t]
        S = np.exp(a.ADT[:, :, t])[..., None, None] * S + (trap * step)[..., None, None] * write(k, v)
        y[:, t] = np.einsum("bhpn,brhn->brhp", S, q)
        if a.D is not None:
            y[:, t] += a.D[:, None] * v[:, None] * share
    return y, (theta % (2 * np.pi), S, k, v)


@_reference
def mamba3(a, states):
    H, P = a.V.shape[2:]
    a.Q, a.K = a.Q[:, :, None], a.K[:, :, None]
    a.Q_bias, a.K_bias = (x if x is None else x[:, None] for x in (a.Q_bias, a.K_bias))
    a.MIMO_V = np.ones((H, 1, P))
    if states is not None:
        states = (*states[:2], states[2][:, None], states[3])
    y, (theta, S, k, v) = _walk(a, states)
    o = y[:, :, 0]
    return o if a.Z is None else o * _silu(a.Z), (theta, S, k[:, 0], v)


@_reference
def mamba3_mimo(a, states):
    y, states = _walk(a, states)
    if a.Z is not None:
        y = y * _silu(a.Z[:, :, None] * a.MIMO_Z.swapaxes(0, 1))
    return (y * a.MIMO_Out.swapaxes(0, 1)).sum(2), states
