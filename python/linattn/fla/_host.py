"""Functions that are not linear in their state, or work between their scans: in NumPy
and float64, as matrix products of whole chunks."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._core._checks import check_flag, check_number
from .._families import _named
from ._define import define

_CHUNK = 64


def _tokens(first, **arrays):
    """The arrays in float64, after a check of their dtypes; `first` names the one
    whose dtype the others have."""
    result, dtype = {}, _arrays.dtype_name(arrays[first])
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"{first}: expected float16, bfloat16, float32 or float64, but got {dtype}")
    for name, array in arrays.items():
        if _arrays.dtype_name(array) is None:
            raise TypeError(f"{name}: expected an array (an object with __dlpack__), but got {type(array).__name__}")
        if name in ("k", "v") and _arrays.dtype_name(array) != dtype:
            raise TypeError(f"{name}: expected the dtype of {first}, {dtype}, but got {_arrays.dtype_name(array)}")
        result[name] = np.asarray(_arrays.to_numpy(array, name), np.float64)
    return result


def _check_shapes(sizes, **arrays):
    """Shapes in words, "B T H K"; sizes that are not known yet become so."""
    for name, (array, layout) in arrays.items():
        words = layout.split()
        expected = tuple(sizes.get(word, array.shape[i] if array.ndim == len(words) else word) for i, word in enumerate(words))
        if tuple(array.shape) != expected:
            shape = ", ".join(map(str, expected))
            raise ValueError(f"{name}: expected shape ({shape}), but got {tuple(array.shape)}")
        sizes.update(zip(words, array.shape))
    return sizes


def _cuts(cu_seqlens, B, T):
    """The offsets of the sequences in a batch row, and how many states there are."""
    if cu_seqlens is None:
        return [(0, T)], B
    offsets = np.asarray(_arrays.to_host(cu_seqlens) if hasattr(cu_seqlens, "__dlpack__") else cu_seqlens).tolist()
    if B != 1:
        raise ValueError(f"cu_seqlens: expected a batch size of 1, but got {B}")
    if not offsets or offsets[0] != 0 or offsets[-1] != T or any(x > y for x, y in zip(offsets, offsets[1:])):
        raise ValueError(f"cu_seqlens: expected offsets from 0 to {T} that do not decrease, but got {offsets}")
    return list(zip(offsets, offsets[1:])), len(offsets) - 1


def _state(name, array, shape):
    """A copy of a state in float64; zeros if None."""
    if array is None:
        return np.zeros(shape)
    array = np.asarray(_arrays.to_numpy(array, name), np.float64)
    if array.shape != tuple(shape):
        raise ValueError(f"{name}: expected shape {tuple(shape)}, but got {array.shape}")
    return array.copy()


def _like(array, like, state=False):
    """A result in the dtype of the tokens, or of their states."""
    dtype = _arrays.to_numpy(like).dtype
    if state:
        dtype = np.float64 if dtype == np.float64 else np.float32
    result = _arrays.convert_like(np.ascontiguousarray(array.astype(dtype)), like)
    if state or _arrays.dtype_name(result) == _arrays.dtype_name(like):
        return result
    # bfloat16, which NumPy widens.
    return result.to(like.dtype) if hasattr(result, "to") else result.astype(like.dtype)


def _heads_first(x):
    return x.swapaxes(1, 2)


# ----------------------------------------------------------------------------
# TTT
# ----------------------------------------------------------------------------


def _normalize(x, eps):
    x = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x / deviation, deviation


def _ttt_chunk(q, k, v, eta, w, b, eps, h, bias):
    """Outputs before their norm, and the next weights; all [B, H, n, ·].

    The loss is ½‖w ⊙ LN(kᵀh + bias) + b − (v − k)‖²; every token's gradient is taken
    at the weights that the chunk begins with.
    """
    unit, deviation = _normalize(k @ h + bias, eps)
    error = (w * unit + b - (v - k)) * w
    size = v.shape[-1]
    gradient = size * error - error.sum(-1, keepdims=True) - unit * (error * unit).sum(-1, keepdims=True)
    gradient /= deviation * size
    causal = np.tril(q @ k.swapaxes(-1, -2)) + np.tri(k.shape[-2])
    o = q @ h + bias - eta * (causal @ gradient)
    last = eta[..., -1:, :]
    return o, h - last * (k.swapaxes(-1, -2) @ gradient), bias - last * gradient.sum(-2, keepdims=True)


def _ttt(
    q, k, v, w, b, eta, scale, eps, chunk_size, initial_state, initial_state_bias, output_final_state, cu_seqlens
):
    if chunk_size is None or isinstance(chunk_size, bool) or not isinstance(chunk_size, (int, np.integer)):
        raise TypeError(f"chunk_size: expected an integer, but got {type(chunk_size).__name__}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size: expected a positive integer, but got {chunk_size}")
    like, output_final_state = q, check_flag("output_final_state", output_final_state)
    if isinstance(eta, (int, float)):
        eta = np.full((*q.shape[:3], 1), float(eta))
    a = _tokens("q", q=q, k=k, v=v, w=w, b=b, eta=eta)
    sizes = _check_shapes(
        {}, q=(a["q"], "B T H K"), k=(a["k"], "B T H K"), v=(a["v"], "B T H K"), w=(a["w"], "H K"), b=(a["b"], "H K"),
    )  # fmt: skip
    B, T, H, K = (sizes[x] for x in "BTHK")
    _check_shapes({**sizes, "1": 1}, eta=(a["eta"], "B T H 1"))
    eps, scale = check_number("eps", eps, minimum=0.0), check_number("scale", scale)
    scale = K**-0.5 if scale is None else scale
    cuts, count = _cuts(cu_seqlens, B, T)
    h = _state("initial_state", initial_state, (count, H, K, K))
    bias = _state("initial_state_bias", initial_state_bias, (count, H, 1, K))
    q, k, v, eta = (_heads_first(a[name]) for name in ("q", "k", "v", "eta"))
    w, b, o = a["w"][:, None], a["b"][:, None], np.empty_like(v)
    for n, (begin, end) in enumerate(cuts):
        at = slice(None) if cu_seqlens is None else slice(n, n + 1)
        for first in range(begin, end, chunk_size):
            chunk = (slice(None), slice(None), slice(first, min(first + chunk_size, end)))
            o[chunk], h[at], bias[at] = _ttt_chunk(
                scale * q[chunk], k[chunk], v[chunk], eta[chunk], w, b, eps, h[at], bias[at]
            )
    o = o + _normalize(o, eps)[0] * w + b
    states = (_like(h, like, state=True), _like(bias, like, state=True)) if output_final_state else (None, None)
    return _like(_heads_first(o), like), *states


_TTT = (
    "(q, k, v, w, b, eta, scale=None, eps=1e-6, chunk_size=16, initial_state=None, initial_state_bias=None, "
    "output_final_state=False, cu_seqlens=None{})"
)
chunk_ttt_linear, fused_chunk_ttt_linear = define(
    _ttt,
    "TTT-linear: one step of gradient descent per chunk, on a loss with a layer norm.",
    "u_j = W_{c-1}ᵀk_j + β_{c-1},  ℓ_j = ½‖w ⊙ LN(u_j) + b − (v_j − k_j)‖²,  g_j = ∂ℓ_j/∂u_j\n"
    "y_t = scale · W_{c-1}ᵀq_t + β_{c-1} − eta_t Σ_{j≤t} (scale · q_t·k_j + 1) g_j\n"
    "W_c = W_{c-1} − eta_last Σ_j k_j g_jᵀ,  β_c = β_{c-1} − eta_last Σ_j g_j\n"
    "o_t = y_t + w ⊙ LN(y_t) + b",
    ["chunk_ttt_linear" + _TTT.format(", cu_seqlens_cpu=None"), "fused_chunk_ttt_linear" + _TTT.format("")],
    "Sums over j are over the chunk c of t. It runs in NumPy, chunk by chunk; `linattn.ttt_linear` is the "
    "compiled form for chunks of one token without the norm.",
    k="``[B, T, H, K]``, of q's dtype.",
    v="``[B, T, H, K]``, of q's dtype.",
    w="``[H, K]``, the weight of the layer norm.",
    b="``[H, K]``, its bias.",
    eta="``[B, T, H, 1]``, or a number.",
    eps="added to the variance.",
    chunk_size="how many tokens make one step; it changes the result.",
    initial_state="W ``[N, H, K, K]``; zeros if None.",
    initial_state_bias="β ``[N, H, 1, K]``; zeros if None.",
    returns="``(o, final_state, final_state_bias)``: ``o [B, T, H, K]``, of q's kind and dtype; the states\n"
    "  None unless output_final_state.",
)


# ----------------------------------------------------------------------------
# MesaNet
# ----------------------------------------------------------------------------


def _conjugate_gradients(multiply, rhs, diagonal, steps):
    """x with multiply(x) = rhs, rows of which are systems of their own; starts from
    rhs / diagonal and leaves a system alone once its residual has vanished."""
    x = rhs / diagonal
    residual = rhs - multiply(x)
    direction, size = residual.copy(), (residual * residual).sum(-1, keepdims=True)
    least = 1e-30 * (rhs * rhs).sum(-1, keepdims=True)
    for _ in range(steps):
        moving = size > least
        if not moving.any():
            break
        image = multiply(direction)
        curvature = (direction * image).sum(-1, keepdims=True)
        step = np.where(moving, size / np.where(moving, curvature, 1.0), 0.0)
        x += step * direction
        residual -= step * image
        last, size = size, (residual * residual).sum(-1, keepdims=True)
        direction = residual + np.where(moving, size / np.where(moving, last, 1.0), 0.0) * direction
    return x


def _mesa_chunk(q, k, v, g, beta, lamb, kk, kv, steps):
    """Outputs and the next sums; q, k, v [B, H, n, ·], g and beta [B, H, n]."""
    total = np.cumsum(g, -1)
    # e^(g_{j+1} + … + g_t) β_j for j ≤ t
    apart = np.tril(total[..., :, None] - total[..., None, :])
    weights = np.tril(np.exp(apart)) * beta[..., None, :]
    start = np.exp(total)[..., None]
    gram = k.swapaxes(-1, -2)

    def multiply(x):
        return start * (x @ kk) + (weights * (x @ gram)) @ k + lamb * x

    diagonal = start * np.einsum("bhkk->bhk", kk)[..., None, :] + weights @ (k * k) + lamb
    x = _conjugate_gradients(multiply, q, diagonal, steps)
    o = start * (x @ kv) + (weights * (x @ gram)) @ v
    late = (np.exp(total[..., -1:] - total) * beta)[..., None] * k
    end = np.exp(total[..., -1])[..., None, None]
    return o, end * kk + late.swapaxes(-1, -2) @ k, end * kv + late.swapaxes(-1, -2) @ v


def _mesa(
    q, k, v, g, beta, lamb, h_kk_init, h_kv_init, output_final_state, max_CG_iteration, use_qk_l2norm_in_kernel,
    cu_seqlens,
):  # fmt: skip
    if isinstance(max_CG_iteration, bool) or not isinstance(max_CG_iteration, (int, np.integer)) or max_CG_iteration < 0:
        raise ValueError(f"max_CG_iteration: expected an integer of at least 0, but got {max_CG_iteration!r}")
    like, output_final_state = q, check_flag("output_final_state", output_final_state)
    a = _tokens("q", q=q, k=k, v=v, g=g, beta=beta, lamb=lamb)
    sizes = _check_shapes(
        {}, q=(a["q"], "B T H K"), k=(a["k"], "B T H K"), v=(a["v"], "B T H V"), g=(a["g"], "B T H"),
        beta=(a["beta"], "B T H"), lamb=(a["lamb"], "H K"),
    )  # fmt: skip
    B, T, H, K, V = (sizes[x] for x in "BTHKV")
    cuts, count = _cuts(cu_seqlens, B, T)
    kk, kv = _state("h_kk_init", h_kk_init, (count, H, K, K)), _state("h_kv_init", h_kv_init, (count, H, K, V))
    q, k = a["q"], a["k"]
    if check_flag("use_qk_l2norm_in_kernel", use_qk_l2norm_in_kernel):
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
    q, k, v, g, beta = (_heads_first(x) for x in (q, k, a["v"], a["g"], a["beta"]))
    lamb, o = a["lamb"][:, None], np.empty_like(v)
    for n, (begin, end) in enumerate(cuts):
        at = slice(None) if cu_seqlens is None else slice(n, n + 1)
        for first in range(begin, end, _CHUNK):
            chunk = (slice(None), slice(None), slice(first, min(first + _CHUNK, end)))
            o[chunk], kk[at], kv[at] = _mesa_chunk(
                q[chunk], k[chunk], v[chunk], g[chunk], beta[chunk], lamb, kk[at], kv[at], max_CG_iteration
            )
    states = (_like(kk, like, state=True), _like(kv, like, state=True)) if output_final_state else (None, None)
    return _like(_heads_first(o), like), *states


(chunk_mesa_net,) = define(
    _mesa,
    "MesaNet: the least squares of all tokens before, solved for every query.",
    "A_t = e^g_t A_{t-1} + β_t k_t k_tᵀ,  S_t = e^g_t S_{t-1} + β_t k_t v_tᵀ\n"
    "o_t = S_tᵀ (A_t + Diag(lamb))⁻¹ q_t",
    [
        "chunk_mesa_net(q, k, v, g, beta, lamb, h_kk_init=None, h_kv_init=None, output_final_state=False, "
        "max_CG_iteration=30, use_qk_l2norm_in_kernel=False, cu_seqlens=None, cu_seqlens_cpu=None)"
    ],
    "It runs in NumPy, chunk by chunk: conjugate gradients on all queries of a chunk at once.",
    v="``[B, T, H, V]``.",
    g="``[B, T, H]``, natural logarithms, ≤ 0.",
    beta="``[B, T, H]``.",
    lamb="``[H, K]``, positive.",
    h_kk_init="A ``[N, H, K, K]``; zeros if None.",
    h_kv_init="S ``[N, H, K, V]``; zeros if None.",
    output_final_state="whether to return A and S after the last token.",
    max_CG_iteration="the most steps of conjugate gradients.",
    returns="``(o, A, S)``: ``o [B, T, H, V]``, of q's kind and dtype; A and S None unless\n"
    "  output_final_state.",
)


def _mesa_step(q, k, v, g, lamb, beta, prev_h_kk, prev_h_kv, max_CG_iteration):
    if len(q.shape) != 3:
        raise ValueError(f"q: expected shape (B, H, K), but got {tuple(q.shape)}")
    q, k, v, g, beta = (x[:, None] for x in (q, k, v, g, beta))
    o, kk, kv = _mesa(q, k, v, g, beta, lamb, prev_h_kk, prev_h_kv, True, max_CG_iteration, False, None)
    return o[:, 0], kk, kv


(mesa_net_decoding_one_step,) = define(
    _mesa_step,
    "MesaNet, one token.",
    "A_t = e^g_t A_{t-1} + β_t k_t k_tᵀ,  S_t = e^g_t S_{t-1} + β_t k_t v_tᵀ\n"
    "o_t = S_tᵀ (A_t + Diag(lamb))⁻¹ q_t",
    ["mesa_net_decoding_one_step(q, k, v, g, lamb, beta, prev_h_kk, prev_h_kv, max_CG_iteration=30)"],
    "It runs in NumPy.",
    q="``[B, H, K]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``.",
    k="``[B, H, K]``, of q's dtype.",
    v="``[B, H, V]``, of q's dtype.",
    g="``[B, H]``, natural logarithms, ≤ 0.",
    lamb="``[H, K]``, positive.",
    beta="``[B, H]``.",
    prev_h_kk="A ``[B, H, K, K]``.",
    prev_h_kv="S ``[B, H, K, V]``.",
    max_CG_iteration="the most steps of conjugate gradients.",
    returns="``(o, A, S)``: ``o [B, H, V]``, of q's kind and dtype.",
)


# ----------------------------------------------------------------------------
# CyFA
# ----------------------------------------------------------------------------


def _modes(clock, slots):
    """cos and sin of the turns of the slots' pairs, [..., M]: pair i makes i turns per
    M − 1 steps of the clock."""
    period, pair = slots - 1, np.arange(slots) // 2
    phase = np.mod(clock[..., None] * pair, period) * (2 * np.pi / period)
    return np.cos(phase), np.sin(phase)


def _turn(x, cos, sin):
    """Pairs (x_2i, x_2i+1), rotated."""
    result = x * cos
    result[..., 0::2] -= x[..., 1::2] * sin[..., 0::2]
    result[..., 1::2] += x[..., 0::2] * sin[..., 1::2]
    return result


def _readout_basis(slots):
    """[M − 1, M]: the real Fourier modes of a cycle of M − 1 places; the sine of pair
    0 is nothing."""
    period = slots - 1
    phase = np.arange(period)[:, None] * (np.arange(slots) // 2) * (2 * np.pi / period)
    basis = np.where(np.arange(slots) % 2 == 1, np.sin(phase), np.cos(phase)) * np.sqrt(2 / period)
    basis[:, 0], basis[:, 1] = period**-0.5, 0.0
    return basis


def _cyfa(
    q, k, v, g, delta, beta, readout, q_norm_weight, k_norm_weight, q_norm_eps, k_norm_eps, scale, initial_state,
    output_final_state, cu_seqlens,
):  # fmt: skip
    like, output_final_state = q, check_flag("output_final_state", output_final_state)
    a = _tokens(
        "q", q=q, k=k, v=v, g=g, delta=delta, beta=beta, readout=readout, q_norm_weight=q_norm_weight,
        k_norm_weight=k_norm_weight,
    )  # fmt: skip
    sizes = _check_shapes(
        {}, q=(a["q"], "B T H K"), k=(a["k"], "B T H K"), v=(a["v"], "B T H V"), g=(a["g"], "B T H"),
        delta=(a["delta"], "B T H"), beta=(a["beta"], "B T H"), readout=(a["readout"], "H C C"),
        q_norm_weight=(a["q_norm_weight"], "K"), k_norm_weight=(a["k_norm_weight"], "K"),
    )  # fmt: skip
    B, T, H, K, V, M = (sizes[x] for x in "BTHKVC")
    M += 1
    if M % 2:
        raise ValueError(f"readout: expected an odd number of places, but got {M - 1}")
    scale = check_number("scale", scale)
    scale = K**-0.5 if scale is None else scale
    cuts, count = _cuts(cu_seqlens, B, T)
    if initial_state is not None and (not isinstance(initial_state, (tuple, list)) or len(initial_state) != 3):
        raise ValueError("initial_state: expected three arrays, of keys, of values and of the clock")
    hk, hv, clock = initial_state or (None, None, None)
    hk, hv = _state("initial_state", hk, (count, H, K, M)), _state("initial_state", hv, (count, H, M, V))
    clock = _state("initial_state", clock, (count, H))
    turns = np.empty((B, T, H))
    for n, (begin, end) in enumerate(cuts):
        at = slice(None) if cu_seqlens is None else slice(n, n + 1)
        turns[:, begin:end] = clock[at, None] + np.cumsum(a["delta"][:, begin:end], axis=1)
        clock[at] = turns[:, end - 1] if end > begin else clock[at]
    cos, sin = _modes(turns, M)
    atom = np.sqrt(np.where(np.arange(M) < 2, 1.0, 2.0) / (M - 1))
    atom = atom * np.where(np.arange(M) % 2 == 0, cos, -sin) * a["beta"][..., None]
    normalized = {}
    for name in "qk":
        x, eps = a[name], check_number(f"{name}_norm_eps", {"q": q_norm_eps, "k": k_norm_eps}[name], minimum=0.0)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + (eps or 0.0)) * a[f"{name}_norm_weight"]
        normalized[name] = x
    wide = np.float64 if _arrays.dtype_name(like) == "float64" else np.float32
    narrow = lambda x: np.ascontiguousarray(x, wide)  # noqa: E731
    scan = lambda *operands, **more: _named.simple_gla(  # noqa: E731
        *map(narrow, operands), output_final_state=True, cu_seqlens=cu_seqlens, **more
    )
    logits, hk = scan(normalized["q"], normalized["k"], atom, a["g"], scale=scale, initial_state=narrow(hk))
    table = a["readout"] @ _readout_basis(M)
    places = np.einsum("hrm,bthm->bthr", table, _turn(np.asarray(logits, np.float64), cos, sin))
    weights = np.exp(places - places.max(-1, keepdims=True))
    weights = np.einsum("hrm,bthr->bthm", table, weights / weights.sum(-1, keepdims=True))
    o, hv = scan(_turn(weights, cos, -sin), atom, a["v"], a["g"], scale=1.0, initial_state=narrow(hv))
    states = tuple(_like(np.asarray(x, np.float64), like, state=True) for x in (hk, hv, clock))
    return _like(np.asarray(o, np.float64), like), states if output_final_state else None


_CYFA = (
    "q, k, v, g, delta, beta, readout, q_norm_weight, k_norm_weight, q_norm_eps, k_norm_eps, scale=None, "
    "initial_state=None, output_final_state=False, cu_seqlens=None"
)
chunk_cyfa, fused_recurrent_cyfa = define(
    _cyfa,
    "Cyclic-flow attention: keys and values in M slots that are modes of a cycle.",
    "λ_t = λ_{t-1} + delta_t,  w_t = beta_t · atom(λ_t),  mode i rotated by 2πiλ/(M−1)\n"
    "K_t = e^g_t K_{t-1} + k_t w_tᵀ,  V_t = e^g_t V_{t-1} + w_t v_tᵀ\n"
    "p_t = softmax(R · Rot(λ_t)(scale · K_tᵀq_t)),  o_t = V_tᵀ Rot(−λ_t)(Rᵀp_t)",
    [
        f"chunk_cyfa({_CYFA}, cu_seqlens_cpu=None, checkpoint_level=0)",
        f"fused_recurrent_cyfa({_CYFA})",
    ],
    "q and k are divided by their root mean squares first; R is readout times the Fourier basis of M − 1 "
    "places. Two compiled scans, and NumPy between them.",
    k="``[B, T, H, K]``, of q's dtype.",
    v="``[B, T, H, V]``.",
    g="``[B, T, H]``, natural logarithms, ≤ 0.",
    delta="``[B, T, H]``, how far the clock λ goes.",
    beta="``[B, T, H]``.",
    readout="``[H, M − 1, M − 1]``, M even.",
    q_norm_weight="``[K]``.",
    k_norm_weight="``[K]``.",
    q_norm_eps="added to the mean square of q.",
    k_norm_eps="added to the mean square of k.",
    scale="multiplies the scores of the slots; K**-0.5 if None.",
    initial_state="``(K [N, H, K, M], V [N, H, M, V], λ [N, H])``, float32 (float64 for float64 tokens); "
    "zeros if None.",
    returns="``(o, final_state)``: ``o [B, T, H, V]``, of q's kind and dtype; final_state (K, V, λ), None\n"
    "  unless output_final_state.",
)


# ----------------------------------------------------------------------------
# Stick-breaking
# ----------------------------------------------------------------------------


def _stick(q, k, v, scale, attend_current, cu_seqlens):
    like, current = q, check_flag("attend_current", attend_current)
    a = _tokens("q", q=q, k=k, v=v)
    sizes = _check_shapes({}, q=(a["q"], "B T HQ K"), k=(a["k"], "B T H K"), v=(a["v"], "B T H V"))
    B, T, HQ, H, K, V = (sizes[x] for x in ("B", "T", "HQ", "H", "K", "V"))
    if HQ % H:
        raise ValueError(f"q: expected a number of heads that is a multiple of {H}, but got {HQ}")
    scale = check_number("scale", scale)
    q = (K**-0.5 if scale is None else scale) * _heads_first(a["q"]).reshape(B, H, HQ // H, T, K)
    k, v = _heads_first(a["k"])[:, :, None], _heads_first(a["v"])[:, :, None]
    o, rest = np.empty((*q.shape[:4], V)), np.empty(q.shape[:4])
    for begin, end in _cuts(cu_seqlens, B, T)[0]:
        for first in range(begin, end, _CHUNK):
            last = min(first + _CHUNK, end)
            rows, keys = slice(first, last), slice(begin, last)
            z = q[:, :, :, rows] @ k[:, :, :, keys].swapaxes(-1, -2)
            behind = np.arange(first, last)[:, None] - np.arange(begin, last)
            mask = behind >= (0 if current else 1)
            left = np.where(mask, -np.logaddexp(0.0, z), 0.0)
            # The weight that nearer keys leave: sums from the right, exclusive.
            after = np.flip(np.cumsum(np.flip(left, -1), -1), -1)
            weights = np.where(mask, np.exp(-np.logaddexp(0.0, -z) + after - left), 0.0)
            o[:, :, :, rows] = weights @ v[:, :, :, keys]
            rest[:, :, :, rows] = np.exp(left.sum(-1))
    o = _heads_first(o.reshape(B, HQ, T, V))
    return _like(o, like), _like(_heads_first(rest.reshape(B, HQ, T)), like)


(parallel_stickbreaking_attn,) = define(
    _stick,
    "Stick-breaking attention: a key takes its share of what nearer keys have left.",
    "z_tj = scale · q_t·k_j,  A_tj = sigmoid(z_tj) Π_{j<l<t} (1 − sigmoid(z_tl)),  j < t\n"
    "o_t = Σ_j A_tj v_j,  rem_t = 1 − Σ_j A_tj",
    ["parallel_stickbreaking_attn(q, k, v, scale=None, attend_current=False, cu_seqlens=None)"],
    "It runs in NumPy, 64 queries at a time, and takes time that grows with the square of T.",
    q="``[B, T, HQ, K]``; float16, bfloat16, float32 or float64. Any array with ``__dlpack__``.",
    k="``[B, T, H, K]``, of q's dtype; H divides HQ.",
    v="``[B, T, H, V]``, of q's dtype.",
    scale="multiplies the scores; K**-0.5 if None.",
    attend_current="whether j = t too.",
    returns="``(o [B, T, HQ, V], rem [B, T, HQ])``, of q's kind and dtype.",
)
