"""Several sequences in one row of tokens."""

from __future__ import annotations

import torch

from ._guard import PassOn

__all__ = ["Packing", "find_offsets", "find_packing"]


class Packing:
    """Rows of tokens that hold several sequences each, seen as one row.

    Attributes:
      offsets: int64 ``[N + 1]``, where sequences start in the one row, and its end.
      first, last: for every row its first and its last sequence.
    """

    __slots__ = ("offsets", "first", "last")

    def __init__(self, seq_idx):
        rows, length = seq_idx.shape
        starts = torch.ones((rows, length), dtype=torch.bool)
        starts[:, 1:] = seq_idx[:, 1:] != seq_idx[:, :-1]
        positions = starts.reshape(-1).nonzero().reshape(-1)
        self.offsets = torch.cat([positions, torch.tensor([rows * length])])
        counts = starts.sum(1).cumsum(0)
        self.last = counts - 1
        self.first = torch.cat([torch.zeros(1, dtype=counts.dtype), counts[:-1]])


def find_packing(seq_idx, tokens):
    """The packing that ``seq_idx [B, T]`` describes, None if there is none.

    Args:
      seq_idx: integers that differ between neighbours of different sequences.
      tokens: an array ``[B, T, …]`` of those tokens.
    """
    if seq_idx is None:
        return None
    if not isinstance(seq_idx, torch.Tensor):
        raise TypeError(f"seq_idx: expected a tensor or None, but got {type(seq_idx).__name__}")
    if seq_idx.is_floating_point() or seq_idx.is_complex() or seq_idx.dtype is torch.bool:
        raise TypeError(f"seq_idx: expected integers, but got {seq_idx.dtype}")
    if seq_idx.shape != tokens.shape[:2]:
        raise ValueError(f"seq_idx: expected shape {tuple(tokens.shape[:2])}, but got {tuple(seq_idx.shape)}")
    return Packing(seq_idx)


def find_offsets(cu_seqlens, seq_idx, tokens):
    """The offsets of packed sequences, from either description; None if there is none."""
    if cu_seqlens is not None:
        return cu_seqlens
    packing = find_packing(seq_idx, tokens)
    if packing is None:
        return None
    if tokens.shape[0] != 1:
        raise PassOn(f"seq_idx: expected one row of tokens, but got {tokens.shape[0]}")
    return packing.offsets
