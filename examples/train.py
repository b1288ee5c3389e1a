"""Trains a small language model of bytes on this repository's own text, once with linattn and
once with the same model in plain PyTorch, from the same weights and the same batches.

    PYTHONPATH=build/python .venv/bin/python examples/train.py --mixer=gated-delta --plot=loss.png
"""

import argparse
import contextlib
import json
import pathlib
import time

import torch
import torch.nn.functional as F
from torch import nn

import linattn

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHUNK = 64  # tokens of a chunk in plain PyTorch; sequences are whole chunks


# ----------------------------------------------------------------------------
# The recurrences in plain PyTorch
# ----------------------------------------------------------------------------


def plain_linear(q, k, v):
    """φ(q)·φ(k) v over earlier tokens, normalised, with φ = elu + 1."""
    q, k = (F.elu(x).add(1).transpose(1, 2) for x in (q, k))
    weights = (q @ k.mT).tril() * q.shape[-1] ** -0.5
    return (weights @ v.transpose(1, 2) / (weights.sum(-1, keepdim=True) + 1e-6)).transpose(1, 2)


def plain_gated_delta(q, k, v, g, beta):
    """S' = e^g S; S = S' + β k (v − S'ᵀk)ᵀ; o = Sᵀq, chunk by chunk."""
    heads = lambda x: x.transpose(1, 2).unflatten(2, (-1, CHUNK))  # noqa: E731  [B, H, chunks, CHUNK, …]
    q, k, v, g, beta = map(heads, (q * q.shape[-1] ** -0.5, k, v, g, beta[..., None]))
    sums = g.cumsum(-1)
    decay = (sums[..., :, None] - sums[..., None, :]).tril().exp().tril()
    keys = k * beta
    corrected = (keys @ k.mT * decay).tril(-1) + torch.eye(CHUNK)
    written = torch.linalg.solve_triangular(corrected, torch.cat([v * beta, keys * sums.exp()[..., None]], -1), upper=False)
    values, erased = written.split([v.shape[-1], k.shape[-1]], -1)
    weights = q @ k.mT * decay
    read = q * sums.exp()[..., None]
    kept = k * (sums[..., -1:] - sums).exp()[..., None]
    state, outputs = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1]), []
    for u, w, a, r, s, last in zip(*(x.unbind(2) for x in (values, erased, weights, read, kept, sums[..., -1].exp()))):
        u = u - w @ state
        outputs.append(r @ state + a @ u)
        state = state * last[..., None, None] + s.mT @ u
    return torch.cat(outputs, 2).transpose(1, 2)


# ----------------------------------------------------------------------------
# The model
# ----------------------------------------------------------------------------


class Linear(nn.Module):
    """Linear attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, is_plain):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        o = plain_linear(q, k, v) if is_plain else linattn.linear_attention(q, k, v)
        return self.out(o.flatten(2))


class GatedDelta(nn.Module):
    """The gated delta rule, with a gate per head and keys of length 1."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.gates = nn.Linear(width, 2 * heads, bias=False)
        self.A_log = nn.Parameter(torch.linspace(-3, 0, heads))
        self.dt_bias = nn.Parameter(torch.zeros(heads))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, is_plain):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        g, beta = self.gates(x).chunk(2, -1)
        if is_plain:
            q, k = (x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in (q, k))
            g = -self.A_log.exp() * F.softplus(g + self.dt_bias)
            o = plain_gated_delta(q, k, v, g, beta.sigmoid())
        else:
            o = linattn.gated_delta_rule(
                q, k, v, g, beta, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=self.A_log,
                dt_bias=self.dt_bias, use_beta_sigmoid_in_kernel=True,
            )  # fmt: skip
        return self.out(o.flatten(2))


class Softmax(Linear):
    """Softmax attention, PyTorch's own in either model."""

    def forward(self, x, is_plain):
        q, k, v = (y.transpose(1, 2) for y in self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, mixer, width, heads):
        super().__init__()
        self.norm, self.mixer = nn.RMSNorm(width), mixer(width, heads)
        self.mlp = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 3 * width), nn.SiLU(), nn.Linear(3 * width, width))

    def forward(self, x, is_plain):
        x = x + self.mixer(self.norm(x), is_plain)
        return x + self.mlp(x)


# `hybrid` has a layer of softmax attention after every three of the gated delta rule.
MIXERS = {"linear": [Linear], "gated-delta": [GatedDelta], "hybrid": [GatedDelta] * 3 + [Softmax]}


class Model(nn.Module):
    """Layers with these mixers, one after the other, and then again from the first one."""

    def __init__(self, mixers, layers, width, heads, vocabulary=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(mixers[i % len(mixers)], width, heads) for i in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, is_plain):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, is_plain)
        return self.head(self.norm(x))


# ----------------------------------------------------------------------------
# Training
# ----------------------------------------------------------------------------


def read_text():
    """The bytes of the documentation and of the sources."""
    files = [path for pattern in ("*.md", "docs/*.md", "lib/**/*.cpp", "python/linattn/**/*.py") for path in sorted(ROOT.glob(pattern))]
    return torch.frombuffer(bytearray(b"".join(path.read_bytes() for path in files)), dtype=torch.uint8)


def draw_batches(text, options):
    generator = torch.Generator().manual_seed(options.seed)
    for _ in range(options.steps):
        starts = torch.randint(len(text) - options.tokens - 1, (options.batch,), generator=generator)
        yield torch.stack([text[start : start + options.tokens + 1] for start in starts.tolist()]).long()


def train(text, options, is_plain):
    """The losses, and the seconds of each step."""
    torch.manual_seed(options.seed)
    model = Model(MIXERS[options.mixer], options.layers, options.width, options.heads)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.01)
    losses, seconds = [], []
    for step, batch in enumerate(draw_batches(text, options)):
        begin = time.perf_counter()
        logits = model(batch[:, :-1], is_plain)
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
        if step % 20 == 0 or step == options.steps - 1:
            name = "PyTorch" if is_plain else "linattn"
            print(f"{name} step {step}: {losses[-1]:.4f} nats per byte, {seconds[-1] * 1e3:.0f} ms", flush=True)
    return losses, seconds


def plot(path, curves, mixer):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (by_step, by_time) = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for (name, (losses, seconds)), style in zip(curves.items(), ("-", "--")):
        by_step.plot(losses, style, label=name)
        by_time.plot(torch.tensor(seconds).cumsum(0), losses, style, label=name)
    by_step.set(xlabel="step", ylabel="nats per byte", title=f"{mixer}: the same losses")
    by_time.set(xlabel="seconds", title="the time they take")
    by_time.legend()
    figure.savefig(path, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixer", choices=MIXERS, default="gated-delta")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=512, help=f"of a sequence, a multiple of {CHUNK}")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("linattn", "PyTorch"), help="one of the two models")
    parser.add_argument("--plot", help="where to save the loss curves as a picture")
    parser.add_argument("--json", help="where to save losses and times")
    options = parser.parse_args(arguments)
    if options.tokens % CHUNK:
        parser.error(f"--tokens: expected a multiple of {CHUNK}, but got {options.tokens}")
    text = read_text()
    names = [options.only] if options.only else ["linattn", "PyTorch"]
    curves = {name: train(text, options, name == "PyTorch") for name in names}
    if len(curves) == 2:
        ours, theirs = (torch.tensor(losses) for losses, _ in curves.values())
        print(f"the losses differ by at most {((ours - theirs) / theirs).abs().max():.1e}, relatively")
        times = {name: sorted(seconds)[len(seconds) // 2] for name, (_, seconds) in curves.items()}
        print("a step takes, in the median, " + ", ".join(f"{x * 1e3:.0f} ms in {name}" for name, x in times.items()))
    if options.plot:
        plot(options.plot, curves, options.mixer)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(curves))
    return curves


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
