"""Softmax attention, the baseline, and its sum with a linear one."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import linattn

from ..._core._checks import check_size
from ._base import Projected, dense, layer, merge
from ._linear import Linear

__all__ = ["BlockSparseAttention", "DiagAttention", "HybridAttention", "MultiHeadAttention", "SlidingWindowAttention"]


@layer
class _Softmax(Projected):
    """A layer with softmax weights."""

    kv_heads: int | None = None
    rotary_base: float | None = None
    bias: bool = False

    window = None
    causal = True

    def __post_init__(self):
        super().__post_init__()
        if self.window is not None:
            check_size("window", self.window)

    def _keys(self, room):
        """The parts of a cache with room for so many tokens."""
        tokens = ((room, self._sizes.key_heads, self._sizes.head_dim), None)
        return {"keys": tokens, "values": tokens, "length": ((), jnp.int32)}

    def _mix(self, params, x, calls):
        o = calls.attend(*self._project(params, x, calls), self.window, self.causal)
        return dense(params["o_proj"], merge(o))


@layer
class MultiHeadAttention(_Softmax):
    """Softmax attention, the baseline: `linattn.torch.nn.MultiHeadAttention`. It is `linattn.attention`'s.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys and values; as many unless given, else a divisor.
      head_dim: hidden_size / heads unless given.
      causal: every token attends to those before it and itself; without, there are no caches.
      window: how many tokens, itself among them, a token attends to; all unless given.
      rotary_base: of rotary embeddings; none unless given.
      bias: of the four projections.
      attention_dropout: of the weights, where `apply` gets a key. It goes without a window, a cache and packed sequences.
      dropout: of the output, where `apply` gets a key.

    A cache has the keys and values of as many tokens as it is made for, or those of window − 1, and how many of
    them there are. It goes without packed sequences.
    """

    causal: bool = True
    window: int | None = None
    attention_dropout: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.attention_dropout < 1:
            raise ValueError(f"attention_dropout: expected a number in [0, 1), but got {self.attention_dropout}")

    @property
    def _refused(self):
        return {} if self.causal else {"cache": "of causal=False"}

    def make_cache(self, batch, dtype=jnp.float32, length=None):
        """The cache before the first token.

        Args:
          batch: rows of sequences.
          dtype: of the tokens.
          length: for how many tokens there is room, without a `window`. Outputs of more tokens are NaN.
        """
        cache = super().make_cache(batch, dtype)
        if (length is None) != (self.window is not None):
            expected, got = ("a number of tokens", "None") if length is None else ("None with a window", length)
            raise ValueError(f"length: expected {expected}, but got {got}")
        room = check_size("length", length) if self.window is None else self.window - 1
        kept = self._keys(room).items()
        return cache | {name: jnp.zeros((batch, *shape), kind or dtype) for name, (shape, kind) in kept}

    def _mix(self, params, x, calls):
        if calls.key is None or not self.attention_dropout:
            return super()._mix(params, x, calls)
        for name, given in (("cache", calls.before), ("cu_seqlens", calls.cu_seqlens), ("window", self.window)):
            if given is not None:
                raise ValueError(f"{name}: expected None with attention_dropout in training, but got one")
        seed = jax.random.randint(jax.random.fold_in(calls.key, 1), (1,), 0, 2**31 - 1, jnp.int32)
        o = linattn.attention(
            *self._project(params, x, calls), causal=self.causal, weights="softmax", dropout=self.attention_dropout, seed=seed
        )  # fmt: skip
        return dense(params["o_proj"], merge(o))


@layer
class SlidingWindowAttention(_Softmax):
    """Softmax attention of the last tokens, in O(T · window) time: `linattn.torch.nn.SlidingWindowAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `MultiHeadAttention`.
      window: how many tokens, itself among them, a token attends to.

    A cache has the keys and values of window − 1 tokens, and how many of them there are. It goes without
    packed sequences.
    """

    window: int = 512

    def _cached(self):
        return self._keys(self.window - 1)


@layer
class _Blocks(_Softmax):
    """Softmax attention to blocks of tokens that a mask says."""

    block_size: int = 64

    _refused = dict.fromkeys(("cache", "cu_seqlens"), "whose blocks are those of whole sequences")

    def __post_init__(self):
        super().__post_init__()
        check_size("block_size", self.block_size)
        self._mask(0)  # checks its options

    def _mix(self, params, x, calls):
        o = linattn.attention(
            *self._project(params, x, calls), causal=self.causal, weights="softmax",
            block_mask=self._mask(-(-x.shape[1] // self.block_size)), block_size=self.block_size,
        )  # fmt: skip
        return dense(params["o_proj"], merge(o))


@layer
class BlockSparseAttention(_Blocks):
    """Softmax attention to blocks of tokens: near ones, the first ones and some that are drawn, in O(T) time:
    `linattn.torch.nn.BlockSparseAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `MultiHeadAttention`.
      block_size: tokens of a block.
      causal: every token attends to those before it and itself.
      window, global_blocks, random_blocks, seed: of `linattn.block_mask`, numbers of blocks.
    """

    window: int = 2
    global_blocks: int = 1
    random_blocks: int = 2
    seed: int = 0
    causal: bool = False

    def _mask(self, blocks):
        return linattn.block_mask(
            blocks, window=self.window, global_blocks=self.global_blocks, random_blocks=self.random_blocks, seed=self.seed,
            causal=self.causal,
        )  # fmt: skip


@layer
class DiagAttention(_Blocks):
    """Softmax attention inside of blocks of tokens that lie side by side: `linattn.torch.nn.DiagAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `MultiHeadAttention`.
      block_size: tokens of a block.
      causal: every token attends to those before it and itself.
    """

    causal: bool = True

    def _mask(self, blocks):
        return linattn.block_mask(blocks, window=1, causal=self.causal)


@layer
class HybridAttention(Linear):
    """Softmax attention in a window beside linear attention over everything: `linattn.torch.nn.HybridAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, feature_map, rotary_base, bias, dropout: as in `LinearAttention`.
      window: of the softmax.

    `mix_logit` ``[heads]`` is trained: the output of a head is σ(mix_logit) times that of the window, and
    1 − σ(mix_logit) times that of the linear attention. Arora et al., "Simple linear attention language models
    balance the recall-throughput tradeoff", 2024.
    """

    window: int = 64
    feature_map: str = "hedgehog"
    rotary_base: float | None = None

    _keys = _Softmax._keys

    def __post_init__(self):
        super().__post_init__()
        check_size("window", self.window)

    def _init(self, draws):
        return super()._init(draws) | {"mix_logit": jnp.zeros(self.heads, draws.dtype)}

    def _cached(self):
        return self._keys(self.window - 1)

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        options, share = self._options(params), jax.nn.sigmoid(params["mix_logit"])
        if calls.before is None and calls.cu_seqlens is None:
            o = linattn.hybrid(q, k, v, share, window=self.window, feature_map=options["feature_map"])
        else:
            near = calls.attend(q, k, v, self.window)
            far = calls.recur(linattn.scan, q, k, v, returns="return_state", **options)
            share = share[:, None].astype(near.dtype)
            o = share * near + (1 - share) * far
        return dense(params["o_proj"], merge(o))
