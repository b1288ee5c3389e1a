"""Layers whose state decays and is added to: gated linear attention, retention, Mamba-2."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

import linattn

from ..._core._sizes import mamba2_sizes
from ._base import (
    Layer, OutputNorm, ProjectedLayer, ShortConvolution, draw_rates, draw_steps, merge_heads, recur, repeat_heads, split_heads,
)  # fmt: skip

__all__ = ["GatedLinearAttention", "Mamba2", "RetNet"]


class _GatedOutput(ProjectedLayer):
    """A layer with a norm of every head, `g_norm`, or with a gate as well, `g_norm_swish_gate`
    and `g_proj`."""

    def _add_output(self, use_gate, norm_eps):
        norm = OutputNorm(self.value_head_dim, eps=norm_eps)
        self.g_proj = nn.Linear(self.hidden_size, self.output_size, bias=False) if use_gate else None
        self.add_module("g_norm_swish_gate" if use_gate else "g_norm", norm)

    def _finish(self, o, x):
        if self.g_proj is None:
            o = self.g_norm(o)
        else:
            o = self.g_norm_swish_gate(o, split_heads(self.g_proj(x), self.value_head_dim))
        return self.o_proj(merge_heads(o))


class GatedLinearAttention(_GatedOutput):
    """Gated linear attention: a decay per channel and token.

    Args:
      hidden_size: of the tokens.
      heads: of the queries.
      kv_heads: of keys, values and gates; as many unless given, else a divisor.
      head_dim: half of hidden_size / heads unless given.
      value_head_dim: hidden_size / heads unless given.
      conv_size: of short convolutions behind the projections; none unless given.
      conv_bias: whether these have biases.
      gate_rank: of the two projections to decays, `gk_proj`.
      gate_normalizer: divides the logarithms of the decays.
      use_gate: gate the outputs, by `g_proj`.
      norm_eps: of the output norm.
      dropout: of the output.

    Yang et al., "Gated linear attention transformers", 2024.
    """

    _factors = (0.5, 1)

    def __init__(
        self, hidden_size, heads, *, kv_heads=None, head_dim=None, value_head_dim=None, conv_size=None,
        conv_bias=False, gate_rank=16, gate_normalizer=16.0, use_gate=True, norm_eps=1e-5, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=value_head_dim, conv_size=conv_size,
            conv_bias=conv_bias, dropout=dropout,
        )  # fmt: skip
        self.gate_normalizer = gate_normalizer
        self.gk_proj = nn.Sequential(
            nn.Linear(hidden_size, gate_rank, bias=False), nn.Linear(gate_rank, self.key_heads * self.head_dim)
        )
        self._add_output(use_gate, norm_eps)

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project(x, cache, cu_seqlens)
        g = F.logsigmoid(split_heads(self.gk_proj(x), self.head_dim)) / self.gate_normalizer
        return self._finish(recur(linattn.gla, q, k, v, g, cache=cache, cu_seqlens=cu_seqlens), x)


class RetNet(_GatedOutput):
    """Multi-scale retention: a constant decay per head, and rotary embeddings.

    Args:
      hidden_size: of the tokens.
      heads: of the queries; each has its decay.
      kv_heads: of keys and values; as many unless given, else a divisor.
      head_dim: hidden_size / heads unless given.
      value_head_dim: twice hidden_size / heads unless given.
      conv_size: of short convolutions behind the projections; none unless given.
      conv_bias: whether these have biases.
      rotary_base: of the embeddings, None for none.
      use_gate: gate the outputs, by `g_proj`.
      norm_eps: of the output norm.
      dropout: of the output.

    Sun et al., "Retentive Network", 2023.
    """

    _factors = (1, 2)

    def __init__(
        self, hidden_size, heads, *, kv_heads=None, head_dim=None, value_head_dim=None, conv_size=None,
        conv_bias=False, rotary_base=10000.0, use_gate=True, norm_eps=1e-5, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=value_head_dim,
            conv_size=conv_size, conv_bias=conv_bias, rotary_base=rotary_base, dropout=dropout,
        )  # fmt: skip
        self._add_output(use_gate, norm_eps)

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project_rotated(x, cache, cu_seqlens)
        # Heads that share keys do not share decays, nor states.
        k, v = repeat_heads(k, self.heads), repeat_heads(v, self.heads)
        return self._finish(recur(linattn.retnet, q, k, v, cache=cache, cu_seqlens=cu_seqlens), x)


class Mamba2(Layer):
    """The mixer of Mamba-2.

    Args:
      hidden_size: of the tokens.
      heads: expand · hidden_size / head_dim unless given.
      head_dim: of the heads.
      state_size: how many numbers the state keeps for each of their features.
      expand: how much wider than the tokens the heads are together.
      groups: of heads that share B and C, and of features that share a norm.
      conv_size: of the short convolution.
      conv_bias: whether it has a bias.
      bias: of the projections `in_proj` and `out_proj`.
      norm_eps: of the gated output norm `norm`.
      dt_limit: bounds of the steps.
      dropout: of the output.

    `from_transformers` makes one of a module of transformers, which has the same names. Dao
    and Gu, "Transformers are SSMs", 2024.
    """

    def __init__(
        self, hidden_size, heads=None, *, head_dim=64, state_size=128, expand=2, groups=1, conv_size=4,
        conv_bias=True, bias=False, norm_eps=1e-5, dt_limit=(0.0, math.inf), dropout=0.0,
    ):  # fmt: skip
        super().__init__(hidden_size, dropout)
        self.head_dim, self.state_size, self.groups = head_dim, state_size, groups
        self.width, self.conv_dim, self.heads = mamba2_sizes(hidden_size, heads, head_dim, state_size, expand, groups)
        self.dt_limit = tuple(dt_limit)
        self.in_proj = nn.Linear(hidden_size, self.width + self.conv_dim + self.heads, bias=bias)
        self.conv1d = ShortConvolution(self.conv_dim, conv_size, bias=conv_bias)
        self.dt_bias = draw_steps(self.heads)
        self.A_log = draw_rates(self.heads)
        self.D = nn.Parameter(torch.ones(self.heads))
        self.D._no_weight_decay = True
        self.norm = OutputNorm(self.width, eps=norm_eps, groups=self.groups, gate_first=True)
        self.out_proj = nn.Linear(self.width, hidden_size, bias=bias)

    def mix(self, x, cache, cu_seqlens):
        gate, tokens, dt = self.in_proj(x).split([self.width, self.conv_dim, self.heads], dim=-1)
        tokens = self.conv1d(tokens, cache, cu_seqlens)
        u, B, C = tokens.split([self.width, *2 * [self.groups * self.state_size]], dim=-1)
        steps = self._steps(dt)
        y = recur(
            linattn.mamba2, split_heads(u, self.head_dim), steps.pop("dt"), -self.A_log.float().exp(),
            split_heads(B, self.state_size), split_heads(C, self.state_size), cache=cache, cu_seqlens=cu_seqlens,
            state="initial_states", returns="return_final_states", D=self.D, **steps,
        )  # fmt: skip
        if cache is not None and not torch.is_grad_enabled():
            # Steps read a state many times faster where the features of a head are neighbours.
            cache.parts["state"] = cache.get("state").mT.contiguous().mT
        return self.out_proj(self.norm(merge_heads(y), gate))

    def _steps(self, dt):
        if self.dt_limit[0] <= 0 and self.dt_limit[1] == math.inf:
            return {"dt": dt, "dt_bias": self.dt_bias, "dt_softplus": True}
        return {"dt": F.softplus(dt.float() + self.dt_bias).clamp(*self.dt_limit)}
