"""Calls of a batch: as one call where a sequence more is all that they are."""

from __future__ import annotations

import torch

from . import _layouts

__all__ = ["Batch", "select"]


def select(arrays, dims, index):
    """The arrays of one element of a batch."""
    return [x if dim is None else x.select(dim, index) for x, dim in zip(arrays, dims)]


class Batch:
    """Arrays of calls that differ in them alone.

    Args:
      call: a `Call`.
      size: of the batch.
      arrays: operands and state, then cotangents of some results, with the size of the batch
        in front of, or among, their dimensions.
      dims: where it is; None for an array that all calls share.
      given: which results have cotangents.
      wanted: of which operands and parts of the state a gradient is returned.
    """

    def __init__(self, call, size, arrays, dims, given=(), wanted=()):
        self.call, self.size, self.arrays, self.dims = call, size, arrays, dims
        self.given, self.wanted = given, wanted

    def map(self, function):
        """The results of all calls, the batch in front."""
        folded = self._fold()
        if folded is None:
            found = [function(select(self.arrays, self.dims, index)) for index in range(self.size)]
            return [torch.stack(parts) for parts in zip(*found)]
        arrays, outer = folded
        return [result.unflatten(0, (self.size, outer)) for result in function(arrays)]

    def _fold(self):
        """The arrays with the batch as more sequences, and how many sequences there were; None
        where an array has no sequences, or they are not told apart by a dimension."""
        inputs = len(self.call.names)
        if not self.call.recipe.has_state:
            inputs = len(self.call.recipe.operands)
        if "offsets" in self.call.roles or "counts" in self.call.roles:
            return None
        front = [x if dim is None else x.movedim(dim, 0) for x, dim in zip(self.arrays, self.dims)]
        shapes = [x.shape if dim is None else x.shape[1:] for x, dim in zip(front, self.dims)]
        binding = self.call.bind(shapes[:inputs])
        firsts = [layout.user[:1] for layout in binding.layouts]
        results = _layouts.results(self.call.recipe, binding)
        if self.given:
            firsts += [["B"] for _, is_given in zip(results, self.given) if is_given]
        # Of one sequence without its dimension the results have none either.
        if binding.output is not None and binding.output.user[0] != "B":
            return None
        gradients = [first for first, is_wanted in zip(firsts, self.wanted) if is_wanted]
        if any(first not in (["B"], ["N"]) for first in gradients):
            return None
        arrays = []
        for x, dim, first in zip(front, self.dims, firsts):
            if first not in (["B"], ["N"]):
                if dim is not None:
                    return None
            else:
                x = x.unsqueeze(0).expand(self.size, *x.shape) if dim is None else x
                x = x.flatten(0, 1)
            arrays.append(x)
        return arrays, binding.extents["B"] if "B" in binding.extents else binding.extents["N"]
