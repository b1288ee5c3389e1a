#!/usr/bin/env python3
"""Steps a pool of states while sequences join and leave, as a server does for a day.

    PYTHONPATH=build/python test/Fuzz/pool.py --steps 10000000

Fails where memory grows, and where a sequence has other bits in the pool than alone. One
sequence at a time is followed from when it joins to when it leaves, token by token.
"""

import argparse
import random
import resource
import sys
import time

import numpy as np

import linattn

HEADS, SIZE, CAPACITY, TABLE = 2, 8, 16, 4096

RULES = {
    "linear": {},
    "decay": {"decay": (HEADS,)},
    "delta": {"update": "delta", "beta": (HEADS,), "decay": (HEADS,)},
    "normalized": {"normalize": True, "feature_map": "elu"},
}


class Tokens:
    """Rows of a table: as many tokens as needed, without making any."""

    def __init__(self, options, seed):
        rng = np.random.default_rng(seed)
        shapes = {name: shape for name, shape in options.items() if isinstance(shape, tuple)}
        self.options = {name: value for name, value in options.items() if name not in shapes}
        self.tokens = rng.standard_normal((3, TABLE, 1, HEADS, SIZE), dtype=np.float32) / SIZE
        self.gates = {}
        for name, shape in shapes.items():
            gate = rng.random((TABLE, 1, *shape), dtype=np.float32)
            self.gates[name] = -gate if name == "decay" else gate

    def at(self, first, count):
        part = slice(first, first + count)
        return self.tokens[:, part], {**self.options, **{name: gate[part] for name, gate in self.gates.items()}}


def used_memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def fail(message):
    raise SystemExit(f"pool.py: {message}")


def run(steps, seed, rule, report=None):
    """Steps a pool; returns how many sequences were compared, and the growth in bytes."""
    options = RULES[rule]
    tokens = Tokens(options, seed)
    draw = random.Random(seed)
    normalize = options.get("normalize", False)

    def make():
        return linattn.State.zeros(1, HEADS, SIZE, SIZE, normalize=normalize)

    pool = linattn.StatePool(CAPACITY, HEADS, SIZE, SIZE, normalize=normalize)
    rows, followed, alone, compared, before = list(pool.allocate(2)), None, None, 0, None
    order = np.array(rows)
    for step in range(steps):
        if step % 8 == 0:  # one joins or leaves
            if pool.available and (len(rows) < 2 or draw.random() < 0.5):
                rows.append(pool.allocate(1)[0])
                if followed is None:
                    followed, alone = rows[-1], make()
            else:
                row = rows.pop(draw.randrange(len(rows)))
                if row == followed:
                    if not np.array_equal(pool.read([row]).S.view(np.int32), alone.S.view(np.int32)):
                        fail(f"step {step}: expected the state of a sequence alone, but got another; seed {seed}")
                    followed, compared = None, compared + 1
                pool.free([row])
            draw.shuffle(rows)
            order = np.array(rows)
        first = draw.randrange(TABLE - CAPACITY)
        (q, k, v), gates = tokens.at(first, len(rows))
        o = pool.step(q, k, v, order, num_threads=1, **gates)
        if followed is not None:
            at = rows.index(followed)
            (q, k, v), gates = tokens.at(first + at, 1)
            if not np.array_equal(alone.step(q, k, v, num_threads=1, **gates)[0].view(np.int32), o[at].view(np.int32)):
                fail(f"step {step}: expected the output of a sequence alone, but got another; seed {seed}")
        if step == steps // 10:
            before = used_memory()
        if report and step % report == 0:
            print(f"{rule}: {step} steps, {compared} sequences compared, {used_memory() >> 10} KiB", flush=True)
    return compared, used_memory() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10**5, help="of all rules together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-growth", type=int, default=4, help="MiB that the process may grow after a tenth of the steps")
    arguments = parser.parse_args()
    for rule in RULES:
        begin = time.monotonic()
        compared, growth = run(arguments.steps // len(RULES), arguments.seed, rule, report=10**6)
        print(
            f"{rule}: {arguments.steps // len(RULES)} steps in {time.monotonic() - begin:.0f} s, {compared} sequences "
            f"with the bits that they have alone, {growth >> 10} KiB more memory",
            flush=True,
        )
        if growth > arguments.most_growth << 20:
            fail(f"expected {rule} to take no more memory, but got {growth} bytes more; seed {arguments.seed}")
        if not compared:
            fail(f"expected {rule} to compare a sequence, but got none")


if __name__ == "__main__":
    sys.exit(main())
