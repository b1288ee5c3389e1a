"""The primitives: shapes, batching, gradients, and their lowering to a foreign call of XLA."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, xla

from .. import _linattn
from .._graph import _gradient
from .._graph._batching import Batch
from .._graph._calls import find
from .._graph._layouts import result_layouts
from ._partitioning import partitioned
from ._programs import TARGET, describe_results, gradient_program, run_program

try:  # Primitives that are lowered for devices that are known by then.
    from jax._src.dispatch import prim_requires_devices_during_lowering as _for_known_devices
except ImportError:  # Calls on several devices then gather all sequences on each.
    _for_known_devices = set()

__all__ = ["find_varying", "run", "vary"]

jax.ffi.register_ffi_target(TARGET, _linattn.xla_handler(), platform="cpu")

# Operands and state -> results.
_run_p = Primitive("linattn_run")
# Operands, state and the cotangents that are given -> the gradients that are needed.
_backward_p = Primitive("linattn_run_backward")


# ----------------------------------------------------------------------------
# Foreign calls
# ----------------------------------------------------------------------------


def _run(*arrays, call, num_threads):
    name, program = run_program(call, arrays, num_threads)
    # The final state may have the memory of the initial one, once that is donated.
    aliases = {} if program is None else dict(program.aliases)
    results = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in describe_results(find(call), arrays)]
    return jax.ffi.ffi_call(TARGET, results, input_output_aliases=aliases)(*arrays, program=name)


def _backward(*arrays, call, given, needed, num_threads):
    found = find(call)
    inputs = len(arrays) - sum(given)
    arrays, cotangents = arrays[:inputs], arrays[inputs:]
    _, binding, heads = _gradient.compile(found, arrays, needed, jnp)
    if heads is not None:
        arrays = [heads.repeat(layout, array) for layout, array in zip(binding.layouts, arrays)]
        layouts = [x for x, is_given in zip(result_layouts(found.recipe, binding), given) if is_given]
        cotangents = [heads.place(layout, cotangent) for layout, cotangent in zip(layouts, cotangents)]
    results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x, is_needed in zip(arrays, needed) if is_needed]
    name, _ = gradient_program(call, arrays, given, needed, num_threads)
    gradients = jax.ffi.ffi_call(TARGET, results)(*arrays, *cotangents, program=name)
    if heads is None:
        return gradients
    chosen = [layout for layout, is_needed in zip(binding.layouts, needed) if is_needed]
    return [heads.gather(layout, gradient) for layout, gradient in zip(chosen, gradients)]


# ----------------------------------------------------------------------------
# Shapes
# ----------------------------------------------------------------------------


@_run_p.def_abstract_eval
def _(*arrays, call, num_threads):
    results = describe_results(find(call), arrays)
    return [jax.core.ShapedArray(tuple(shape), jnp.dtype(dtype)) for dtype, shape in results]


@_backward_p.def_abstract_eval
def _(*arrays, call, given, needed, num_threads):
    return [jax.core.ShapedArray(x.shape, x.dtype) for x, is_needed in zip(arrays, needed) if is_needed]


# ----------------------------------------------------------------------------
# Batches
# ----------------------------------------------------------------------------


def _loop(batch, function):
    """Makes a call for each element of a batch."""

    def body(mine):
        mine = iter(mine)
        return function([x if is_shared else next(mine) for x, is_shared in zip(batch.arrays, batch.shared)])

    return jax.lax.map(body, [x for x, is_shared in zip(batch.arrays, batch.shared) if not is_shared])


def _batch(primitive, arrays, dims, **options):
    size = next(x.shape[dim] for x, dim in zip(arrays, dims) if dim is not None)
    given, needed = options.get("given", ()), options.get("needed", ())
    batch = Batch(find(options["call"]), size, arrays, dims, jnp, given, needed)
    found = batch.map(lambda arrays: primitive.bind(*arrays, **options), _loop)
    return found, [0] * len(found)


def _lower(function, ctx, *values, **options):
    """Lowers to the foreign call, on each device for its own sequences."""

    def call_it(*arrays):
        return list(function(*arrays, **options))

    context = ctx.module_context.axis_context
    if getattr(context, "num_devices", 1) > 1 and getattr(context, "device_assignment", None) is not None:
        given, needed = options.get("given", ()), options.get("needed")
        call_it = partitioned(call_it, find(options["call"]), ctx.avals_in, ctx.avals_out, given, needed)
    return mlir.lower_fun(call_it, multiple_results=True)(ctx, *values)


for _primitive, _function in ((_run_p, _run), (_backward_p, _backward)):
    _primitive.multiple_results = True
    _primitive.def_impl(partial(xla.apply_primitive, _primitive))
    mlir.register_lowering(_primitive, partial(_lower, _function), platform="cpu")
    _for_known_devices.add(_primitive)
    batching.primitive_batchers[_primitive] = partial(_batch, _primitive)


# ----------------------------------------------------------------------------
# Gradients
# ----------------------------------------------------------------------------


@jax.tree_util.register_static
class _Differentiated(tuple):
    """The operands and parts of the state to differentiate by."""


def run(call, num_threads, arrays):
    """The results of a call with operands and state.

    In a function of `jax.shard_map`, an operand that is the same on all devices becomes one that
    may differ, as the others do: its gradient is then a sum over the devices."""
    return _run_alike(call, num_threads, vary(arrays, find_varying(arrays)))


def find_varying(arrays):
    """The mesh axes along which some of the arrays differ between devices."""
    axes = set()
    for array in arrays:
        kind = jax.typeof(array)
        axes |= getattr(getattr(kind, "manual_axis_type", None), "varying", None) or getattr(kind, "vma", frozenset())
    return axes


def vary(arrays, axes):
    """Marks arrays as varying along these axes."""
    if not axes:
        return list(arrays)
    return [jax.lax.pcast(x, tuple(sorted(axes - find_varying([x]))), to="varying") for x in arrays]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _run_alike(call, num_threads, arrays):
    return vary(_run_p.bind(*arrays, call=call, num_threads=num_threads), find_varying(arrays))


def _forward(call, num_threads, arrays):
    needed = _Differentiated(array.perturbed for array in arrays)
    arrays = [array.value for array in arrays]
    return _run_alike(call, num_threads, arrays), (needed, arrays)


def _pull_back(call, num_threads, kept, cotangents):
    needed, arrays = kept
    given = tuple(not isinstance(x, jax.custom_derivatives.SymbolicZero) for x in cotangents)
    cotangents = [x for x, is_given in zip(cotangents, given) if is_given]
    if not any(needed) or not any(given):
        return ([None] * len(needed),)
    _gradient.check(find(call), arrays, needed)
    gradients = _backward_p.bind(
        *arrays, *cotangents, call=call, given=given, needed=tuple(needed), num_threads=num_threads
    )
    gradients = iter(vary(gradients, find_varying(arrays)))
    return ([next(gradients) if is_needed else None for is_needed in needed],)


_run_alike.defvjp(_forward, _pull_back, symbolic_zeros=True)


def _refuse_second(arrays, tangents, *, call, **options):
    _gradient.refuse_second(find(call).what)


ad.primitive_jvps[_backward_p] = _refuse_second
