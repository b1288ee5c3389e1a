"""Runs by turns, for the programs beside this file."""

import time

__all__ = ["race"]


def race(runs, repetitions):
    """The least CPU time of each run, in seconds; a first turn of all compiles, and does not count."""
    least = [float("inf")] * len(runs)
    for repetition in range(repetitions + 1):
        for i, run in enumerate(runs):
            begin = time.process_time()
            run()
            if repetition:
                least[i] = min(least[i], time.process_time() - begin)
    return least
