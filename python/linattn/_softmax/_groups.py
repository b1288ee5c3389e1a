"""Groups of queries with keys of their own, as `attention` takes them."""

from __future__ import annotations

import sys

import numpy as np

from .._core import _arrays
from .._families._family import offsets
from .._recurrence import _plans
from . import _grouped_plan

__all__ = ["attend_groups", "block_mask", "blocks_of", "find_kind"]


def find_kind(groups, weights):
    """The kind of the groups, of `_grouped_plan.GROUPED`; what does not fit together is refused.

    Args:
      groups: cu_seqlens, cu_seqlens_k, cache_seqlens, block_table, block_mask and block_size by name.
    """
    given = [name for name, value in groups.items() if value is not None]
    kinds = [name for name in ("cu_seqlens", "cache_seqlens", "block_mask") if name in given]
    for name, other in (("cu_seqlens_k", "cu_seqlens"), ("block_table", "cache_seqlens"), ("block_size", "block_mask"),
                        ("block_mask", "block_size")):  # fmt: skip
        if name in given and other not in given:
            raise ValueError(f"{name}: expected it only with {other}, but got it without")
    if len(kinds) > 1:
        raise ValueError(f"{kinds[1]}: expected one of cu_seqlens, cache_seqlens and block_mask, but got {kinds[0]}, too")
    if weights != "softmax":
        raise ValueError(
            f"{kinds[0]}: expected weights='softmax' with {kinds[0]}, but got weights={weights!r}; linattn.scan takes "
            "packed sequences, and a state in place of a cache"
        )
    if kinds[0] == "cache_seqlens":
        return "pages" if "block_table" in given else "lengths"
    return "packed" if kinds[0] == "cu_seqlens" else "blocks"


def attend_groups(kind, q, k, v, groups, others, causal, scale, pattern, softcap, out, num_threads, target):
    """Softmax attention of each group of queries.

    Args:
      others: mask, slopes and sinks by name, those that are there.
      pattern: of `#linattn.pattern`, or None.
    """
    refused = {"pages": ("mask",), "blocks": ("mask", "slopes")}.get(kind, ())
    for name in refused:
        if name in others:
            what = "block_table" if kind == "pages" else "block_mask"
            raise ValueError(f"{name}: expected None beside {what}, but got an array")
    if kind == "blocks" and pattern:
        raise ValueError("block_mask: expected no window or dilation beside it, but got both")
    block_size, names = None, []
    if kind == "packed":
        operands = [offsets(groups["cu_seqlens"])]
        if groups["cu_seqlens_k"] is not None:
            names.append("cu_seqlens_k")
            operands.append(offsets(groups["cu_seqlens_k"]))
            _check_counts(*operands)
    elif kind == "blocks":
        block_size, operands = _check_blocks(q, k, groups["block_mask"], groups["block_size"], causal)
    else:
        operands = [_arrays.integers_like(groups["cache_seqlens"], q)]
        if kind == "pages":
            operands.insert(0, _arrays.integers_like(groups["block_table"], q))
        _check_cache(kind, q, k, *operands)
    names += [name for name in ("mask", "slopes", "sinks") if name in others]
    key = ("grouped", kind, tuple(names), block_size, causal, scale, pattern, softcap, target)
    operands += [others[name] for name in ("mask", "slopes", "sinks") if name in others]
    return _plans.find(key)((q, k, v, *operands), None, out, False, num_threads)


def _shape(name, array):
    shape = getattr(array, "shape", None)
    if shape is None:
        raise TypeError(f"{name}: expected an array, but got {type(array).__name__}")
    return tuple(shape)


def _check_counts(queries, keys):
    counts = _shape("cu_seqlens", queries), _shape("cu_seqlens_k", keys)
    if counts[0] != counts[1]:
        raise ValueError(f"cu_seqlens_k: expected the shape of cu_seqlens, {counts[0]}, but got {counts[1]}")


def _is_out_of_reach(array):
    """Whether an array has no elements yet, or elements that to read would mean to wait."""
    module = type(array).__module__.partition(".")[0]
    if module == "torch":
        torch = sys.modules["torch"]
        return torch.compiler.is_compiling() or type(array) is not torch.Tensor or array.is_cuda
    if module.startswith("jax") and isinstance(array, sys.modules["jax"].core.Tracer):
        return True
    return _arrays.is_on_device(array)


def _check_cache(kind, q, k, *operands):
    """Lengths and pages of arrays in memory; what a graph computes meets NaN in the kernel."""
    if len(_shape("q", q)) < 3:
        raise ValueError(f"q: expected shape (B, T, ...) with cache_seqlens, but got {_shape('q', q)}")
    if len(_shape("k", k)) < 3 or any(_is_out_of_reach(array) for array in operands):
        return  # The plan says what is wrong with k.
    *table, lengths = (_arrays.to_numpy(array) for array in operands)
    room, names = k.shape[1], ("cache_seqlens", "block_table")
    if table:
        (table,) = table
        if table.ndim != 2 or lengths.ndim != 1 or len(table) != len(lengths):
            return
        room *= table.shape[1]
    wrong = np.flatnonzero((lengths < 0) | (lengths > room))
    if len(wrong):
        n = wrong[0]
        raise ValueError(f"{names[0]}: expected lengths in [0, {room}], but got {lengths[n]} at {n}")
    if kind != "pages":
        return
    used = np.arange(table.shape[1]) * k.shape[1] < lengths[:, None]
    wrong = np.argwhere(used & ((table < 0) | (table >= k.shape[0])))
    if len(wrong):
        n, j = wrong[0]
        raise ValueError(f"{names[1]}: expected pages in [0, {k.shape[0]}), but got {table[n, j]} at ({n}, {j})")


def blocks_of(q, k, mask, block_size, causal):
    """The mask of blocks as NumPy's, without what is not causal; what does not fit is refused."""
    if isinstance(block_size, bool) or not isinstance(block_size, (int, np.integer)):
        raise TypeError(f"block_size: expected an integer, but got {type(block_size).__name__}")
    if not 0 < block_size < 2**31:
        raise ValueError(f"block_size: expected a number in [1, 2**31), but got {block_size}")
    mask = _arrays.to_numpy(mask, "block_mask")
    if mask.dtype != np.bool_:
        raise TypeError(f"block_mask: expected dtype bool, but got {mask.dtype}")
    lengths = []
    for name, tokens in (("q", q), ("k", k)):
        shape = _shape(name, tokens)
        if len(shape) < 2:
            raise ValueError(f"{name}: expected shape (T, D), (B, T, D) or (B, T, H, D), but got {shape}")
        lengths.append(shape[0 if len(shape) == 2 else 1])
    expected = tuple(-(-length // block_size) for length in lengths)
    if mask.shape != expected:
        raise ValueError(f"block_mask: expected shape {expected} for blocks of {block_size}, but got {mask.shape}")
    if not causal:
        return mask
    if lengths[0] != lengths[1]:
        raise ValueError(f"block_mask: expected as many queries as keys with causal, but got {lengths[0]} and {lengths[1]}")
    if not mask.diagonal().all():
        n = int(np.flatnonzero(~mask.diagonal())[0])
        raise ValueError(f"block_mask: expected the diagonal to be True with causal, but got False at ({n}, {n})")
    return np.tril(mask)


def _check_blocks(q, k, mask, block_size, causal):
    """(block_size, [where the blocks of each query block start, their numbers])."""
    mask = blocks_of(q, k, mask, block_size, causal)
    starts = np.concatenate([[0], mask.sum(1).cumsum()]).astype(np.int64)
    numbers = np.nonzero(mask)[1].astype(np.int64)
    numbers = numbers if len(numbers) else np.zeros(1, np.int64)
    return int(block_size), [_arrays.integers_like(array, q) for array in (starts, numbers)]


def block_mask(blocks, *, window=1, global_blocks=0, random_blocks=0, seed=0, causal=False):
    """The mask of blocks of BigBird, for `attention`'s ``block_mask``.

    Block i of queries sees the blocks of keys at distances below `window`, the first
    `global_blocks`, and `random_blocks` others that are drawn for it; the first `global_blocks` see
    all. See Zaheer et al., "Big Bird: Transformers for Longer Sequences", 2020.

    Args:
      blocks: how many of queries and of keys.
      window, global_blocks, random_blocks: numbers of blocks.
      seed: of the draw, by Philox: the same blocks on every platform.
      causal: blocks up to each block's own only.

    Returns:
      bool ``[blocks, blocks]``, of NumPy.

    Raises:
      ValueError, TypeError: naming the number, what was expected and what came.
    """
    numbers = {"blocks": (blocks, 0), "window": (window, 1), "global_blocks": (global_blocks, 0),
               "random_blocks": (random_blocks, 0), "seed": (seed, 0)}  # fmt: skip
    for name, (number, least) in numbers.items():
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise TypeError(f"{name}: expected an integer, but got {type(number).__name__}")
        most = 64 if name == "seed" else 16
        if not least <= number < 2**most:
            raise ValueError(f"{name}: expected a number in [{least}, 2**{most}), but got {number}")
    place = np.arange(blocks)
    near = abs(place[:, None] - place) < window
    mask = near | (place < global_blocks) | (place[:, None] < global_blocks)
    allowed = np.tril(np.ones_like(mask)) if causal else np.ones_like(mask)
    for row in range(blocks):
        # Rows have draws of their own, so that a causal row does not depend on how many follow.
        draws = np.random.Philox(key=seed, counter=[0, row, 0, 0]).random_raw(blocks)
        (free,) = np.nonzero(allowed[row] & ~mask[row])
        mask[row, free[np.argsort(draws[free], kind="stable")[:random_blocks]]] = True
    return mask & allowed
