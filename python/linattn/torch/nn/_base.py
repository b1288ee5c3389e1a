"""The base of the layers: sizes, projections, short convolutions, norms, padding, caches."""

from __future__ import annotations

import math

import torch
from torch import nn

import linattn

from ..._core._checks import check_size
from ..._core._sizes import HeadSizes
from ._cache import Cache

__all__ = [
    "Layer", "OutputNorm", "ProjectedLayer", "ShortConvolution", "draw_rates", "draw_steps", "each_sequence",
    "merge_heads", "recur", "refuse_cache", "repeat_heads", "rotate", "split_heads", "token_positions",
]  # fmt: skip


def split_heads(x, size):
    """``[B, T, H·size]`` as ``[B, T, H, size]``."""
    return x.unflatten(-1, (-1, size))


def merge_heads(x):
    return x.flatten(-2)


def repeat_heads(x, heads):
    """Every head as often as query heads share it."""
    times = heads // x.shape[2]
    return x if times == 1 else x.repeat_interleave(times, dim=2)


def each_sequence(function, tensors, cu_seqlens):
    """The function of the tokens `[B, T, …]` of each sequence, one after another."""
    if cu_seqlens is None:
        return function(*tensors)
    lengths = cu_seqlens.diff().tolist()
    parts = zip(*(tensor.split(lengths, 1) for tensor in tensors))
    return torch.cat([function(*part) for part in parts if part[0].shape[1]], 1)


def refuse_cache(layer, cache, why):
    if cache is not None:
        raise ValueError(f"cache: expected None for {type(layer).__name__}, {why}, but got a cache")


# ----------------------------------------------------------------------------
# Calls with a cache
# ----------------------------------------------------------------------------


def call(function, *operands, **options):
    """A function of linattn without the options that are None, which `torch.compile` does not take
    where it does not look into a call."""
    return function(*operands, **{name: option for name, option in options.items() if option is not None})


def recur(function, *operands, cache, name="state", state="initial_state", returns="output_final_state", **options):
    """A recurrence of linattn that starts at a state of the cache and leaves the final one there.

    Where no gradient is recorded the state is overwritten.
    """
    if cache is None:
        return call(function, *operands, **options)
    before = cache.get(name)
    if before is not None:
        # A step must not write to tensors that a graph has kept.
        kept = before.S if isinstance(before, linattn.State) else before
        options["inplace"] = not torch.is_grad_enabled() and not kept.requires_grad
        options[state] = before
    o, cache.parts[name] = call(function, *operands, **{returns: True}, **options)
    return o


class ShortConvolution(nn.Conv1d):
    """The causal convolution of every channel with weights of its own, then an activation.

    Parameters are those of `torch.nn.Conv1d`: `weight` ``[C, 1, W]`` and, with `bias`,
    `bias` ``[C]``.
    """

    def __init__(self, channels, size=4, *, bias=False, activation="silu"):
        super().__init__(channels, channels, check_size("size", size), groups=channels, padding=size - 1, bias=bias)
        self.activation = activation

    def forward(self, x, cache=None, cu_seqlens=None, name="conv"):
        """``[B, T, C]`` to the same shape."""
        initial = None if cache is None else cache.get(name)
        options = {"bias": self.bias, "activation": self.activation, "return_state": cache is not None}
        if cu_seqlens is not None and torch.is_grad_enabled():
            y = self._run_each(x, initial, cu_seqlens, options)
        else:
            y = call(
                linattn.causal_conv1d, x, self.weight, initial_state=initial, cu_seqlens=cu_seqlens, **options
            )
        if cache is None:
            return y
        y, cache.parts[name] = y
        return y

    def _run_each(self, x, initial, cu_seqlens, options):
        """One sequence after another: packed ones have no gradient."""
        ends, outputs, states = cu_seqlens.tolist(), [], []
        for row, (begin, end) in enumerate(zip(ends[:-1], ends[1:])):
            before = None if initial is None else initial[row : row + 1]
            result = call(linattn.causal_conv1d, x[:, begin:end], self.weight, initial_state=before, **options)
            y, state = result if options["return_state"] else (result, None)
            outputs.append(y)
            states.append(state)
        y = torch.cat(outputs, 1)
        return (y, torch.cat(states)) if options["return_state"] else y


class OutputNorm(nn.Module):
    """The norm of the outputs of a recurrence, over the features of a head or over groups of
    features, and its gate. Its parameter is `weight`."""

    def __init__(self, size, *, activation="silu", eps=1e-5, groups=1, gate_first=False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.options = {"activation": activation, "eps": eps, "groups": groups}
        self.gate_first = gate_first

    def forward(self, x, gate=None):
        gate_first = self.gate_first and gate is not None
        return call(linattn.output_norm, x, weight=self.weight, gate=gate, gate_first=gate_first, **self.options)

    def extra_repr(self):
        return f"{self.weight.shape[0]}, " + ", ".join(f"{name}={value}" for name, value in self.options.items())


# ----------------------------------------------------------------------------
# Parameters that state space models start from
# ----------------------------------------------------------------------------


def draw_rates(heads, low=1.0, high=16.0):
    """A_log: logarithms of decay rates that are uniform between two bounds."""
    return _without_decay(torch.empty(heads).uniform_(low, high).log())


def draw_steps(count, low=1e-3, high=0.1, floor=1e-4):
    """dt_bias: what softplus maps to steps whose logarithms are uniform."""
    dt = torch.exp(torch.rand(count) * (math.log(high) - math.log(low)) + math.log(low)).clamp(min=floor)
    return _without_decay(dt + torch.log(-torch.expm1(-dt)))


def _without_decay(values):
    parameter = nn.Parameter(values)
    parameter._no_weight_decay = True  # what optimizers of the field look for
    return parameter


# ----------------------------------------------------------------------------
# Positions
# ----------------------------------------------------------------------------


def token_positions(x, cache, cu_seqlens):
    """How many tokens of its sequence come before each of these, ``[T]`` or ``[B, T]``."""
    places = torch.arange(x.shape[1], device=x.device)
    before = 0 if cache is None else cache.length
    if cu_seqlens is None:
        return places + (before[:, None].to(x.device) if isinstance(before, torch.Tensor) else before)
    offsets = cu_seqlens.to(x.device)
    row = torch.bucketize(places, offsets[1:], right=True)
    return places - offsets[row] + (before.to(x.device)[row] if isinstance(before, torch.Tensor) else before)


def rotate(x, positions, base=10000.0):
    """Rotary embedding of ``[B, T, H, D]``: the halves of a head are the two coordinates."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = positions[..., None].float() * rates
    cos, sin = angles.cos().unsqueeze(-2), angles.sin().unsqueeze(-2)
    first, second = x.float().split(half, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


# ----------------------------------------------------------------------------
# Layers
# ----------------------------------------------------------------------------


def _unpack(y, mask):
    """Packed tokens where the mask is, zeros elsewhere."""
    zeros = y.new_zeros((*mask.shape, y.shape[-1]))
    return zeros.masked_scatter(mask.unsqueeze(-1), y)


class Layer(nn.Module):
    """The base of all layers. A subclass defines `mix`."""

    def __init__(self, hidden_size, dropout=0.0):
        super().__init__()
        self.hidden_size = check_size("hidden_size", hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None, cu_seqlens=None, mask=None):
        """The layer's output for every token.

        Args:
          x: ``[B, T, hidden_size]``.
          cache: a `Cache`, from which the layer goes on and in which it leaves what the next
            call needs.
          cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1; a cache then has N rows.
          mask: bool ``[B, T]``, False where there is padding, on either side. Padding is left
            out, and its outputs are 0.

        Returns:
          ``[B, T, hidden_size]``.
        """
        return self.run(x, cache, cu_seqlens, mask)

    def run(self, x, cache, cu_seqlens, mask, **others):
        """`mix` of the tokens without padding, then dropout. `others` are operands of `mix`
        with the tokens of x, or None; what it returns beside its output has them, too."""
        self._check(x, cache, cu_seqlens, mask)
        if isinstance(cu_seqlens, (list, tuple)):
            cu_seqlens = torch.tensor(cu_seqlens, dtype=torch.int64)
        if mask is not None:
            mask = mask.bool()
            cu_seqlens = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0))
            x = x[mask].unsqueeze(0)
            others = {name: None if other is None else other[mask].unsqueeze(0) for name, other in others.items()}
        if cache is not None:
            cache.claim(self)
        result = self.mix(x, cache, cu_seqlens, **others)
        if cache is not None:
            cache.advance(x.shape[1] if cu_seqlens is None else cu_seqlens.diff())
        y, *results = result if isinstance(result, tuple) else (result,)
        results = [self.dropout(y), *results]
        if mask is not None:
            results = [_unpack(y, mask) for y in results]
        return tuple(results) if isinstance(result, tuple) else results[0]

    def mix(self, x, cache, cu_seqlens):
        """The layer without padding and dropout."""
        raise NotImplementedError(f"{type(self).__name__}: expected a subclass that defines mix")

    def _check(self, x, cache, cu_seqlens, mask):
        if x.ndim != 3 or x.shape[-1] != self.hidden_size:
            raise ValueError(f"x: expected shape (B, T, {self.hidden_size}), but got {tuple(x.shape)}")
        if cache is not None and not isinstance(cache, Cache):
            raise TypeError(f"cache: expected a linattn.torch.nn.Cache, but got {type(cache).__name__}")
        if cu_seqlens is not None and x.shape[0] != 1:
            raise ValueError(f"x: expected one row of packed sequences with cu_seqlens, but got {x.shape[0]}")
        if mask is None:
            return
        if cu_seqlens is not None:
            raise ValueError("mask: expected it only without cu_seqlens, but got both")
        if mask.shape != x.shape[:2]:
            raise ValueError(f"mask: expected shape {tuple(x.shape[:2])}, but got {tuple(mask.shape)}")


class ProjectedLayer(Layer):
    """A layer with projections to queries, keys, values and back: `q_proj`, `k_proj`, `v_proj`,
    `o_proj`, and where there is a `conv_size` the short convolutions `q_conv1d`, `k_conv1d`,
    `v_conv1d` behind the first three."""

    _factors = (1, None)  # of `HeadSizes.of`

    def __init__(
        self, hidden_size, heads, *, kv_heads=None, value_heads=None, head_dim=None, value_head_dim=None,
        conv_size=None, conv_bias=False, rotary_base=None, bias=False, dropout=0.0,
    ):  # fmt: skip
        super().__init__(hidden_size, dropout)
        sizes = HeadSizes.of(
            self.hidden_size, heads, kv_heads=kv_heads, value_heads=value_heads, head_dim=head_dim,
            value_head_dim=value_head_dim, rotary_base=rotary_base, factors=self._factors,
        )  # fmt: skip
        self.heads, self.key_heads, self.value_heads, self.head_dim, self.value_head_dim = sizes
        self.rotary_base, self.output_size = rotary_base, sizes.output
        for name, size in sizes.projected.items():
            self.add_module(f"{name}_proj", nn.Linear(self.hidden_size, size, bias=bias))
        self.has_conv = conv_size is not None
        if self.has_conv:
            for name, size in sizes.projected.items():
                self.add_module(f"{name}_conv1d", ShortConvolution(size, conv_size, bias=conv_bias))
        self.o_proj = nn.Linear(self.output_size, self.hidden_size, bias=bias)

    def project(self, x, cache, cu_seqlens, activation=None):
        """q, k, v ``[B, T, H, D]``; `activation` follows where no convolution has one."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.has_conv:
            q = self.q_conv1d(q, cache, cu_seqlens, "q_conv")
            k = self.k_conv1d(k, cache, cu_seqlens, "k_conv")
            v = self.v_conv1d(v, cache, cu_seqlens, "v_conv")
        elif activation is not None:
            q, k, v = activation(q), activation(k), activation(v)
        return split_heads(q, self.head_dim), split_heads(k, self.head_dim), split_heads(v, self.value_head_dim)

    def project_rotated(self, x, cache, cu_seqlens):
        """`project`, with the rotary embeddings of q and k where there is a `rotary_base`."""
        q, k, v = self.project(x, cache, cu_seqlens)
        if self.rotary_base is None:
            return q, k, v
        positions = token_positions(x, cache, cu_seqlens)
        return rotate(q, positions, self.rotary_base), rotate(k, positions, self.rotary_base), v
