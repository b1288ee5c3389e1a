"""Results depend on a sequence, never on its neighbours: the same bits alone, in a batch, packed
by `cu_seqlens`, beside longer and shorter sequences, with any number of threads, among other
heads and in other memory, however much LLVM optimizes.

`LINATTN_TEST_EXAMPLES=1000` makes the run long; a failing draw is shrunk and printed.
"""

import numpy as np
import pytest
from conftest import EXAMPLES, runs_or_refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from test_families import CASES, PACKABLE, Draw, parts, state_flag, state_name
from test_properties import DTYPES, make, rules

import linattn

pytestmark = [pytest.mark.sampled(3), pytest.mark.optimized]

DRAWS = EXAMPLES // 2

# Around the lengths where another schedule may begin.
LENGTHS = [0, 1, 2, 3, 4, 8, 9, 15, 16, 17, 31, 32, 33, 48, 65, 96, 130]
FORMS = ["auto", "auto", "auto", "token", "state-tile", "chunk:16", "chunk:5"]
TOKENS = ("decay", "value_decay", "mask", "a", "b", "beta", "erase", "write", "input_gate")


def cut(tokens, kw, begin, end, sequence):
    """The arguments of one sequence of a packed call."""
    alone = {name: x for name, x in kw.items() if name != "cu_seqlens"}
    for name in TOKENS:
        if name in kw and kw[name].ndim > 1:
            alone[name] = kw[name][:, begin:end]
    if "initial_state" in kw:
        alone["initial_state"] = row(kw["initial_state"], sequence)
    return [x[:, begin:end] for x in tokens], alone


def row(state, i):
    return linattn.State(*(None if x is None else x[i : i + 1] for x in (state.S, state.z, state.m)))


def scan(tokens, kw, form, returns, **more):
    """(o, parts of the state), the latter empty where none is returned."""
    result = linattn.scan(*tokens, form=form, return_state=returns, **kw, **more)
    return (result[0], parts(result[1])) if returns else (result, [])


def assert_same(got, expected):
    for x, y in zip([got[0], *got[1]], [expected[0], *expected[1]], strict=True):
        np.testing.assert_array_equal(x, y)


def scattered(x):
    """The same elements [B, H, T, …] in memory, every other row of it."""
    if x.ndim < 3:
        return x
    memory = np.zeros((x.shape[0], x.shape[2], 2 * x.shape[1], *x.shape[3:]), x.dtype)
    view = memory[:, :, ::2].swapaxes(1, 2)
    view[...] = x
    return view


@settings(max_examples=DRAWS, deadline=None)
@given(
    form=st.sampled_from(FORMS), dtype=st.sampled_from(list(DTYPES)), rule=rules(),
    lengths=st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=4),
    heads=st.sampled_from([(1, 1, 1), (2, 2, 2), (4, 2, 2), (2, 2, 4)]),
    sizes=st.sampled_from([(16, 16), (20, 33), (64, 64), (4, 40)]), returns=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_packed_is_alone(form, dtype, rule, lengths, heads, sizes, returns, seed):
    offsets = np.cumsum([0, *lengths])
    shape = dict(B=1, T=int(offsets[-1]), heads=heads, K=sizes[0], V=sizes[1], cu_seqlens=offsets.tolist())
    tokens, kw = make(rule, shape, DTYPES[dtype], seed)
    packed = runs_or_refuses(lambda: scan(tokens, kw, form, returns), form, kw)
    if packed is None:
        return
    assert_same(scan(tokens, kw, form, returns, num_threads=3), packed)
    for i, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        alone = scan(*cut(tokens, kw, begin, end, i), form, returns)
        assert_same(alone, (packed[0][:, begin:end], [part[i : i + 1] for part in packed[1]]))


@settings(max_examples=DRAWS, deadline=None)
@given(
    form=st.sampled_from(FORMS), dtype=st.sampled_from(list(DTYPES)), rule=rules(), length=st.sampled_from(LENGTHS),
    sizes=st.sampled_from([(16, 16), (20, 33), (64, 64)]), returns=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_batch_heads_and_memory(form, dtype, rule, length, sizes, returns, seed):
    shape = dict(B=3, T=length, heads=(4, 4, 4), K=sizes[0], V=sizes[1], cu_seqlens=None)
    tokens, kw = make(rule, shape, DTYPES[dtype], seed)
    batch = runs_or_refuses(lambda: scan(tokens, kw, form, returns), form, kw)
    if batch is None:
        return
    others = {name: scattered(x) if name in TOKENS and name != "mask" else x for name, x in kw.items()}
    assert_same(scan([scattered(x) for x in tokens], others, form, returns, num_threads=2), batch)

    def pick(name, x, b, h):
        if name == "initial_state":
            return linattn.State(*(None if y is None else y[b, h] for y in (x.S, x.z, x.m)))
        if name in ("bonus",) or name == "decay" and x.ndim == 1:
            return x[h]
        if name == "mask":
            return x[b]
        return x[b, :, h] if name in TOKENS else x

    b, h = slice(1, 2), slice(1, 3)
    alone = scan([x[b, :, h] for x in tokens], {name: pick(name, x, b, h) for name, x in kw.items()}, form, returns)
    assert_same(alone, (batch[0][b, :, h], [part[b, h] for part in batch[1]]))


FAMILIES = [(case, stateful) for i, case in enumerate(PACKABLE) for stateful in (False, True) if DRAWS > 100 or stateful == (i % 3 > 0)]


@pytest.mark.parametrize("case, stateful", FAMILIES)
def test_named_families(case, stateful):
    """Sequences of several lengths in one call; a state goes in and out, or neither."""
    name, make_case = CASES[case]
    function = getattr(linattn, name)
    lengths = [1, 40, 2] if stateful else [33, 1, 70]
    offsets = np.cumsum([0, *lengths])
    operands = make_case(Draw(B=1, T=int(offsets[-1])))
    micro = {"k", "v", "beta"} if "num_householder" in operands else set()
    n = operands.get("num_householder", 1)
    states = {}
    if stateful:
        _, state = function(**operands, cu_seqlens=offsets, **{state_flag(function): True})
        states = {state_name(function): state}
    flag = {state_flag(function): stateful}
    result = function(**operands, cu_seqlens=offsets, **states, **flag)
    packed = (result[0], parts(result[1])) if stateful else (result, [])
    for i, (begin, end) in enumerate(zip(offsets, offsets[1:])):

        def of(key, x, begin=begin, end=end):
            if not isinstance(x, np.ndarray) or x.ndim < 3:
                return x
            return x[:, begin * n : end * n] if key in micro else x[:, begin:end]

        given_state = {key: take(x, i) for key, x in states.items()}
        result = function(**{key: of(key, x) for key, x in operands.items()}, **given_state, **flag)
        alone = (result[0], parts(result[1])) if stateful else (result, [])
        assert_same(alone, (packed[0][:, begin:end], [part[i : i + 1] for part in packed[1]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quick_code_has_the_same_bits(dtype, monkeypatch):
    """LLVM's optimizations change no order of sums."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((2, 75, 2, 32)).astype(dtype) for _ in range(3))
    k = (k / 6).astype(dtype)
    decay, beta = -rng.random((2, 75, 2, 32), np.float32), rng.random((2, 75, 2), np.float32)
    calls = [
        lambda: (linattn.attention(q, k, v, weights="softmax", causal=True), []),
        lambda: (linattn.scan(q, k, v, feature_map="exp", normalize=True), []),
        lambda: scan((q, k, v), {"decay": decay}, "auto", True),
        lambda: scan((q, k, v), {"decay": decay, "beta": beta, "update": "delta"}, "auto", True),
    ]
    optimized = [call() for call in calls]
    monkeypatch.setenv("LINATTN_OPTIMIZATION", "quick")
    for call, expected in zip(calls, optimized):
        assert_same(call(), expected)


def take(state, i):
    if isinstance(state, linattn.State):
        return row(state, i)
    if isinstance(state, tuple):
        return tuple(part[i : i + 1] for part in state)
    return state[i : i + 1]


@pytest.mark.parametrize("feature_map", ["identity", "elu", "exp"])
@pytest.mark.parametrize("T", [2, 32, 90])
def test_attention_is_scan(feature_map, T):
    """Causal attention alone and in a batch, against the packed recurrence that it is."""
    rng = np.random.default_rng(T)
    q, k, v = (rng.standard_normal((3, T, 2, 64)).astype(np.float32) for _ in "qkv")
    options = dict(feature_map=feature_map, normalize=feature_map != "identity")
    batch = linattn.attention(q, k, v, causal=True, **options)
    flat = (x.reshape(1, 3 * T, 2, 64) for x in (q, k, v))
    packed = linattn.scan(*flat, cu_seqlens=[0, T, 2 * T, 3 * T], scale=1.0, **options)
    np.testing.assert_array_equal(packed.reshape(batch.shape), batch)
    np.testing.assert_array_equal(linattn.attention(q[1:2], k[1:2], v[1:2], causal=True, **options), batch[1:2])
