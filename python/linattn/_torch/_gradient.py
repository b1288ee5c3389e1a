"""Gradients of tensors."""

from __future__ import annotations

import torch

from .._core._arrays import dtype_name
from .._graph import _gradient
from .._graph._layouts import result_layouts
from . import _places

__all__ = ["compile", "run"]


def compile(call, arrays, needed):
    """The kernel for the gradients of some tensors (`_graph._gradient.compile`)."""
    return _gradient.compile(call, arrays, needed, torch, arrays[0].device.type == "cuda")


def _dense(cotangent):
    """With neighbouring elements in every row, which the fast kernels take: those of `o.sum()` are
    all one number."""
    return cotangent if cotangent.shape[-1] < 2 or cotangent.stride(-1) == 1 else cotangent.contiguous()


def run(call, arrays, cotangents, given, needed, num_threads):
    """The gradients of the operands, and of the parts of the state, that are needed.

    Args:
      arrays: the operands, then the state.
      cotangents: of the results for which `given` says so; the others are 0. Before them the results
        that are kept.
    """
    _gradient.check(call, arrays, needed)
    kernel, binding, heads = compile(call, arrays, needed)
    extents = binding.extents
    if heads is not None:
        arrays = [heads.repeat(layout, array) for layout, array in zip(binding.layouts, arrays)]
    views = [layout.to_logical(array, extents) for layout, array in zip(binding.layouts, arrays)]
    layouts = result_layouts(call.recipe, binding)
    cotangents = iter(cotangents)
    if call.recipe.keeps_results:
        views += [layout.to_logical(next(cotangents), extents) for layout in layouts]
    for layout, dtype, is_given in zip(layouts, call.result_dtypes(dtype_name(arrays[0])), given):
        if is_given:
            cotangent = _dense(next(cotangents))
            cotangent = cotangent if heads is None else heads.place(layout, cotangent)
        else:
            shape = layout.shape(extents)
            cotangent = arrays[0].new_zeros(shape[-1:], dtype=getattr(torch, dtype)).expand(shape)
        views.append(layout.to_logical(cotangent, extents))
    chosen = [array for array, is_needed in zip(arrays, needed) if is_needed]
    if heads is None:
        gradients = [_places.take_gradient(array) for array in chosen]
    else:
        gradients = [_places.empty(array.shape, array.dtype, array.device) for array in chosen]
    chosen = [layout for layout, is_needed in zip(binding.layouts, needed) if is_needed]
    out = tuple(layout.to_logical(gradient, extents) for layout, gradient in zip(chosen, gradients))
    kernel(*views, out=out, num_threads=num_threads)
    if heads is None:
        return gradients
    return [heads.gather(layout, gradient) for layout, gradient in zip(chosen, gradients)]
