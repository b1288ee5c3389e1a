"""Gradients, by kernels that are derived from those of the calls."""

from __future__ import annotations

import torch

from .. import _linattn
from .._checks import UnsupportedError
from .._plain import without_places
from . import _layouts
from ._grouped import Heads

__all__ = ["check", "compile", "run"]

_TYPES = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.bool: "i1",
    torch.int32: "i32", torch.int64: "i64",
}  # fmt: skip


def check(call, arrays, wanted):
    """Raises a ValueError for an operand that has no gradient by its nature."""
    for name, array, is_wanted in zip(call.names, arrays, wanted):
        if is_wanted and not array.dtype.is_floating_point:
            raise ValueError(f"{name}: expected a floating-point dtype to have a gradient, but got {array.dtype}")


def compile(call, arrays, wanted):
    """The kernel for the gradients of some operands, the `Binding` of what it takes, and the
    `Heads` that the operands must have for it, or None where they have them.

    Raises:
      UnsupportedError: the function, or an operand, has none yet.
    """
    binding = call.bind([array.shape for array in arrays])
    kernel = _find(call, binding, arrays, wanted)
    if not isinstance(kernel, str):
        return kernel, binding, None
    heads = Heads(binding)
    if heads.differ:  # Arithmetic around a recurrence may share heads in its own way.
        binding = call.bind([heads.shape(layout, array.shape) for layout, array in zip(binding.layouts, arrays)])
        kernel = _find(call, binding, arrays, wanted)
    if isinstance(kernel, str):
        raise UnsupportedError(kernel)
    return kernel, binding, heads


def _find(call, binding, arrays, wanted):
    """The kernel for arrays like these, or why there is none."""
    recipe, dtype = call.recipe, _TYPES[arrays[0].dtype]
    extents = {
        name: extent if _layouts.kind(name) in ("head", "feature") else None for name, extent in binding.extents.items()
    }
    types = [
        (alternative, len(layout.logical), _TYPES[array.dtype])
        for (_, role, _), alternative, layout, array in zip(recipe.operands, binding.alternatives, binding.layouts, arrays)
        if role != "tokens"
    ]
    indices = tuple(index for index, is_wanted in enumerate(wanted) if is_wanted)
    key = (dtype, tuple(extents.items()), tuple(types), indices)
    if key not in call.gradients:
        call.gradients[key] = _compile(call, arrays, dtype, extents, types, indices)
    return call.gradients[key]


def _compile(call, arrays, dtype, extents, types, indices):
    """A kernel, or why there is none."""
    recipe = call.recipe
    text = recipe.text(dtype, extents, types)
    target = recipe.resolve(arrays[0].device.type == "cuda")
    try:
        return _linattn.compile(text, "", f"<{recipe.what}>", target, differentiate=list(indices))
    except ValueError as error:
        names = ", ".join(call.names[index] for index in indices)
        return (
            f"{recipe.what}: expected a call that has the gradient of {names}, but got one without: "
            f"{without_places(error)}"
        )


def run(call, arrays, cotangents, given, wanted, num_threads):
    """The gradients of the operands, and of the parts of the state, that are wanted.

    Args:
      arrays: the operands, then the state.
      cotangents: of the results for which `given` says so; the others are 0.
    """
    check(call, arrays, wanted)
    kernel, binding, heads = compile(call, arrays, wanted)
    extents, recipe = binding.extents, call.recipe
    if heads is not None:
        arrays = [heads.spread(layout, array) for layout, array in zip(binding.layouts, arrays)]
    views = [layout.to_logical(array, extents) for layout, array in zip(binding.layouts, arrays)]
    layouts = [binding.output] if binding.output is not None else []
    if recipe.returns_state:
        layouts += [_layouts.parse(text)[0] for _, _, text in recipe.state]
    cotangents = iter(cotangents)
    for layout, dtype, is_given in zip(layouts, call.result_dtypes(arrays[0].dtype), given):
        if is_given:
            cotangent = next(cotangents)
            cotangent = cotangent if heads is None else heads.place(layout, cotangent)
        else:
            cotangent = arrays[0].new_zeros((), dtype=dtype).expand(layout.shape(extents))
        views.append(layout.to_logical(cotangent, extents))
    gradients = [array.new_empty(array.shape) for array, is_wanted in zip(arrays, wanted) if is_wanted]
    chosen = [layout for layout, is_wanted in zip(binding.layouts, wanted) if is_wanted]
    out = tuple(layout.to_logical(gradient, extents) for layout, gradient in zip(chosen, gradients))
    kernel(*views, out=out, num_threads=num_threads)
    if heads is None:
        return gradients
    return [heads.gather(layout, gradient) for layout, gradient in zip(chosen, gradients)]
