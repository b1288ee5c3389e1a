"""The oracle: the formulas as they stand, in float64 whatever goes in.

The functions take what those of `linattn` take, and are slow. Results are
float64, of the kind and rank of the first array.
"""

from __future__ import annotations

import numpy as np

from . import _arrays, _features
from ._checks import check_choice, check_flag, check_number, parse_form
from ._linattn import reference as _oracle
from ._ops import _check_family, default_eps, parse_target
from ._state import State

__all__ = ["attention", "scan", "weights", "State"]


# ----------------------------------------------------------------------------
# Layouts
# ----------------------------------------------------------------------------


def _float64(name, array):
    array = _arrays.to_numpy(array, name)
    if array.dtype.kind not in "fV" and str(array.dtype) != "bfloat16":
        raise TypeError(f"{name}: expected a floating-point dtype, but got {array.dtype}")
    return array.astype(np.float64)


def _tokens(name, array, rank=None):
    """[T,D], [B,T,D] or [B,T,H,D] as contiguous [B,H,T,D]."""
    array = _float64(name, array)
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            f"{name}: expected shape (T, D), (B, T, D) or (B, T, H, D), but got {array.shape}"
        )
    if rank is not None and array.ndim != rank:
        raise ValueError(f"{name}: expected the number of dimensions of q, {rank}, but got {array.ndim}")
    if array.ndim == 2:
        array = array[None, :, None]
    elif array.ndim == 3:
        array = array[:, :, None]
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3))


def _restore(array, rank):
    """[B,H,T,D] in the layout of tokens of that rank."""
    array = array.transpose(0, 2, 1, 3)
    return {2: lambda: array[0, :, 0], 3: lambda: array[:, :, 0], 4: lambda: array}[rank]()


def _gate(name, array, B, T, H, D, rank):
    """A gate as the oracle takes it: [H], [B,H,T] or [B,H,T,D]."""
    array = _float64(name, array)
    if name == "bonus":
        return np.ascontiguousarray(np.broadcast_to(array, (H, D)) if array.ndim == 1 else array)
    if array.shape == (H,) and name in ("decay", "a", "b"):
        return np.ascontiguousarray(array)
    if rank == 3 and array.shape in ((B, T), (B, T, D)):
        array = array[:, :, None]
    elif rank == 2 and array.shape in ((T,), (T, D)):
        array = array[None, :, None]
    if array.shape not in ((B, T, H), (B, T, H, D)):
        raise ValueError(f"{name}: expected shape {(B, T, H)} or {(B, T, H, D)}, but got {array.shape}")
    return np.ascontiguousarray(array.swapaxes(1, 2))


def _mask(mask, B, T):
    if mask is None:
        return None
    mask = _arrays.to_numpy(mask, "mask")
    if mask.dtype != np.bool_:
        raise TypeError(f"mask: expected dtype bool, but got {mask.dtype}")
    if mask.shape == (T,) and B == 1:
        mask = mask[None]
    if mask.shape != (B, T):
        raise ValueError(f"mask: expected shape {(B, T)}, but got {mask.shape}")
    return np.ascontiguousarray(mask, np.float64)


def _state(initial):
    """(S, z, m) as the oracle takes it."""
    if initial is None:
        return None
    parts = (initial.S, initial.z, initial.m) if isinstance(initial, State) else (initial, None, None)
    return tuple(
        None if part is None else np.ascontiguousarray(_float64(name, part))
        for name, part in zip(("S", "z", "m"), parts)
    )


def _normalize(normalize, eps, like):
    if not normalize:
        return None
    short = _arrays.dtype_name(like) in ("float16", "bfloat16")
    return (default_eps("f16" if short else "f32") if eps is None else eps, None, None)


def _finish(array, like, out):
    if out is not None:
        np.copyto(_arrays.to_numpy(out, "out"), array, casting="same_kind")
        return out
    return _arrays.convert_like(np.ascontiguousarray(array), like)


# ----------------------------------------------------------------------------
# Functions
# ----------------------------------------------------------------------------


def _weight_options(causal, feature_map, normalize, eps, weights, scale):
    """The options that attention and its weights share."""
    causal, normalize = check_flag("causal", causal), check_flag("normalize", normalize)
    eps, scale = check_number("eps", eps, minimum=0.0), check_number("scale", scale)
    softmax = check_choice("weights", weights, ("linear", "softmax")) == "softmax"
    phi = _features.parse(None if softmax else feature_map)
    return causal, softmax, phi, normalize and not softmax, eps, scale


def attention(
    q, k, v, *, causal=False, feature_map="elu", normalize=True, eps=None, weights="linear",
    scale=None, mask=None, initial_state=None, return_state=False, out=None, num_threads=None,
    form="auto", target=None,
):  # fmt: skip
    """`linattn.attention` by its formula, in float64."""
    parse_form(form), parse_target(target)
    causal, softmax, phi, normalize, eps, scale = _weight_options(
        causal, feature_map, normalize, eps, weights, scale
    )
    Q = _tokens("q", q)
    rank = _arrays.to_numpy(q).ndim
    K, V = _tokens("k", k, rank), _tokens("v", v, rank)
    mask = _mask(mask, K.shape[0], K.shape[2])
    normalize = _normalize(normalize, eps, q)
    if initial_state is None and not return_state:
        o = _oracle.attention(Q, K, V, causal, softmax, phi.oracle, normalize, scale, mask)
        return _finish(_restore(o, rank), q, out)
    if softmax:
        raise ValueError("return_state: expected weights='linear' with a state, but got weights='softmax'")
    scale, initial = 1.0 if scale is None else scale, _state(initial_state)
    if causal:
        attributes = {"update": "add", "readout": "inclusive", "transition": "before", "reverse": False}
        gates = {} if mask is None else {"mask": mask}
        o, state = _oracle.scan(Q, K, V, gates, attributes, phi.oracle, normalize, scale, initial)
    else:
        state = _oracle.state(K, V, phi.oracle, normalize is not None, mask)
        state = _merge(initial, state)
        o = _oracle.read(Q, state, phi.oracle, normalize, scale)
    o = _finish(_restore(o, rank), q, out)
    return (o, _to_state(state, q)) if return_state else o


def _merge(first, second):
    """The sum of two states, stabilized by the larger maximum."""
    if first is None:
        return second
    (S0, z0, m0), (S1, z1, m1) = first, second
    if m1 is None:
        return S0 + S1, None if z1 is None else z0 + z1, None
    m = np.maximum(m0, m1)
    shift = np.where(np.isneginf(m), 0.0, m)
    w0, w1 = np.exp(m0 - shift), np.exp(m1 - shift)
    S = w0[..., None, None] * S0 + w1[..., None, None] * S1
    return S, w0[..., None] * z0 + w1[..., None] * z1, m


def _to_state(parts, like):
    return State(*(part if part is None else _arrays.convert_like(part, like) for part in parts))


def weights(
    q, k, *, causal=False, feature_map="elu", normalize=True, eps=None, weights="linear",
    scale=None, mask=None,
):  # fmt: skip
    """The implicit attention matrix, which `attention` multiplies v by.

    Returns float64 ``[B, Ho, T, Tk]`` for q ``[B, T, Hq, K]``, ``[B, T, Tk]`` for
    ``[B, T, K]``, ``[T, Tk]`` for ``[T, K]``. The arguments are those of
    `attention`.
    """
    causal, softmax, phi, normalize, eps, scale = _weight_options(
        causal, feature_map, normalize, eps, weights, scale
    )
    Q = _tokens("q", q)
    rank = _arrays.to_numpy(q).ndim
    K = _tokens("k", k, rank)
    mask = _mask(mask, K.shape[0], K.shape[2])
    w = _oracle.weights(Q, K, causal, softmax, phi.oracle, _normalize(normalize, eps, q), scale, mask)
    w = {2: lambda: w[0, 0], 3: lambda: w[:, 0], 4: lambda: w}[rank]()
    return _arrays.convert_like(np.ascontiguousarray(w), q)


def scan(
    q, k, v, *, decay=None, value_decay=None, beta=None, a=None, b=None, transition="before",
    bonus=None, update="add", readout="inclusive", feature_map=None, normalize=False, eps=None,
    scale=None, initial_state=None, return_state=False, cu_seqlens=None, reverse=False, out=None,
    num_threads=None, form="auto", target=None,
):  # fmt: skip
    """`linattn.scan` by its formula, in float64."""
    parse_form(form), parse_target(target)
    normalize, reverse = check_flag("normalize", normalize), check_flag("reverse", reverse)
    eps, scale = check_number("eps", eps, minimum=0.0), check_number("scale", scale)
    given = {
        "decay": decay, "value_decay": value_decay, "beta": beta, "a": a, "b": b, "bonus": bonus,
    }  # fmt: skip
    given = {name: gate for name, gate in given.items() if gate is not None}
    check_choice("update", update, ("add", "delta", "dplr"))
    check_choice("readout", readout, ("inclusive", "exclusive"))
    _check_family(tuple(given), update, readout, normalize, eps)
    Q = _tokens("q", q)
    rank = _arrays.to_numpy(q).ndim
    K, V = _tokens("k", k, rank), _tokens("v", v, rank)
    (B, Hk, T, Dk), (Hv, Dv) = K.shape, V.shape[1::2]
    gates = {
        name: _gate(name, gate, B, T, max(Hk, Hv), Dv if name in ("value_decay", "beta") else Dk, rank)
        for name, gate in given.items()
    }
    attributes = {"update": update, "readout": readout, "transition": transition, "reverse": reverse}
    phi, initial = _features.parse(feature_map), _state(initial_state)
    normalize = _normalize(normalize, eps, q)

    def run(begin, end, start):
        part = {
            name: np.ascontiguousarray(gate[:, :, begin:end]) if gate.ndim > 2 else gate
            for name, gate in gates.items()
        }
        tokens = (np.ascontiguousarray(x[:, :, begin:end]) for x in (Q, K, V))
        return _oracle.scan(*tokens, part, attributes, phi.oracle, normalize, scale, start)

    if cu_seqlens is None:
        o, state = run(0, T, initial)
    else:
        o, state = _packed(run, _offsets(cu_seqlens, B, T), initial)
    o = _finish(_restore(o, rank), q, out)
    return (o, _to_state(state, q)) if return_state else o


def _offsets(cu_seqlens, B, T):
    offsets = np.asarray(cu_seqlens if isinstance(cu_seqlens, (list, tuple)) else _arrays.to_numpy(cu_seqlens))
    if offsets.ndim != 1 or len(offsets) < 1 or offsets.dtype.kind != "i":
        raise ValueError(f"cu_seqlens: expected N + 1 integers, but got {offsets.dtype} {offsets.shape}")
    if B != 1:
        raise ValueError(f"cu_seqlens: expected a batch size of 1, but got {B}")
    if offsets[0] != 0 or offsets[-1] != T or (np.diff(offsets) < 0).any():
        raise ValueError(f"cu_seqlens: expected offsets that rise from 0 to {T}, but got {offsets}")
    return offsets.tolist()


def _packed(run, offsets, initial):
    """One scan per sequence, from its own state."""
    outputs, states = [], []
    for n, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        start = None
        if initial is not None:
            start = tuple(None if x is None else np.ascontiguousarray(x[n : n + 1]) for x in initial)
        o, state = run(begin, end, start)
        outputs.append(o)
        states.append(state)
    parts = [None if x[0] is None else np.concatenate(x) for x in zip(*states)]
    return np.concatenate(outputs, axis=2), parts
