"""States in between: after every n-th token of a scan.

A call that keeps them is a chain of calls, each of n tokens and from the state after
the one before; `Plan.chain` runs it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from . import _arrays, _features, _ops
from ._state import State, find_layout
from ._token_maps import TokenMap

__all__ = ["States", "check_every", "scan_in_segments"]


class States(NamedTuple):
    """The states after every n-th token, where they have more parts than S: S
    ``[N, T // n, H, K, V]``, z ``[N, T // n, H, K]`` and m ``[N, T // n, H]`` or None."""

    S: Any
    z: Any
    m: Any = None


def check_every(every):
    if isinstance(every, (bool, np.bool_)) or not isinstance(every, (int, np.integer)):
        raise TypeError(f"states_every: expected an integer, but got {type(every).__name__}")
    if every < 1:
        raise ValueError(f"states_every: expected a positive number of tokens, but got {every}")
    return min(int(every), sys.maxsize)


def scan_in_segments(find_plan, arrays, every, initial_state, cu_seqlens, options):
    """`scan` with `states_every`.

    Args:
      find_plan: gives the plan and its operands for (arrays, initial state).
      arrays: q, k, v and what comes with them, by name; None where left out.
      options: the arguments of `scan` that are about the state and the call, by name.

    Returns:
      (o, parts of the state, states).
    """
    if cu_seqlens is not None:
        return _scan_packed(find_plan, arrays, every, initial_state, cu_seqlens, options)
    given = initial_state
    if given is None:
        given = _before_first(arrays, options)
    plan, operands = find_plan(arrays, given)
    state = _ops._unpack(given, plan)
    inplace, count = options["inplace"], len(state)
    o, *results = plan.chain(
        operands, state, options["out"], every, options["reverse"],
        _ops.ALWAYS if inplace else False, options["num_threads"],
    )  # fmt: skip
    final, kept = results[:count], results[count:]
    for index, (part, parts) in enumerate(zip(final, kept)):
        if part is None:  # the last one of those that were kept
            part = parts[:, -1] if inplace else _arrays.copy(parts[:, -1])
        if inplace and part is not state[index]:
            _arrays.assign(state[index], part)
        final[index] = state[index] if inplace else part
    return o, tuple(final), kept[0] if count == 1 else States(*kept)


def _before_first(arrays, options):
    """The state before the first token."""
    q, k, v = arrays["q"], arrays["k"], arrays["v"]
    shapes = [_shape(name, arrays[name]) for name in "qkv"]
    if any(len(shape) not in (2, 3, 4) for shape in shapes):
        return State(np.zeros((1, 1, 1, 1), np.float32))  # the plan says what is wrong
    feature_map, normalize = options["feature_map"], options["normalize"]
    (batch, heads, size), (_, more, values) = (
        (shape[0] if len(shape) > 2 else 1, shape[2] if len(shape) == 4 else 1, shape[-1])
        for shape in shapes[1:]
    )
    if isinstance(feature_map, str) and feature_map in _features.TOKEN_MAPS:
        feature_map = TokenMap(feature_map)
    if isinstance(feature_map, TokenMap):
        size = feature_map.key_map.size(size)
    return State.zeros(
        batch, max(heads, more), size, values, normalize, q, feature_map,
        normalize and arrays["input_gate"] is not None, options["state_dtype"],
        find_layout(None, options["state_layout"]),
    )  # fmt: skip


def _shape(name, array):
    try:
        return tuple(array.shape)
    except AttributeError:
        raise TypeError(f"{name}: expected an array, but got {type(array).__name__}") from None


def _scan_packed(find_plan, arrays, every, initial_state, cu_seqlens, options):
    """One sequence after the other: they are cut at different places."""
    q = arrays["q"]
    shape = _shape("q", q)
    axis = 0 if len(shape) == 2 else 1
    offsets = _check_offsets(cu_seqlens, shape, axis)
    parts = None if initial_state is None else _parts_of(initial_state, len(offsets) - 1)
    outputs, finals, kept = [], [], []

    def cut(name, array, begin, end):
        # Parameters of the heads are left whole.
        whole = array is None or name == "bonus" or len(array.shape) <= axis
        return array if whole else array[(slice(None),) * axis + (slice(begin, end),)]

    for n, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        mine = {name: cut(name, array, begin, end) for name, array in arrays.items()}
        own = None
        if parts is not None:
            own = [part[n : n + 1] for part in parts]
            own = own[0] if not isinstance(initial_state, State) else State(*own, layout=initial_state.layout)
        given = {**options, "out": cut("out", options["out"], begin, end)}
        o, final, states = scan_in_segments(find_plan, mine, every, own, None, given)
        outputs.append(o)
        finals.append(final)
        several = isinstance(states, States)
        kept.append(States(*(None if x is None else x[0] for x in states)) if several else states[0])
    if options["inplace"]:
        final = parts
    else:
        final = [_arrays.concatenate(x, 0) for x in zip(*finals)]
    o = options["out"] if options["out"] is not None else _arrays.concatenate(outputs, axis)
    return o, tuple(final), kept


def _parts_of(initial_state, count):
    parts = initial_state._parts() if isinstance(initial_state, State) else (initial_state,)
    for name, part in zip("Szm", parts):
        shape = _shape("initial_state", part)
        if shape[:1] != (count,):
            name = f"initial_state.{name}" if isinstance(initial_state, State) else "initial_state"
            raise ValueError(f"{name}: expected {count} states, one for each sequence, but got shape {shape}")
    return parts


def _check_offsets(cu_seqlens, shape, axis):
    """The offsets as a list of integers."""
    if isinstance(cu_seqlens, (list, tuple)):
        cu_seqlens = np.asarray(cu_seqlens)
    offsets = _arrays.to_host(cu_seqlens)
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind != "i":
        raise ValueError(f"cu_seqlens: expected integers of shape (N + 1,), but got {offsets.dtype} {offsets.shape}")
    if len(shape) > 2 and shape[0] != 1:
        raise ValueError(f"cu_seqlens: expected a batch size of 1, but got {shape[0]}")
    offsets = offsets.tolist()
    if offsets[0] != 0 or offsets[-1] != shape[axis]:
        raise ValueError(f"cu_seqlens: expected offsets from 0 to {shape[axis]}, but got {offsets[0]} to {offsets[-1]}")
    for begin, end in zip(offsets, offsets[1:]):
        if end < begin:
            raise ValueError(f"cu_seqlens: expected offsets that do not decrease, but got {begin} before {end}")
    return offsets
