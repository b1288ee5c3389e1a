"""Measures one form at one length, alone in a process: `measure.py FORM FILE N`.

Prints JSON: `ms` per call and `bytes`, by how much the process's resident memory
peaks above what it was before the call. Inputs and output exist by then.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

import numpy as np

import forms

_M_MMAP_THRESHOLD = -3


def _return_memory_at_once():
    """Makes malloc give back what it holds, now and whenever a larger block is
    freed: what a warm-up call left behind would hide what the next call needs."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 16384)
        libc.malloc_trim(0)
    except (OSError, AttributeError):
        pass  # another C library: the peak is then a lower bound


def _memory(name):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {name}")


def _reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _timed(run, arrays):
    started = time.perf_counter()
    run(*arrays)
    return time.perf_counter() - started


def measure(name, path, tokens, seconds=0.4):
    """A dictionary, as the file's comment says."""
    _return_memory_at_once()
    run = forms.make(name)
    arrays = [np.array(x[:, :tokens]) for x in np.load(path, mmap_mode="r")]
    arrays.append(np.ones_like(arrays[2]))
    run(*(x[:, :64] for x in arrays))  # compiles
    _return_memory_at_once()
    try:
        _reset_peak()
        before = _memory("VmRSS")
    except OSError:
        before = None
    best = total = _timed(run, arrays)
    peak = None if before is None else max(0, _memory("VmHWM") - before)
    repetitions = 1
    while total < seconds and repetitions < 200:
        elapsed = _timed(run, arrays)
        best, total, repetitions = min(best, elapsed), total + elapsed, repetitions + 1
    return {"ms": best * 1e3, "bytes": peak, "repetitions": repetitions}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
