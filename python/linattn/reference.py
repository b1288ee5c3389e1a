"""The oracle: the formulas as they stand, in float64 for any input.

The functions take what those of `linattn` take, and are slow. Results are
float64, of the kind and rank of the first array.
"""

from __future__ import annotations

import numpy as np

from ._core import _arrays
from ._core._checks import check_choice, check_flag, check_number, parse_form, parse_pattern
from ._linattn import reference as _oracle
from ._maps import _features
from ._maps._token_maps import TokenMap
from ._operators._conv import reference_causal_conv1d as causal_conv1d
from ._operators._norm import reference_output_norm as output_norm
from ._recurrence._bidirectional import unpack
from ._recurrence._parts import check_inplace, find_layout
from ._recurrence._plans import check_abs_floor, check_denominator, filled_eps, parse_target
from ._recurrence._scan_plans import check_decays, check_every, check_family
from ._recurrence._snapshots import States
from ._recurrence._state import State
from ._reference import _additive, _beyond, _delta, _dropout, _grouped, _mamba3, _relatives, _two_pass
from ._reference._additive import *  # noqa: F403
from ._reference._beyond import *  # noqa: F403
from ._reference._delta import *  # noqa: F403
from ._reference._mamba3 import *  # noqa: F403
from ._reference._onnx import onnx_causal_conv_with_state, onnx_linear_attention
from ._reference._relatives import *  # noqa: F403
from ._reference._two_pass import *  # noqa: F403
from ._softmax import _groups

__all__ = [
    "attention", "bidirectional", "causal_conv1d", "hybrid", "output_norm", "onnx_causal_conv_with_state",
    "onnx_linear_attention", "scan", "weights", "State",
    *_additive.__all__, *_delta.__all__, *_two_pass.__all__, *_beyond.__all__, *_mamba3.__all__, *_relatives.__all__,
]  # fmt: skip


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


def _map_tokens(feature_map, q, k, Q, K, streams=False):
    """Q and K after the map of whole tokens, if it is one."""
    if isinstance(feature_map, str) and feature_map in _features.TOKEN_MAPS:
        feature_map = TokenMap(feature_map)
    if not isinstance(feature_map, TokenMap):
        return Q, K
    arrays = dict(zip(feature_map.signature.operands(), feature_map.arrays(q, k, streams)))
    arrays = {name: _arrays.to_numpy(array, name) for (name, *_), array in arrays.items()}

    def apply(side, map_, x):
        names = feature_map.signature.parameter_names(side)
        parameters = [np.ascontiguousarray(arrays[name], np.float64) for name in names]
        positions = arrays.get(f"{side}_positions") if map_.name == "cosformer" else None
        if positions is not None:
            positions = np.ascontiguousarray(positions, np.float64)
        return _oracle.token_map(x, map_.name, parameters, positions, map_.options)

    return apply("q", feature_map, Q), apply("k", feature_map.key_map, K)


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


def _prefix(prefix, B, causal):
    if prefix is None:
        return None
    if not causal:
        raise ValueError("prefix: expected it only with causal=True, but got it without")
    prefix = np.asarray(prefix if isinstance(prefix, (int, list, tuple)) else _arrays.to_numpy(prefix, "prefix"))
    if prefix.dtype.kind != "i":
        raise TypeError(f"prefix: expected dtype int32 or int64, but got {prefix.dtype}")
    if prefix.shape not in ((), (B,)):
        raise ValueError(f"prefix: expected shape {(B,)}, but got {prefix.shape}")
    return np.ascontiguousarray(np.broadcast_to(prefix, (B,)), np.float64)


def _scores(window, dilation, global_tokens, softcap, slopes, sinks):
    """The pattern of keys and what changes scores, as the oracle takes them."""

    def per_head(name, numbers):
        return None if numbers is None else np.ascontiguousarray(_float64(name, numbers))

    pattern = parse_pattern(window, dilation, global_tokens) or (0, 1, 0)
    cap = check_number("softcap", softcap)
    return pattern, cap, per_head("slopes", slopes), per_head("sinks", sinks)


def _state(initial):
    """(S, z, m) as the oracle takes it."""
    if initial is None:
        return None
    parts = (initial.S, initial.z, initial.m) if isinstance(initial, State) else (initial, None, None)
    return tuple(
        None if part is None else np.ascontiguousarray(_float64(name, part))
        for name, part in zip(("S", "z", "m"), parts)
    )


def _normalize(normalize, denominator, like):
    """(eps, floor, abs_floor, clamp) as the oracle takes them, or None."""
    if not normalize:
        return None
    short = _arrays.dtype_name(like) in ("float16", "bfloat16")
    return (filled_eps(denominator, "f16" if short else "f32"), *denominator[1:])


def _finish(array, like, out):
    if out is not None:
        np.copyto(_arrays.to_numpy(out, "out"), array, casting="same_kind")
        return out
    return _arrays.convert_like(np.ascontiguousarray(array), like)


# ----------------------------------------------------------------------------
# Functions
# ----------------------------------------------------------------------------


def _weight_options(causal, feature_map, normalize, denominator, weights, scale):
    """The options that attention and its weights share."""
    causal, normalize = check_flag("causal", causal), check_flag("normalize", normalize)
    scale = check_number("scale", scale)
    softmax = check_choice("weights", weights, ("linear", "softmax")) == "softmax"
    phi = _features.parse(None if softmax else feature_map)
    normalize = normalize and not softmax
    denominator = check_denominator(denominator, normalize)
    check_abs_floor(denominator, phi.kind)
    return causal, softmax, phi, normalize, denominator, scale


def attention(
    q, k, v, *, causal=False, feature_map="elu", normalize=True, eps=None, floor=None,
    abs_floor=None, clamp=None, weights="linear", scale=None, mask=None, prefix=None,
    window=None, dilation=1, global_tokens=0, softcap=None, slopes=None, sinks=None,
    cu_seqlens=None, cu_seqlens_k=None, cache_seqlens=None, block_table=None, block_mask=None,
    block_size=None, dropout=0.0, seed=None, initial_state=None, return_state=False, out=None,
    num_threads=None, form="auto", target=None,
):  # fmt: skip
    """`linattn.attention` by its formula, in float64."""
    if dropout:
        return _attention_with_dropout(q, k, v, causal, scale, mask, softcap, dropout, seed, out)
    groups = {"cu_seqlens": cu_seqlens, "cu_seqlens_k": cu_seqlens_k, "cache_seqlens": cache_seqlens,
              "block_table": block_table, "block_mask": block_mask, "block_size": block_size}  # fmt: skip
    if any(value is not None for value in groups.values()):
        options = {"window": window, "dilation": dilation, "global_tokens": global_tokens, "slopes": slopes}
        options = options | {"causal": causal, "scale": scale, "softcap": softcap, "sinks": sinks}
        kind = _groups.find_kind(groups, weights)
        return _finish(_grouped.attend(attention, kind, q, k, v, groups, mask, options), q, out)
    parse_form(form), parse_target(target)
    causal, softmax, phi, normalize, denominator, scale = _weight_options(
        causal, feature_map, normalize, (eps, floor, abs_floor, clamp), weights, scale
    )
    Q = _tokens("q", q)
    rank = _arrays.to_numpy(q).ndim
    K, V = _tokens("k", k, rank), _tokens("v", v, rank)
    Q, K = _map_tokens(feature_map, q, k, Q, K, initial_state is not None)
    mask, prefix = _mask(mask, K.shape[0], K.shape[2]), _prefix(prefix, K.shape[0], causal)
    normalize = _normalize(normalize, denominator, q)
    if prefix is not None and (initial_state is not None or return_state):
        raise ValueError("prefix: expected none beside a state, which has no prefix, but got both")
    scores = _scores(window, dilation, global_tokens, softcap, slopes, sinks)
    if initial_state is None and not return_state:
        o = _oracle.attention(Q, K, V, causal, softmax, phi.oracle, normalize, scale, mask, prefix, *scores)
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


def _attention_with_dropout(q, k, v, causal, scale, mask, softcap, dropout, seed, out):
    Q, K, V = (_tokens(name, x) for name, x in zip("qkv", (q, k, v)))
    (B, _, T, _), Tk, heads = Q.shape, K.shape[2], max(x.shape[1] for x in (Q, K, V))
    scores = _scores(None, 1, 0, softcap, None, None)
    w = _oracle.weights(
        Q, K, causal, True, _features.parse(None).oracle, None, scale, _mask(mask, B, Tk), None, *scores
    )  # fmt: skip
    w = np.repeat(w, heads // w.shape[1], axis=1) * _dropout.keep(dropout, np.asarray(seed).reshape(()), B, heads, T, Tk)
    o = np.einsum("bhij,bhjd->bhid", w, np.repeat(V, heads // V.shape[1], axis=1))
    return _finish(_restore(o, _arrays.to_numpy(q).ndim), q, out)


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


def _to_state(parts, like, layout="kv"):
    parts = (part if part is None else _arrays.convert_like(part, like) for part in parts)
    return State(*parts, layout=layout)


def weights(
    q, k, *, causal=False, feature_map="elu", normalize=True, eps=None, floor=None,
    abs_floor=None, clamp=None, weights="linear", scale=None, mask=None, prefix=None,
    window=None, dilation=1, global_tokens=0, softcap=None, slopes=None, sinks=None,
):  # fmt: skip
    """The implicit attention matrix, which `attention` multiplies v by.

    Returns float64 ``[B, Ho, T, Tk]`` for q ``[B, T, Hq, K]``, ``[B, T, Tk]`` for
    ``[B, T, K]``, ``[T, Tk]`` for ``[T, K]``. The arguments are those of
    `attention`.
    """
    causal, softmax, phi, normalize, denominator, scale = _weight_options(
        causal, feature_map, normalize, (eps, floor, abs_floor, clamp), weights, scale
    )
    Q = _tokens("q", q)
    rank = _arrays.to_numpy(q).ndim
    K = _tokens("k", k, rank)
    Q, K = _map_tokens(feature_map, q, k, Q, K)
    mask, prefix = _mask(mask, K.shape[0], K.shape[2]), _prefix(prefix, K.shape[0], causal)
    scores = _scores(window, dilation, global_tokens, softcap, slopes, sinks)
    normalize = _normalize(normalize, denominator, q)
    w = _oracle.weights(Q, K, causal, softmax, phi.oracle, normalize, scale, mask, prefix, *scores)
    w = {2: lambda: w[0, 0], 3: lambda: w[:, 0], 4: lambda: w}[rank]()
    return _arrays.convert_like(np.ascontiguousarray(w), q)


def scan(
    q, k, v, *, decay=None, value_decay=None, beta=None, a=None, b=None, transition="before",
    bonus=None, erase=None, write=None, input_gate=None, mask=None, update="add",
    readout="inclusive", feature_map=None, normalize=False, eps=None, floor=None, abs_floor=None,
    clamp=None, scale=None, initial_state=None, return_state=False,
    states_every=None, inplace=False, state_dtype=None, cu_seqlens=None, reverse=False, out=None, num_threads=None, form="auto", target=None,
    check=False, state_layout=None,
):  # fmt: skip
    """`linattn.scan` by its formula, in float64."""
    state_layout = find_layout(initial_state, state_layout)
    parse_form(form), parse_target(target)
    if check_flag("check", check):
        check_decays(decay=decay, value_decay=value_decay)
    normalize, reverse = check_flag("normalize", normalize), check_flag("reverse", reverse)
    scale = check_number("scale", scale)
    denominator = check_denominator((eps, floor, abs_floor, clamp), normalize)
    given = {
        "decay": decay, "value_decay": value_decay, "beta": beta, "a": a, "b": b, "bonus": bonus,
        "erase": erase, "write": write, "input_gate": input_gate, "mask": mask,
    }  # fmt: skip
    given = {name: gate for name, gate in given.items() if gate is not None}
    phi = _features.parse(feature_map)
    check_family(tuple(given), update, readout, transition, normalize, phi.kind)
    check_abs_floor(denominator, phi.kind)
    Q = _tokens("q", q)
    rank = _arrays.to_numpy(q).ndim
    K, V = _tokens("k", k, rank), _tokens("v", v, rank)
    scale = K.shape[-1] ** -0.5 if scale is None else scale
    Q, K = _map_tokens(feature_map, q, k, Q, K, initial_state is not None)
    (B, Hk, T, Dk), (Hv, Dv) = K.shape, V.shape[1::2]
    wide = ("value_decay", "beta", "write")
    gates = {
        name: _gate(name, gate, B, T, max(Hk, Hv), Dv if name in wide else Dk, rank)
        for name, gate in given.items()
        if name != "mask"
    }
    if mask is not None:
        gates["mask"] = _mask(mask, B, T)
    if cu_seqlens is not None:
        gates["cu_seqlens"] = np.array(_offsets(cu_seqlens, B, T), np.float64)
    attributes = {"update": update, "readout": readout, "transition": transition, "reverse": reverse}
    normalize, initial = _normalize(normalize, denominator, q), _state(initial_state)
    if initial is not None and state_layout == "vk":
        initial = (np.ascontiguousarray(initial[0].swapaxes(2, 3)), *initial[1:])

    def run(Q, K, V, gates, initial):
        return _oracle.scan(Q, K, V, gates, attributes, phi.oracle, normalize, scale, initial)

    o, state = run(Q, K, V, gates, initial)
    states = None
    if states_every is not None:
        every = check_every(states_every)
        states = _states_between(run, Q, K, V, gates, initial, every, reverse, state_layout, q)
    o = _finish(_restore(o, rank), q, out)
    if state_layout == "vk":
        state = (np.ascontiguousarray(state[0].swapaxes(2, 3)), *state[1:])
    if check_inplace(inplace, initial_state):
        first = initial_state if isinstance(initial_state, State) else State(initial_state, layout=state_layout)
        for mine, final in zip(first._parts(), state):
            _arrays.assign(mine, _arrays.convert_like(final, mine))
        state = first
    elif return_state:
        state = _to_state(state, q, state_layout)
    result = (o, *([state] if return_state else []), *([states] if states_every is not None else []))
    return o if len(result) == 1 else result


def _states_between(run, Q, K, V, gates, initial, every, reverse, layout, like):
    """The states after every so many tokens, each of a pass of its own from the first."""
    offsets = gates.get("cu_seqlens")
    T = Q.shape[2]
    ranges = [(0, T)] if offsets is None else list(zip(offsets.astype(int).tolist(), offsets.astype(int).tolist()[1:]))
    found = []
    for n, (begin, end) in enumerate(ranges):
        start = initial if offsets is None or initial is None else tuple(
            None if part is None else np.ascontiguousarray(part[n : n + 1]) for part in initial
        )
        kept = []
        for count in range(every, end - begin + 1, every):
            at = slice(end - count, end) if reverse else slice(begin, begin + count)

            def cut(name, array):
                if name == "cu_seqlens" or name == "bonus" or array.ndim == 1:
                    return array
                return np.ascontiguousarray(array[:, at] if name == "mask" else array[:, :, at])

            own = {name: cut(name, array) for name, array in gates.items() if name != "cu_seqlens"}
            kept.append(run(*(cut("", x) for x in (Q, K, V)), own, start)[1])
        # Without any, their shapes are those of a pass over nothing.
        nothing = {name: array if name == "bonus" or array.ndim == 1 else array[:, :0] if name == "mask" else array[:, :, :0] for name, array in gates.items() if name != "cu_seqlens"}
        shapes = [part for part in run(Q[:, :, :0], K[:, :, :0], V[:, :, :0], nothing, start)[1] if part is not None]
        parts = []
        for index, shape in enumerate(shapes):
            stack = [state[index] for state in kept]
            part = np.stack(stack, 1) if stack else np.zeros((shape.shape[0], 0, *shape.shape[1:]))
            if index == 0 and layout == "vk":
                part = np.ascontiguousarray(part.swapaxes(-1, -2))
            parts.append(_arrays.convert_like(part if offsets is None else part[0], like))
        found.append(parts[0] if len(parts) == 1 else States(*parts))
    return found[0] if offsets is None else found


def _offsets(cu_seqlens, B, T):
    offsets = np.asarray(cu_seqlens if isinstance(cu_seqlens, (list, tuple)) else _arrays.to_numpy(cu_seqlens))
    if offsets.ndim != 1 or len(offsets) < 1 or offsets.dtype.kind != "i":
        raise ValueError(f"cu_seqlens: expected N + 1 integers, but got {offsets.dtype} {offsets.shape}")
    if B != 1:
        raise ValueError(f"cu_seqlens: expected a batch size of 1, but got {B}")
    if offsets[0] != 0 or offsets[-1] != T or (np.diff(offsets) < 0).any():
        raise ValueError(f"cu_seqlens: expected offsets that rise from 0 to {T}, but got {offsets}")
    return offsets.tolist()


def hybrid(
    q, k, v, share, *, window, feature_map="elu", normalize=True, eps=None, scale=None, out=None, num_threads=None,
    target=None,
):  # fmt: skip
    """`linattn.hybrid` by its formula, in float64."""
    near = attention(q, k, v, causal=True, weights="softmax", window=window, scale=scale)
    far = attention(q, k, v, causal=True, feature_map=feature_map, normalize=normalize, eps=eps)
    near, far = (_arrays.to_numpy(x) for x in (near, far))
    share = _float64("share", share)
    share = share[..., None] if share.ndim > 1 or near.ndim == 4 else share
    return _finish(share * near + (1 - share) * far, q, out)


def bidirectional(q, k, v, *, initial_state=None, return_state=False, out=None, **options):
    """`linattn.bidirectional` by its formula, in float64."""
    states = (None, None) if initial_state is None else unpack(initial_state)
    forward, first = scan(q, k, v, initial_state=states[0], return_state=True, **options)
    backward, last = scan(
        q, k, v, initial_state=states[1], return_state=True, reverse=True, readout="exclusive",
        **options,
    )  # fmt: skip
    o = _finish(forward + backward, q, out)
    return (o, (first, last)) if return_state else o
