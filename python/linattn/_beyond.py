"""Named families beyond the scan: a decay per element, complex states, levels."""

from __future__ import annotations

from ._arrays import assign, convert_like, dtype_name, to_numpy
from ._families import Family, offsets
from ._ops import check_inplace

__all__ = [
    "log_linear",
    "lru",
    "rwkv4",
    "selective_scan",
]


_selective_scan = Family("selective_scan", flags=("delta_softplus", "complex"), numbers=())


def _is_complex(x):
    return dtype_name(x) in ("complex64", "complex128")


def _split(x):
    """The real and the imaginary part of an array, as views; (x, None) of real ones."""
    if x is None or not _is_complex(x):
        return x, None
    if hasattr(x, "resolve_conj"):  # of PyTorch, whose views may negate
        x = x.resolve_conj()
    return x.real, x.imag


def _split_projection(x, tokens, rank):
    """The same of B or C: real ones may have the two parts in turn along the tokens."""
    shape = getattr(x, "shape", ())
    if not _is_complex(x) and len(shape) >= rank and shape[-1] == 2 * tokens:
        return x[..., 0::2], x[..., 1::2]
    return _split(x)


def _join(parts, like):
    """A complex array of the library of `like`."""
    real, imaginary = (to_numpy(part) for part in parts)
    return convert_like(real + 1j * imaginary, like)


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
    o, state = result[0], _join(result[1], u)
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


_rwkv4 = Family("rwkv4", flags=("reverse",), numbers=())


def rwkv4(
    w, u, k, v, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None,
    inplace=False, out=None, num_threads=None, target=None,
):  # fmt: skip
    """RWKV-4: an average of values whose weights decay, per channel.

    For t = 0, 1, …::

        o_t = (A_{t-1} + e^(u + k_t) v_t) / (B_{t-1} + e^(u + k_t))
        A_t = e^w A_{t-1} + e^k_t v_t,  B_t = e^w B_{t-1} + e^k_t

    Peng et al., "RWKV", 2023.

    Args:
      w: ``[C]``, natural logarithm of the decay, ≤ 0, any floating-point dtype.
      u: ``[C]``, the bonus of the current token.
      k, v: ``[B, T, C]`` or ``[T, C]``; float16, bfloat16, float32 or float64, of one
        dtype. Any array with ``__dlpack__``, any strides.
      initial_state: ``(num, den, m)``, each ``[N, C]``: A e^-m, B e^-m and the running
        maximum m, float32 (float64 for float64 tokens); 0, 0 and −∞ unless given.
      output_final_state: also return the state after the last token.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, target: as in `scan`.

    Returns:
      ``o``, of k's kind and shape; with output_final_state ``(o, (num, den, m))``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    return _rwkv4(
        (k, v, w, u, offsets(cu_seqlens)),
        {"reverse": reverse},
        initial_state, output_final_state, out, num_threads, "auto", target, inplace,
    )  # fmt: skip


_log_linear = Family("log_linear")


def log_linear(
    q, k, v, g, level_scales, scale=None, initial_state=None, output_final_state=False, *,
    inplace=False, out=None, num_threads=None, target=None,
):  # fmt: skip
    """Log-linear attention: one state per level of a tree over the past.

    Per head, with ℓ(t, j) the number of bits of t xor j::

        o_t = scale · Σ_{j≤t} level_scales_t[ℓ(t, j)] e^(g_{j+1} + … + g_t) (q_t·k_j) v_j

    Guo et al., "Log-Linear Attention", 2025.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states per level.
      g: ``[B, T, H]``, natural logarithm, ≤ 0, any floating-point dtype.
      level_scales: ``[B, T, H, L]``; 1 + the bits of the last position are enough,
        what is beyond L levels belongs to the last.
      scale: K**-0.5 unless given.
      initial_state: ``(S [B, H, L, K, V], position [B])``: the states and how many
        tokens they have seen, float32 (float64 for float64 tokens).
      output_final_state: also return the state after the last token.
      inplace, out, num_threads, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, (S, position))``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    return _log_linear(
        (q, k, v, g, level_scales), {"scale": scale},
        initial_state, output_final_state, out, num_threads, "auto", target, inplace,
    )  # fmt: skip


_lru = Family("lru", numbers=())


def lru(
    u, nu_log, theta_log, B_re, B_im, C_re, C_im, gamma_log=None, D=None, initial_state=None,
    output_final_state=False, *, inplace=False, out=None, num_threads=None, target=None,
):  # fmt: skip
    """LRU: a diagonal complex recurrence between two matrices.

    For t = 0, 1, …, with λ = e^(−e^nu_log + i e^theta_log)::

        h_t = λ ⊙ h_{t-1} + γ ⊙ (B_re + i B_im) u_t
        o_t = Re((C_re + i C_im) h_t) + D ⊙ u_t

    Orvieto et al., "Resurrecting Recurrent Neural Networks for Long Sequences", 2023.
    States are kept for 64 tokens at a time; λ and h are float64 in between, since
    a mode that remembers thousands of tokens multiplies by λ as often.

    Args:
      u: ``[B, T, D]`` or ``[T, D]``; float16, bfloat16, float32 or float64. Any array
        with ``__dlpack__``, any strides.
      nu_log, theta_log: ``[S]``, any floating-point dtype, as are the others.
      B_re, B_im: ``[S, D]``; C_re, C_im: ``[D, S]``.
      gamma_log: ``[S]``; γ = √(1 − |λ|²) unless given.
      D: ``[D]``.
      initial_state: ``(h_re, h_im)``, each ``[B, S]``, float32 (float64 for float64
        tokens); zeros unless given.
      output_final_state: also return the state after the last token.
      inplace, out, num_threads, target: as in `scan`.

    Returns:
      ``o``, of u's kind and shape; with output_final_state ``(o, (h_re, h_im))``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    return _lru(
        (u, nu_log, theta_log, B_re, B_im, C_re, C_im, gamma_log, D), {},
        initial_state, output_final_state, out, num_threads, "auto", target, inplace,
    )  # fmt: skip
