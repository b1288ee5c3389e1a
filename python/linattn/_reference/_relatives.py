"""Linformer, Nyströmformer and FNet by their formulas, in float64."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from ._define import _drop, _full

__all__ = ["fnet", "linformer", "nystrom"]


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _set_up(q, k, v, causal):
    """q, k, v `[B, H, T, D]` with the heads of the result, and q's rank."""
    if causal:
        raise ValueError("causal: expected False, but got True")
    rank = _arrays.to_numpy(q, "q").ndim
    wide = [np.asarray(_arrays.to_numpy(x, name), np.float64) for name, x in zip("qkv", (q, k, v))]
    wide = [_full(x, rank, False, False).transpose(0, 2, 1, 3) for x in wide]
    return wide, max(x.shape[1] for x in wide), rank


def _repeat(x, heads):
    return np.repeat(x, heads // x.shape[1], axis=1)


def _finish(o, rank, like, out):
    o = _drop(o.transpose(0, 2, 1, 3), rank, False)
    if out is not None:
        np.copyto(_arrays.to_numpy(out, "out"), o, casting="same_kind")
        return out
    return _arrays.convert_like(np.ascontiguousarray(o), like)


def linformer(q, k, v, e, f=None, *, causal=False, scale=None, out=None, num_threads=None, target=None):
    """`linattn.linformer` by its formula, in float64."""
    (Q, K, V), heads, rank = _set_up(q, k, v, causal)
    e, f = (np.asarray(_arrays.to_numpy(x), np.float64) for x in (e, e if f is None else f))
    K = np.einsum("bhtd,tr->bhrd" if e.ndim == 2 else "bhtd,htr->bhrd", K, e)
    V = np.einsum("bhtd,tr->bhrd" if f.ndim == 2 else "bhtd,htr->bhrd", V, f)
    Q, K, V = (_repeat(x, heads) for x in (Q, K, V))
    scale = Q.shape[-1] ** -0.5 if scale is None else scale
    return _finish(_softmax(scale * Q @ K.swapaxes(2, 3)) @ V, rank, q, out)


def nystrom(
    q, k, v, *, landmarks=64, iterations=6, return_residual=False, causal=False, scale=None, out=None,
    num_threads=None, target=None,
):  # fmt: skip
    """`linattn.nystrom` by its formula, in float64."""
    (Q, K, V), heads, rank = _set_up(q, k, v, causal)
    Q, K, V = (_repeat(x, heads) for x in (Q, K, V))
    scale = Q.shape[-1] ** -0.5 if scale is None else scale

    def means(x):
        cuts = [i * x.shape[2] // landmarks for i in range(landmarks + 1)]
        return np.stack([x[:, :, begin:end].mean(2) for begin, end in zip(cuts, cuts[1:])], 2)

    few_q, few_k = means(Q), means(K)
    A = _softmax(scale * few_q @ few_k.swapaxes(2, 3))
    norms = np.abs(A).sum(2).max(-1) * np.abs(A).sum(3).max(-1)
    Z, one = A.swapaxes(2, 3) / norms[..., None, None], np.eye(landmarks)
    for _ in range(iterations):
        AZ = A @ Z
        Z = Z / 4 @ (13 * one - AZ @ (15 * one - AZ @ (7 * one - AZ)))
    o = _softmax(scale * Q @ few_k.swapaxes(2, 3)) @ Z @ (_softmax(scale * few_q @ K.swapaxes(2, 3)) @ V)
    o = _finish(o, rank, q, out)
    if not return_residual:
        return o
    residual = np.linalg.norm(A @ Z @ A - A, axis=(2, 3)) / np.linalg.norm(A, axis=(2, 3))
    return o, _arrays.convert_like(residual if rank > 2 else residual[0], q)


def fnet(x):
    """`linattn.fnet` by its formula, in float64: sums with cosines and sines."""
    wide = np.asarray(_arrays.to_numpy(x, "x"), np.float64)

    def waves(size):
        angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(size)) % size) / size
        return np.cos(angles), np.sin(angles)

    (cos_t, sin_t), (cos_d, sin_d) = (waves(size) for size in wide.shape[-2:])
    return _arrays.convert_like(cos_t @ wide @ cos_d - sin_t @ wide @ sin_d, x)
