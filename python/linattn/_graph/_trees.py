"""Registers linattn's objects that hold arrays as pytrees."""

from __future__ import annotations

from .._maps._token_maps import TokenMap
from .._recurrence._state import State

__all__ = ["TREES"]

# Leaves may be other things than arrays, which have no shapes to check.


def _flatten_state(state):
    parts = {"S": state.S, "z": state.z, "m": state.m}
    names = tuple(name for name, part in parts.items() if part is not None)
    return [parts[name] for name in names], (names, state.layout)


def _unflatten_state(parts, context):
    names, layout = context
    state = object.__new__(State)
    state.S = state.z = state.m = state._last = state._past = state._lost = None
    for name, part in zip(names, parts):
        setattr(state, name, part)
    state.layout, state._owned = layout, False
    return state


def _flatten_map(token_map):
    key_map = None if token_map.key_map is token_map else token_map.key_map
    arrays = {**token_map.parameters, "positions": token_map.positions, "key_map": key_map}
    names = tuple(name for name, array in arrays.items() if array is not None)
    return [arrays[name] for name in names], (token_map.name, tuple(token_map.options.items()), names)


def _unflatten_map(arrays, context):
    name, options, names = context
    parts = dict(zip(names, arrays))
    positions, key_map = parts.pop("positions", None), parts.pop("key_map", None)
    token_map = TokenMap(name, parts, dict(options), positions)
    return token_map if key_map is None else token_map.with_keys(key_map)


# (type, to its arrays and the rest, back from them) each.
TREES = ((State, _flatten_state, _unflatten_state), (TokenMap, _flatten_map, _unflatten_map))
