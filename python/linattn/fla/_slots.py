"""Families of two passes through slots."""

from __future__ import annotations

from .._core._checks import UnsupportedError, check_flag
from .._families import _named as families
from ._define import define

_SLOTS = dict(
    s="``[B, T, H, M]``, what goes into the M slots, of q's dtype.",
    initial_state="``(hk [N, H, K, M], hv [N, H, M, V])``, float32 (float64 for float64 tokens); zeros if "
    "None.",
    scale="multiplies the scores of the slots; K**-0.5 if None.",
    returns="``(o, final_state)``: ``o [B, T, H, V]``, of q's kind and dtype; final_state (hk, hv), None\n"
    "  unless output_final_state.",
)


def _abc(q, k, v, s, initial_state=None, output_final_state=False, scale=None, inplace=False):
    if initial_state is not None:
        raise UnsupportedError(
            "initial_state: expected None, since hk and hv lack the sum of weights that they are "
            "divided by, but got one; linattn.abc carries it on"
        )
    output_final_state = check_flag("output_final_state", output_final_state)
    result = families.abc(q, k, v, s, scale, None, output_final_state, inplace=inplace)
    return (result[0], tuple(result[1][:2])) if output_final_state else (result, None)


(chunk_abc,) = define(
    _abc,
    "ABC: slots weighted by a running softmax.",
    "z_t = log Σ_{j≤t} e^s_j,  w_t = e^(s_t − z_t),  g_t = z_{t-1} − z_t\n"
    "K_t = K_{t-1} Diag(e^g_t) + k_t w_tᵀ,  p_t = softmax(scale · K_tᵀq_t)\n"
    "V_t = Diag(e^g_t) V_{t-1} + w_t v_tᵀ,  o_t = V_tᵀp_t",
    ["chunk_abc(q, k, v, s, initial_state=None, output_final_state=False)"],
    **{**_SLOTS, "initial_state": "None: hk and hv alone cannot be continued; see `linattn.abc`."},
)


def _gsa(q, k, v, s, g, scale, initial_state, output_final_state, cu_seqlens, inplace, reverse=False):
    output_final_state = bool(check_flag("output_final_state", output_final_state or False))
    if g is None:
        if cu_seqlens is not None or reverse:
            raise UnsupportedError(
                "g: expected an array with cu_seqlens or reverse, where the running softmax of s is not "
                "defined, but got None"
            )
        return _abc(q, k, v, s, initial_state, output_final_state, scale, inplace)
    result = families.gsa(
        q, k, v, s, g, scale, initial_state, output_final_state, reverse=reverse or False,
        cu_seqlens=cu_seqlens, inplace=inplace,
    )  # fmt: skip
    if inplace and output_final_state:
        return result[0], initial_state
    return (result[0], tuple(result[1])) if output_final_state else (result, None)


chunk_gsa, fused_recurrent_gsa = define(
    _gsa,
    "Gated slot attention: keys and values meet in M slots.",
    "K_t = K_{t-1} Diag(e^g_t) + k_t s_tᵀ,  p_t = softmax(scale · K_tᵀq_t)\n"
    "V_t = Diag(e^g_t) V_{t-1} + s_t v_tᵀ,  o_t = V_tᵀp_t",
    [
        "chunk_gsa(q, k, v, s, g=None, scale=None, initial_state=None, output_final_state=False, "
        "checkpoint_level=2, cu_seqlens=None, cu_seqlens_cpu=None, *, chunk_size=None)",
        "fused_recurrent_gsa(q, k, v, s, g=None, scale=None, initial_state=None, output_final_state=False, "
        "reverse=False, cu_seqlens=None)",
    ],
    g="``[B, T, H, M]``, natural logarithms, ≤ 0; if None, slots are weighted as in chunk_abc.",
    **_SLOTS,
)
