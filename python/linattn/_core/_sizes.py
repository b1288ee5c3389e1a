"""The sizes of layers, which those of PyTorch and of JAX have in common."""

from __future__ import annotations

import math
from typing import NamedTuple

from ._checks import check_divides, check_size

__all__ = ["HeadSizes", "count_random_features", "mamba2_sizes", "rwkv7_heads"]


class HeadSizes(NamedTuple):
    """How many heads queries, keys and values have, and how large these are."""

    heads: int
    key_heads: int
    value_heads: int
    head_dim: int
    value_head_dim: int

    @classmethod
    def of(
        cls, hidden_size, heads, *, kv_heads=None, value_heads=None, head_dim=None, value_head_dim=None, rotary_base=None,
        factors=(1, None),
    ):  # fmt: skip
        """The sizes that these options of a layer stand for.

        Args:
          factors: of hidden_size / heads in the sizes that are not given, those of queries and keys, and of values; None for
            values of the size of the keys.
        """
        heads = check_size("heads", heads)
        key_heads = heads if kv_heads is None else check_size("kv_heads", kv_heads)
        check_divides("kv_heads", key_heads, "heads", heads)
        value_heads = key_heads if value_heads is None else check_size("value_heads", value_heads)
        check_divides("heads", key_heads, "value_heads", value_heads)
        sizes = []
        for name, given, factor in zip(("head_dim", "value_head_dim"), (head_dim, value_head_dim), factors):
            if given is not None:
                sizes.append(check_size(name, given))
            elif factor is None:
                sizes.append(sizes[0])
            else:
                size = hidden_size // check_divides("heads", heads, "hidden_size", hidden_size)
                sizes.append(max(int(size * factor), 1))
        if rotary_base is not None and sizes[0] % 2:
            raise ValueError(f"head_dim: expected an even number with rotary_base, but got {sizes[0]}")
        return cls(heads, key_heads, value_heads, *sizes)

    @property
    def output(self):
        """The features of all heads of the result."""
        return max(self.heads, self.value_heads) * self.value_head_dim

    @property
    def projected(self):
        """The features of queries, keys and values by name."""
        return {
            "q": self.heads * self.head_dim, "k": self.key_heads * self.head_dim, "v": self.value_heads * self.value_head_dim,
        }  # fmt: skip


def mamba2_sizes(hidden_size, heads, head_dim, state_size, expand, groups):
    """(features of all heads, channels of the short convolution, heads) of a Mamba-2 mixer."""
    head_dim, state_size = check_size("head_dim", head_dim), check_size("state_size", state_size)
    width = int(expand * hidden_size)
    heads = width // head_dim if heads is None else check_size("heads", heads)
    if heads * head_dim != width:
        raise ValueError(f"heads: expected expand * hidden_size / head_dim = {width} / {head_dim}, but got {heads}")
    check_divides("groups", check_size("groups", groups), "heads", heads)
    return width, width + 2 * groups * state_size, heads


def rwkv7_heads(hidden_size, heads, head_dim):
    """(heads, the size of a head) of RWKV-7; `heads` goes before `head_dim`."""
    if heads is not None:
        head_dim = hidden_size // check_divides("heads", check_size("heads", heads), "hidden_size", hidden_size)
    check_divides("head_dim", check_size("head_dim", head_dim), "hidden_size", hidden_size)
    return hidden_size // head_dim, head_dim


def count_random_features(features, head_dim):
    """The features of a Performer: d · log d of a head of size d unless given."""
    return max(1, int(head_dim * math.log(head_dim))) if features is None else check_size("features", features)
