#!/usr/bin/env python3
"""Linformer, Nyströmformer and FNet beside their PyTorch forms.

    PYTHONPATH=build/python tools/bench/measure_relatives.py [--repetitions 12]

Prints a table in Markdown. CPU time of one thread, f32, the least of several calls in turn. PyTorch gets what
ours gets, tokens [B, T, H, D] as projections make them, and in the third column tokens whose heads were laid out
one after another before. The last one has the plain form over the products alone at the peak of one core: no
form is faster by more, unless it has fewer products.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from turns import race

import linattn
from linattn import _linattn


def draw(T, H, D):
    """q, k, v as ours has them, as PyTorch's attention takes them, and these with each head apart in memory."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, T, H, D), dtype=np.float32) for _ in range(3)]
    heads = [torch.from_numpy(x).transpose(1, 2) for x in arrays]
    return arrays, heads, [x.contiguous() for x in heads]


def softmax(q, k, v):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


def linformer(T, H, D, R):
    (q, k, v), heads, apart = draw(T, H, D)
    e = np.random.default_rng(1).standard_normal((2, T, R), dtype=np.float32) / T**0.5
    E = torch.from_numpy(e)

    def run(attend, Q, K, V):
        return attend(Q, torch.einsum("bhtd,tr->bhrd", K, E[0]), torch.einsum("bhtd,tr->bhrd", V, E[1]))

    return (
        lambda: linattn.linformer(q, k, v, *e),
        lambda: run(softmax, *heads),
        lambda: run(F.scaled_dot_product_attention, *heads),
        lambda: run(softmax, *apart),
    )


def pseudo_inverse(A):
    Z, one = A.mT / (A.sum(-2).amax(-1) * A.sum(-1).amax(-1))[..., None, None], torch.eye(A.shape[-1])
    for _ in range(6):
        AZ = A @ Z
        Z = 0.25 * Z @ (13 * one - AZ @ (15 * one - AZ @ (7 * one - AZ)))
    return Z


def nystrom(T, H, D, m):
    (q, k, v), heads, apart = draw(T, H, D)

    def run(attend, Q, K, V):
        few_q, few_k = (x.unflatten(2, (m, -1)).mean(3) for x in (Q, K))
        A = torch.softmax(few_q @ few_k.mT * D**-0.5, -1)
        return attend(Q, few_k, pseudo_inverse(A) @ attend(few_q, K, V))

    return (
        lambda: linattn.nystrom(q, k, v, landmarks=m),
        lambda: run(softmax, *heads),
        lambda: run(F.scaled_dot_product_attention, *heads),
        lambda: run(softmax, *apart),
    )


def fnet(T, D):
    x = torch.randn(1, T, D)
    return (
        lambda: linattn.fnet(x),
        lambda: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real,
        lambda: torch.fft.fft2(x).real,
    )


def products_at_peak(make, sizes, gflops):
    """Seconds that the multiply-adds take; None for FNet, which has no products."""
    if make is fnet:
        return None
    T, H, D, size = sizes
    count = linattn.costs.linformer_multiply_adds if make is linformer else linattn.costs.nystrom_multiply_adds
    return 2e-9 * H * count(T, D, size) / gflops


CASES = {
    "Linformer, R = 64": (linformer, 4096, 8, 64, 64), "Linformer, R = 256": (linformer, 4096, 8, 64, 256),
    "Linformer, R = 256, 1024 tokens": (linformer, 1024, 8, 64, 256),
    "Nyström, m = 64": (nystrom, 4096, 8, 64, 64), "Nyström, m = 128": (nystrom, 4096, 8, 64, 128),
    "Nyström, m = 256": (nystrom, 4096, 8, 64, 256), "Nyström, m = 64, 1024 tokens": (nystrom, 1024, 8, 64, 64),
    "FNet, 4096 × 512": (fnet, 4096, 512), "FNet, 512 × 768": (fnet, 512, 768), "FNet, 1000 × 768": (fnet, 1000, 768),
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=12)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    linattn.set_num_threads(1)
    gflops = _linattn.fma_gflops(1)
    print(f"One core's peak: {gflops:.0f} GFLOP/s.\n")
    print("| | plain form over ours | fused form over ours | plain form, heads apart | plain form over the peak |")
    print("|---|---|---|---|---|")
    for name, (make, *sizes) in CASES.items():
        ours, *others = race(make(*sizes), arguments.repetitions)
        figures = [f"{other / ours:.1f}" for other in others]
        least = products_at_peak(make, sizes, gflops)
        figures += [f"{others[0] / least:.1f}"] if least else ["–", "–"]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
