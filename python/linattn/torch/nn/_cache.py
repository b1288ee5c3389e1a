"""The state of a layer between two calls."""

from __future__ import annotations

import weakref

import torch
from torch.utils import _pytree

__all__ = ["Cache"]


class Cache:
    """The recurrent state of a layer, the last inputs of its short convolutions, and how many
    tokens it has read. A new one is empty; the layer fills it.

        >>> cache = linattn.torch.nn.Cache()
        >>> y = layer(prompt, cache=cache)
        >>> y_next = layer(token, cache=cache)         # [B, 1, hidden_size]

    A cache belongs to the layer that is called with it first. Without gradients a call
    overwrites the tensors in it; `copy` keeps what they are now.

    `length` is the number of tokens read, an int, or int64 ``[N]`` after packed or padded
    sequences. `parts` are the tensors by name, rows of sequences first.
    """

    def __init__(self):
        self.parts = {}
        self.length = 0
        self._owner = None

    def get(self, name):
        """The part of that name, or None."""
        return self.parts.get(name)

    def copy(self):
        """An independent cache with the same contents, of the same layer."""
        return self._map(lambda tensor: tensor.clone())

    def select(self, rows):
        """The cache of some of the sequences, in the order of `rows`, an int64 tensor: those
        that a beam search goes on with."""
        return self._map(lambda tensor: tensor.index_select(0, rows.to(tensor.device)))

    def detach(self):
        """The same contents without the graph that computed them, for training on parts of a
        sequence."""
        return self._map(lambda tensor: tensor.detach().clone())

    def claim(self, layer):
        """Raises a ValueError if another layer has filled the cache."""
        if torch.compiler.is_compiling():
            return
        owner = None if self._owner is None else self._owner()
        if owner is None:
            self._owner = weakref.ref(layer)
        elif owner is not layer:
            raise ValueError(
                f"cache: expected one of this {type(layer).__name__}, but got that of another "
                f"{type(owner).__name__}; each layer has a cache of its own"
            )

    def advance(self, tokens):
        """Counts more tokens of every sequence."""
        self.length = self.length + tokens

    def _map(self, function):
        other = Cache()
        other._owner = self._owner
        other.length = function(self.length) if isinstance(self.length, torch.Tensor) else self.length
        for name, part in self.parts.items():
            other.parts[name] = _pytree.tree_map_only(torch.Tensor, function, part)
        return other

    def __repr__(self):
        return f"Cache(length={self.length}, parts={', '.join(self.parts) or 'none'})"
