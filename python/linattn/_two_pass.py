"""Named families of two scans."""

from __future__ import annotations

from ._families import Family, offsets

__all__ = [
    "abc",
    "gsa",
]


_gsa = Family("gsa", flags=("reverse",))


def gsa(
    q, k, v, s, g, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, 
    num_threads=None, form="auto", target=None,
):
    """Gated slot attention: keys and values meet in M slots.

    Per head, for t = 0, 1, …::

        K_t = K_{t-1} Diag(e^g_t) + k_t s_tᵀ,  p_t = softmax(scale · K_tᵀq_t)
        V_t = Diag(e^g_t) V_{t-1} + s_t v_tᵀ,  o_t = V_tᵀp_t

    Zhang et al., "Gated Slot Attention", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      s: ``[B, T, H, M]``, what goes into the slots, of q's dtype.
      g: ``[B, T, H, M]``, natural logarithm, ≤ 0, any floating-point dtype.
      scale: multiplies the scores of the slots; K**-0.5 unless given.
      initial_state: ``(hk [N, H, K, M], hv [N, H, M, V])``, float32 (float64 for
        float64 tokens); zeros unless given.
      output_final_state: also return the state after the last token.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``, state = (hk, hv).

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _gsa(
        (q, k, v, s, g, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_abc = Family("abc")


def abc(
    q, k, v, s, scale=None, initial_state=None, output_final_state=False, *, inplace=False, out=None,
    num_threads=None, form="auto", target=None,
):
    """Attention with bounded-memory control: slots weighted by a running softmax.

    Per head, for t = 0, 1, …::

        z_t = log Σ_{j≤t} e^s_j,  w_t = e^(s_t − z_t),  g_t = z_{t-1} − z_t
        then as `gsa`, with w for s

    Peng et al., "ABC", 2022.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      s: ``[B, T, H, M]``, scores of the slots, of q's dtype.
      scale: multiplies the scores of the slots; K**-0.5 unless given.
      initial_state: ``(hk [N, H, K, M], hv [N, H, M, V], z [N, H, M])``, float32
        (float64 for float64 tokens); zeros, and z −∞, unless given.
      output_final_state: also return the state after the last token.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``, state = (hk, hv, z).

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _abc(
        (q, k, v, s),
        {"scale": scale},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip
