"""`linattn.fla` against the references of the named families, which share nothing
with it, at half of flash-linear-attention's own tolerances or less."""

import inspect
import itertools

import numpy as np
import pytest

import linattn
from linattn import fla, reference

B, T, H, HV, K, V, M = 2, 19, 2, 4, 16, 24, 8
OFFSETS = [0, 0, 1, 8, 19]
STATE = (H, K, V)

# Per operand: shape behind [B, T] (or the whole one, for parameters) and how to draw it.
NORMAL, DECAY, UNIT, BETA = "normal", "decay", "unit", "beta"
TOKENS = {"q": ((H, K), NORMAL), "k": ((H, K), UNIT), "v": ((H, V), NORMAL)}
GROUPED = {**TOKENS, "v": ((HV, V), NORMAL)}
R = {"r": ((H, K), NORMAL), "k": ((H, K), NORMAL), "v": ((H, V), NORMAL)}


def draw(rng, shape, law):
    x = rng.standard_normal(shape)
    if law == DECAY:
        x = -np.logaddexp(0, -x)  # log sigmoid
    elif law == UNIT:
        x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    elif law == BETA:
        x = 1 / (1 + np.exp(-x))
    return x.astype(np.float32)


class Case:
    """A family: its reference, the operands by the reference's names, the functions
    and what they call the operands, the state, options of every function."""

    def __init__(self, family, operands, functions, state=STATE, parameters=(), options={}, each={}, rename={}, steps=1):
        self.reference = getattr(reference, family)
        self.operands, self.functions, self.state = operands, functions, state
        self.parameters, self.options, self.each = parameters, options, each
        self.rename, self.steps = rename, steps

    def draw(self, rng, batch=B, tokens=T):
        result = {}
        for name, (shape, law) in self.operands.items():
            if name not in self.parameters:
                shape = (batch, tokens * (self.steps if name in ("k", "v", "beta") else 1), *shape)
            result[name] = draw(rng, shape, law)
        return result

    def draw_state(self, rng, count):
        states = [draw(rng, (count, *s), NORMAL) for s in ([self.state] if isinstance(self.state[0], int) else self.state)]
        return states[0] if len(states) == 1 else tuple(states)

    def call(self, name, operands, **options):
        """The function `name` of linattn.fla."""
        names = {**self.rename.get("all", {}), **self.rename.get(name, {})}
        operands = {names.get(key, key): array for key, array in operands.items()}
        return getattr(fla, name)(**operands, **{**self.options, **self.each.get(name, {}), **options})


def gates(**more):
    return {**GROUPED, "g": ((HV,), DECAY), "beta": ((HV,), BETA), **more}


CASES = [
    Case("retnet", TOKENS, ["chunk_retention", "fused_chunk_retention", "fused_recurrent_retention", "parallel_retention"]),
    Case("lightning", TOKENS, ["chunk_lightning_attn", "fused_recurrent_lightning_attn"], options=dict(layer_idx=1, num_layers=4)),
    Case("simple_gla", {**TOKENS, "g": ((H,), DECAY)}, ["chunk_simple_gla", "fused_chunk_simple_gla", "fused_recurrent_simple_gla", "parallel_simple_gla"]),
    Case("simple_gla", {**TOKENS, "g_gamma": ((H,), DECAY)}, ["chunk_simple_gla", "fused_recurrent_simple_gla"], parameters=("g_gamma",)),
    Case("gla", {**TOKENS, "g": ((H, K), DECAY)}, ["chunk_gla", "fused_recurrent_gla"], rename={"fused_recurrent_gla": {"g": "gk"}}),
    Case("gla", {**TOKENS, "g": ((H, K), DECAY), "gv": ((H, V), DECAY)}, ["fused_recurrent_gla"], rename={"all": {"g": "gk"}}),
    Case("hgrn", {"x": ((K,), NORMAL), "g": ((K,), DECAY)}, ["chunk_hgrn", "fused_recurrent_hgrn"], state=(K,)),
    Case("rwkv6", {**R, "w": ((H, K), DECAY), "u": ((H, K), NORMAL)}, ["chunk_rwkv6", "fused_recurrent_rwkv6"], parameters=("u",)),
    Case("gsa", {**TOKENS, "s": ((H, M), NORMAL), "g": ((H, M), DECAY)}, ["chunk_gsa", "fused_recurrent_gsa"], state=((H, K, M), (H, M, V))),
    Case("delta_rule", {**TOKENS, "beta": ((H,), BETA)}, ["chunk_delta_rule", "fused_recurrent_delta_rule", "parallel_delta_rule"]),
    Case("gated_delta_rule", gates(), ["chunk_gated_delta_rule", "chunk_gdn", "fused_recurrent_gated_delta_rule", "fused_recurrent_gdn"], state=(HV, K, V)),
    Case("kda", gates(g=((HV, K), DECAY)), ["chunk_kda", "fused_recurrent_kda", "fused_recurrent_gated_delta_rule"], state=(HV, K, V), rename={"fused_recurrent_gated_delta_rule": {"g": "gk"}}),
    Case("gdn2", {**TOKENS, "g": ((H, K), DECAY), "b": ((H, K), BETA), "w": ((H, V), BETA)}, ["chunk_gdn2", "fused_recurrent_gdn2"]),
    Case("comba", {**TOKENS, "p": ((H, K), UNIT), "g": ((H,), DECAY), "beta": ((H,), BETA)}, ["chunk_comba", "fused_recurrent_comba"]),
    Case("gated_deltaproduct", {**TOKENS, "g": ((H,), DECAY), "beta": ((H,), BETA)}, ["chunk_gated_delta_product"], options=dict(num_householder=2), steps=2),
    Case("iplr", {**TOKENS, "a": ((H, K), UNIT), "b": ((H, K), UNIT)}, ["chunk_iplr_delta_rule", "fused_recurrent_iplr_delta_rule"]),
    Case("dplr", {**TOKENS, "a": ((H, K), UNIT), "b": ((H, K), UNIT), "gk": ((H, K), DECAY)}, ["chunk_dplr_delta_rule", "fused_recurrent_dplr_delta_rule"]),
    Case("rwkv7", {**R, "w": ((H, K), DECAY), "a": ((H, K), UNIT), "b": ((H, K), UNIT)}, ["chunk_rwkv7", "fused_recurrent_rwkv7"], each={"fused_recurrent_rwkv7": dict(scale=1.0)}),
]  # fmt: skip

# rms(out − ref) / rms(ref); half of the tightest that flash-linear-attention has.
TOLERANCE = 5e-4


def check(out, ref):
    out, ref = np.asarray(out, np.float64), np.asarray(ref, np.float64)
    assert out.shape == ref.shape
    if ref.size:
        rms = np.sqrt(np.mean(ref**2))
        assert np.sqrt(np.mean((out - ref) ** 2)) <= 0.01 * TOLERANCE * rms
        assert np.abs(out - ref).max() <= 1e-5 * np.abs(ref).max()


def check_both(result, expected):
    check(result[0], expected[0])
    pairs = zip(result[1], expected[1]) if isinstance(expected[1], tuple) else [(result[1], expected[1])]
    for out, ref in pairs:
        assert np.asarray(out).dtype == np.float32
        check(out, ref)


def takes(name, *options):
    return all(option in inspect.signature(getattr(fla, name)).parameters for option in options)


ALL = [(case, name) for case in CASES for name in case.functions]
IDS = [f"{name}-{'-'.join(case.operands)}" for case, name in ALL]


@pytest.mark.parametrize("case, name", ALL, ids=IDS)
def test_function(rng, case, name):
    """From zeros and from a state, packed sequences, reversed, states either way."""
    operands = case.draw(rng)
    final = {"output_final_state": False} if takes(name, "output_final_state") else {}
    plain = case.call(name, operands, **final)
    assert isinstance(plain, tuple) and plain[1] is None
    check(plain[0], case.reference(**operands, **case.options))
    if not final:
        return
    initial = case.draw_state(rng, B)
    options = dict(initial_state=initial, output_final_state=True)
    expected = case.reference(**operands, **case.options, **options)
    check_both(case.call(name, operands, **options), expected)
    if takes(name, "state_v_first"):
        options["initial_state"] = np.ascontiguousarray(initial.swapaxes(2, 3))
        o, state = case.call(name, operands, state_v_first=True, **options)
        check_both((o, state.swapaxes(2, 3)), expected)
    if takes(name, "cu_seqlens"):
        packed = case.draw(rng, batch=1)
        options = dict(initial_state=case.draw_state(rng, len(OFFSETS) - 1), output_final_state=True)
        if takes(name, "reverse"):
            options["reverse"] = True
        expected = case.reference(**packed, **case.options, **options, cu_seqlens=OFFSETS)
        check_both(case.call(name, packed, cu_seqlens=np.array(OFFSETS, np.int32), **options), expected)


@pytest.mark.parametrize("name", ["fused_recurrent_gla", "fused_recurrent_rwkv6", "chunk_kda"])
def test_plain_options(rng, name):
    """A final state from zeros; reversed without packing; offsets in a list."""
    case = next(case for case in CASES if name in case.functions)
    operands, options = case.draw(rng, batch=1), dict(output_final_state=True)
    check_both(case.call(name, operands, **options), case.reference(**operands, **options))
    options["cu_seqlens"] = OFFSETS
    check_both(case.call(name, operands, **options), case.reference(**operands, **options))
    if takes(name, "reverse"):
        options = dict(output_final_state=True, reverse=True)
        check_both(case.call(name, operands, **options), case.reference(**operands, **options))


@pytest.mark.parametrize("name", ["chunk_linear_attn", "fused_chunk_linear_attn", "fused_recurrent_linear_attn"])
@pytest.mark.parametrize("normalize", [False, True])
def test_linear_attn(rng, name, normalize):
    q, k, v = (np.abs(draw(rng, (B, T, H, D), NORMAL)) for D in (K, K, V))
    S, z = (np.abs(draw(rng, shape, NORMAL)) for shape in ((B, H, K, V), (B, H, K)))
    function = getattr(fla, name)
    for initial in ((S, z) if normalize else S,):
        ref, state = reference.linear_attention(
            q, k, v, initial_state=initial, output_final_state=True, feature_map="identity", normalize=normalize,
            eps=1e-10 if normalize else None,
        )  # fmt: skip
        given = (S, z[:, None]) if normalize and initial is not None else initial
        o, final = function(q, k, v, initial_state=given, output_final_state=True, normalize=normalize)
        check(o, ref)
        if normalize:
            assert isinstance(final, tuple) and final[1].shape == (B, 1, H, K)
            check(final[0], state.S)
            check(final[1][:, 0], state.z)
        else:
            check(final, state)
    with pytest.raises(ValueError, match="initial_state"):
        function(q, k, v, initial_state=S, normalize=True)
    # The defaults differ, as documented.
    default = function(q, k, v)[0]
    check(default, function(q, k, v, normalize=name != "fused_recurrent_linear_attn")[0])


def test_abc(rng):
    q, k, v, s = (draw(rng, (B, T, H, D), NORMAL) for D in (K, K, V, M))
    ref, state = reference.abc(q, k, v, s, output_final_state=True)
    for function in (fla.chunk_abc, fla.chunk_gsa, fla.fused_recurrent_gsa):
        o, final = function(q, k, v, s, output_final_state=True)
        check(o, ref)
        assert isinstance(final, tuple) and len(final) == 2
        check(final[0], state[0])
        check(final[1], state[1])
        assert function(q, k, v, s)[1] is None
    with pytest.raises(linattn.UnsupportedError, match="initial_state: expected None"):
        fla.chunk_abc(q, k, v, s, initial_state=final)


def test_mul_rwkv7(rng):
    r, k, v = (draw(rng, (B, T, H, D), NORMAL) for D in (K, K, V))
    w, kk, a = (draw(rng, (B, T, H, K), law) for law in (DECAY, UNIT, BETA))
    for reverse in (False, True):
        expected = reference.rwkv7(r, w, k, v, -kk, kk * a, output_final_state=True, reverse=reverse)
        check_both(fla.fused_mul_recurrent_rwkv7(r, w, k, v, kk, a, output_final_state=True, reverse=reverse), expected)


def test_defaults_of_rwkv7(rng):
    """Scale and final state differ between the two, as documented."""
    case = next(case for case in CASES if case.reference is reference.rwkv7)
    operands = case.draw(rng)
    o, state = fla.fused_recurrent_rwkv7(**operands)
    assert state is not None
    chunked, none = fla.chunk_rwkv7(**operands)
    assert none is None
    check(o * K**0.5, chunked)


@pytest.mark.parametrize("name", ["chunk_gated_delta_rule", "chunk_gdn", "fused_recurrent_gated_delta_rule", "chunk_kda", "fused_recurrent_kda", "chunk_gdn2", "fused_recurrent_gdn2"])
def test_kernel_options(rng, name):
    """Norms, gates and sigmoids that the functions take over from their callers."""
    family = "gated_delta_rule" if name.endswith(("delta_rule", "gdn")) else name.rpartition("_")[2]
    case = next(case for case in CASES if case.reference is getattr(reference, family))
    operands = case.draw(rng)
    heads = operands["g"].shape[2]
    operands["q"] = 3 * operands["q"]
    operands["g"] = draw(rng, operands["g"].shape, NORMAL)
    A_log, dt_bias = draw(rng, (heads,), NORMAL), draw(rng, (heads * (1 if family == "gated_delta_rule" else K),), NORMAL)
    options = dict(use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias)
    if takes(name, "use_beta_sigmoid_in_kernel"):
        operands["beta"] = draw(rng, operands["beta"].shape, NORMAL)
        options.update(use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True)
    check(case.call(name, operands, **options)[0], case.reference(**operands, **options))
    if takes(name, "lower_bound"):
        safe = {"safe_gate": True} if takes(name, "safe_gate") else {}
        options["lower_bound"] = -5.0
        check(case.call(name, operands, **options, **safe)[0], case.reference(**operands, **options))
        # Without A_log its exponential is one.
        options["A_log"] = np.zeros(heads, np.float32)
        expected = case.reference(**operands, **options)
        del options["A_log"]
        check(case.call(name, operands, **options)[0], expected)
        # A promise only, where g is the decay itself.
        operands["g"] = -np.abs(operands["g"])
        promise = case.call(name, operands, lower_bound=-5.0)[0]
        np.testing.assert_array_equal(promise, case.call(name, operands)[0])


def test_gated_delta_rule_takes_present_operands(rng):
    operands = gates(gk=((HV, K), DECAY))
    operands = {name: draw(rng, (B, T, *shape), law) for name, (shape, law) in operands.items()}
    g, gk, beta = operands.pop("g"), operands.pop("gk"), operands.pop("beta")
    function = fla.fused_recurrent_gated_delta_rule
    check(function(**operands, beta=beta)[0], reference.delta_rule(**operands, beta=beta))
    check(function(**operands, g=g)[0], reference.gated_delta_rule(**operands, g=g))
    check(function(**operands, g=g, gk=gk, beta=beta)[0], reference.kda(**operands, g=gk + g[..., None], beta=beta))
    with pytest.raises(linattn.UnsupportedError, match="gv: expected None"):
        function(**operands, gv=operands["v"])


def weigh(q, k, v, polynomial, eps):
    """Σ_j w_tj v_j / (Σ_j w_tj + eps) in float64; eps None does not divide."""
    y = np.einsum("bthk,bjhk->bhtj", *(x.astype(np.float64) for x in (q, k)))
    w = np.tril(polynomial(y))
    o = np.einsum("bhtj,bjhv->bthv", w, v.astype(np.float64))
    return o if eps is None else o / (w.sum(-1).swapaxes(1, 2)[..., None] + eps)


def test_polynomials(rng):
    q, k, v = (draw(rng, (B, T, H, D), NORMAL) for D in (8, 8, V))
    taylor = lambda y: 1 + y + y * y / 2  # noqa: E731
    for function in (fla.parallel_based, fla.fused_chunk_based):
        check(function(q, k, v), weigh(8**-0.5 * q, k, v, taylor, 1e-6))
        check(function(q, k, v, scale=-0.1), weigh(-0.1 * q, k, v, taylor, 1e-6))
        check(function(q, k, v, use_norm=False), weigh(8**-0.5 * q, k, v, taylor, None))
    check(fla.parallel_rebased(q, k, v), weigh(8**-0.5 * q, k, v, np.square, 1e-5))
    check(fla.parallel_rebased(q, k, v, eps=0.1, use_scale=False), weigh(q, k, v, np.square, 0.1))
    check(fla.parallel_rebased(q, k, v, use_normalize=False), weigh(8**-0.5 * q, k, v, np.square, None))
    half = fla.parallel_based(*(x.astype(np.float16) for x in (q, k, v)))
    assert half.dtype == np.float16
    assert np.abs(half - weigh(8**-0.5 * q, k, v, taylor, 1e-6)).max() < 5e-3
    with pytest.raises(linattn.UnsupportedError, match="return_both"):
        fla.parallel_rebased(q, k, v, return_both=True)
    with pytest.raises(ValueError, match="k: expected the head size of q, 8, but got 24"):
        fla.parallel_based(q, v, v)
    with pytest.raises(ValueError, match=r"q: expected shape \(B, T, H, D\)"):
        fla.parallel_based(q[0], k[0], v[0])


@pytest.mark.parametrize("shape", [(1, 1, 1, 8), (1, 0, 2, 8), (1, 63, 1, 64), (2, 70, 3, 60)], ids=str)
def test_shapes(rng, shape):
    q, k, v = draw(rng, shape, NORMAL), draw(rng, shape, UNIT), draw(rng, shape, NORMAL)
    g, beta = draw(rng, shape[:3], DECAY), draw(rng, shape[:3], BETA)
    expected = reference.gated_delta_rule(q, k, v, g, beta, output_final_state=True)
    check_both(fla.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True), expected)


@pytest.mark.parametrize("norm", [0.01, 0.1])
def test_strong_decay(rng, norm):
    """Hundreds of nats per step, and some tokens without any decay."""
    q, k, v = (draw(rng, (1, 100, 2, D), NORMAL) for D in (K, K, V))
    g = draw(rng, (1, 100, 2, K), DECAY) / norm * (rng.random((1, 100, 2, K)) < 0.5)
    g = g.astype(np.float32)
    check_both(fla.chunk_gla(q, k, v, g, output_final_state=True), reference.gla(q, k, v, g, output_final_state=True))


def test_names():
    assert len(fla.__all__) >= 46 and linattn.fla is fla
    for name in fla.__all__:
        function = getattr(fla, name)
        assert function.__name__ == name and function.__module__ == "linattn.fla"
        parameters = inspect.signature(function).parameters
        assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())
        for parameter in parameters:
            assert f"\n  {parameter}: " in function.__doc__, f"{name}: {parameter}"
    assert str(inspect.signature(fla.chunk_gla)) == (
        "(q, k, v, g, scale=None, initial_state=None, output_final_state=False, state_v_first=False, "
        "cu_seqlens=None, cu_seqlens_cpu=None, *, inplace=False)"
    )
    assert list(inspect.signature(fla.fused_recurrent_comba).parameters)[:6] == ["q", "k", "p", "v", "g", "beta"]


@pytest.mark.parametrize("case, name", ALL, ids=IDS)
def test_unknown_keywords(rng, case, name):
    operands = case.draw(rng)
    for keyword in ("head_first", "outptu_final_state"):
        with pytest.raises(TypeError, match=keyword):
            case.call(name, operands, **{keyword: False})


def test_errors(rng):
    q, k, v = (draw(rng, (B, T, H, D), NORMAL) for D in (K, K, V))
    g, beta = draw(rng, (B, T, H), DECAY), draw(rng, (B, T, H), BETA)
    gk = draw(rng, (B, T, H, K), DECAY)

    def fails(message, function, *args, error=ValueError, **kwargs):
        with pytest.raises(error, match=message):
            function(*args, **kwargs)

    fails("k: ", fla.chunk_linear_attn, q, k[:, :, :, :8], v)
    fails("v: ", fla.chunk_simple_gla, q, k, v[:, :5], g)
    fails("g: ", fla.chunk_simple_gla, q, k, v, gk)
    fails("g_gamma: ", fla.chunk_simple_gla, q, k, v, g, g[0, 0])
    fails("g: ", fla.chunk_gla, q, k, v, g)
    fails("beta: ", fla.chunk_delta_rule, q, k, v, beta[:, :5])
    fails("heads|head", fla.chunk_retention, np.concatenate([q, q[:, :, :1]], axis=2), k, v)
    fails("initial_state|S: ", fla.chunk_gla, q, k, v, gk, initial_state=np.zeros((1, H, K, V), np.float32))
    fails("initial_state|S: ", fla.chunk_gla, q, k, v, gk, initial_state=np.zeros((B, H, K, V), np.float32), state_v_first=True)
    fails("initial_state: expected shape", fla.chunk_gla, q, k, v, gk, initial_state=np.zeros((H, K, V), np.float32), state_v_first=True)
    fails("float32", fla.chunk_gla, q, k, v, gk, initial_state=np.zeros((B, H, K, V), np.float16), error=TypeError)
    fails("cu_seqlens: ", fla.chunk_gla, q, k, v, gk, cu_seqlens=[0, 5, T])
    fails("cu_seqlens: ", fla.chunk_gla, q[:1], k[:1], v[:1], gk[:1], cu_seqlens=[0, 5])
    fails("cp_context: ", fla.chunk_kda, q, k, v, gk, beta, cp_context=object())
    fails("return_intermediate_states: ", fla.chunk_kda, q, k, v, gk, beta, return_intermediate_states=True)
    fails("output_attentions: ", fla.parallel_retention, q, k, v, output_attentions=True)
    fails("chunk_size: expected a power of 2, but got 48", fla.chunk_kda, q, k, v, gk, beta, chunk_size=48)
    fails("chunk_size: ", fla.chunk_kda, q, k, v, gk, beta, chunk_size=32.0, error=TypeError)
    fails("checkpoint_level: ", fla.chunk_gsa, q, k, v, gk, gk, checkpoint_level=3)
    fails("lower_bound: ", fla.chunk_kda, q, k, v, gk, beta, safe_gate=True, use_gate_in_kernel=True, A_log=g[0, 0])
    fails("lower_bound: ", fla.chunk_kda, q, k, v, gk, beta, use_gate_in_kernel=True, A_log=g[0, 0], lower_bound=-6.0)
    fails("A_log: ", fla.chunk_gated_delta_rule, q, k, v, g, beta, use_gate_in_kernel=True)
    fails("A_log: ", fla.chunk_gated_delta_rule, q, k, v, g, beta, A_log=g[0, 0])
    fails("allow_neg_eigval: ", fla.chunk_gated_delta_rule, q, k, v, g, beta, allow_neg_eigval=True)
    fails("g: ", fla.fused_recurrent_gated_delta_rule, q, k, v, beta=beta, use_gate_in_kernel=True)
    fails("gk: ", fla.fused_recurrent_gated_delta_rule, q, k, v, gk=gk, A_log=g[0, 0])
    fails("output_final_state: ", fla.chunk_gla, q, k, v, gk, output_final_state="yes", error=TypeError)
    fails("state_v_first: ", fla.chunk_gla, q, k, v, gk, initial_state=np.zeros((B, H, K, V), np.float32), state_v_first=3, error=TypeError)


def test_torch(rng):
    """A program that holds tensors gets tensors."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    operands = {name: draw(rng, (B, T, *shape), law) for name, (shape, law) in gates().items()}
    tensors = {name: torch.from_numpy(array) for name, array in operands.items()}
    for name, v_first in itertools.product(["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"], [False, True]):
        o, state = getattr(fla, name)(**tensors, output_final_state=True, state_v_first=v_first)
        assert isinstance(o, torch.Tensor) and isinstance(state, torch.Tensor)
        ref, ref_state = reference.gated_delta_rule(**operands, output_final_state=True)
        check(o.numpy(), ref)
        check(state.numpy(), ref_state.swapaxes(2, 3) if v_first else ref_state)
