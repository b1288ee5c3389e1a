"""Trains two layers of a recurrence to recall: which rule of update solves which task?

    PYTHONPATH=build/python .venv/bin/python examples/recall.py --plot=recall.png

A sequence of `copy` is a string of different tokens, a mark, and the same string, which the model
predicts. One of `recall` is pairs of a key and a value, each key in two of them with different
values, then all keys again: the model predicts the last value of each (multi-query associative
recall, Arora et al., "Zoology", 2023, with overwritten keys). Sequences are random, so that
a model can take its predictions from the state alone.
"""

import argparse
import contextlib
import functools
import time

import torch
import torch.nn.functional as F
from torch import nn
from train import Model

import linattn

IGNORED = -100  # no loss at this token


# ----------------------------------------------------------------------------
# The recurrences
# ----------------------------------------------------------------------------


def gate(x):
    """The logarithm of a decay that is close to 1 in the beginning."""
    return F.logsigmoid(x + 4)


def delta(q, k, v, gates):
    return linattn.delta_rule(q, k, v, gates[..., 0].sigmoid(), use_qk_l2norm_in_kernel=True)


def gated_delta(q, k, v, gates):
    g, beta = gate(gates[..., 0]), gates[..., 1].sigmoid()
    return linattn.gated_delta_rule(q, k, v, g, beta, use_qk_l2norm_in_kernel=True)


# Gates of a head, and the output of queries, keys, values and these gates.
RULES = {
    "linear": (0, lambda q, k, v, _: linattn.linear_attention(q, k, v)),
    "decay": (1, lambda q, k, v, gates: linattn.scan(q, k, v, decay=gate(gates[..., 0]))),
    "delta": (1, delta),
    "gated-delta": (2, gated_delta),
}


class Recurrence(nn.Module):
    """A short convolution, then a recurrence."""

    def __init__(self, rule, width, heads):
        super().__init__()
        self.heads = heads
        self.gate_count, self.rule = RULES[rule]
        self.conv = nn.Parameter(torch.randn(width, 4) / 4 + 0.5)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.gates = nn.Linear(width, heads * self.gate_count) if self.gate_count else None
        self.norm = nn.RMSNorm(width // heads)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, is_plain):
        x = linattn.causal_conv1d(x, self.conv, activation="silu")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        gates = self.gates(x).unflatten(-1, (self.heads, self.gate_count)) if self.gates else None
        return self.out(self.norm(self.rule(q, k, v, gates)).flatten(2))


# ----------------------------------------------------------------------------
# The tasks
# ----------------------------------------------------------------------------


def draw_different(count, of, batch, generator):
    return torch.rand(batch, of, generator=generator).argsort(1)[:, :count]


def copy(items, batch, generator):
    """Tokens ``[batch, 2 · items + 1]``, what is to be predicted at each, and how many kinds there are."""
    mark = 2 * items
    x = draw_different(items, mark, batch, generator)
    tokens = torch.cat([x, torch.full((batch, 1), mark), x], 1)
    expected = torch.full_like(tokens, IGNORED)
    expected[:, items:-1] = x
    return tokens, expected, mark + 1


def recall(items, batch, generator):
    """The same: keys are the first 2 · items tokens, values the others."""
    count = 2 * items
    keys = draw_different(items, count, batch, generator)
    parts = []
    for _ in range(2):
        order = draw_different(items, items, batch, generator)
        values = torch.randint(count, 2 * count, (batch, items), generator=generator)
        parts.append(torch.stack([keys.gather(1, order), values.gather(1, order)], 2).flatten(1))
    order = draw_different(items, items, batch, generator)
    asked = torch.stack([keys.gather(1, order), values.gather(1, order)], 2).flatten(1)
    tokens = torch.cat([*parts, asked], 1)
    expected = torch.full_like(tokens, IGNORED)
    expected[:, 4 * items :: 2] = asked[:, 1::2]
    return tokens, expected, 2 * count


TASKS = {"copy": copy, "recall": recall}
ITEMS = {"copy": 24, "recall": 12}  # that a state holds, if it is written well


# ----------------------------------------------------------------------------
# Training
# ----------------------------------------------------------------------------


def train(task, rule, options):
    """The part of the answers that are right, of batches that were never seen, as training goes on."""
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    items = options.items or ITEMS[task]
    *_, vocabulary = TASKS[task](items, 1, torch.Generator())
    model = Model([functools.partial(Recurrence, rule)], 2, options.width, options.heads, vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, options.steps)
    right, begin = [], time.perf_counter()
    for step in range(options.steps):
        tokens, expected, _ = TASKS[task](items, options.batch, generator)
        logits = model(tokens, is_plain=False)
        asked = expected != IGNORED
        right.append((logits.argmax(-1) == expected)[asked].float().mean().item())
        loss = F.cross_entropy(logits.flatten(0, 1), expected.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    last = right[-20:]
    print(f"{task}, {rule}: {sum(last) / len(last):.0%} right after {options.steps} steps, {time.perf_counter() - begin:.0f} s", flush=True)
    return right


def plot(path, curves):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(curves), figsize=(4.5 * len(curves), 3.4), sharey=True, squeeze=False, layout="constrained")
    for panel, (task, rules) in zip(panels[0], curves.items()):
        for rule, right in rules.items():
            smooth = torch.tensor(right).unfold(0, min(20, len(right)), 1).mean(1)
            panel.plot(smooth, label=rule)
        panel.set(xlabel="step", ylabel="answers that are right", title=task, ylim=(0, 1.02))
    panels[0][0].legend()
    figure.savefig(path, dpi=120)


def parse_names(table):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in table:
                raise argparse.ArgumentTypeError(f"expected some of {', '.join(table)}, but got {name}")
        return names

    return parse


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=parse_names(TASKS), default=list(TASKS), help=", ".join(TASKS))
    parser.add_argument("--rules", type=parse_names(RULES), default=list(RULES), help=", ".join(RULES))
    parser.add_argument("--items", type=int, help=f"tokens to copy, or keys (default: {ITEMS['copy']}, {ITEMS['recall']})")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="tensors this small gain nothing from more (default: 1)")
    parser.add_argument("--plot", help="where to save the curves as a picture")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    linattn.set_num_threads(options.threads)
    curves = {task: {rule: train(task, rule, options) for rule in options.rules} for task in options.tasks}
    if options.plot:
        plot(options.plot, curves)
    return curves


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
