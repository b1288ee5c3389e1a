"""Families of flash-linear-attention 0.5 and 0.6: Oja, momentum, LightNet, RWKV-4,
log-linear attention."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._core._checks import UnsupportedError, check_flag
from .._families import _named
from ._define import define, swap_state
from ._run import run

_TAIL = "scale=None, initial_state=None, output_final_state=False"


def _gated_oja(q, k, v, gv=None, beta=None, **options):
    return run(_named.gated_oja, q, k, v, gv, beta, **options)


chunk_gated_oja_rule, fused_recurrent_gated_oja_rule = define(
    _gated_oja,
    "The gated Oja rule: the delta rule with keys and values exchanged.",
    "S' = S_{t-1} Diag(e^gv_t),  S_t = S' + β_t (k_t − S'v_t) v_tᵀ\no_t = scale · S_tᵀq_t",
    [
        f"chunk_gated_oja_rule(q, k, v, gv, beta, {_TAIL}, use_q_l2norm=False, use_k_l2norm=False, "
        "cu_seqlens=None, cu_seqlens_cpu=None, *, chunk_size=None)",
        f"fused_recurrent_gated_oja_rule(q, k, v, gv=None, beta=None, {_TAIL}, use_q_l2norm=False, "
        "use_k_l2norm=False, cu_seqlens=None)",
    ],
    gv="``[B, T, HV, V]``, natural logarithms, ≤ 0; no decay if None.",
    beta="``[B, T, HV]``; ones if None.",
    use_q_l2norm="divide q by √(q·q + 1e-6) first.",
    use_k_l2norm="divide k by √(k·k + 1e-6) first.",
)


def _momentum_rule(
    q, k, v, log_alpha, log_mu, p, beta, eta, scale, initial_state, output_final_state, cu_seqlens, **options
):
    if cu_seqlens is not None:
        raise UnsupportedError("cu_seqlens: expected None, as in flash-linear-attention, but got offsets")
    output_final_state = check_flag("output_final_state", output_final_state)
    given = initial_state
    if initial_state is not None:
        if len(initial_state) != 2:
            raise ValueError(f"initial_state: expected shape (2, B, H, K, V), but got {tuple(initial_state.shape)}")
        initial_state = (initial_state[0], initial_state[1])
    result = _named.momentum_delta_rule(
        q, k, v, log_alpha, log_mu, p, beta, eta, scale, initial_state, output_final_state, **options
    )
    if not output_final_state:
        return result, None
    o, states = result
    if options["inplace"]:
        return o, given
    stacked = np.stack([_arrays.to_numpy(x) for x in states])
    return o, _arrays.convert_like(stacked, q)


_MOMENTUM = (
    "q, k, v, log_alpha, log_mu, p=None, beta=None, eta=None, scale=None, initial_state=None, "
    "output_final_state=False, cu_seqlens=None, use_qk_l2norm_in_kernel=True, use_p_times_alpha=True"
)
chunk_momentum_delta_rule, fused_recurrent_momentum_delta_rule = define(
    _momentum_rule,
    "Momentum DeltaNet: the state follows the momentum of the delta rule's steps.",
    "M_t = e^log_mu_t M_{t-1} − eta_t k_t (v_t − S_{t-1}ᵀp_t)ᵀ\n"
    "S_t = e^log_alpha_t S_{t-1} − beta_t M_t,  o_t = scale · S_tᵀq_t",
    [
        f"chunk_momentum_delta_rule({_MOMENTUM}, chunk_size=64)",
        f"fused_recurrent_momentum_delta_rule({_MOMENTUM})",
    ],
    "Both run token by token. (The chunk function of flash-linear-attention adds 1e-6 to beta.)",
    v="``[B, T, H, V]``.",
    log_alpha="``[B, T, H]``, natural logarithms, ≤ 0.",
    log_mu="``[B, T, H]``, natural logarithms, ≤ 0.",
    p="``[B, T, H, K]``, what is corrected; k if None.",
    beta="``[B, T, H]``; ones if None.",
    eta="``[B, T, H]``; ones if None.",
    initial_state="``[2, B, H, K, V]``, S and M, float32 (float64 for float64 tokens); zeros if None.",
    use_qk_l2norm_in_kernel="divide q, k and p by √(x·x + 1e-6) first.",
    use_p_times_alpha="multiply p by e^log_alpha.",
    cu_seqlens="None.",
)


def _lightnet_rule(q, k, v, scale, initial_state, output_final_state, state_v_first, cu_seqlens, inplace):
    output_final_state = check_flag("output_final_state", output_final_state)
    given = initial_state
    if initial_state is not None:
        if not isinstance(initial_state, (tuple, list)) or len(initial_state) != 2:
            raise ValueError("initial_state: expected a pair (recurrent_state, log_normalizer)")
        S, z = initial_state
        wide = np.float64 if _arrays.dtype_name(q) == "float64" else np.float32
        count = q.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1
        if S is None:
            S = np.zeros((count, k.shape[2], k.shape[3], v.shape[3]), wide)
            S = _arrays.convert_like(S, q)
        else:
            S = swap_state(S, state_v_first)
        if z is None:
            z = _arrays.convert_like(np.full((count, k.shape[2], k.shape[3]), -np.inf, wide), q)
        elif len(z.shape) != 4 or z.shape[1] != 1:
            raise ValueError(f"initial_state: expected log_normalizer of shape (N, 1, H, K), but got {tuple(z.shape)}")
        else:
            z = z[:, 0]
        initial_state = (S, z)
    o, (S, z) = _named.lightnet(q, k, v, scale, initial_state, True, cu_seqlens=cu_seqlens, inplace=inplace)
    if inplace and all(part is not None for part in given):
        return o, given if output_final_state else (None, given[1])
    return o, (swap_state(S, state_v_first) if output_final_state else None, z[:, None])


_LIGHTNET = f"(q, k, v, {_TAIL}, state_v_first=False, cu_seqlens=None)"
chunk_lightnet, fused_recurrent_lightnet = define(
    _lightnet_rule,
    "LightNet: keys under a running softmax, per channel.",
    "z_t = log(e^z_{t-1} + e^k_t)\nS_t = Diag(e^(z_{t-1} − z_t)) S_{t-1} + e^(k_t − z_t) v_tᵀ\n"
    "o_t = scale · S_tᵀq_t",
    [f"chunk_lightnet{_LIGHTNET}", f"fused_recurrent_lightnet{_LIGHTNET}"],
    k="``[B, T, H, K]``, logarithms of the keys, of q's dtype.",
    v="``[B, T, H, V]``.",
    initial_state="``(recurrent_state [N, H, K, V], log_normalizer [N, 1, H, K])``, float32 (float64 for "
    "float64 tokens), either of them or both None.",
    returns="``(o, (recurrent_state, log_normalizer))``: ``o [B, T, H, V]``, of q's kind and dtype; the\n"
    "  recurrent state is None unless output_final_state.",
)


def _rwkv4(w, u, k, v, state):
    if len(state.shape) != 4 or state.shape[1] != 3 or state.shape[2] != 1:
        raise ValueError(f"state: expected shape (B, 3, 1, C), but got {tuple(state.shape)}")
    w = _arrays.to_numpy(w, "w")
    decay = -np.exp(w.astype(np.float64 if w.dtype == np.float64 else np.float32))
    parts = tuple(state[:, i, 0] for i in range(3))
    o, parts = _named.rwkv4(_arrays.convert_like(decay, k), u, k, v, parts, True)
    stacked = np.stack([_arrays.to_numpy(x) for x in parts], axis=1)[:, :, None]
    return o, _arrays.convert_like(stacked, k)


(fused_recurrent_rwkv4,) = define(
    _rwkv4,
    "RWKV-4: an average of values whose weights decay, per channel.",
    "o_t = (A_{t-1} + e^(u + k_t) v_t) / (B_{t-1} + e^(u + k_t))\n"
    "A_t = e^d A_{t-1} + e^k_t v_t,  B_t = e^d B_{t-1} + e^k_t,  d = −e^w",
    ["fused_recurrent_rwkv4(w, u, k, v, state)"],
    w="``[C]``, the logarithm of the negative logarithm of the decay.",
    u="``[C]``, the bonus of the own token.",
    k="``[B, T, C]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``.",
    v="``[B, T, C]``, of k's dtype.",
    state="``[B, 3, 1, C]``: A e^-m, B e^-m and m, float32 (float64 for float64 tokens); 0, 0 and −∞ or "
    "any very small number at the start.",
    returns="``(o, state)``, of k's kind; o of its shape and dtype, the state as it came.",
)


def _log_linear(q, k, v, g, level_scales, initial_state, output_final_state, cu_seqlens, scale):
    for name, value in (("initial_state", initial_state), ("cu_seqlens", cu_seqlens)):
        if value is not None:
            raise UnsupportedError(
                f"{name}: expected None, but got {type(value).__name__}; linattn.log_linear carries states on"
            )
    if check_flag("output_final_state", output_final_state):
        raise UnsupportedError(
            "output_final_state: expected False, since the original keeps the tokens of a chunk in its state, but "
            "got True; linattn.log_linear returns the states per level"
        )
    return _named.log_linear(q, k, v, g, level_scales, scale), None


(chunk_log_linear_attn,) = define(
    _log_linear,
    "Log-linear attention: one state per level of a tree over the past.",
    "o_t = scale · Σ_{j≤t} level_scales_t[ℓ(t, j)] e^(g_{j+1} + … + g_t) (q_t·k_j) v_j\n"
    "with ℓ(t, j) the number of bits of t xor j",
    [
        "chunk_log_linear_attn(q, k, v, g, level_scales, initial_state=None, output_final_state=False, "
        "cu_seqlens=None, scale=1.0)"
    ],
    q="``[B, T, G, K]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``.",
    k="``[B, T, G, K]``, of q's dtype; G divides H.",
    v="``[B, T, H, V]``.",
    g="``[B, T, H]``, natural logarithms, ≤ 0.",
    level_scales="``[B, T, H, L]``.",
    initial_state="None; see `linattn.log_linear`.",
    output_final_state="False; see `linattn.log_linear`.",
    cu_seqlens="None.",
    returns="``(o, None)``: ``o [B, T, H, V]``, of q's kind and dtype.",
)
