"""The states of many sequences in one allocation, for decoding in changing batches."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from ._state import State

__all__ = ["StatePool"]


class StatePool:
    """Room for the states of up to `capacity` sequences, and who has which.

    A sequence gets a row of the pool, steps there in any batches it is put
    into, and gives the row back. Nothing is gathered or scattered: kernels take the
    whole pool and the rows, and write in place::

        pool = linattn.StatePool(64, 8, 128, 128)
        rows = pool.allocate(2)
        o = pool.step(q, k, v, rows, decay=g)            # q: [2, 1, 8, 128]
        pool.free(rows[:1])

    A sequence has the same bits in any batch, in any row and in a `State` alone.

    With ``like`` on a GPU, an array of PyTorch or CuPy, the pool is there, and steps
    take tokens that are. `rows` may then be an array of the GPU, too: it is not
    looked at, no memory is allocated but by the library, nothing waits, and a graph
    can capture the step. Rows of NumPy are checked, and copied in every step.

    Args:
      capacity: how many states there is room for, P.
      heads, k, v: the sizes of one state, ``[H, K, V]``.
      normalize, feature_map, running_max, dtype, layout, like: as in
        `State.zeros`.

    Attributes:
      states: the pool as a `State` of ``[P, H, K, V]``, free rows included.
    """

    __slots__ = ("states", "_free")

    def __init__(
        self, capacity, heads, k, v, *, normalize=False, feature_map=None, running_max=False,
        dtype=None, layout="kv", like=None,
    ):  # fmt: skip
        if isinstance(capacity, bool) or not isinstance(capacity, (int, np.integer)):
            raise TypeError(f"capacity: expected an integer, but got {type(capacity).__name__}")
        if capacity < 1:
            raise ValueError(f"capacity: expected a positive integer, but got {capacity}")
        self.states = State.zeros(
            capacity, heads, k, v, normalize, like, feature_map, running_max, dtype, layout
        )
        if like is not None and _arrays.is_on_device(like) and not self._is_on_device():
            raise TypeError(
                f"like: expected an array of PyTorch or CuPy on the GPU, but got {type(like).__name__}, "
                f"whose memory is not known how to get"
            )
        for name, part in self._parts():
            if not _is_writable(part):
                raise TypeError(
                    f"like: expected an array of a kind that can be written in place, but got "
                    f"{type(like).__name__}, whose {name} cannot"
                )
        self._free = list(range(capacity - 1, -1, -1))

    @property
    def capacity(self):
        """The number of rows."""
        return self.states.S.shape[0]

    @property
    def available(self):
        """The number of free rows."""
        return len(self._free)

    def allocate(self, count=1):
        """Takes free rows, int64 ``[count]``, whose states are as before the first
        token. A ValueError if there are fewer, and then none is taken."""
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
            raise TypeError(f"count: expected an integer, but got {type(count).__name__}")
        if not 0 <= count <= self.available:
            raise ValueError(f"count: expected at most {self.available}, the free rows, but got {count}")
        rows = np.array([self._free.pop() for _ in range(count)], np.int64)
        for name, part in self._parts():
            memory, index = _memory(part, rows)
            memory[index] = -np.inf if name == "m" else 0.0
        self.states._restore(rows)
        return rows

    def free(self, rows):
        """Gives rows back. A ValueError for one that is not in use, and then none
        is."""
        rows = self._check(rows)
        self._free.extend(int(row) for row in rows[::-1])

    def step(self, q, k, v, rows, **options):
        """Reads and writes one or several tokens of the sequences in `rows`, int32
        or int64 ``[N]``; returns their outputs, ``[N, t, H, V]``.

        The options are those of `State.step`. A row of -1 pads the batch: that
        sequence has no state, and its outputs are 0. Other rows outside the pool,
        and rows that are there twice, are a ValueError; in an array of a GPU they are
        the caller's to avoid.
        """
        if self._is_on_device() and not _arrays.is_on_device(rows):
            rows = self._check_range(rows)
        return self.states.step(q, k, v, state_indices=rows, **options)

    def read(self, rows):
        """A separate `State` with the contents of rows in use."""
        rows = self._check(rows)
        self.states._check_kept(rows)
        pairs = (_memory(part, rows) for _, part in self._parts())
        parts = [memory[index] for memory, index in pairs]
        if not self._is_on_device():
            parts = [_arrays.convert_like(part, self.states.S) for part in parts]
        return State._own(*parts, layout=self.states.layout)

    def write(self, rows, state):
        """Copies a `State`, for example after a prefill, into as many rows in use."""
        rows = self._check(rows)
        if not isinstance(state, State):
            raise TypeError(f"state: expected a State, but got {type(state).__name__}")
        if state.layout != self.states.layout:
            raise ValueError(f"state: expected layout {self.states.layout!r}, but got {state.layout!r}")
        pairs = []
        for name in ("S", "z", "m"):
            mine, given = getattr(self.states, name), getattr(state, name)
            if mine is None and given is None:
                continue
            if mine is None or given is None:
                with_it = "without" if mine is None else "with"
                raise ValueError(f"state: expected one {with_it} {name}, as the pool is, but got another")
            mine, index = _memory(mine, rows)
            if not _arrays.is_on_device(mine):
                given = _arrays.to_host(given)
            elif not _arrays.is_on_device(given):
                given = _arrays.convert_like(_arrays.to_numpy(given, "state"), mine)
            expected, dtypes = (len(rows), *mine.shape[1:]), [_arrays.dtype_name(array) for array in (mine, given)]
            if tuple(given.shape) != expected or dtypes[0] != dtypes[1]:
                raise ValueError(
                    f"state: expected {name} to be {dtypes[0]} {expected}, but got {dtypes[1]} {tuple(given.shape)}"
                )
            pairs.append((mine, index, given))
        for mine, index, given in pairs:
            mine[index] = given
        self.states._restore(rows)

    def _parts(self):
        parts = (("S", self.states.S), ("z", self.states.z), ("m", self.states.m))
        return [(name, part) for name, part in parts if part is not None]

    def _is_on_device(self):
        return _arrays.is_on_device(self.states.S)

    def _check(self, rows):
        """Checks that rows are in use and distinct; returns them as a NumPy array."""
        rows = self._check_range(rows, least=0)
        free = set(self._free)
        for row in rows.tolist():
            if row in free:
                raise ValueError(f"rows: expected rows in use, but got {row}, which is free")
        return rows

    def _check_range(self, rows, least=-1):
        """The rows as an array of NumPy, all of them in the pool and none twice; -1 is
        no row."""
        rows = np.asarray(rows, np.int64) if isinstance(rows, (list, tuple)) else _arrays.to_host(rows)
        if rows.ndim != 1 or rows.dtype not in (np.int32, np.int64):
            raise ValueError(f"rows: expected int32 or int64 (N,), but got {rows.dtype} {rows.shape}")
        seen = set()
        for row in rows.tolist():
            if not least <= row < self.capacity:
                raise ValueError(f"rows: expected rows from {least} to {self.capacity - 1}, but got {row}")
            if row in seen and row >= 0:
                raise ValueError(f"rows: expected every row once, but got {row} twice")
            seen.add(row)
        return rows

    def __repr__(self):
        used = self.capacity - self.available
        return f"StatePool({used} of {self.capacity} rows in use, {self.states!r})"


def _memory(part, rows):
    """A part of the pool as an array to index, and the rows as its index."""
    if _arrays.is_on_device(part):
        return part, _arrays.convert_like(rows, part)
    return _arrays.to_numpy(part), rows


def _is_writable(part):
    if not _arrays.is_on_device(part):
        return _arrays.to_numpy(part).flags.writeable
    try:
        part[:0] = 0.0
    except TypeError:  # as JAX says
        return False
    return True
