#!/usr/bin/env python3
"""How long calls go on after an interrupt or a deadline.

    PYTHONPATH=build/python tools/bench/measure_interrupts.py [--tokens 1000000] [--repetitions 20]

Prints a table in Markdown: least, median and most milliseconds between the signal, or the time of
the deadline, and the exception in the caller. Each is of calls of its own, after a time drawn from
a tenth of the call to half of it, at most 120 ms.
"""

import argparse
import os
import random
import signal
import statistics
import threading
import time

import numpy as np

import linattn


def make_cases(T, D=64, H=2):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, T, H, D), dtype=np.float32) / 8 for _ in range(3))
    decay = -rng.random((1, T, H), dtype=np.float32) / 10
    beta = rng.random((1, T, H), dtype=np.float32)
    wide = np.broadcast_to(rng.standard_normal((1, 1, 1, 1024), dtype=np.float32) / 32, (1, T, 1, 1024))
    out = np.empty_like(v)
    gated = {"update": "delta", "decay": decay, "beta": beta}
    scans = {
        "linear, chunk": dict(form="chunk"),
        "decayed, state-tile": dict(form="state-tile", decay=decay),
        "linear, token": dict(form="token"),
        "linear, segments": dict(form="segments"),
        "gated delta, chunk": dict(form="chunk", **gated),
        "gated delta, token": dict(form="token", **gated),
    }
    cases = {
        name: lambda threads, options=options: linattn.scan(q, k, v, out=out, num_threads=threads, **options)
        for name, options in scans.items()
    }
    cases["softmax attention"] = lambda threads: linattn.attention(
        q, k, v, weights="softmax", causal=True, out=out, num_threads=threads
    )
    cases["one head of 1024, written alone"] = lambda threads: linattn.State.zeros(1, 1, 1024, 1024).update(
        wide, wide, num_threads=threads
    )
    return cases


def interrupt(run, delay):
    """Milliseconds from SIGINT to the exception, or None where the call was done before."""
    sent = []

    def send():
        time.sleep(delay)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    try:
        thread.start()
        run()
        thread.join()
        time.sleep(1)
    except KeyboardInterrupt:
        end = time.monotonic()
        thread.join()
        return 1000 * (end - sent[0])
    return None


def expire(run, delay):
    """The same for a deadline."""
    begin = time.monotonic()
    try:
        with linattn.deadline(delay):
            run()
    except TimeoutError:
        return 1000 * (time.monotonic() - begin - delay)
    return None


def window(run):
    """Seconds after which a call is stopped, least and most: within half of the shortest of three."""
    most = 0.12
    for _ in range(3):
        begin = time.monotonic()
        try:
            with linattn.deadline(2 * most):
                run()
        except TimeoutError:
            pass
        most = min(most, (time.monotonic() - begin) / 2)
    return most / 5, most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=10**6)
    parser.add_argument("--repetitions", type=int, default=20)
    arguments = parser.parse_args()
    draw = random.Random(0)
    print("| | threads | Ctrl-C: least | median | most, ms | deadline: least | median | most, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name, run in make_cases(arguments.tokens).items():
        for threads in (1, 2):
            try:  # compiles
                with linattn.deadline(0):
                    run(threads)
            except TimeoutError:
                pass
            delays = window(lambda: run(threads))
            cells = []
            for end in (interrupt, expire):
                times = [end(lambda: run(threads), draw.uniform(*delays)) for _ in range(arguments.repetitions)]
                ended = [time for time in times if time is not None]
                if len(ended) < len(times):
                    raise SystemExit(f"{name}: {len(times) - len(ended)} of {len(times)} calls ended before they were stopped")
                cells += [min(ended), statistics.median(ended), max(ended)]
            print(f"| {name} | {threads} | {' | '.join(f'{cell:.1f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
