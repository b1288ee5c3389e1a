"""Every operand and option of scan against the oracle, and what they mean together."""

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import State, reference


def tokens(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.fixture
def x(rng):
    q, k, v = tokens(rng, 2, 9, 4, 6), tokens(rng, 2, 9, 2, 6), tokens(rng, 2, 9, 2, 5)
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    return q, k, v


def gates(rng):
    def draw(*shape):
        return rng.random((2, 9, *shape)).astype(np.float32)

    return {
        "beta": draw(2), "erase": draw(2, 6), "write": draw(2, 5), "value_decay": -draw(2, 5),
        "decay": -draw(2), "input_gate": 6 * draw(2) - 3, "mask": draw() < 0.7,
    }  # fmt: skip


CASES = {
    "oja": dict(update="oja", use=("beta", "value_decay", "decay", "mask")),
    "gdn2": dict(update="delta", use=("erase", "write", "decay")),
    "delta, masked": dict(update="delta", use=("beta", "mask"), reverse=True),
    "mlstm": dict(normalize=True, abs_floor=1.0, use=("decay", "input_gate", "mask")),
    "mlstm with eps": dict(normalize=True, abs_floor=0.5, eps=1e-3, use=("input_gate",)),
    "floor": dict(normalize=True, floor=0.25, clamp=2.0, feature_map="elu", use=("decay",)),
    "wide": dict(state_dtype="float64", use=("decay",)),
    "wide mlstm": dict(
        state_dtype="float64", normalize=True, abs_floor=1.0, use=("decay", "input_gate")
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operands(rng, x, name):
    options = dict(CASES[name])
    given = gates(rng)
    options.update((gate, given[gate]) for gate in options.pop("use"))
    o, state = linattn.scan(*x, return_state=True, **options)
    oracle, final = reference.scan(*x, return_state=True, **options)
    wide = options.get("state_dtype") == "float64"
    assert state.S.dtype == (np.float64 if wide else np.float32)
    assert_agrees(o, oracle, "float32")
    for part, expected in zip((state.S, state.z, state.m), (final.S, final.z, final.m)):
        assert (part is None) == (expected is None)
        if part is not None:
            assert_agrees(part, expected, "float32")


def test_packed_mlstm_keeps_the_maximum_of_empty_sequences(rng):
    q, k, v = (tokens(rng, 1, 9, 2, 6) for _ in range(3))
    options = dict(
        decay=-rng.random((1, 9, 2)), input_gate=rng.standard_normal((1, 9, 2)), normalize=True,
        abs_floor=1.0, cu_seqlens=[0, 0, 1, 8, 8, 9], return_state=True,
    )  # fmt: skip
    o, state = linattn.scan(q, k, v, **options)
    oracle, final = reference.scan(q, k, v, **options)
    assert_agrees(o, oracle, "float32")
    np.testing.assert_allclose(state.m, final.m, rtol=1e-6)
    assert np.isneginf(state.m[0]).all() and np.isneginf(state.m[3]).all()


def test_streaming_an_mlstm(rng, x):
    q, k, v = x
    g = gates(rng)
    options = dict(normalize=True, abs_floor=1.0, decay=g["decay"], input_gate=g["input_gate"])
    whole, final = linattn.scan(q, k, v, form="token", return_state=True, **options)
    state = State.zeros(2, 2, 6, 5, normalize=True, running_max=True)
    for t in range(9):
        part = slice(t, t + 1)
        o = state.step(
            q[:, part], k[:, part], v[:, part], normalize=True, abs_floor=1.0,
            decay=g["decay"][:, part], input_gate=g["input_gate"][:, part],
        )  # fmt: skip
        np.testing.assert_array_equal(o, whole[:, part])
    np.testing.assert_array_equal(state.m, final.m)
    # Reading again what the last step has read.
    np.testing.assert_allclose(
        state.query(q[:, 8:], abs_floor=1.0), whole[:, 8:], rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="feature_map: expected exp, or an input_gate"):
        state.update(k, v)


def test_wide_states(rng, x):
    q, k, v = x
    state = State.zeros(2, 2, 6, 5, dtype="float64")
    state.step(q, k, v)
    assert state.S.dtype == np.float64
    oracle = reference.scan(q, k, v, return_state=True)[1].S
    np.testing.assert_allclose(state.S, oracle, rtol=1e-12, atol=1e-13)
    assert_agrees(state.query(q), state.copy().query(q), "float32")
    # An array is float64 by accident too easily.
    with pytest.raises(TypeError, match="^initial_state: expected dtype float32, but got float64"):
        linattn.scan(q, k, v, initial_state=np.zeros((2, 2, 6, 5)))
    wide = [y.astype(np.float64) for y in x]
    with pytest.raises(ValueError, match="state_dtype: expected float64 for float64 tokens"):
        linattn.scan(*wide, state_dtype="float32")


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(update="oja"), "beta: expected an array with update='oja', but got None"),
        (dict(update="delta"), "beta: expected an array with update='delta', or erase, but got None"),
        (dict(erase=1), "erase: expected it only with update='delta', but got it without"),
        (dict(transition="after"), "transition: expected it only with update='dplr', but got update='add'"),
        (dict(input_gate=1), "input_gate: expected it only with normalize=True, but got it without"),
        (dict(input_gate=1, normalize=True, feature_map="exp"), "input_gate: expected another feature map than exp"),
        (dict(normalize=True, value_decay=1), "normalize: expected it without value_decay, but got both"),
        (dict(abs_floor=1.0), "abs_floor: expected it only with normalize=True, but got 1.0 without"),
        (dict(normalize=True, floor=1.0, abs_floor=1.0), "floor: expected it without abs_floor, but got both"),
        (dict(normalize=True, floor=1.0, eps=1.0), "floor: expected it without eps, but got both"),
        (dict(normalize=True, clamp=0), "clamp: expected a positive number, but got 0.0"),
        (dict(normalize=True, abs_floor=1.0, feature_map="exp"), "abs_floor: expected another feature map than exp"),
        (dict(state_dtype="float16"), "state_dtype: expected one of float32, float64"),
    ],
)
def test_values_without_a_meaning(rng, x, options, message):
    given = gates(rng)
    options = {name: given.get(name, value) for name, value in options.items()}
    for function in (linattn.scan, reference.scan):
        if function is reference.scan and "state_dtype" in options:
            continue
        with pytest.raises(ValueError, match=message):
            function(*x, **options)


@pytest.mark.parametrize(
    "form, options, why",
    [
        ("state-tile", dict(update="oja", beta=1), "state-tile: a rank-1 transition couples the columns"),
        ("segments", dict(update="oja", beta=1), "segments: its transition acts on the values' side"),
        ("chunk", dict(update="oja", beta=1), "chunk: "),
    ],
)
def test_illegal_forms(rng, x, form, options, why):
    options["beta"] = gates(rng)["beta"]
    with pytest.raises(ValueError, match=f"form: expected one that is legal here, but got {why}"):
        linattn.scan(*x, form=form, **options)


def test_decays_are_checked_on_request(rng, x):
    decay = -rng.random((2, 9, 2)).astype(np.float32)
    linattn.scan(*x, decay=decay, check=True)
    for value in (0.5, np.nan):
        wrong = decay.copy()
        wrong[1, 3, 0] = value
        message = rf"decay: expected natural logarithms of at most 0, but got {value} at \(1, 3, 0\)"
        for function in (linattn.scan, reference.scan):
            with pytest.raises(ValueError, match=message):
                function(*x, decay=wrong, check=True)
        with pytest.raises(ValueError, match=message):
            State.zeros(2, 2, 6, 5).step(*x, decay=wrong, check=True)
    with pytest.raises(ValueError, match="value_decay: expected natural logarithms"):
        linattn.scan(*x, value_decay=np.ones((2, 9, 2, 5), np.float32), check=True)
    linattn.scan(*x, decay=wrong)  # decays are unchecked by default
