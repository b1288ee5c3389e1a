#!/usr/bin/env python3
"""Makes a softmax model linear: trains a small model of bytes, converts it with its weights, teaches
the feature maps to imitate softmax, trains all weights a little more, and prints the loss after each.

    python examples/convert.py
"""

import argparse
import contextlib
import pathlib
import time

import linattn.torch
import torch
from linattn.torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.mlp_norm = torch.nn.RMSNorm(width), torch.nn.RMSNorm(width)
        self.attention = nn.MultiHeadAttention(width, heads, rotary_base=10000.0)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.SiLU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(self.mlp_norm(x))


def make_model(options):
    return torch.nn.Sequential(
        torch.nn.Embedding(256, options.width),
        *(Block(options.width, options.heads) for _ in range(options.layers)),
        torch.nn.RMSNorm(options.width),
        torch.nn.Linear(options.width, 256),
    )


def draw_batches(text, options, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(text) - options.tokens - 1, (options.batch,), generator=generator)
        yield torch.stack([text[start : start + options.tokens + 1] for start in starts.tolist()]).long()


def loss_of(model, batch):
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def train(model, batches, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for batch in batches:
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def measure(model, text, options):
    losses = [loss_of(model, batch).item() for batch in draw_batches(text, options, 10, seed=1000)]
    return sum(losses) / len(losses)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="of training with softmax; half as many of each later stage")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--feature-map", choices=("hedgehog", "t2r"), default="hedgehog")
    options = parser.parse_args(arguments)
    text = b"".join(path.read_bytes() for path in sorted((ROOT / "docs").glob("*.md")))
    text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    losses, begin = {}, time.perf_counter()

    def report(stage):
        losses[stage] = measure(model, text, options)
        print(f"{stage:38s} {losses[stage]:.3f} nats per byte   {time.perf_counter() - begin:5.1f} s", flush=True)

    torch.manual_seed(0)
    model = make_model(options)
    train(model, draw_batches(text, options, options.steps, seed=0), lr=3e-3)
    report("softmax")
    linattn.torch.convert(model, feature_map=options.feature_map)
    report("linear, with the same weights")
    batches = draw_batches(text, options, options.steps // 2, seed=1)
    differences = linattn.torch.distill(model, (batch[:, :-1] for batch in batches))
    report("linear, feature maps taught by softmax")
    train(model, draw_batches(text, options, options.steps // 2, seed=2), lr=1e-3)
    report("linear, all weights trained further")
    print(f"outputs of the layers differed from softmax's by {differences[0]:.3f}, then {differences[-1]:.3f} of their mean square")
    return losses


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
