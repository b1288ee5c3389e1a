"""The functions of `linattn.fla` that are newer than the others, against recurrences in
float64, at half of flash-linear-attention's tolerances or less; and the names and
parameters of its version 0.6.0."""

import inspect

import numpy as np
import pytest
from test_fla import BETA, DECAY, NORMAL, UNIT, check, draw

import linattn
from linattn import fla, reference

B, T, H, K, V = 2, 37, 2, 16, 24
OFFSETS = [0, 0, 5, 37]

# ----------------------------------------------------------------------------
# Names
# ----------------------------------------------------------------------------

STATE = "scale=None initial_state=None output_final_state=False"
NORM, PACKED = "use_qk_l2norm_in_kernel=False", "cu_seqlens=None cu_seqlens_cpu=None"
SIGMOID = "use_beta_sigmoid_in_kernel=False allow_neg_eigval=False"
SIGNATURES = {
    "chunk_abc": "q k v s initial_state=None output_final_state=False",
    "chunk_comba": f"q k v p g beta=None {STATE} {NORM} {PACKED}",
    "chunk_cyfa": f"q k v g delta beta readout q_norm_weight k_norm_weight q_norm_eps k_norm_eps {STATE} {PACKED} checkpoint_level=0",
    "chunk_delta_rule": f"q k v beta {STATE} {NORM} {PACKED}",
    "chunk_dplr_delta_rule": f"q k v a b gk {STATE} {PACKED} safe_gate=False chunk_size=None disable_recompute=False cp_context=None lower_bound=None",
    "chunk_gated_delta_product": f"q k v g beta num_householder {STATE} {NORM} {PACKED} cp_context=None",
    "chunk_gated_delta_rule": f"q k v g beta {STATE} {NORM} {SIGMOID} state_v_first=False {PACKED} chunk_indices=None cp_context=None",
    "chunk_gated_oja_rule": f"q k v gv beta {STATE} use_q_l2norm=False use_k_l2norm=False {PACKED}",
    "chunk_gdn2": f"q k v g b w {STATE} {NORM} use_gate_in_kernel=False {PACKED} safe_gate=False lower_bound=None disable_recompute=False return_intermediate_states=False state_v_first=False cp_context=None",
    "chunk_gla": f"q k v g {STATE} state_v_first=False {PACKED}",
    "chunk_gsa": f"q k v s g=None {STATE} checkpoint_level=2 {PACKED}",
    "chunk_hgrn": "x g initial_state=None output_final_state=False",
    "chunk_iplr_delta_rule": f"q k v a b {STATE} {PACKED}",
    "chunk_kda": f"q k v g beta {STATE} {NORM} use_gate_in_kernel=False {SIGMOID} safe_gate=False lower_bound=None disable_recompute=False return_intermediate_states=False state_v_first=False {PACKED} cp_context=None use_graph=False max_num_seqs=None",
    "chunk_lightnet": f"q k v {STATE} state_v_first=False cu_seqlens=None",
    "chunk_lightning_attn": f"q k v layer_idx num_layers {STATE} cu_seqlens=None",
    "chunk_linear_attn": f"q k v {STATE} normalize=True cu_seqlens=None",
    "chunk_log_linear_attn": "q k v g level_scales initial_state=None output_final_state=False cu_seqlens=None scale=1.0",
    "chunk_mesa_net": f"q k v g beta lamb h_kk_init=None h_kv_init=None output_final_state=False max_CG_iteration=30 {NORM} {PACKED}",
    "chunk_momentum_delta_rule": f"q k v log_alpha log_mu p=None beta=None eta=None {STATE} cu_seqlens=None use_qk_l2norm_in_kernel=True use_p_times_alpha=True chunk_size=64",
    "chunk_retention": f"q k v {STATE} cu_seqlens=None",
    "chunk_rwkv6": f"r k v w u {STATE} {PACKED}",
    "chunk_rwkv7": f"r w k v a b scale=1.0 initial_state=None output_final_state=False {PACKED} safe_gate=False chunk_size=None disable_recompute=False cp_context=None lower_bound=None",
    "chunk_simple_gla": f"q k v g=None g_gamma=None {STATE} state_v_first=False {PACKED}",
    "chunk_ttt_linear": f"q k v w b eta scale=None eps=1e-6 chunk_size=16 initial_state=None initial_state_bias=None output_final_state=False {PACKED}",
    "fused_chunk_based": "q k v scale=None use_norm=True",
    "fused_chunk_linear_attn": f"q k v {STATE} normalize=True cu_seqlens=None",
    "fused_chunk_retention": f"q k v {STATE} cu_seqlens=None",
    "fused_chunk_simple_gla": f"q k v g=None g_gamma=None {STATE} cu_seqlens=None",
    "fused_chunk_ttt_linear": "q k v w b eta scale=None eps=1e-6 chunk_size=16 initial_state=None initial_state_bias=None output_final_state=False cu_seqlens=None",
    "fused_mul_recurrent_rwkv7": "r w k v kk a scale=1.0 initial_state=None output_final_state=False reverse=False cu_seqlens=None",
    "fused_recurrent_comba": f"q k p v g beta=None {STATE} {NORM} cu_seqlens=None",
    "fused_recurrent_cyfa": f"q k v g delta beta readout q_norm_weight k_norm_weight q_norm_eps k_norm_eps {STATE} cu_seqlens=None",
    "fused_recurrent_delta_rule": f"q k v beta=None {STATE} {NORM} cu_seqlens=None",
    "fused_recurrent_dplr_delta_rule": f"q k v a b gk {STATE} reverse=False cu_seqlens=None",
    "fused_recurrent_gated_delta_rule": f"q k v g=None gk=None gv=None beta=None {STATE} {NORM} use_gate_in_kernel=False A_log=None dt_bias=None {SIGMOID} state_v_first=False cu_seqlens=None",
    "fused_recurrent_gated_oja_rule": f"q k v gv=None beta=None {STATE} use_q_l2norm=False use_k_l2norm=False cu_seqlens=None",
    "fused_recurrent_gdn2": f"q k v g b w A_log=None dt_bias=None {STATE} {NORM} use_gate_in_kernel=False lower_bound=None state_v_first=False cu_seqlens=None",
    "fused_recurrent_gla": f"q k v gk=None gv=None {STATE} reverse=False state_v_first=False cu_seqlens=None",
    "fused_recurrent_gsa": f"q k v s g=None {STATE} reverse=False cu_seqlens=None",
    "fused_recurrent_hgrn": "x g initial_state=None output_final_state=False cu_seqlens=None",
    "fused_recurrent_iplr_delta_rule": f"q k v a b {STATE} cu_seqlens=None",
    "fused_recurrent_kda": f"q k v g beta A_log=None dt_bias=None {STATE} {NORM} use_gate_in_kernel=False {SIGMOID} lower_bound=None state_v_first=False cu_seqlens=None",
    "fused_recurrent_lightnet": f"q k v {STATE} state_v_first=False cu_seqlens=None",
    "fused_recurrent_lightning_attn": f"q k v layer_idx num_layers {STATE} reverse=False cu_seqlens=None",
    "fused_recurrent_linear_attn": f"q k v {STATE} reverse=False normalize=False cu_seqlens=None",
    "fused_recurrent_momentum_delta_rule": f"q k v log_alpha log_mu p=None beta=None eta=None {STATE} cu_seqlens=None use_qk_l2norm_in_kernel=True use_p_times_alpha=True",
    "fused_recurrent_retention": f"q k v {STATE} reverse=False state_v_first=False cu_seqlens=None",
    "fused_recurrent_rwkv4": "w u k v state",
    "fused_recurrent_rwkv6": f"r k v w u {STATE} reverse=False cu_seqlens=None",
    "fused_recurrent_rwkv7": "r w k v a b scale=None initial_state=None output_final_state=True cu_seqlens=None",
    "fused_recurrent_simple_gla": f"q k v g=None g_gamma=None {STATE} reverse=False state_v_first=False cu_seqlens=None",
    "mesa_net_decoding_one_step": "q k v g lamb beta prev_h_kk prev_h_kv max_CG_iteration=30",
    "parallel_based": "q k v scale=None use_norm=True",
    "parallel_delta_rule": "q k v beta scale=None output_attentions=False",
    "parallel_rebased": "q k v eps=1e-5 use_scale=True use_normalize=True return_both=False",
    "parallel_retention": "q k v scale=None output_attentions=False cu_seqlens=None",
    "parallel_simple_gla": f"q k v g=None scale=None output_attentions=False {PACKED}",
    "parallel_stickbreaking_attn": "q k v scale=None attend_current=False cu_seqlens=None",
}  # fmt: skip

ALIASES = {"chunk_gdn": "chunk_gated_delta_rule", "fused_recurrent_gdn": "fused_recurrent_gated_delta_rule"}


def test_all_names_are_known():
    assert set(fla.__all__) == set(SIGNATURES) | set(ALIASES)


@pytest.mark.parametrize("name", sorted([*SIGNATURES, *ALIASES]))
def test_signature(name):
    """Parameters in order and with their defaults. Those that flash-linear-attention
    takes from **kwargs come behind them, by keyword only."""
    expected = [text.partition("=") for text in SIGNATURES[ALIASES.get(name, name)].split()]
    parameters = list(inspect.signature(getattr(fla, name)).parameters.values())
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in positional] == [key for key, _, _ in expected]
    for p, (_, sign, default) in zip(positional, expected):
        assert (p.default is not p.empty) == bool(sign)
        if sign and p.default is not None:
            assert p.default == (default == "True" if default in ("True", "False") else float(default))
        elif sign:
            assert default == "None"
    assert {p.name for p in parameters[len(positional) :]} <= {"A_log", "dt_bias", "use_gate_in_kernel", "chunk_size", "inplace"}


# ----------------------------------------------------------------------------
# Families
# ----------------------------------------------------------------------------


def tokens(rng, *shapes, batch=B):
    return [draw(rng, (batch, T, H, *shape), law) for shape, law in shapes]


def compare(result, expected):
    for out, ref in zip(result, expected, strict=True):
        if isinstance(ref, tuple):
            compare(out, ref)
        elif ref is None:
            assert out is None
        else:
            check(out, ref)


@pytest.mark.parametrize("name", ["chunk_gated_oja_rule", "fused_recurrent_gated_oja_rule"])
def test_gated_oja(rng, name):
    function = getattr(fla, name)
    q, k, v, gv, beta = tokens(rng, ((K,), NORMAL), ((K,), NORMAL), ((V,), UNIT), ((V,), DECAY), ((), BETA))
    S = draw(rng, (B, H, K, V), NORMAL)
    options = dict(initial_state=S, output_final_state=True, use_q_l2norm=True, use_k_l2norm=True)
    compare(function(q, k, v, gv, beta, **options), reference.gated_oja(q, k, v, gv, beta, **options))
    assert function(q, k, v, gv, beta)[1] is None
    one = [x[:1] for x in (q, k, v, gv, beta)]
    compare(function(*one, cu_seqlens=OFFSETS, output_final_state=True), reference.gated_oja(*one, cu_seqlens=OFFSETS, output_final_state=True))


@pytest.mark.parametrize("name", ["chunk_momentum_delta_rule", "fused_recurrent_momentum_delta_rule"])
def test_momentum(rng, name):
    function = getattr(fla, name)
    shapes = ((K,), NORMAL), ((K,), NORMAL), ((V,), NORMAL), ((), DECAY), ((), DECAY), ((K,), NORMAL), ((), BETA), ((), BETA)
    operands = tokens(rng, *shapes)
    state = draw(rng, (2, B, H, K, V), NORMAL)
    o, final = function(*operands, initial_state=state, output_final_state=True)
    ref, expected = reference.momentum_delta_rule(*operands, initial_state=tuple(state), output_final_state=True)
    check(o, ref)
    check(final, np.stack(expected))
    options = dict(use_qk_l2norm_in_kernel=False, use_p_times_alpha=False, scale=0.3)
    operands[1] = operands[1] / 4
    o, final = function(*operands[:5], **options)
    check(o, reference.momentum_delta_rule(*operands[:5], **options))
    assert final is None
    with pytest.raises(linattn.UnsupportedError, match="cu_seqlens: expected None"):
        function(*operands, cu_seqlens=[0, T])
    with pytest.raises(ValueError, match=r"initial_state: expected shape \(2, B, H, K, V\), but got \(3, "):
        function(*operands, initial_state=np.zeros((3, H, K, V), np.float32))


@pytest.mark.parametrize("name", ["chunk_lightnet", "fused_recurrent_lightnet"])
def test_lightnet(rng, name):
    function = getattr(fla, name)
    q, k, v = tokens(rng, ((K,), NORMAL), ((K,), NORMAL), ((V,), NORMAL))
    S, z = draw(rng, (B, H, K, V), NORMAL), draw(rng, (B, H, K), NORMAL)
    ref, (end, last) = reference.lightnet(q, k, v, initial_state=(S, z), output_final_state=True)
    compare(function(q, k, v, initial_state=(S, z[:, None]), output_final_state=True), (ref, (end, last[:, None])))
    flipped = function(q, k, v, initial_state=(S.swapaxes(2, 3).copy(), z[:, None]), output_final_state=True, state_v_first=True)
    compare(flipped, (ref, (end.swapaxes(2, 3), last[:, None])))
    # The normalizer is returned with the final state and without.
    ref, (_, last) = reference.lightnet(q, k, v, output_final_state=True)
    compare(function(q, k, v), (ref, (None, last[:, None])))
    ref, (_, last) = reference.lightnet(q, k, v, initial_state=(0 * S, z), output_final_state=True)
    compare(function(q, k, v, initial_state=(None, z[:, None])), (ref, (None, last[:, None])))
    ref, (end, last) = reference.lightnet(q[:1], k[:1], v[:1], output_final_state=True, cu_seqlens=OFFSETS)
    out, (S, z) = function(q[:1], k[:1], v[:1], output_final_state=True, cu_seqlens=OFFSETS)
    compare((out, S, z[1:]), (ref, end, last[1:, None]))
    assert np.all(z[0] == -np.inf)
    with pytest.raises(ValueError, match=r"log_normalizer of shape \(N, 1, H, K\)"):
        function(q, k, v, initial_state=(None, last))


def test_rwkv4(rng):
    C = 24
    w, u = draw(rng, (C,), NORMAL), draw(rng, (C,), NORMAL)
    k, v = draw(rng, (B, T, C), NORMAL), draw(rng, (B, T, C), NORMAL)
    state = np.zeros((B, 3, 1, C), np.float32)
    state[:, 2] = -1e30
    o, end = fla.fused_recurrent_rwkv4(w, u, k, v, state)
    # e^w in f32 or in f64: a decay differs in its last bits.
    ref, parts = reference.rwkv4(-np.exp(w.astype(np.float64)), u, k, v, output_final_state=True)
    check(o, ref)
    again, _ = fla.fused_recurrent_rwkv4(w, u, k, v, end)
    check(again, reference.rwkv4(-np.exp(w.astype(np.float64)), u, k, v, initial_state=parts))
    with pytest.raises(ValueError, match=r"state: expected shape \(B, 3, 1, C\)"):
        fla.fused_recurrent_rwkv4(w, u, k, v, state[:, :, 0])


def test_log_linear(rng):
    """Against the T × T matrix of the levels."""
    q, k = (draw(rng, (B, T, 1, K), NORMAL) for _ in range(2))
    v, g = draw(rng, (B, T, H, V), NORMAL), draw(rng, (B, T, H), DECAY)
    scales = draw(rng, (B, T, H, 7), BETA)
    t, j = np.arange(T)[:, None], np.arange(T)
    level = np.array([[int(x).bit_length() for x in row] for row in t ^ j])
    total = np.cumsum(g.astype(np.float64), 1)
    apart = np.where((j <= t)[:, :, None], total[:, :, None] - total[:, None], -np.inf)
    weights = np.exp(apart) * np.take_along_axis(scales[:, :, None].astype(np.float64), np.broadcast_to(level[None, :, :, None, None], (B, T, T, H, 1)), -1)[..., 0]
    scores = np.einsum("btgk,bjgk->btj", q.astype(np.float64), k.astype(np.float64))
    ref = np.einsum("btjh,btj,bjhv->bthv", weights, scores, v.astype(np.float64))
    o, state = fla.chunk_log_linear_attn(q, k, v, g, scales)
    assert state is None
    check(o, ref)
    check(fla.chunk_log_linear_attn(q, k, v, g, scales, scale=None)[0], ref * K**-0.5)
    with pytest.raises(linattn.UnsupportedError, match="output_final_state"):
        fla.chunk_log_linear_attn(q, k, v, g, scales, output_final_state=True)


# ----------------------------------------------------------------------------
# Outside of the compiler's recurrences
# ----------------------------------------------------------------------------


def ttt_loop(q, k, v, w, b, eta, chunk, W, bias, eps=1e-6):
    """Gradients of ½‖w ⊙ LN(kᵀW + bias) + b − (v − k)‖² by central differences."""
    q, k, v, w, b, eta = (x.astype(np.float64) for x in (q, k, v, w, b, eta))
    norm = lambda x: (x - x.mean()) / np.sqrt(x.var() + eps)  # noqa: E731
    o = np.zeros_like(v)
    for n, h in np.ndindex(q.shape[0], q.shape[2]):
        for first in range(0, q.shape[1], chunk):
            rows = range(first, min(first + chunk, q.shape[1]))
            gradients = []
            for j in rows:
                target = v[n, j, h] - k[n, j, h]
                loss = lambda u: 0.5 * ((w[h] * norm(u) + b[h] - target) ** 2).sum()  # noqa: B023, E731
                u, step = k[n, j, h] @ W[n, h] + bias[n, h, 0], 1e-5
                axes = np.eye(len(u)) * step
                gradients.append(np.array([(loss(u + e) - loss(u - e)) / (2 * step) for e in axes]))
            for t in rows:
                scaled = len(k[n, t, h]) ** -0.5 * q[n, t, h]
                y = scaled @ W[n, h] + bias[n, h, 0]
                for j in range(first, t + 1):
                    y = y - eta[n, t, h, 0] * (scaled @ k[n, j, h] + 1) * gradients[j - first]
                o[n, t, h] = y + w[h] * norm(y) + b[h]
            last = eta[n, rows[-1], h, 0]
            W[n, h] -= last * sum(np.outer(k[n, j, h], g) for j, g in zip(rows, gradients))
            bias[n, h, 0] -= last * sum(gradients)
    return o, W, bias


@pytest.mark.parametrize("name", ["chunk_ttt_linear", "fused_chunk_ttt_linear"])
def test_ttt(rng, name):
    function, D, N = getattr(fla, name), 6, 21
    q, k, v = (draw(rng, (B, N, H, D), law) for law in (NORMAL, UNIT, NORMAL))
    w, b, eta = draw(rng, (H, D), NORMAL), draw(rng, (H, D), NORMAL), 0.1 * draw(rng, (B, N, H, 1), BETA)
    W, bias = 0.1 * draw(rng, (B, H, D, D), NORMAL), 0.1 * draw(rng, (B, H, 1, D), NORMAL)
    ref = ttt_loop(q, k, v, w, b, eta, 8, W.astype(np.float64), bias.astype(np.float64))
    options = dict(chunk_size=8, initial_state=W, initial_state_bias=bias, output_final_state=True)
    result = function(q, k, v, w, b, eta, **options)
    assert result[0].dtype == result[1].dtype == np.float32
    compare(result, ref)
    first, *states = function(*(x[:, :8] for x in (q, k, v)), w, b, eta[:, :8], **options)
    rest = function(*(x[:, 8:] for x in (q, k, v)), w, b, eta[:, 8:], chunk_size=8, initial_state=states[0], initial_state_bias=states[1])
    check(np.concatenate([first, rest[0]], 1), ref[0])
    assert rest[1] is None and rest[2] is None
    packed = [x[:1] for x in (q, k, v, eta)]
    o, *_ = function(*packed[:3], w, b, packed[3], chunk_size=8, cu_seqlens=[0, 13, N])
    halves = [function(*(x[:, s] for x in packed[:3]), w, b, packed[3][:, s], chunk_size=8)[0] for s in (slice(0, 13), slice(13, N))]
    np.testing.assert_array_equal(o, np.concatenate(halves, 1))
    np.testing.assert_array_equal(function(q, k, v, w, b, 0.5)[0], function(q, k, v, w, b, np.full_like(eta, 0.5))[0])
    for message, change in (
        ("eta: expected shape", {"eta": eta[:, :5]}), ("w: expected shape", {"w": w[:1]}), ("chunk_size: ", {"chunk_size": 0}),
        ("initial_state: expected shape", {"initial_state": W[:1]}), ("cu_seqlens: expected", {"cu_seqlens": [0, N]}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            function(**{**dict(q=q, k=k, v=v, w=w, b=b, eta=eta), **change})


def mesa_loop(q, k, v, g, beta, lamb, A, S):
    q, k, v, g, beta, lamb = (x.astype(np.float64) for x in (q, k, v, g, beta, lamb))
    A, S, o = A.astype(np.float64), S.astype(np.float64), np.zeros(v.shape)
    for t in range(q.shape[1]):
        keep, weighted = np.exp(g[:, t])[..., None, None], beta[:, t, :, None] * k[:, t]
        A = keep * A + np.einsum("bhi,bhj->bhij", weighted, k[:, t])
        S = keep * S + np.einsum("bhi,bhj->bhij", weighted, v[:, t])
        x = np.linalg.solve(A + np.einsum("hi,ij->hij", lamb, np.eye(K)), q[:, t, :, :, None])
        o[:, t] = np.einsum("bhij,bhi->bhj", S, x[..., 0])
    return o, A, S


def test_mesa_net(rng):
    length = 70
    q, k, v = (draw(rng, (B, length, H, D), law) for D, law in ((K, UNIT), (K, UNIT), (V, NORMAL)))
    g, beta = draw(rng, (B, length, H), DECAY) / 20, draw(rng, (B, length, H), BETA)
    lamb = np.logaddexp(0, draw(rng, (H, K), NORMAL)) + np.float32(0.25)
    A = draw(rng, (B, H, K, K), NORMAL)
    A, S = A @ A.swapaxes(2, 3) / K, draw(rng, (B, H, K, V), NORMAL)
    ref = mesa_loop(q, k, v, g, beta, lamb, A, S)
    options = dict(h_kk_init=A, h_kv_init=S, output_final_state=True)
    compare(fla.chunk_mesa_net(q, k, v, g, beta, lamb, **options), ref)
    assert fla.chunk_mesa_net(q, k, v, g, beta, lamb)[1:] == (None, None)
    # From tokens that need a norm; one more token; packed sequences.
    unit = fla.chunk_mesa_net(3 * q, 2 * k, v, g, beta, lamb, use_qk_l2norm_in_kernel=True)[0]
    assert np.abs(unit - fla.chunk_mesa_net(q, k, v, g, beta, lamb)[0]).max() < 1e-4
    _, A1, S1 = fla.chunk_mesa_net(*(x[:, :-1] for x in (q, k, v, g, beta)), lamb, **options)
    compare(fla.mesa_net_decoding_one_step(*(x[:, -1] for x in (q, k, v, g)), lamb, beta[:, -1], A1, S1), (ref[0][:, -1], *ref[1:]))
    one = [x[:1] for x in (q, k, v, g, beta)]
    o, A2, _ = fla.chunk_mesa_net(*one, lamb, output_final_state=True, cu_seqlens=np.array([0, 0, 65, length]))
    zero = np.zeros((1, H, K, K)), np.zeros((1, H, K, V))
    check(o, np.concatenate([mesa_loop(*(x[:, s] for x in one), lamb, *zero)[0] for s in (slice(0, 65), slice(65, length))], 1))
    assert not A2[0].any()
    # Fewer steps than are needed give something else.
    assert np.abs(fla.chunk_mesa_net(q, k, v, g, beta, lamb, max_CG_iteration=1)[0] - fla.chunk_mesa_net(q, k, v, g, beta, lamb)[0]).max() > 1e-3
    with pytest.raises(ValueError, match="lamb: expected shape"):
        fla.chunk_mesa_net(q, k, v, g, beta, lamb[:, :5])
    with pytest.raises(ValueError, match="max_CG_iteration: expected an integer"):
        fla.chunk_mesa_net(q, k, v, g, beta, lamb, max_CG_iteration=2.5)


def cyfa_loop(q, k, v, g, delta, beta, readout, wq, wk, eps, hk, hv, clock, scale=K**-0.5):
    """Modes as complex numbers: pair i of the slots turns by i λ of M − 1 steps."""
    q, k, v, g, delta, beta, readout = (x.astype(np.float64) for x in (q, k, v, g, delta, beta, readout))
    M = readout.shape[1] + 1
    pairs, period = M // 2, M - 1
    unit = lambda x, w: w * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)  # noqa: E731
    q, k = unit(q, wq.astype(np.float64)), unit(k, wk.astype(np.float64))
    hk, hv, clock = (x.astype(np.float64) for x in (hk, hv, clock))
    join = lambda x: x[..., 0::2] + 1j * x[..., 1::2]  # noqa: E731
    part = lambda z: np.stack([z.real, z.imag], -1).reshape(*z.shape[:-1], M)  # noqa: E731
    height = np.where(np.arange(pairs) == 0, 1, 2) / period
    angles = np.arange(period)[:, None] * np.arange(pairs) * 2 * np.pi / period
    basis = part(np.sqrt(height) * np.exp(1j * angles))
    basis[:, 1] = 0
    R = readout @ basis
    o = np.zeros(v.shape)
    for t in range(q.shape[1]):
        clock = clock + delta[:, t]
        turn = np.exp(2j * np.pi / period * clock[..., None] * np.arange(pairs))
        write = beta[:, t, :, None] * part(np.sqrt(height) * turn.conj())
        keep = np.exp(g[:, t])[..., None, None]
        hk = keep * hk + np.einsum("bhk,bhm->bhkm", k[:, t], write)
        hv = keep * hv + np.einsum("bhm,bhv->bhmv", write, v[:, t])
        logits = scale * np.einsum("bhkm,bhk->bhm", hk, q[:, t])
        places = np.einsum("hrm,bhm->bhr", R, part(join(logits) * turn))
        p = np.exp(places - places.max(-1, keepdims=True))
        weights = np.einsum("hrm,bhr->bhm", R, p / p.sum(-1, keepdims=True))
        o[:, t] = np.einsum("bhm,bhmv->bhv", part(join(weights) * turn.conj()), hv)
    return o, hk, hv, clock


@pytest.mark.parametrize("name", ["chunk_cyfa", "fused_recurrent_cyfa"])
def test_cyfa(rng, name):
    function, M = getattr(fla, name), 8
    q, k, v, g, beta = tokens(rng, ((K,), NORMAL), ((K,), NORMAL), ((V,), NORMAL), ((), DECAY), ((), BETA))
    delta = 3 * draw(rng, (B, T, H), NORMAL)
    readout, wq, wk = draw(rng, (H, M - 1, M - 1), NORMAL), draw(rng, (K,), NORMAL), draw(rng, (K,), NORMAL)
    state = draw(rng, (B, H, K, M), NORMAL), draw(rng, (B, H, M, V), NORMAL), draw(rng, (B, H), NORMAL)
    operands = [q, k, v, g, delta, beta]
    weights = dict(readout=readout, q_norm_weight=wq, k_norm_weight=wk, q_norm_eps=1e-5, k_norm_eps=1e-5)
    ref, *ends = cyfa_loop(*operands, readout, wq, wk, 1e-5, *state)
    o, final = function(*operands, **weights, initial_state=state, output_final_state=True)
    check(o, ref)
    compare(final, ends)
    assert function(*operands, **weights)[1] is None
    one = [x[:1] for x in operands]
    zero = np.zeros((1, H, K, M)), np.zeros((1, H, M, V)), np.zeros((1, H))
    o, final = function(*one, **weights, output_final_state=True, cu_seqlens=OFFSETS)
    parts = [cyfa_loop(*(x[:, s] for x in one), readout, wq, wk, 1e-5, *zero) for s in (slice(0, 5), slice(5, T))]
    check(o, np.concatenate([p[0] for p in parts], 1))
    for i in range(3):
        check(final[i][1:], np.concatenate([p[i + 1] for p in parts]))
        assert not final[i][0].any()
    with pytest.raises(ValueError, match="readout: expected an odd number of places, but got 6"):
        function(*operands, **{**weights, "readout": readout[:, :6, :6]})
    with pytest.raises(ValueError, match="delta: expected shape"):
        function(*operands[:4], delta[:, :5], beta, **weights)
    with pytest.raises(ValueError, match="initial_state: expected three arrays"):
        function(*operands, **weights, initial_state=state[:2])


@pytest.mark.parametrize("current", [False, True])
def test_stick_breaking(rng, current):
    q = draw(rng, (B, 70, 4, K), NORMAL)
    k, v = draw(rng, (B, 70, H, K), NORMAL), draw(rng, (B, 70, H, V), NORMAL)
    z = np.einsum("bthk,bjhk->bhtj", q.astype(np.float64), k.repeat(2, 2).astype(np.float64)) * K**-0.5
    share = 1 / (1 + np.exp(-z))
    o, rest = np.zeros((B, 70, 4, V)), np.ones((B, 70, 4))
    for t in range(70):
        for j in range(t if current else t - 1, -1, -1):
            taken = rest[:, t] * share[:, :, t, j]
            o[:, t] += taken[..., None] * v.repeat(2, 2)[:, j]
            rest[:, t] -= taken
    compare(fla.parallel_stickbreaking_attn(q, k, v, attend_current=current), (o, rest))
    one = [x[:1] for x in (q, k, v)]
    packed = fla.parallel_stickbreaking_attn(*one, attend_current=current, cu_seqlens=[0, 30, 70])
    for out, i in zip(packed, range(2)):
        halves = [fla.parallel_stickbreaking_attn(*(x[:, s] for x in one), attend_current=current)[i] for s in (slice(0, 30), slice(30, 70))]
        check(out, np.concatenate(halves, 1))
    with pytest.raises(ValueError, match="q: expected a number of heads that is a multiple of 2, but got 3"):
        fla.parallel_stickbreaking_attn(q[:, :, :3], k, v)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_dtypes(rng, dtype):
    q, k, v = (x.astype(dtype) for x in tokens(rng, ((K,), UNIT), ((K,), UNIT), ((K,), NORMAL)))
    g, beta, lamb = draw(rng, (B, T, H), DECAY), draw(rng, (B, T, H), BETA), np.ones((H, K), np.float32)
    results = [
        fla.chunk_ttt_linear(q, k, v, lamb, lamb, 0.1, output_final_state=True),
        fla.chunk_mesa_net(q, k, v, g, beta, lamb, output_final_state=True), fla.parallel_stickbreaking_attn(q, k, v),
    ]  # fmt: skip
    for o, *_ in results:
        assert o.dtype == dtype
    for state in (*results[0][1:], *results[1][1:]):
        assert state.dtype == (np.float64 if dtype == np.float64 else np.float32)


def test_torch(rng):
    """Tensors come back as tensors, of the dtype that went in."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    arrays = tokens(rng, ((K,), UNIT), ((K,), UNIT), ((K,), NORMAL), ((), DECAY), ((), BETA))
    q, k, v, g, beta = (torch.from_numpy(x) for x in arrays)
    ones = torch.ones(H, K)
    calls = [
        lambda *x: fla.chunk_ttt_linear(*x, ones, ones, 0.1, output_final_state=True),
        lambda *x: fla.chunk_mesa_net(*x, g, beta, ones, output_final_state=True),
        lambda *x: fla.chunk_lightnet(*x, output_final_state=True),
        lambda *x: fla.chunk_momentum_delta_rule(*x, g, g, output_final_state=True),
        lambda *x: fla.chunk_cyfa(*x, g, g, beta, torch.ones(H, 7, 7), ones[0], ones[0], 1e-5, 1e-5),
        fla.parallel_stickbreaking_attn,
    ]  # fmt: skip
    for call in calls:
        for dtype in (torch.float32, torch.bfloat16):
            o, *rest = call(*(x.to(dtype) for x in (q, k, v)))
            assert isinstance(o, torch.Tensor) and o.dtype == dtype
            assert all(x is None or isinstance(x, (torch.Tensor, tuple)) for x in rest)
        exact, *_ = call(*(x.double() for x in (q, k, v)))
        assert (o - exact).norm() <= 1e-2 * exact.norm()


def test_hints(rng):
    q, k, v, g, beta = tokens(rng, ((K,), NORMAL), ((K,), UNIT), ((V,), NORMAL), ((K,), DECAY), ((), BETA))
    plain = fla.chunk_kda(q, k, v, g, beta)[0]
    np.testing.assert_array_equal(fla.chunk_kda(q, k, v, g, beta, use_graph=True, max_num_seqs=8)[0], plain)
    for error, options in (
        (TypeError, {"use_graph": "yes"}), (TypeError, {"max_num_seqs": 2.0}), (ValueError, {"max_num_seqs": 0}),
        (linattn.UnsupportedError, {"cp_context": object()}),
    ):  # fmt: skip
        with pytest.raises(error, match=next(iter(options))):
            fla.chunk_kda(q, k, v, g, beta, **options)
    for call in (
        lambda **more: fla.chunk_gdn2(q, k, v, g, g, v, **more),
        lambda **more: fla.chunk_gated_delta_product(q, k, v, g[..., 0], beta, 1, **more),
    ):  # fmt: skip
        with pytest.raises(linattn.UnsupportedError, match="cp_context: expected None"):
            call(cp_context=object())
