"""S4D: a state space of fixed steps, by the selective scan."""

from __future__ import annotations

from .._core._arrays import dtype_name, library_of
from .._core._checks import check_choice
from .._core._notes import note
from ._beyond import selective_scan

__all__ = ["s4d"]


def s4d(
    u, dt, A, C, B=None, D=None, *, method="zoh", initial_state=None, return_last_state=False, num_threads=None,
    target=None,
):  # fmt: skip
    """S4D: a diagonal state space with complex A and a step for each channel.

    Per channel, with S states that stand for their conjugates, too::

        h_t = Ā ⊙ h_{t-1} + B̄ u_t,   o_t = 2 Re(C·h_t) + D u_t
        zoh       Ā = e^{Δ A}                     B̄ = A⁻¹ (Ā − 1) B
        bilinear  Ā = (1 + Δ A/2) / (1 − Δ A/2)   B̄ = Δ B / (1 − Δ A/2)

    as a recurrence, O(T) and with a state to go on from; the convolution that S4D is trained as gives
    the same. See Gu et al., "On the Parameterization and Initialization of Diagonal State Space Models",
    2022.

    Args:
      u: ``[N, C, T]`` or ``[C, T]`` of NumPy, PyTorch or JAX; float16, bfloat16, float32 or float64.
      dt: ``[C]``, the steps Δ, > 0.
      A: ``[C, S]``, complex64 or complex128, real parts < 0.
      C: ``[C, S]``, complex.
      B: ``[C, S]``, complex; ones unless given.
      D: ``[C]``.
      method: "zoh" or "bilinear".
      initial_state: ``[N, C, S]``, complex; zeros unless given.
      return_last_state: also return the state after the last token.
      num_threads, target: as in `linattn.attention`.

    Returns:
      ``o``, of u's kind and shape; with return_last_state ``(o, state [N, C, S])``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    check_choice("method", method, ("zoh", "bilinear"))
    library = library_of("u", u)
    for name, x in (("A", A), ("C", C), ("B", B)):
        if x is not None and dtype_name(x) not in ("complex64", "complex128"):
            got = type(x).__name__ if dtype_name(x) is None else dtype_name(x)
            raise TypeError(f"{name}: expected complex numbers, but got {got}")
    channels = tuple(u.shape)[-2:-1]
    if tuple(getattr(dt, "shape", ())) != channels or not channels:
        raise ValueError(f"dt: expected shape {channels or '(C,)'}, one for each channel, but got {getattr(dt, 'shape', dt)}")
    if A.ndim != 2 or A.shape[0] != channels[0]:
        raise ValueError(f"A: expected shape ({channels[0]}, S), but got {tuple(A.shape)}")
    note(f"passed: s4d: the recurrence by selective_scan, discretised by {method}")
    note("missed: s4d: the convolution with its kernel of T numbers: it has no state to go on from")
    step = dt[:, None]
    z = A * step
    if method == "zoh":
        inputs = (library.exp(z) - 1) / z
    else:
        inputs = 1 / (1 - z / 2)
        A = library.log((1 + z / 2) / (1 - z / 2)) / step
    inputs = inputs if B is None else inputs * B
    return selective_scan(
        u, library.broadcast_to(step, u.shape), A, inputs, C, D, return_last_state=return_last_state,
        initial_state=initial_state, num_threads=num_threads, target=target,
    )  # fmt: skip
