"""LinearAttention and CausalConvWithState in ONNX Runtime, on linattn's kernels::

    options = onnxruntime.SessionOptions()
    linattn.onnxruntime.register(options)
    session = onnxruntime.InferenceSession("model.onnx", options)

They are those of the package ``linattn_onnxruntime``, which a machine without a
compiler installs alone.
"""

try:
    from linattn_onnxruntime import library, register
except ModuleNotFoundError:
    raise ImportError(
        "expected the package linattn_onnxruntime, which holds linattn's library for ONNX Runtime: "
        "pip install linattn-onnxruntime"
    ) from None

__all__ = ["library", "register"]
