"""The named families by their own definitions, in float64 and token by token.

Nothing here is shared with the compiler, not even the table of families.
"""

from __future__ import annotations

import inspect
from functools import wraps
from types import SimpleNamespace

import numpy as np

from .._core import _arrays
from .._families import _named
from .._recurrence._parts import check_inplace
from .._recurrence._plans import default_eps
from .._recurrence._state import State

__all__ = []  # filled by `_reference`

_NOT_OPERANDS = {
    "scale", "output_final_state", "return_final_states", "reverse", "out", "num_threads", "form",
    "target", "feature_map", "normalize", "eps", "layer_idx", "num_layers", "dt_softplus",
    "use_qk_l2norm_in_kernel", "use_beta_sigmoid_in_kernel", "allow_neg_eigval",
    "use_gate_in_kernel", "lower_bound", "num_householder", "use_q_l2norm", "use_k_l2norm",
    "use_p_times_alpha", "inplace",
}  # fmt: skip
_STATES = ("initial_state", "initial_states")


def _reference(public, gates=(), parameters=(), headless=(), micro=()):
    """Makes a function with the signature of `public` from one that computes.

    The one that computes gets [B,T,H,D] float64 arrays, tokens in their order,
    of one sequence or of a batch, and the state before; it returns outputs
    [B,T,H,V] and the state after.

    Args:
      gates: operands [B,T,H], or [B,T,H,D] as well.
      parameters: operands without tokens.
      headless: operands [B,T,D].
      micro: operands with several rows per token.
    """
    signature = inspect.signature(public)

    def decorate(compute):
        @wraps(public)
        def function(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            a = SimpleNamespace(**bound.arguments)
            first = next(iter(signature.parameters))
            like = getattr(a, first)
            rank = _arrays.to_numpy(like, first).ndim
            a.dtype = "f16" if _arrays.dtype_name(like) in ("float16", "bfloat16") else "f32"
            for name, value in bound.arguments.items():
                if name in _NOT_OPERANDS or name in _STATES or name == "cu_seqlens" or value is None:
                    continue
                array = np.asarray(_arrays.to_numpy(value, name), np.float64)
                if name not in parameters:
                    array = _full(array, rank, name in gates, name in headless)
                setattr(a, name, array)
            o, state = _over_sequences(compute, a, parameters, micro)
            o = _drop(o, rank, first in headless)
            if bound.arguments.get("out") is not None:
                np.copyto(_arrays.to_numpy(a.out, "out"), o, casting="same_kind")
                o = a.out
            else:
                o = _arrays.convert_like(np.ascontiguousarray(o), like)
            given = getattr(a, "initial_state", getattr(a, "initial_states", None))
            if check_inplace(a.inplace, given):
                assign_state(given, state)
                return (o, given) if getattr(a, "output_final_state", getattr(a, "return_final_states", False)) else o
            if not getattr(a, "output_final_state", getattr(a, "return_final_states", False)):
                return o
            return o, _pack(state, like)

        function.__signature__ = signature
        function.__doc__ = f"`linattn.{public.__name__}` by its formula, in float64."
        __all__.append(public.__name__)
        return function

    return decorate


def _full(array, rank, is_gate, is_headless):
    """The array with the dimensions that the rank of the first one leaves out."""
    if is_headless:
        return array if array.ndim == 3 else array[None]
    if rank == 4 or array.ndim == 4:
        return array
    if rank == 3:
        # A gate may be [B,T], [B,T,D], or [B,T,1] with its head.
        return array if is_gate and array.ndim == 3 and array.shape[2] == 1 else array[:, :, None]
    return array[None, :, None] if array.ndim < 3 else array


def _drop(o, rank, is_headless):
    if is_headless:
        return o if rank == 3 else o[0]
    return {2: lambda: o[0, :, 0], 3: lambda: o[:, :, 0], 4: lambda: o}[rank]()


def _over_sequences(compute, a, parameters, micro):
    """One call per packed sequence, tokens reversed under ``reverse``."""
    names = [
        name for name, value in vars(a).items()
        if isinstance(value, np.ndarray) and name not in (*parameters, *_STATES, "out", "cu_seqlens")
    ]  # fmt: skip
    steps = getattr(a, "num_householder", 1)
    lengths = {name: getattr(a, name).shape[1] // (steps if name in micro else 1) for name in names}
    T = lengths[names[0]]
    if set(lengths.values()) != {T}:
        raise ValueError(f"expected one sequence length, but got {lengths}")
    initial = _unpack(getattr(a, "initial_state", getattr(a, "initial_states", None)))
    cu_seqlens = getattr(a, "cu_seqlens", None)
    offsets = None if cu_seqlens is None else np.asarray(cu_seqlens).tolist()
    outputs, states = [], []
    for n, (begin, end) in enumerate(zip(offsets, offsets[1:]) if offsets else [(0, T)]):
        part = SimpleNamespace(**vars(a))
        for name in names:
            factor = steps if name in micro else 1
            array = getattr(a, name)[:, begin * factor : end * factor]
            setattr(part, name, array[:, ::-1] if getattr(a, "reverse", False) else array)
        start = initial
        if initial is not None and offsets is not None:
            start = [x[n : n + 1] for x in initial]
        o, state = compute(part, start)
        outputs.append(o[:, ::-1] if getattr(a, "reverse", False) else o)
        states.append(state)
    return np.concatenate(outputs, axis=1), [np.concatenate(parts) for parts in zip(*states)]


def _unpack(state):
    if state is None:
        return None
    parts = state._parts() if isinstance(state, State) else state
    if not isinstance(parts, (tuple, list)):
        parts = (parts,)
    return [np.asarray(_arrays.to_numpy(part, "initial_state"), np.float64) for part in parts]


def assign_state(given, parts):
    """Writes the parts of a state to the arrays that were given for them."""
    mine = given._parts() if isinstance(given, State) else given
    for target, source in zip(mine if isinstance(mine, (tuple, list)) else (mine,), parts):
        _arrays.assign(target, _arrays.convert_like(np.ascontiguousarray(source), target))


def _pack(parts, like):
    arrays = [_arrays.convert_like(np.ascontiguousarray(part), like) for part in parts]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


# ----------------------------------------------------------------------------
# The recurrence
# ----------------------------------------------------------------------------


def _repeat(x, heads):
    """[B,…,H,D] with as many heads: each serves several in turn."""
    axis = 2
    return np.repeat(x, heads // x.shape[axis], axis=axis)


def _heads(*arrays):
    return max(x.shape[2] for x in arrays)


def _loop(q, S, step, scale, before=None):
    """o_t = scale · S_tᵀq_t with S_t = step(S_{t-1}, t), all of [B,H,…]."""
    B, T, Hq, _ = q.shape
    H = S.shape[1]
    Ho = max(Hq, H)
    q = _repeat(q, Ho)
    o = np.zeros((B, T, Ho, S.shape[3]))
    for t in range(T):
        own = before(S, t) if before else None
        S = step(S, t)
        read = np.repeat(own if before else S, Ho // H, axis=1)
        o[:, t] = scale * np.einsum("bhk,bhkv->bhv", q[:, t], read)
    return o, S


def _outer(k, v):
    return np.einsum("bhk,bhv->bhkv", k, v)


def _read(S, k):
    return np.einsum("bhkv,bhk->bhv", S, k)


def _scale(a, K):
    return K**-0.5 if a.scale is None else a.scale


def _setup(a, initial, q="q"):
    """q, k and v with their heads, the scale and the initial state."""
    queries = getattr(a, q)
    H = _heads(a.k, a.v)
    k, v = _repeat(a.k, H), _repeat(a.v, H)
    B, _, _, K = k.shape
    S = np.zeros((B, H, K, v.shape[3])) if initial is None else initial[0]
    return queries, k, v, _scale(a, K), S


def _additive_loop(a, initial, decay, q="q"):
    """S_t = decay(t) ⊙ S_{t-1} + k_t v_tᵀ; decay(t) broadcasts to [B,H,K,V]."""
    q, k, v, scale, S = _setup(a, initial, q)
    o, S = _loop(q, S, lambda S, t: decay(t) * S + _outer(k[:, t], v[:, t]), scale)
    return o, [S]


# ----------------------------------------------------------------------------
# Additive families
# ----------------------------------------------------------------------------


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
    q, k, v, scale, _ = _setup(a, None)
    q, k = phi(q), phi(k)
    B, T, H, K = k.shape
    v = np.concatenate([v, np.ones((B, T, H, 1))], axis=3)
    S = np.zeros((B, H, K, v.shape[3]))
    if initial is not None:
        S[..., :-1] = initial[0]
        if a.normalize:
            S[..., -1] = initial[1]
    o, S = _loop(q, S, lambda S, t: keep(t) * S + write(t) * _outer(k[:, t], v[:, t]), scale)
    num, den = o[..., :-1], o[..., -1:]
    if not a.normalize:
        return num, [S[..., :-1]]
    eps = a.eps if a.eps is not None else default_eps(a.dtype)
    return num / (den + eps), [S[..., :-1], S[..., -1]]


def _per_head(g, t):
    return np.exp(g[:, t])[:, :, None, None]


def _with_state(function):
    """(S, z) as a `State`; eps for the dtype that came."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        result = function(*args, **kwargs)
        if isinstance(result, tuple) and isinstance(result[1], tuple):
            return result[0], State(*result[1])
        return result

    wrapped.__signature__ = function.__signature__
    return wrapped


@_with_state
@_reference(_named.linear_attention)
def linear_attention(a, initial):
    return _normalized(a, initial, lambda t: 1.0, lambda t: 1.0)


@_with_state
@_reference(_named.rfa, gates=("g",))
def rfa(a, initial):
    return _normalized(a, initial, lambda t: _per_head(a.g, t), lambda t: 1 - _per_head(a.g, t))


@_reference(_named.retnet)
def retnet(a, initial):
    gamma = 1 - 2.0 ** (-5 - np.arange(_heads(a.k, a.v)))
    return _additive_loop(a, initial, lambda t: gamma[:, None, None])


@_reference(_named.lightning)
def lightning(a, initial):
    H = _heads(a.k, a.v)
    gamma = np.exp(-(8 / H) * (1 - a.layer_idx / a.num_layers) * np.arange(H))
    return _additive_loop(a, initial, lambda t: gamma[:, None, None])


@_reference(_named.simple_gla, gates=("g",), parameters=("g_gamma",))
def simple_gla(a, initial):
    if a.g_gamma is not None:
        return _additive_loop(a, initial, lambda t: np.exp(a.g_gamma)[:, None, None])
    return _additive_loop(a, initial, lambda t: 1.0 if a.g is None else _per_head(a.g, t))


@_reference(_named.mamba2, gates=("dt",), parameters=("A", "D", "dt_bias"))
def mamba2(a, initial):
    H = _heads(a.x, a.B)
    step = a.dt if a.dt_bias is None else a.dt + a.dt_bias
    if a.dt_softplus:
        step = np.logaddexp(0, step)
    x, B = _repeat(a.x, H), _repeat(a.B, H)
    # The state is [B,H,P,N]: here and in the result.
    S = np.zeros((x.shape[0], H, x.shape[3], B.shape[3])) if initial is None else initial[0]
    S = S.swapaxes(2, 3)
    write = lambda t: _outer(B[:, t], step[:, t, :, None] * x[:, t])  # noqa: E731
    y, S = _loop(a.C, S, lambda S, t: np.exp(step[:, t] * a.A)[:, :, None, None] * S + write(t), 1.0)
    if a.D is not None:
        y = y + (a.D[:, None] if a.D.ndim == 1 else a.D) * x
    return y, [S.swapaxes(2, 3)]


@_with_state
@_reference(_named.mlstm, gates=("i", "f"))
def mlstm(a, initial):
    q, k, v, scale, S = _setup(a, initial)
    B, T, H, K = k.shape
    z = np.zeros((B, H, K)) if initial is None else initial[1]
    m = np.full((B, H), -np.inf) if initial is None else initial[2]
    Ho = max(q.shape[2], H)
    q, o = _repeat(q, Ho), np.zeros((B, T, Ho, v.shape[3]))
    for t in range(T):
        keep = -np.logaddexp(0, -a.f[:, t]) + m
        m = np.maximum(keep, a.i[:, t])
        f, i = np.exp(keep - m), np.exp(a.i[:, t] - m)
        S = f[..., None, None] * S + i[..., None, None] * _outer(k[:, t], v[:, t])
        z = f[..., None] * z + i[..., None] * k[:, t]
        num, den, floor = (np.repeat(x, Ho // H, axis=1) for x in (S, z, np.exp(-m)))
        num, den = scale * _read(num, q[:, t]), scale * (den * q[:, t]).sum(-1)
        o[:, t] = num / (np.maximum(abs(den), floor) + a.eps)[..., None]
    return o, [S, z, m]


@_reference(_named.gla, gates=("g", "gv"))
def gla(a, initial):
    def decay(t):
        keys = 1.0 if a.g is None else np.exp(a.g[:, t])[..., :, None]
        return keys * (1.0 if a.gv is None else np.exp(a.gv[:, t])[..., None, :])

    return _additive_loop(a, initial, decay)


@_reference(_named.hgrn, headless=("x", "g"))
def hgrn(a, initial):
    h = np.zeros((a.x.shape[0], a.x.shape[2])) if initial is None else initial[0]
    o = np.zeros_like(a.x)
    for t in range(a.x.shape[1]):
        h = np.exp(a.g[:, t]) * h + a.x[:, t]
        o[:, t] = h
    return o, [h]


@_reference(_named.hgrn2, gates=("g",))
def hgrn2(a, initial):
    a.k = 1 - np.exp(a.g)
    return _additive_loop(a, initial, lambda t: np.exp(a.g[:, t])[..., None])


def _rwkv(a, initial, decay):
    r, k, v, scale, S = _setup(a, initial, "r")
    u = a.u.reshape(-1, a.u.shape[-1])
    own = lambda S, t: S + _outer(u * k[:, t], v[:, t])  # noqa: E731
    step = lambda S, t: decay(t) * S + _outer(k[:, t], v[:, t])  # noqa: E731
    o, S = _loop(r, S, step, scale, before=own)
    return o, [S]


@_reference(_named.rwkv5, parameters=("w", "u"))
def rwkv5(a, initial):
    return _rwkv(a, initial, lambda t: np.exp(a.w.reshape(-1, a.w.shape[-1]))[..., None])


@_reference(_named.rwkv6, gates=("w",), parameters=("u",))
def rwkv6(a, initial):
    return _rwkv(a, initial, lambda t: np.exp(a.w[:, t])[..., None])


# ----------------------------------------------------------------------------
# Delta families
# ----------------------------------------------------------------------------


def _unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def _setup_delta(a, initial, q="q"):
    q, k, v, scale, S = _setup(a, initial, q)
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
        return S + _outer(k[:, t], beta[:, t] * (v[:, t] - _read(S, k[:, t])))

    o, S = _loop(q, S, step, scale)
    return o, [S]


@_reference(_named.delta_rule, gates=("beta",))
def delta_rule(a, initial):
    return _delta_loop(a, initial, lambda t: 1.0)


@_reference(_named.gated_delta_rule, gates=("g", "beta"), parameters=("A_log", "dt_bias"))
def gated_delta_rule(a, initial):
    g = _gate(a)
    return _delta_loop(a, initial, lambda t: _per_head(g, t))


@_reference(_named.kda, gates=("g", "beta"), parameters=("A_log", "dt_bias"))
def kda(a, initial):
    g = _gate(a)
    return _delta_loop(a, initial, lambda t: np.exp(g[:, t])[..., None])


@_reference(_named.gdn2, gates=("g", "b", "w"), parameters=("A_log", "dt_bias"))
def gdn2(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    g = _gate(a)

    def step(S, t):
        S = np.exp(g[:, t])[..., None] * S
        return S + _outer(k[:, t], a.w[:, t] * v[:, t] - _read(S, a.b[:, t] * k[:, t]))

    o, S = _loop(q, S, step, scale)
    return o, [S]


@_reference(_named.ttt_linear, gates=("eta",))
def ttt_linear(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    eta = a.eta[..., None] if a.eta.ndim == 3 else a.eta

    def step(S, t):
        # ½‖Sᵀk − v‖² has the gradient k (Sᵀk − v)ᵀ.
        gradient = _outer(k[:, t], _read(S, k[:, t]) - v[:, t])
        return S - eta[:, t, :, :, None] * gradient

    o, S = _loop(q, S, step, scale)
    return o, [S]


@_reference(_named.gated_oja, gates=("gv", "beta"))
def gated_oja(a, initial):
    q, k, v, scale, S = _setup(a, initial)
    q, k = _unit(q) if a.use_q_l2norm else q, _unit(k) if a.use_k_l2norm else k
    beta = _beta(a, k)

    def step(S, t):
        S = S if a.gv is None else S * np.exp(a.gv[:, t])[:, :, None, :]
        correction = k[:, t] - np.einsum("bhkv,bhv->bhk", S, v[:, t])
        return S + _outer(beta[:, t] * correction, v[:, t])

    o, S = _loop(q, S, step, scale)
    return o, [S]


@_reference(_named.comba, gates=("g", "beta"))
def comba(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    p = _repeat(_unit(a.p) if a.use_qk_l2norm_in_kernel else a.p, k.shape[2])
    beta = _beta(a, k)

    def step(S, t):
        correction = beta[:, t] * (v[:, t] - _read(S, p[:, t]))
        return _per_head(a.g, t) * S + _outer(k[:, t], correction)

    o, S = _loop(q, S, step, scale)
    return o, [S]


@_reference(_named.momentum_delta_rule, gates=("log_alpha", "log_mu", "p", "beta", "eta"))
def momentum_delta_rule(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    M = np.zeros_like(S) if initial is None else initial[1]
    p = k
    if a.p is not None:
        p = _repeat(_unit(a.p) if a.use_qk_l2norm_in_kernel else a.p, k.shape[2])
    beta, eta = (np.ones(k.shape[:3]) if x is None else x for x in (a.beta, a.eta))
    Ho = max(q.shape[2], k.shape[2])
    q, o = _repeat(q, Ho), np.zeros((*q.shape[:2], Ho, v.shape[3]))
    for t in range(k.shape[1]):
        alpha, mu = _per_head(a.log_alpha, t), _per_head(a.log_mu, t)
        found = _read(S, p[:, t]) * (alpha[..., 0] if a.use_p_times_alpha else 1)
        M = mu * M - _outer(eta[:, t, :, None] * k[:, t], v[:, t] - found)
        S = alpha * S - beta[:, t, :, None, None] * M
        o[:, t] = scale * _read(np.repeat(S, Ho // k.shape[2], axis=1), q[:, t])
    return o, [S, M]


def _generalized(a, initial, decay, q="q"):
    q, k, v, scale, S = _setup_delta(a, initial, q)

    def step(S, t):
        return (
            decay(t) * S + _outer(a.b[:, t], _read(S, a.a[:, t])) + _outer(k[:, t], v[:, t])
        )

    o, S = _loop(q, S, step, scale)
    return o, [S]


@_reference(_named.iplr, gates=("a", "b"))
def iplr(a, initial):
    return _generalized(a, initial, lambda t: 1.0)


@_reference(_named.dplr, gates=("a", "b", "gk"))
def dplr(a, initial):
    return _generalized(a, initial, lambda t: np.exp(a.gk[:, t])[..., None])


@_reference(_named.rwkv7, gates=("a", "b", "w"))
def rwkv7(a, initial):
    return _generalized(a, initial, lambda t: np.exp(a.w[:, t])[..., None], "r")


@_reference(_named.gated_deltaproduct, gates=("g", "beta"), micro=("k", "v", "beta"))
def gated_deltaproduct(a, initial):
    q, k, v, scale, S = _setup_delta(a, initial)
    n, beta = a.num_householder, _beta(a, k)

    def step(S, t):
        S = S if a.g is None else _per_head(a.g, t) * S
        for i in range(t * n, (t + 1) * n):
            S = S + _outer(k[:, i], beta[:, i] * (v[:, i] - _read(S, k[:, i])))
        return S

    o, S = _loop(q, S, step, scale)
    return o, [S]


# ----------------------------------------------------------------------------
# Running softmax
# ----------------------------------------------------------------------------


def _running_log_sum(x, start):
    """log Σ_{j≤t} e^x_j [B,T + 1,H,·], the first being `start`."""
    return np.logaddexp.accumulate(np.concatenate([start[:, None], x], axis=1), axis=1)


@_reference(_named.lightnet)
def lightnet(a, initial):
    start = np.full(np.delete(a.k.shape, 1), -np.inf) if initial is None else initial[1]
    z = _running_log_sum(a.k, start)
    a.k = np.exp(a.k - z[:, 1:])
    o, [S] = _additive_loop(a, initial, lambda t: np.exp(z[:, t] - z[:, t + 1])[..., None])
    return o, [S, z[:, -1]]


# ----------------------------------------------------------------------------
# Two scans
# ----------------------------------------------------------------------------


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _slots(a, initial, slots, decay):
    q, k, v, scale, _ = _setup(a, None)
    B, _, H, K = k.shape
    M = slots.shape[3]
    keys, values = (np.zeros((B, H, K, M)), np.zeros((B, H, M, v.shape[3]))) if initial is None else initial[:2]
    wanted, keys = _loop(
        q, keys, lambda S, t: decay(t)[:, :, None, :] * S + _outer(k[:, t], slots[:, t]), scale
    )
    o, values = _loop(
        _softmax(wanted), values,
        lambda S, t: decay(t)[..., None] * S + _outer(slots[:, t], v[:, t]), 1.0,
    )  # fmt: skip
    return o, [keys, values]


@_reference(_named.gsa, gates=("g",))
def gsa(a, initial):
    return _slots(a, initial, a.s, lambda t: np.exp(a.g[:, t]))


@_reference(_named.abc)
def abc(a, initial):
    start = np.full(np.delete(a.s.shape, 1), -np.inf) if initial is None else initial[2]
    z = _running_log_sum(a.s, start)
    weights = np.exp(a.s - z[:, 1:])
    o, state = _slots(a, initial, weights, lambda t: np.exp(z[:, t] - z[:, t + 1]))
    return o, [*state, z[:, -1]]
