"""States in a pool: rows by index, in place, against the same calls on states of their own."""

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import State, StatePool, reference

pytestmark = pytest.mark.sampled(2)

H, K, V = 3, 16, 24


def decays(rng, *shape):
    return -rng.random(shape).astype(np.float32)


def family(name, rng, B, T):
    """The operands and options of a rule; operands come first in [B, T]."""
    tokens = {
        "decay": decays(rng, B, T, H),
        "gate": decays(rng, B, T, H, K),
        "beta": rng.random((B, T, H)).astype(np.float32),
        "input_gate": rng.standard_normal((B, T, H)).astype(np.float32),
    }
    ab = {x: rng.standard_normal((B, T, H, K)).astype(np.float32) / K for x in "ab"}
    return {
        "linear": ({}, {}),
        "normalized": ({}, dict(feature_map="elu", normalize=True)),
        "exp": ({}, dict(feature_map="exp", normalize=True)),
        "scalar": ({"decay": tokens["decay"]}, {}),
        "gla": ({"decay": tokens["gate"]}, {}),
        "mlstm": (
            {"decay": tokens["decay"], "input_gate": tokens["input_gate"]},
            dict(normalize=True, abs_floor=1.0),
        ),
        "gated_delta": ({"decay": tokens["decay"], "beta": tokens["beta"]}, dict(update="delta")),
        "dplr": ({"decay": tokens["gate"], **ab}, dict(update="dplr")),
        "oja": ({"beta": tokens["beta"] / K}, dict(update="oja")),
    }[name]


FAMILIES = ["linear", "normalized", "exp", "scalar", "gla", "mlstm", "gated_delta", "dplr", "oja"]


def make(rng, B, T, dtype=np.float32):
    return [rng.standard_normal((B, T, H, D)).astype(dtype) for D in (K, K, V)]


def make_pool(name, capacity, rng, layout="kv"):
    """A pool with all rows in use, full of numbers."""
    normalize = name in ("normalized", "exp", "mlstm")
    pool = StatePool(
        capacity, H, K, V, normalize=normalize, running_max=name == "mlstm", layout=layout,
        feature_map="exp" if name == "exp" else None,
    )  # fmt: skip
    pool.allocate(capacity)
    for part in (pool.states.S, pool.states.z, pool.states.m):
        if part is not None:
            part[...] = np.abs(rng.standard_normal(part.shape))
    return pool


def parts_of(state):
    return [part for part in (state.S, state.z, state.m) if part is not None]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("T", [1, 3, 40])
@pytest.mark.parametrize("name", FAMILIES)
def test_rows_are_states(name, T, dtype, rng):
    """Bit for bit what a State of the gathered rows gives; other rows stay; the float64 oracle agrees."""
    pool = make_pool(name, 7, rng)
    before = [part.copy() for part in parts_of(pool.states)]
    memory = parts_of(pool.states)
    rows = np.array([5, 0, 3, 6], dtype)
    gathered = pool.read(rows)
    start = gathered.copy()
    tokens, (operands, options) = make(rng, 4, T), family(name, rng, 4, T)
    o = pool.step(*tokens, rows, **operands, **options)
    np.testing.assert_array_equal(o, gathered.step(*tokens, **operands, **options))
    assert all(now is former for now, former in zip(parts_of(pool.states), memory))
    for now, old, alone in zip(memory, before, parts_of(gathered)):
        np.testing.assert_array_equal(now[rows], alone)
        rest = [row for row in range(7) if row not in rows]
        np.testing.assert_array_equal(now[rest], old[rest])
    ref, last = reference.scan(*tokens, initial_state=start, return_state=True, **operands, **options)
    assert_agrees(o, ref)
    assert_agrees(memory[0][rows], last.S)


@pytest.mark.parametrize("form", ["token", "state-tile", "chunk:16"])
def test_forms(form, rng):
    pool = make_pool("gla", 5, rng)
    alone = pool.read([4, 1])
    tokens, (operands, options) = make(rng, 2, 33), family("gla", rng, 2, 33)
    o = pool.step(*tokens, [4, 1], form=form, **operands, **options)
    np.testing.assert_array_equal(o, alone.step(*tokens, form=form, **operands, **options))
    np.testing.assert_array_equal(pool.states.S[[4, 1]], alone.S)


def test_reference_target(rng):
    pool = make_pool("linear", 5, rng)
    alone = pool.read([4, 1])
    tokens = make(rng, 3, 2)
    o = pool.step(*tokens, [4, -1, 1], target="reference")
    assert_agrees(o[::2], alone.step(*(x[::2] for x in tokens)))
    assert not o[1].any()


@pytest.mark.parametrize("T", [1, 20])
@pytest.mark.parametrize("name", FAMILIES)
def test_padding(name, T, rng):
    """Sequences without a state change nothing, whatever their tokens are."""
    pool = make_pool(name, 4, rng)
    twin = make_pool(name, 4, rng)
    for to, part in zip(parts_of(twin.states), parts_of(pool.states)):
        to[...] = part
    tokens, (operands, options) = make(rng, 5, T), family(name, rng, 5, T)
    for array in (*tokens, *operands.values()):
        array[[1, 4]] = np.nan
    o = pool.step(*tokens, [2, -1, 0, 3, -1], **operands, **options)
    keep = [0, 2, 3]
    ref = twin.step(*(x[keep] for x in tokens), [2, 0, 3], **{n: x[keep] for n, x in operands.items()}, **options)
    np.testing.assert_array_equal(o[keep], ref)
    np.testing.assert_array_equal(o[[1, 4]], np.zeros_like(o[[1, 4]]))
    for part, other in zip(parts_of(pool.states), parts_of(twin.states)):
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("name", ["linear", "gated_delta"])
def test_only_padding(name, rng):
    pool = make_pool(name, 2, rng)
    before = pool.states.S.copy()
    tokens, (operands, options) = make(rng, 2, 1), family(name, rng, 2, 1)
    assert not pool.step(*tokens, [-1, -1], **operands, **options).any()
    np.testing.assert_array_equal(pool.states.S, before)


@pytest.mark.parametrize("name", ["linear", "mlstm", "gla", "gated_delta"])
def test_same_bits_in_any_batch_row_and_thread_count(name, rng):
    """Continuous batching: sequences of several lengths come and go; each is as if alone."""
    lengths, steps = [9, 4, 6, 7], {}
    tokens, (operands, options) = make(rng, 4, 9), family(name, rng, 4, 9)
    normalize = name == "mlstm"
    for threads in (1, 2, 3):
        pool = StatePool(3, H, K, V, normalize=normalize, running_max=normalize)
        waiting, active, at = [0, 1, 2, 3], {}, [0] * 4
        outputs = [[] for _ in lengths]
        while waiting or active:
            while waiting and pool.available:
                active[waiting.pop(0)] = pool.allocate()[0]
            order = sorted(active, key=lambda n: -active[n])
            pick = lambda x: np.stack([x[n, at[n] : at[n] + 1] for n in order])  # noqa: E731
            o = pool.step(
                *(pick(x) for x in tokens), [active[n] for n in order], num_threads=threads,
                **{key: pick(x) for key, x in operands.items()}, **options,
            )  # fmt: skip
            for row, n in enumerate(order):
                outputs[n].append(o[row])
                at[n] += 1
                if at[n] == lengths[n]:
                    pool.free([active.pop(n)])
        steps[threads] = outputs
    for n, length in enumerate(lengths):
        state = State.zeros(1, H, K, V, normalize=normalize, running_max=normalize)
        for t in range(length):
            one = slice(n, n + 1), slice(t, t + 1)
            o = state.step(*(x[one] for x in tokens), **{key: x[one] for key, x in operands.items()}, **options)
            for outputs in steps.values():
                np.testing.assert_array_equal(outputs[n][t], o[0])


@pytest.mark.parametrize("layout", ["kv", "vk"])
def test_layouts(layout, rng):
    pool = make_pool("linear", 4, rng, layout)
    alone, S = pool.read([3, 1]), pool.states.S
    tokens = make(rng, 2, 1)
    np.testing.assert_array_equal(pool.step(*tokens, [3, 1]), alone.step(*tokens))
    np.testing.assert_array_equal(pool.states.S[[3, 1]], alone.S)
    assert pool.states.S is S


def test_packed_sequences(rng):
    pool = make_pool("linear", 4, rng)
    alone = pool.read([2, 0])
    q, k, v = make(rng, 1, 11)
    o = pool.step(q, k, v, [2, -1, 0], cu_seqlens=[0, 4, 6, 11])
    for row, (first, last) in enumerate([(0, 4), (6, 11)]):
        state = State(alone.S[row : row + 1])
        np.testing.assert_array_equal(
            o[:, first:last], state.step(*(x[:, first:last] for x in (q, k, v)), cu_seqlens=[0, last - first])
        )
        np.testing.assert_array_equal(pool.states.S[[2, 0][row]], state.S[0])
    assert not o[:, 4:6].any()


def test_bfloat16_tokens_and_tensors(rng):
    torch = pytest.importorskip("torch")
    like = torch.zeros(1)
    pool = StatePool(4, H, K, V, like=like)
    rows = pool.allocate(2)
    tokens = [torch.tensor(x).to(torch.bfloat16) for x in make(rng, 2, 1)]
    o = pool.step(*tokens, torch.tensor(rows))
    alone = State.zeros(2, H, K, V, like=like)
    assert torch.equal(o, alone.step(*tokens)) and o.dtype == torch.bfloat16
    assert torch.equal(pool.read(rows).S, alone.S)


def test_strided_indices(rng):
    pool = make_pool("linear", 4, rng)
    alone, tokens = pool.read([3, 1]), make(rng, 2, 1)
    rows = np.array([3, -7, 1, -7])[::2]
    np.testing.assert_array_equal(pool.step(*tokens, rows), alone.step(*tokens))


@pytest.mark.parametrize(
    "rows, error, message",
    [
        ([0, 4], ValueError, r"state_indices to be -1 or a row of the state, which has 4, but got 4 at 1"),
        ([-2, 0], ValueError, r"which has 4, but got -2 at 0"),
        ([2, 2], ValueError, r"no more than once in state_indices, but got 2 at 0 and 1"),
        ([0, 1, 2], ValueError, r"state_indices: expected shape \(2,\), but got \(3,\)"),
        ([[0, 1]], ValueError, r"state_indices: expected shape \(2,\), but got \(1, 2\)"),
        ([0.0, 1.0], TypeError, r"state_indices: expected dtype int32 or int64, but got float64"),
        (np.array([0, 1], np.int8), TypeError, r"state_indices: expected dtype int32 or int64, but got int8"),
    ],
)
@pytest.mark.parametrize("T", [1, 20])
def test_bad_indices(rows, error, message, T, rng):
    pool = make_pool("linear", 4, rng)
    before = pool.states.S.copy()
    with pytest.raises(error, match=message):
        pool.step(*make(rng, 2, T), rows)
    np.testing.assert_array_equal(pool.states.S, before)


def test_indices_go_with_no_segments(rng):
    pool = make_pool("linear", 4, rng)
    with pytest.raises(ValueError, match="segments.*rows of a pool"):
        pool.step(*make(rng, 2, 300), [0, 1], form="segments:64")


def test_a_state_is_a_pool(rng):
    """Arrays of somebody else's are not written: the pool is replaced."""
    S = rng.standard_normal((5, H, K, V)).astype(np.float32)
    state, tokens = State(S), make(rng, 2, 1)
    before = S.copy()
    state.step(*tokens, state_indices=[1, 4])
    np.testing.assert_array_equal(S, before)
    changed = [n for n in range(5) if not np.array_equal(state.S[n], S[n])]
    assert changed == [1, 4] and state.S is not S


def test_allocation(rng):
    pool = StatePool(3, H, K, V, normalize=True, running_max=True)
    assert pool.capacity == 3 and pool.available == 3
    rows = pool.allocate(2)
    assert rows.tolist() == [0, 1] and rows.dtype == np.int64
    with pytest.raises(ValueError, match="count: expected at most 1, the free rows, but got 2"):
        pool.allocate(2)
    assert pool.available == 1
    pool.states.S[:], pool.states.z[:], pool.states.m[:] = 1, 1, 1
    pool.free([1])
    assert pool.allocate().tolist() == [1]
    assert not pool.states.S[1].any() and not pool.states.z[1].any()
    assert np.isneginf(pool.states.m[1]).all()
    assert pool.states.S[0].all()
    assert repr(pool).startswith("StatePool(2 of 3 rows in use")


@pytest.mark.parametrize(
    "rows, message",
    [
        ([2], "expected rows in use, but got 2, which is free"),
        ([3], "expected rows from 0 to 2, but got 3"),
        ([-1], "expected rows from 0 to 2, but got -1"),
        ([0, 0], "expected every row once, but got 0 twice"),
        (np.zeros((1, 1), np.int64), r"expected int32 or int64 \(N,\), but got int64 \(1, 1\)"),
    ],
)
@pytest.mark.parametrize("what", ["free", "read", "write"])
def test_bad_rows(what, rows, message):
    pool = StatePool(3, H, K, V)
    pool.allocate(2)
    with pytest.raises(ValueError, match="rows: " + message):
        getattr(pool, what)(rows, *([State.zeros(1, H, K, V)] if what == "write" else []))
    assert pool.available == 1


def test_prefill_then_decode(rng):
    tokens = make(rng, 2, 12)
    pool = StatePool(4, H, K, V)
    rows = pool.allocate(2)
    first, state = linattn.scan(*(x[:, :11] for x in tokens), return_state=True)
    pool.write(rows, state)
    last = pool.step(*(x[:, 11:] for x in tokens), rows)
    assert_agrees(np.concatenate([first, last], axis=1), reference.scan(*tokens))


def test_bad_writes():
    pool = StatePool(3, H, K, V)
    rows = pool.allocate(2)
    with pytest.raises(ValueError, match=r"state: expected S to be float32 \(2, 3, 16, 24\), but got float32 \(1,"):
        pool.write(rows, State.zeros(1, H, K, V))
    with pytest.raises(ValueError, match="state: expected S to be float32 .* but got float64"):
        pool.write(rows, State.zeros(2, H, K, V, dtype="float64"))
    with pytest.raises(ValueError, match="state: expected one without z"):
        pool.write(rows, State.zeros(2, H, K, V, normalize=True))
    with pytest.raises(ValueError, match="state: expected layout 'kv', but got 'vk'"):
        pool.write(rows, State.zeros(2, H, K, V, layout="vk"))
    with pytest.raises(TypeError, match="state: expected a State, but got ndarray"):
        pool.write(rows, np.zeros((2, H, K, V), np.float32))


@pytest.mark.parametrize("capacity, error", [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_bad_capacity(capacity, error):
    with pytest.raises(error, match="capacity: expected"):
        StatePool(capacity, H, K, V)


def test_arrays_that_cannot_be_written():
    jax = pytest.importorskip("jax.numpy")
    with pytest.raises(TypeError, match="like: expected an array of a kind that can be written in place"):
        StatePool(3, H, K, V, like=jax.zeros(1))
