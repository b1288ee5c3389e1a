"""Softmax attention of groups, one by one, in float64."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._softmax._groups import blocks_of

__all__ = ["attend"]


def attend(attention, kind, q, k, v, groups, mask, options):
    """Concatenates the results of `attention` of each group."""
    q, k, v = (np.asarray(_arrays.to_numpy(x, name), np.float64) for name, x in zip("qkv", (q, k, v)))
    if kind == "blocks":
        seen = blocks_of(q, k, groups["block_mask"], groups["block_size"], options["causal"])
        return _attend_blocks(q, k, v, seen, groups["block_size"], options)
    axis = 0 if q.ndim == 2 else 1
    mask = None if mask is None else _arrays.to_numpy(mask, "mask")

    def run(q, k, v, mask):
        return np.asarray(attention(q, k, v, weights="softmax", mask=mask, **options))

    if kind == "packed":
        ends = np.asarray(_arrays.to_numpy(np.asarray(groups["cu_seqlens"]))).tolist()
        key_ends = ends if groups["cu_seqlens_k"] is None else np.asarray(groups["cu_seqlens_k"]).tolist()
        parts = []
        for begin, end, first, last in zip(ends, ends[1:], key_ends, key_ends[1:]):
            tokens, keys = (slice(None),) * axis + (slice(begin, end),), (slice(None),) * axis + (slice(first, last),)
            parts.append(run(q[tokens], k[keys], v[keys], None if mask is None else mask[..., first:last]))
        return np.concatenate(parts, axis)
    lengths = np.asarray(_arrays.to_numpy(groups["cache_seqlens"]))
    rows = []
    for n, length in enumerate(lengths):
        own = [x[n] if kind == "lengths" else x[np.asarray(groups["block_table"])[n]].reshape(-1, *x.shape[2:]) for x in (k, v)]
        keys, values = (x[None, :length] for x in own)
        rows.append(run(q[n : n + 1], keys, values, None if mask is None else mask[n : n + 1, :length]))
    return np.concatenate(rows, 0)


def _attend_blocks(q, k, v, seen, size, options):
    """The formula with a T×Tk mask."""
    rank = q.ndim
    q, k, v = ({2: lambda: x[None, :, None], 3: lambda: x[:, :, None], 4: lambda: x}[rank]() for x in (q, k, v))
    heads = max(x.shape[2] for x in (q, k, v))
    q, k, v = (np.repeat(x, heads // x.shape[2], axis=2) for x in (q, k, v))
    sees = np.kron(seen, np.ones((size, size), bool))[: q.shape[1], : k.shape[1]]
    if options["causal"]:
        sees = np.tril(sees)
    scale = q.shape[-1] ** -0.5 if options["scale"] is None else options["scale"]
    s = scale * np.einsum("bihd,bjhd->bhij", q, k)
    if options["softcap"] is not None:
        s = options["softcap"] * np.tanh(s / options["softcap"])
    s = np.where(sees, s, -np.inf)
    sinks = -np.inf if options["sinks"] is None else _arrays.to_numpy(options["sinks"]).astype(np.float64)[:, None, None]
    highest = np.maximum(s.max(-1, keepdims=True, initial=-np.inf), sinks)
    highest = np.where(np.isneginf(highest), 0.0, highest)
    w = np.exp(s - highest)
    total = w.sum(-1, keepdims=True) + np.exp(sinks - highest)
    o = np.einsum("bhij,bjhd->bihd", w / np.where(total == 0, 1.0, total), v)
    return {2: lambda: o[0, :, 0], 3: lambda: o[:, :, 0], 4: lambda: o}[rank]()
