"""The common parts of the oracles of named families, and their loop over tokens."""

from __future__ import annotations

import inspect
from functools import wraps
from types import SimpleNamespace

import numpy as np

from .._core import _arrays
from .._recurrence._parts import check_inplace
from .._recurrence._state import State

_NOT_OPERANDS = {
    "scale", "output_final_state", "return_final_states", "reverse", "out", "num_threads", "form",
    "target", "feature_map", "normalize", "eps", "layer_idx", "num_layers", "dt_softplus",
    "use_qk_l2norm_in_kernel", "use_beta_sigmoid_in_kernel", "allow_neg_eigval",
    "use_gate_in_kernel", "lower_bound", "num_householder", "use_q_l2norm", "use_k_l2norm",
    "use_p_times_alpha", "inplace",
}  # fmt: skip
_STATES = ("initial_state", "initial_states")


def reference(public, gates=(), parameters=(), headless=(), micro=()):
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
        return function

    return decorate


def _full(array, rank, is_gate, is_headless):
    """The array with the dimensions that the first array's rank omits."""
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
    """Calls the oracle once per packed sequence, with tokens reversed under ``reverse``."""
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
    """Writes the parts of a state into the given arrays."""
    mine = given._parts() if isinstance(given, State) else given
    for target, source in zip(mine if isinstance(mine, (tuple, list)) else (mine,), parts):
        _arrays.assign(target, _arrays.convert_like(np.ascontiguousarray(source), target))


def _pack(parts, like):
    arrays = [_arrays.convert_like(np.ascontiguousarray(part), like) for part in parts]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


# ----------------------------------------------------------------------------
# The recurrence
# ----------------------------------------------------------------------------


def repeat_heads(x, heads):
    """[B,…,H,D] with this number of heads, each repeated in turn."""
    axis = 2
    return np.repeat(x, heads // x.shape[axis], axis=axis)


def share_heads(*arrays):
    return max(x.shape[2] for x in arrays)


def loop_tokens(q, S, step, scale, before=None):
    """o_t = scale · S_tᵀq_t with S_t = step(S_{t-1}, t), all of [B,H,…]."""
    B, T, Hq, _ = q.shape
    H = S.shape[1]
    Ho = max(Hq, H)
    q = repeat_heads(q, Ho)
    o = np.zeros((B, T, Ho, S.shape[3]))
    for t in range(T):
        own = before(S, t) if before else None
        S = step(S, t)
        read = np.repeat(own if before else S, Ho // H, axis=1)
        o[:, t] = scale * np.einsum("bhk,bhkv->bhv", q[:, t], read)
    return o, S


def outer_product(k, v):
    return np.einsum("bhk,bhv->bhkv", k, v)


def read_state(S, k):
    return np.einsum("bhkv,bhk->bhv", S, k)


def _scale(a, K):
    return K**-0.5 if a.scale is None else a.scale


def set_up(a, initial, q="q"):
    """q, k and v with repeated heads, the scale and the initial state."""
    queries = getattr(a, q)
    H = share_heads(a.k, a.v)
    k, v = repeat_heads(a.k, H), repeat_heads(a.v, H)
    B, _, _, K = k.shape
    S = np.zeros((B, H, K, v.shape[3])) if initial is None else initial[0]
    return queries, k, v, _scale(a, K), S


def loop_additive(a, initial, decay, q="q"):
    """S_t = decay(t) ⊙ S_{t-1} + k_t v_tᵀ; decay(t) broadcasts to [B,H,K,V]."""
    q, k, v, scale, S = set_up(a, initial, q)
    o, S = loop_tokens(q, S, lambda S, t: decay(t) * S + outer_product(k[:, t], v[:, t]), scale)
    return o, [S]


def per_head(g, t):
    return np.exp(g[:, t])[:, :, None, None]
