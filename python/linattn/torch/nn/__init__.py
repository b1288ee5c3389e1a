"""Layers of linear attention, as modules of PyTorch.

    >>> from linattn.torch import nn
    >>> layer = nn.LinearAttention(512, heads=8)
    >>> y = layer(torch.randn(2, 128, 512))

    >>> cache = nn.Cache()                        # step by step, with the outputs of the whole
    >>> layer(prompt, cache=cache)
    >>> layer(token, cache=cache)

Parameters have the names of flash-linear-attention's layers.
"""

from ._additive import GatedLinearAttention, Mamba2, RetNet
from ._base import Layer, OutputNorm, ShortConvolution
from ._cache import Cache
from ._delta import DeltaNet, GatedDeltaNet, KimiDeltaAttention
from ._linear import FeatureMap, LinearAttention, NormAttention, PerformerAttention
from ._loading import from_transformers
from ._mixing import FNet, LinformerAttention, NystromAttention
from ._rwkv import RWKV7
from ._s4d import S4D
from ._softmax import BlockSparseAttention, DiagAttention, HybridAttention, MultiHeadAttention, SlidingWindowAttention

__all__ = [
    "BlockSparseAttention",
    "Cache",
    "DeltaNet",
    "DiagAttention",
    "FNet",
    "FeatureMap",
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
    "OutputNorm",
    "PerformerAttention",
    "RWKV7",
    "RetNet",
    "S4D",
    "ShortConvolution",
    "SlidingWindowAttention",
    "from_transformers",
]
