"""Calls of plans as operators of PyTorch. Imported by the first call that needs it, or by
`linattn.torch`."""

from ._dispatch import differentiable, dispatch

__all__ = ["differentiable", "dispatch"]
