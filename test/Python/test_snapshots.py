"""States in between: those that a scan keeps, and those that a state goes back to."""

import numpy as np
import pytest

import linattn
from conftest import assert_agrees
from linattn import State, reference
from linattn import feature_maps as fm

pytestmark = pytest.mark.sampled(2)

T = 19


def make(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


RULES = {
    "add": lambda g: {},
    "decay": lambda g: {"decay": -g(2, T, 3, 16)},
    "heads": lambda g: {"decay": -g(3)},
    "delta": lambda g: {"update": "delta", "beta": g(2, T, 3), "decay": -g(2, T, 3)},
    "normalize": lambda g: {"normalize": True, "feature_map": "elu"},
    "exp": lambda g: {"normalize": True, "feature_map": "exp"},
    "mlstm": lambda g: {"normalize": True, "abs_floor": 1.0, "input_gate": g(2, T, 3), "decay": -g(2, T, 3)},
    "bonus": lambda g: {"decay": -g(2, T, 3, 16), "bonus": g(3, 16), "readout": "exclusive"},
    "features": lambda g: {"feature_map": fm.taylor()},
    "mask": lambda g: {"mask": g(2, T) > 0.3},
    "layout": lambda g: {"state_layout": "vk", "decay": -g(2, T, 3)},
    "reverse": lambda g: {"reverse": True, "decay": -g(2, T, 3)},
}
# Chunks that divide n and that do not, and forms without any.
FORMS = ["auto", "token", "chunk:4", "chunk:16"]


def parts_of(states):
    return [part for part in (states if isinstance(states, tuple) else (states,)) if part is not None]


def options_of(rule, rng):
    return RULES[rule](lambda *shape: rng.random(shape).astype(np.float32))


@pytest.mark.parametrize("rule", RULES)
def test_against_the_oracle(rng, qkv, rule):
    options = options_of(rule, rng)
    o, state, states = linattn.scan(*qkv, return_state=True, states_every=4, **options)
    expected, end, between = reference.scan(*qkv, return_state=True, states_every=4, **options)
    assert_agrees(o, expected)
    assert_agrees(state.S, end.S)
    assert len(parts_of(states)) == len(parts_of(between)) == len(state._parts())
    for part, other in zip(parts_of(states), parts_of(between)):
        assert part.dtype == np.float32 and part.flags.c_contiguous
        assert part.shape[:2] == (2, T // 4)
        assert_agrees(part, other)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rule", ["add", "delta", "normalize", "reverse"])
def test_are_those_of_shorter_calls(rng, qkv, rule, form):
    """And carry on as the whole does, from a state and from none."""
    options = {**options_of(rule, rng), "form": form}
    begin = linattn.scan(*qkv, return_state=True, **options)[1]
    for initial in (None, begin):
        o, state, states = linattn.scan(*qkv, initial_state=initial, return_state=True, states_every=8, **options)
        whole, end = linattn.scan(*qkv, initial_state=initial, return_state=True, **options)
        equal = np.testing.assert_array_equal if form == "token" else assert_agrees
        equal(o, whole)
        equal(state.S, end.S)
        for i in range(T // 8):
            at = slice(T - 8 * (i + 1), T) if rule == "reverse" else slice(8 * (i + 1))

            def cut(x):
                return x[:, at] if isinstance(x, np.ndarray) and x.ndim > 1 and x.shape[1] == T else x

            shorter = {name: cut(x) for name, x in options.items()}
            _, own = linattn.scan(*(x[:, at] for x in qkv), initial_state=initial, return_state=True, **shorter)
            for part, other in zip(parts_of(states), own._parts(), strict=True):
                equal(part[:, i], other)
    # A prefix that was kept is as good as the tokens.
    if rule != "reverse":
        rest = {name: x[:, 8:] if isinstance(x, np.ndarray) and x.ndim > 1 else x for name, x in options.items()}
        prefix = State(*(np.ascontiguousarray(part[:, 0]) for part in parts_of(states)))
        again, _ = linattn.scan(*(x[:, 8:] for x in qkv), initial_state=prefix, return_state=True, **rest)
        equal(again, o[:, 8:])


@pytest.mark.parametrize("every", [1, 19, 20, 100])
def test_every_length(rng, qkv, every):
    options = options_of("decay", rng)
    o, state, states = linattn.scan(*qkv, return_state=True, states_every=every, **options)
    expected, end, between = reference.scan(*qkv, return_state=True, states_every=every, **options)
    assert states.shape == (2, T // every, 3, 16, 24)
    assert_agrees(states, between)
    assert_agrees(o, expected)
    assert_agrees(state.S, end.S)
    if every <= T and T % every == 0:
        np.testing.assert_array_equal(state.S, states[:, -1])
        assert not np.shares_memory(state.S, states)
    o, states = linattn.scan(*qkv, states_every=every, **options)
    assert states.shape == (2, T // every, 3, 16, 24)


def test_ranks_and_no_tokens(rng):
    x = make(rng, T, 8)
    for shape in ((T, 8), (1, T, 8), (1, T, 1, 8)):
        o, states = linattn.scan(*(x.reshape(shape),) * 3, states_every=5)
        assert o.shape == shape and states.shape == (1, 3, 1, 8, 8)
        assert_agrees(states, reference.scan(*(x.reshape(shape),) * 3, states_every=5)[1])
    nothing = np.zeros((2, 0, 3, 8), np.float32)
    S = make(rng, 2, 3, 8, 8)
    o, state, states = linattn.scan(nothing, nothing, nothing, initial_state=S, return_state=True, states_every=5)
    assert states.shape == (2, 0, 3, 8, 8) and o.shape == nothing.shape
    np.testing.assert_array_equal(state.S, S)


def test_grouped_heads_and_dtypes(rng):
    q, k, v = make(rng, 2, T, 6, 16), make(rng, 2, T, 1, 16), make(rng, 2, T, 3, 24)
    for dtype in (np.float16, np.float64):
        tokens = [x.astype(dtype) for x in (q, k, v)]
        o, state, states = linattn.scan(*tokens, return_state=True, states_every=6)
        expected, _, between = reference.scan(*tokens, return_state=True, states_every=6)
        assert o.dtype == dtype and states.dtype == (np.float64 if dtype == np.float64 else np.float32)
        assert_agrees(o.astype(np.float64), expected, np.dtype(dtype).name)
        assert_agrees(states, between)
    _, states = linattn.scan(q, k, v, states_every=6, state_dtype="float64")
    assert states.dtype == np.float64


@pytest.mark.parametrize("rule", ["decay", "heads", "normalize", "reverse", "bonus"])
@pytest.mark.parametrize("initial", [False, True])
def test_packed(rng, rule, initial):
    offsets = [0, 7, 7, 9, 19]
    options = {
        name: x[:1] if isinstance(x, np.ndarray) and x.shape[:1] == (2,) else x
        for name, x in options_of(rule, rng).items()
    }
    tokens = make(rng, 1, T, 3, 16), make(rng, 1, T, 3, 16), make(rng, 1, T, 3, 24)
    start = State(make(rng, 4, 3, 16, 24), abs(make(rng, 4, 3, 16)) if rule == "normalize" else None)
    given = {"cu_seqlens": offsets, "initial_state": start if initial else None, "return_state": True}
    o, state, states = linattn.scan(*tokens, states_every=3, **given, **options)
    expected, end, between = reference.scan(*tokens, states_every=3, **given, **options)
    assert_agrees(o, expected)
    assert_agrees(state.S, end.S)
    assert [parts_of(x)[0].shape[0] for x in states] == [2, 0, 0, 3]
    for mine, theirs in zip(states, between, strict=True):
        for part, other in zip(parts_of(mine), parts_of(theirs), strict=True):
            assert_agrees(part, other)
    out = np.empty_like(o)
    again, _ = linattn.scan(*tokens, states_every=3, out=out, **{**given, "return_state": False}, **options)
    assert again is out
    np.testing.assert_array_equal(out, o)


@pytest.mark.parametrize("every", [4, 19, 64])
def test_in_place(rng, qkv, every):
    S = make(rng, 2, 3, 16, 24)
    expected, end, between = linattn.scan(*qkv, initial_state=S, return_state=True, states_every=every)
    o, state, states = linattn.scan(*qkv, initial_state=S, return_state=True, states_every=every, inplace=True)
    assert state.S is S
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(S, end.S)
    np.testing.assert_array_equal(states, between)


def test_threads_and_libraries(rng, qkv):
    torch = pytest.importorskip("torch")
    expected = linattn.scan(*qkv, return_state=True, states_every=4, num_threads=1)
    for tokens, threads in ((qkv, 3), ([torch.from_numpy(x) for x in qkv], 2)):
        o, state, states = linattn.scan(*tokens, return_state=True, states_every=4, num_threads=threads)
        assert type(states) is type(tokens[0])
        for mine, other in zip((o, state.S, states), (expected[0], expected[1].S, expected[2])):
            np.testing.assert_array_equal(np.asarray(mine), other)


def test_scan_errors(qkv):
    cases = [
        (dict(states_every=0), ValueError, "states_every: expected a positive number of tokens, but got 0"),
        (dict(states_every=2.0), TypeError, "states_every: expected an integer, but got float"),
        (dict(states_every=True), TypeError, "states_every: expected an integer, but got bool"),
        (dict(states_every=4, inplace=True), ValueError, "initial_state: expected a state to update"),
        (dict(states_every=4, cu_seqlens=[0, 19]), ValueError, "cu_seqlens: expected a batch size of 1, but got 2"),
        (dict(states_every=4, initial_state=np.zeros((2, 3, 16, 8), np.float32)), ValueError, "initial_state: expected shape"),
        (dict(states_every=4, form="quadratic"), ValueError, "form: expected a recurrent form"),
    ]  # fmt: skip
    for options, kind, message in cases:
        with pytest.raises(kind, match=message):
            linattn.scan(*qkv, **options)
    with pytest.raises(ValueError, match="k: expected the head size of q, 16, but got 24"):
        linattn.scan(qkv[0], qkv[2], qkv[2], states_every=4)
    with pytest.raises(TypeError, match="k: expected an array .*, but got int"):
        linattn.scan(qkv[0], 3, qkv[2], states_every=4)


# ----------------------------------------------------------------------------
# State
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("rule", ["delta", "normalize"])
def test_rollback(rng, qkv, rule, library):
    """Back by steps, and on again with the same bits."""
    convert = np.asarray
    if library == "torch":
        convert = pytest.importorskip("torch").from_numpy
    options = options_of(rule, rng)

    def cut(x, t):
        return convert(np.ascontiguousarray(x[:, t : t + 1])) if isinstance(x, np.ndarray) else x

    state = State.zeros(2, 3, 16, 24, normalize=rule == "normalize", history=3, like=convert(qkv[0]))
    plain = State.zeros(2, 3, 16, 24, normalize=rule == "normalize", like=convert(qkv[0]))
    assert state.history == 3 and plain.history == 0
    moments = [[np.asarray(part).copy() for part in state._parts()]]

    def step(state, t):
        named = {name: cut(x, t) for name, x in options.items()}
        return state.step(*(cut(x, t) for x in qkv), **named)

    def check(moment):
        for part, other in zip(state._parts(), moment, strict=True):
            np.testing.assert_array_equal(np.asarray(part), other)

    for t in range(7):
        np.testing.assert_array_equal(np.asarray(step(state, t)), np.asarray(step(plain, t)))
        moments.append([np.asarray(part).copy() for part in state._parts()])
    kept = state.snapshot()
    state.rollback(2)
    check(moments[5])
    for t in (5, 6):
        step(state, t)
    check(moments[7])
    state.rollback(3)
    check(moments[4])
    with pytest.raises(ValueError, match="n: expected at most 0, the states that are kept, but got 1"):
        state.rollback()
    state.rollback(0)
    step(state, 4)
    check(moments[5])
    for part, other in zip(kept._parts(), moments[7]):
        np.testing.assert_array_equal(np.asarray(part), other)
    assert kept.history == 0


@pytest.mark.parametrize("every", [1, 2])
def test_rollback_inside_a_step(rng, qkv, every):
    """Speculative decoding: five tokens at once, some of which are taken back."""
    options = options_of("delta", rng)
    tokens = [x[:, :5] for x in qkv]
    named = {name: x[:, :5] if isinstance(x, np.ndarray) else x for name, x in options.items()}
    S = make(rng, 2, 3, 16, 24)
    before = S.copy()
    state = State(S, history=8)
    o = state.step(*tokens, states_every=every, form="token", **named)
    expected, end, between = linattn.scan(
        *tokens, initial_state=S, return_state=True, states_every=every, form="token", **named
    )
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(state.S, end.S)
    steps = 5 // every + (5 % every > 0)
    for back in range(1, steps):
        state.rollback()
        np.testing.assert_array_equal(state.S, between[:, steps - back - 1])
    state.rollback()
    np.testing.assert_array_equal(state.S, before)
    assert state.S is S
    state.update(tokens[1], tokens[2])
    state.rollback()
    assert state.S is S
    np.testing.assert_array_equal(S, before)


def test_history_forgets_the_oldest(rng, qkv):
    state = State.zeros(2, 3, 16, 24, history=2)
    for t in range(6):
        state.step(*(x[:, t : t + 1] for x in qkv))
    state.rollback(2)
    with pytest.raises(ValueError, match="expected at most 0"):
        state.rollback(1)
    assert_agrees(state.S, reference.scan(*(x[:, :4] for x in qkv), return_state=True)[1].S)


def test_state_errors(qkv):
    plain = State.zeros(2, 3, 16, 24)
    for history, kind in ((-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(kind, match="history: expected"):
            State(plain.S, history=history)
    with pytest.raises(ValueError, match="n: expected at most 0, the states that are kept, but got 1"):
        plain.rollback()
    with pytest.raises(ValueError, match="states_every: expected it only for a state with a history"):
        plain.step(*qkv, states_every=1)
    state = State.zeros(2, 3, 16, 24, history=2)
    for n, kind in ((-1, ValueError), ("1", TypeError), (True, TypeError)):
        with pytest.raises(kind, match="n: expected"):
            state.rollback(n)
    with pytest.raises(ValueError, match="state_indices: expected it only for a state without a history"):
        state.step(*qkv, state_indices=[0, 1])
    with pytest.raises(ValueError, match="states_every: expected a positive number"):
        state.step(*qkv, states_every=0)
    with pytest.raises(ValueError, match="v: expected the value head size of the state, 24, but got 16"):
        state.step(qkv[0], qkv[1], qkv[1])
    assert state.history == 2
    state.rollback(0)


def test_on_the_emulated_gpu(rng, qkv):
    options = options_of("delta", rng)
    S = make(rng, 2, 3, 16, 24)
    expected, end, between = reference.scan(*qkv, initial_state=S, return_state=True, states_every=8, **options)
    o, state, states = linattn.scan(
        *qkv, initial_state=S, return_state=True, states_every=8, inplace=True, target="nvvm-emulated", **options
    )
    assert state.S is S
    assert_agrees(o, expected)
    assert_agrees(S, end.S)
    assert_agrees(states, between)


def test_explain(qkv):
    assert "select-form" in str(linattn.explain(linattn.scan, *qkv, states_every=4))
