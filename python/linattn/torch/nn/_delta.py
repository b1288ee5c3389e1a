"""Layers whose recurrence corrects what its state holds: the delta rule and its kin."""

from __future__ import annotations

import torch.nn.functional as F
from torch import nn

import linattn

from ._base import (
    OutputNorm, ProjectedLayer, draw_rates, draw_steps, merge_heads, recur, split_heads,
)  # fmt: skip

__all__ = ["DeltaNet", "GatedDeltaNet", "KimiDeltaAttention"]


class DeltaNet(ProjectedLayer):
    """The delta rule: a key's old value is erased before its new one is written.

    Args:
      hidden_size: of the tokens.
      heads: of queries, keys and values.
      head_dim, value_head_dim: hidden_size / heads unless given.
      conv_size: of the short convolutions behind the projections, None for silu alone.
      conv_bias: whether these have biases.
      use_gate: gate the outputs, by `g_proj`.
      allow_neg_eigval: β between 0 and 2 instead of 0 and 1.
      norm_eps: of the output norm `o_norm`.
      dropout: of the output.

    Yang et al., "Parallelizing linear transformers with the delta rule", 2024.
    """

    def __init__(
        self, hidden_size, heads, *, head_dim=None, value_head_dim=None, conv_size=4, conv_bias=False,
        use_gate=False, allow_neg_eigval=False, norm_eps=1e-5, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, head_dim=head_dim, value_head_dim=value_head_dim, conv_size=conv_size,
            conv_bias=conv_bias, dropout=dropout,
        )  # fmt: skip
        self.allow_neg_eigval = allow_neg_eigval
        self.b_proj = nn.Linear(hidden_size, self.heads, bias=False)
        self.g_proj = nn.Linear(hidden_size, self.output_size, bias=False) if use_gate else None
        self.o_norm = OutputNorm(self.value_head_dim, eps=norm_eps)

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project(x, cache, cu_seqlens, F.silu)
        o = recur(
            linattn.delta_rule, q, k, v, self.b_proj(x), cache=cache, cu_seqlens=cu_seqlens,
            use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=self.allow_neg_eigval,
        )  # fmt: skip
        gate = None if self.g_proj is None else split_heads(self.g_proj(x), self.value_head_dim)
        return self.o_proj(merge_heads(self.o_norm(o, gate)))


class GatedDeltaNet(ProjectedLayer):
    """The delta rule with a decay per head and token: the mixer of Qwen3-Next and Qwen3.5.

    Args:
      hidden_size: of the tokens.
      heads: of queries and keys.
      value_heads: of values, gates and states, a multiple of `heads`; as many unless given.
      head_dim: hidden_size / heads unless given.
      value_head_dim: head_dim unless given.
      conv_size: of the short convolutions behind the projections, None for silu alone.
      conv_bias: whether these have biases.
      use_gate: gate the outputs, by `g_proj`.
      allow_neg_eigval: β between 0 and 2 instead of 0 and 1.
      norm_eps: of the output norm `o_norm`.
      dropout: of the output.

    `from_transformers` makes one of a module of transformers. Yang et al., "Gated delta
    networks", 2025.
    """

    def __init__(
        self, hidden_size, heads, *, value_heads=None, head_dim=None, value_head_dim=None, conv_size=4,
        conv_bias=False, use_gate=True, allow_neg_eigval=False, norm_eps=1e-5, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, value_heads=value_heads, head_dim=head_dim, value_head_dim=value_head_dim,
            conv_size=conv_size, conv_bias=conv_bias, dropout=dropout,
        )  # fmt: skip
        self.allow_neg_eigval = allow_neg_eigval
        self.a_proj = nn.Linear(hidden_size, self.value_heads, bias=False)
        self.b_proj = nn.Linear(hidden_size, self.value_heads, bias=False)
        self.A_log = draw_rates(self.value_heads, 0.01)
        self.dt_bias = draw_steps(self.value_heads)
        self.g_proj = nn.Linear(hidden_size, self.output_size, bias=False) if use_gate else None
        self.o_norm = OutputNorm(self.value_head_dim, eps=norm_eps)

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project(x, cache, cu_seqlens, F.silu)
        o = recur(
            linattn.gated_delta_rule, q, k, v, self.a_proj(x), self.b_proj(x), cache=cache, cu_seqlens=cu_seqlens,
            use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=self.A_log, dt_bias=self.dt_bias,
            use_beta_sigmoid_in_kernel=True, allow_neg_eigval=self.allow_neg_eigval,
        )  # fmt: skip
        gate = None if self.g_proj is None else split_heads(self.g_proj(x), self.value_head_dim)
        return self.o_proj(merge_heads(self.o_norm(o, gate)))


class KimiDeltaAttention(ProjectedLayer):
    """The delta rule with a decay per channel and token: the mixer of Kimi-Linear.

    Args:
      hidden_size, heads, value_heads, head_dim, value_head_dim: as in `GatedDeltaNet`.
      conv_size, conv_bias, allow_neg_eigval, norm_eps, dropout: as in `GatedDeltaNet`.
      gate_rank: of the two projections `f_proj` to decays and `g_proj` to output gates;
        value_head_dim unless given.
      gate_bias: whether the second one of `g_proj` has a bias.
      lower_bound: the decay is this times a sigmoid, from −5 to below 0, instead of a softplus.

    `from_transformers` makes one of a module of transformers. Kimi Team, "Kimi Linear", 2025.
    """

    def __init__(
        self, hidden_size, heads, *, value_heads=None, head_dim=None, value_head_dim=None, conv_size=4,
        conv_bias=False, gate_rank=None, gate_bias=True, allow_neg_eigval=False, lower_bound=None, norm_eps=1e-5,
        dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, value_heads=value_heads, head_dim=head_dim, value_head_dim=value_head_dim,
            conv_size=conv_size, conv_bias=conv_bias, dropout=dropout,
        )  # fmt: skip
        self.allow_neg_eigval, self.lower_bound = allow_neg_eigval, lower_bound
        rank = self.value_head_dim if gate_rank is None else gate_rank
        gates = self.value_heads * self.head_dim
        self.f_proj = nn.Sequential(nn.Linear(hidden_size, rank, bias=False), nn.Linear(rank, gates, bias=False))
        self.b_proj = nn.Linear(hidden_size, self.value_heads, bias=False)
        self.A_log = draw_rates(self.value_heads)
        self.dt_bias = draw_steps(gates)
        self.g_proj = nn.Sequential(
            nn.Linear(hidden_size, rank, bias=False), nn.Linear(rank, self.output_size, bias=gate_bias)
        )
        self.o_norm = OutputNorm(self.value_head_dim, activation="sigmoid", eps=norm_eps)

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project(x, cache, cu_seqlens, F.silu)
        o = recur(
            linattn.kda, q, k, v, split_heads(self.f_proj(x), self.head_dim), self.b_proj(x), cache=cache,
            cu_seqlens=cu_seqlens, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=self.A_log,
            dt_bias=self.dt_bias, lower_bound=self.lower_bound, use_beta_sigmoid_in_kernel=True,
            allow_neg_eigval=self.allow_neg_eigval,
        )  # fmt: skip
        return self.o_proj(merge_heads(self.o_norm(o, split_heads(self.g_proj(x), self.value_head_dim))))
