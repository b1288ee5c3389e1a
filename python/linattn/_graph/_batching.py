"""Batches of calls: one call with more sequences where possible."""

from __future__ import annotations

from . import _layouts

__all__ = ["Batch"]

class Batch:
    """Arrays of calls that differ in them alone.

    Args:
      call: a `Call`.
      size: of the batch.
      arrays: operands and state, then results that a gradient keeps and cotangents of some, with
        the size of the batch in front of, or among, their dimensions.
      dims: where it is; None for an array that all calls share.
      namespace: `torch` or `jax.numpy`.
      given: which results have cotangents.
      needed: of which operands and parts of the state a gradient is returned.
    """

    def __init__(self, call, size, arrays, dims, namespace, given=(), needed=()):
        self.call, self.size, self.namespace = call, size, namespace
        # The batch in front.
        self.arrays = [x if dim is None else namespace.moveaxis(x, dim, 0) for x, dim in zip(arrays, dims)]
        self.shared = [dim is None for dim in dims]
        self.given, self.needed = given, needed

    def map(self, function, loop):
        """The results of all calls, the batch in front. `loop` makes a call for each element
        where one call cannot make all."""
        folded = self._fold()
        if folded is None:
            return loop(self, function)
        arrays, outer = folded
        return [result.reshape((self.size, outer, *result.shape[1:])) for result in function(arrays)]

    def select(self, index):
        """The arrays of one element of the batch."""
        return [x if is_shared else x[index] for x, is_shared in zip(self.arrays, self.shared)]

    def _fold(self):
        """The arrays with the batch as more sequences, and how many sequences there were; None
        where an array has no sequences, or no dimension separates them."""
        inputs = len(self.call.names)
        if not self.call.recipe.has_state:
            inputs = len(self.call.recipe.operands)
        if "offsets" in self.call.roles or "counts" in self.call.roles:
            return None
        shapes = [x.shape if is_shared else x.shape[1:] for x, is_shared in zip(self.arrays, self.shared)]
        binding = self.call.bind(shapes[:inputs])
        foldable = [_layouts.has_sequences(layout) for layout in binding.layouts]
        gradients = [is_foldable for is_foldable, is_needed in zip(foldable, self.needed) if is_needed]
        # Of one sequence without its dimension the results have none either.
        results = [_layouts.has_sequences(layout) for layout in _layouts.result_layouts(self.call.recipe, binding)]
        if not all(gradients) or not all(results):
            return None
        if self.given and self.call.recipe.keeps_results:
            foldable += [True] * len(results)
        foldable += [True for is_given in self.given if is_given]
        arrays = []
        for x, is_shared, is_foldable in zip(self.arrays, self.shared, foldable):
            if is_foldable:
                x = self.namespace.broadcast_to(x, (self.size, *x.shape)) if is_shared else x
                x = x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
            elif not is_shared:
                return None
            arrays.append(x)
        return arrays, binding.extents["B"] if "B" in binding.extents else binding.extents["N"]
