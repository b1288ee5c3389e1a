"""LinearAttention and CausalConvWithState in ONNX Runtime, on linattn's kernels::

    options = onnxruntime.SessionOptions()
    linattn_onnxruntime.register(options)
    session = onnxruntime.InferenceSession("model.onnx", options)

Needs no compiler, and imports nothing of ONNX Runtime.
"""

import os
import pathlib

__all__ = ["library", "register"]


def library():
    """The path of the library, for other languages' RegisterCustomOpsLibrary.

    Raises:
      ImportError: it is not there. LINATTN_ONNXRUNTIME_LIBRARY names another.
    """
    beside = pathlib.Path(__file__).parent / "liblinattn_onnxruntime.so"
    path = os.environ.get("LINATTN_ONNXRUNTIME_LIBRARY") or str(beside)
    if not os.path.exists(path):
        raise ImportError(
            f"expected {path} to be linattn's library for ONNX Runtime (LINATTN_ONNXRUNTIME_LIBRARY names another)"
        )
    return path


def register(session_options, *, contributed=False):
    """Lets the sessions made with these options run LinearAttention and CausalConvWithState by linattn's kernels.

    Models stay as they are. Kernels run on the session's own threads.

    Args:
      session_options: an ``onnxruntime.SessionOptions``.
      contributed: whether models have com.microsoft's operators of these names, which then run
        here, too, beside those of opset 27. Such models import com.microsoft. For others leave it
        out: ONNX Runtime would not find the operators that its own fusions put there.

    Raises:
      TypeError: one of them is something else.
      ImportError: the library is not there.
    """
    add = getattr(session_options, "register_custom_ops_library", None)
    if add is None:
        raise TypeError(f"session_options: expected onnxruntime.SessionOptions, but got {type(session_options).__name__}")
    if not isinstance(contributed, bool):
        raise TypeError(f"contributed: expected a bool, but got {type(contributed).__name__}")
    path = library()
    if contributed:
        session_options.add_session_config_entry("linattn.contributed", "1")
    add(path)
