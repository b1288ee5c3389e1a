"""Operators around a recurrence: short convolutions, norms, and ONNX operators."""
