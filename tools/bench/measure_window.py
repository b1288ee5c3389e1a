#!/usr/bin/env python3
"""Softmax attention in a sliding window, beside all keys and beside PyTorch with a mask.

    PYTHONPATH=build/python tools/bench/measure_window.py [--tokens 16384] [--window 512]

Prints a table in Markdown. CPU time of one thread, f32, two heads, the least of several calls in
turn. A useful product is one that the causal mask or the window keeps.
"""

import argparse

import numpy as np
import torch
from turns import race

import linattn

# All keys are measured on so many tokens: their work grows with the square.
FULL_TOKENS = 4096


def measure(T, window, D, H=2):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, T, H, D), dtype=np.float32) for _ in range(3))
    short = [x[:, :FULL_TOKENS] for x in (q, k, v)]
    options = dict(causal=True, weights="softmax", num_threads=1)
    distance = torch.arange(T)[:, None] - torch.arange(T)[None]
    mask = (distance >= 0) & (distance < window)
    tensors = [torch.from_numpy(x).transpose(1, 2).contiguous() for x in (q, k, v)]
    attend = torch.nn.functional.scaled_dot_product_attention
    ours, full, masked = race(
        (
            lambda: linattn.attention(q, k, v, window=window, **options),
            lambda: linattn.attention(*short, **options),
            lambda: attend(*tensors, attn_mask=mask),
        ),
        3,
    )
    rate = (T * window - window**2 / 2) / ours
    return rate / (FULL_TOKENS**2 / 2 / full), masked / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--window", type=int, default=512)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| head size | tokens | window | rate per useful product over all keys | PyTorch's time with the mask |")
    print("|---|---|---|---|---|")
    for D in (64, 128):
        rate, masked = measure(arguments.tokens, arguments.window, D)
        print(f"| {D} | {arguments.tokens} | {arguments.window} | {rate:.2f} | {masked:.0f}x |", flush=True)


if __name__ == "__main__":
    main()
