"""Mamba-1, whose arrays may be complex."""

from __future__ import annotations

from .._core._arrays import assign, dtype_name
from .._recurrence._parts import check_inplace
from ._family import Family

__all__ = ["selective_scan"]


_selective_scan = Family("selective_scan", flags=("delta_softplus", "complex"), numbers=())


def _is_complex(x):
    return dtype_name(x) in ("complex64", "complex128")


def _split(x):
    """The real and the imaginary part of an array as views; (x, None) for a real array."""
    if x is None or not _is_complex(x):
        return x, None
    if hasattr(x, "resolve_conj"):  # of PyTorch, whose views may negate
        x = x.resolve_conj()
    return x.real, x.imag


def _split_projection(x, tokens, rank):
    """The same for B or C, whose real arrays may interleave both parts along the tokens."""
    shape = getattr(x, "shape", ())
    if not _is_complex(x) and len(shape) >= rank and shape[-1] == 2 * tokens:
        return x[..., 0::2], x[..., 1::2]
    return _split(x)


def _join(parts):
    """Joins two parts to a complex array, with a gradient."""
    real, imaginary = parts
    return real + 1j * imaginary


def _selective_scan_complex(
    u, delta, A, B, C, D, z, delta_bias, softplus, initial, returns, out, threads, target, inplace,
):  # fmt: skip
    shape = getattr(u, "shape", (0,))
    parts = [_split(A), *(_split_projection(x, shape[-1], len(shape)) for x in (B, C))]
    # Every state stands for itself and its conjugate.
    parts[2] = tuple(None if x is None else x + x for x in parts[2])
    (A, A_imag), (B, B_imag), (C, C_imag) = parts
    if initial is not None:
        if not _is_complex(initial):
            raise TypeError(f"initial_state: expected complex numbers with a complex A, but got {dtype_name(initial)}")
    given, initial = initial, None if initial is None else _split(initial)
    inplace = check_inplace(inplace, given)
    result = _selective_scan(
        (u, delta, A, B, C, D, z, delta_bias, A_imag, B_imag, C_imag),
        {"delta_softplus": softplus, "complex": True}, initial, returns or inplace, out, threads, "auto",
        target,
    )  # fmt: skip
    if not (returns or inplace):
        return result
    o, state = result[0], _join(result[1])
    if inplace:  # the parts are computed apart
        assign(given, state)
        state = given
    return (o, state) if returns else o


def selective_scan(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False,
    return_last_state=False, *, initial_state=None, inplace=False, out=None, num_threads=None, target=None,
):  # fmt: skip
    """Mamba-1: a state space whose step and projections depend on the token.

    Per channel, with S states, for t = 0, 1, …::

        h_t = e^(Δ_t A) ⊙ h_{t-1} + Δ_t B_t u_t,  o_t = (C_t·h_t + D u_t) silu(z_t)

    With a complex A, 2 Re(C_t·h_t) instead: a state stands for its conjugate too.
    Gu and Dao, "Mamba", 2023.

    Args:
      u: ``[B, C, T]``, the layout of the original, or ``[C, T]``; float16, bfloat16,
        float32 or float64. Any array with ``__dlpack__``, any strides.
      delta: u's shape, the steps Δ, any floating-point dtype.
      A: ``[C, S]``, < 0, or complex64 or complex128 with real parts < 0.
      B, C: ``[B, S, T]``, ``[B, G, S, T]`` with the channels in G groups, or ``[C, S]``.
        With a complex A they may be complex; real ones of 2 T are, in turn, the real
        and imaginary parts of T.
      D: ``[C]``; z: u's shape; delta_bias: ``[C]``, added to delta.
      delta_softplus: Δ = log(1 + e^(delta + delta_bias)).
      return_last_state: also return the state after the last token.
      initial_state: ``[B, C, S]``, float32 (float64 for float64 inputs), complex with
        A; zeros unless given.
      inplace, out, num_threads, target: as in `scan`.

    Returns:
      ``o``, of u's kind and shape; with return_last_state ``(o, state [B, C, S])``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    if _is_complex(A):
        return _selective_scan_complex(
            u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, return_last_state, out,
            num_threads, target, inplace,
        )  # fmt: skip
    for name, x in (("B", B), ("C", C), ("initial_state", initial_state)):
        if x is not None and _is_complex(x):
            raise TypeError(f"{name}: expected real numbers with a real A, but got {dtype_name(x)}")
    return _selective_scan(
        (u, delta, A, B, C, D, z, delta_bias, None, None, None),
        {"delta_softplus": delta_softplus, "complex": False},
        initial_state, return_last_state, out, num_threads, "auto", target, inplace,
    )  # fmt: skip
