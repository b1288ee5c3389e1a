"""The families of running softmax and of two scans by their own definitions, in float64.

Nothing here is shared with the compiler, not even the table of families.
"""

from __future__ import annotations

import numpy as np

from .._families import _named
from ._define import loop_additive, loop_tokens, outer_product, reference, set_up

__all__ = ["lightnet", "gsa", "abc"]


# ----------------------------------------------------------------------------
# Running softmax
# ----------------------------------------------------------------------------


def _running_log_sum(x, start):
    """log Σ_{j≤t} e^x_j [B,T + 1,H,·], which begins with `start`."""
    return np.logaddexp.accumulate(np.concatenate([start[:, None], x], axis=1), axis=1)


@reference(_named.lightnet)
def lightnet(a, initial):
    start = np.full(np.delete(a.k.shape, 1), -np.inf) if initial is None else initial[1]
    z = _running_log_sum(a.k, start)
    a.k = np.exp(a.k - z[:, 1:])
    o, [S] = loop_additive(a, initial, lambda t: np.exp(z[:, t] - z[:, t + 1])[..., None])
    return o, [S, z[:, -1]]


# ----------------------------------------------------------------------------
# Two scans
# ----------------------------------------------------------------------------


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _slots(a, initial, slots, decay):
    q, k, v, scale, _ = set_up(a, None)
    B, _, H, K = k.shape
    M = slots.shape[3]
    keys, values = (np.zeros((B, H, K, M)), np.zeros((B, H, M, v.shape[3]))) if initial is None else initial[:2]
    logits, keys = loop_tokens(
        q, keys, lambda S, t: decay(t)[:, :, None, :] * S + outer_product(k[:, t], slots[:, t]), scale
    )
    o, values = loop_tokens(
        _softmax(logits), values,
        lambda S, t: decay(t)[..., None] * S + outer_product(slots[:, t], v[:, t]), 1.0,
    )  # fmt: skip
    return o, [keys, values]


@reference(_named.gsa, gates=("g",))
def gsa(a, initial):
    return _slots(a, initial, a.s, lambda t: np.exp(a.g[:, t]))


@reference(_named.abc)
def abc(a, initial):
    start = np.full(np.delete(a.s.shape, 1), -np.inf) if initial is None else initial[2]
    z = _running_log_sum(a.s, start)
    weights = np.exp(a.s - z[:, 1:])
    o, state = _slots(a, initial, weights, lambda t: np.exp(z[:, t] - z[:, t + 1]))
    return o, [*state, z[:, -1]]
