"""A text as queries, keys and values.

Byte n-grams of the orders 1 to 4 are hashed into D signed features, several
times each, and every token's features are scaled to the norm √D. Hashing is
fixed, so that the same text gives the same arrays everywhere.

Query i holds the n-grams that end at byte i, key j those that end just before
byte j, in the same features; value j those that end at byte j, in others. Query
and key match where the same context came before: attention then looks up what
followed it.
"""

from __future__ import annotations

import pathlib

import numpy as np

ORDERS, PROBES = 4, 4

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_SOURCES = ("README.md", "*.md", "docs/**/*.md", "include/**/*.td", "lib/**/*.cpp", "include/**/*.h")


def load(path, limit):
    """(bytes, where they come from): of a file, or of the project's own texts."""
    if path is not None:
        return pathlib.Path(path).read_bytes()[:limit], str(path)
    parts, length, seen = [], 0, set()
    for pattern in _SOURCES:
        for file in sorted(_ROOT.glob(pattern)):
            if length < limit and file not in seen and file.is_file():
                seen.add(file)
                parts.append(file.read_bytes())
                length += len(parts[-1])
    return b"".join(parts)[:limit], "this project's documents and sources"


def embed(text, heads, features):
    """q, k, v as float32 [1, T, heads, features], as the file's comment says."""
    q = np.empty((1, len(text), heads, features), np.float32)
    v = np.empty_like(q)
    for head in range(heads):
        q[0, :, head] = _hash_ngrams(text, features, seed=2 * head)
        v[0, :, head] = _hash_ngrams(text, features, seed=2 * head + 1)
    k = np.zeros_like(q)
    k[:, 1:] = q[:, :-1]
    return q, k, v


def _hash_ngrams(text, features, seed):
    count = len(text)
    result = np.zeros((count, features), np.float32)
    data = np.frombuffer(text, np.uint8).astype(np.uint64)
    code, rows = np.zeros(count, np.uint64), np.arange(count)
    for order in range(ORDERS):
        shifted = np.full(count, 256, np.uint64)  # 256: before the first byte
        shifted[order:] = data[: count - order]
        code = code * np.uint64(257) + shifted
        for probe in range(PROBES):
            salt = np.uint64((seed * ORDERS + order) * PROBES + probe)
            hashed = _mix(code ^ (salt << np.uint64(40)))
            sign = np.where(hashed & np.uint64(1), np.float32(1), np.float32(-1))
            # One feature per row: no index occurs twice in one addition.
            result[rows, (hashed >> np.uint64(1)) % np.uint64(features)] += sign
    norm = np.linalg.norm(result, axis=1, keepdims=True)
    return result * (np.float32(features**0.5) / np.maximum(norm, np.float32(1)))


def _mix(x):
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
