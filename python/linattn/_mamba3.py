"""Mamba-3: a state space whose keys are turned by angles that add up."""

from __future__ import annotations

from ._families import Family, offsets

__all__ = [
    "mamba3",
    "mamba3_mimo",
]


_mamba3 = Family("mamba3", numbers=(), state="Input_States")


def mamba3(
    Q, K, V, ADT, DT, Trap, Q_bias, K_bias, Angles, D=None, Z=None, Input_States=None,
    return_final_states=False, *, cu_seqlens=None, inplace=False, out=None, num_threads=None,
    form="auto", target=None,
):  # fmt: skip
    """Mamba-3 with one query and key per token (SISO).

    Per head, for t = 0, 1, …::

        θ_t = θ_{t-1} + π tanh(Angles_t) DT_t,  λ_t = sigmoid(Trap_t)
        q̃_t = Rot(θ_t)(Q_t + Q_bias),  k̃_t = Rot(θ_t)(K_t + K_bias)
        S_t = e^ADT_t (S_{t-1} + (1 − λ_t) DT_t k̃_{t-1} V_{t-1}ᵀ) + λ_t DT_t k̃_t V_tᵀ
        o_t = (S_tᵀq̃_t + D V_t) ⊙ silu(Z_t)

    Rot turns elements 2i and 2i + 1 by the i-th of S angles, 2S ≤ N; those beyond
    stay. "Mamba-3: Improved Sequence Modeling using State Space Principles", 2026;
    names and layouts as `mamba_ssm` has them. It runs as one scan with a decay per
    token and head, of every token's predecessor: see lib/Families/Mamba3.cpp.

    Args:
      Q, K: ``[B, T, G, N]``, C and B of the state space after their norms; float16,
        bfloat16, float32 or float64. Any array with ``__dlpack__``, any strides.
      V: ``[B, T, H, P]``, of Q's dtype; G divides H.
      ADT: ``[B, H, T]``, A times the step, natural logarithm of the decay, ≤ 0; any
        floating-point dtype, as for all that follow.
      DT: ``[B, H, T]``, the steps; Trap: ``[B, H, T]``, before its sigmoid.
      Q_bias, K_bias: ``[H, N]``, or None.
      Angles: ``[B, T, H, S]``, rates before their tanh; arrays that repeat along H
        need no copy.
      D: ``[H]``; Z: ``[B, T, H, P]``.
      Input_States: ``(angle [N, H, S], ssm [N, H, P, N], k [N, H, N], v [N, H, P])``:
        θ, the state, k̃ and V of the last token, float32 (float64 for float64 tokens),
        the first dimension counting sequences; zeros unless given.
      return_final_states: also return the states after the last token; the angles
        are modulo 2π.
      cu_seqlens: offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, H, P]``, of Q's kind; with return_final_states ``(o, states)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _mamba3(
        (Q, K, V, ADT, DT, Trap, Angles, Q_bias, K_bias, D, Z, offsets(cu_seqlens)), {},
        Input_States, return_final_states, out, num_threads, form, target, inplace,
    )  # fmt: skip


_mamba3_mimo = Family("mamba3_mimo", flags=("rotate_pairwise",), numbers=(), state="Input_States")


def mamba3_mimo(
    Q, K, V, ADT, DT, Trap, Q_bias, K_bias, MIMO_V, MIMO_Z, MIMO_Out, Angles, D=None, Z=None,
    Input_States=None, return_final_states=False, *, rotate_pairwise=False, cu_seqlens=None, inplace=False,
    out=None, num_threads=None, form="auto", target=None,
):  # fmt: skip
    """Mamba-3 with R queries and keys per token (MIMO).

    As `mamba3`, with θ, λ and Rot from there; per head, for t = 0, 1, …::

        S_t = e^ADT_t (S_{t-1} + (1 − λ_t) DT_t Σ_r k̃_{t-1,r} (V_{t-1} ⊙ MIMO_V_r)ᵀ)
              + λ_t DT_t Σ_r k̃_{t,r} (V_t ⊙ MIMO_V_r)ᵀ
        y_{t,r} = (S_tᵀq̃_{t,r} + D V_t ⊙ MIMO_V_r) ⊙ silu(Z_t ⊙ MIMO_Z_r)
        o_t = Σ_r MIMO_Out_r ⊙ y_{t,r}

    "Mamba-3: Improved Sequence Modeling using State Space Principles", 2026; names
    and layouts as `mamba_ssm` has them. It runs as one scan of R steps per token.

    Args:
      Q, K: ``[B, T, R, G, N]``, C and B of the state space after their norms;
        float16, bfloat16, float32 or float64. Any array with ``__dlpack__``.
      V: ``[B, T, H, P]``, of Q's dtype; G divides H.
      ADT, DT, Trap, Angles, D, Z: as in `mamba3`.
      Q_bias, K_bias: ``[H, R, N]``, or None.
      MIMO_V, MIMO_Out: ``[H, R, P]``; MIMO_Z alike, None without Z.
      Input_States: ``(angle [N, H, S], ssm [N, H, P, N], k [N, R, H, N],
        v [N, H, P])``, as in `mamba3`.
      return_final_states: also return the states after the last token.
      rotate_pairwise: the i-th angle turns elements 2i and 2i + 1, as in `mamba3`;
        without, as released kernels do it, elements i and i + N/2.
      cu_seqlens: offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, H, P]``, of Q's kind; with return_final_states ``(o, states)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _mamba3_mimo(
        (
            Q, K, V, ADT, DT, Trap, Angles, MIMO_V, MIMO_Out, Q_bias, K_bias, D, Z, MIMO_Z,
            offsets(cu_seqlens),
        ),
        {"rotate_pairwise": rotate_pairwise},
        Input_States, return_final_states, out, num_threads, form, target, inplace,
    )  # fmt: skip
