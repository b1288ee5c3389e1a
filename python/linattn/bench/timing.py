"""Timing on a machine that is not ours alone.

Implementations take turns, so that a slow spell meets all of them; the machine's
own ceilings are measured between the turns, in this process. Where the ceiling
moved by more than a tenth during a series, the series is run again.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time

from .. import _linattn

__all__ = ["Series", "measure", "pinned"]

# A call shorter than this is repeated until a slice is long enough to time.
SLICE_SECONDS = 2e-3
SPREAD = 0.10
ATTEMPTS = 3


@contextlib.contextmanager
def pinned(threads):
    """Keeps every thread of this process, libraries' pools included, on as many
    CPUs as `threads`: not every peer has a setting for its number of threads."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cpus = sorted(os.sched_getaffinity(0))
    try:
        _set_affinity(cpus[:threads])
        yield
    finally:
        _set_affinity(cpus)


def _set_affinity(cpus):
    os.sched_setaffinity(0, cpus)
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
            os.sched_setaffinity(int(task), cpus)


class Series:
    """The times of the implementations of one case, and the ceiling beside them."""

    def __init__(self, seconds, gflops, updates):
        self.seconds = seconds  # name -> list of seconds per call
        self.gflops = gflops  # the FMA loop, before, between and after
        self.updates = updates  # GB/s of updates in place, once per turn; may be empty

    def median(self, name):
        return statistics.median(self.seconds[name])

    def over(self, name, other):
        """The ratio of the fastest turns, to which neighbours have added the least."""
        return min(self.seconds[name]) / min(self.seconds[other])

    @property
    def ceiling(self):
        return statistics.median(self.gflops)

    @property
    def update(self):
        return statistics.median(self.updates) if self.updates else None

    @property
    def relative_range(self):
        return (max(self.gflops) - min(self.gflops)) / max(self.gflops)


def _calls_per_slice(call, clock):
    call()  # compiles, allocates
    start = clock()
    call()
    seconds = clock() - start
    return max(1, round(SLICE_SECONDS / max(seconds, 1e-7)))


def _run(calls, counts, repetitions, threads, footprint, clock):
    seconds = {name: [] for name in calls}
    gflops = [_linattn.fma_gflops(threads)]
    updates = []
    for repetition in range(repetitions):
        if footprint:
            updates.append(_linattn.update_gbytes(footprint, threads, best=False))
        for name, call in calls.items():
            start = clock()
            for _ in range(counts[name]):
                call()
            seconds[name].append((clock() - start) / counts[name])
        if repetition == repetitions // 2:
            gflops.append(_linattn.fma_gflops(threads))
    gflops.append(_linattn.fma_gflops(threads))
    return Series(seconds, gflops, updates)


def measure(calls, repetitions, threads, footprint=0, alike=False, clock=time.perf_counter):
    """Times the calls in turn; `calls` is name -> function of no argument. Those that
    are `alike` are repeated equally often: the first call after another's is slower.

    With a footprint in bytes, updates of so much memory in place take turns too. Of up to three series the one with the steadiest ceiling is returned; a clock of CPU time, for which the wall's ceiling says little, has one.
    """
    with pinned(threads):
        counts = {name: _calls_per_slice(call, clock) for name, call in calls.items()}
        if alike:
            counts = dict.fromkeys(calls, max(counts.values()))
        best = None
        for _ in range(ATTEMPTS if clock is time.perf_counter else 1):
            series = _run(calls, counts, repetitions, threads, footprint, clock)
            if best is None or series.relative_range < best.relative_range:
                best = series
            if best.relative_range <= SPREAD:
                break
    return best
