"""LinearAttention and CausalConvWithState in ONNX Runtime, on linattn's kernels::

    options = onnxruntime.SessionOptions()
    linattn.onnxruntime.register(options)
    session = onnxruntime.InferenceSession("model.onnx", options)

The same functions are in ``linattn_runner.onnxruntime``, for machines without a
compiler.
"""

from linattn_runner.onnxruntime import library, register

__all__ = ["library", "register"]
