"""Layers that mix the tokens of all positions: Linformer, Nyströmformer, FNet."""

from __future__ import annotations

import torch
from torch import nn

import linattn

from ..._core._checks import check_choice, check_parity, check_size
from ._base import Layer, ProjectedLayer, each_sequence, merge_heads, refuse_cache

__all__ = ["FNet", "LinformerAttention", "NystromAttention"]


_WHY = "whose tokens depend on all others"


class LinformerAttention(ProjectedLayer):
    """Softmax attention to `rank` sums of keys and values over all tokens: `linattn.linformer`.

    Args:
      hidden_size: of the tokens.
      heads: of the queries.
      length: the largest number of tokens; shorter sequences take the first rows of the projections.
      rank: how many sums.
      kv_heads: of keys and values; as many unless given, else a divisor.
      head_dim: hidden_size / heads unless given.
      sharing: "none" for `proj_k` and `proj_v`, "kv" for `proj_k` of both.
      bias: of the four projections of features.
      dropout: of the output.

    `proj_k` and `proj_v` are ``[length, rank]``.

    Wang et al., "Linformer: Self-Attention with Linear Complexity", 2020.
    """

    def __init__(
        self, hidden_size, heads, *, length, rank=256, kv_heads=None, head_dim=None, sharing="none", bias=False,
        dropout=0.0,
    ):  # fmt: skip
        super().__init__(hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, bias=bias, dropout=dropout)
        self.length, self.rank = check_size("length", length), check_size("rank", rank)
        check_choice("sharing", sharing, ("none", "kv"))
        self.proj_k = nn.Parameter(self._draw())
        self.proj_v = nn.Parameter(self._draw()) if sharing == "none" else None

    def _draw(self):
        return torch.empty(self.length, self.rank).uniform_(-1, 1) * self.rank**-0.5

    def mix(self, x, cache, cu_seqlens):
        refuse_cache(self, cache, _WHY)
        o = each_sequence(self._attend, self.project(x, None, cu_seqlens), cu_seqlens)
        return self.o_proj(merge_heads(o))

    def _attend(self, q, k, v):
        tokens = q.shape[1]
        if tokens > self.length:
            raise ValueError(f"x: expected at most {self.length} tokens, but got {tokens}")
        projections = [proj[:tokens] for proj in (self.proj_k, self.proj_v) if proj is not None]
        return linattn.linformer(q, k, v, *projections)


class NystromAttention(ProjectedLayer):
    """Softmax attention from the scores of landmarks: `linattn.nystrom`.

    Args:
      hidden_size, heads, kv_heads, head_dim, bias, dropout: as in `LinformerAttention`.
      landmarks: how many, or as many as tokens where there are fewer.
      iterations: of the pseudo-inverse.
      conv_size: of a convolution of the values over tokens that is added to the output, an odd
        number; None for none. Its weights are `conv.weight` ``[heads, 1, conv_size, 1]``.
      rotary_base: of rotary embeddings; none unless given.

    Xiong et al., "Nyströmformer", 2021.
    """

    def __init__(
        self, hidden_size, heads, *, landmarks=64, iterations=6, conv_size=None, kv_heads=None, head_dim=None,
        rotary_base=None, bias=False, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, rotary_base=rotary_base, bias=bias, dropout=dropout
        )
        self.landmarks, self.iterations = check_size("landmarks", landmarks), check_size("iterations", iterations)
        self.conv = None
        if conv_size is not None:
            check_parity("conv_size", conv_size, odd=True)
            self.conv = nn.Conv2d(
                self.value_heads, self.value_heads, (conv_size, 1), padding=(conv_size // 2, 0), bias=False,
                groups=self.value_heads,
            )  # fmt: skip

    def mix(self, x, cache, cu_seqlens):
        refuse_cache(self, cache, _WHY)
        o = each_sequence(self._attend, self.project_rotated(x, None, cu_seqlens), cu_seqlens)
        return self.o_proj(merge_heads(o))

    def _attend(self, q, k, v):
        o = linattn.nystrom(q, k, v, landmarks=min(self.landmarks, q.shape[1]), iterations=self.iterations)
        if self.conv is None:
            return o
        added = self.conv(v.transpose(1, 2)).transpose(1, 2)
        return o + added.repeat_interleave(o.shape[2] // added.shape[2], 2)


class FNet(Layer):
    """Tokens mixed by a Fourier transform, without parameters: `linattn.fnet`.

    Args:
      hidden_size: of the tokens.
      dropout: of the output.

    Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms", 2022.
    """

    def mix(self, x, cache, cu_seqlens):
        refuse_cache(self, cache, _WHY)
        return each_sequence(linattn.fnet, (x,), cu_seqlens)
