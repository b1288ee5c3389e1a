"""Softmax attention, the baseline, and its sum with a linear one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import linattn

from ..._core._checks import check_size
from ._base import ProjectedLayer, each_sequence, merge_heads, recur, refuse_cache, repeat_heads, token_positions
from ._linear import LinearAttention

__all__ = ["BlockSparseAttention", "DiagAttention", "HybridAttention", "MultiHeadAttention", "SlidingWindowAttention"]


def attend(q, k, v, positions, cache=None, cu_seqlens=None, causal=True, window=None):
    """softmax(QKᵀ/√K)V of tokens at `positions`, ``[T]`` or ``[B, T]``, and of those in the cache.

    With a window w a token attends to the last w tokens, itself among them.
    """
    if cache is None and cu_seqlens is not None and not _records(q, k, v):
        return linattn.attention(q, k, v, causal=causal, weights="softmax", window=window, cu_seqlens=cu_seqlens)
    lengths = None
    if cu_seqlens is not None:
        lengths = cu_seqlens.diff().tolist()
        q, k, v = (pad_sequence(x[0].split(lengths), batch_first=True) for x in (q, k, v))
        positions = pad_sequence(positions.split(lengths), batch_first=True, padding_value=-1)
    if cache is None and lengths is None:
        if window is None:
            return _softmax(q, k, v, is_causal=causal)
        if not _records(q, k, v):  # The work of a window, and no mask of T×T.
            return linattn.attention(q, k, v, causal=causal, weights="softmax", window=window)
    positions = positions.expand(q.shape[:2])
    key_positions = positions
    if cache is not None:
        k, v, key_positions = _append(cache, k, v, positions, None if lengths else window)
    mask = key_positions[:, None] >= 0
    if causal:
        mask = mask & (key_positions[:, None] <= positions[..., None])
    if window is not None:
        distance = (positions[..., None] - key_positions[:, None]).abs()
        mask = mask & (distance < window)
    # A token of padding attends to all, so that no row is empty.
    mask = mask | (positions < 0)[..., None]
    o = _softmax(q, k, v, attn_mask=mask[:, None])
    if lengths is None:
        return o
    return torch.cat([row[:length] for row, length in zip(o, lengths)]).unsqueeze(0)


def _records(*tensors):
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _softmax(q, k, v, **options):
    k, v = repeat_heads(k, q.shape[2]), repeat_heads(v, q.shape[2])
    return F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), **options).transpose(1, 2)


def _append(cache, k, v, positions, window):
    """All keys and values with their positions; padding has −1."""
    former = cache.get("keys")
    if former is not None:
        k, v = torch.cat([former, k], 1), torch.cat([cache.get("values"), v], 1)
        positions = torch.cat([cache.get("positions"), positions], 1)
    first = 0 if window is None or (positions < 0).any() else max(k.shape[1] - window, 0)
    for name, part in (("keys", k), ("values", v), ("positions", positions)):
        cache.parts[name] = part[:, first:].contiguous() if first else part
    return k, v, positions


class MultiHeadAttention(ProjectedLayer):
    """Softmax attention, by PyTorch's `scaled_dot_product_attention`: the baseline. A window without
    a cache or gradients is `linattn.attention`'s.

    Args:
      hidden_size: of the tokens.
      heads: of the queries.
      kv_heads: of keys and values; as many unless given, else a divisor.
      head_dim: hidden_size / heads unless given.
      causal: every token attends to those before it and itself.
      window: how many tokens, itself among them, a token attends to; all unless given.
      rotary_base: of rotary embeddings; none unless given.
      bias: of the four projections.
      dropout: of the output.
      attention_dropout: of the weights, in training; the seed is drawn by PyTorch. It goes without a window
        and packed sequences.

    A cache keeps all keys and values, or the last ones of the window.
    """

    def __init__(
        self, hidden_size, heads, *, kv_heads=None, head_dim=None, causal=True, window=None, rotary_base=None,
        bias=False, dropout=0.0, attention_dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, rotary_base=rotary_base, bias=bias, dropout=dropout
        )
        self.causal, self.attention_dropout = causal, attention_dropout
        self.window = None if window is None else check_size("window", window)

    def mix(self, x, cache, cu_seqlens):
        if cache is not None and not self.causal:
            raise ValueError("cache: expected it only for a causal layer, but got it for causal=False")
        q, k, v = self.project_rotated(x, cache, cu_seqlens)
        if self.training and self.attention_dropout:
            return self.o_proj(merge_heads(self._attend_with_dropout(q, k, v, cache, cu_seqlens)))
        positions = token_positions(x, cache, cu_seqlens)
        return self.o_proj(merge_heads(attend(q, k, v, positions, cache, cu_seqlens, self.causal, self.window)))

    def _attend_with_dropout(self, q, k, v, cache, cu_seqlens):
        for name, given in (("cache", cache), ("cu_seqlens", cu_seqlens), ("window", self.window)):
            if given is not None:
                raise ValueError(f"{name}: expected None with attention_dropout in training, but got one")
        seed = torch.randint(2**63 - 1, (1,), device=q.device)
        return linattn.attention(
            q, k, v, causal=self.causal, weights="softmax", dropout=self.attention_dropout, seed=seed
        )  # fmt: skip


class SlidingWindowAttention(MultiHeadAttention):
    """`MultiHeadAttention` of the last `window` tokens, in O(T · window) time (Longformer, Mistral).

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `MultiHeadAttention`.
      window: how many tokens, itself among them, a token attends to.
    """

    def __init__(
        self, hidden_size, heads, *, window=512, kv_heads=None, head_dim=None, rotary_base=None, bias=False, dropout=0.0
    ):
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, window=check_size("window", window),
            rotary_base=rotary_base, bias=bias, dropout=dropout,
        )  # fmt: skip


class BlockSparseAttention(ProjectedLayer):
    """Softmax attention to blocks of tokens: near ones, the first ones and some that are drawn, in O(T)
    time (BigBird).

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `MultiHeadAttention`.
      block_size: tokens of a block.
      causal: every token attends to those before it and itself.
      window, global_blocks, random_blocks, seed: of `linattn.block_mask`, numbers of blocks.

    Zaheer et al., "Big Bird: Transformers for Longer Sequences", 2020.
    """

    def __init__(
        self, hidden_size, heads, *, block_size=64, window=2, global_blocks=1, random_blocks=2, seed=0, causal=False,
        kv_heads=None, head_dim=None, rotary_base=None, bias=False, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, rotary_base=rotary_base, bias=bias, dropout=dropout
        )
        self.block_size, self.causal = check_size("block_size", block_size), causal
        self.pattern = {
            "window": window, "global_blocks": global_blocks, "random_blocks": random_blocks, "seed": seed, "causal": causal,
        }  # fmt: skip
        linattn.block_mask(0, **self.pattern)

    def mix(self, x, cache, cu_seqlens):
        refuse_cache(self, cache, "whose blocks are those of whole sequences")
        o = each_sequence(self._attend, self.project_rotated(x, None, cu_seqlens), cu_seqlens)
        return self.o_proj(merge_heads(o))

    def _attend(self, q, k, v):
        mask = linattn.block_mask(-(-q.shape[1] // self.block_size), **self.pattern)
        return linattn.attention(
            q, k, v, causal=self.causal, weights="softmax", block_mask=mask, block_size=self.block_size
        )  # fmt: skip


class DiagAttention(BlockSparseAttention):
    """Softmax attention inside of blocks of tokens that lie side by side: the local attention of
    TransNormer.

    Args:
      hidden_size, heads, block_size, causal, kv_heads, head_dim, rotary_base, bias, dropout: as in
        `BlockSparseAttention`.

    Qin et al., "The Devil in Linear Transformer", 2022.
    """

    def __init__(
        self, hidden_size, heads, *, block_size=64, causal=True, kv_heads=None, head_dim=None, rotary_base=None,
        bias=False, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, block_size=block_size, window=1, global_blocks=0, random_blocks=0, causal=causal,
            kv_heads=kv_heads, head_dim=head_dim, rotary_base=rotary_base, bias=bias, dropout=dropout,
        )  # fmt: skip


class HybridAttention(LinearAttention):
    """Softmax attention in a window beside linear attention over everything, with the same
    queries, keys and values.

    Args:
      hidden_size, heads, kv_heads, head_dim, feature_map, rotary_base, bias, dropout: as in
        `LinearAttention`.
      window: of the softmax.

    ``mix_logit`` ``[heads]`` is trained: the output of a head is σ(mix_logit) times that of the
    window, and 1 − σ(mix_logit) times that of the linear attention.
    """

    def __init__(
        self, hidden_size, heads, *, window=64, kv_heads=None, head_dim=None, feature_map="hedgehog", rotary_base=None,
        bias=False, dropout=0.0,
    ):  # fmt: skip
        super().__init__(
            hidden_size, heads, kv_heads=kv_heads, head_dim=head_dim, feature_map=feature_map,
            rotary_base=rotary_base, bias=bias, dropout=dropout,
        )  # fmt: skip
        self.window = check_size("window", window)
        self.mix_logit = nn.Parameter(torch.zeros(self.heads))

    def mix(self, x, cache, cu_seqlens):
        q, k, v = self.project_rotated(x, cache, cu_seqlens)
        if cache is None and cu_seqlens is None and not _records(q, k, v, self.mix_logit):
            return self.o_proj(merge_heads(self._mix_at_once(q, k, v)))
        positions = token_positions(x, cache, cu_seqlens)
        near = attend(q, k, v, positions, cache, cu_seqlens, window=self.window)
        q, k, options = self.map_tokens(q, k)
        far = recur(linattn.scan, q, k, v, cache=cache, returns="return_state", cu_seqlens=cu_seqlens, **options)
        share = self.mix_logit.sigmoid()[:, None].to(near.dtype)
        return self.o_proj(merge_heads(share * near + (1 - share) * far))

    def _mix_at_once(self, q, k, v):
        feature_map = self.map_tokens(q, k)[2]["feature_map"]
        share = self.mix_logit.sigmoid()
        return linattn.hybrid(q, k, v, share, window=self.window, feature_map=feature_map, normalize=self.normalize)
