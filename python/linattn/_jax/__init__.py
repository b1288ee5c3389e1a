"""Calls of plans as primitives of JAX. Imported by the first call that needs it, or by
`linattn.jax`."""

from ._dispatch import dispatch
from ._programs import make_program

__all__ = ["dispatch", "make_program"]
