"""The named families: against their own definitions in float64, against one
another, and their signatures and messages."""

import inspect

import ml_dtypes
import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import reference

B, T, HQ, HK, HV, K, V, M = 2, 19, 4, 2, 4, 16, 24, 6
H = max(HK, HV)


class Draw:
    """Seeded operands by what they are, in the dtype of the tokens or f32."""

    def __init__(self, dtype=np.float32, T=T, B=B, HQ=HQ, HK=HK, HV=HV, K=K, V=V, seed=0):
        self.rng = np.random.default_rng(seed)
        self.dtype, self.T, self.B = dtype, T, B
        self.HQ, self.HK, self.HV, self.H, self.K, self.V = HQ, HK, HV, max(HK, HV), K, V
        self.gate = np.float64 if dtype == np.float64 else np.float32

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(self.dtype)

    def q(self):
        return self.normal(self.B, self.T, self.HQ, self.K)

    def k(self, n=1):
        k = self.rng.standard_normal((self.B, self.T * n, self.HK, self.K))
        return (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(self.dtype)

    def v(self, n=1):
        return self.normal(self.B, self.T * n, self.HV, self.V)

    def decay(self, *tail, low=1.0):
        return (-low * self.rng.random((self.B, self.T, self.H, *tail))).astype(self.gate)

    def unit(self, *tail, n=1):
        return self.rng.random((self.B, self.T * n, self.H, *tail)).astype(self.gate)

    def parameter(self, *shape):
        return self.rng.standard_normal(shape).astype(self.gate)


def additive(*names):
    def make(d):
        gates = {"g": lambda: d.decay(), "gk": lambda: d.decay(d.K), "gv": lambda: d.decay(d.V)}
        return {"q": d.q(), "k": d.k(), "v": d.v(), **{{"gk": "g"}.get(n, n): gates[n]() for n in names}}

    return make


def rwkv(w):
    def make(d):
        decay = -abs(d.parameter(d.H, d.K)) if w == "HK" else d.decay(d.K)
        return {"r": d.q(), "k": d.k(), "v": d.v(), "w": decay, "u": d.parameter(d.H, d.K)}

    return make


def mamba2(d, **options):
    return {
        "x": d.normal(d.B, d.T, d.HV, d.V), "dt": d.unit(), "A": -abs(d.parameter(d.H)),
        "B": d.normal(d.B, d.T, d.HK, d.K), "C": d.normal(d.B, d.T, d.HK, d.K), **options,
    }  # fmt: skip


def delta(d, **options):
    return {"q": d.q(), "k": d.k(), "v": d.v(), "beta": d.unit(), **options}


def gated(d, *tail, **options):
    return delta(d, g=d.decay(*tail), **options)


def preactivations(d, *tail, **options):
    return delta(
        d, g=d.normal(d.B, d.T, d.H, *tail).astype(d.gate), A_log=d.parameter(d.H),
        dt_bias=d.parameter(d.H, *tail), use_gate_in_kernel=True, **options,
    )  # fmt: skip


def low_rank(d, decay=None, q="q"):
    kappa = d.k().repeat(d.H // d.HK, axis=2).astype(d.gate)
    made = {q: d.q(), "k": d.k(), "v": d.v(), "a": -kappa, "b": kappa * d.unit(d.K)}
    return {**made, **({decay: d.decay(d.K)} if decay else {})}


def mlstm(d, **options):
    gates = {name: d.normal(d.B, d.T, d.H).astype(d.gate) for name in "if"}
    return {"q": d.q(), "k": d.k(), "v": d.v(), **gates, **options}


def slots(d, *gate):
    s = d.rng.random((d.B, d.T, d.H, M)).astype(d.dtype)
    return {"q": d.q(), "k": d.k(), "v": d.v(), "s": s, **({"g": d.decay(M)} if gate else {})}


# name: (function, operands)
CASES = {
    "linear_attention": ("linear_attention", additive()),
    "linear_attention-plain": ("linear_attention", lambda d: {**additive()(d), "normalize": False, "feature_map": "identity"}),
    "rfa": ("rfa", lambda d: {**additive("g")(d), "feature_map": "elu"}),
    "retnet": ("retnet", additive()),
    "lightning": ("lightning", lambda d: {**additive()(d), "layer_idx": 3, "num_layers": 12}),
    "simple_gla": ("simple_gla", additive("g")),
    "simple_gla-gamma": ("simple_gla", lambda d: {**additive()(d), "g_gamma": -abs(d.parameter(d.H))}),
    "mamba2": ("mamba2", mamba2),
    "mamba2-all": ("mamba2", lambda d: mamba2(d, D=d.parameter(d.H), dt_bias=d.parameter(d.H), dt_softplus=True)),
    "mamba2-D": ("mamba2", lambda d: mamba2(d, D=d.parameter(d.H, d.V))),
    "gla": ("gla", additive("gk")),
    "gla-values": ("gla", additive("gk", "gv")),
    "hgrn": ("hgrn", lambda d: {"x": d.normal(d.B, d.T, d.V), "g": d.decay(d.V)[:, :, 0]}),
    "hgrn2": ("hgrn2", lambda d: {"q": d.q(), "v": d.v(), "g": d.decay(d.K)}),
    "rwkv5": ("rwkv5", rwkv("HK")),
    "rwkv6": ("rwkv6", rwkv("BTHK")),
    "rwkv7": ("rwkv7", lambda d: low_rank(d, "w", "r")),
    "delta_rule": ("delta_rule", delta),
    "delta_rule-values": ("delta_rule", lambda d: delta(d, beta=d.unit(d.V))),
    "delta_rule-norm": ("delta_rule", lambda d: {**delta(d), "k": d.normal(d.B, d.T, d.HK, d.K), "use_qk_l2norm_in_kernel": True}),
    "delta_rule-beta": ("delta_rule", lambda d: delta(d, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True)),
    "gated_delta_rule": ("gated_delta_rule", gated),
    "gated_delta_rule-gate": ("gated_delta_rule", preactivations),
    "kda": ("kda", lambda d: gated(d, d.K)),
    "kda-gate": ("kda", lambda d: preactivations(d, d.K)),
    "kda-bound": ("kda", lambda d: preactivations(d, d.K, lower_bound=-5.0)),
    "gdn2": ("gdn2", lambda d: {"q": d.q(), "k": d.k(), "v": d.v(), "g": d.decay(d.K), "b": d.unit(d.K), "w": d.unit(d.V)}),
    "ttt_linear": ("ttt_linear", lambda d: {"q": d.q(), "k": d.k(), "v": d.v(), "eta": d.unit(1)}),
    "comba": ("comba", lambda d: gated(d, p=d.k())),
    "comba-norm": ("comba", lambda d: gated(d, p=d.k(), use_qk_l2norm_in_kernel=True)),
    "iplr": ("iplr", low_rank),
    "dplr": ("dplr", lambda d: low_rank(d, "gk")),
    "gated_deltaproduct": ("gated_deltaproduct", lambda d: {"q": d.q(), "k": d.k(3), "v": d.v(3), "g": d.decay(), "beta": d.unit(n=3), "num_householder": 3}),
    "gated_deltaproduct-plain": ("gated_deltaproduct", lambda d: {"q": d.q(), "k": d.k(2), "v": d.v(2), "g": None, "beta": None, "num_householder": 2}),
    "gated_oja": ("gated_oja", lambda d: {"q": d.q(), "k": d.k(), "v": 0.2 * d.v(), "gv": d.decay(d.V), "beta": d.unit()}),
    "gated_oja-norm": ("gated_oja", lambda d: {"q": d.q(), "k": d.normal(d.B, d.T, d.HK, d.K), "v": 0.2 * d.v(), "use_q_l2norm": True, "use_k_l2norm": True}),
    "mlstm": ("mlstm", mlstm),
    "mlstm-eps": ("mlstm", lambda d: mlstm(d, eps=1e-2)),
    "lightnet": ("lightnet", lambda d: {"q": d.q(), "k": d.normal(d.B, d.T, d.H, d.K), "v": d.v()}),
    "gsa": ("gsa", lambda d: slots(d, "g")),
    "abc": ("abc", slots),
}  # fmt: skip

# Most of FLA's tolerances are 5e-3: half of that for 16 bits, f32 as it rounds.
TOLERANCE = {np.float64: 1e-13, np.float32: 3e-6, np.float16: 2.5e-3}
PACKED = [0, 7, 7, 8, 19]


def state_flag(function):
    names = inspect.signature(function).parameters
    return "return_final_states" if "return_final_states" in names else "output_final_state"


def state_name(function):
    names = inspect.signature(function).parameters
    return "initial_states" if "initial_states" in names else "initial_state"


def parts(state):
    if isinstance(state, linattn.State):
        return [x for x in (state.S, state.z, state.m) if x is not None]
    return list(state) if isinstance(state, tuple) else [state]


def error(out, ref):
    out, ref = np.asarray(out, np.float64), np.asarray(ref, np.float64)
    assert out.shape == ref.shape
    same = out == ref  # infinities too
    differences = abs(np.where(same, 0, out) - np.where(same, 0, ref))
    return differences.max() / max(abs(ref[np.isfinite(ref)]).max(initial=0), 1e-30) if ref.size else 0.0


def run(module, name, operands, **more):
    function = getattr(module, name)
    return function(**operands, **more, **{state_flag(getattr(linattn, name)): True})


def check(name, operands, tolerance, **more):
    o, state = run(linattn, name, operands, **more)
    expected, expected_state = run(reference, name, operands, **more)
    assert error(o, expected) <= tolerance
    for part, expected_part in zip(parts(state), parts(expected_state), strict=True):
        assert error(part, expected_part) <= tolerance
    return o, state


@pytest.mark.parametrize("case", CASES)
def test_reference(case):
    name, make = CASES[case]
    o, state = check(name, make(Draw()), TOLERANCE[np.float32])
    assert o.dtype == np.float32
    assert all(part.dtype == np.float32 for part in parts(state))


PLAIN = [case for case in CASES if "-" not in case]


@pytest.mark.parametrize("case, dtype", [(case, (np.float16, np.float64)[i % 2]) for i, case in enumerate(PLAIN)])
def test_other_dtypes(case, dtype):
    name, make = CASES[case]
    o, state = check(name, make(Draw(dtype, T=5)), TOLERANCE[dtype])
    assert o.dtype == dtype
    assert all(part.dtype == (np.float64 if dtype == np.float64 else np.float32) for part in parts(state))


@pytest.mark.parametrize("case", PLAIN)
def test_states(case):
    """Prefill, then one token at a time, is one pass; a state goes in and out."""
    name, make = CASES[case]
    operands = make(Draw())
    micro = {"k", "v", "beta"} if "num_householder" in operands else set()
    n = operands.get("num_householder", 1)

    def cut(begin, end):
        def of(key, x):
            if not isinstance(x, np.ndarray) or x.ndim < 3:
                return x
            return x[:, begin * n : end * n] if key in micro else x[:, begin:end]

        return {key: of(key, x) for key, x in operands.items()}

    whole, end = run(linattn, name, operands)
    first, state = run(linattn, name, cut(0, T - 2))
    outputs = [first]
    for t in range(T - 2, T):
        o, state = check(name, cut(t, t + 1), 1e-5, **{state_name(getattr(linattn, name)): state})
        outputs.append(o)
    assert error(np.concatenate(outputs, axis=1), whole) <= 1e-5
    for part, expected in zip(parts(state), parts(end), strict=True):
        assert error(part, expected) <= 1e-5


PACKABLE = [case for case, (name, _) in CASES.items() if "-" not in case and "cu_seqlens" in inspect.signature(getattr(linattn, name)).parameters]


@pytest.mark.parametrize("case", PACKABLE)
def test_packed(case):
    name, make = CASES[case]
    check(name, make(Draw(B=1)), 3e-6, cu_seqlens=PACKED)


REVERSIBLE = [case for case in PACKABLE if "reverse" in inspect.signature(getattr(linattn, CASES[case][0])).parameters]


@pytest.mark.parametrize("case", REVERSIBLE[::3])
def test_reverse(case):
    name, make = CASES[case]
    check(name, make(Draw(T=6)), 3e-6, reverse=True)


# ----------------------------------------------------------------------------
# Families that are others in disguise
# ----------------------------------------------------------------------------


def close(out, ref, tolerance=3e-6):
    assert error(out, ref) <= tolerance


def test_simple_gla_is_mamba2():
    d = Draw(HQ=HK)
    m = mamba2(d)
    y = linattn.mamba2(**m)
    step = m["dt"][..., None]
    close(linattn.simple_gla(m["C"], m["B"], m["x"] * step, m["dt"] * m["A"], scale=1.0), y)


def test_delta_rules():
    operands = delta(Draw())
    q, k, v, beta = operands.values()
    g = np.zeros((B, T, H), np.float32)
    close(linattn.gated_delta_rule(q, k, v, g, beta), linattn.delta_rule(q, k, v, beta))
    close(linattn.ttt_linear(q, k, v, beta), linattn.delta_rule(q, k, v, beta))
    g = Draw(seed=1).decay()
    wide = np.broadcast_to(g[..., None], (B, T, H, K)).copy()
    gated_delta = linattn.gated_delta_rule(q, k, v, g, beta)
    close(linattn.kda(q, k, v, wide, beta), gated_delta)
    one = linattn.gated_deltaproduct(q, k, v, g, beta, 1)
    close(one, gated_delta)
    # Comba reads before the decay: with e^g k for p it is the gated delta rule.
    same = linattn.comba(q.repeat(1, 2), k.repeat(2, 2), v, k.repeat(2, 2) * np.exp(g)[..., None], g, beta)
    close(same, gated_delta)
    # DPLR with a = −k e^g, b = βk is KDA.
    keys = k.repeat(2, 2)
    low = linattn.dplr(q, beta[..., None] * keys, v, -keys * np.exp(wide), beta[..., None] * keys, wide)
    close(low, gated_delta)
    low = linattn.iplr(q, beta[..., None] * keys, v, -keys, beta[..., None] * keys)
    close(low, linattn.delta_rule(q, k, v, beta))
    erase = np.broadcast_to(beta[..., None], (B, T, H, K)).copy()
    write = np.broadcast_to(beta[..., None], (B, T, H, V)).copy()
    close(linattn.gdn2(q, k, v, wide, erase, write), gated_delta)


def test_retnet_is_lightning():
    d = Draw()
    q, k, v = d.q(), d.k(), d.v()
    gamma = np.log(1 - 2.0 ** (-5 - np.arange(H))).astype(np.float32)
    close(linattn.simple_gla(q, k, v, g_gamma=gamma), linattn.retnet(q, k, v))
    gamma = (-(8 / H) * (1 - 3 / 12) * np.arange(H)).astype(np.float32)
    close(linattn.simple_gla(q, k, v, g_gamma=gamma), linattn.lightning(q, k, v, 3, 12))


def test_hgrn2_is_gla():
    d = Draw(HQ=H)
    q, v, g = d.q(), d.v(), d.decay(K)
    close(linattn.hgrn2(q, v, g), linattn.gla(q, 1 - np.exp(g), v, g))


# ----------------------------------------------------------------------------
# Arrays and errors
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("gate", ("float16", "bfloat16", "float32"))
def test_rfa_errs_by_its_denominators_alone(gate):
    """Features of both signs make denominators near 0; the sums themselves are exact, whatever the gates' dtype."""
    draw = Draw()
    q, k, v, g = draw.q(), draw.k(), draw.v(), draw.decay().astype(getattr(ml_dtypes, gate, gate))
    for options in ({"feature_map": "elu"}, {"normalize": False}):
        assert_agrees(linattn.rfa(q, k, v, g, **options), reference.rfa(q, k, v, g, **options))


def test_ranks():
    d = Draw(B=1, HQ=1, HK=1, HV=1)
    operands = gated(d, d.K)
    whole, S = run(linattn, "kda", operands)
    for squeeze in (lambda x: x[:, :, 0], lambda x: x[0, :, 0]):
        o, state = run(linattn, "kda", {name: squeeze(x) for name, x in operands.items()})
        np.testing.assert_array_equal(o, squeeze(whole))
        np.testing.assert_array_equal(state, S)
        expected = reference.kda(**{name: squeeze(x) for name, x in operands.items()})
        assert error(o, expected) <= 3e-6


def test_out_and_threads():
    d = Draw()
    q, k, v, g = d.q(), d.k(), d.v(), d.decay(d.K)
    o = linattn.gla(q, k, v, g)
    out = np.empty_like(o)
    assert linattn.gla(q, k, v, g, out=out, num_threads=2) is out
    np.testing.assert_array_equal(out, o)


def test_strided_operands():
    d = Draw(HQ=2, HV=2)
    packed = d.normal(B, T, 2, 3 * K)
    q, k, v = packed[..., :K], packed[..., K : 2 * K], packed[..., 2 * K :]
    g = d.decay(K)[:, :, ::-1]
    close(linattn.gla(q, k, v, g), reference.gla(q, k, v, g))


def test_flat_bias():
    d = Draw()
    operands = preactivations(d, K)
    o = linattn.kda(**operands)
    np.testing.assert_array_equal(linattn.kda(**{**operands, "dt_bias": operands["dt_bias"].reshape(-1)}), o)


def test_errors():
    d = Draw()
    q, k, v, g, beta = d.q(), d.k(), d.v(), d.decay(), d.unit()
    cases = [
        (lambda: linattn.gla(q, k, v, g), ValueError, r"g: expected shape \(2, 19, 4, 16\), but got \(2, 19, 4\)"),
        (lambda: linattn.gated_delta_rule(q, k, v, g[:, :, :3], beta), ValueError, r"g: expected shape \(2, 19, 4\)"),
        (lambda: linattn.gated_delta_rule(q, k, v[:, 1:], g, beta), ValueError, "v: expected the sequence length of k, 19, but got 18"),
        (lambda: linattn.simple_gla(q, k, v, g, g[0, 0]), ValueError, "g_gamma: expected one of g and g_gamma"),
        (lambda: linattn.comba(q, k, v, None, g), TypeError, "p: expected an array"),
        (lambda: linattn.comba(q, k, v, k.astype(np.float64), g), TypeError, "p: expected the dtype of q, float32, but got float64"),
        (lambda: linattn.delta_rule(q, k, v, beta, scale="big"), TypeError, "scale: expected a number"),
        (lambda: linattn.delta_rule(q, k, v, beta, use_qk_l2norm_in_kernel="yes"), TypeError, "use_qk_l2norm_in_kernel: expected True or False"),
        (lambda: linattn.delta_rule(q, k, v, beta, allow_neg_eigval=True), ValueError, "allow_neg_eigval: expected it only with use_beta_sigmoid_in_kernel"),
        (lambda: linattn.gated_delta_rule(q, k, v, g, beta, A_log=g[0, 0]), ValueError, "A_log: expected it only with use_gate_in_kernel"),
        (lambda: linattn.kda(q, k, v, d.decay(K), beta, use_gate_in_kernel=True, A_log=g[0, 0], lower_bound=-6), ValueError, "lower_bound: expected a number from -5 to below 0"),
        (lambda: linattn.delta_rule(q, k, v, beta, np.zeros((2, 4, 16, 16), np.float32)), TypeError, "scale"),
        (lambda: linattn.delta_rule(q, k, v, beta, initial_state=np.zeros((2, 4, 24, 16), np.float32)), ValueError, r"initial_state: expected shape \(2, 4, 16, 24\), but got \(2, 4, 24, 16\)"),
        (lambda: linattn.gsa(q, k, v, d.normal(B, T, H, M), d.decay(M), initial_state=(q,)), ValueError, "initial_state: expected 2 arrays for gsa, but got one array"),
        (lambda: linattn.lightning(q, k, v, 1.5, 12), TypeError, "layer_idx: expected an integer"),
        (lambda: linattn.lightning(q, k, v, 13, 12), ValueError, "layer_idx: expected a layer"),
        (lambda: linattn.linear_attention(q, k, v, feature_map="cube"), ValueError, "feature_map: expected identity"),
        (lambda: linattn.linear_attention(q, k, v, normalize=False, eps=0.1), ValueError, "eps: expected it only with normalize"),
        (lambda: linattn.retnet(q, k, v, form="quadratic"), ValueError, "form: expected a recurrent form"),
        (lambda: linattn.retnet(q, k, v, cu_seqlens=[0, 19]), ValueError, "cu_seqlens: expected a batch size of 1"),
        (lambda: linattn.gated_deltaproduct(q, k, v, None, None, 2), ValueError, "v: expected the sequence length to be 38, but got 19"),
        (lambda: linattn.abc(q, k, v, d.normal(B, T, 3, M)), ValueError, "s: expected the number of heads to be 4, but got 3"),
        (lambda: linattn.lightnet(q, q[:, 1:], v), ValueError, "k: expected the sequence length of q, 19, but got 18"),
        (lambda: linattn.lightnet(q, q, v, initial_state=q), ValueError, "initial_state: expected 2 arrays for lightnet, but got one array"),
    ]  # fmt: skip
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES.values()}))
def test_signatures(name):
    function, oracle = getattr(linattn, name), getattr(reference, name)
    signature = inspect.signature(function)
    assert signature == inspect.signature(oracle)
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in signature.parameters.values())
    assert {"out", "num_threads", "form", "target"} <= set(signature.parameters)
    for parameter in signature.parameters:
        assert parameter in function.__doc__, parameter
    needed = {name: None for name, p in signature.parameters.items() if p.default is p.empty}
    with pytest.raises(TypeError, match="colour"):
        function(**needed, colour="red")
    with pytest.raises(TypeError, match="colour"):
        oracle(**needed, colour="red")


def test_documented_signatures():
    def names(function):
        return list(inspect.signature(function).parameters)

    assert names(linattn.mamba2)[:10] == [
        "x", "dt", "A", "B", "C", "D", "dt_bias", "initial_states", "dt_softplus", "return_final_states",
    ]  # fmt: skip
    assert names(linattn.mlstm)[:5] == ["q", "k", "v", "i", "f"]
    assert names(linattn.gated_delta_rule)[:9] == [
        "q", "k", "v", "g", "beta", "scale", "initial_state", "output_final_state", "use_qk_l2norm_in_kernel",
    ]  # fmt: skip
