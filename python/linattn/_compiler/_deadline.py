"""Deadlines of calls."""

from __future__ import annotations

import time

from .. import _linattn
from .._core._checks import check_number

__all__ = ["deadline"]

_linattn.set_main_thread()


class deadline:
    """Ends the calls of a ``with`` block, on this thread, that are not done in time.

        >>> with linattn.deadline(0.05):
        ...     o = linattn.scan(q, k, v)  # a TimeoutError after 50 ms

    A call that is ended raises a TimeoutError within milliseconds, as Ctrl-C raises a
    KeyboardInterrupt; one that begins too late raises it at once. The block itself goes on
    if no call of it is too late. Of nested blocks the earliest counts.

    Results of a call that was ended are lost, and arrays given as ``out`` or updated with
    ``inplace=True`` have unspecified contents. A `State` whose step was ended refuses to be
    used, but for `rollback` to states that it keeps, until S is set anew. Kernels end
    between chunks of tokens, on a CPU; a compilation ends as it would, and the call after
    it does not begin; calls on a GPU are queued and not waited for.

    Args:
      seconds: from the beginning of the block; at least 0.
    """

    def __init__(self, seconds):
        self._seconds = check_number("seconds", seconds, minimum=0.0)
        if self._seconds is None:
            raise TypeError("seconds: expected a number, but got None")
        self._former = []

    def __enter__(self):
        # Years, beyond which no clock counts.
        at = time.monotonic_ns() + int(min(self._seconds, 1e9) * 1e9)
        former = _linattn.set_deadline(at)
        if 0 < former < at:
            _linattn.set_deadline(former)
        self._former.append(former)
        return self

    def __exit__(self, *_):
        _linattn.set_deadline(self._former.pop())
