"""Remarks of functions that run kernels of others, for `linattn.explain`."""

from __future__ import annotations

import contextlib
import threading

__all__ = ["collect", "note"]

_thread = threading.local()


def note(line):
    """A line of the explanation of the call that this thread explains, if it does."""
    lines = getattr(_thread, "lines", None)
    if lines is not None and line not in lines:
        lines.append(line)


@contextlib.contextmanager
def collect():
    """The notes of the calls inside, as a list that fills."""
    outer = getattr(_thread, "lines", None)
    _thread.lines = []
    try:
        yield _thread.lines
    finally:
        _thread.lines = outer
