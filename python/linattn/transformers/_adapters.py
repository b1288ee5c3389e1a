"""Which function of linattn stands for which kernel."""

from __future__ import annotations

import inspect

from . import _conv, _delta, _fused, _layers, _linear, _mamba, _norm
from ._known import fingerprint

__all__ = ["NO_ADAPTER", "find_adapter"]

# Why a kernel without an adapter stays.
NO_ADAPTER = "linattn has no function for it"

_ADAPTERS = {
    "chunk_gated_delta_rule": _delta.chunk_gated_delta_rule,
    "fused_recurrent_gated_delta_rule": _delta.fused_recurrent_gated_delta_rule,
    "chunk_kda": _delta.chunk_kda,
    "fused_recurrent_kda": _delta.fused_recurrent_kda,
    "mamba_chunk_scan_combined": _mamba.mamba_chunk_scan_combined,
    "mamba_inner_fn": _fused.mamba_inner_fn,
    "mamba_split_conv1d_scan_combined": _fused.mamba_split_conv1d_scan_combined,
    "selective_scan_fn": _mamba.selective_scan_fn,
    "selective_state_update": _mamba.selective_state_update,
    "causal_conv1d_fn": _conv.causal_conv1d_fn,
    "causal_conv1d_update": _conv.causal_conv1d_update,
    "lightning_attention": _layers.lightning_attention,
    "rwkv_linear_attention": _layers.rwkv_linear_attention,
    "mlstm": _layers.mlstm,
    "rg_lru": _layers.rg_lru,
    "Linear": _linear.linear,
}

# Norms of one name differ; their bodies show which is which.
_NORMS = {
    "52bf359a41c0a1ad": _norm.norm_first,
    "ac204370a3092214": _norm.norm_first,
    "70bf188da794c1c7": _norm.gate_first,
    "9f08f5196326951c": _norm.norm_of_groups,
}


def find_adapter(kernel, original):
    """The adapter of a kernel, or None where linattn has none."""
    if kernel == "RMSNormGated":
        return _NORMS.get(fingerprint(inspect.unwrap(original)))
    return _ADAPTERS.get(kernel)
