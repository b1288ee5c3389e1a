"""The C functions of include/linattn-c/Runner.h."""

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_void_p

DTYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index")
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 8}


class Error(RuntimeError):
    """An error of the runner or of the CUDA driver, with its message."""


class MemoryFailure(Error, MemoryError):
    """Too little memory, of the host or of the device."""


class TimedOut(Error, TimeoutError):
    """A launch on the CPU that its thread's deadline ended."""


# By linattn_error_kind.
_ERRORS = {2: MemoryFailure, 3: TimedOut}


class View(ctypes.Structure):
    """linattn_view."""

    _fields_ = [
        ("data", c_void_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("rank", c_int32),
        ("dtype", c_int32),
    ]


class COperand(ctypes.Structure):
    """linattn_operand."""

    _fields_ = [
        ("name", c_char_p),
        ("shape", POINTER(c_int64)),
        ("rank", c_int32),
        ("dtype", c_int32),
        ("is_scalar", c_int32),
        ("in_place_of", c_int32),
    ]


_SIGNATURES = {
    "linattn_error_message": (c_char_p, [c_void_p]),
    "linattn_error_get_kind": (c_int32, [c_void_p]),
    "linattn_error_free": (None, [c_void_p]),
    "linattn_kernel_load": (c_void_p, [c_char_p, c_size_t, POINTER(c_void_p)]),
    "linattn_kernel_load_file": (c_void_p, [c_char_p, POINTER(c_void_p)]),
    "linattn_kernel_free": (None, [c_void_p]),
    "linattn_kernel_target": (c_char_p, [c_void_p]),
    "linattn_kernel_entry": (c_char_p, [c_void_p]),
    "linattn_kernel_manifest": (c_char_p, [c_void_p]),
    "linattn_kernel_num_arguments": (c_int32, [c_void_p]),
    "linattn_kernel_num_results": (c_int32, [c_void_p]),
    "linattn_kernel_operand": (POINTER(COperand), [c_void_p, c_int32]),
    "linattn_kernel_result_shapes": (c_void_p, [c_void_p, c_void_p, c_int32, c_void_p]),
    "linattn_kernel_prepare": (c_void_p, [c_void_p]),
    "linattn_kernel_workspace_size": (c_void_p, [c_void_p, c_void_p, c_int32, POINTER(c_size_t)]),
    "linattn_kernel_launch": (c_void_p, [c_void_p, c_void_p, c_int32, c_void_p, c_size_t, c_void_p]),
    "linattn_stream_synchronize": (c_void_p, [c_void_p]),
    "linattn_device_allocate": (c_void_p, [c_size_t, POINTER(c_void_p)]),
    "linattn_device_free": (c_void_p, [c_void_p]),
}


def _open():
    name = "liblinattn_runner.so"
    named = os.environ.get("LINATTN_RUNNER_LIBRARY")
    beside = pathlib.Path(__file__).parent / name
    path = named or (str(beside) if beside.exists() else name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"expected {path} to be the library of linattn's runner (LINATTN_RUNNER_LIBRARY names another): {error}"
        ) from None
    for function, (result, arguments) in _SIGNATURES.items():
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library


library = _open()


# linattn_view_follow_capsule(view, capsule, is_cuda, GET_POINTER); the interpreter's lock is kept.
GET_POINTER = ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, c_void_p)
follow_capsule = ctypes.PYFUNCTYPE(c_int32, c_void_p, ctypes.py_object, c_int32, c_void_p)(
    ("linattn_view_follow_capsule", library)
)


def check(error):
    """Raises what a function returned, unless it is NULL."""
    if error:
        text = library.linattn_error_message(error).decode()
        kind = library.linattn_error_get_kind(error)
        library.linattn_error_free(error)
        raise _ERRORS.get(kind, Error)(text)
