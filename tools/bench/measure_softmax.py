#!/usr/bin/env python3
"""Forward and backward pass of softmax attention, beside PyTorch's.

    PYTHONPATH=build/python tools/bench/measure_softmax.py [--repetitions 5]

Prints tables in Markdown. CPU time of one thread, f32, causal, all three gradients, the least of several calls in turn.
The memory is the highest resident size during a call less that before it, less the output and the three gradients, of a
process for each call.
"""

import argparse
import multiprocessing
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention
from turns import race

import linattn


def draw(T, H, D):
    return [torch.randn(1, T, H, D).requires_grad_(i < 3) for i in range(4)]


def attend(q, k, v, **options):
    return linattn.attention(q, k, v, causal=True, weights="softmax", **options)


def functions(T, H, D, **options):
    """Ours, forward alone and with all gradients."""
    q, k, v, d = draw(T, H, D)

    def forward():
        with torch.no_grad():
            attend(q, k, v, **options)

    return forward, lambda: torch.autograd.grad(attend(q, k, v, **options), (q, k, v), d)


def torch_functions(T, H, D, **options):
    q, k, v, d = (x.detach().transpose(1, 2).contiguous() for x in draw(T, H, D))
    q, k, v = (x.requires_grad_() for x in (q, k, v))

    def forward():
        with torch.no_grad():
            scaled_dot_product_attention(q, k, v, **options)

    return forward, lambda: torch.autograd.grad(scaled_dot_product_attention(q, k, v, **options), (q, k, v), d)


def status(name):
    """A size of this process in MiB."""
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name)) / 1024


def peak(T, H, D):
    """MiB beside operands, output, its cotangent and gradients, of the step."""
    linattn.set_num_threads(1)
    q, k, v, d = draw(T, H, D)
    few = [x[:, :256].detach().requires_grad_() for x in (q, k, v)]
    torch.autograd.grad(attend(*few), few, d[:, :256])
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    found = torch.autograd.grad(attend(q, k, v), (q, k, v), d)
    return status("VmHWM") - before - sum(x.numel() * 4 for x in (*found, d)) / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    count = parser.parse_args().repetitions
    torch.set_num_threads(1)
    linattn.set_num_threads(1)
    print("| head size | tokens | heads | forward, ms | backward / forward | PyTorch's backward / forward | PyTorch's step / ours |")
    print("|---|---|---|---|---|---|---|")
    for D, T, H in ((64, 1024, 8), (64, 4096, 2), (128, 1024, 4), (128, 4096, 2)):
        ours = race((*functions(T, H, D), *torch_functions(T, H, D, is_causal=True)), count)
        forward, step, torch_forward, torch_step = ours
        print(f"| {D} | {T} | {H} | {forward * 1e3:.1f} | {step / forward - 1:.2f} | {torch_step / torch_forward - 1:.2f} "
              f"| {torch_step / step:.2f} |", flush=True)  # fmt: skip
    print("\n| head size | tokens | window | forward, ms | backward / forward | PyTorch's step with the mask / ours |")
    print("|---|---|---|---|---|---|")
    T, window = 16384, 512
    distance = torch.arange(T)[:, None] - torch.arange(T)[None]
    mask = (distance >= 0) & (distance < window)
    for D in (64, 128):
        _, torch_step = torch_functions(T, 1, D, attn_mask=mask)
        forward, step, other = race((*functions(T, 1, D, window=window), torch_step), max(count // 3, 1))
        print(f"| {D} | {T} | {window} | {forward * 1e3:.1f} | {step / forward - 1:.2f} | {other / step:.1f} |", flush=True)
    print("\n| head size | tokens | heads | memory, MiB | N×N weights, MiB |\n|---|---|---|---|---|")
    context = multiprocessing.get_context("spawn")
    for T in (4096, 8192, 16384):
        with context.Pool(1) as pool:
            found = pool.apply(peak, (T, 8, 64))
        print(f"| 64 | {T} | 8 | {found:.0f} | {8 * T * T * 4 / 2**20:.0f} |", flush=True)


if __name__ == "__main__":
    main()
