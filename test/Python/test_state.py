"""Streaming: one token at a time, files, copies."""

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import State, reference


@pytest.mark.parametrize("chunk", [1, 2, 7])
@pytest.mark.parametrize("feature_map", [None, "elu", "exp"])
def test_step(qkv, feature_map, chunk):
    normalize = feature_map is not None
    state = State.zeros(2, 3, 16, 24, normalize=normalize, feature_map=feature_map)
    outputs = [
        state.step(*(x[:, t : t + chunk] for x in qkv), feature_map=feature_map)
        for t in range(0, 19, chunk)
    ]
    ref, last = reference.scan(
        *qkv, feature_map=feature_map, normalize=normalize, return_state=True
    )
    assert_agrees(np.concatenate(outputs, axis=1), ref)
    assert_agrees(state.S, last.S)
    if normalize:
        assert_agrees(state.z, last.z)
    if feature_map == "exp":
        np.testing.assert_array_equal(state.m, last.m.astype(np.float32))


def test_prefill_then_decode(qkv):
    options = dict(feature_map="elu", scale=1.0)
    whole = linattn.attention(*qkv, causal=True)
    first, state = linattn.attention(*(x[:, :12] for x in qkv), causal=True, return_state=True)
    rest = [state.step(*(x[:, t : t + 1] for x in qkv), **options) for t in range(12, 19)]
    assert_agrees(np.concatenate([first, *rest], axis=1), whole)


def test_grouped_heads(rng):
    q = rng.standard_normal((2, 5, 6, 16)).astype(np.float32)
    k, v = (rng.standard_normal((2, 5, 2, 16)).astype(np.float32) for _ in range(2))
    state = State.zeros(2, 2, 16, 16)
    out = np.concatenate([state.step(q[:, t : t + 1], k[:, t : t + 1], v[:, t : t + 1]) for t in range(5)], axis=1)
    assert_agrees(out, reference.scan(q, k, v))


def test_token_form_splits_bit_for_bit(qkv):
    whole = linattn.scan(*qkv, form="token")
    state = State.zeros(2, 3, 16, 24)
    out = [state.step(*(x[:, t : t + 1] for x in qkv), form="token") for t in range(19)]
    np.testing.assert_array_equal(np.concatenate(out, axis=1), whole)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rule", ["linear", "elu", "exp", "scalar", "gate", "exclusive", "delta", "gated_delta"])
@pytest.mark.parametrize("T", [2, 5, 8, 9])
def test_several_tokens_at_once(rule, T, rng):
    """A pass for a few tokens has the bits of a step for each, in every form of theirs."""
    H, K, V = 2, 16, 72
    tokens = [rng.standard_normal((2, T, H, D)).astype(np.float32) for D in (K, K, V)]
    gate = -rng.random((2, T, H, K)).astype(np.float32)
    beta = rng.random((2, T, H)).astype(np.float32)
    operands = {
        "scalar": dict(decay=gate[..., 0]), "gate": dict(decay=gate), "exclusive": dict(decay=gate),
        "delta": dict(beta=beta), "gated_delta": dict(beta=beta, decay=gate[..., 0]),
    }.get(rule, {})  # fmt: skip
    options = {"exclusive": dict(readout="exclusive")}.get(rule, {})
    if "delta" in rule:
        options = dict(update="delta")
    if rule in ("elu", "exp"):
        options = dict(feature_map=rule)
    normalize = rule in ("elu", "exp")
    states = [State.zeros(2, H, K, V, normalize=normalize, feature_map=rule if normalize else None) for _ in range(3)]
    for state in states:
        state.step(*tokens, **operands, **options)  # from some state on
        state.S[...] = states[0].S
    at_once = states[0].step(*tokens, **operands, **options, form="token")
    one = lambda x, t: x[:, t : t + 1]  # noqa: E731
    steps = [
        states[1].step(*(one(x, t) for x in tokens), **{n: one(x, t) for n, x in operands.items()}, **options)
        for t in range(T)
    ]
    np.testing.assert_array_equal(at_once, np.concatenate(steps, axis=1))
    np.testing.assert_array_equal(states[0].S, states[1].S)
    chosen = states[2].step(*tokens, **operands, **options)
    if T <= 8 and "delta" not in rule:
        np.testing.assert_array_equal(chosen, at_once)
    assert_agrees(chosen, at_once)
    assert_agrees(states[2].S, states[1].S)


def test_update_and_query(qkv):
    q, k, v = qkv
    state = State.zeros(2, 3, 16, 24, normalize=True)
    state.update(k[:, :9], v[:, :9], feature_map="elu")
    state.update(k[:, 9:], v[:, 9:], feature_map="elu")
    before = state.S.copy()
    assert_agrees(state.query(q, feature_map="elu", scale=1.0), reference.attention(q, k, v))
    np.testing.assert_array_equal(state.S, before)


def test_step_does_not_write_the_given_arrays(qkv):
    _, state = linattn.scan(*qkv, return_state=True)
    given = state.S
    kept = given.copy()
    other = State(given)
    for t in range(4):
        other.step(*(x[:, t : t + 1] for x in qkv))
    np.testing.assert_array_equal(given, kept)
    assert not np.array_equal(other.S, kept)


@pytest.mark.parametrize("options", [{}, {"feature_map": "exp", "normalize": True}, {"state_layout": "vk"}])
def test_step_is_in_place(qkv, options):
    layout = options.pop("state_layout", "kv")
    normalize = options.get("normalize", False)
    state = State.zeros(
        2, 3, 16, 24, normalize=normalize, feature_map=options.get("feature_map"), layout=layout
    )
    parts = [part for part in (state.S, state.z, state.m) if part is not None]
    ref = reference.scan(*qkv, **options)
    for t in range(19):
        o = state.step(*(x[:, t : t + 1] for x in qkv), **options)
        assert_agrees(o, ref[:, t : t + 1])
    now = [part for part in (state.S, state.z, state.m) if part is not None]
    assert len(now) == len(parts) and all(a is b for a, b in zip(now, parts))


def test_steps_may_change_their_options(qkv, rng):
    # Each like none, one or two of the steps before it.
    q, k, v = (x[:, :1] / 4 for x in qkv)
    decay = -rng.random(k.shape[:3]).astype(np.float32)
    gates = -rng.random(k.shape).astype(np.float32)
    beta = rng.random(k.shape[:3]).astype(np.float32)
    state = State.zeros(2, 3, 16, 24)
    expected = state.S.astype(np.float64)
    plain, decayed, delta = {}, {"decay": decay}, {"update": "delta", "beta": beta}
    for options in (
        plain, plain, decayed, decayed, plain, {"decay": gates}, decayed, delta, delta,
        delta | decayed, {"scale": 0.5}, plain, {"readout": "exclusive"}, plain,
        {"feature_map": "relu"}, plain, plain,
    ):  # fmt: skip
        ref, last = reference.scan(q, k, v, initial_state=expected, return_state=True, **options)
        assert_agrees(state.step(q, k, v, **options), ref)
        assert_agrees(state.S, last.S)
        expected = last.S
    with pytest.raises(ValueError, match="form: expected"):
        state.step(q, k, v, form="none")
    # Another array, of another type.
    state.S = np.asarray(expected)
    ref = reference.scan(q, k, v, initial_state=expected)
    assert_agrees(state.step(q, k, v), ref)
    assert state.S.dtype == np.float64


def test_update_is_in_place(qkv):
    _, k, v = qkv
    state = State.zeros(2, 3, 16, 24)
    S = state.S
    state.update(k, v)
    assert state.S is S and np.abs(S).max() > 0


def test_step_without_room_to_write():
    # Arrays that cannot be written are replaced.
    x = np.ones((1, 1, 1, 4), np.float32)
    state = State.zeros(1, 1, 4, 4)
    state.S.setflags(write=False)
    S = state.S
    state.step(x, x, x)
    assert state.S is not S and not S.any() and state.S.all()


def test_copy(qkv):
    _, state = linattn.scan(*qkv, return_state=True)
    twin = state.copy()
    state.step(*(x[:, :1] for x in qkv))
    twin.step(*(x[:, :1] for x in qkv))
    np.testing.assert_array_equal(state.S, twin.S)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ""])
def test_save_and_load(qkv, tmp_path, suffix):
    path = tmp_path / f"state{suffix}"
    _, state = linattn.scan(*qkv, feature_map="exp", normalize=True, return_state=True)
    state.save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    loaded = State.load(path)
    for name in ("S", "z", "m"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(state, name))
    options = dict(feature_map="exp")
    one = state.step(*(x[:, :1] for x in qkv), **options)
    np.testing.assert_array_equal(loaded.step(*(x[:, :1] for x in qkv), **options), one)


def test_load_executes_nothing(tmp_path):
    path = tmp_path / "state.npz"

    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a file was executed",))

    with open(path, "wb") as file:
        np.savez(file, S=np.array([Evil()], dtype=object))
    with pytest.raises(ValueError, match="npz"):
        State.load(path)


@pytest.mark.parametrize("name", ["state.npz", "state.safetensors"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff" * 40])
def test_load_damaged(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=name):
        State.load(path)
    with pytest.raises(OSError):
        State.load(tmp_path / "missing.npz")


def test_large_states_begin_with_a_page():
    for heads, alignment in ((1, 64), (32, 2 << 20)):
        S = State.zeros(1, heads, 128, 128).S
        assert S.ctypes.data % alignment == 0
        assert not S.any()


def test_zeros():
    assert State.zeros(2, 3, 4, 5).S.dtype == np.float32
    assert State.zeros(2, 3, 4, 5, like=np.zeros(1)).S.dtype == np.float64
    assert State.zeros(2, 3, 4, 5, like=np.zeros(1, np.float16)).S.dtype == np.float32
    state = State.zeros(2, 3, 4, 5, normalize=True, feature_map="exp")
    assert state.z.shape == (2, 3, 4) and np.isneginf(state.m).all()


def test_errors(qkv):
    with pytest.raises(ValueError, match=r"S: expected shape \(N, H, K, V\)"):
        State(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"z: expected shape \(1, 2, 3\)"):
        State(np.zeros((1, 2, 3, 4)), np.zeros((1, 2)))
    with pytest.raises(TypeError, match="S: expected an array, but got int"):
        State(3)
    with pytest.raises(TypeError, match="heads: expected an integer"):
        State.zeros(1, 2.0, 3, 4)
    state = State.zeros(2, 3, 16, 24, normalize=True)
    with pytest.raises(ValueError, match="^state: expected a State without z"):
        state.step(*qkv, normalize=False)
    with pytest.raises(ValueError, match="^state: expected a State with m"):
        state.step(*qkv, feature_map="exp")
    q, k, v = qkv
    cases = [
        ((q[:1], k[:1], v[:1]), "q: expected the batch size of the state, 2, but got 1"),
        ((q[..., :8], k[..., :8], v), "k: expected the head size of the state, 16, but got 8"),
        ((q, k, v[..., :8]), "v: expected the value head size of the state, 24, but got 8"),
        ((q[:, :, :2], k[:, :, :2], v[:, :, :2]), "k: expected the number of heads of the state, 3, but got 2"),
        ((q, k[:, :, :1], v[:, :, [0, 1, 2, 0, 1, 2]]), "v: expected the number of heads of the state, 3, but got 6"),
    ]
    for tokens, message in cases:
        with pytest.raises(ValueError, match=f"^{message}"):
            state.step(*tokens, feature_map="elu")
        with pytest.raises(ValueError, match=f"^{message}".replace("q:", "k:")):
            state.update(*tokens[1:], feature_map="elu")
    with pytest.raises(ValueError, match="^q: expected the head size of the state, 16, but got 8"):
        state.query(q[..., :8], feature_map="elu")
    with pytest.raises(ValueError, match="^cu_seqlens: expected the number of sequences of the state, 2, but got 1"):
        state.step(*(x[:1] for x in qkv), feature_map="elu", cu_seqlens=[0, 19])
    with pytest.raises(ValueError, match=r"^initial_state\.S: expected shape \(1, 3, 16, 24\), but got \(2, 3, 16, 24\)"):
        linattn.scan(*(x[:1] for x in qkv), normalize=True, feature_map="elu", initial_state=state)
    with pytest.raises(ValueError, match=r"^initial_state\.z: expected shape \(2, 3, 16\), but got \(2, 3, 8\)"):
        state.z = state.z[..., :8]
        linattn.attention(*qkv, causal=True, initial_state=state)
    with pytest.raises(ValueError, match="initial_state: expected a State with z"):
        linattn.attention(*qkv, causal=True, initial_state=state.S)
