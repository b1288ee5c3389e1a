"""Arrays of other libraries, for calls where speed does not matter."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import stat
import struct
import sys

import numpy as np

from .. import _linattn

__all__ = ["to_numpy", "library_of", "describe_odd", "convert_like", "integers_like", "cast_like", "copy", "dtype_name", "is_on_device", "assign", "concatenate", "load_npz", "replacing", "save_safetensors", "load_safetensors", "to_host", "zeros"]


# Spelling a dtype costs more than a whole call.
_dtype_names = {}


def dtype_name(array):
    """The name of a dtype, such as "float32", in every library; None for an array without one."""
    dtype = getattr(array, "dtype", None)
    try:
        return _dtype_names[dtype]
    except KeyError:
        _dtype_names[dtype] = name = None if dtype is None else str(dtype).rpartition(".")[2]
        return name
    except TypeError:  # not hashable
        return str(dtype).rpartition(".")[2]


def zeros(shape, dtype):
    """Zeros of NumPy, aligned for vectors and caches."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size > sys.maxsize:
        raise ValueError(f"state: expected an array of at most {sys.maxsize} bytes, but got shape {tuple(shape)}")
    return _linattn.zeros(size).view(dtype).reshape(shape)


def describe_odd(array):
    """Describes a tensor of PyTorch whose memory does not hold its elements; None for others."""

    def has(attribute):
        try:
            value = getattr(array, attribute, False)
            return value() if callable(value) else value
        except (RuntimeError, NotImplementedError):  # of what it is not
            return False

    if has("is_nested"):
        return "a nested tensor"
    if has("is_meta"):
        return "a tensor on the meta device, which has no elements"
    layout = str(getattr(array, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"a tensor of the layout {layout}"
    if has("is_quantized"):
        return f"a quantized tensor, {array.dtype}"
    if has("is_conj"):
        return "a tensor with the conjugate bit; pass its resolve_conj()"
    if has("is_neg"):
        return "a tensor with the negative bit; pass its resolve_neg()"
    return None


def to_numpy(array, name="array"):
    """A NumPy array with the same elements; bfloat16 becomes float32."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: expected an array without a mask, but got {type(array).__name__}; pass its "
            "`filled()`, and the mask as an operand"
        )
    if isinstance(array, np.ndarray):
        return np.asarray(array)  # subclasses have shapes of their own
    if getattr(array, "requires_grad", False):
        raise ValueError(
            f"{name}: expected a tensor that requires no gradient, since none is recorded here; "
            f"pass {name}.detach()"
        )
    if _module(array) == "torch":
        if words := describe_odd(array):
            raise ValueError(f"{name}: expected a dense array of numbers in memory, but got {words}")
        if dtype_name(array) == "bfloat16":
            array = array.float()
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError):
            pass
    if hasattr(array, "__array__") or hasattr(array, "__dlpack__"):
        try:
            return np.asarray(array)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(f"{name}: expected an array that NumPy can read, but got one it cannot: {error}") from None
    raise TypeError(
        f"{name}: expected an array (an object with __dlpack__), but got {type(array).__name__}"
    )


def library_of(name, array):
    """The namespace of an array's library, with common names: NumPy, PyTorch or `jax.numpy`."""
    module = _module(array)
    if module == "torch":
        import torch

        return torch
    if module in ("jax", "jaxlib"):
        import jax.numpy

        return jax.numpy
    if isinstance(array, np.ndarray):
        return np
    raise TypeError(f"{name}: expected an array of NumPy, PyTorch or JAX, but got {type(array).__name__}")


def _module(array):
    return type(array).__module__.partition(".")[0]


def convert_like(array, like):
    """Converts a NumPy array to the library and the device of `like`."""
    module = _module(like)
    if module == "torch":
        import torch

        return torch.from_dlpack(array).to(like.device)
    if module in ("jax", "jaxlib"):
        import jax.numpy

        return jax.device_put(jax.numpy.asarray(array), next(iter(like.devices())))
    if module == "cupy":
        import cupy

        return cupy.asarray(array)
    if not isinstance(like, np.ndarray) and hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().from_dlpack(array)
    return array


def integers_like(operand, tokens):
    """Lists of integers are fine, and go where the tokens are, as NumPy's arrays do; what
    else is there is left to be refused."""
    if isinstance(operand, (list, tuple)):
        operand = np.asarray(operand)
        operand = operand.astype(np.int64) if operand.dtype.kind == "i" else operand
    if isinstance(operand, np.ndarray) and is_on_device(tokens):
        return convert_like(operand, tokens)
    return operand


def cast_like(array, like):
    """Casts an array to the dtype of another array of its library, if that has one."""
    dtype = getattr(like, "dtype", None)
    if dtype is None or dtype_name(array) == dtype_name(like):
        return array
    return array.to(dtype) if _module(array) == "torch" else array.astype(dtype)


def is_on_device(array):
    """Whether the array is in the memory of a GPU."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) in (2, 13)
    return hasattr(array, "__cuda_array_interface__")


def to_host(array):
    """The same elements in the memory of the CPU. Waits for a GPU that computes them."""
    for name in ("cpu", "get"):  # PyTorch; CuPy
        if is_on_device(array) and hasattr(array, name):
            return to_numpy(getattr(array, name)())
    return to_numpy(array)


def copy(array):
    """A copy in the array's own library."""
    for name in ("clone", "copy"):  # PyTorch; CuPy, JAX
        if not isinstance(array, np.ndarray) and is_on_device(array) and hasattr(array, name):
            return getattr(array, name)()
    return convert_like(np.array(to_numpy(array), copy=True), array)


def assign(target, source):
    """Copies the elements of an array into another one of its library."""
    if hasattr(target, "copy_"):  # PyTorch
        target.copy_(source)
    else:
        target[...] = source


@contextlib.contextmanager
def replacing(path):
    """A file to write that takes the place of `path` when it is complete. What
    was there stays if writing fails."""
    path = os.path.realpath(os.fspath(path))  # what a link leads to
    status = os.stat(path) if os.path.exists(path) else None
    if status and not stat.S_ISREG(status.st_mode):  # a pipe has no place to take
        with open(path, "wb") as file:
            yield file
        return
    beside = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(beside, "xb") as file:
            if status:
                os.chmod(beside, stat.S_IMODE(status.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def concatenate(arrays, axis):
    """Concatenates arrays of one library."""
    first = arrays[0]
    module = _module(first)
    if module == "torch":
        import torch

        return torch.cat(arrays, axis)
    if module in ("jax", "jaxlib"):
        import jax.numpy

        return jax.numpy.concatenate(arrays, axis)
    if module == "cupy":
        import cupy

        return cupy.concatenate(arrays, axis)
    if not isinstance(first, np.ndarray) and hasattr(first, "__array_namespace__"):
        return first.__array_namespace__().concat(arrays, axis=axis)
    return np.concatenate(arrays, axis)


def load_npz(path):
    """The arrays in a .npz file. Nothing in the file is executed."""
    with open(path, "rb") as opened:  # an OSError from here on is the content's
        try:
            file = np.load(opened, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise ValueError("a single array")
            with file:
                arrays = {name: file[name] for name in file.files}
            # NumPy gives the bytes of a member that is not an array.
            strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
            if strange:
                raise ValueError(f"{strange[0]}, which is not an array")
            return arrays
        except Exception as error:  # zip, zlib and NumPy's headers have errors of their own
            raise ValueError(
                f"{os.fspath(path)}: expected a .npz file of arrays, but got {error or type(error).__name__}"
            ) from None


# ----------------------------------------------------------------------------
# safetensors: an 8-byte length, that many bytes of JSON, the arrays
# ----------------------------------------------------------------------------

_SAFETENSORS_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


def save_safetensors(path, arrays):
    header, offset = {}, 0
    for name, array in arrays.items():
        dtype = next(key for key, value in _SAFETENSORS_DTYPES.items() if value == array.dtype)
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())


def load_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    what = os.fspath(path)
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        body, arrays = data[8 + length :], {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= len(body):
                raise ValueError(f"{name} lies outside of the file")
            array = np.frombuffer(body[begin:end], _SAFETENSORS_DTYPES[entry["dtype"]])
            arrays[name] = array.reshape(entry["shape"]).copy()
    except Exception as error:  # with any error, the file is
        raise ValueError(
            f"{what}: expected a safetensors file, but got one that is damaged: {error or type(error).__name__}"
        ) from None
    return arrays
