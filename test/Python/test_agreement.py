"""Everything that runs, against the oracle."""

import ml_dtypes
import numpy as np
import pytest
from conftest import TOLERANCE, assert_agrees, relative_error, runs_or_refuses
from hypothesis import given
from hypothesis import strategies as st

import linattn
from linattn import reference

pytestmark = pytest.mark.sampled(2)

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
MAPS = ["identity", "elu", "relu", "relu2", "exp", "softmax_kernel"]


def tokens(rng, *shape, dtype=np.float32, positive=False):
    x = rng.standard_normal(shape)
    return (np.abs(x) if positive else x).astype(dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("feature_map", MAPS)
def test_feature_maps(qkv, feature_map, normalize, causal):
    q, k, v = qkv
    if feature_map == "identity" and normalize:
        q, k = np.abs(q), np.abs(k)  # signed weights may sum to nearly nothing
    options = dict(causal=causal, feature_map=feature_map, normalize=normalize)
    out = linattn.attention(q, k, v, **options)
    assert out.dtype == np.float32
    assert_agrees(out, reference.attention(q, k, v, **options))


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"weights": "softmax"}, {"weights": "softmax", "causal": True}])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(rng, dtype, options):
    q, k, v = (tokens(rng, 2, 33, 2, 32, dtype=dtype) for _ in range(3))
    out = linattn.attention(q, k, v, **options)
    assert out.dtype == dtype
    name = np.dtype(dtype).name
    assert_agrees(out.astype(np.float64), reference.attention(q, k, v, **options), name)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("K, V", [(1, 1), (3, 5), (60, 60), (64, 128), (100, 36), (128, 64), (256, 256)])
def test_head_sizes(rng, K, V, causal):
    q, k, v = tokens(rng, 1, 70, 2, K), tokens(rng, 1, 70, 2, K), tokens(rng, 1, 70, 2, V)
    assert_agrees(
        linattn.attention(q, k, v, causal=causal), reference.attention(q, k, v, causal=causal)
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("T", [0, 1, 2, 31, 64, 65, 200])
def test_lengths(rng, T, causal):
    q, k, v = (tokens(rng, 2, T, 2, 16) for _ in range(3))
    out = linattn.attention(q, k, v, causal=causal)
    assert out.shape == (2, T, 2, 16)
    assert_agrees(out, reference.attention(q, k, v, causal=causal))


@pytest.mark.parametrize("weights", ["linear", "softmax"])
def test_no_keys(rng, weights):
    q, k, v = tokens(rng, 2, 5, 2, 16), tokens(rng, 2, 0, 2, 16), tokens(rng, 2, 0, 2, 16)
    np.testing.assert_array_equal(linattn.attention(q, k, v, weights=weights), np.zeros((2, 5, 2, 16)))


def test_empty_batch(rng):
    q = tokens(rng, 0, 5, 2, 16)
    o, state = linattn.scan(q, q, q, return_state=True)
    assert o.shape == (0, 5, 2, 16) and state.S.shape == (0, 2, 16, 16)


@pytest.mark.parametrize("heads", [(6, 2, 2), (6, 2, 1), (2, 4, 4), (4, 1, 2), (1, 3, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads(rng, heads, causal):
    q, k, v = (tokens(rng, 2, 21, h, 16) for h in heads)
    for options in ({}, {"weights": "softmax"}, {"return_state": True}):
        out = linattn.attention(q, k, v, causal=causal, **options)
        ref = reference.attention(q, k, v, causal=causal, **options)
        if "return_state" in options:
            assert_agrees(out[1].S, ref[1].S)
            out, ref = out[0], ref[0]
        assert_agrees(out, ref)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", ["auto", "quadratic", "token", "state-tile", "chunk", "chunk:8"])
def test_forms_agree(qkv, form, causal):
    assert_agrees(
        linattn.attention(*qkv, causal=causal, form=form), reference.attention(*qkv, causal=causal)
    )


@pytest.mark.parametrize("form", ["segments", "segments:16"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_segments(rng, dtype, form):
    q, k, v = (tokens(rng, 2, 70, 2, 16, dtype=dtype) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    decay = -np.abs(tokens(rng, 2, 70, 2, 16, dtype=dtype))
    S = tokens(rng, 2, 2, 16, 16, dtype=dtype)
    beta = rng.random((2, 70, 2)).astype(dtype)
    for options in ({}, {"update": "delta", "beta": beta}, {"reverse": True}):
        options = dict(options, decay=decay, initial_state=S, return_state=True)
        out, state = linattn.scan(q, k, v, form=form, **options)
        ref, final = reference.scan(q, k, v, **options)
        name = np.dtype(dtype).name
        assert_agrees(out, ref, name)
        assert_agrees(state.S, final.S, name)
    with pytest.raises(ValueError, match="form: expected one that is legal here, but got segments: its sequences are packed already"):
        linattn.scan(q[:1], k[:1], v[:1], cu_seqlens=[0, 3, 70], form=form)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"weights": "softmax"}])
def test_reference_target(qkv, options):
    assert_agrees(
        linattn.attention(*qkv, target="reference", **options), reference.attention(*qkv, **options)
    )


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"weights": "softmax"}, {"feature_map": "exp", "causal": True}])
@pytest.mark.parametrize("target", [None, "reference"])
def test_mask(qkv, rng, options, target):
    mask = rng.random((2, 19)) < 0.6
    mask[1, :5] = False
    expected = reference.attention(*qkv, mask=mask, **options)
    # Padding may hold anything.
    q, k, v = qkv[0], *(np.where(mask[:, :, None, None], x, np.nan).astype(x.dtype) for x in qkv[1:])
    out = linattn.attention(q, k, v, mask=mask, target=target, **options)
    assert_agrees(out, expected)
    if "causal" in options and options.get("feature_map") is None:
        np.testing.assert_array_equal(out[1, :5], 0)


def test_cross_attention(rng):
    q, k, v = tokens(rng, 2, 7, 2, 16), tokens(rng, 2, 40, 2, 16), tokens(rng, 2, 40, 2, 8)
    for weights in ("linear", "softmax"):
        assert_agrees(
            linattn.attention(q, k, v, weights=weights), reference.attention(q, k, v, weights=weights)
        )


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_ranks(qkv, rank, causal):
    q, k, v = (x[:, :, 0] if rank == 3 else x[0, :, 0] for x in qkv)
    out, state = linattn.attention(q, k, v, causal=causal, return_state=True)
    ref, ref_state = reference.attention(q, k, v, causal=causal, return_state=True)
    assert out.shape == v.shape and state.S.ndim == 4
    assert_agrees(out, ref)
    assert_agrees(state.S, ref_state.S)
    full = linattn.attention(*(x[:, :, :1] for x in qkv), causal=causal)[:, :, 0]
    np.testing.assert_array_equal(out, full if rank == 3 else full[0])


def test_scale_and_eps(qkv):
    for options in ({"scale": 0.3}, {"eps": 0.5}, {"scale": 0.3, "eps": 0.5, "causal": True}):
        assert_agrees(linattn.attention(*qkv, **options), reference.attention(*qkv, **options))
    assert relative_error(linattn.attention(*qkv, eps=0.5), reference.attention(*qkv)) > 1e-3


SCANS = {
    "plain": {},
    "scale": dict(scale=1.0),
    "normalized": dict(feature_map="elu", normalize=True),
    "exp": dict(feature_map="exp", normalize=True),
    "head-decay": dict(decay=lambda u: -u(3)),
    "token-decay": dict(decay=lambda u: -u(2, 19, 3)),
    "gate": dict(decay=lambda u: -u(2, 19, 3, 16)),
    "value-decay": dict(value_decay=lambda u: -u(2, 19, 3, 24)),
    "delta": dict(update="delta", beta=lambda u: 0.05 * u(2, 19, 3)),
    "gated-delta": dict(update="delta", beta=lambda u: 0.05 * u(2, 19, 3), decay=lambda u: -u(2, 19, 3)),
    "dplr": dict(update="dplr", a=lambda u: -0.1 * u(2, 19, 3, 16), b=lambda u: u(2, 19, 3, 16), decay=lambda u: -u(2, 19, 3, 16)),
    "dplr-after": dict(update="dplr", a=lambda u: -0.1 * u(2, 19, 3, 16), b=lambda u: u(2, 19, 3, 16), decay=lambda u: -u(2, 19, 3, 16), transition="after"),
    "exclusive": dict(readout="exclusive"),
    "bonus": dict(readout="exclusive", bonus=lambda u: u(3, 16), decay=lambda u: -u(2, 19, 3, 16)),
    "reverse": dict(reverse=True),
}  # fmt: skip


@pytest.mark.parametrize("name", SCANS)
def test_scan(qkv, rng, name):
    uniform = lambda *shape: rng.random(shape).astype(np.float32)  # noqa: E731
    options = {key: value(uniform) if callable(value) else value for key, value in SCANS[name].items()}
    out, state = linattn.scan(*qkv, return_state=True, **options)
    ref, ref_state = reference.scan(*qkv, return_state=True, **options)
    assert_agrees(out, ref, "float32")
    assert_agrees(state.S, ref_state.S, "float32")


@pytest.mark.parametrize("kind", [list, np.int32, np.int64])
def test_packed_sequences(rng, kind):
    q, k, v = tokens(rng, 1, 20, 2, 16), tokens(rng, 1, 20, 2, 16), tokens(rng, 1, 20, 2, 8)
    offsets = [0, 7, 7, 20]
    cu_seqlens = offsets if kind is list else np.array(offsets, kind)
    out, state = linattn.scan(q, k, v, cu_seqlens=cu_seqlens, return_state=True)
    ref, ref_state = reference.scan(q, k, v, cu_seqlens=offsets, return_state=True)
    assert_agrees(out, ref)
    assert state.S.shape == (3, 2, 16, 8)
    assert_agrees(state.S, ref_state.S)
    # The same bits as alone.
    np.testing.assert_array_equal(out[:, :7], linattn.scan(q[:, :7], k[:, :7], v[:, :7]))


@given(
    B=st.integers(0, 3), T=st.integers(0, 40), Hk=st.sampled_from([1, 2]), group=st.integers(1, 3),
    K=st.sampled_from([3, 16]), V=st.sampled_from([5, 16]), causal=st.booleans(),
    feature_map=st.sampled_from(["elu", "exp"]), stateful=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_random_shapes(B, T, Hk, group, K, V, causal, feature_map, stateful, seed):
    rng = np.random.default_rng(seed)
    q, k = tokens(rng, B, T, Hk * group, K), tokens(rng, B, T, Hk, K)
    v = tokens(rng, B, T, Hk, V)
    options = dict(causal=causal, feature_map=feature_map, return_state=stateful)
    out = linattn.attention(q, k, v, **options)
    if B == 0:
        assert (out[0] if stateful else out).shape == (0, T, Hk * group, V)
        return
    ref = reference.attention(q, k, v, **options)
    if stateful:
        assert_agrees(out[1].S, ref[1].S)
        out, ref = out[0], ref[0]
    assert_agrees(out, ref)


# ----------------------------------------------------------------------------
# Not a number
# ----------------------------------------------------------------------------

LENGTH, AT, COLUMN = 48, 20, 5


def nan_rules():
    """The recurrences, as keywords of `scan`."""
    rng = np.random.default_rng(7)
    K, V = 16, 24

    def uniform(*tail):
        return rng.random((1, LENGTH, 2, *tail)).astype(np.float32)

    delta = {"update": "delta", "beta": uniform()}
    return {
        "linear": {}, "token-decay": {"decay": -uniform()}, "gate": {"decay": -uniform(K)},
        "value-decay": {"value_decay": -uniform(V)}, "elu": {"feature_map": "elu", "normalize": True},
        "exp": {"feature_map": "exp", "normalize": True}, "relu": {"feature_map": "relu"}, "softmax": {"feature_map": "softmax"},
        "mlstm": {"normalize": True, "abs_floor": 1.0, "input_gate": uniform(), "decay": -uniform()},
        "exclusive": {"readout": "exclusive"}, "reverse": {"reverse": True},
        "bonus": {"readout": "exclusive", "bonus": uniform(K)[0, 0], "decay": -uniform(K)},
        "delta": delta, "kda": delta | {"decay": -uniform(K)}, "gdn2": delta | {"erase": uniform(K), "write": uniform(V)},
        "dplr": {"update": "dplr", "a": -uniform(K) / 8, "b": uniform(K) / 8, "decay": -uniform(K)},
        "oja": {"update": "oja", "beta": uniform()},
    }  # fmt: skip


def expected_nan(name, options):
    """Where a NaN in token AT of an operand's second head, or in its bonus, gets."""
    # The state of an exclusive read does not know its token; a bonus reads that by itself.
    later = options.get("readout") == "exclusive" and not ("bonus" in options and name in ("k", "v"))
    rows = slice(AT + later, LENGTH)
    if name == "q":
        rows = slice(AT, AT + 1)
    elif name == "bonus":
        rows = slice(0, LENGTH)
    elif options.get("reverse"):
        rows = slice(0, AT + 1)
    # Values are apart from one another but in Oja's rule, which reads with them.
    apart = name in ("v", "value_decay", "write") and options.get("update") != "oja"
    mask = np.zeros((1, LENGTH, 2, 24), bool)
    mask[:, rows, 1, COLUMN if apart else slice(None)] = True
    return mask


@pytest.mark.sampled(8)
@pytest.mark.parametrize("form", ["token", "state-tile", "chunk:16", "segments:32"])
@pytest.mark.parametrize("rule", nan_rules())
def test_nan_stays_in_its_head(rng, rule, form):
    """And, within it, where the rule takes it, in every form alike (docs/Robustness.md)."""
    q, k, v = (tokens(rng, 1, LENGTH, 2, D) for D in (16, 16, 24))
    operands = {"q": q, "k": k / np.linalg.norm(k, axis=-1, keepdims=True), "v": v / np.linalg.norm(v, axis=-1, keepdims=True)}
    operands |= nan_rules()[rule]
    for name in [name for name, x in operands.items() if isinstance(x, np.ndarray)]:
        x = operands[name].copy()
        at = (1,) if name == "bonus" else (0, AT, 1)
        x[at if x.ndim == len(at) else (*at, COLUMN)] = np.nan
        o = runs_or_refuses(lambda: linattn.scan(**{**operands, name: x}, form=form), form, operands)
        if o is not None:
            np.testing.assert_array_equal(np.isnan(o), expected_nan(name, operands), err_msg=name)


# ----------------------------------------------------------------------------
# Laws that hold bit for bit, or at every split
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"feature_map": "exp"}, {"weights": "softmax"}])
def test_later_tokens_change_nothing(qkv, rng, options):
    q, k, v = qkv
    before = linattn.attention(q, k, v, causal=True, **options)
    k, v = k.copy(), v.copy()
    k[:, 11:], v[:, 11:] = 1e3 * rng.standard_normal(k[:, 11:].shape), np.inf
    after = linattn.attention(q, k, v, causal=True, **options)
    np.testing.assert_array_equal(after[:, :11], before[:, :11])


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"weights": "softmax"}])
def test_same_bits(qkv, options):
    """Threads, repetition, batch, heads and layout do not matter."""
    whole = linattn.attention(*qkv, **options)
    for threads in (1, 2, 3):
        again = linattn.attention(*qkv, num_threads=threads, **options)
        np.testing.assert_array_equal(again, whole)
    alone = linattn.attention(*(x[1:, :, 2:] for x in qkv), **options)
    np.testing.assert_array_equal(alone, whole[1:, :, 2:])
    transposed = (np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in qkv)
    np.testing.assert_array_equal(linattn.attention(*transposed, **options), whole)


@pytest.mark.parametrize("feature_map", ["elu", "exp"])
@pytest.mark.parametrize("split", [0, 1, 8, 19])
def test_split_is_whole(qkv, feature_map, split):
    options = dict(feature_map=feature_map, normalize=True, return_state=True)
    whole, last = linattn.scan(*qkv, **options)
    first, state = linattn.scan(*(x[:, :split] for x in qkv), **options)
    second, state = linattn.scan(*(x[:, split:] for x in qkv), initial_state=state, **options)
    assert_agrees(np.concatenate([first, second], axis=1), whole)
    assert_agrees(state.S, last.S)
    assert_agrees(state.z, last.z)


def test_noncausal_state_continues(qkv):
    q, k, v = qkv
    _, state = linattn.attention(q, k[:, :8], v[:, :8], return_state=True)
    out = linattn.attention(q, k[:, 8:], v[:, 8:], initial_state=state)
    assert_agrees(out, reference.attention(q, k, v))
    bare, whole = linattn.attention(q, k, v, normalize=False, return_state=True)
    assert whole.z is None
    twice = linattn.attention(q, k, v, normalize=False, initial_state=whole.S)
    assert_agrees(twice, 2 * bare, "float32")


def test_tolerances_are_known():
    assert set(TOLERANCE) == {np.dtype(dtype).name for dtype in DTYPES}
