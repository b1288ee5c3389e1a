"""The common parts of `linattn.jax.nn`: initial parameters, projections, cached calls, base
classes.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

import linattn

__all__ = [
    "Attention", "Layer", "Projected", "RotaryAttention", "check_sizes", "dense", "draw_conv", "draw_dense", "draw_rates", "draw_steps",
    "merge", "split",
]  # fmt: skip


def draw_dense(key, size, out, dtype, bias=False):
    bound = size**-0.5
    kernel, offset = jax.random.split(key)
    params = {"kernel": jax.random.uniform(kernel, (size, out), dtype, -bound, bound)}
    if bias:
        params["bias"] = jax.random.uniform(offset, (out,), dtype, -bound, bound)
    return params


def dense(params, x):
    y = x @ params["kernel"]
    return y + params["bias"] if "bias" in params else y


def draw_conv(key, channels, width, dtype, bias=False):
    bound = width**-0.5
    params = {"kernel": jax.random.uniform(key, (width, 1, channels), dtype, -bound, bound)}
    if bias:
        params["bias"] = jnp.zeros(channels, dtype)
    return params


def draw_rates(key, heads, low=1.0):
    return jnp.log(jax.random.uniform(key, (heads,), minval=low, maxval=16.0))


def draw_steps(key, heads):
    logarithms = jax.random.uniform(key, (heads,), minval=math.log(1e-3), maxval=math.log(0.1))
    steps = jnp.exp(logarithms)
    return steps + jnp.log(-jnp.expm1(-steps))


def check_sizes(**sizes):
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"{name}: expected an integer, but got {type(size).__name__}")
        if size < 1:
            raise ValueError(f"{name}: expected a positive integer, but got {size}")


def split(x, size):
    return x.reshape(*x.shape[:-1], -1, size)


def merge(x):
    return x.reshape(*x.shape[:-2], -1)


def rotate(x, positions, base):
    """Rotary embedding of ``[B, T, H, D]``, whose pairs are the halves of a head."""
    half = x.shape[-1] // 2
    angles = positions[..., None].astype(jnp.float32) * base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    cos, sin = (function(angles)[..., None, :] for function in (jnp.cos, jnp.sin))
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


class Calls:
    """The calls of one `apply`, and the cache that they return."""

    def __init__(self, cache, cu_seqlens):
        self.before, self.after, self.cu_seqlens = cache, {}, cu_seqlens

    def recur(self, function, *operands, state="initial_state", returns="output_final_state", **options):
        options["cu_seqlens"] = self.cu_seqlens
        if self.before is None:
            return function(*operands, **options)
        y, self.after["state"] = function(*operands, **{state: self.before["state"], returns: True}, **options)
        return y

    def convolve(self, params, x, name):
        weight = params["kernel"][:, 0].T
        options = {"activation": "silu", "cu_seqlens": self.cu_seqlens}
        if self.before is None:
            return linattn.causal_conv1d(x, weight, params.get("bias"), **options)
        y, self.after[name] = linattn.causal_conv1d(
            x, weight, params.get("bias"), initial_state=self.before[name], return_state=True, **options
        )
        return y

    def attend(self, q, k, v, window):
        """Causal softmax attention in a window over the keys and values of the cache and the new
        ones.
        """
        options = {"causal": True, "weights": "softmax", "window": window}
        if self.before is None:
            return linattn.attention(q, k, v, cu_seqlens=self.cu_seqlens, **options)
        if self.cu_seqlens is not None:
            raise ValueError("cu_seqlens: expected None beside a cache of keys, but got both")
        length, room = self.before["length"], window - 1
        k, v = (jnp.concatenate([self.before[name], x], 1) for name, x in (("keys", k), ("values", v)))
        mask = jnp.arange(k.shape[1]) >= room - length[:, None]
        T = q.shape[1]
        self.after |= {"keys": k[:, T:], "values": v[:, T:], "length": jnp.minimum(length + T, room)}
        return linattn.attention(q, k, v, mask=mask, **options)

    def positions(self, count):
        """The number of earlier tokens of the sequence, for each of these, ``[T]`` or ``[B, T]``.
        """
        places, before = jnp.arange(count), None if self.before is None else self.before["position"]
        if self.cu_seqlens is None:
            if before is None:
                return places
            self.after["position"] = before + count
            return places + before[:, None]
        offsets = jnp.asarray(self.cu_seqlens)
        row = jnp.searchsorted(offsets[1:], places, side="right")
        places -= offsets[row]
        if before is None:
            return places
        self.after["position"] = before + jnp.diff(offsets).astype(before.dtype)
        return places + before[row]

    def finish(self, y):
        return y if self.before is None else (y, self.after)


_WHY = "whose tokens depend on all others"


@dataclasses.dataclass(frozen=True)
class Layer:
    hidden_size: int
    _: dataclasses.KW_ONLY
    dropout: float = 0.0

    _sees_all = False  # every token depends on all others of its row

    def __post_init__(self):
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout: expected a number in [0, 1), but got {self.dropout}")

    def apply(self, params, x, cache=None, cu_seqlens=None, key=None):
        """The layer's output for every token.

        Args:
          params: what `init` has made.
          x: ``[B, T, hidden_size]``.
          cache: what `make_cache` or a former call has made.
          cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1; a cache then has N rows.
          key: of the `dropout` of the output, in training; without one nothing is dropped.

        Returns:
          ``[B, T, hidden_size]``, or given a cache ``(y, the cache after these tokens)``.
        """
        if len(x.shape) != 3 or x.shape[-1] != self.hidden_size:
            raise ValueError(f"x: expected shape (B, T, {self.hidden_size}), but got {tuple(x.shape)}")
        for name, given in (("cache", cache), ("cu_seqlens", cu_seqlens)):
            if self._sees_all and given is not None:
                raise ValueError(f"{name}: expected None for {type(self).__name__}, {_WHY}, but got one")
        calls = Calls(cache, cu_seqlens)
        y = self._mix(params, x, calls)
        if key is not None and self.dropout:
            kept = jax.random.bernoulli(key, 1 - self.dropout, y.shape)
            y = jnp.where(kept, y / (1 - self.dropout), 0).astype(y.dtype)
        return calls.finish(y)

    def make_cache(self, batch, dtype=jnp.float32):
        """The cache before the first token. `dtype` is that of the tokens."""
        if self._sees_all:
            raise ValueError(f"make_cache: expected a causal layer, but got {type(self).__name__}, {_WHY}")
        return {name: jnp.zeros((batch, *shape), kind or dtype) for name, (shape, kind) in self._cached().items()}


@dataclasses.dataclass(frozen=True)
class Projected(Layer):
    heads: int
    _: dataclasses.KW_ONLY
    head_dim: int | None = None

    def __post_init__(self):
        super().__post_init__()
        check_sizes(**({} if self.head_dim is None else {"head_dim": self.head_dim}))
        if self.head_dim is None and self.hidden_size % self.heads:
            raise ValueError(f"heads: expected a number that divides hidden_size, {self.hidden_size}, but got {self.heads}")

    def _draw_projections(self, key, sizes, dtype, conv_size=None, bias=False):
        params = {}
        for (name, (size, out)), part in zip(sizes.items(), jax.random.split(key, len(sizes))):
            params[f"{name}_proj"] = draw_dense(part, size, out, dtype, bias)
            if conv_size is not None and name in "qkv":
                params[f"{name}_conv1d"] = draw_conv(part, out, conv_size, dtype)
        return params


@dataclasses.dataclass(frozen=True)
class Attention(Projected):
    kv_heads: int | None = None
    _: dataclasses.KW_ONLY
    bias: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"kv_heads: expected a number that divides heads, {self.heads}, but got {self.kv_heads}")

    @property
    def _sizes(self):
        return self.head_dim or self.hidden_size // self.heads, self.kv_heads or self.heads

    def init(self, key, dtype=jnp.float32):
        head, kv_heads = self._sizes
        size, outer, inner = self.hidden_size, self.heads * head, kv_heads * head
        sizes = {"q": (size, outer), "k": (size, inner), "v": (size, inner), "o": (outer, size)}
        return self._draw_projections(key, sizes, dtype, bias=self.bias)

    def _project(self, params, x, calls):
        return tuple(split(dense(params[f"{name}_proj"], x), self._sizes[0]) for name in "qkv")


@dataclasses.dataclass(frozen=True)
class RotaryAttention(Attention):
    _: dataclasses.KW_ONLY
    rotary_base: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.rotary_base is not None and self._sizes[0] % 2:
            raise ValueError(f"head_dim: expected an even number with rotary_base, but got {self._sizes[0]}")

    def make_cache(self, batch, dtype=jnp.float32):
        cache = super().make_cache(batch, dtype)
        return cache if self.rotary_base is None else cache | {"position": jnp.zeros(batch, jnp.int32)}

    def _cached(self):
        return {}

    def _project(self, params, x, calls):
        q, k, v = super()._project(params, x, calls)
        if self.rotary_base is None:
            return q, k, v
        positions = calls.positions(x.shape[1])
        return *(rotate(token, positions, self.rotary_base) for token in (q, k)), v
