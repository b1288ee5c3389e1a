#!/usr/bin/env python3
"""Inputs as models have them, beside inputs that were prepared before.

    PYTHONPATH=build/python tools/bench/measure_inputs.py [--dtype bfloat16]

Prints a table in Markdown. CPU time of one thread, 1024 tokens, 32 heads of 128, the least of several calls in turn. A
row's quotient is the time of the kernel that does the work itself, over that of the same kernel whose operands have had it
done: tokens of innermost stride T, as PyTorch's convolutions leave them, over contiguous ones; queries and keys that the
kernel normalizes; gates that it makes of A_log, dt_bias and softplus or a sigmoid; betas that it takes through a sigmoid.
"""

import argparse

import torch
import torch.nn.functional as F
from turns import race

import linattn
from linattn import fla

T, H, D = 1024, 32, 128


def by_columns(x):
    """The same numbers, those of a channel neighbours in memory."""
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def cases(dtype):
    """Name, the call with prepared operands, and the call with raw ones."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, T, H, D).to(dtype) for _ in range(3))
    unit = [F.normalize(x.float(), dim=-1).to(dtype) for x in (q, k)]
    of_head, of_channel = torch.randn(1, T, H), torch.randn(1, T, H, D)
    beta, raw_beta = torch.rand(1, T, H).to(dtype), torch.randn(1, T, H).to(dtype)
    A_log, head_bias, channel_bias = torch.rand(H), torch.rand(H), torch.rand(H * D)
    decay, decays = (-A_log.exp() * F.softplus(of_head + head_bias), -0.1 * of_channel.abs())
    gate = dict(A_log=A_log, dt_bias=head_bias, use_gate_in_kernel=True)
    gates = dict(A_log=A_log, dt_bias=channel_bias, use_gate_in_kernel=True)
    norm, sigmoid = dict(use_qk_l2norm_in_kernel=True), dict(use_beta_sigmoid_in_kernel=True)
    delta, kda = fla.chunk_gated_delta_rule, fla.chunk_kda
    rows, columns = (*unit, v), [by_columns(x) for x in (*unit, v)]

    def strided(function, *others):
        return lambda: function(*rows, *others), lambda: function(*columns, *others)

    yield "gated delta rule, stride T", *strided(delta, decay, beta)
    yield "KDA, stride T", *strided(kda, decays, beta)
    yield "simple GLA, stride T", *strided(fla.chunk_simple_gla, decay)
    yield "GLA, stride T", *strided(fla.chunk_gla, decays)
    prepared = lambda: delta(*rows, decay, beta)  # noqa: E731
    yield "gated delta rule, norm", prepared, lambda: delta(q, k, v, decay, beta, **norm)
    yield "gated delta rule, gate", prepared, lambda: delta(*rows, of_head, beta, **gate)
    yield "gated delta rule, sigmoid", prepared, lambda: delta(*rows, decay, raw_beta, **sigmoid)
    yield "gated delta rule, all three", prepared, lambda: delta(q, k, v, of_head, raw_beta, **norm, **gate, **sigmoid)
    prepared = lambda: kda(*rows, decays, beta)  # noqa: E731
    yield "KDA, norm", prepared, lambda: kda(q, k, v, decays, beta, **norm)
    yield "KDA, gates", prepared, lambda: kda(*rows, of_channel, beta, **gates)
    yield "KDA, gates with a lower bound", prepared, lambda: kda(*rows, of_channel, beta, lower_bound=-5.0, safe_gate=True, **gates)
    yield "KDA, sigmoid", prepared, lambda: kda(*rows, decays, raw_beta, **sigmoid)
    yield "KDA, all three", prepared, lambda: kda(q, k, v, of_channel, raw_beta, **norm, **gates, **sigmoid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of tokens and betas")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    linattn.set_num_threads(1)
    print("| | prepared, ms | by the kernel, ms | quotient |\n|---|---|---|---|")
    for name, *runs in cases(getattr(torch, arguments.dtype)):
        prepared, raw = race(runs, arguments.repetitions)
        print(f"| {name} | {1e3 * prepared:.1f} | {1e3 * raw:.1f} | {raw / prepared:.2f} |", flush=True)


if __name__ == "__main__":
    main()
