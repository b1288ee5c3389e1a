"""Directions, prefixes, padding, output norms and state layouts."""

import ml_dtypes
import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import reference

pytestmark = pytest.mark.sampled(2)

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def name_of(dtype):
    return np.dtype(dtype).name


# ----------------------------------------------------------------------------
# Both directions
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (2, 37, 3), (2, 37, 3, 16), (3,)])
def test_bidirectional(rng, dtype, shape):
    q, k, v = (normal(rng, 2, 37, 3, 16, dtype=dtype) for _ in range(3))
    decay = -np.abs(normal(rng, *shape)) if len(shape) > 2 else -np.abs(normal(rng, 3))
    states = [normal(rng, 2, 3, 16, 16, dtype=np.float64 if dtype == np.float64 else np.float32) for _ in "fb"]
    options = dict(decay=decay.astype(dtype), initial_state=states, return_state=True)
    o, (forward, backward) = linattn.bidirectional(q, k, v, **options)
    ref, finals = reference.bidirectional(q, k, v, **options)
    assert_agrees(o.astype(np.float64), ref, name_of(dtype))
    assert_agrees(forward.S, finals[0].S, name_of(dtype))
    assert_agrees(backward.S, finals[1].S, name_of(dtype))


def test_bidirectional_is_a_sum_of_pairs(rng):
    """o_t = Σ_{j≤t} e^{g(j,t]} (q·k_j) v_j + Σ_{j>t} e^{g(t,j)} (q·k_j) v_j, written out."""
    T = 9
    q, k, v = (normal(rng, T, 4, dtype=np.float64) for _ in range(3))
    g = -np.abs(normal(rng, 1, T, 1, dtype=np.float64))
    c = np.concatenate([[0], np.cumsum(g[0, :, 0])])  # c[t] = the sum before t
    weights = np.empty((T, T))
    for t in range(T):
        for j in range(T):
            weights[t, j] = np.exp(c[t + 1] - c[j + 1] if j <= t else c[j] - c[t + 1])
    expected = (weights * (q @ k.T)) @ v
    out = linattn.bidirectional(*(x[None, :, None] for x in (q, k, v)), decay=g, scale=1.0)
    assert_agrees(out[0, :, 0], expected, "float64")


@pytest.mark.parametrize("form", ["auto", "token", "segments:8"])
def test_bidirectional_without_decay_is_attention(rng, form):
    q, k, v = normal(rng, 2, 30, 4, 16), normal(rng, 2, 30, 2, 16), normal(rng, 2, 30, 2, 8)
    out = linattn.bidirectional(q, k, v, feature_map="relu", scale=1.0, form=form)
    assert_agrees(out, reference.attention(q, k, v, feature_map="relu", normalize=False))


def test_bidirectional_delta_and_sequences(rng):
    q, k, v = (normal(rng, 1, 40, 2, 16) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    beta = rng.random((1, 40, 2)).astype(np.float32)
    options = dict(update="delta", beta=beta, cu_seqlens=[0, 0, 1, 17, 40], return_state=True)
    o, states = linattn.bidirectional(q, k, v, **options)
    ref, finals = reference.bidirectional(q, k, v, **options)
    assert_agrees(o, ref)
    for state, final in zip(states, finals):
        assert state.S.shape == (4, 2, 16, 16)
        assert_agrees(state.S, final.S)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_bidirectional_maps_whole_tokens(rng, dtype):
    q, k, v = (normal(rng, 2, 20, 3, 16, dtype=dtype) for _ in range(3))
    options = dict(
        feature_map=linattn.feature_maps.hedgehog(normal(rng, 16, 16), normal(rng, 16, 16)),
        decay=-np.abs(normal(rng, 2, 20, 3, 32)), return_state=True,
    )  # fmt: skip
    o, states = linattn.bidirectional(q, k, v, **options)
    ref, finals = reference.bidirectional(q, k, v, **options)
    assert_agrees(o.astype(np.float64), ref, name_of(dtype))
    for state, final in zip(states, finals):
        assert state.S.shape == (2, 3, 32, 16)
        assert_agrees(state.S, final.S, name_of(dtype))


def test_bidirectional_errors(qkv):
    with pytest.raises(TypeError, match="initial_state: expected a pair of states, forward and backward, but got ndarray"):
        linattn.bidirectional(*qkv, initial_state=np.zeros((2, 3, 16, 16), np.float32))
    with pytest.raises(ValueError, match="form: expected a recurrent form for bidirectional, but got quadratic"):
        linattn.bidirectional(*qkv, form="quadratic")


# ----------------------------------------------------------------------------
# Prefixes
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", [0, 5, 50, [3, 33], [0, 100]])
@pytest.mark.parametrize(
    "options",
    [{}, {"normalize": False, "feature_map": "relu"}, {"feature_map": "exp"}, {"weights": "softmax"},
     {"form": "quadratic"}, {"target": "reference"}, {"weights": "softmax", "target": "reference"}],
)  # fmt: skip
def test_prefix(rng, options, prefix):
    q, k, v = normal(rng, 2, 50, 4, 16), normal(rng, 2, 50, 2, 16), normal(rng, 2, 50, 2, 8)
    out = linattn.attention(q, k, v, causal=True, prefix=prefix, **options)
    ref = reference.attention(q, k, v, causal=True, prefix=prefix, **options)
    assert_agrees(out, ref)


def test_prefix_on_an_emulated_gpu(rng):
    """Its mask is bytes, and an odd number of them."""
    q, k, v = (rng.standard_normal((2, 37, 2, 16)).astype(np.float32) for _ in range(3))
    out = linattn.attention(q, k, v, causal=True, prefix=np.array([3, 20]), target="nvvm-emulated")
    assert_agrees(out, reference.attention(q, k, v, causal=True, prefix=[3, 20]))



@pytest.mark.parametrize("form", ["auto", "quadratic"])
def test_prefix_maps_whole_tokens(rng, form):
    q, k, v = normal(rng, 2, 50, 4, 16), normal(rng, 2, 50, 2, 16), normal(rng, 2, 50, 2, 8)
    options = dict(causal=True, prefix=[3, 33], mask=rng.random((2, 50)) < 0.9)
    options["feature_map"] = linattn.feature_maps.favor(normal(rng, 24, 16))
    out = linattn.attention(q, k, v, form=form, **options)
    assert_agrees(out, reference.attention(q, k, v, **options))


def test_prefix_weights_and_mask(rng):
    q, k, v = (normal(rng, 2, 20, 2, 16) for _ in range(3))
    prefix, mask = np.array([4, 11], np.int32), rng.random((2, 20)) < 0.7
    w = linattn.weights(q, k, causal=True, prefix=prefix, mask=mask)
    visible = (np.arange(20) <= np.arange(20)[:, None]) | (np.arange(20) < prefix[:, None, None, None])
    np.testing.assert_array_equal(w != 0, np.broadcast_to(visible & mask[:, None, None], w.shape))
    for weights in ("linear", "softmax"):
        options = dict(causal=True, prefix=prefix, mask=mask, weights=weights)
        assert_agrees(linattn.attention(q, k, v, **options), reference.attention(q, k, v, **options))


def test_prefix_extremes_are_causal_and_full(rng):
    q, k, v = (normal(rng, 2, 20, 2, 16) for _ in range(3))
    assert_agrees(linattn.attention(q, k, v, causal=True, prefix=0), reference.attention(q, k, v, causal=True))
    assert_agrees(linattn.attention(q, k, v, causal=True, prefix=20), reference.attention(q, k, v))


def test_prefix_errors(qkv):
    with pytest.raises(ValueError, match="prefix: expected it only with causal=True, but got it without"):
        linattn.attention(*qkv, prefix=3)
    with pytest.raises(ValueError, match="return_state: expected no prefix beside a state"):
        linattn.attention(*qkv, causal=True, prefix=3, return_state=True)
    with pytest.raises(TypeError, match="prefix: expected dtype int32 or int64, but got float64"):
        linattn.attention(*qkv, causal=True, prefix=np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="prefix"):
        linattn.attention(*qkv, causal=True, prefix=[1, 2, 3])


# ----------------------------------------------------------------------------
# Cross attention and padding
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["auto", "quadratic", "token", "state-tile"])
@pytest.mark.parametrize("lengths", [(7, 40), (40, 7), (1, 33), (33, 1)])
def test_cross_attention_in_every_form(rng, lengths, form):
    Tq, Tk = lengths
    q, k, v = normal(rng, 2, Tq, 4, 16), normal(rng, 2, Tk, 2, 16), normal(rng, 2, Tk, 2, 8)
    mask = rng.random((2, Tk)) < 0.7
    mask[0] = False  # nothing to attend at all
    padded = [np.where(mask[:, :, None, None], x, np.nan).astype(x.dtype) for x in (k, v)]
    for feature_map in ("elu", "exp"):
        out = linattn.attention(q, *padded, mask=mask, feature_map=feature_map, form=form)
        assert_agrees(out, reference.attention(q, k, v, mask=mask, feature_map=feature_map))
        np.testing.assert_array_equal(out[0], 0)
    if form in ("auto", "quadratic"):
        out = linattn.attention(q, *padded, mask=mask, weights="softmax", form=form)
        assert_agrees(out, reference.attention(q, k, v, mask=mask, weights="softmax"))


def test_causal_cross_attention_aligns_the_last_key():
    """The quadratic form is causal for more keys than queries: new tokens over a cache."""
    text = """func.func @f(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>, %o: tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32> {
      %r = linattn.quadratic %q, %k, %k weights(softmax) into(%o) {causal, scale = 0.5}
        : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
      return %r : tensor<1x1x?x4xf32>
    }"""
    rng = np.random.default_rng(0)
    x, y = normal(rng, 1, 1, 12, 4), normal(rng, 1, 1, 12, 4)
    for target in (None, "reference"):
        kernel = linattn.compile(text, target=target)
        whole = kernel(y, x, np.zeros_like(y))
        last = kernel(y[:, :, 7:], x, np.zeros_like(y[:, :, 7:]))
        assert_agrees(last, whole[:, :, 7:].astype(np.float64))
        # More queries than keys: the first see none.
        early = kernel(y, x[:, :, :5], np.zeros_like(y))
        np.testing.assert_array_equal(early[:, :, :7], 0)
        assert_agrees(early[:, :, 7:], kernel(y[:, :, 7:], x[:, :, :5], np.zeros_like(y[:, :, 7:])).astype(np.float64))


# ----------------------------------------------------------------------------
# Output norms
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [None, "reference"])
@pytest.mark.parametrize("D", [1, 16, 60, 100])
@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_output_norm(rng, kind, D, target):
    x, gate = normal(rng, 2, 70, 3, D), normal(rng, 2, 70, 3, D)
    for options in (
        {}, {"weight": normal(rng, D)}, {"weight": normal(rng, 3, D), "bias": normal(rng, 3, D)},
        {"gate": gate, "weight": normal(rng, D), "bias": normal(rng, 3, D), "activation": "sigmoid"},
        {"gate": gate, "gate_first": True, "eps": 1e-3, "activation": "swish"},
    ):  # fmt: skip
        out = linattn.output_norm(x, kind=kind, target=target, **options)
        assert_agrees(out, reference.output_norm(x, kind=kind, **options))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(33, 20), (2, 33, 20), (2, 33, 3, 20), (2, 0, 3, 20)])
def test_output_norm_dtypes(rng, dtype, shape):
    x, gate = normal(rng, *shape, dtype=dtype), normal(rng, *shape, dtype=dtype)
    weight = normal(rng, 20)
    out = linattn.output_norm(x, gate=gate, weight=weight)
    assert out.dtype == dtype and out.shape == shape
    assert_agrees(out.astype(np.float64), reference.output_norm(x, gate=gate, weight=weight), name_of(dtype))


def test_output_norm_streams_bitwise(rng):
    x, gate, weight = normal(rng, 2, 130, 3, 20), normal(rng, 2, 130, 3, 20), normal(rng, 20)
    for kind in ("rms", "layer"):
        whole = linattn.output_norm(x, gate=gate, weight=weight, kind=kind, num_threads=1)
        np.testing.assert_array_equal(whole, linattn.output_norm(x, gate=gate, weight=weight, kind=kind, num_threads=2))
        parts = [
            linattn.output_norm(x[:, t : t + n], gate=gate[:, t : t + n], weight=weight, kind=kind)
            for t, n in ((0, 1), (1, 70), (71, 59))
        ]
        np.testing.assert_array_equal(whole, np.concatenate(parts, axis=1))


def test_output_norm_beside_scan(rng):
    q, k, v = (normal(rng, 2, 40, 3, 16) for _ in range(3))
    out = linattn.output_norm(linattn.scan(q, k, v), gate=v)
    assert_agrees(out, reference.output_norm(reference.scan(q, k, v), gate=v))


def test_output_norm_errors(rng):
    x = normal(rng, 2, 5, 3, 16)
    with pytest.raises(ValueError, match="weight"):
        linattn.output_norm(x, weight=np.ones(15, np.float32))
    with pytest.raises(ValueError, match="gate"):
        linattn.output_norm(x, gate=x[:, :4])
    with pytest.raises(ValueError, match="kind: expected one of rms, layer, none, but got 'batch'"):
        linattn.output_norm(x, kind="batch")
    with pytest.raises(ValueError, match="gate_first: expected it only with gate, but got it without"):
        linattn.output_norm(x, gate_first=True)


# ----------------------------------------------------------------------------
# State layouts
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["auto", "token", "chunk:8", "segments:16"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_state_layouts_agree_bitwise(rng, dtype, form):
    q, k, v = normal(rng, 2, 40, 3, 16, dtype=dtype), normal(rng, 2, 40, 3, 16, dtype=dtype), normal(rng, 2, 40, 3, 24, dtype=dtype)
    S = normal(rng, 2, 3, 16, 24, dtype=dtype)
    turned = np.ascontiguousarray(S.swapaxes(2, 3))
    o, state = linattn.scan(q, k, v, initial_state=S, return_state=True, form=form)
    o2, state2 = linattn.scan(q, k, v, initial_state=turned, return_state=True, form=form, state_layout="vk")
    assert state2.layout == "vk" and state2.S.shape == (2, 3, 24, 16) and state2.S.flags.c_contiguous
    np.testing.assert_array_equal(o, o2)
    np.testing.assert_array_equal(state.S, state2.S.swapaxes(2, 3))
    np.testing.assert_array_equal(turned, S.swapaxes(2, 3))  # as it was
    ref, final = reference.scan(q, k, v, initial_state=turned, return_state=True, state_layout="vk")
    assert_agrees(o2, ref, name_of(dtype))
    assert_agrees(state2.S, final.S, name_of(dtype))


def test_state_layout_streams(rng, tmp_path):
    q, k, v = normal(rng, 2, 12, 3, 16), normal(rng, 2, 12, 3, 16), normal(rng, 2, 12, 3, 24)
    options = dict(feature_map="elu", normalize=True)
    whole = linattn.scan(q, k, v, **options)
    state = linattn.State.zeros(2, 3, 16, 24, normalize=True, layout="vk")
    assert state.S.shape == (2, 3, 24, 16) and state.z.shape == (2, 3, 16)
    outputs = [state.step(q[:, t : t + 1], k[:, t : t + 1], v[:, t : t + 1], **options) for t in range(12)]
    assert_agrees(np.concatenate(outputs, axis=1), whole.astype(np.float64))
    first = linattn.State.zeros(2, 3, 16, 24, normalize=True)
    first.update(k, v, feature_map="elu")
    second = linattn.State.zeros(2, 3, 16, 24, normalize=True, layout="vk")
    second.update(k, v, feature_map="elu")
    np.testing.assert_array_equal(first.S, second.S.swapaxes(2, 3))
    np.testing.assert_array_equal(first.query(q, feature_map="elu"), second.copy().query(q, feature_map="elu"))
    second.save(tmp_path / "state.npz")
    np.testing.assert_array_equal(linattn.State.load(tmp_path / "state.npz").S, first.S)


def test_state_layout_of_features(rng):
    q, k, v = normal(rng, 2, 12, 3, 16), normal(rng, 2, 12, 3, 16), normal(rng, 2, 12, 3, 24)
    options = dict(feature_map=linattn.feature_maps.dpfp(), normalize=True, floor=1.0, return_state=True)
    o, state = linattn.scan(q, k, v, **options)
    o2, state2 = linattn.scan(q, k, v, state_layout="vk", **options)
    assert state2.S.shape == (2, 3, 24, 32) and state2.z.shape == (2, 3, 32)
    np.testing.assert_array_equal(o, o2)
    np.testing.assert_array_equal(state.S, state2.S.swapaxes(2, 3))
    np.testing.assert_array_equal(state.z, state2.z)


def test_state_layout_errors(qkv):
    state = linattn.State.zeros(2, 3, 16, 16)
    with pytest.raises(ValueError, match="state_layout: expected 'kv', that of initial_state, but got 'vk'"):
        linattn.scan(*qkv, initial_state=state, state_layout="vk")
    with pytest.raises(ValueError, match="state_layout: expected one of kv, vk, but got 'kq'"):
        linattn.scan(*qkv, state_layout="kq")
    with pytest.raises(ValueError, match="S: expected shape"):
        linattn.State(np.zeros((2, 3, 4), np.float32), layout="vk")


# ----------------------------------------------------------------------------
# Few states
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("V", [24, 33, 100, 128])
def test_divided_columns_change_no_bit(rng, V):
    """Few heads divide the columns of a state among threads; many do not."""
    q, k, v = normal(rng, 1, 50, 8, 16), normal(rng, 1, 50, 8, 16), normal(rng, 1, 50, 8, V)
    decay = -np.abs(normal(rng, 1, 50, 8, 16))
    whole = linattn.scan(q, k, v, decay=decay)
    for heads in (1, 2, 3, 4):
        for threads in (1, 3):
            part = linattn.scan(*(x[:, :, :heads] for x in (q, k, v)), decay=decay[:, :, :heads], num_threads=threads)
            np.testing.assert_array_equal(part, whole[:, :, :heads])
