"""The delta rule with momentum."""

from __future__ import annotations

from ._families import Family

__all__ = ["momentum_delta_rule"]


_momentum_delta_rule = Family("momentum_delta_rule", flags=("use_qk_l2norm_in_kernel", "use_p_times_alpha"))


def momentum_delta_rule(
    q, k, v, log_alpha, log_mu, p=None, beta=None, eta=None, scale=None, initial_state=None,
    output_final_state=False, use_qk_l2norm_in_kernel=True, use_p_times_alpha=True, *, inplace=False, out=None,
    num_threads=None, target=None,
):  # fmt: skip
    """Momentum DeltaNet: the state follows the momentum of the delta rule's steps.

    Per head, for t = 0, 1, …::

        M_t = e^log_mu_t M_{t-1} − eta_t k_t (v_t − S_{t-1}ᵀp_t)ᵀ
        S_t = e^log_alpha_t S_{t-1} − beta_t M_t
        o_t = scale · S_tᵀq_t

    "Momentum DeltaNet", 2026 (arXiv 2605.05838); names and defaults as in
    flash-linear-attention. It runs token by token, in one thread: the scans of
    linattn have no coupled decays.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      log_alpha, log_mu: ``[B, T, H]``, natural logarithms, ≤ 0, any floating-point
        dtype.
      p: ``[B, T, Hk, K]``, what is corrected; k unless given.
      beta, eta: ``[B, T, H]``; 1 unless given.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``(S, M)``, each ``[B, H, K, V]``, float32 (float64 for float64
        tokens); zeros unless given.
      output_final_state: also return the states after the last token.
      use_qk_l2norm_in_kernel: divide q, k and p by √(x·x + 1e-6) first.
      use_p_times_alpha: then multiply p by e^log_alpha: it reads S after its decay.
      inplace, out, num_threads, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, (S, M))``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    return _momentum_delta_rule(
        (q, k, v, log_alpha, log_mu, p, beta, eta),
        {
            "scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel,
            "use_p_times_alpha": use_p_times_alpha,
        },
        initial_state, output_final_state, out, num_threads, "auto", target, inplace,
    )  # fmt: skip
