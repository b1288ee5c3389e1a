"""The time mixing of RWKV-7."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

import linattn

from ..._core._sizes import rwkv7_heads
from ._base import Layer, dense, merge, split

__all__ = ["RWKV7"]


@dataclasses.dataclass(frozen=True)
class RWKV7(Layer):
    """The time mixing of RWKV-7 (Goose): `linattn.torch.nn.RWKV7`.

        >>> y, v_first = first.apply(params_of_first, x)                      # layer_idx=0
        >>> y, _ = second.apply(params_of_second, x, v_first=v_first)

    Args:
      hidden_size: of the tokens.
      heads: hidden_size / head_dim unless given.
      head_dim: of the heads.
      layer_idx: 0 for a model's first layer, whose values the others take a part of.
      decay_rank, gate_rank, a_rank, v_rank: of the low-rank projections.
      norm_eps: of the output norm `g_norm`, times head_dim.
      dropout: of the output, where `apply` gets a key.
    """

    heads: int | None = None
    _: dataclasses.KW_ONLY
    head_dim: int = 64
    layer_idx: int = 0
    decay_rank: int = 64
    gate_rank: int = 128
    a_rank: int = 64
    v_rank: int = 32
    norm_eps: float = 1e-5

    def __post_init__(self):
        super().__post_init__()
        self._sizes  # checks them

    @property
    def _sizes(self):
        return rwkv7_heads(self.hidden_size, self.heads, self.head_dim)

    def _init(self, draws):
        size, (heads, head), dtype = self.hidden_size, self._sizes, draws.dtype
        params = {f"x_{name}": jnp.zeros((1, 1, size), dtype) for name in "rwkvag"}
        params |= {"k_k": jnp.ones(size, dtype), "k_a": jnp.ones(size, dtype), "r_k": jnp.zeros((heads, head), dtype)}
        params |= {f"{name}_proj": draws.dense(size, size) for name in "rkvo"}
        ranks = {"w": self.decay_rank, "a": self.a_rank, "g": self.gate_rank} | ({"v": self.v_rank} if self.layer_idx else {})
        for name, rank in ranks.items():
            lora = {"0": draws.dense(size, rank), "2": draws.dense(rank, size, bias=name != "g")}
            params[f"{name}_lora"] = {"lora": lora}
        return params | {"g_norm": draws.norm(size) | {"bias": jnp.zeros(size, dtype)}}

    def _cached(self):
        heads, head = self._sizes
        return {"state": ((heads, head, head), jnp.float32), "last": ((self.hidden_size,), None)}

    def apply(self, params, x, cache=None, cu_seqlens=None, key=None, v_first=None):
        """(the output, v_first), or given a cache (the output, v_first, the cache after these tokens).

        Args:
          params, x, cache, cu_seqlens, key: as in the other layers.
          v_first: what the layer with layer_idx=0 has returned; not for that one.
        """
        if (v_first is None) != (self.layer_idx == 0):
            expected, got = ("None", "an array") if self.layer_idx == 0 else ("an array", "None")
            raise ValueError(f"v_first: expected {expected} for layer_idx={self.layer_idx}, but got {got}")
        return self._run(params, x, cache, cu_seqlens, key, v_first)

    def _mix(self, params, x, calls, v_first):
        delta, head = calls.shift(x) - x, self._sizes[1]
        mixed = {name: x + delta * params[f"x_{name}"] for name in "rwkvag"}
        r, k, v = (dense(params[f"{name}_proj"], mixed[name]) for name in "rkv")

        def low_rank(name, activation=lambda y: y):
            lora = params[f"{name}_lora"]["lora"]
            return dense(lora["2"], activation(dense(lora["0"], mixed[name])))

        w = -0.6065306597126334 * jax.nn.sigmoid(low_rank("w", jnp.tanh).astype(jnp.float32))  # −e^−½
        if v_first is None:
            v_first = v
        else:
            v += jax.nn.sigmoid(low_rank("v")) * (v_first - v)
        a, gate = jax.nn.sigmoid(low_rank("a")), low_rank("g", jax.nn.sigmoid)
        unit = split(k * params["k_k"], head)
        unit /= jnp.sqrt(jnp.maximum((unit * unit).sum(-1, keepdims=True), 1e-24))
        k *= 1 + (a - 1) * params["k_a"]
        r, w, k, v, a = (split(y, head) for y in (r, w, k, v, a))
        o = calls.recur(linattn.rwkv7, r, w, k, v, -unit, unit * a)
        # Statistics of every token and head.
        y = linattn.output_norm(
            o, weight=split(params["g_norm"]["scale"], head), bias=split(params["g_norm"]["bias"], head), kind="layer",
            eps=head * self.norm_eps,
        )  # fmt: skip
        y += (r * k * params["r_k"]).sum(-1, keepdims=True) * v
        return dense(params["o_proj"], merge(y) * gate), v_first
