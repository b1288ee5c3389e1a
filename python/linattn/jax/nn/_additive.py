"""Layers whose state decays and is added to: gated linear attention, retention, Mamba-2."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

import linattn

from ..._core._sizes import mamba2_sizes
from ._base import Layer, Projected, dense, layer, low_rank, merge, norm, repeat_heads, split

__all__ = ["GatedLinearAttention", "Mamba2", "RetNet"]


@layer
class _GatedOutput(Projected):
    """A layer with a norm of every head, `g_norm`, or with a gate as well, `g_norm_swish_gate` and `g_proj`."""

    kv_heads: int | None = None
    value_head_dim: int | None = None
    conv_size: int | None = None
    conv_bias: bool = False
    use_gate: bool = True
    norm_eps: float = 1e-5

    def _init(self, draws):
        params, sizes = super()._init(draws), self._sizes
        if self.use_gate:
            params["g_proj"] = draws.dense(self.hidden_size, sizes.output)
        return params | {self._norm: draws.norm(sizes.value_head_dim)}

    @property
    def _norm(self):
        return "g_norm_swish_gate" if self.use_gate else "g_norm"

    def _finish(self, params, o, x):
        gate = split(dense(params["g_proj"], x), self._sizes.value_head_dim) if self.use_gate else None
        return dense(params["o_proj"], merge(norm(params[self._norm], o, gate, eps=self.norm_eps)))


@layer
class GatedLinearAttention(_GatedOutput):
    """Gated linear attention: `linattn.torch.nn.GatedLinearAttention`.

    Args:
      hidden_size, heads: of the tokens, of the queries.
      kv_heads: of keys, values and gates; as many unless given, else a divisor.
      head_dim: half of hidden_size / heads unless given.
      value_head_dim: hidden_size / heads unless given.
      conv_size, conv_bias: of short convolutions behind the projections; none unless given.
      gate_rank: of the two projections to decays, `gk_proj`.
      gate_normalizer: divides the logarithms of the decays.
      use_gate: gate the outputs, by `g_proj`.
      norm_eps: of the output norm.
      dropout: of the output, where `apply` gets a key.
    """

    gate_rank: int = 16
    gate_normalizer: float = 16.0

    _factors = (0.5, 1)

    def _init(self, draws):
        gates = self._sizes.key_heads * self._sizes.head_dim
        return super()._init(draws) | {"gk_proj": draws.low_rank(self.hidden_size, self.gate_rank, gates, bias=True)}

    def _cached(self):
        return self._state(self._sizes.key_heads)

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        g = jax.nn.log_sigmoid(split(low_rank(params["gk_proj"], x), self._sizes.head_dim)) / self.gate_normalizer
        return self._finish(params, calls.recur(linattn.gla, q, k, v, g), x)


@layer
class RetNet(_GatedOutput):
    """Multi-scale retention: `linattn.torch.nn.RetNet`.

    Args:
      hidden_size, heads: of the tokens, of the queries; each head has its decay.
      kv_heads: of keys and values; as many unless given, else a divisor.
      head_dim: hidden_size / heads unless given.
      value_head_dim: twice hidden_size / heads unless given.
      rotary_base: of rotary embeddings, None for none.
      conv_size, conv_bias, use_gate, norm_eps, dropout: as in `GatedLinearAttention`.
    """

    rotary_base: float | None = 10000.0

    _factors = (1, 2)

    def _cached(self):
        return self._state(self._sizes.heads)

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        # Heads that share keys do not share decays, nor states.
        k, v = repeat_heads(k, self.heads), repeat_heads(v, self.heads)
        return self._finish(params, calls.recur(linattn.retnet, q, k, v), x)


@dataclasses.dataclass(frozen=True)
class Mamba2(Layer):
    """The mixer of Mamba-2: `linattn.torch.nn.Mamba2`.

    Args:
      hidden_size: of the tokens.
      heads: expand · hidden_size / head_dim unless given.
      head_dim, state_size, expand, groups, conv_size, conv_bias, bias, norm_eps, dt_limit: as there.
      dropout: of the output, where `apply` gets a key.
    """

    heads: int | None = None
    _: dataclasses.KW_ONLY
    head_dim: int = 64
    state_size: int = 128
    expand: int = 2
    groups: int = 1
    conv_size: int = 4
    conv_bias: bool = True
    bias: bool = False
    norm_eps: float = 1e-5
    dt_limit: tuple = (0.0, math.inf)

    def __post_init__(self):
        super().__post_init__()
        self._sizes  # checks them

    @property
    def _sizes(self):
        return mamba2_sizes(self.hidden_size, self.heads, self.head_dim, self.state_size, self.expand, self.groups)

    def _init(self, draws):
        width, channels, heads = self._sizes
        return {
            "in_proj": draws.dense(self.hidden_size, width + channels + heads, self.bias),
            "conv1d": draws.conv(channels, self.conv_size, self.conv_bias),
            "dt_bias": draws.steps(heads), "A_log": draws.rates(heads), "D": jnp.ones(heads),
            "norm": draws.norm(width), "out_proj": draws.dense(width, self.hidden_size, self.bias),
        }  # fmt: skip

    def _cached(self):
        _, channels, heads = self._sizes
        return {
            "state": ((heads, self.head_dim, self.state_size), jnp.float32),
            "conv": ((channels, self.conv_size - 1), None),
        }

    def _mix(self, params, x, calls):
        width, channels, _ = self._sizes
        gate, tokens, dt = jnp.split(dense(params["in_proj"], x), [width, width + channels], axis=-1)
        tokens = calls.convolve(params["conv1d"], tokens, "conv")
        u, B, C = jnp.split(tokens, [width, width + self.groups * self.state_size], axis=-1)
        if self.dt_limit[0] <= 0 and self.dt_limit[1] == math.inf:
            steps = {"dt_bias": params["dt_bias"], "dt_softplus": True}
        else:
            dt, steps = jax.nn.softplus(dt.astype(jnp.float32) + params["dt_bias"]).clip(*self.dt_limit), {}
        y = calls.recur(
            linattn.mamba2, split(u, self.head_dim), dt, -jnp.exp(params["A_log"]), split(B, self.state_size),
            split(C, self.state_size), D=params["D"], state="initial_states", returns="return_final_states", **steps,
        )  # fmt: skip
        y = norm(params["norm"], merge(y), gate, gate_first=True, groups=self.groups, eps=self.norm_eps)
        return dense(params["out_proj"], y)
