"""The parts of a state, S, z and m, in the form of callers and of plans."""

from __future__ import annotations

from .._core import _arrays
from .._core._checks import check_choice, check_flag

__all__ = ["Parts", "check_inplace", "describe_state", "find_layout", "finish_inplace", "name_state", "shape_of", "unpack"]


class Parts:
    """The parts of a `State`, as functions take and return them."""

    __slots__ = ("S", "z", "m", "layout")

    def __init__(self, S, z=None, m=None, layout="kv"):
        self.layout = check_choice("layout", layout, ("kv", "vk"))
        shape = shape_of("S", S)
        if len(shape) != 4:
            order = ", ".join(layout.upper())
            raise ValueError(f"S: expected shape (N, H, {order}), but got {shape}")
        sums = (*shape[:2], shape[2 if layout == "kv" else 3])
        for name, part, expected in (("z", z, sums), ("m", m, shape[:2])):
            if part is not None and shape_of(name, part) != expected:
                raise ValueError(f"{name}: expected shape {expected}, but got {shape_of(name, part)}")
        if m is not None and z is None:
            raise ValueError("z: expected an array beside m, but got None")
        self.S, self.z, self.m = S, z, m

    def _parts(self):
        return tuple(part for part in (self.S, self.z, self.m) if part is not None)

    def __repr__(self):
        parts = {"S": self.S, "z": self.z, "m": self.m}
        return f"State({', '.join(f'{name} {shape_of(name, part)}' for name, part in parts.items() if part is not None)})"


def shape_of(name, array):
    try:
        return tuple(array.shape)
    except AttributeError:
        raise TypeError(f"{name}: expected an array, but got {type(array).__name__}") from None


def find_layout(state, layout):
    """The layout that the caller names, else that of a `State`, else "kv"."""
    own = state.layout if isinstance(state, Parts) else None
    if layout is None:
        return own or "kv"
    layout = check_choice("state_layout", layout, ("kv", "vk"))
    if own not in (None, layout):
        raise ValueError(f"state_layout: expected {own!r}, that of initial_state, but got {layout!r}")
    return layout


def unpack(initial_state, plan, name="initial_state"):
    """The parts of a state, S, z and m, of which it must have what the plan needs; `name`
    is what messages call it."""
    if isinstance(initial_state, Parts):
        S, z, m = initial_state.S, initial_state.z, initial_state.m
    else:
        S, z, m = initial_state, None, None
    parts = plan.state_parts
    if (z is not None) != (parts > 1) or (m is not None) != (parts > 2):
        _refuse_parts(name, initial_state, z, m, parts)
    return (S, z, m)[:parts]


def _refuse_parts(state, initial_state, z, m, parts):
    for name, part, needed in (("z", z, parts > 1), ("m", m, parts > 2)):
        if needed and part is None:
            raise ValueError(
                f"{state}: expected a State with {name}, since the result is normalized, "
                f"but got {'one' if isinstance(initial_state, Parts) else 'an array'} without"
            )
        if not needed and part is not None:
            raise ValueError(
                f"{state}: expected a State without {name}, since nothing here carries it "
                f"on, but got one with {name}; pass normalize=True"
                + (" and the feature map exp, or an input_gate" if name == "m" else "")
            )


def describe_state(state):
    """The kind of a caller's state, which names in messages depend on: None, "array",
    "State" or "tuple"."""
    if state is None:
        return None
    return "State" if isinstance(state, Parts) else "tuple" if isinstance(state, (tuple, list)) else "array"


def name_state(parts, given, name="initial_state"):
    """The parts of a state as (name, role, layouts), with the caller's names."""
    names = {
        "State": lambda index, part: f"{name}.{part}",
        "tuple": lambda index, part: f"{name}[{index}]",
        "array": lambda index, part: name,
    }.get(given, lambda index, part: part)
    return [(names(index, part), *rest) for index, (part, *rest) in enumerate(parts)]


def check_inplace(inplace, given, name="initial_state"):
    if inplace is not True:
        inplace = check_flag("inplace", inplace)
    if inplace and given is None:
        raise ValueError(f"{name}: expected a state to update with inplace=True, but got None")
    return inplace


def finish_inplace(state, result):
    """The output of a call that has updated the parts of a state in place."""
    for i, mine in enumerate(state, 1):
        if result[i] is not mine:
            _arrays.assign(mine, result[i])
    return result[0]
