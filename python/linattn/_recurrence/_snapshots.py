"""States in between: after every n-th token of a scan.

They are results of the scan's kernel. Packed sequences are scanned one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core import _arrays
from ._parts import shape_of
from ._state import State

__all__ = ["States", "scan_packed"]


class States(NamedTuple):
    """The states after every n-th token, where they have more parts than S: S
    ``[N, T // n, H, K, V]``, z ``[N, T // n, H, K]`` and m ``[N, T // n, H]`` or None."""

    S: Any
    z: Any
    m: Any = None

    @classmethod
    def of(cls, parts):
        """The returned form of the states: an array if they have one part."""
        return parts[0] if len(parts) == 1 else cls(*parts)


def scan_packed(run, arrays, cu_seqlens, initial_state):
    """A scan that keeps states, one sequence after the other.

    Args:
      run: (o, state, states) of one sequence, from its arrays and its initial state.
      arrays: q, k, v, what comes with them and out, by name; None where left out.

    Returns:
      (o, parts of the state, one item of states for each sequence).
    """
    shape = shape_of("q", arrays["q"])
    axis = 0 if len(shape) == 2 else 1
    offsets = _check_offsets(cu_seqlens, shape, axis)
    parts = None if initial_state is None else _parts_of(initial_state, len(offsets) - 1)
    outputs, finals, kept = [], [], []

    def cut(name, array, begin, end):
        # Parameters of the heads are left whole.
        whole = array is None or name == "bonus" or len(shape_of(name, array)) <= axis
        return array if whole else array[(slice(None),) * axis + (slice(begin, end),)]

    for n, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        mine = {name: cut(name, array, begin, end) for name, array in arrays.items()}
        own = None
        if parts is not None:
            own = [part[n : n + 1] for part in parts]
            own = own[0] if not isinstance(initial_state, State) else State(*own, layout=initial_state.layout)
        o, final, states = run(mine, own)
        outputs.append(o)
        finals.append(final._parts())
        several = isinstance(states, States)
        kept.append(States(*(None if x is None else x[0] for x in states)) if several else states[0])
    final = [_arrays.concatenate(x, 0) for x in zip(*finals)]
    o = arrays["out"] if arrays["out"] is not None else _arrays.concatenate(outputs, axis)
    return o, final, kept


def _parts_of(initial_state, count):
    parts = initial_state._parts() if isinstance(initial_state, State) else (initial_state,)
    for name, part in zip("Szm", parts):
        shape = shape_of("initial_state", part)
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
