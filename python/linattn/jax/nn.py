"""Layers of linear attention, as pure functions of a tree of parameters.

    >>> from linattn.jax import nn
    >>> layer = nn.GatedDeltaNet(512, heads=8)
    >>> params = layer.init(jax.random.key(0))
    >>> y = layer.apply(params, x)                              # [B, T, 512]

    >>> cache = layer.make_cache(batch=1)                       # step by step
    >>> y, cache = layer.apply(params, prompt, cache=cache)
    >>> y, cache = layer.apply(params, token, cache=cache)

A layer is a constant, which `jax.jit` may close over or take as a static argument. Parameters
are nested dicts as Flax has them: `kernel` ``[in, out]`` and `bias` of a projection, `kernel`
``[W, 1, C]`` of a short convolution, `scale` of a norm. They are those of the layers of
`linattn.torch.nn`, by the same names: `params_from_torch`.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

import linattn

from .._maps import _features

__all__ = ["GatedDeltaNet", "GatedLinearAttention", "LinearAttention", "Mamba2", "params_from_torch"]


# ----------------------------------------------------------------------------
# Parts
# ----------------------------------------------------------------------------


def _draw_dense(key, size, out, dtype, bias=False):
    bound = size**-0.5
    kernel, offset = jax.random.split(key)
    params = {"kernel": jax.random.uniform(kernel, (size, out), dtype, -bound, bound)}
    if bias:
        params["bias"] = jax.random.uniform(offset, (out,), dtype, -bound, bound)
    return params


def _dense(params, x):
    y = x @ params["kernel"]
    return y + params["bias"] if "bias" in params else y


def _draw_conv(key, channels, width, dtype, bias=False):
    bound = width**-0.5
    params = {"kernel": jax.random.uniform(key, (width, 1, channels), dtype, -bound, bound)}
    if bias:
        params["bias"] = jnp.zeros(channels, dtype)
    return params


def _draw_rates(key, heads, low=1.0):
    return jnp.log(jax.random.uniform(key, (heads,), minval=low, maxval=16.0))


def _draw_steps(key, heads):
    logarithms = jax.random.uniform(key, (heads,), minval=math.log(1e-3), maxval=math.log(0.1))
    steps = jnp.exp(logarithms)
    return steps + jnp.log(-jnp.expm1(-steps))


def _split(x, size):
    return x.reshape(*x.shape[:-1], -1, size)


def _merge(x):
    return x.reshape(*x.shape[:-2], -1)


class _Calls:
    """The calls of one `apply`, and the cache that they leave."""

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

    def finish(self, y):
        return y if self.before is None else (y, self.after)


@dataclasses.dataclass(frozen=True)
class _Layer:
    hidden_size: int

    def apply(self, params, x, cache=None, cu_seqlens=None):
        """The layer's output for every token.

        Args:
          params: what `init` has made.
          x: ``[B, T, hidden_size]``.
          cache: what `make_cache` or a former call has made.
          cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1; a cache then has N rows.

        Returns:
          ``[B, T, hidden_size]``, or given a cache ``(y, the cache after these tokens)``.
        """
        if len(x.shape) != 3 or x.shape[-1] != self.hidden_size:
            raise ValueError(f"x: expected shape (B, T, {self.hidden_size}), but got {tuple(x.shape)}")
        calls = _Calls(cache, cu_seqlens)
        return calls.finish(self._mix(params, x, calls))

    def make_cache(self, batch, dtype=jnp.float32):
        """The cache before the first token; `dtype` is that of the tokens."""
        return {name: jnp.zeros((batch, *shape), kind or dtype) for name, (shape, kind) in self._cached().items()}


@dataclasses.dataclass(frozen=True)
class _Projected(_Layer):
    heads: int

    def __post_init__(self):
        if self.hidden_size % self.heads:
            raise ValueError(f"heads: expected a number that divides hidden_size, {self.hidden_size}, but got {self.heads}")

    def _draw_projections(self, key, sizes, dtype, conv_size=None):
        params = {}
        for (name, (size, out)), part in zip(sizes.items(), jax.random.split(key, len(sizes))):
            params[f"{name}_proj"] = _draw_dense(part, size, out, dtype)
            if conv_size is not None and name in "qkv":
                params[f"{name}_conv1d"] = _draw_conv(part, out, conv_size, dtype)
        return params


# ----------------------------------------------------------------------------
# Layers
# ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class LinearAttention(_Projected):
    """Linear attention, causal: `linattn.torch.nn.LinearAttention`.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys and values; as many unless given, else a divisor.
      feature_map: what `linattn.attention` takes.
    """

    kv_heads: int | None = None
    feature_map: str = "elu"

    def __post_init__(self):
        super().__post_init__()
        _features.parse(self.feature_map)

    @property
    def _sizes(self):
        head = self.hidden_size // self.heads
        return head, self.kv_heads or self.heads

    def init(self, key, dtype=jnp.float32):
        head, kv_heads = self._sizes
        inner = (self.hidden_size, kv_heads * head)
        return self._draw_projections(
            key, {"q": (self.hidden_size,) * 2, "k": inner, "v": inner, "o": (self.hidden_size,) * 2}, dtype
        )

    def make_cache(self, batch, dtype=jnp.float32):
        head, kv_heads = self._sizes
        shape = (batch, kv_heads, head)
        return {"state": linattn.State(jnp.zeros((*shape, head)), jnp.zeros(shape))}

    def _mix(self, params, x, calls):
        head, _ = self._sizes
        q, k, v = (_split(_dense(params[f"{name}_proj"], x), head) for name in "qkv")
        o = calls.recur(
            linattn.scan, q, k, v, returns="return_state", feature_map=self.feature_map, normalize=True,
            scale=1.0,
        )  # fmt: skip
        return _dense(params["o_proj"], _merge(o))


@dataclasses.dataclass(frozen=True)
class GatedLinearAttention(_Projected):
    """Gated linear attention: `linattn.torch.nn.GatedLinearAttention`.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys, values and gates; as many unless given, else a divisor.
      gate_rank: of the two projections to decays.
      gate_normalizer: divides the logarithms of the decays.
      norm_eps: of the output norm.
    """

    kv_heads: int | None = None
    gate_rank: int = 16
    gate_normalizer: float = 16.0
    norm_eps: float = 1e-5

    @property
    def _sizes(self):
        head = self.hidden_size // self.heads
        return max(head // 2, 1), head, self.kv_heads or self.heads

    def init(self, key, dtype=jnp.float32):
        head, value_head, kv_heads = self._sizes
        size, (projections, first, second) = self.hidden_size, jax.random.split(key, 3)
        sizes = {
            "q": (size, self.heads * head), "k": (size, kv_heads * head), "v": (size, kv_heads * value_head),
            "g": (size, size), "o": (size, size),
        }  # fmt: skip
        return self._draw_projections(projections, sizes, dtype) | {
            "gk_proj": {
                "0": _draw_dense(first, size, self.gate_rank, dtype),
                "1": _draw_dense(second, self.gate_rank, kv_heads * head, dtype, bias=True),
            },
            "g_norm_swish_gate": {"scale": jnp.ones(value_head, dtype)},
        }

    def _cached(self):
        head, value_head, kv_heads = self._sizes
        return {"state": ((kv_heads, head, value_head), jnp.float32)}

    def _mix(self, params, x, calls):
        head, value_head, _ = self._sizes
        q, k = (_split(_dense(params[f"{name}_proj"], x), head) for name in "qk")
        v, gate = (_split(_dense(params[f"{name}_proj"], x), value_head) for name in "vg")
        g = _dense(params["gk_proj"]["1"], _dense(params["gk_proj"]["0"], x))
        g = jax.nn.log_sigmoid(_split(g, head)) / self.gate_normalizer
        o = calls.recur(linattn.gla, q, k, v, g)
        o = linattn.output_norm(o, weight=params["g_norm_swish_gate"]["scale"], gate=gate, eps=self.norm_eps)
        return _dense(params["o_proj"], _merge(o))


@dataclasses.dataclass(frozen=True)
class GatedDeltaNet(_Projected):
    """The gated delta rule: `linattn.torch.nn.GatedDeltaNet`.

    Args:
      hidden_size, heads: of the tokens, of queries and keys.
      value_heads: of values, gates and states, a multiple of `heads`; as many unless given.
      head_dim: hidden_size / heads unless given.
      value_head_dim: head_dim unless given.
      conv_size: of the short convolutions behind the projections.
      norm_eps: of the output norm.
    """

    value_heads: int | None = None
    head_dim: int | None = None
    value_head_dim: int | None = None
    conv_size: int = 4
    norm_eps: float = 1e-5

    @property
    def _sizes(self):
        head = self.head_dim or self.hidden_size // self.heads
        return head, self.value_head_dim or head, self.value_heads or self.heads

    def init(self, key, dtype=jnp.float32):
        head, value_head, value_heads = self._sizes
        size, (projections, rates, steps) = self.hidden_size, jax.random.split(key, 3)
        keys, values = self.heads * head, value_heads * value_head
        sizes = {
            "q": (size, keys), "k": (size, keys), "v": (size, values), "a": (size, value_heads),
            "b": (size, value_heads), "g": (size, values), "o": (values, size),
        }  # fmt: skip
        return self._draw_projections(projections, sizes, dtype, self.conv_size) | {
            "A_log": _draw_rates(rates, value_heads, 0.01),
            "dt_bias": _draw_steps(steps, value_heads),
            "o_norm": {"scale": jnp.ones(value_head, dtype)},
        }

    def _cached(self):
        head, value_head, value_heads = self._sizes
        channels = {"q": self.heads * head, "k": self.heads * head, "v": value_heads * value_head}
        convs = {f"{name}_conv": ((size, self.conv_size - 1), None) for name, size in channels.items()}
        return {"state": ((value_heads, head, value_head), jnp.float32), **convs}

    def _mix(self, params, x, calls):
        head, value_head, _ = self._sizes
        q, k, v = (
            _split(calls.convolve(params[f"{name}_conv1d"], _dense(params[f"{name}_proj"], x), f"{name}_conv"), size)
            for name, size in (("q", head), ("k", head), ("v", value_head))
        )
        o = calls.recur(
            linattn.gated_delta_rule, q, k, v, _dense(params["a_proj"], x), _dense(params["b_proj"], x),
            use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=params["A_log"], dt_bias=params["dt_bias"],
            use_beta_sigmoid_in_kernel=True,
        )  # fmt: skip
        gate = _split(_dense(params["g_proj"], x), value_head)
        o = linattn.output_norm(o, weight=params["o_norm"]["scale"], gate=gate, eps=self.norm_eps)
        return _dense(params["o_proj"], _merge(o))


@dataclasses.dataclass(frozen=True)
class Mamba2(_Layer):
    """The mixer of Mamba-2: `linattn.torch.nn.Mamba2`.

    Args:
      hidden_size: of the tokens.
      head_dim, state_size, expand, groups, conv_size, norm_eps: as there.
    """

    head_dim: int = 64
    state_size: int = 128
    expand: int = 2
    groups: int = 1
    conv_size: int = 4
    norm_eps: float = 1e-5

    def __post_init__(self):
        width = self.expand * self.hidden_size
        if width % self.head_dim:
            raise ValueError(f"head_dim: expected a number that divides expand * hidden_size, {width}, but got {self.head_dim}")
        if width // self.head_dim % self.groups:
            raise ValueError(f"groups: expected a number that divides the heads, {width // self.head_dim}, but got {self.groups}")

    @property
    def _sizes(self):
        width = self.expand * self.hidden_size
        return width, width + 2 * self.groups * self.state_size, width // self.head_dim

    def init(self, key, dtype=jnp.float32):
        width, channels, heads = self._sizes
        first, conv, steps, rates, last = jax.random.split(key, 5)
        return {
            "in_proj": _draw_dense(first, self.hidden_size, width + channels + heads, dtype),
            "conv1d": _draw_conv(conv, channels, self.conv_size, dtype, bias=True),
            "dt_bias": _draw_steps(steps, heads), "A_log": _draw_rates(rates, heads), "D": jnp.ones(heads),
            "norm": {"scale": jnp.ones(width, dtype)},
            "out_proj": _draw_dense(last, width, self.hidden_size, dtype),
        }  # fmt: skip

    def _cached(self):
        _, channels, heads = self._sizes
        return {
            "state": ((heads, self.head_dim, self.state_size), jnp.float32),
            "conv": ((channels, self.conv_size - 1), None),
        }

    def _mix(self, params, x, calls):
        width, channels, heads = self._sizes
        gate, tokens, dt = jnp.split(_dense(params["in_proj"], x), [width, width + channels], axis=-1)
        tokens = calls.convolve(params["conv1d"], tokens, "conv")
        u, B, C = jnp.split(tokens, [width, width + self.groups * self.state_size], axis=-1)
        y = calls.recur(
            linattn.mamba2, _split(u, self.head_dim), dt, -jnp.exp(params["A_log"]), _split(B, self.state_size),
            _split(C, self.state_size), D=params["D"], dt_bias=params["dt_bias"], dt_softplus=True,
            state="initial_states", returns="return_final_states",
        )  # fmt: skip
        y = linattn.output_norm(
            _merge(y), weight=params["norm"]["scale"], gate=gate, gate_first=True, groups=self.groups, eps=self.norm_eps
        )
        return _dense(params["out_proj"], y)


def params_from_torch(state_dict):
    """The parameters of a layer here, from the `state_dict` of the one in `linattn.torch.nn`."""
    params = {}
    for name, tensor in state_dict.items():
        *path, last = name.split(".")
        array = jnp.asarray(tensor.detach().cpu().numpy())
        if last == "weight" and array.ndim == 3:
            last, array = "kernel", array.transpose(2, 1, 0)
        elif last == "weight" and array.ndim == 2:
            last, array = "kernel", array.T
        elif last == "weight":
            last = "scale"
        branch = params
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = array
    return params
