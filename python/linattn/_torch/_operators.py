"""The operators: kernels, meta functions, gradients, batching, autocast."""

from __future__ import annotations

import torch

from .._core._arrays import dtype_name
from .._core._checks import UnsupportedError
from .._graph._batching import Batch
from .._graph._calls import find
from .._graph._gradient import check, refuse_second
from .._graph._layouts import results
from . import _gradient, _places

__all__ = ["run", "run_", "run_backward", "transform"]

_library = torch.library.Library("linattn", "DEF")
_TAGS = (torch.Tag.pt2_compliant_tag,)
_library.define("run(str call, Tensor[] operands, Tensor[] state, int? num_threads=None) -> Tensor[]", tags=_TAGS)
_library.define("run_(str call, Tensor[] operands, Tensor(a!)[] state, int? num_threads=None) -> Tensor", tags=_TAGS)
_library.define(
    "run_backward(str call, Tensor[] operands, Tensor[] state, Tensor[] cotangents, bool[] given, bool[] needed, "
    "int? num_threads=None) -> Tensor[]",
    tags=_TAGS,
)
run = torch.ops.linattn.run.default
run_ = torch.ops.linattn.run_.default
run_backward = torch.ops.linattn.run_backward.default
_NAMES = ("linattn::run", "linattn::run_", "linattn::run_backward")

_NEVER, _ALWAYS = False, 2


# ----------------------------------------------------------------------------
# Kernels
# ----------------------------------------------------------------------------


def _plain(tensor):
    """The tensor without autograd, which has recorded the operator above this level."""
    if type(tensor) is torch.Tensor and not tensor.requires_grad:
        return tensor
    return tensor.detach().as_subclass(torch.Tensor)


def _run(call, operands, state, num_threads=None):
    call = find(call)
    state = tuple([_plain(part) for part in state]) if state else None
    result = call.plan.run(tuple([_plain(x) for x in operands]), state, _places.take_output(), _NEVER, num_threads)
    if not isinstance(result, tuple):
        return [result]
    return list(result) if call.recipe.output is not None else list(result[1:])


def _run_in_place(call, operands, state, num_threads=None):
    call = find(call)
    state = tuple([_plain(part) for part in state])
    result = call.plan.run(tuple([_plain(x) for x in operands]), state, None, _ALWAYS, num_threads)
    for mine, final in zip(state, result[1:]):
        if final is not mine:
            mine.copy_(final)
    return result[0]


def _run_backward(call, operands, state, cotangents, given, needed, num_threads=None):
    arrays = [_plain(x) for x in (*operands, *state)]
    return _gradient.run(find(call), arrays, [_plain(x) for x in cotangents], given, needed, num_threads)


for _key in ("CPU", "CUDA"):
    for _name, _kernel in zip(_NAMES, (_run, _run_in_place, _run_backward)):
        _library.impl(_name, _kernel, _key)


# ----------------------------------------------------------------------------
# Shapes
# ----------------------------------------------------------------------------


def _make_results(call, operands, state):
    call, first = find(call), operands[0]
    shapes = results(call.recipe, call.bind([x.shape for x in (*operands, *state)]))
    dtypes = call.result_dtypes(dtype_name(first))
    return [first.new_empty(shape, dtype=getattr(torch, dtype)) for (_, shape), dtype in zip(shapes, dtypes)]


@torch.library.register_fake("linattn::run", lib=_library)
def _(call, operands, state, num_threads=None):
    return _make_results(call, operands, state)


@torch.library.register_fake("linattn::run_", lib=_library)
def _(call, operands, state, num_threads=None):
    return _make_results(call, operands, state)[0]


@torch.library.register_fake("linattn::run_backward", lib=_library)
def _(call, operands, state, cotangents, given, needed, num_threads=None):
    return [x.new_empty(x.shape) for x, is_needed in zip((*operands, *state), needed) if is_needed]


# ----------------------------------------------------------------------------
# Gradients
# ----------------------------------------------------------------------------


def _kept(call, results):
    """The results that the gradient needs beside the operands."""
    return results if find(call).recipe.keeps_results else ()


def _pull_back(ctx, backward, needed, cotangents):
    """The gradients of the saved arrays; None for those that are not needed."""
    saved = ctx.saved_tensors
    arrays, kept = saved[: len(needed)], saved[len(needed) :]
    check(find(ctx.call), arrays, needed)
    given = [x is not None for x in cotangents]
    cotangents = [*kept, *(x for x in cotangents if x is not None)]
    found = iter(
        backward(ctx.call, arrays[: ctx.split], arrays[ctx.split :], cotangents, given, needed, ctx.num_threads)
    )
    return [next(found) if is_needed else None for is_needed in needed]


class _Recorded(torch.autograd.Function):
    """`run` with a gradient, below the key of autograd."""

    @staticmethod
    def forward(ctx, keys, call, split, num_threads, *arrays):
        ctx.call, ctx.split, ctx.num_threads = call, split, num_threads
        ctx.set_materialize_grads(False)
        with torch._C._AutoDispatchBelowAutograd():
            results = tuple(run.redispatch(keys, call, list(arrays[:split]), list(arrays[split:]), num_threads))
        ctx.save_for_backward(*arrays, *_kept(call, results))
        return results

    @staticmethod
    def backward(ctx, *cotangents):
        return None, None, None, None, *_pull_back(ctx, run_backward, list(ctx.needs_input_grad[4:]), cotangents)


class _RecordedTwice(torch.autograd.Function):
    """`run_backward`, whose derivative is an error."""

    @staticmethod
    def forward(ctx, keys, call, splits, given, needed, num_threads, *arrays):
        ctx.what = find(call).what
        first, second = splits
        groups = list(arrays[:first]), list(arrays[first:second]), list(arrays[second:])
        with torch._C._AutoDispatchBelowAutograd():
            return tuple(run_backward.redispatch(keys, call, *groups, given, needed, num_threads))

    @staticmethod
    def backward(ctx, *cotangents):
        refuse_second(ctx.what)


_HERE = {torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA}


def _is_recorded(*arrays):
    if not torch.is_grad_enabled() or not torch._C._any_requires_grad(*arrays):
        return False
    if torch._C._are_functorch_transforms_active():
        raise UnsupportedError(
            "torch.ops.linattn: expected a call that no transform of torch.func differentiates, but got one; the "
            "functions of linattn can be differentiated so"
        )
    return True


def _run_recording(keys, call, operands, state, num_threads=None):
    keys = keys & torch._C._after_autograd_keyset
    if _is_recorded(operands, state):
        return list(_Recorded.apply(keys, call, len(operands), num_threads, *operands, *state))
    if keys.highestPriorityTypeId() in _HERE:  # The next kernel is the last one.
        return _run(call, operands, state, num_threads)
    with torch._C._AutoDispatchBelowAutograd():
        return run.redispatch(keys, call, operands, state, num_threads)


def _run_backward_recording(keys, call, operands, state, cotangents, given, needed, num_threads=None):
    keys = keys & torch._C._after_autograd_keyset
    if _is_recorded(operands, state, cotangents):
        splits = len(operands), len(operands) + len(state)
        arrays = (*operands, *state, *cotangents)
        return list(_RecordedTwice.apply(keys, call, splits, given, needed, num_threads, *arrays))
    with torch._C._AutoDispatchBelowAutograd():
        return run_backward.redispatch(keys, call, operands, state, cotangents, given, needed, num_threads)


_library.impl("linattn::run", _run_recording, "Autograd", with_keyset=True)
_library.impl("linattn::run_backward", _run_backward_recording, "Autograd", with_keyset=True)


class _Transformed(torch.autograd.Function):
    """`run` as the transforms of torch.func take it, which go from level to level."""

    @staticmethod
    def forward(call, split, num_threads, *arrays):
        return tuple(run(call, arrays[:split], arrays[split:], num_threads))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.call, ctx.split, ctx.num_threads, *arrays = inputs
        ctx.save_for_backward(*arrays, *_kept(ctx.call, output))
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, *cotangents):
        return None, None, None, *_pull_back(ctx, _transform_backward, list(ctx.needs_input_grad[3:]), cotangents)

    @staticmethod
    def vmap(info, in_dims, call, split, num_threads, *arrays):
        batch = Batch(find(call), info.batch_size, arrays, in_dims[3:], torch)
        found = batch.map(lambda arrays: transform(call, arrays[:split], arrays[split:], num_threads), _loop)
        return tuple(found), (0,) * len(found)


class _TransformedTwice(torch.autograd.Function):
    """`run_backward`, likewise."""

    @staticmethod
    def forward(call, splits, given, needed, num_threads, *arrays):
        first, second = splits
        return tuple(run_backward(call, arrays[:first], arrays[first:second], arrays[second:], given, needed, num_threads))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.what = find(inputs[0]).what

    @staticmethod
    def backward(ctx, *cotangents):
        refuse_second(ctx.what)

    @staticmethod
    def vmap(info, in_dims, call, splits, given, needed, num_threads, *arrays):
        first, second = splits
        batch = Batch(find(call), info.batch_size, arrays, in_dims[5:], torch, given, needed)
        found = batch.map(
            lambda arrays: _transform_backward(
                call, arrays[:first], arrays[first:second], arrays[second:], given, needed, num_threads
            ),
            _loop,
        )
        return tuple(found), (0,) * len(found)


def transform(call, operands, state, num_threads):
    """`run` where a transform of torch.func may be active."""
    if not torch._C._are_functorch_transforms_active():
        return run(call, operands, state, num_threads)
    return list(_Transformed.apply(call, len(operands), num_threads, *operands, *state))


def _transform_backward(call, operands, state, cotangents, given, needed, num_threads):
    if not torch._C._are_functorch_transforms_active():
        return run_backward(call, operands, state, cotangents, given, needed, num_threads)
    splits = len(operands), len(operands) + len(state)
    return list(
        _TransformedTwice.apply(call, splits, tuple(given), tuple(needed), num_threads, *operands, *state, *cotangents)
    )


# ----------------------------------------------------------------------------
# Batches, autocast
# ----------------------------------------------------------------------------


def _loop(batch, function):
    """Makes a call for each element of a batch."""
    return [torch.stack(parts) for parts in zip(*map(function, map(batch.select, range(batch.size))))]


@torch.library.register_vmap("linattn::run", lib=_library)
def _(info, in_dims, call, operands, state, num_threads=None):
    batch = Batch(find(call), info.batch_size, [*operands, *state], [*in_dims[1], *in_dims[2]], torch)
    split = len(operands)
    found = batch.map(lambda arrays: run(call, arrays[:split], arrays[split:], num_threads), _loop)
    return found, [0] * len(found)


@torch.library.register_vmap("linattn::run_", lib=_library)
def _(info, in_dims, call, operands, state, num_threads=None):
    if any(dim is None for dim in in_dims[2]):
        raise ValueError("initial_state: expected one for each element of the batch to update in place, but got one for all")
    split = len(operands)
    batch = Batch(find(call), info.batch_size, [*operands, *state], [*in_dims[1], *in_dims[2]], torch)
    outputs = []
    for index in range(info.batch_size):
        arrays = batch.select(index)
        outputs.append(run_(call, arrays[:split], arrays[split:], num_threads))
    return torch.stack(outputs), 0


@torch.library.register_vmap("linattn::run_backward", lib=_library)
def _(info, in_dims, call, operands, state, cotangents, given, needed, num_threads=None):
    split = len(operands)
    inputs = len(operands) + len(state)
    batch = Batch(
        find(call), info.batch_size, [*operands, *state, *cotangents], [*in_dims[1], *in_dims[2], *in_dims[3]], torch,
        given, needed,
    )  # fmt: skip
    found = batch.map(
        lambda arrays: run_backward(
            call, arrays[:split], arrays[split:inputs], arrays[inputs:], given, needed, num_threads
        ),
        _loop,
    )
    return found, [0] * len(found)


def _autocast(operator, device):
    """Tokens of several dtypes get that of the region, as gates and states keep theirs; tokens
    of one dtype are computed with as they are, with or without autocast."""
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{'CPU' if device == 'cpu' else 'CUDA'}"))

    def cast(call, operands, state, num_threads=None):
        roles = find(call).roles
        dtypes = {x.dtype for x, role in zip(operands, roles) if role == "tokens"}
        with torch._C._ExcludeDispatchKeyGuard(key):
            if len(dtypes) > 1:
                dtype = torch.get_autocast_dtype(device)
                operands = [x.to(dtype) if role == "tokens" else x for x, role in zip(operands, roles)]
            return operator(call, operands, state, num_threads)

    return cast


for _device, _key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
    _library.impl("linattn::run", _autocast(run, _device), _key)
    _library.impl("linattn::run_", _autocast(run_, _device), _key)
