"""Layers of linear attention and of softmax's relatives, as pure functions of a tree of parameters.

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

import jax
import jax.numpy as jnp

import linattn

from .._jax._layers import (
    Attention, Layer, Projected, RotaryAttention, check_sizes, dense, draw_conv, draw_dense, draw_rates, draw_steps, merge, split,
)  # fmt: skip
from .._maps import _features

__all__ = [
    "FNet", "GatedDeltaNet", "GatedLinearAttention", "HybridAttention", "LinearAttention", "LinformerAttention", "Mamba2",
    "NystromAttention", "SlidingWindowAttention", "params_from_torch",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class LinearAttention(RotaryAttention):
    """Linear attention, causal: `linattn.torch.nn.LinearAttention`.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys and values; as many unless given, else a divisor.
      feature_map: what `linattn.attention` takes.
      head_dim: hidden_size / heads unless given.
      rotary_base: of rotary embeddings; none unless given.
      bias: of the four projections.
      dropout: of the output, where `apply` gets a key.
    """

    feature_map: str = "elu"

    def __post_init__(self):
        super().__post_init__()
        _features.parse(self.feature_map)

    def make_cache(self, batch, dtype=jnp.float32):
        head, kv_heads = self._sizes
        shape = (batch, kv_heads, head)
        state = linattn.State(jnp.zeros((*shape, head)), jnp.zeros(shape))
        return super().make_cache(batch, dtype) | {"state": state}

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        o = calls.recur(
            linattn.scan, q, k, v, returns="return_state", feature_map=self.feature_map, normalize=True,
            scale=1.0,
        )  # fmt: skip
        return dense(params["o_proj"], merge(o))


@dataclasses.dataclass(frozen=True)
class GatedLinearAttention(Projected):
    """Gated linear attention: `linattn.torch.nn.GatedLinearAttention`.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys, values and gates; as many unless given, else a divisor.
      gate_rank: of the two projections to decays.
      gate_normalizer: divides the logarithms of the decays.
      norm_eps: of the output norm.
      head_dim: half of hidden_size / heads unless given.
      value_head_dim: hidden_size / heads unless given.
      dropout: of the output, where `apply` gets a key.
    """

    kv_heads: int | None = None
    gate_rank: int = 16
    gate_normalizer: float = 16.0
    norm_eps: float = 1e-5
    _: dataclasses.KW_ONLY
    value_head_dim: int | None = None

    @property
    def _sizes(self):
        size = self.hidden_size // self.heads
        return self.head_dim or max(size // 2, 1), self.value_head_dim or size, self.kv_heads or self.heads

    def init(self, key, dtype=jnp.float32):
        head, value_head, kv_heads = self._sizes
        size, (projections, first, second) = self.hidden_size, jax.random.split(key, 3)
        sizes = {
            "q": (size, self.heads * head), "k": (size, kv_heads * head), "v": (size, kv_heads * value_head),
            "g": (size, self.heads * value_head), "o": (self.heads * value_head, size),
        }  # fmt: skip
        return self._draw_projections(projections, sizes, dtype) | {
            "gk_proj": {
                "0": draw_dense(first, size, self.gate_rank, dtype),
                "1": draw_dense(second, self.gate_rank, kv_heads * head, dtype, bias=True),
            },
            "g_norm_swish_gate": {"scale": jnp.ones(value_head, dtype)},
        }

    def _cached(self):
        head, value_head, kv_heads = self._sizes
        return {"state": ((kv_heads, head, value_head), jnp.float32)}

    def _mix(self, params, x, calls):
        head, value_head, _ = self._sizes
        q, k = (split(dense(params[f"{name}_proj"], x), head) for name in "qk")
        v, gate = (split(dense(params[f"{name}_proj"], x), value_head) for name in "vg")
        g = dense(params["gk_proj"]["1"], dense(params["gk_proj"]["0"], x))
        g = jax.nn.log_sigmoid(split(g, head)) / self.gate_normalizer
        o = calls.recur(linattn.gla, q, k, v, g)
        o = linattn.output_norm(o, weight=params["g_norm_swish_gate"]["scale"], gate=gate, eps=self.norm_eps)
        return dense(params["o_proj"], merge(o))


@dataclasses.dataclass(frozen=True)
class GatedDeltaNet(Projected):
    """The gated delta rule: `linattn.torch.nn.GatedDeltaNet`.

    Args:
      hidden_size, heads: of the tokens, of queries and keys.
      value_heads: of values, gates and states, a multiple of `heads`; as many unless given.
      head_dim: hidden_size / heads unless given.
      value_head_dim: head_dim unless given.
      conv_size: of the short convolutions behind the projections.
      norm_eps: of the output norm.
      dropout: of the output, where `apply` gets a key.
    """

    value_heads: int | None = None
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
            "A_log": draw_rates(rates, value_heads, 0.01),
            "dt_bias": draw_steps(steps, value_heads),
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
            split(calls.convolve(params[f"{name}_conv1d"], dense(params[f"{name}_proj"], x), f"{name}_conv"), size)
            for name, size in (("q", head), ("k", head), ("v", value_head))
        )
        o = calls.recur(
            linattn.gated_delta_rule, q, k, v, dense(params["a_proj"], x), dense(params["b_proj"], x),
            use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=params["A_log"], dt_bias=params["dt_bias"],
            use_beta_sigmoid_in_kernel=True,
        )  # fmt: skip
        gate = split(dense(params["g_proj"], x), value_head)
        o = linattn.output_norm(o, weight=params["o_norm"]["scale"], gate=gate, eps=self.norm_eps)
        return dense(params["o_proj"], merge(o))


@dataclasses.dataclass(frozen=True)
class Mamba2(Layer):
    """The mixer of Mamba-2: `linattn.torch.nn.Mamba2`.

    Args:
      hidden_size: of the tokens.
      head_dim, state_size, expand, groups, conv_size, norm_eps: as there.
      dropout: of the output, where `apply` gets a key.
    """

    head_dim: int = 64
    state_size: int = 128
    expand: int = 2
    groups: int = 1
    conv_size: int = 4
    norm_eps: float = 1e-5

    def __post_init__(self):
        super().__post_init__()
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
            "in_proj": draw_dense(first, self.hidden_size, width + channels + heads, dtype),
            "conv1d": draw_conv(conv, channels, self.conv_size, dtype, bias=True),
            "dt_bias": draw_steps(steps, heads), "A_log": draw_rates(rates, heads), "D": jnp.ones(heads),
            "norm": {"scale": jnp.ones(width, dtype)},
            "out_proj": draw_dense(last, width, self.hidden_size, dtype),
        }  # fmt: skip

    def _cached(self):
        _, channels, heads = self._sizes
        return {
            "state": ((heads, self.head_dim, self.state_size), jnp.float32),
            "conv": ((channels, self.conv_size - 1), None),
        }

    def _mix(self, params, x, calls):
        width, channels, heads = self._sizes
        gate, tokens, dt = jnp.split(dense(params["in_proj"], x), [width, width + channels], axis=-1)
        tokens = calls.convolve(params["conv1d"], tokens, "conv")
        u, B, C = jnp.split(tokens, [width, width + self.groups * self.state_size], axis=-1)
        y = calls.recur(
            linattn.mamba2, split(u, self.head_dim), dt, -jnp.exp(params["A_log"]), split(B, self.state_size),
            split(C, self.state_size), D=params["D"], dt_bias=params["dt_bias"], dt_softplus=True,
            state="initial_states", returns="return_final_states",
        )  # fmt: skip
        y = linattn.output_norm(
            merge(y), weight=params["norm"]["scale"], gate=gate, gate_first=True, groups=self.groups, eps=self.norm_eps
        )
        return dense(params["out_proj"], y)


@dataclasses.dataclass(frozen=True)
class LinformerAttention(Attention):
    """Softmax attention to `rank` sums of keys and values: `linattn.torch.nn.LinformerAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, bias, dropout: as in `LinearAttention`.
      length: the largest number of tokens; shorter sequences take the first rows of the projections.
      rank: how many sums.
      sharing: "none" for `proj_k` and `proj_v` ``[length, rank]``, "kv" for `proj_k` of both.

    Wang et al., "Linformer: Self-Attention with Linear Complexity", 2020.
    """

    _: dataclasses.KW_ONLY
    length: int
    rank: int = 256
    sharing: str = "none"

    _sees_all = True

    def __post_init__(self):
        super().__post_init__()
        check_sizes(length=self.length, rank=self.rank)
        if self.sharing not in ("none", "kv"):
            raise ValueError(f"sharing: expected one of none, kv, but got {self.sharing!r}")

    @property
    def _names(self):
        return ("proj_k", "proj_v") if self.sharing == "none" else ("proj_k",)

    def init(self, key, dtype=jnp.float32):
        key, *keys = jax.random.split(key, 3)
        bound = self.rank**-0.5
        return super().init(key, dtype) | {
            name: jax.random.uniform(part, (self.length, self.rank), dtype, -bound, bound)
            for name, part in zip(self._names, keys)
        }

    def _mix(self, params, x, calls):
        tokens = x.shape[1]
        if tokens > self.length:
            raise ValueError(f"x: expected at most {self.length} tokens, but got {tokens}")
        o = linattn.linformer(*self._project(params, x, calls), *(params[name][:tokens] for name in self._names))
        return dense(params["o_proj"], merge(o))


@dataclasses.dataclass(frozen=True)
class NystromAttention(RotaryAttention):
    """Softmax attention from the scores of landmarks: `linattn.torch.nn.NystromAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `LinearAttention`.
      landmarks: how many, or as many as tokens where there are fewer.
      iterations: of the pseudo-inverse.
      conv_size: of a convolution of the values over tokens that is added to the output, an odd number; None
        for none. Its `kernel` is ``[conv_size, 1, kv_heads]``.

    Xiong et al., "Nyströmformer", 2021.
    """

    _: dataclasses.KW_ONLY
    landmarks: int = 64
    iterations: int = 6
    conv_size: int | None = None

    _sees_all = True

    def __post_init__(self):
        super().__post_init__()
        check_sizes(landmarks=self.landmarks, iterations=self.iterations)
        if self.conv_size is not None:
            check_sizes(conv_size=self.conv_size)
            if self.conv_size % 2 == 0:
                raise ValueError(f"conv_size: expected an odd number, but got {self.conv_size}")

    def init(self, key, dtype=jnp.float32):
        if self.conv_size is None:
            return super().init(key, dtype)
        key, conv = jax.random.split(key)
        return super().init(key, dtype) | {"conv": draw_conv(conv, self._sizes[1], self.conv_size, dtype)}

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        o = linattn.nystrom(q, k, v, landmarks=min(self.landmarks, x.shape[1]), iterations=self.iterations)
        if self.conv_size is not None:
            o += jnp.repeat(self._convolve(params["conv"]["kernel"], v), self.heads // v.shape[2], 2)
        return dense(params["o_proj"], merge(o))

    def _convolve(self, kernel, v):
        side, tokens = self.conv_size // 2, v.shape[1]
        padded = jnp.pad(v, ((0, 0), (side, side), (0, 0), (0, 0)))
        return sum(padded[:, i : i + tokens] * weights[0, :, None] for i, weights in enumerate(kernel))


@dataclasses.dataclass(frozen=True)
class FNet(Layer):
    """Tokens mixed by a Fourier transform, without parameters: `linattn.torch.nn.FNet`.

    Args:
      hidden_size: of the tokens.
      dropout: of the output, where `apply` gets a key.

    Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms", 2022.
    """

    _sees_all = True

    def init(self, key, dtype=jnp.float32):
        return {}

    def _mix(self, params, x, calls):
        return linattn.fnet(x)


@dataclasses.dataclass(frozen=True)
class SlidingWindowAttention(RotaryAttention):
    """Softmax attention of the last tokens, in O(T · window) time: `linattn.torch.nn.SlidingWindowAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `LinearAttention`.
      window: how many tokens, itself among them, a token attends to.

    A cache has the keys and values of window − 1 tokens, and how many of them there are. It goes without
    packed sequences.
    """

    _: dataclasses.KW_ONLY
    window: int = 512

    def __post_init__(self):
        super().__post_init__()
        check_sizes(window=self.window)

    def _cached(self):
        head, kv_heads = self._sizes
        tokens = ((self.window - 1, kv_heads, head), None)
        return {"keys": tokens, "values": tokens, "length": ((), jnp.int32)}

    def _mix(self, params, x, calls):
        o = calls.attend(*self._project(params, x, calls), self.window)
        return dense(params["o_proj"], merge(o))


@dataclasses.dataclass(frozen=True)
class HybridAttention(SlidingWindowAttention):
    """Softmax attention in a window beside linear attention over everything: `linattn.torch.nn.HybridAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `LinearAttention`.
      window: of the softmax.
      feature_map: "hedgehog", trained as `feature_map_q` and `feature_map_k`, whose `weight` is
        ``[heads, head, head]``; or a name that `linattn.attention` takes.

    `mix_logit` ``[heads]`` is trained: the output of a head is σ(mix_logit) times that of the window, and
    1 − σ(mix_logit) times that of the linear attention. Arora et al., "Simple linear attention language models
    balance the recall-throughput tradeoff", 2024.
    """

    _: dataclasses.KW_ONLY
    window: int = 64
    feature_map: str = "hedgehog"

    def __post_init__(self):
        super().__post_init__()
        if not self._is_trained:
            _features.parse(self.feature_map)

    @property
    def _is_trained(self):
        return self.feature_map == "hedgehog"

    def init(self, key, dtype=jnp.float32):
        head, kv_heads = self._sizes
        params = super().init(key, dtype) | {"mix_logit": jnp.zeros(self.heads, dtype)}
        if self._is_trained:
            for side, heads in (("q", self.heads), ("k", kv_heads)):
                params[f"feature_map_{side}"] = {"weight": jnp.tile(jnp.eye(head, dtype=dtype), (heads, 1, 1))}
        return params

    def make_cache(self, batch, dtype=jnp.float32):
        head, kv_heads = self._sizes
        shape = (batch, kv_heads, 2 * head if self._is_trained else head)
        state = linattn.State(jnp.zeros((*shape, head)), jnp.zeros(shape))
        return super().make_cache(batch, dtype) | {"state": state}

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        phi, share = self.feature_map, jax.nn.sigmoid(params["mix_logit"])
        if self._is_trained:
            phi = linattn.feature_maps.hedgehog(*(params[f"feature_map_{side}"]["weight"] for side in "qk"))
        if calls.before is None and calls.cu_seqlens is None:
            o = linattn.hybrid(q, k, v, share, window=self.window, feature_map=phi)
        else:
            near = calls.attend(q, k, v, self.window)
            far = calls.recur(linattn.scan, q, k, v, returns="return_state", feature_map=phi, normalize=True, scale=1.0)
            share = share[:, None].astype(near.dtype)
            o = share * near + (1 - share) * far
        return dense(params["o_proj"], merge(o))


def params_from_torch(state_dict):
    """Converts the `state_dict` of a layer of `linattn.torch.nn` to parameters of this one."""
    params = {}
    for name, tensor in state_dict.items():
        *path, last = name.split(".")
        array = jnp.asarray(tensor.detach().cpu().numpy())
        if path and path[-1].startswith("feature_map"):
            pass  # as the functions of `linattn.feature_maps` take it
        elif last == "weight" and array.ndim == 4:
            last, array = "kernel", array[..., 0].transpose(2, 1, 0)
        elif last == "weight" and array.ndim == 3:
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
