"""Where an array is and how it is laid out: PyTorch, NumPy, __cuda_array_interface__, DLPack."""

import ctypes
import struct
import sys

from ._library import SIZES

_TYPESTRS = {
    "<f2": "f16",
    "<f4": "f32",
    "<f8": "f64",
    "|b1": "i1",
    "|i1": "i8",
    "<i2": "i16",
    "<i4": "i32",
    "<i8": "i64",
}
_NUMPY_NAMES = {"bfloat16": "bf16"}
_TORCH = {}

# DLTensor: data, device type and number, rank, kind, bits, lanes, shape, strides, byte offset.
_DL_TENSOR = struct.Struct("QiiiBBHQQQ")
# DLPack's codes of kinds, and of devices with memory that CUDA kernels can use.
_DL_KINDS = {0: "i", 2: "f", 4: "bf", 6: "i"}
_DL_CUDA = {2, 3, 13}

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _contiguous(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


# For each kind of array there is a function that is called every time, and one that is only called when the layout
# differs from that of the call before. The first returns the address, the layout, whether the memory is CUDA's, and
# whether it must not be written. A layout is a tuple of the second function and its arguments; that one returns shape,
# strides in elements, and type.


def _torch_dtype(dtype):
    if not _TORCH:
        torch = sys.modules["torch"]
        names = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i1": "bool"}
        names.update({"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"})
        _TORCH.update({getattr(torch, name): ours for ours, name in names.items()})
    return _TORCH.get(dtype, str(dtype))


def _describe_torch(array, stream):
    layout = (_decode_torch, array.shape, array.stride(), array.dtype)
    return array.data_ptr(), layout, array.is_cuda, False


def _decode_torch(shape, strides, dtype):
    return shape, strides, _torch_dtype(dtype)


def _describe_cuda(array, stream):
    it = array.__cuda_array_interface__
    data, read_only = it["data"]
    return data, (_decode_interface, it["shape"], it.get("strides"), it["typestr"], ""), True, read_only


def _describe_host(array, stream):
    it = array.__array_interface__
    data, read_only = it["data"]
    name = array.dtype.name if it["typestr"] not in _TYPESTRS else ""
    return data, (_decode_interface, it["shape"], it.get("strides"), it["typestr"], name), False, read_only


def _decode_interface(shape, strides, typestr, name):
    dtype = _TYPESTRS.get(typestr) or _NUMPY_NAMES.get(name, name or typestr)
    if strides is None:
        return shape, _contiguous(shape), dtype
    size = SIZES.get(dtype, 1)
    return shape, tuple([stride // size for stride in strides]), dtype


def _describe_dlpack(array, stream):
    is_cuda = array.__dlpack_device__()[0] in _DL_CUDA
    # DLPack has no 0: it calls the legacy default stream 1.
    capsule = array.__dlpack__(stream=stream or 1) if is_cuda else array.__dlpack__()
    tensor = ctypes.string_at(_get_pointer(capsule, b"dltensor"), _DL_TENSOR.size)
    data, _, _, rank, code, bits, _, shape, strides, offset = _DL_TENSOR.unpack(tensor)
    extents = ctypes.string_at(shape, 8 * rank)
    steps = ctypes.string_at(strides, 8 * rank) if strides else None
    # The array outlives the call, and so does the capsule's tensor.
    return data + offset, (decode_dlpack, extents, steps, code, bits), is_cuda, False


def decode_dlpack(extents, steps, code, bits):
    numbers = f"{len(extents) // 8}q"
    shape = struct.unpack(numbers, extents)
    strides = struct.unpack(numbers, steps) if steps is not None else _contiguous(shape)
    kind = _DL_KINDS.get(code, f"kind {code} of ")
    return shape, strides, "i1" if code == 6 else f"{kind}{bits}"


_DESCRIBERS = {}


def describe(array, stream):
    """(address, layout, whether it is CUDA's, whether it must not be written)."""
    describer = _DESCRIBERS.get(type(array))
    if describer is None:
        describer = _DESCRIBERS[type(array)] = _find_describer(type(array))
    return describer(array, stream)


def _find_describer(kind):
    if kind.__module__ == "torch" or kind.__module__.startswith("torch."):
        return _describe_torch
    if hasattr(kind, "__cuda_array_interface__"):
        return _describe_cuda
    if hasattr(kind, "__array_interface__"):
        return _describe_host
    if hasattr(kind, "__dlpack__"):
        return _describe_dlpack
    raise TypeError(f"expected an array with __cuda_array_interface__, __array_interface__ or __dlpack__, but got {kind}")


def current_stream(array):
    """The stream that the array's library would use now; 0, the legacy default one, if it has no such notion."""
    module = type(array).__module__.partition(".")[0]
    if module == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream if array.is_cuda else 0
    if module == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return 0


def stream_handle(stream):
    """The CUstream of a number, or of a stream of PyTorch, CuPy or numba."""
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return getattr(stream, name)
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    raise TypeError(f"expected a stream as a number, or one of PyTorch or CuPy, but got {type(stream)}")


def allocate(like, shape, dtype):
    """An array of the same library on the same device."""
    module = type(like).__module__.partition(".")[0]
    if module == "torch":
        torch = sys.modules["torch"]
        _torch_dtype(torch.float32)
        theirs = next(name for name, ours in _TORCH.items() if ours == dtype)
        return torch.empty(shape, dtype=theirs, device=like.device)
    names = {"f16": "float16", "f32": "float32", "f64": "float64", "i1": "bool", "index": "int64"}
    name = names.get(dtype, dtype.replace("i", "int"))
    if module in ("cupy", "numpy"):
        if dtype == "bf16":
            import ml_dtypes

            name = ml_dtypes.bfloat16
        return sys.modules[module].empty(shape, dtype=name)
    raise TypeError(f"expected out= for arrays of {type(like)}")


def zeros(like, shape, dtype):
    """The same, filled with zeros."""
    array = allocate(like, shape, dtype)
    array.zero_() if hasattr(array, "zero_") else array.fill(0)
    return array
