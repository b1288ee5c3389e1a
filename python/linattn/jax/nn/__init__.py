"""Layers of linear attention and of softmax's relatives, as pure functions of a tree of parameters.

    >>> from linattn.jax import nn
    >>> layer = nn.GatedDeltaNet(512, heads=8)
    >>> params = layer.init(jax.random.key(0))
    >>> y = layer.apply(params, x)                              # [B, T, 512]

    >>> cache = layer.make_cache(batch=1)                       # step by step
    >>> y, cache = layer.apply(params, prompt, cache=cache)
    >>> y, cache = layer.apply(params, token, cache=cache)

A layer is a constant, which `jax.jit` may close over or take as a static argument. It has the name, the
options and the defaults of the layer of `linattn.torch.nn` that it computes the same as. Parameters are
nested dicts as Flax has them: `kernel` ``[in, out]`` and `bias` of a projection, `kernel` ``[W, 1, C]`` of a
short convolution, `scale` of a norm; `params_from_torch` makes them of a `state_dict`.
"""

from ._additive import GatedLinearAttention, Mamba2, RetNet
from ._base import Layer
from ._delta import DeltaNet, GatedDeltaNet, KimiDeltaAttention
from ._linear import LinearAttention, NormAttention, PerformerAttention
from ._loading import params_from_torch
from ._mixing import FNet, LinformerAttention, NystromAttention
from ._rwkv import RWKV7
from ._s4d import S4D
from ._softmax import BlockSparseAttention, DiagAttention, HybridAttention, MultiHeadAttention, SlidingWindowAttention

__all__ = [
    "BlockSparseAttention",
    "DeltaNet",
    "DiagAttention",
    "FNet",
    "GatedDeltaNet",
    "GatedLinearAttention",
    "HybridAttention",
    "KimiDeltaAttention",
    "Layer",
    "LinearAttention",
    "LinformerAttention",
    "Mamba2",
    "MultiHeadAttention",
    "NormAttention",
    "NystromAttention",
    "PerformerAttention",
    "RWKV7",
    "RetNet",
    "S4D",
    "SlidingWindowAttention",
    "params_from_torch",
]
