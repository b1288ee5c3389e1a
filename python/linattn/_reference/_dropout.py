"""Softmax attention with dropout of weights by a seed, in float64, with its own Philox generator.
"""

from __future__ import annotations

import numpy as np

__all__ = ["keep", "philox"]


def philox(counter, key):
    """Philox4x32-10: four words of 32 bits, in uint64, of four words of counter and two of key."""
    c = [np.asarray(word, np.uint64) for word in counter]
    key = [np.uint64(word) for word in key]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(second >> shift) ^ c[1] ^ key[0], second & low, (first >> shift) ^ c[3] ^ key[1], first & low]
        key = [(word + np.uint64(step)) & low for word, step in zip(key, (0x9E3779B9, 0xBB67AE85))]
    return c


def keep(dropout, seed, B, H, T, Tk):
    """The factors of the weights `[B, H, T, Tk]`."""
    b, h, i, j = np.ix_(*(np.arange(size) for size in (B, H, T, Tk)))
    bits = philox(np.broadcast_arrays(j, i, h, b), (int(seed) & 0xFFFFFFFF, int(seed) >> 32))[0]
    return (bits >= min(round(dropout * 2**32), 2**32 - 1)) / (1 - dropout)
