"""Operators around a recurrence: short convolutions, norms, and the operators of ONNX."""
