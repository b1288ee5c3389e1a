"""Heads that others share, as a head for each of them, and back."""

from __future__ import annotations

from . import _layouts

__all__ = ["Heads"]


class Heads:
    """The numbers of heads of a call, where they differ.

    Args:
      binding: the `Binding` of the call.
    """

    def __init__(self, binding):
        counts = {name: extent for name, extent in binding.extents.items() if _layouts.kind(name) == "head"}
        self.most = max(counts.values(), default=1)
        self.counts = counts
        self.differ = any(count != self.most for count in counts.values())

    def shape(self, layout, shape):
        """A shape with a head for each."""
        return [self.most if word in self.counts else size for word, size in zip(layout.user, shape)]

    def _shared(self, layout):
        """The dimensions that count too few heads."""
        return [i for i, word in enumerate(layout.user) if self.counts.get(word, self.most) != self.most]

    def spread(self, layout, tensor):
        """The tensor with each head as often as others share it."""
        for i in self._shared(layout):
            tensor = tensor.repeat_interleave(self.most // tensor.shape[i], i)
        return tensor

    def place(self, layout, tensor):
        """The cotangent of a result that has fewer heads: the first of equal ones has it."""
        for i in self._shared(layout):
            shape = [*tensor.shape[: i + 1], self.most // tensor.shape[i], *tensor.shape[i + 1 :]]
            placed = tensor.new_zeros(shape)
            placed.select(i + 1, 0).copy_(tensor)
            tensor = placed.flatten(i, i + 1)
        return tensor

    def gather(self, layout, gradient):
        """The sums over the heads that share one."""
        for i in self._shared(layout):
            count = self.counts[layout.user[i]]
            gradient = gradient.unflatten(i, (count, self.most // count)).sum(i + 1)
        return gradient
