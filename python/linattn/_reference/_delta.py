"""The delta families by their own definitions, in float64 and token by token.

Nothing here is shared with the compiler, not even the table of families.
"""

from __future__ import annotations

import numpy as np

from .._families import _named
from ._define import loop_tokens, outer_product, per_head, read_state, reference, repeat_heads, set_up

__all__ = [
    "delta_rule", "gated_delta_rule", "kda", "gdn2", "ttt_linear", "gated_oja", "comba",
    "momentum_delta_rule", "iplr", "dplr", "rwkv7", "gated_deltaproduct",
]  # fmt: skip


def _unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def _setup_delta(a, initial, q="q"):
    q, k, v, scale, S = set_up(a, initial, q)
    if getattr(a, "use_qk_l2norm_in_kernel", False):
        q, k = _unit(q), _unit(k)
    return q, k, v, scale, S


def _sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


def _beta(a, like):
    """[B,T,H] or [B,T,H,V] as [B,T,H,·]."""
    if a.beta is None:
        return np.ones((*like.shape[:3], 1))
    beta = a.beta
    if getattr(a, "use_beta_sigmoid_in_kernel", False):
        beta = _sigmoid(beta) * (2 if a.allow_neg_eigval else 1)
    return beta if beta.ndim == 4 else beta[..., None]


def _gate(a):
    """The decay [B,T,H] or [B,T,H,K]."""
    if not a.use_gate_in_kernel:
        return a.g
    # Without A_log, where there is a bound, the rate is one.
    rate = np.ones(a.g.shape[2]) if a.A_log is None and a.lower_bound is not None else np.exp(a.A_log)
    bias = 0.0 if a.dt_bias is None else a.dt_bias
    if a.g.ndim == 4:
        rate = rate[:, None]
        bias = np.reshape(bias, a.g.shape[2:]) if a.dt_bias is not None else bias
    if getattr(a, "lower_bound", None) is not None:
        return a.lower_bound * _sigmoid(rate * (a.g + bias))
    return -rate * np.logaddexp(0, a.g + bias)


def _delta_loop(a, initial, decay):
    q, k, v, scale, S = _setup_delta(a, initial)
    beta = _beta(a, k)

    def step(S, t):
        S = decay(t) * S
        return S + outer_product(k[:, t], beta[:, t] * (v[:, t] - read_state(S, k[:, t])))

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]


@reference(_named.delta_rule, gates=("beta",))
def delta_rule(a, initial):
    return _delta_loop(a, initial, lambda t: 1.0)


@reference(_named.gated_delta_rule, gates=("g", "beta"), parameters=("A_log", "dt_bias"))
def gated_delta_rule(a, initial):
    g = _gate(a)
    return _delta_loop(a, initial, lambda t: per_head(g, t))


@reference(_named.kda, gates=("g", "beta"), parameters=("A_log", "dt_bias"))
def kda(a, initial):
    g = _gate(a)
    return _delta_loop(a, initial, lambda t: np.exp(g[:, t])[..., None])


@reference(_named.gdn2, gates=("g", "b", "w"), parameters=("A_log", "dt_bias"))
def gdn2(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    g = _gate(a)

    def step(S, t):
        S = np.exp(g[:, t])[..., None] * S
        return S + outer_product(k[:, t], a.w[:, t] * v[:, t] - read_state(S, a.b[:, t] * k[:, t]))

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]


@reference(_named.ttt_linear, gates=("eta",))
def ttt_linear(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    eta = a.eta[..., None] if a.eta.ndim == 3 else a.eta

    def step(S, t):
        # ½‖Sᵀk − v‖² has the gradient k (Sᵀk − v)ᵀ.
        gradient = outer_product(k[:, t], read_state(S, k[:, t]) - v[:, t])
        return S - eta[:, t, :, :, None] * gradient

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]


@reference(_named.gated_oja, gates=("gv", "beta"))
def gated_oja(a, initial):
    q, k, v, scale, S = set_up(a, initial)
    q, k = _unit(q) if a.use_q_l2norm else q, _unit(k) if a.use_k_l2norm else k
    beta = _beta(a, k)

    def step(S, t):
        S = S if a.gv is None else S * np.exp(a.gv[:, t])[:, :, None, :]
        correction = k[:, t] - np.einsum("bhkv,bhv->bhk", S, v[:, t])
        return S + outer_product(beta[:, t] * correction, v[:, t])

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]


@reference(_named.comba, gates=("g", "beta"))
def comba(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    p = repeat_heads(_unit(a.p) if a.use_qk_l2norm_in_kernel else a.p, k.shape[2])
    beta = _beta(a, k)

    def step(S, t):
        correction = beta[:, t] * (v[:, t] - read_state(S, p[:, t]))
        return per_head(a.g, t) * S + outer_product(k[:, t], correction)

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]


@reference(_named.momentum_delta_rule, gates=("log_alpha", "log_mu", "p", "beta", "eta"))
def momentum_delta_rule(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    M = np.zeros_like(S) if initial is None else initial[1]
    p = k
    if a.p is not None:
        p = repeat_heads(_unit(a.p) if a.use_qk_l2norm_in_kernel else a.p, k.shape[2])
    beta, eta = (np.ones(k.shape[:3]) if x is None else x for x in (a.beta, a.eta))
    Ho = max(q.shape[2], k.shape[2])
    q, o = repeat_heads(q, Ho), np.zeros((*q.shape[:2], Ho, v.shape[3]))
    for t in range(k.shape[1]):
        alpha, mu = per_head(a.log_alpha, t), per_head(a.log_mu, t)
        found = read_state(S, p[:, t]) * (alpha[..., 0] if a.use_p_times_alpha else 1)
        M = mu * M - outer_product(eta[:, t, :, None] * k[:, t], v[:, t] - found)
        S = alpha * S - beta[:, t, :, None, None] * M
        o[:, t] = scale * read_state(np.repeat(S, Ho // k.shape[2], axis=1), q[:, t])
    return o, [S, M]


def _generalized(a, initial, decay, q="q"):
    q, k, v, scale, S = _setup_delta(a, initial, q)

    def step(S, t):
        return (
            decay(t) * S + outer_product(a.b[:, t], read_state(S, a.a[:, t])) + outer_product(k[:, t], v[:, t])
        )

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]


@reference(_named.iplr, gates=("a", "b"))
def iplr(a, initial):
    return _generalized(a, initial, lambda t: 1.0)


@reference(_named.dplr, gates=("a", "b", "gk"))
def dplr(a, initial):
    return _generalized(a, initial, lambda t: np.exp(a.gk[:, t])[..., None])


@reference(_named.rwkv7, gates=("a", "b", "w"))
def rwkv7(a, initial):
    return _generalized(a, initial, lambda t: np.exp(a.w[:, t])[..., None], "r")


@reference(_named.gated_deltaproduct, gates=("g", "beta"), micro=("k", "v", "beta"))
def gated_deltaproduct(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    n, beta = a.num_householder, _beta(a, k)

    def step(S, t):
        S = S if a.g is None else per_head(a.g, t) * S
        for i in range(t * n, (t + 1) * n):
            S = S + outer_product(k[:, i], beta[:, i] * (v[:, i] - read_state(S, k[:, i])))
        return S

    o, S = loop_tokens(q, S, step, scale)
    return o, [S]
