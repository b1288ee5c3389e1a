"""Loaded bundles."""

import ctypes
import json
import os
import struct

from . import _arrays
from ._library import DTYPES, GET_POINTER, COperand, View, check, follow_capsule, library

_VIEW = ctypes.sizeof(View)
_set_address = struct.Struct("Q").pack_into
_set_view = struct.Struct("QQQii").pack_into


class Operand:
    """An argument or a result: `name`, `dtype`, `shape` with None for sizes that are not known."""

    def __init__(self, operand: COperand, is_result: bool):
        self.is_result = is_result
        self.name = operand.name.decode()
        self.dtype = DTYPES[operand.dtype]
        self.shape = tuple(extent if extent >= 0 else None for extent in operand.shape[: operand.rank])
        self.is_scalar = bool(operand.is_scalar)
        self.in_place_of = operand.in_place_of if operand.in_place_of >= 0 else None

    def __repr__(self):
        shape = "x".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"<{self.name or 'result'}: {shape}{'x' if shape else ''}{self.dtype}>"


class _Views:
    """The views of one call. Shapes and strides are written only where they differ from those of the call before."""

    def __init__(self, operands):
        self.operands = operands
        self.memory = ctypes.create_string_buffer(max(1, _VIEW * len(operands)))
        self.address = ctypes.addressof(self.memory)
        self.starts = [self.address + i * _VIEW for i in range(len(operands))]
        self.layouts = [None] * len(operands)
        # The type of the last array that had DLPack alone.
        self.followed = [None] * len(operands)
        self.extents = [None] * len(operands)
        self.scalars = [None] * len(operands)
        # Of the layouts, once they are read.
        self.workspace_size = None

    def set(self, index, array, stream, on_cuda):
        operand = self.operands[index]
        if operand.is_scalar:
            return self._set_scalar(index, operand, array)
        # Most arrays of a call have the layout of the call before.
        if self.followed[index] is type(array):
            try:
                capsule = array.__dlpack__(stream=stream or 1) if on_cuda else array.__dlpack__()
                if follow_capsule(self.starts[index], capsule, on_cuda, GET_POINTER):
                    return
            except Exception:  # noqa: BLE001: what is wrong is said below
                pass
        data, layout, is_cuda, read_only = _arrays.describe(array, stream)
        if is_cuda != on_cuda:
            place = "on a CUDA device" if on_cuda else "in host memory"
            raise ValueError(f"operand {index} ({operand.name or 'result'}): expected an array {place}, but got another")
        if read_only and operand.is_result:
            raise ValueError(f"operand {index} (result): expected a writable array, but got a read-only one")
        if layout != self.layouts[index]:
            self._set_layout(index, layout)
        if layout[0] is _arrays.decode_dlpack:
            self.followed[index] = type(array)
        _set_address(self.memory, index * _VIEW, data or 0)

    def _set_layout(self, index, layout):
        shape, strides, dtype = layout[0](*layout[1:])
        self.workspace_size = None
        # Integers of 64 bits are indices too; bytes are truth values.
        expected = self.operands[index].dtype
        if (expected, dtype) in (("index", "i64"), ("i1", "i8")):
            dtype = expected
        if dtype not in DTYPES:
            raise ValueError(f"operand {index}: expected elements of type {expected}, but got {dtype}")
        rank = len(shape)
        numbers = (ctypes.c_int64 * max(1, 2 * rank))(*shape, *strides)
        start = ctypes.addressof(numbers)
        code = DTYPES.index(dtype)
        _set_view(self.memory, index * _VIEW, 0, start, start + 8 * rank, rank, code)
        self.extents[index], self.layouts[index] = numbers, layout

    def _set_scalar(self, index, operand, value):
        formats = {"f32": "f", "f64": "d", "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "index": "q"}
        formats["f16"] = "e"
        if operand.dtype not in formats:
            raise ValueError(f"operand {index}: numbers of type {operand.dtype} cannot be passed")
        self.scalars[index] = number = ctypes.create_string_buffer(struct.pack(formats[operand.dtype], value), 8)
        code = DTYPES.index(operand.dtype)
        _set_view(self.memory, index * _VIEW, ctypes.addressof(number), 0, 0, 0, code)


class _Workspace:
    """Device memory for the launches of one stream."""

    def __init__(self):
        self.memory, self.size = ctypes.c_void_p(), 0

    def grow(self, size):
        if size > self.size:
            self.free()
            check(library.linattn_device_allocate(size, ctypes.byref(self.memory)))
            self.size = size

    def free(self):
        if self.size:
            check(library.linattn_device_free(self.memory))
        self.memory, self.size = ctypes.c_void_p(), 0


class Kernel:
    """A loaded bundle; `load` makes them. May be called from several threads."""

    def __init__(self, handle):
        self._handle = handle
        self.target = library.linattn_kernel_target(handle).decode()
        self.entry = library.linattn_kernel_entry(handle).decode()
        count = library.linattn_kernel_num_arguments(handle)
        total = count + library.linattn_kernel_num_results(handle)
        operands = [Operand(library.linattn_kernel_operand(handle, i)[0], i >= count) for i in range(total)]
        self.arguments, self.results = operands[:count], operands[count:]
        self._operands, self._is_cuda = operands, self.target == "nvvm"
        self._views, self._workspaces = [], {}
        self._has_workspace = self._is_cuda and any(
            "bytes" in buffer for variant in self.manifest["variants"] for buffer in variant["buffers"]
        )

    def __del__(self):
        for workspace in getattr(self, "_workspaces", {}).values():
            workspace.free()
        if getattr(self, "_handle", None):
            library.linattn_kernel_free(self._handle)

    def __repr__(self):
        return f"<linattn_runner.Kernel {self.entry} {self.target} {self.arguments} -> {self.results}>"

    @property
    def manifest(self):
        """The manifest of the bundle, as described in docs/Runtime.md."""
        return json.loads(library.linattn_kernel_manifest(self._handle))

    def prepare(self):
        """Loads the code into the current context. A call does that by itself; before a CUDA graph is captured it
        must have been done."""
        check(library.linattn_kernel_prepare(self._handle))

    def result_shapes(self, *arguments):
        """The shapes of the results for these arguments, a list of tuples."""
        views = self._take_views()
        self._fill(views, arguments, 0, self.arguments)
        return self._result_shapes(views)

    def workspace_size(self, *arrays):
        """Bytes of device memory that `launch` needs for these arguments and results."""
        self.prepare()
        views = self._take_views()
        self._fill(views, arrays, 0, self._operands)
        return self._workspace_size(views)

    def launch(self, *arrays, stream=None, workspace=None):
        """Launches on arguments and results. Returns nothing, allocates nothing and does not wait.

        stream: a number or an object of PyTorch or CuPy; without it, the current one of the first array's library.
        workspace: an array on the device of at least `workspace_size` bytes; without it one that the kernel keeps for
        the stream, which grows when it must.
        Errors: `Error` with the runner's message, which names the operand.
        """
        handle = self._stream(arrays, stream)
        views = self._take_views()
        self._fill(views, arrays, handle, self._operands)
        memory, size = self._get_workspace(views, workspace, handle) if self._has_workspace else (None, 0)
        error = library.linattn_kernel_launch(self._handle, views.address, len(self._operands), memory, size, handle)
        if error:
            check(error)
        self._views.append(views)

    def __call__(self, *arguments, out=None, stream=None, workspace=None):
        """Computes the results of these arguments: one array, or a tuple of several.

        out: an array, or a tuple, for the results to be written to; without it they are new arrays of the first
        argument's library. All else as for `launch`; prepares the kernel where that has not been done.
        """
        if out is None:
            arrays = [x for x, operand in zip(arguments, self.arguments) if not operand.is_scalar]
            if not arrays:
                raise TypeError("expected out= for a function without arrays")
            shapes = self.result_shapes(*arguments)
            out = tuple(_arrays.allocate(arrays[0], shape, it.dtype) for shape, it in zip(shapes, self.results))
        elif not isinstance(out, (tuple, list)):
            out = (out,)
        self.prepare()
        self.launch(*arguments, *out, stream=stream, workspace=workspace)
        return out[0] if len(out) == 1 else tuple(out)

    def _stream(self, arrays, stream):
        if stream is not None:
            return _arrays.stream_handle(stream)
        return _arrays.current_stream(arrays[0]) if arrays and self._is_cuda else 0

    def _take_views(self):
        # A list's pop and append are safe between threads.
        try:
            return self._views.pop()
        except IndexError:
            return _Views(self._operands)

    def _fill(self, views, arrays, stream, operands):
        if len(arrays) != len(operands):
            raise TypeError(f"'{self.entry}': expected {len(operands)} arrays, but got {len(arrays)}")
        is_cuda = self._is_cuda
        for index, array in enumerate(arrays):
            views.set(index, array, stream, is_cuda)

    def _result_shapes(self, views):
        ranks = [len(result.shape) for result in self.results]
        extents = (ctypes.c_int64 * max(1, sum(ranks)))()
        check(library.linattn_kernel_result_shapes(self._handle, views.address, len(self.arguments), extents))
        numbers = iter(extents)
        return [tuple(next(numbers) for _ in range(rank)) for rank in ranks]

    def _workspace_size(self, views):
        size = ctypes.c_size_t()
        count = len(self._operands)
        check(library.linattn_kernel_workspace_size(self._handle, views.address, count, ctypes.byref(size)))
        return size.value

    def _get_workspace(self, views, given, stream):
        if given is not None:
            data, layout, _, _ = _arrays.describe(given, stream)
            shape, _, dtype = layout[0](*layout[1:])
            size = _arrays.SIZES.get(dtype, 1)
            for extent in shape:
                size *= extent
            return data, size
        # Launches of other streams may be using theirs.
        workspace = self._workspaces.get(stream)
        if workspace is None:
            workspace = self._workspaces.setdefault(stream, _Workspace())
        if views.workspace_size is None:
            views.workspace_size = self._workspace_size(views)
        workspace.grow(views.workspace_size)
        return workspace.memory, workspace.size


def load(source):
    """Loads a bundle from a path, or from bytes. Errors: `Error` for one that is damaged."""
    handle = ctypes.c_void_p()
    if isinstance(source, (bytes, bytearray)):
        check(library.linattn_kernel_load(bytes(source), len(source), ctypes.byref(handle)))
    else:
        check(library.linattn_kernel_load_file(os.fsencode(source), ctypes.byref(handle)))
    return Kernel(handle)
