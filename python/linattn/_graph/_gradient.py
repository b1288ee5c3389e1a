"""Kernels of gradients, derived from those of the calls."""

from __future__ import annotations

from .. import _linattn
from .._core._arrays import dtype_name
from .._core._checks import UnsupportedError
from .._core._plain import without_places
from . import _layouts
from ._heads import Heads

__all__ = ["check", "compile", "refuse_second"]

_TYPES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "i1", "int32": "i32",
    "int64": "i64",
}  # fmt: skip

# Shapes of a call whose bindings are kept: those of a training's batches, not of all time.
_SHAPES = 64


def check(call, arrays, needed):
    """Raises a ValueError for an operand that cannot have a gradient, such as a mask."""
    for name, array, is_needed in zip(call.names, arrays, needed):
        if is_needed and "float" not in dtype_name(array):
            raise ValueError(f"{name}: expected a floating-point dtype to have a gradient, but got {array.dtype}")


def refuse_second(what):
    """Raises an UnsupportedError for a second derivative."""
    raise UnsupportedError(f"{what}: expected one derivative, but got a second one, which has no kernel")


def compile(call, arrays, needed, namespace, on_device=False):
    """The kernel for the gradients of some operands, the `Binding` of what it takes, and the
    `Heads` that the operands must have for it, or None where they have them.

    Args:
      arrays: operands and state, of which shapes and dtypes are looked at.
      namespace: `torch` or `jax.numpy`.

    Raises:
      UnsupportedError: the function, or an operand, has none yet.
    """
    key = (tuple([(*array.shape, array.dtype) for array in arrays]), tuple(needed), namespace, on_device)
    try:
        found = call.derived.get(key)
    except TypeError:  # Sizes that are symbols.
        return _derive(call, arrays, needed, namespace, on_device)
    if found is None:
        if len(call.derived) >= _SHAPES:
            call.derived.clear()
        found = call.derived[key] = _derive(call, arrays, needed, namespace, on_device)
    return found


def _derive(call, arrays, needed, namespace, on_device):
    """`compile`, from the beginning."""
    binding = call.bind([array.shape for array in arrays])
    kernel = _find(call, binding, arrays, needed, on_device)
    if not isinstance(kernel, str):
        return kernel, binding, None
    heads = Heads(binding, namespace)
    if heads.differ:  # Arithmetic around a recurrence may share heads in its own way.
        binding = call.bind([heads.shape(layout, array.shape) for layout, array in zip(binding.layouts, arrays)])
        kernel = _find(call, binding, arrays, needed, on_device)
    if isinstance(kernel, str):
        raise UnsupportedError(kernel)
    return kernel, binding, heads


def _find(call, binding, arrays, needed, on_device):
    """The kernel for arrays of these types and shapes, or the reason why there is none."""
    recipe, dtype = call.recipe, _TYPES[dtype_name(arrays[0])]
    extents = {
        name: extent if _layouts.kind(name) in ("head", "feature") or name in recipe.fixed else None
        for name, extent in binding.extents.items()
    }
    types = [
        (alternative, len(layout.logical), _TYPES[dtype_name(array)])
        for (_, role, _), alternative, layout, array in zip(recipe.operands, binding.alternatives, binding.layouts, arrays)
        if role != "tokens"
    ]
    indices = tuple(index for index, is_needed in enumerate(needed) if is_needed)
    key = (dtype, tuple(extents.items()), tuple(types), indices)
    if key not in call.gradients:
        call.gradients[key] = _compile(call, on_device, dtype, extents, types, indices)
    return call.gradients[key]


def _compile(call, on_device, dtype, extents, types, indices):
    """Compiles a kernel, or returns the reason why there is none."""
    recipe = call.recipe
    target = recipe.resolve(on_device)
    text = (recipe.device_gradient if target.startswith("nvvm") else recipe.text)(dtype, extents, types)
    try:
        return _linattn.compile(text, "", f"<{recipe.what}>", target, differentiate=list(indices))
    except ValueError as error:
        names = ", ".join(call.names[index] for index in indices)
        return (
            f"{recipe.what}: expected a call that has the gradient of {names}, but got one without: "
            f"{without_places(error)}"
        )
