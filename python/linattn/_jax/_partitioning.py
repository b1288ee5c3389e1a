"""Calls with sequences on several devices, each of which runs its own sequences."""

from __future__ import annotations

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from .._graph import _layouts

__all__ = ["partitioned"]


def _find_batched(call, shapes, given, needed):
    """Which arrays, and which results, have sequences first; None where they are not distinguished
    apart by a dimension. A gradient without it is a sum over all sequences."""
    if "offsets" in call.roles:
        return None
    binding = call.bind(shapes)
    batched = [_layouts.has_sequences(layout) for layout in binding.layouts]
    results = [_layouts.has_sequences(layout) for layout in _layouts.result_layouts(call.recipe, binding)]
    if not batched[0] or not all(results):
        return None
    if needed is not None:
        batched += [True for is_given in given if is_given]
        results = [is_batched for is_batched, is_needed in zip(batched, needed) if is_needed]
    return batched, results


def _rule(ranks, batched):
    """The rule's names of dimensions: "b" for sequences in all arrays, unique names for others."""
    words, others = [], []
    for rank, is_batched in zip(ranks, batched):
        names = [f"d{len(others) + i}" for i in range(rank - is_batched)]
        others += names
        words.append(" ".join((["b"] if is_batched else []) + names))
    return words, others


def partitioned(function, call, arrays, results, given=(), needed=None):
    """The function as one whose sequences may be on several devices, or as it is where a call
    needs them all.

    Args:
      function: of the arrays of a call.
      call: the `Call`.
      arrays, results: what has the shapes of its arguments and results.
    """
    inputs = len(arrays) - sum(given)
    batched = _find_batched(call, [array.shape for array in arrays[:inputs]], given, needed)
    if batched is None:
        return function
    first, second = batched
    words, others = _rule([len(x.shape) for x in (*arrays, *results)], first + second)
    rule = f"{', '.join(words[: len(arrays)])} -> {', '.join(words[len(arrays) :])}"

    def partition(mesh, arg_shapes, result_shapes):
        spec = arg_shapes[0].sharding.spec
        axis = spec[0] if len(spec) else None

        def place(is_batched):
            return NamedSharding(mesh, PartitionSpec(axis) if is_batched else PartitionSpec())

        def run_mine(*arrays):
            found = function(*arrays)
            if axis is None:
                return found
            return [x if is_batched else jax.lax.psum(x, axis) for x, is_batched in zip(found, second)]

        return mesh, run_mine, [place(x) for x in second], tuple(place(x) for x in first)

    wrapped = custom_partitioning(lambda *arrays: function(*arrays))
    wrapped.def_partition(partition, sharding_rule=rule, need_replication_factors=tuple(others))
    return wrapped
