"""Families that correct what a key reads."""

from __future__ import annotations

import numpy as np

from .._core._checks import UnsupportedError
from .._families import _named as families
from ._define import define
from ._run import run

_TAIL = "scale=None, initial_state=None, output_final_state=False"
_NORM = "use_qk_l2norm_in_kernel=False"
_NO_STATE = "``(o, None)``: ``o [B, T, max(H, HV), V]``, of q's kind and dtype."


def _delta_rule(q, k, v, beta=None, **options):
    return run(families.delta_rule, q, k, v, beta, **options)


_DELTA = (
    "DeltaNet: every key replaces what it reads.",
    "S_t = S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀk_t)ᵀ\no_t = scale · S_tᵀq_t",
)
_DELTA_BETA = "``[B, T, HV]`` or ``[B, T, HV, V]``; ones if None."
chunk_delta_rule, fused_recurrent_delta_rule = define(
    _delta_rule,
    *_DELTA,
    [
        f"chunk_delta_rule(q, k, v, beta, {_TAIL}, {_NORM}, cu_seqlens=None, cu_seqlens_cpu=None, *, "
        "chunk_size=None)",
        f"fused_recurrent_delta_rule(q, k, v, beta=None, {_TAIL}, {_NORM}, cu_seqlens=None)",
    ],
    beta=_DELTA_BETA,
)
(parallel_delta_rule,) = define(
    _delta_rule,
    *_DELTA,
    ["parallel_delta_rule(q, k, v, beta, scale=None, output_attentions=False)"],
    beta=_DELTA_BETA,
    returns=_NO_STATE,
)


def _bound(options, g):
    """The options of a gate that may be bounded below."""
    if not options.get("use_gate_in_kernel"):
        # A promise about g then, of which nothing here needs to know.
        options["lower_bound"] = None
    elif options.get("A_log") is None and options["lower_bound"] is not None:
        options["A_log"] = np.zeros(g.shape[2], np.float32)
    return options


def _gated_delta_rule(q, k, v, g=None, gk=None, gv=None, beta=None, **options):
    if gv is not None:
        raise UnsupportedError("gv: expected None, since the delta rule has no decay of values here, but got an array")
    gated = options["use_gate_in_kernel"]
    if gk is not None:
        if gated or options["A_log"] is not None or options["dt_bias"] is not None:
            raise ValueError("gk: expected None with use_gate_in_kernel, A_log or dt_bias, but got an array")
        # Both decays apply.
        g = gk if g is None else gk + g[..., None]
        return run(families.kda, q, k, v, g, beta, **options)
    if g is None:
        if gated or options.pop("A_log") is not None or options.pop("dt_bias") is not None:
            raise ValueError("g: expected an array with use_gate_in_kernel, A_log or dt_bias, but got None")
        del options["use_gate_in_kernel"]
        return run(families.delta_rule, q, k, v, beta, **options)
    return run(families.gated_delta_rule, q, k, v, g, beta, **options)


_SIGMOID = "use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False"
_GATED = (
    _gated_delta_rule,
    "Gated DeltaNet: the delta rule with a decay per token and head.",
    "S' = e^g_t S_{t-1},  S_t = S' + β_t k_t (v_t − S'ᵀk_t)ᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_{{}}(q, k, v, g, beta, {_TAIL}, {_NORM}, {_SIGMOID}, state_v_first=False, cu_seqlens=None, "
        "cu_seqlens_cpu=None, chunk_indices=None, cp_context=None, *, use_gate_in_kernel=False, "
        "A_log=None, dt_bias=None, chunk_size=None)",
        f"fused_recurrent_{{}}(q, k, v, g=None, gk=None, gv=None, beta=None, {_TAIL}, {_NORM}, "
        f"use_gate_in_kernel=False, A_log=None, dt_bias=None, {_SIGMOID}, state_v_first=False, cu_seqlens=None)",
    ],
)
_GATED_PARAMETERS = dict(
    g="``[B, T, HV]``, natural logarithms, ≤ 0.",
    gk="``[B, T, HV, K]``, natural logarithms, ≤ 0, a decay per channel beside g or instead of it.",
    gv="None: linattn has no delta rule with a decay of values.",
    beta="``[B, T, HV]`` or ``[B, T, HV, V]``; ones if None.",
)


def _define_gated(name):
    *what, signatures = _GATED
    return define(*what, [line.format(name) for line in signatures], **_GATED_PARAMETERS)


chunk_gated_delta_rule, fused_recurrent_gated_delta_rule = _define_gated("gated_delta_rule")
chunk_gdn, fused_recurrent_gdn = _define_gated("gdn")


def _kda(q, k, v, g, beta, **options):
    return run(families.kda, q, k, v, g, beta, **_bound(options, g))


_CHANNELS = dict(
    g="``[B, T, HV, K]``, natural logarithms, ≤ 0.",
    dt_bias="``[HV, K]`` or ``[HV · K]``, for use_gate_in_kernel.",
)
chunk_kda, fused_recurrent_kda = define(
    _kda,
    "Kimi delta attention: the delta rule with a decay per token and channel.",
    "S' = Diag(e^g_t) S_{t-1},  S_t = S' + β_t k_t (v_t − S'ᵀk_t)ᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_kda(q, k, v, g, beta, {_TAIL}, {_NORM}, use_gate_in_kernel=False, {_SIGMOID}, safe_gate=False, "
        "lower_bound=None, disable_recompute=False, return_intermediate_states=False, state_v_first=False, "
        "cu_seqlens=None, cu_seqlens_cpu=None, cp_context=None, use_graph=False, max_num_seqs=None, *, A_log=None, "
        "dt_bias=None, chunk_size=None)",
        f"fused_recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, {_TAIL}, {_NORM}, "
        f"use_gate_in_kernel=False, {_SIGMOID}, lower_bound=None, state_v_first=False, cu_seqlens=None)",
    ],
    **_CHANNELS,
)


def _gdn2(q, k, v, g, b, w, **options):
    return run(families.gdn2, q, k, v, g, b, w, **_bound(options, g))


chunk_gdn2, fused_recurrent_gdn2 = define(
    _gdn2,
    "Gated DeltaNet 2: separate gates for what is erased and what is written.",
    "S' = Diag(e^g_t) S_{t-1},  S_t = S' + k_t (w_t ⊙ v_t − S'ᵀ(b_t ⊙ k_t))ᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_gdn2(q, k, v, g, b, w, {_TAIL}, {_NORM}, use_gate_in_kernel=False, cu_seqlens=None, "
        "cu_seqlens_cpu=None, safe_gate=False, lower_bound=None, disable_recompute=False, "
        "return_intermediate_states=False, state_v_first=False, cp_context=None, *, A_log=None, dt_bias=None, "
        "chunk_size=None)",
        f"fused_recurrent_gdn2(q, k, v, g, b, w, A_log=None, dt_bias=None, {_TAIL}, {_NORM}, "
        "use_gate_in_kernel=False, lower_bound=None, state_v_first=False, cu_seqlens=None)",
    ],
    b="``[B, T, HV, K]``, the gate of what is erased.",
    w="``[B, T, HV, V]``, the gate of what is written.",
    **_CHANNELS,
)


def _comba(q, k, v, p, g, beta=None, **options):
    return run(families.comba, q, k, v, p, g, beta, **options)


chunk_comba, fused_recurrent_comba = define(
    _comba,
    "Comba: the delta rule that corrects by p what the state was before the decay.",
    "S_t = e^g_t S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀp_t)ᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_comba(q, k, v, p, g, beta=None, {_TAIL}, {_NORM}, cu_seqlens=None, cu_seqlens_cpu=None)",
        f"fused_recurrent_comba(q, k, p, v, g, beta=None, {_TAIL}, {_NORM}, cu_seqlens=None)",
    ],
    "Mind the order, which is that of flash-linear-attention: v, p here in the chunk function, p, v "
    "in the recurrent one.",
    p="``[B, T, H, K]``, of q's dtype.",
    g="``[B, T, HV]``, natural logarithms, ≤ 0.",
    beta="``[B, T, HV]``; ones if None.",
    use_qk_l2norm_in_kernel="divide q, k and p by √(x·x + 1e-6) first.",
)


def _gated_delta_product(q, k, v, g, beta, num_householder, **options):
    return run(families.gated_deltaproduct, q, k, v, g, beta, num_householder, **options)


(chunk_gated_delta_product,) = define(
    _gated_delta_product,
    "Gated DeltaProduct: n steps of the delta rule per token, after one decay.",
    "S' = e^g_t S_{t-1}, then n times S' ← S' + β_{t,i} k_{t,i} (v_{t,i} − S'ᵀk_{t,i})ᵀ\n"
    "S_t = S',  o_t = scale · S_tᵀq_t",
    [
        f"chunk_gated_delta_product(q, k, v, g, beta, num_householder, {_TAIL}, {_NORM}, cu_seqlens=None, "
        "cu_seqlens_cpu=None, cp_context=None)"
    ],
    k="``[B, T·n, H, K]``, the n of a token in a row, of q's dtype.",
    v="``[B, T·n, HV, V]``, alike.",
    g="``[B, T, HV]``, natural logarithms, ≤ 0, or None.",
    beta="``[B, T·n, HV]``.",
    num_householder="n.",
)

_AB = dict(a="``[B, T, H, K]``.", b="``[B, T, H, K]``.")
_DPLR = "S_t = Diag(e^{}_t) S_{{t-1}} + b_t (S_{{t-1}}ᵀa_t)ᵀ + k_t v_tᵀ\no_t = scale · S_tᵀ{}_t"
_DPLR_TAIL = (
    "cu_seqlens=None, cu_seqlens_cpu=None, safe_gate=False, chunk_size=None, disable_recompute=False, "
    "cp_context=None, lower_bound=None"
)
_DPLR_BOUND = "a promise about the decays, of which nothing here needs to know; not used."


def _iplr(q, k, v, a, b, **options):
    return run(families.iplr, q, k, v, a, b, **options)


chunk_iplr_delta_rule, fused_recurrent_iplr_delta_rule = define(
    _iplr,
    "A transition of the identity plus rank one.",
    "S_t = S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t v_tᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_iplr_delta_rule(q, k, v, a, b, {_TAIL}, cu_seqlens=None, cu_seqlens_cpu=None, *, chunk_size=None)",
        f"fused_recurrent_iplr_delta_rule(q, k, v, a, b, {_TAIL}, cu_seqlens=None)",
    ],
    **_AB,
)


def _dplr(q, k, v, a, b, gk, lower_bound=None, **options):
    return run(families.dplr, q, k, v, a, b, gk, **options)


chunk_dplr_delta_rule, fused_recurrent_dplr_delta_rule = define(
    _dplr,
    "A transition of a diagonal plus rank one.",
    _DPLR.format("gk", "q"),
    [
        f"chunk_dplr_delta_rule(q, k, v, a, b, gk, {_TAIL}, {_DPLR_TAIL})",
        f"fused_recurrent_dplr_delta_rule(q, k, v, a, b, gk, {_TAIL}, reverse=False, cu_seqlens=None)",
    ],
    gk="``[B, T, H, K]``, natural logarithms, ≤ 0.",
    lower_bound=_DPLR_BOUND,
    **_AB,
)


def _rwkv7(r, w, k, v, a, b, lower_bound=None, **options):
    # Not linattn.rwkv7, whose scale is 1 where it is None.
    return run(families.dplr, r, k, v, a, b, w, **options)


chunk_rwkv7, fused_recurrent_rwkv7 = define(
    _rwkv7,
    "RWKV-7 (Goose): a = −κ̂ and b = κ̂ ⊙ a_icl, κ̂ of unit length.",
    _DPLR.format("w", "r"),
    [
        "chunk_rwkv7(r, w, k, v, a, b, scale=1.0, initial_state=None, output_final_state=False, " + _DPLR_TAIL + ")",
        "fused_recurrent_rwkv7(r, w, k, v, a, b, scale=None, initial_state=None, output_final_state=True, "
        "cu_seqlens=None)",
    ],
    "As in flash-linear-attention, scale is 1 unless given in the chunk function and K**-0.5 in the "
    "recurrent one, which also returns the state by default.",
    w="``[B, T, H, K]``, natural logarithms, ≤ 0.",
    lower_bound=_DPLR_BOUND,
    **_AB,
)


def _mul_rwkv7(r, w, k, v, kk, a, **options):
    return run(families.dplr, r, k, v, -kk, kk * a, w, **options)


(fused_mul_recurrent_rwkv7,) = define(
    _mul_rwkv7,
    "RWKV-7 (Goose), from κ̂ and a_icl.",
    "S_t = Diag(e^w_t) S_{t-1} − (kk_t ⊙ a_t) (S_{t-1}ᵀkk_t)ᵀ + k_t v_tᵀ\no_t = scale · S_tᵀr_t",
    [
        "fused_mul_recurrent_rwkv7(r, w, k, v, kk, a, scale=1.0, initial_state=None, "
        "output_final_state=False, reverse=False, cu_seqlens=None)"
    ],
    w="``[B, T, H, K]``, natural logarithms, ≤ 0.",
    kk="``[B, T, H, K]``, κ̂.",
    a="``[B, T, H, K]``, a_icl.",
    scale="multiplies the output; K**-0.5 if None.",
)
