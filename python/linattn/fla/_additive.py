"""Families whose state is a decayed sum."""

from __future__ import annotations

from .._core._checks import check_flag
from .._families import _named as families
from ._define import define
from ._run import run

_TAIL = "scale=None, initial_state=None, output_final_state=False"
_ONE_DECAY = "S_t = γ_h S_{t-1} + k_t v_tᵀ\no_t = scale · S_tᵀq_t"
_NO_STATE = "``(o, None)``: ``o [B, T, max(H, HV), V]``, of q's kind and dtype."


def _linear_attn(
    q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens, inplace, reverse=False
):  # fmt: skip
    normalize = check_flag("normalize", normalize)
    given = initial_state
    if normalize and isinstance(initial_state, (tuple, list)) and len(initial_state) == 2:
        S, z = initial_state
        if len(z.shape) != 4 or z.shape[1] != 1:
            raise ValueError(f"initial_state: expected z of shape (N, 1, H, K), but got {tuple(z.shape)}")
        initial_state = (S, z[:, 0])
    result = families.linear_attention(
        q, k, v, scale, initial_state, output_final_state, feature_map="identity", normalize=normalize,
        eps=1e-10 if normalize else None, reverse=reverse, cu_seqlens=cu_seqlens, inplace=inplace,
    )  # fmt: skip
    if not output_final_state:
        return result, None
    o, state = result
    if inplace:
        return o, given
    return o, (state.S, state.z[:, None]) if normalize else state


chunk_linear_attn, fused_chunk_linear_attn, fused_recurrent_linear_attn = define(
    _linear_attn,
    "Linear attention.",
    "S_t = S_{t-1} + k_t v_tᵀ,  z_t = z_{t-1} + k_t\n"
    "o_t = scale · S_tᵀq_t, divided by scale · z_t·q_t + 1e-10 with normalize",
    [
        f"chunk_linear_attn(q, k, v, {_TAIL}, normalize=True, cu_seqlens=None)",
        f"fused_chunk_linear_attn(q, k, v, {_TAIL}, normalize=True, cu_seqlens=None)",
        f"fused_recurrent_linear_attn(q, k, v, {_TAIL}, reverse=False, normalize=False, cu_seqlens=None)",
    ],
    "As in flash-linear-attention, normalize is True unless given in the chunk functions and False "
    "in the recurrent one.",
    normalize="divide by the sum of the weights.",
    initial_state="S ``[N, HV, K, V]``, or with normalize ``(S, z)``, z ``[N, 1, HV, K]``; float32 "
    "(float64 for float64 tokens); zeros if None.",
)


def _retention(q, k, v, scale, initial_state=None, output_final_state=False, cu_seqlens=None, **options):
    return run(
        families.retnet, q, k, v, scale, initial_state=initial_state,
        output_final_state=output_final_state, cu_seqlens=cu_seqlens, **options,
    )  # fmt: skip


chunk_retention, fused_chunk_retention, fused_recurrent_retention = define(
    _retention,
    "Retention: every head has its own constant decay, γ_h = 1 − 2^(−5−h).",
    _ONE_DECAY,
    [
        f"chunk_retention(q, k, v, {_TAIL}, cu_seqlens=None)",
        f"fused_chunk_retention(q, k, v, {_TAIL}, cu_seqlens=None)",
        f"fused_recurrent_retention(q, k, v, {_TAIL}, reverse=False, state_v_first=False, cu_seqlens=None)",
    ],
)
(parallel_retention,) = define(
    _retention,
    "Retention: every head has its own constant decay, γ_h = 1 − 2^(−5−h).",
    _ONE_DECAY,
    ["parallel_retention(q, k, v, scale=None, output_attentions=False, cu_seqlens=None)"],
    returns=_NO_STATE,
)


def _lightning(q, k, v, layer_idx, num_layers, **options):
    return run(families.lightning, q, k, v, layer_idx, num_layers, **options)


chunk_lightning_attn, fused_recurrent_lightning_attn = define(
    _lightning,
    "Lightning attention: γ_h = e^g_h with g_h = −(8/H)(1 − layer_idx/num_layers) h.",
    _ONE_DECAY,
    [
        f"chunk_lightning_attn(q, k, v, layer_idx, num_layers, {_TAIL}, cu_seqlens=None)",
        f"fused_recurrent_lightning_attn(q, k, v, layer_idx, num_layers, {_TAIL}, reverse=False, cu_seqlens=None)",
    ],
    layer_idx="an integer.",
    num_layers="an integer.",
)


def _simple_gla(q, k, v, g=None, g_gamma=None, **options):
    if g is not None and g_gamma is not None:
        raise ValueError("g_gamma: expected None with g, but got both")
    return run(families.simple_gla, q, k, v, g, g_gamma, **options)


_SIMPLE_GLA = dict(
    g="``[B, T, HV]``, natural logarithms, ≤ 0.",
    g_gamma="``[HV]``, constant ones, instead of g. (flash-linear-attention applies both where both come.)",
)
chunk_simple_gla, fused_chunk_simple_gla, fused_recurrent_simple_gla = define(
    _simple_gla,
    "Simple gated linear attention: one decay per token and head, as in Mamba-2.",
    "S_t = e^g_t S_{t-1} + k_t v_tᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_simple_gla(q, k, v, g=None, g_gamma=None, {_TAIL}, state_v_first=False, cu_seqlens=None, "
        "cu_seqlens_cpu=None, *, chunk_size=None)",
        f"fused_chunk_simple_gla(q, k, v, g=None, g_gamma=None, {_TAIL}, cu_seqlens=None)",
        f"fused_recurrent_simple_gla(q, k, v, g=None, g_gamma=None, {_TAIL}, reverse=False, "
        "state_v_first=False, cu_seqlens=None)",
    ],
    **_SIMPLE_GLA,
)
(parallel_simple_gla,) = define(
    _simple_gla,
    "Simple gated linear attention: one decay per token and head, as in Mamba-2.",
    "S_t = e^g_t S_{t-1} + k_t v_tᵀ\no_t = scale · S_tᵀq_t",
    [
        "parallel_simple_gla(q, k, v, g=None, scale=None, output_attentions=False, cu_seqlens=None, "
        "cu_seqlens_cpu=None)"
    ],
    returns=_NO_STATE,
    **_SIMPLE_GLA,
)


def _gla(q, k, v, g=None, gk=None, gv=None, **options):
    return run(families.gla, q, k, v, g if gk is None else gk, gv, **options)


chunk_gla, fused_recurrent_gla = define(
    _gla,
    "Gated linear attention: a decay per token and channel.",
    "S_t = Diag(e^gk_t) S_{t-1} Diag(e^gv_t) + k_t v_tᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_gla(q, k, v, g, {_TAIL}, state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None)",
        f"fused_recurrent_gla(q, k, v, gk=None, gv=None, {_TAIL}, reverse=False, state_v_first=False, "
        "cu_seqlens=None)",
    ],
    "The chunk function calls gk g and has no gv.",
    g="``[B, T, HV, K]``, natural logarithms, ≤ 0.",
    gk="``[B, T, HV, K]``, natural logarithms, ≤ 0.",
    gv="``[B, T, HV, V]``, natural logarithms, ≤ 0.",
)


def _hgrn(x, g, **options):
    return run(families.hgrn, x, g, **options)


chunk_hgrn, fused_recurrent_hgrn = define(
    _hgrn,
    "HGRN: an elementwise gated recurrence.",
    "h_t = e^g_t ⊙ h_{t-1} + x_t,  o_t = h_t",
    [
        "chunk_hgrn(x, g, initial_state=None, output_final_state=False)",
        "fused_recurrent_hgrn(x, g, initial_state=None, output_final_state=False, cu_seqlens=None)",
    ],
    x="``[B, T, D]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``.",
    g="``[B, T, D]``, natural logarithms, ≤ 0.",
    initial_state="``[N, D]``, float32 (float64 for float64 inputs); zeros if None.",
    returns="``(o, final_state)``: o of x's kind, shape and dtype; final_state ``[N, D]``, None unless\n"
    "  output_final_state.",
)


def _rwkv6(r, k, v, w, u, **options):
    return run(families.rwkv6, r, k, v, w, u, **options)


chunk_rwkv6, fused_recurrent_rwkv6 = define(
    _rwkv6,
    "RWKV-6 (Finch): a decay per token and channel, and a bonus for the own token.",
    "o_t = scale · (S_{t-1}ᵀr_t + (r_t·(u ⊙ k_t)) v_t)\nS_t = Diag(e^w_t) S_{t-1} + k_t v_tᵀ",
    [
        f"chunk_rwkv6(r, k, v, w, u, {_TAIL}, cu_seqlens=None, cu_seqlens_cpu=None)",
        f"fused_recurrent_rwkv6(r, k, v, w, u, {_TAIL}, reverse=False, cu_seqlens=None)",
    ],
    w="``[B, T, H, K]``, natural logarithms, ≤ 0.",
    u="``[H, K]``.",
)
