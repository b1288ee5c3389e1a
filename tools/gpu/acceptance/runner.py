"""Launches whose views are made once, with linattn_runner: a graph or a loop of many launches
measures the kernel, not Python."""

import ctypes

from linattn_runner._library import DTYPES, View, check, library

__all__ = ["bind"]


def bind(kernel, views, allocate):
    """A function of a stream that launches on these views, (address, shape, strides, dtype)
    each, arguments and then results. `allocate` gives the address of that many bytes, which
    live as long as the caller sees to it."""
    array, keep = (View * len(views))(), []
    for slot, (address, shape, strides, dtype) in zip(array, views):
        extents = (ctypes.c_int64 * len(shape))(*shape)
        steps = (ctypes.c_int64 * len(strides))(*strides)
        keep += [extents, steps]
        slot.data, slot.shape, slot.strides = address, ctypes.addressof(extents), ctypes.addressof(steps)
        slot.rank, slot.dtype = len(shape), DTYPES.index(dtype)
    handle, count, size = kernel._handle, len(views), ctypes.c_size_t()
    check(library.linattn_kernel_workspace_size(handle, array, count, ctypes.byref(size)))
    workspace = allocate(size.value) if size.value else None

    def launch(stream, keep=keep, kernel=kernel):
        error = library.linattn_kernel_launch(handle, array, count, workspace, size, stream)
        if error:
            check(error)

    return launch
