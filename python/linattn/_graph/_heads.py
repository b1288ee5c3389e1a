"""Repeats shared heads to one head for each user, and reduces them again."""

from __future__ import annotations

from . import _layouts

__all__ = ["Heads"]


class Heads:
    """The numbers of heads of a call, where they differ.

    Args:
      binding: the `Binding` of the call.
      namespace: `torch` or `jax.numpy`.
    """

    def __init__(self, binding, namespace):
        counts = {name: extent for name, extent in binding.extents.items() if _layouts.kind(name) == "head"}
        self.most = max(counts.values(), default=1)
        self.counts = counts
        self.differ = any(count != self.most for count in counts.values())
        self.namespace = namespace

    def shape(self, layout, shape):
        """A shape with the repeated number of heads."""
        return [self.most if word in self.counts else size for word, size in zip(layout.user, shape)]

    def _shared(self, layout):
        """The dimensions of shared heads."""
        return [i for i, word in enumerate(layout.user) if self.counts.get(word, self.most) != self.most]

    def _split(self, array, i):
        """The shape before dimension `i`, its heads and the users of each, and the shape after it.
        """
        return array.shape[:i], array.shape[i], self.most // array.shape[i], array.shape[i + 1 :]

    def repeat(self, layout, array):
        """Repeats each head for all its users."""
        for i in self._shared(layout):
            before, heads, sharing, after = self._split(array, i)
            array = array.reshape((*before, heads, 1, *after))
            array = self.namespace.broadcast_to(array, (*before, heads, sharing, *after))
            array = array.reshape((*before, self.most, *after))
        return array

    def place(self, layout, array):
        """The cotangent of a result with shared heads: the first of the equal heads receives it."""
        for i in self._shared(layout):
            before, heads, sharing, after = self._split(array, i)
            array = array.reshape((*before, heads, 1, *after))
            zeros = self.namespace.zeros_like(array)
            array = self.namespace.concatenate([array, *[zeros] * (sharing - 1)], axis=i + 1)
            array = array.reshape((*before, self.most, *after))
        return array

    def gather(self, layout, gradient):
        """Sums over the users of each head."""
        for i in self._shared(layout):
            count = self.counts[layout.user[i]]
            before, after = gradient.shape[:i], gradient.shape[i + 1 :]
            gradient = gradient.reshape((*before, count, self.most // count, *after)).sum(i + 1)
        return gradient
