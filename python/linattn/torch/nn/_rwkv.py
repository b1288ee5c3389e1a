"""The time mixing of RWKV-7."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import linattn

from ..._core._sizes import rwkv7_heads
from ._base import Layer, merge_heads, recur, split_heads

__all__ = ["RWKV7"]


class _LowRank(nn.Module):
    """Two projections with an activation between them."""

    def __init__(self, size, rank, activation, bias=True):
        super().__init__()
        self.lora = nn.Sequential(nn.Linear(size, rank, bias=False), activation, nn.Linear(rank, size, bias=bias))

    def forward(self, x):
        return self.lora(x)


class RWKV7(Layer):
    """The time mixing of RWKV-7 (Goose).

        >>> y, v_first = first(x)                     # layer_idx=0
        >>> y, _ = second(x, v_first=v_first)

    Args:
      hidden_size: of the tokens.
      heads: hidden_size / head_dim unless given.
      head_dim: of the heads.
      layer_idx: 0 for a model's first layer, whose values the others take a part of.
      decay_rank, gate_rank, a_rank, v_rank: of the low-rank projections.
      norm_eps: of the output norm `g_norm`, times head_dim.
      dropout: of the output.

    Peng et al., "RWKV-7 Goose", 2025.
    """

    def __init__(
        self, hidden_size, heads=None, *, head_dim=64, layer_idx=0, decay_rank=64, gate_rank=128, a_rank=64,
        v_rank=32, norm_eps=1e-5, dropout=0.0,
    ):  # fmt: skip
        super().__init__(hidden_size, dropout)
        self.heads, self.head_dim = rwkv7_heads(hidden_size, heads, head_dim)
        self.layer_idx = layer_idx
        for name in "rwkvag":
            self.register_parameter(f"x_{name}", nn.Parameter(torch.zeros(1, 1, hidden_size)))
        self.k_k = nn.Parameter(torch.ones(hidden_size))
        self.k_a = nn.Parameter(torch.ones(hidden_size))
        self.r_k = nn.Parameter(torch.zeros(self.heads, self.head_dim))
        for name in "rkvo":
            self.add_module(f"{name}_proj", nn.Linear(hidden_size, hidden_size, bias=False))
        self.w_lora = _LowRank(hidden_size, decay_rank, nn.Tanh())
        self.v_lora = _LowRank(hidden_size, v_rank, nn.Identity()) if layer_idx else None
        self.a_lora = _LowRank(hidden_size, a_rank, nn.Identity())
        self.g_lora = _LowRank(hidden_size, gate_rank, nn.Sigmoid(), bias=False)
        self.g_norm = nn.GroupNorm(self.heads, hidden_size, eps=self.head_dim * norm_eps)

    def forward(self, x, cache=None, cu_seqlens=None, mask=None, v_first=None):
        """(the output, v_first): what the other layers of a model take from its first one.

        Args:
          x, cache, cu_seqlens, mask: as in the other layers.
          v_first: what the layer with layer_idx=0 has returned; not for that one.
        """
        if (v_first is None) != (self.layer_idx == 0):
            expected, got = ("None", "a tensor") if self.layer_idx == 0 else ("a tensor", "None")
            raise ValueError(f"v_first: expected {expected} for layer_idx={self.layer_idx}, but got {got}")
        return self.run(x, cache, cu_seqlens, mask, v_first=v_first)

    def mix(self, x, cache, cu_seqlens, v_first):
        delta = self._shift(x, cache, cu_seqlens) - x
        r = self.r_proj(x + delta * self.x_r)
        w = -0.6065306597126334 * self.w_lora(x + delta * self.x_w).float().sigmoid()  # −e^−½
        k, v_input = self.k_proj(x + delta * self.x_k), x + delta * self.x_v
        v = self.v_proj(v_input)
        if self.v_lora is None:
            v_first = v
        else:
            v = torch.lerp(v, v_first, self.v_lora(v_input).sigmoid())
        a = self.a_lora(x + delta * self.x_a).sigmoid()
        gate = self.g_lora(x + delta * self.x_g)
        unit = F.normalize(split_heads(k * self.k_k, self.head_dim), dim=-1)
        k = k * (1 + (a - 1) * self.k_a)
        r, w, k, v, a = (split_heads(y, self.head_dim) for y in (r, w, k, v, a))
        o = recur(linattn.rwkv7, r, w, k, v, -unit, unit * a, cache=cache, cu_seqlens=cu_seqlens)
        # Statistics of every token and head.
        y = linattn.output_norm(
            o, weight=self.g_norm.weight.view(self.heads, -1), bias=self.g_norm.bias.view(self.heads, -1),
            kind="layer", eps=self.g_norm.eps,
        )  # fmt: skip
        y = y + (r * k * self.r_k).sum(-1, keepdim=True) * v
        return self.o_proj(merge_heads(y) * gate), v_first

    def _shift(self, x, cache, cu_seqlens):
        """The token before each, of the same sequence."""
        rows = x.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1
        last = None if cache is None else cache.get("last")
        if last is None:
            last = x.new_zeros(rows, self.hidden_size)
        if cu_seqlens is None:
            before = torch.cat([last.unsqueeze(1), x], 1)
            before, final = before[:, :-1], before[:, -1]
        else:
            starts, ends = cu_seqlens[:-1].to(x.device), cu_seqlens[1:].to(x.device)
            some = ends > starts  # sequences with a token
            before = F.pad(x[0, :-1], (0, 0, 1, 0)).index_copy(0, starts[some], last[some])[None]
            final = last.index_copy(0, some.nonzero()[:, 0], x[0, ends[some] - 1])
        if cache is not None:
            cache.parts["last"] = final
        return before
