"""Layers that mix the tokens of all positions: Linformer, Nyströmformer, FNet."""

from __future__ import annotations

import jax.numpy as jnp

import linattn

from ..._core._checks import check_choice, check_parity, check_size
from ._base import Layer, Projected, dense, layer, merge, repeat_heads

__all__ = ["FNet", "LinformerAttention", "NystromAttention"]

_REFUSED = dict.fromkeys(("cache", "cu_seqlens"), "whose tokens depend on all others")


@layer
class LinformerAttention(Projected):
    """Softmax attention to `rank` sums of keys and values: `linattn.torch.nn.LinformerAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, bias, dropout: as in `LinearAttention`.
      length: the largest number of tokens; shorter sequences take the first rows of the projections.
      rank: how many sums.
      sharing: "none" for `proj_k` and `proj_v` ``[length, rank]``, "kv" for `proj_k` of both.

    Wang et al., "Linformer: Self-Attention with Linear Complexity", 2020.
    """

    kv_heads: int | None = None
    bias: bool = False
    length: int
    rank: int = 256
    sharing: str = "none"

    _refused = _REFUSED

    def __post_init__(self):
        super().__post_init__()
        check_size("length", self.length)
        check_size("rank", self.rank)
        check_choice("sharing", self.sharing, ("none", "kv"))

    @property
    def _names(self):
        return ("proj_k", "proj_v") if self.sharing == "none" else ("proj_k",)

    def _init(self, draws):
        projections = {name: draws.uniform((self.length, self.rank), self.rank**-0.5) for name in self._names}
        return super()._init(draws) | projections

    def _mix(self, params, x, calls):
        tokens = x.shape[1]
        if tokens > self.length:
            raise ValueError(f"x: expected at most {self.length} tokens, but got {tokens}")
        o = linattn.linformer(*self._project(params, x, calls), *(params[name][:tokens] for name in self._names))
        return dense(params["o_proj"], merge(o))


@layer
class NystromAttention(Projected):
    """Softmax attention from the scores of landmarks: `linattn.torch.nn.NystromAttention`.

    Args:
      hidden_size, heads, kv_heads, head_dim, rotary_base, bias, dropout: as in `LinearAttention`.
      landmarks: how many, or as many as tokens where there are fewer.
      iterations: of the pseudo-inverse.
      conv_size: of a convolution of the values over tokens that is added to the output, an odd number; None
        for none. Its `kernel` is ``[conv_size, 1, kv_heads]``.

    Xiong et al., "Nyströmformer", 2021.
    """

    kv_heads: int | None = None
    bias: bool = False
    rotary_base: float | None = None
    landmarks: int = 64
    iterations: int = 6
    conv_size: int | None = None

    _refused = _REFUSED

    def __post_init__(self):
        super().__post_init__()
        check_size("landmarks", self.landmarks)
        check_size("iterations", self.iterations)
        if self.conv_size is not None:
            check_parity("conv_size", self.conv_size, odd=True)

    _conv_size = None  # There are no convolutions behind the projections.

    def _init(self, draws):
        params = super()._init(draws)
        if self.conv_size is None:
            return params
        return params | {"conv": draws.conv(self._sizes.value_heads, self.conv_size)}

    def _mix(self, params, x, calls):
        q, k, v = self._project(params, x, calls)
        o = linattn.nystrom(q, k, v, landmarks=min(self.landmarks, x.shape[1]), iterations=self.iterations)
        if self.conv_size is not None:
            o += repeat_heads(self._convolve(params["conv"]["kernel"], v), self.heads)
        return dense(params["o_proj"], merge(o))

    def _convolve(self, kernel, v):
        side, tokens = self.conv_size // 2, v.shape[1]
        padded = jnp.pad(v, ((0, 0), (side, side), (0, 0), (0, 0)))
        return sum(padded[:, i : i + tokens] * weights[0, :, None] for i, weights in enumerate(kernel))


@layer
class FNet(Layer):
    """Tokens mixed by a Fourier transform, without parameters: `linattn.torch.nn.FNet`.

    Args:
      hidden_size: of the tokens.
      dropout: of the output, where `apply` gets a key.

    Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms", 2022.
    """

    _refused = _REFUSED

    def _mix(self, params, x, calls):
        return linattn.fnet(x)
