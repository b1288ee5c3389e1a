"""The base of the layers: initial parameters, projections, calls with a cache."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

import linattn

from ..._core._checks import check_size
from ..._core._sizes import HeadSizes

__all__ = ["Draws", "Layer", "Projected", "dense", "layer", "merge", "norm", "split"]

# A layer whose options, but the sizes that its base has, go by their names.
layer = dataclasses.dataclass(frozen=True, kw_only=True)


class Draws:
    """Draws the parameters that training starts from, as PyTorch's layers do.

    Args:
      key: of `jax.random`.
      dtype: of the parameters but those of state spaces, which are float32.
    """

    def __init__(self, key, dtype):
        self.dtype, self._key = dtype, key

    def next_key(self):
        self._key, key = jax.random.split(self._key)
        return key

    def uniform(self, shape, bound):
        return jax.random.uniform(self.next_key(), shape, self.dtype, -bound, bound)

    def dense(self, size, out, bias=False):
        params = {"kernel": self.uniform((size, out), size**-0.5)}
        return params | {"bias": self.uniform((out,), size**-0.5)} if bias else params

    def low_rank(self, size, rank, out, bias=False):
        """Two projections, one after the other."""
        return {"0": self.dense(size, rank), "1": self.dense(rank, out, bias)}

    def conv(self, channels, width, bias=False):
        params = {"kernel": self.uniform((width, 1, channels), width**-0.5)}
        return params | {"bias": jnp.zeros(channels, self.dtype)} if bias else params

    def norm(self, size):
        return {"scale": jnp.ones(size, self.dtype)}

    def rates(self, heads, low=1.0):
        """A_log: logarithms of decay rates that are uniform between two bounds."""
        return jnp.log(jax.random.uniform(self.next_key(), (heads,), minval=low, maxval=16.0))

    def log_steps(self, count, low=1e-3, high=0.1):
        return jax.random.uniform(self.next_key(), (count,), minval=math.log(low), maxval=math.log(high))

    def steps(self, count):
        """dt_bias: what softplus maps to steps whose logarithms are uniform."""
        steps = jnp.exp(self.log_steps(count))
        return steps + jnp.log(-jnp.expm1(-steps))


def dense(params, x):
    y = x @ params["kernel"]
    return y + params["bias"] if "bias" in params else y


def low_rank(params, x):
    return dense(params["1"], dense(params["0"], x))


def norm(params, x, gate=None, **options):
    """The norm of the outputs of a recurrence, and its gate."""
    return linattn.output_norm(x, weight=params["scale"], gate=gate, **options)


def split(x, size):
    """``[B, T, H·size]`` as ``[B, T, H, size]``."""
    return x.reshape(*x.shape[:-1], -1, size)


def merge(x):
    return x.reshape(*x.shape[:-2], -1)


def repeat_heads(x, heads):
    """Every head as often as query heads share it."""
    times = heads // x.shape[2]
    return x if times == 1 else jnp.repeat(x, times, axis=2)


def rotate(x, positions, base):
    """Rotary embedding of ``[B, T, H, D]``, whose pairs are the halves of a head."""
    half = x.shape[-1] // 2
    angles = positions[..., None].astype(jnp.float32) * base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    cos, sin = (function(angles)[..., None, :] for function in (jnp.cos, jnp.sin))
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


# ----------------------------------------------------------------------------
# Calls with a cache
# ----------------------------------------------------------------------------


class Calls:
    """The calls of one `apply`, and the cache that they return.

    `key` is that of `apply`, in training, or None.
    """

    def __init__(self, cache, cu_seqlens, key):
        self.before, self.after, self.cu_seqlens, self.key = cache, {}, cu_seqlens, key

    def recur(self, function, *operands, state="initial_state", returns="output_final_state", **options):
        if self.cu_seqlens is not None:
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

    def attend(self, q, k, v, window=None, causal=True):
        """Softmax attention to the keys and values of the cache and the new ones."""
        options = {"causal": causal, "weights": "softmax", "window": window}
        if self.before is None:
            return linattn.attention(q, k, v, cu_seqlens=self.cu_seqlens, **options)
        if self.cu_seqlens is not None:
            raise ValueError("cu_seqlens: expected None beside a cache of keys, but got both")
        if window is None:
            return self._attend_all(q, k, v, options)
        length, room = self.before["length"], window - 1
        k, v = (jnp.concatenate([self.before[name], x], 1) for name, x in (("keys", k), ("values", v)))
        mask = jnp.arange(k.shape[1]) >= room - length[:, None]
        T = q.shape[1]
        self.after |= {"keys": k[:, T:], "values": v[:, T:], "length": jnp.minimum(length + T, room)}
        return linattn.attention(q, k, v, mask=mask, **options)

    def _attend_all(self, q, k, v, options):
        before = self.before["length"]
        write = jax.vmap(lambda kept, new, first: jax.lax.dynamic_update_slice_in_dim(kept, new.astype(kept.dtype), first, 0))
        k, v = (write(self.before[name], x, before) for name, x in (("keys", k), ("values", v)))
        length = before + q.shape[1]
        self.after |= {"keys": k, "values": v, "length": length}
        return linattn.attention(q, k, v, cache_seqlens=length, **options)

    def shift(self, x):
        """The token before each, of the same sequence."""
        offsets = None if self.cu_seqlens is None else jnp.asarray(self.cu_seqlens)
        rows = x.shape[0] if offsets is None else offsets.shape[0] - 1
        last = jnp.zeros((rows, x.shape[2]), x.dtype) if self.before is None else self.before["last"].astype(x.dtype)
        if offsets is None:
            x = jnp.concatenate([last[:, None], x], 1)
            before, final = x[:, :-1], x[:, -1]
        else:
            places, row = self._place(offsets, x.shape[1])
            before = jnp.where((places == 0)[:, None], last[row], jnp.roll(x[0], 1, 0))[None]
            is_empty = offsets[1:] == offsets[:-1]
            final = jnp.where(is_empty[:, None], last, x[0, offsets[1:] - 1])
        if self.before is not None:
            self.after["last"] = final
        return before

    def positions(self, count):
        """The number of earlier tokens of the sequence, for each of these, ``[T]`` or ``[B, T]``."""
        before = None if self.before is None else self.before["position"]
        if self.cu_seqlens is None:
            places = jnp.arange(count)
            if before is None:
                return places
            self.after["position"] = before + count
            return places + before[:, None]
        offsets = jnp.asarray(self.cu_seqlens)
        places, row = self._place(offsets, count)
        if before is None:
            return places
        self.after["position"] = before + jnp.diff(offsets).astype(before.dtype)
        return places + before[row]

    @staticmethod
    def _place(offsets, count):
        """(the place in its sequence, the sequence) of each packed token."""
        places = jnp.arange(count)
        row = jnp.searchsorted(offsets[1:], places, side="right")
        return places - offsets[row], row

    def finish(self, *results):
        results = results if self.before is None else (*results, self.after)
        return results if len(results) > 1 else results[0]


# ----------------------------------------------------------------------------
# Layers
# ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Layer:
    """The base of all layers. A subclass defines `_init`, `_mix` and, with a state, `_cached`."""

    hidden_size: int
    _: dataclasses.KW_ONLY
    dropout: float = 0.0

    _refused = {}  # operands of `apply` that the layer goes without, and why

    def __post_init__(self):
        check_size("hidden_size", self.hidden_size)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout: expected a number in [0, 1), but got {self.dropout}")

    def init(self, key, dtype=jnp.float32):
        """The parameters that training starts from, a nested dict.

        Args:
          key: of `jax.random`.
          dtype: of the parameters but those of state spaces, which are float32.
        """
        return self._init(Draws(key, dtype))

    def apply(self, params, x, cache=None, cu_seqlens=None, key=None):
        """The layer's output for every token.

        Args:
          params: what `init` has made.
          x: ``[B, T, hidden_size]``.
          cache: what `make_cache` or a former call has made, with the same parameters.
          cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1; a cache then has N rows.
          key: of `dropout`, in training; without one nothing is dropped.

        Returns:
          ``[B, T, hidden_size]``, or given a cache ``(y, the cache after these tokens)``.
        """
        return self._run(params, x, cache, cu_seqlens, key)

    def make_cache(self, batch, dtype=jnp.float32):
        """The cache before the first token. `dtype` is that of the tokens."""
        if "cache" in self._refused:
            raise ValueError(f"make_cache: expected a causal layer, but got {type(self).__name__}, {self._refused['cache']}")
        return self._make_cache(batch, dtype)

    def _make_cache(self, batch, dtype):
        return {name: jnp.zeros((batch, *shape), kind or dtype) for name, (shape, kind) in self._cached().items()}

    def _run(self, params, x, cache, cu_seqlens, key, *others):
        if len(x.shape) != 3 or x.shape[-1] != self.hidden_size:
            raise ValueError(f"x: expected shape (B, T, {self.hidden_size}), but got {tuple(x.shape)}")
        for name, given in (("cache", cache), ("cu_seqlens", cu_seqlens)):
            if given is not None and name in self._refused:
                raise ValueError(f"{name}: expected None for {type(self).__name__}, {self._refused[name]}, but got one")
        if cu_seqlens is not None and x.shape[0] != 1:
            raise ValueError(f"x: expected one row of packed sequences with cu_seqlens, but got {x.shape[0]}")
        calls = Calls(cache, cu_seqlens, key)
        result = self._mix(params, x, calls, *others)
        y, *results = result if isinstance(result, tuple) else (result,)
        if key is not None and self.dropout:
            kept = jax.random.bernoulli(key, 1 - self.dropout, y.shape)
            y = jnp.where(kept, y / (1 - self.dropout), 0).astype(y.dtype)
        return calls.finish(y, *results)

    def _init(self, draws):
        """The parameters of the layer."""
        return {}

    def _cached(self):
        """The parts of a cache for each sequence, by name: (shape, dtype or None for that of the tokens)."""
        return {}


@dataclasses.dataclass(frozen=True)
class Projected(Layer):
    """A layer with projections to queries, keys, values and back, `q_proj`, `k_proj`, `v_proj` and `o_proj`, and where
    there is a `conv_size` the short convolutions `q_conv1d`, `k_conv1d`, `v_conv1d` behind the first three."""

    heads: int
    _: dataclasses.KW_ONLY
    head_dim: int | None = None

    # Options that some of the layers have.
    kv_heads = value_heads = value_head_dim = conv_size = rotary_base = None
    bias = conv_bias = False

    _factors = (1, None)  # of `HeadSizes.of`
    _activation = None  # of queries, keys and values where no convolution has one

    def __post_init__(self):
        super().__post_init__()
        self._sizes  # checks them
        if self._conv_size is not None:
            check_size("conv_size", self._conv_size)

    @property
    def _sizes(self):
        return HeadSizes.of(
            self.hidden_size, self.heads, kv_heads=self.kv_heads, value_heads=self.value_heads, head_dim=self.head_dim,
            value_head_dim=self.value_head_dim, rotary_base=self.rotary_base, factors=self._factors,
        )  # fmt: skip

    @property
    def _conv_size(self):
        """Of the short convolutions behind the projections."""
        return self.conv_size

    def _init(self, draws):
        params = {}
        for name, size in self._sizes.projected.items():
            params[f"{name}_proj"] = draws.dense(self.hidden_size, size, self.bias)
            if self._conv_size is not None:
                params[f"{name}_conv1d"] = draws.conv(size, self._conv_size, self.conv_bias)
        return params | {"o_proj": draws.dense(self._sizes.output, self.hidden_size, self.bias)}

    def _make_cache(self, batch, dtype):
        cache = super()._make_cache(batch, dtype)
        if self._conv_size is not None:
            for name, size in self._sizes.projected.items():
                cache[f"{name}_conv"] = jnp.zeros((batch, size, self._conv_size - 1), dtype)
        return cache if self.rotary_base is None else cache | {"position": jnp.zeros(batch, jnp.int32)}

    def _project(self, params, x, calls):
        """q, k, v ``[B, T, H, D]``, with the rotary embeddings of q and k where there is a `rotary_base`."""
        tokens = []
        for name, size in zip("qkv", (self._sizes.head_dim, self._sizes.head_dim, self._sizes.value_head_dim)):
            y = dense(params[f"{name}_proj"], x)
            if self._conv_size is not None:
                y = calls.convolve(params[f"{name}_conv1d"], y, f"{name}_conv")
            elif self._activation is not None:
                y = self._activation(y)
            tokens.append(split(y, size))
        if self.rotary_base is None:
            return tokens
        q, k, v = tokens
        positions = calls.positions(x.shape[1])
        return rotate(q, positions, self.rotary_base), rotate(k, positions, self.rotary_base), v

    def _state(self, heads):
        """The shape of the state of each sequence."""
        return {"state": ((heads, self._sizes.head_dim, self._sizes.value_head_dim), jnp.float32)}
