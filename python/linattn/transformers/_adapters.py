"""Which function of linattn stands for which kernel."""

from __future__ import annotations

from . import _delta, _mamba

__all__ = ["find_adapter"]

_ADAPTERS = {
    "chunk_gated_delta_rule": _delta.chunk_gated_delta_rule,
    "fused_recurrent_gated_delta_rule": _delta.fused_recurrent_gated_delta_rule,
    "chunk_kda": _delta.chunk_kda,
    "fused_recurrent_kda": _delta.fused_recurrent_kda,
    "mamba_chunk_scan_combined": _mamba.mamba_chunk_scan_combined,
    "selective_scan_fn": _mamba.selective_scan_fn,
    "selective_state_update": _mamba.selective_state_update,
}


def find_adapter(kernel, original):
    """The adapter of a kernel, or None where linattn has none."""
    return _ADAPTERS.get(kernel)
