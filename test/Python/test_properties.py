"""Drawn scans, against the oracle: any rule, form, shape, dtype and gate.

`LINATTN_TEST_EXAMPLES=1000` makes the run long; a failing draw is shrunk and printed.
"""

import ml_dtypes
import numpy as np
from conftest import EXAMPLES, assert_agrees, runs_or_refuses
from hypothesis import event, given, settings
from hypothesis import strategies as st

import linattn
from linattn import reference

DRAWS = 2 * EXAMPLES
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
FORMS = ["auto", "token", "state-tile", "chunk:1", "chunk:5", "chunk:16", "segments:7"]

# How strongly a gate forgets: not at all, a little, usually, and all at once.
STRENGTHS = [0.0, 0.01, 1.0, 30.0, 300.0]


@st.composite
def shapes(draw):
    """B, T, heads that divide one another, K, V, and perhaps packed sequences."""
    T = draw(st.one_of(st.integers(0, 6), st.sampled_from([15, 16, 17, 33, 70])))
    offsets = None
    if draw(st.booleans()):
        cuts = draw(st.lists(st.integers(0, T), max_size=4))
        offsets = [0, *sorted(cuts), T]
    return {
        "B": 1 if offsets else draw(st.integers(1, 3)),
        "T": T,
        "heads": draw(st.sampled_from([(1, 1, 1), (2, 2, 2), (4, 2, 2), (2, 2, 4), (2, 4, 2), (3, 1, 3)])),
        "K": draw(st.sampled_from([1, 4, 16, 20])),
        "V": draw(st.sampled_from([1, 8, 16, 33])),
        "cu_seqlens": offsets,
    }


def make_rule(pick):
    """The recurrence, as names: arrays are made when sizes are known. `pick` takes one of a list."""
    update = pick(["add", "delta", "dplr", "oja"])
    rule = {
        "update": update,
        "decay": pick([None, "head", "token", "channel"]),
        "strength": pick(STRENGTHS),
        "readout": pick(["inclusive", "exclusive"]),
        "reverse": pick([False, True]),
        "initial": pick([False, True]),
        "normalize": False,
        "feature_map": pick([None, "relu", "elu", "softmax_kernel"]),
    }
    rule["bonus"] = rule["readout"] == "exclusive" and update in ("add", "dplr") and pick([False, True])
    rule["value_decay"] = update in ("add", "oja") and pick([False, True])
    rule["masked"] = pick([False, True])
    if update == "add":
        if rule["readout"] == "inclusive" and not rule["value_decay"] and pick([False, True]):
            rule["normalize"] = True
            rule["feature_map"] = pick(["elu", "softmax_kernel", "exp"])
            # As in mLSTM.
            rule["gated"] = rule["feature_map"] != "exp" and rule["decay"] != "channel" and pick([False, True])
    elif update == "delta":
        rule["beta"] = pick(["token", "value"])
        rule["erase"], rule["write"] = pick([False, True]), pick([False, True])
    elif update == "dplr":
        rule["transition"] = pick(["before", "after"])
    return rule


@st.composite
def rules(draw):
    return make_rule(lambda choices: draw(st.sampled_from(choices)))


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def make(rule, shape, dtype, seed):
    """The arrays and keywords of one call of scan."""
    rng = np.random.default_rng(seed)
    B, T, K, V = (shape[name] for name in "BTKV")
    Hq, Hk, Hv = shape["heads"]
    H = max(Hk, Hv)
    normal = lambda *sizes: rng.standard_normal(sizes)  # noqa: E731
    q, k, v = normal(B, T, Hq, K), unit(normal(B, T, Hk, K)), normal(B, T, Hv, V)
    kw = {name: rule[name] for name in ("update", "readout", "reverse", "normalize", "feature_map")}

    def gate(*sizes):
        return (-rule["strength"] * rng.random(sizes)).astype(np.float32)

    if rule["decay"]:
        kw["decay"] = gate(*{"head": (H,), "token": (B, T, H), "channel": (B, T, H, K)}[rule["decay"]])
    if rule.get("value_decay"):
        kw["value_decay"] = gate(B, T, H, V)
    if rule["bonus"]:
        kw["bonus"] = normal(H, K).astype(np.float32)
    if rule["masked"]:
        kw["mask"] = rng.random((B, T)) < 0.7
    if rule.get("gated"):
        kw["input_gate"] = normal(B, T, H).astype(np.float32)
        kw["abs_floor"] = 1.0
    if rule.get("erase"):
        kw["erase"] = rng.random((B, T, H, K)).astype(np.float32)
    if rule.get("write"):
        kw["write"] = rng.random((B, T, H, V)).astype(np.float32)
    if rule["update"] == "oja":
        # Here the values are what has to be of a bounded length.
        v = unit(v)
        kw["beta"] = (1.5 * rng.random((B, T, H))).astype(np.float32)
    if rule["update"] == "delta":
        # φ(k) has a norm of up to √K·2: the step stays one that contracts.
        sizes = (B, T, H) if rule["beta"] == "token" else (B, T, H, V)
        limit = 2.0 if rule["feature_map"] in (None, "relu") else 0.4 / K
        kw["beta"] = (limit * rng.random(sizes)).astype(np.float32)
    if rule["update"] == "dplr":
        kw["transition"] = rule["transition"]
        kw["a"], kw["b"] = (unit(normal(B, T, H, K)).astype(dtype) for _ in range(2))
        kw["a"] = (0.5 * kw["a"].astype(np.float32)).astype(dtype)
    if shape["cu_seqlens"]:
        kw["cu_seqlens"] = shape["cu_seqlens"]
    if rule["initial"]:
        N = len(shape["cu_seqlens"]) - 1 if shape["cu_seqlens"] else B
        like = np.zeros(0, dtype)
        state = linattn.State.zeros(N, H, K, V, normalize=rule["normalize"], like=like, feature_map=rule["feature_map"], running_max=bool(rule.get("gated")))
        state.S = normal(*state.S.shape).astype(state.S.dtype)
        if state.z is not None:
            state.z = (1.0 + rng.random(state.z.shape)).astype(state.z.dtype)
        if state.m is not None:
            state.m = normal(*state.m.shape).astype(state.m.dtype)
        kw["initial_state"] = state
    return [x.astype(dtype) for x in (q, k, v)], kw


def check(form, dtype, shape, rule, seed):
    """One scan against the oracle, or its refusal; whether there was something to compare."""
    tokens, kw = make(rule, shape, DTYPES[dtype], seed)
    result = runs_or_refuses(lambda: linattn.scan(*tokens, form=form, return_state=True, **kw), form, kw)
    if result is None:
        return False
    o, state = result
    ref, ref_state = reference.scan(*tokens, return_state=True, **kw)
    assert_agrees(o.astype(np.float64), ref, dtype)
    state_dtype = "float64" if dtype == "float64" else "float32"
    # A state of few numbers may end up small beside one token's write.
    written = np.abs(tokens[2].astype(np.float64)).max(initial=0.0) / np.sqrt(shape["K"])
    for name in "Sz":
        if getattr(ref_state, name) is not None and getattr(ref_state, name).size:
            assert_agrees(getattr(state, name), getattr(ref_state, name), state_dtype, written if name == "S" else 0.0)
    return True


@settings(max_examples=DRAWS)
@given(
    form=st.sampled_from(FORMS), dtype=st.sampled_from(list(DTYPES)), shape=shapes(),
    rule=rules(), seed=st.integers(0, 999),
)  # fmt: skip
def test_scan(form, dtype, shape, rule, seed):
    legal = check(form, dtype, shape, rule, seed)
    event(f"{form.split(':')[0]}, {rule['update']}" if legal else "illegal form")
