"""Named families whose state is a decayed sum."""

from __future__ import annotations

from ._families import Family, offsets

__all__ = [
    "gla",
    "hgrn",
    "hgrn2",
    "lightning",
    "linear_attention",
    "mamba2",
    "mlstm",
    "retnet",
    "rfa",
    "rwkv5",
    "rwkv6",
    "simple_gla",
]


_linear_attention = Family(
    "linear_attention", flags=("normalize", "reverse"), numbers=("scale", "eps"), words=("feature_map",)
)


def linear_attention(
    q, k, v, scale=None, initial_state=None, output_final_state=False, *, feature_map="elu", normalize=True,
    eps=None, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Linear attention, causal.

    Per head, for t = 0, 1, …::

        S_t = S_{t-1} + φ(k_t) v_tᵀ,  z_t = z_{t-1} + φ(k_t)
        o_t = scale · S_tᵀφ(q_t) / (scale · z_t·φ(q_t) + eps)

    Katharopoulos et al., "Transformers are RNNs", 2020. `attention` has more feature
    maps, masks and the non-causal form.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: S ``[N, H, K, V]``, or with normalize (S, z), z
        ``[N, H, K]``; float32 (float64 for float64 tokens), or
        a `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      feature_map: φ: "identity", "elu" (elu + 1), "relu", "relu2" or
        "softmax_kernel".
      normalize: divide by the sum of the weights.
      eps: added to that sum; 1e-6, or 1e-4 for 16-bit tokens, unless given.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``, a `State` if normalized.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _linear_attention(
        (q, k, v, offsets(cu_seqlens)),
        {"scale": scale, "feature_map": feature_map, "normalize": normalize, "eps": eps, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_rfa = Family("rfa", flags=("normalize", "reverse"), numbers=("scale", "eps"), words=("feature_map",))


def rfa(
    q, k, v, g, scale=None, initial_state=None, output_final_state=False, *, feature_map="identity",
    normalize=True, eps=None, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Random feature attention with a forget gate.

    Per head, for t = 0, 1, …::

        S_t = f_t S_{t-1} + (1 − f_t) φ(k_t) v_tᵀ,  f_t = e^g_t,  z alike
        o_t = scale · S_tᵀφ(q_t) / (scale · z_t·φ(q_t) + eps)

    Peng et al., "Random Feature Attention", 2021.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      g: ``[B, T, H]``, log f, ≤ 0, any floating-point dtype.
      scale: multiplies the output; K**-0.5 unless given.
      initial_state: S ``[N, H, K, V]``, or with normalize (S, z), z
        ``[N, H, K]``; float32 (float64 for float64 tokens), or
        a `State`; zeros unless given.
      output_final_state: also return the state after the last token.
      feature_map: φ, as in `linear_attention`; q and k may also be features.
      normalize, eps: as in `linear_attention`.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``, a `State` if normalized.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _rfa(
        (q, k, v, g, offsets(cu_seqlens)),
        {"scale": scale, "feature_map": feature_map, "normalize": normalize, "eps": eps, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_retnet = Family("retnet", flags=("reverse",))


def retnet(
    q, k, v, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None,
    form="auto", target=None,
):
    """Retention: every head has its own constant decay.

    Per head, for t = 0, 1, …::

        S_t = γ_h S_{t-1} + k_t v_tᵀ,  γ_h = 1 − 2^(−5−h)
        o_t = scale · S_tᵀq_t

    Sun et al., "Retentive Network", 2023. Rotate q and k beforehand.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
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
    return _retnet(
        (q, k, v, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_lightning = Family("lightning", flags=("reverse",), integers=("layer_idx", "num_layers"))


def lightning(
    q, k, v, layer_idx, num_layers, scale=None, initial_state=None, output_final_state=False, *,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Lightning attention: a constant decay per head and layer.

    Per head, for t = 0, 1, …::

        S_t = e^g_h S_{t-1} + k_t v_tᵀ,  g_h = −(8/H)(1 − layer_idx/num_layers) h
        o_t = scale · S_tᵀq_t

    Qin et al., "Lightning Attention-2", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      layer_idx, num_layers: integers.
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
    return _lightning(
        (q, k, v, offsets(cu_seqlens)),
        {"layer_idx": layer_idx, "num_layers": num_layers, "scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_simple_gla = Family("simple_gla", flags=("reverse",))


def simple_gla(
    q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False, *,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Simple gated linear attention: one decay per token and head.

    Per head, for t = 0, 1, …::

        S_t = e^g_t S_{t-1} + k_t v_tᵀ
        o_t = scale · S_tᵀq_t

    Yang et al., "Gated Linear Attention Transformers", 2024; Dao and Gu, 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      g: ``[B, T, H]``, natural logarithm, ≤ 0, any floating-point dtype.
      g_gamma: ``[H]``, instead of g.
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
    return _simple_gla(
        (q, k, v, g, g_gamma, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_mamba2 = Family("mamba2", flags=("dt_softplus",), numbers=(), state="initial_states")


def mamba2(
    x, dt, A, B, C, D=None, dt_bias=None, initial_states=None, dt_softplus=False,
    return_final_states=False, *, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """Mamba-2's state space duality.

    Per head, for t = 0, 1, …::

        S_t = e^(Δ_t A) S_{t-1} + B_t (Δ_t x_t)ᵀ,  Δ_t = dt_t + dt_bias
        y_t = S_tᵀC_t + D ⊙ x_t

    Dao and Gu, "Transformers are SSMs", 2024; as `mamba_ssm` calls it.

    Args:
      x: ``[B, T, H, P]``; float16, bfloat16, float32 or float64. Any array with
        ``__dlpack__``, any strides.
      dt: ``[B, T, H]``, A: ``[H]``, negative; any floating-point dtype.
      B, C: ``[B, T, G, N]``, of x's dtype; G divides H.
      D: ``[H]`` or ``[H, P]``; dt_bias: ``[H]``.
      initial_states: ``[B, H, P, N]``, float32 (float64 for float64 tokens); zeros
        unless given.
      dt_softplus: Δ is softplus(dt + dt_bias).
      return_final_states: also return the state after the last token.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``y [B, T, H, P]``, of x's kind and rank; with return_final_states
      ``(y, states [B, H, P, N])``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _mamba2(
        (x, B, C, dt, A, D, dt_bias, offsets(cu_seqlens)),
        {"dt_softplus": dt_softplus},
        initial_states, return_final_states, out, num_threads, form, target, inplace,
    )  # fmt: skip


_gla = Family("gla", flags=("reverse",))


def gla(
    q, k, v, g=None, gv=None, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", 
    target=None,
):
    """Gated linear attention: a decay per token and channel.

    Per head, for t = 0, 1, …::

        S_t = Diag(e^g_t) S_{t-1} Diag(e^gv_t) + k_t v_tᵀ
        o_t = scale · S_tᵀq_t

    Yang et al., "Gated Linear Attention Transformers", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      g: ``[B, T, H, K]``, natural logarithm, ≤ 0, any floating-point dtype.
      gv: the same along the values, ``[B, T, H, V]``.
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
    return _gla(
        (q, k, v, g, gv, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_hgrn = Family("hgrn", flags=("reverse",), numbers=())


def hgrn(
    x, g, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, 
    num_threads=None, form="auto", target=None,
):
    """HGRN: an elementwise gated recurrence.

    Per head, for t = 0, 1, …::

        h_t = e^g_t ⊙ h_{t-1} + x_t,  o_t = h_t

    Qin et al., "Hierarchically Gated Recurrent Network", 2023.

    Args:
      x: ``[B, T, D]`` or ``[T, D]``; float16, bfloat16, float32 or float64. Any
        array with ``__dlpack__``, any strides.
      g: x's shape, natural logarithm, ≤ 0, any floating-point dtype.
      initial_state: ``[N, D]``, float32 (float64 for float64 tokens); zeros unless
        given.
      output_final_state: also return the state after the last token.
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o``, of x's kind and shape; with output_final_state ``(o, state [N, D])``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _hgrn(
        (x, g, offsets(cu_seqlens)),
        {"reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_hgrn2 = Family("hgrn2", flags=("reverse",))


def hgrn2(
    q, v, g, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, 
    num_threads=None, form="auto", target=None,
):
    """HGRN2: GLA whose keys are what the gate does not keep.

    Per head, for t = 0, 1, …::

        S_t = Diag(f_t) S_{t-1} + (1 − f_t) v_tᵀ,  f_t = e^g_t
        o_t = scale · S_tᵀq_t

    Qin et al., "HGRN2", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      v: ``[B, T, H, V]``, of q's rank and dtype. Head counts divide one another.
      g: ``[B, T, H, K]``, log f, ≤ 0, any floating-point dtype.
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
    return _hgrn2(
        (q, v, g, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_rwkv5 = Family("rwkv5", flags=("reverse",))


def rwkv5(
    r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, 
    num_threads=None, form="auto", target=None,
):
    """RWKV-5 (Eagle): a constant decay per channel, and a bonus for the own token.

    Per head, for t = 0, 1, …::

        o_t = scale · (S_{t-1}ᵀr_t + (r_t·(u ⊙ k_t)) v_t)
        S_t = Diag(e^w) S_{t-1} + k_t v_tᵀ

    Peng et al., "Eagle and Finch", 2024.

    Args:
      r: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of r's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      w: ``[H, K]``, natural logarithm, ≤ 0, any floating-point dtype.
      u: ``[H, K]``.
      scale: multiplies the output; K**-0.5 unless given.
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
    return _rwkv5(
        (r, k, v, w, u, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_rwkv6 = Family("rwkv6", flags=("reverse",))


def rwkv6(
    r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, *, reverse=False, cu_seqlens=None, inplace=False, out=None, 
    num_threads=None, form="auto", target=None,
):
    """RWKV-6 (Finch): a decay per token and channel, and a bonus for the own token.

    Per head, for t = 0, 1, …::

        o_t = scale · (S_{t-1}ᵀr_t + (r_t·(u ⊙ k_t)) v_t)
        S_t = Diag(e^w_t) S_{t-1} + k_t v_tᵀ

    Peng et al., "Eagle and Finch", 2024.

    Args:
      r: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of r's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      w: ``[B, T, H, K]``, natural logarithm, ≤ 0, any floating-point dtype.
      u: ``[H, K]``.
      scale: multiplies the output; K**-0.5 unless given.
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
    return _rwkv6(
        (r, k, v, w, u, offsets(cu_seqlens)),
        {"scale": scale, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip


_mlstm = Family("mlstm", flags=("reverse",), numbers=("scale", "eps"))


def mlstm(
    q, k, v, i, f, scale=None, initial_state=None, output_final_state=False, *, eps=0.0,
    reverse=False, cu_seqlens=None, inplace=False, out=None, num_threads=None, form="auto", target=None,
):
    """The matrix memory of xLSTM, with exponential input gates.

    Per head, for t = 0, 1, …::

        S_t = sigmoid(f_t) S_{t-1} + e^i_t k_t v_tᵀ,  z_t = sigmoid(f_t) z_{t-1} + e^i_t k_t
        o_t = scale · S_tᵀq_t / max(|scale · z_t·q_t|, 1)

    S and z are kept times e^−m_t with m_t = max(log sigmoid(f_t) + m_{t-1}, i_t), so
    that no gate overflows. Beck et al., "xLSTM", 2024.

    Args:
      q: ``[B, T, Hq, K]``, ``[B, T, K]`` or ``[T, K]``; float16, bfloat16, float32
        or float64. Any array with ``__dlpack__``, any strides.
      k, v: ``[B, T, Hk, K]`` and ``[B, T, Hv, V]``, of q's rank and dtype. Head
        counts divide one another; there are H = max(Hk, Hv) states.
      i: ``[B, T, H]``, the logarithm of the input gate, any floating-point dtype.
      f: ``[B, T, H]``, the forget gate before its sigmoid.
      scale: multiplies numerator and denominator; K**-0.5 unless given.
      initial_state: a `State`, or (S ``[N, H, K, V]``, z ``[N, H, K]``, m
        ``[N, H]``), float32 (float64 for float64 tokens); zeros, and m −∞, unless
        given.
      output_final_state: also return the state after the last token.
      eps: added to the divisor of what is kept, max(|z·q|, e^−m).
      reverse: from the last token to the first.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      inplace, out, num_threads, form, target: as in `scan`.

    Returns:
      ``o [B, T, max(Hq, H), V]``, of q's kind and rank; with output_final_state
      ``(o, state)``, a `State` with S, z and m.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
      ValueError: naming `form`, one that is illegal for the recurrence, and why.
    """
    return _mlstm(
        (q, k, v, i, f, offsets(cu_seqlens)),
        {"scale": scale, "eps": eps, "reverse": reverse},
        initial_state, output_final_state, out, num_threads, form, target, inplace,
    )  # fmt: skip
