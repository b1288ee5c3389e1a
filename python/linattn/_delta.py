"""Named families that correct what a key reads."""

from __future__ import annotations

from ._families import Family, offsets

__all__ = [
    "comba",
    "delta_rule",
    "dplr",
    "gated_delta_rule",
    "gated_deltaproduct",
    "gated_oja",
    "gdn2",
    "iplr",
    "kda",
    "rwkv7",
    "ttt_linear",
]


_delta_rule = Family(
    "delta_rule", flags=("use_qk_l2norm_in_kernel", "use_beta_sigmoid_in_kernel", "allow_neg_eigval", "reverse")
)


def delta_rule(
    q, k, v, beta=None, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """DeltaNet: every key replaces what it reads.

    Per head, for t = 0, 1, …::

        S_t = S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀk_t)ᵀ
        o_t = scale · S_tᵀq_t

    Schlag et al., 2021; Yang et al., "Parallelizing Linear Transformers with the
    Delta Rule", 2024. Keys should be of unit length.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      beta: ``[B, T, H]`` or ``[B, T, H, V]``; 1 unless given.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q and k by √(x·x + 1e-6) first.
      use_beta_sigmoid_in_kernel: β is sigmoid(beta); with allow_neg_eigval
        twice that.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _delta_rule(
        (q, k, v, beta, offsets(cu_seqlens)),
        {"scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel, "use_beta_sigmoid_in_kernel": use_beta_sigmoid_in_kernel, "allow_neg_eigval": allow_neg_eigval, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_gated_delta_rule = Family(
    "gated_delta_rule", flags=("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "use_beta_sigmoid_in_kernel", "allow_neg_eigval", "reverse")
)


def gated_delta_rule(
    q, k, v, g, beta=None, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, use_gate_in_kernel=False, A_log=None, dt_bias=None,
    use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Gated DeltaNet: the delta rule with a decay per token and head.

    Per head, for t = 0, 1, …::

        S' = e^g_t S_{t-1},  S_t = S' + β_t k_t (v_t − S'ᵀk_t)ᵀ
        o_t = scale · S_tᵀq_t

    Yang et al., "Gated Delta Networks", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      g: ``[B, T, H]``, natural logarithm, ≤ 0, or with use_gate_in_kernel its
        preactivation; any floating-point dtype.
      beta: ``[B, T, H]`` or ``[B, T, H, V]``; 1 unless given.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q and k by √(x·x + 1e-6) first.
      use_gate_in_kernel: the decay is −e^A_log · softplus(g + dt_bias).
      A_log: ``[H]``, for use_gate_in_kernel.
      dt_bias: ``[H]``, for use_gate_in_kernel.
      use_beta_sigmoid_in_kernel: β is sigmoid(beta); with allow_neg_eigval
        twice that.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _gated_delta_rule(
        (q, k, v, g, beta, A_log, dt_bias, offsets(cu_seqlens)),
        {"scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel, "use_gate_in_kernel": use_gate_in_kernel, "use_beta_sigmoid_in_kernel": use_beta_sigmoid_in_kernel, "allow_neg_eigval": allow_neg_eigval, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_kda = Family(
    "kda", flags=("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "use_beta_sigmoid_in_kernel", "allow_neg_eigval", "reverse"), numbers=("scale", "lower_bound")
)


def kda(
    q, k, v, g, beta=None, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, use_gate_in_kernel=False, A_log=None, dt_bias=None,
    lower_bound=None, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Kimi delta attention: the delta rule with a decay per token and channel.

    Per head, for t = 0, 1, …::

        S' = Diag(e^g_t) S_{t-1},  S_t = S' + β_t k_t (v_t − S'ᵀk_t)ᵀ
        o_t = scale · S_tᵀq_t

    Kimi Team, "Kimi Linear", 2025.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      g: ``[B, T, H, K]``, natural logarithm, ≤ 0, or with use_gate_in_kernel its
        preactivation; any floating-point dtype.
      beta: ``[B, T, H]`` or ``[B, T, H, V]``; 1 unless given.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q and k by √(x·x + 1e-6) first.
      use_gate_in_kernel: the decay is −e^A_log · softplus(g + dt_bias).
      A_log: ``[H]``, for use_gate_in_kernel.
      dt_bias: ``[H, K]`` or ``[H·K]``, for use_gate_in_kernel.
      lower_bound: with use_gate_in_kernel the decay is lower_bound ·
        sigmoid(e^A_log (g + dt_bias)), from −5 to below 0; A_log may be None then.
      use_beta_sigmoid_in_kernel: β is sigmoid(beta); with allow_neg_eigval
        twice that.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _kda(
        (q, k, v, g, beta, A_log, dt_bias, offsets(cu_seqlens)),
        {"scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel, "use_gate_in_kernel": use_gate_in_kernel, "lower_bound": lower_bound, "use_beta_sigmoid_in_kernel": use_beta_sigmoid_in_kernel, "allow_neg_eigval": allow_neg_eigval, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_gdn2 = Family(
    "gdn2", flags=("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "reverse"), numbers=("scale", "lower_bound")
)


def gdn2(
    q, k, v, g, b, w, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, use_gate_in_kernel=False, A_log=None, dt_bias=None,
    lower_bound=None, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Gated DeltaNet 2: separate gates for what is erased and what is written.

    Per head, for t = 0, 1, …::

        S' = Diag(e^g_t) S_{t-1},  S_t = S' + k_t (w_t ⊙ v_t − S'ᵀ(b_t ⊙ k_t))ᵀ
        o_t = scale · S_tᵀq_t

    As flash-linear-attention defines it, 2026.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      g: ``[B, T, H, K]``, natural logarithm, ≤ 0, or with use_gate_in_kernel its
        preactivation; any floating-point dtype.
      b: ``[B, T, H, K]``, the gate of what is erased.
      w: ``[B, T, H, V]``, the gate of what is written.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q and k by √(x·x + 1e-6) first.
      use_gate_in_kernel: the decay is −e^A_log · softplus(g + dt_bias).
      A_log: ``[H]``, for use_gate_in_kernel.
      dt_bias: ``[H, K]`` or ``[H·K]``, for use_gate_in_kernel.
      lower_bound: with use_gate_in_kernel the decay is lower_bound ·
        sigmoid(e^A_log (g + dt_bias)), from −5 to below 0; A_log may be None then.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _gdn2(
        (q, k, v, g, b, w, A_log, dt_bias, offsets(cu_seqlens)),
        {"scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel, "use_gate_in_kernel": use_gate_in_kernel, "lower_bound": lower_bound, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_ttt_linear = Family("ttt_linear", flags=("use_qk_l2norm_in_kernel", "reverse"))


def ttt_linear(
    q, k, v, eta, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """TTT-linear with mini-batches of one token and no inner layer norm: one step of
    gradient descent per token, which is the delta rule.

    Per head, for t = 0, 1, …::

        S_t = S_{t-1} − η_t ∇ ½‖S_{t-1}ᵀk_t − v_t‖²
        o_t = scale · S_tᵀq_t

    Sun et al., "Learning to (Learn at Test Time)", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      eta: ``[B, T, H]`` or ``[B, T, H, 1]``, learning rates, any floating-point
        dtype.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q and k by √(x·x + 1e-6) first.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _ttt_linear(
        (q, k, v, eta, offsets(cu_seqlens)),
        {"scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_comba = Family("comba", flags=("use_qk_l2norm_in_kernel",))


def comba(
    q, k, v, p, g, beta=None, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Comba: the delta rule that corrects by p what the state was before the decay.

    Per head, for t = 0, 1, …::

        S_t = e^g_t S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀp_t)ᵀ
        o_t = scale · S_tᵀq_t

    Hu et al., "Comba", 2025.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      p: ``[B, T, Hk, K]``, of q's dtype.
      g: ``[B, T, H]``, natural logarithm, ≤ 0, any floating-point dtype.
      beta: ``[B, T, H]``; 1 unless given.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q, k and p by √(x·x + 1e-6) first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _comba(
        (q, k, v, p, g, beta, offsets(cu_seqlens)),
        {"scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_iplr = Family("iplr", flags=("reverse",))


def iplr(
    q, k, v, a, b, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, 
    num_threads=None, form="auto", target=None,
):
    """The delta rule with any transition of identity plus rank one.

    Per head, for t = 0, 1, …::

        S_t = S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t v_tᵀ
        o_t = scale · S_tᵀq_t

    As flash-linear-attention defines it, 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      a, b: ``[B, T, H, K]``, any floating-point dtype.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _iplr(
        (q, k, v, a, b, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_dplr = Family("dplr", flags=("reverse",))


def dplr(
    q, k, v, a, b, gk, scale=None, initial_state=None, output_final_state=False, *,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """The delta rule with any transition of diagonal plus rank one.

    Per head, for t = 0, 1, …::

        S_t = Diag(e^gk_t) S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t v_tᵀ
        o_t = scale · S_tᵀq_t

    As flash-linear-attention defines it, 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      a, b: ``[B, T, H, K]``, any floating-point dtype.
      gk: ``[B, T, H, K]``, natural logarithm, ≤ 0.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _dplr(
        (q, k, v, a, b, gk, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_rwkv7 = Family("rwkv7", flags=("reverse",))


def rwkv7(
    r, w, k, v, a, b, scale=1.0, initial_state=None, output_final_state=False, *,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """RWKV-7 (Goose).

    Per head, for t = 0, 1, …::

        S_t = Diag(e^w_t) S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t v_tᵀ
        o_t = scale · S_tᵀr_t

    Peng et al., "RWKV-7 Goose", 2025: a = −κ̂ and b = κ̂ ⊙ a_icl, κ̂ of unit length.

    Args:
      r: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of r's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      w: ``[B, T, H, K]``, natural logarithm, ≤ 0, any floating-point dtype.
      a, b: ``[B, T, H, K]``, any floating-point dtype.
      scale: multiplies the output; 1 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of r's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _rwkv7(
        (r, k, v, a, b, w, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_gated_deltaproduct = Family(
    "gated_deltaproduct", flags=("use_qk_l2norm_in_kernel",), integers=("num_householder",)
)


def gated_deltaproduct(
    q, k, v, g, beta, num_householder, scale=None, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, *, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Gated DeltaProduct: n steps of the delta rule per token.

    Per head, for t = 0, 1, …::

        S' = e^g_t S_{t-1}, then for i = 1 … n:
            S' ← S' + β_{t,i} k_{t,i} (v_{t,i} − S'ᵀk_{t,i})ᵀ
        S_t = S',  o_t = scale · S_tᵀq_t

    Siems et al., "DeltaProduct", 2025.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T·n, Hk, K]`` and ``[B, T·n, Hv, V]``, the n of a token in a row; of
        q's rank and dtype.
      g: ``[B, T, H]``, natural logarithm, ≤ 0, any floating-point dtype, or None.
      beta: ``[B, T·n, H]``, or None for 1.
      num_householder: n.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_qk_l2norm_in_kernel: divide q and k by √(x·x + 1e-6) first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _gated_deltaproduct(
        (q, k, v, g, beta, offsets(cu_seqlens)),
        {"num_householder": num_householder, "scale": scale, "use_qk_l2norm_in_kernel": use_qk_l2norm_in_kernel},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_gated_oja = Family("gated_oja", flags=("use_q_l2norm", "use_k_l2norm", "reverse"))


def gated_oja(
    q, k, v, gv=None, beta=None, scale=None, initial_state=None, output_final_state=False,
    use_q_l2norm=False, use_k_l2norm=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None,
    num_threads=None, form="auto", target=None,
):
    """The gated Oja rule: the delta rule with keys and values exchanged.

    Per head, for t = 0, 1, …::

        S' = S_{t-1} Diag(e^gv_t),  S_t = S' + β_t (k_t − S'v_t) v_tᵀ
        o_t = scale · S_tᵀq_t

    As flash-linear-attention defines it, 2025. Values should be of unit length.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      gv: ``[B, T, H, V]``, natural logarithm, ≤ 0, any floating-point dtype.
      beta: ``[B, T, H]``; 1 unless given.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: ``[N, H, K, V]``, float32 (float64 for float64 tokens), or a
        `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      use_q_l2norm, use_k_l2norm: divide q, k by √(x·x + 1e-6) first.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _gated_oja(
        (q, k, v, gv, beta, offsets(cu_seqlens)),
        {
            "scale": scale, "use_q_l2norm": use_q_l2norm, "use_k_l2norm": use_k_l2norm,
            "reverse": reverse,
        },
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip
