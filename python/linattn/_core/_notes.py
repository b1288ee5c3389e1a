"""Remarks of functions that run other functions' kernels, for `linattn.explain`."""

from __future__ import annotations

import contextlib
import threading

__all__ = ["collect", "note"]

_thread = threading.local()


def note(line):
    """Adds a line to the explanation that this thread collects, if any."""
    lines = getattr(_thread, "lines", None)
    if lines is not None and line not in lines:
        lines.append(line)


@contextlib.contextmanager
def collect():
    """Collects the notes of the calls in the block in a list."""
    outer = getattr(_thread, "lines", None)
    _thread.lines = []
    try:
        yield _thread.lines
    finally:
        _thread.lines = outer
