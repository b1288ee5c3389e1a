#!/usr/bin/env python3
"""Softmax attention of packed sequences, caches in pages and blocks, beside plain calls and PyTorch.

    PYTHONPATH=build/python tools/bench/measure_groups.py [--repetitions 8]

Prints a table in Markdown. CPU time of one thread, f32, heads of 64, the least of several calls in turn.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from turns import race

import linattn

RNG = np.random.default_rng(0)
OPTIONS = {"weights": "softmax", "num_threads": 1}


def draw(*shapes):
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


def to_torch(*arrays):
    return [torch.from_numpy(x).transpose(1, 2) for x in arrays]


def packed():
    """Lengths as in batches of text."""
    ends = np.array([0, 900, 1000, 1450, 2500, 4096])
    q, k, v = draw(*[(1, 4096, 8, 64)] * 3)

    def each(attend):
        return [attend(*(x[:, a:b] for x in (q, k, v))) for a, b in zip(ends, ends[1:])]

    return (
        lambda: linattn.attention(q, k, v, causal=True, cu_seqlens=ends, **OPTIONS),
        lambda: each(lambda *x: linattn.attention(*x, causal=True, **OPTIONS)),
        lambda: each(lambda *x: F.scaled_dot_product_attention(*to_torch(*x), is_causal=True)),
    )


def pages(T, size, length=2048, B=4, H=8):
    q, k, v, keys, values = draw((B, T, H, 64), *[(B, length, H, 64)] * 2, *[(B * length // size, size, H, 64)] * 2)
    table, lengths = RNG.permutation(B * length // size).reshape(B, -1), np.full(B, length)
    mask = torch.ones(T, length, dtype=torch.bool).tril(length - T)

    def gathered():
        own = [torch.from_numpy(x)[torch.from_numpy(table)].flatten(1, 2).transpose(1, 2) for x in (keys, values)]
        return F.scaled_dot_product_attention(*to_torch(q), *own, attn_mask=mask)

    return (
        lambda: linattn.attention(q, keys, values, causal=True, block_table=table, cache_seqlens=lengths, **OPTIONS),
        lambda: linattn.attention(q, k, v, causal=True, **OPTIONS),
        gathered,
    )


def blocks(T, size, H=4):
    q, k, v = draw(*[(1, T, H, 64)] * 3)
    mask = linattn.block_mask(T // size, window=2, global_blocks=1, random_blocks=3)
    wide = torch.from_numpy(np.kron(mask, np.ones((size, size), bool)))
    tensors = to_torch(q, k, v)
    return (
        lambda: linattn.attention(q, k, v, block_mask=mask, block_size=size, **OPTIONS),
        lambda: linattn.attention(q, k, v, **OPTIONS),
        lambda: F.scaled_dot_product_attention(*tensors, attn_mask=wide),
    )


CASES = {
    "packed, causal, 4096 tokens": (packed,), "1 query, pages of 16": (pages, 1, 16), "1 query, pages of 64": (pages, 1, 64),
    "16 queries, pages of 64": (pages, 16, 64), "256 queries, pages of 64": (pages, 256, 64),
    "blocks of 64, 4096 tokens": (blocks, 4096, 64), "blocks of 64, 8192 tokens": (blocks, 8192, 64),
    "blocks of 128, 8192 tokens": (blocks, 8192, 128),
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| | plain calls over it | PyTorch over it |")
    print("|---|---|---|")
    for name, (make, *sizes) in CASES.items():
        ours, plain, peer = race(make(*sizes), arguments.repetitions)
        print(f"| {name} | {plain / ours:.2f} | {peer / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
