"""The short convolution: against the oracle in every dtype and layout, the same bits however
it is split, packed or laid out, the functions that models call, and ONNX's operator."""

import inspect
import itertools

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import conv, reference

pytestmark = pytest.mark.sampled(2)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}
# Of the result's rounding; sums are float32.
TOLERANCE = {"float16": 2.0**-11 * 1.1, "bfloat16": 2.0**-8 * 1.1, "float32": 3e-6, "float64": 1e-14}


def make(seed, B, T, C, W, dtype="float32", S=None, bias=True):
    generator = torch.Generator().manual_seed(seed)

    def array(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(DTYPES[dtype])

    state = array(B, C, S if S is not None else W - 1)
    return array(B, T, C), array(C, W), array(C) if bias else None, state


def channels_first(x):
    """The same elements with tokens side by side."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def scattered(x):
    """The same elements, no two of them side by side."""
    wide = torch.zeros(*x.shape[:2], 3 * x.shape[2], dtype=x.dtype)
    wide[:, :, ::3] = x
    return wide[:, :, ::3]


def close(y, ref, dtype):
    y, ref = y.double().numpy(), np.asarray(ref)
    assert y.shape == ref.shape
    if y.size:
        # Every number within its own rounding, but for what sums cancel.
        small = {"float16": 2e-3, "bfloat16": 2e-3, "float32": 1.0, "float64": 1.0}[dtype] * np.abs(ref).max()
        assert (np.abs(y - ref) / np.maximum(np.abs(ref), small)).max() <= TOLERANCE[dtype]


# ----------------------------------------------------------------------------
# Numbers
# ----------------------------------------------------------------------------

SHAPES = [  # C, W, S, batches and lengths
    (70, 4, 3, [(2, 150), (1, 9), (3, 2), (2, 0)]),
    (17, 8, 9, [(1, 37), (2, 10)]),
]


@pytest.mark.parametrize("dtype, C, W, S, sizes", [(dtype, *shape) for dtype in DTYPES for shape in SHAPES[: 2 if dtype == "float32" else 1]])
def test_oracle(dtype, C, W, S, sizes):
    for B, T in sizes:
        x, w, b, state = make(1, B, T, C, W, dtype, S)
        y, last = linattn.causal_conv1d(x, w, b, activation="silu", initial_state=state, return_state=True)
        ref, ref_last = reference.causal_conv1d(x, w, b, activation="silu", initial_state=state, return_state=True)
        close(y, ref, dtype)
        assert (last.double().numpy() == np.asarray(ref_last)).all()
        assert y.dtype == x.dtype and last.shape == state.shape


def test_one_weight():
    """There is nothing to carry on, and what a call returns is what the next one takes."""
    x, w, _, _ = make(15, 2, 9, 7, 1)
    y, state = linattn.causal_conv1d(x, w, return_state=True)
    assert state.shape == (2, 7, 0)
    again, state = linattn.causal_conv1d(x, w, initial_state=state, return_state=True)
    assert state.shape == (2, 7, 0) and torch.equal(y, again) and torch.equal(y, x * w[:, 0])


def test_few_channels_backwards():
    for C in (1, 33):
        x, w, b, _ = make(15, 2, 20, C, 3)
        close(linattn.causal_conv1d(x, w, b, reverse=True), reference.causal_conv1d(x, w, b, reverse=True), "float32")


@pytest.mark.parametrize("W, dilation", [(4, 7), (1, 1), (16, 1)])
def test_dilation(W, dilation):
    x, w, b, _ = make(2, 2, 60, 20, W)
    y, last = linattn.causal_conv1d(x, w, b, activation="swish", dilation=dilation, return_state=True)
    ref, ref_last = reference.causal_conv1d(x, w, b, activation="swish", dilation=dilation, return_state=True)
    close(y, ref, "float32")
    assert last.shape == (2, 20, (W - 1) * dilation)
    assert (last.double().numpy() == np.asarray(ref_last)).all()


def test_torch_agrees():
    x, w, b, _ = make(3, 2, 90, 24, 4, "float64")
    padded = torch.nn.functional.pad(x.transpose(1, 2), (3, 0))
    expected = torch.nn.functional.silu(torch.nn.functional.conv1d(padded, w[:, None], b, groups=24))
    assert_agrees(linattn.causal_conv1d(x, w, b, activation="silu").numpy(), expected.transpose(1, 2).numpy())


def test_weights_of_other_types_and_shapes():
    x, w, b, _ = make(4, 1, 30, 20, 4, "bfloat16")
    y = linattn.causal_conv1d(x, w, b)
    assert torch.equal(y, linattn.causal_conv1d(x, w.float(), b.double()))
    assert torch.equal(y, linattn.causal_conv1d(x, w[:, None], b))
    assert torch.equal(y, linattn.causal_conv1d(x, w.t().contiguous().t(), b))
    assert torch.equal(y[0], linattn.causal_conv1d(x[0], w, b))
    assert y.dtype == torch.bfloat16


def test_extremes():
    """Nothing overflows, and a NaN stays one, whatever its bits."""
    for dtype in ("float32", "bfloat16"):
        big = 3e38
        x = torch.tensor([0.0, -0.0, 1.0, -1.0, 90.0, -90.0, 200.0, -200.0, big, -big, 1e-30, float("nan")]).to(DTYPES[dtype])
        x = x.repeat(4)[None, :, None].repeat(1, 1, 40)
        if dtype == "bfloat16":
            x[0, 11] = torch.tensor([0x7FFF], dtype=torch.int16).view(torch.bfloat16)
        one = torch.ones(40, 1, dtype=x.dtype)
        for layout in (x, channels_first(x)):
            y = linattn.causal_conv1d(layout, one, activation="silu").double()
            ref = x.double() * torch.sigmoid(x.double())
            assert torch.equal(y.isnan(), ref.isnan())
            error = (y - ref).abs() / ref.abs().clamp(min=1e-30)
            assert error[~ref.isnan() & (ref.abs() > 1e-4)].max() <= TOLERANCE[dtype]
            assert (y - ref)[~ref.isnan()].abs().le(1e-6 + TOLERANCE[dtype] * ref[~ref.isnan()].abs()).all()


# ----------------------------------------------------------------------------
# The same bits
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_layouts_and_threads(dtype):
    x, w, b, state = make(5, 2, 300, 70, 4, dtype)
    options = {"activation": "silu", "initial_state": state, "return_state": True}
    y, last = linattn.causal_conv1d(x, w, b, num_threads=1, **options)
    for view, target in itertools.product((x, channels_first(x), scattered(x)), (x, channels_first(x), scattered(x))):
        out = torch.zeros_like(target)
        assert out.stride() == target.stride() or not target.is_contiguous()
        out = torch.as_strided(torch.zeros(target.untyped_storage().nbytes() // target.element_size(), dtype=x.dtype), target.shape, target.stride())
        got, got_last = linattn.causal_conv1d(view, w, b, out=out, num_threads=2, **options)
        assert got is out and torch.equal(out, y) and torch.equal(got_last, last)
    assert torch.equal(linattn.causal_conv1d(x[1:], w, b, **{**options, "initial_state": state[1:]})[0], y[1:])


@pytest.mark.parametrize("dtype, options", [("float32", {"dilation": 2}), ("bfloat16", {}), ("bfloat16", {"reverse": True})])
@pytest.mark.parametrize("layout", [lambda x: x, channels_first])
def test_any_split(dtype, options, layout):
    x, w, b, state = make(6, 2, 45, 40, 4, dtype, S=3 * options.get("dilation", 1))
    y, last = linattn.causal_conv1d(x, w, b, activation="silu", initial_state=state, return_state=True, **options)
    for cuts in ([0, 0, 12, 45], [0, 36, 45]) if layout is channels_first else ([0, 1, 2, 13, 45],):
        pieces = list(itertools.pairwise(cuts))
        carried, parts = state, {}
        for begin, end in reversed(pieces) if options.get("reverse") else pieces:
            parts[begin, end], carried = linattn.causal_conv1d(
                layout(x[:, begin:end]), w, b, activation="silu", initial_state=carried, return_state=True, **options
            )
        assert torch.equal(torch.cat([parts[piece] for piece in pieces], 1), y)
        assert torch.equal(carried, last)


@pytest.mark.parametrize("dtype, reverse", [("float32", True), ("bfloat16", False)])
@pytest.mark.parametrize("layout", [lambda x: x, channels_first])
def test_packed(dtype, reverse, layout):
    x, w, b, _ = make(7, 1, 140, 40, 4, dtype)
    ends = [0, 0, 11, 50, 140]
    state = torch.randn(4, 40, 3).to(x.dtype)
    options = {"activation": "silu", "reverse": reverse, "return_state": True}
    y, last = linattn.causal_conv1d(layout(x), w, b, initial_state=state, cu_seqlens=ends, **options)
    for n, (begin, end) in enumerate(itertools.pairwise(ends)):
        alone, alone_last = linattn.causal_conv1d(x[:, begin:end], w, b, initial_state=state[n : n + 1], **options)
        assert torch.equal(y[:, begin:end], alone) and torch.equal(last[n : n + 1], alone_last)
    ref, _ = reference.causal_conv1d(x, w, b, initial_state=state, cu_seqlens=ends, **options)
    close(y, ref, dtype)
    zeros = linattn.causal_conv1d(layout(x), w, b, cu_seqlens=np.asarray(ends, np.int32), activation="silu", reverse=reverse)
    assert torch.equal(zeros, linattn.causal_conv1d(x, w, b, initial_state=torch.zeros_like(state), cu_seqlens=ends, **options)[0])


def test_in_place():
    x, w, b, state = make(8, 2, 1, 40, 4, "bfloat16")
    y, last = linattn.causal_conv1d(x, w, b, initial_state=state, return_state=True)
    mine = state.clone()
    got, returned = linattn.causal_conv1d(x, w, b, initial_state=mine, inplace=True, return_state=True)
    assert returned is mine and torch.equal(mine, last) and torch.equal(got, y)
    mine = state.clone()
    assert torch.equal(linattn.causal_conv1d(x, w, b, initial_state=mine, inplace=True), y)
    assert torch.equal(mine, last)
    # A slice of a cache, its oldest input beside what is needed.
    cache = torch.zeros(2, 40, 4).to(x.dtype)
    cache[:, :, 1:] = state
    linattn.causal_conv1d(x, w, b, initial_state=cache[:, :, 1:], inplace=True)
    assert torch.equal(cache[:, :, 1:], last) and (cache[:, :, 0] == 0).all()
    with pytest.raises(ValueError, match="initial_state: expected an array that can be written"):
        fixed = np.zeros((1, 8, 3), np.float32)
        fixed.flags.writeable = False
        linattn.causal_conv1d(np.zeros((1, 1, 8), np.float32), np.ones((8, 4), np.float32), initial_state=fixed, inplace=True)


# ----------------------------------------------------------------------------
# The functions that models call
# ----------------------------------------------------------------------------


def test_signatures():
    assert list(inspect.signature(conv.causal_conv1d_fn).parameters) == [
        "x", "weight", "bias", "seq_idx", "initial_states", "return_final_states", "final_states_out", "activation",
    ]  # fmt: skip
    assert list(inspect.signature(conv.causal_conv1d_update).parameters) == [
        "x", "conv_state", "weight", "bias", "activation", "cache_seqlens", "conv_state_indices",
    ]  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
def test_fn(last):
    x, w, b, state = make(9, 2, 50, 24, 4, "bfloat16")
    view = x.transpose(1, 2) if last else x.transpose(1, 2).contiguous()
    expected, expected_state = linattn.causal_conv1d(x, w, b, activation="silu", initial_state=state, return_state=True)
    y, final = conv.causal_conv1d_fn(view, w, b, initial_states=state, return_final_states=True, activation="silu")
    assert torch.equal(y, expected.transpose(1, 2)) and torch.equal(final, expected_state)
    assert y.stride() == view.stride()
    out = torch.full_like(state, float("nan"))
    _, final = conv.causal_conv1d_fn(view, w, b, initial_states=state, return_final_states=True, final_states_out=out)
    assert final is out and torch.equal(out, expected_state)
    assert torch.equal(conv.causal_conv1d_fn(view, w), linattn.causal_conv1d(x, w).transpose(1, 2))


@pytest.mark.parametrize("last", [False, True])
def test_seq_idx(last):
    x, w, b, _ = make(10, 2, 20, 24, 4)
    view = x.transpose(1, 2) if last else x.transpose(1, 2).contiguous()
    numbers = torch.tensor([[0] * 7 + [1] * 13, [3] * 2 + [0] * 15 + [-1] * 3], dtype=torch.int32)
    y = conv.causal_conv1d_fn(view, w, b, seq_idx=numbers, activation="silu").transpose(1, 2)
    for row, ends in ((0, [0, 7, 20]), (1, [0, 2, 17])):
        for begin, end in itertools.pairwise(ends):
            assert torch.equal(y[row, begin:end], linattn.causal_conv1d(x[row, begin:end], w, b, activation="silu"))
    assert (y[1, 17:] == 0).all()
    with pytest.raises(ValueError, match="initial_states: expected no seq_idx"):
        conv.causal_conv1d_fn(view, w, seq_idx=numbers, initial_states=torch.zeros(2, 24, 3))
    with pytest.raises(ValueError, match="seq_idx: expected integers of shape"):
        conv.causal_conv1d_fn(view, w, seq_idx=numbers[:1])


def test_update():
    """Steps of one or several tokens are the whole."""
    x, w, b, _ = make(11, 3, 12, 24, 4, "bfloat16")
    whole = conv.causal_conv1d_fn(x.transpose(1, 2), w, b, activation="silu")
    for size in (3, 4):
        state = torch.zeros(3, 24, size).to(x.dtype)
        steps = [conv.causal_conv1d_update(x[:, 0], state, w, b, "silu")[:, :, None]]
        steps += [conv.causal_conv1d_update(x[:, t : t + 1].transpose(1, 2), state, w, b, "silu") for t in range(1, 8)]
        steps += [conv.causal_conv1d_update(x[:, 8:].transpose(1, 2), state, w, b, "silu")]
        assert torch.equal(torch.cat(steps, 2), whole)
        assert torch.equal(state, x[:, 12 - size :].transpose(1, 2))


def test_update_ring_and_rows():
    x, w, b, _ = make(12, 2, 11, 24, 4)
    whole = conv.causal_conv1d_fn(x.transpose(1, 2), w, b, activation="silu")
    ring = torch.zeros(2, 24, 5)
    position, steps = torch.tensor([0, 7], dtype=torch.int32), []
    for begin, end in itertools.pairwise([0, 1, 2, 9, 11]):
        steps.append(conv.causal_conv1d_update(x[:, begin:end].transpose(1, 2), ring, w, b, "silu", position))
        position += end - begin
    assert torch.equal(torch.cat(steps, 2), whole)
    assert torch.equal(ring[0, :, 0], x[0, 10]) and torch.equal(ring[1, :, 2], x[1, 10])
    pool = torch.randn(6, 24, 3)
    kept, rows = pool.clone(), torch.tensor([4, 1], dtype=torch.int32)
    y = conv.causal_conv1d_update(x[:, 0], pool, w, b, "silu", conv_state_indices=rows)
    states = kept[[4, 1]].clone()
    assert torch.equal(y, conv.causal_conv1d_update(x[:, 0], states, w, b, "silu"))
    assert torch.equal(pool[[4, 1]], states) and torch.equal(pool[[0, 2, 3, 5]], kept[[0, 2, 3, 5]])
    conv.causal_conv1d_update(x[:1, 1], pool, w, b, "silu", conv_state_indices=rows[:1])
    assert torch.equal(pool[4, :, -1], x[0, 1])
    for bad, message in ([4, 6], "rows from 0 to 5"), ([1, 1], "every row once"), ([1], "integers of shape"):
        with pytest.raises(ValueError, match=f"conv_state_indices: expected {message}"):
            conv.causal_conv1d_update(x[:, 0], pool, w, b, conv_state_indices=torch.tensor(bad))


# ----------------------------------------------------------------------------
# Errors, a GPU's kernels, ONNX
# ----------------------------------------------------------------------------


def test_errors():
    x, w, b, state = make(13, 2, 6, 8, 4)
    for error, message, change in [
        (ValueError, "activation: expected None, silu or swish, but got 'relu'", {"activation": "relu"}),
        (TypeError, "activation: expected None, silu or swish, but got int", {"activation": 1}),
        (ValueError, "dilation: expected a number from 1", {"dilation": 0}),
        (TypeError, "dilation: expected a whole number", {"dilation": 1.5}),
        (ValueError, "initial_state: expected at least .* 6 inputs of each channel, but got 3", {"dilation": 2}),
        (ValueError, "inplace: expected it only with initial_state", {"inplace": True, "initial_state": None}),
        (TypeError, "initial_state: expected dtype float32, but got float64", {"initial_state": state.double()}),
        (ValueError, "initial_state: expected shape", {"initial_state": state[:1]}),
        (ValueError, "weight: expected a width from 1 to 16, but got 17", {"weight": torch.ones(8, 17), "initial_state": None}),
        (ValueError, "weight: expected shape", {"weight": w[:5]}),
        (ValueError, "bias: expected shape", {"bias": b[:5]}),
        (ValueError, "cu_seqlens: expected a batch size of 1", {"cu_seqlens": [0, 6]}),
        (ValueError, "target", {"target": "tpu"}),
    ]:
        arguments = {"x": x, "weight": w, "bias": b, "initial_state": state, **change}
        with pytest.raises(error, match=message):
            linattn.causal_conv1d(arguments.pop("x"), arguments.pop("weight"), arguments.pop("bias"), **arguments)
    with pytest.raises(ValueError, match="x: expected shape"):
        conv.causal_conv1d_fn(x[0], w)
    with pytest.raises(ValueError, match="final_states_out: expected it only with"):
        conv.causal_conv1d_fn(x.transpose(1, 2), w, final_states_out=state)


def test_emulated_gpu():
    for dtype, options in (("bfloat16", {"activation": "silu"}), ("float32", {"reverse": True})):
        x, w, b, state = make(14, 1, 9, 10, 3, dtype)
        y, last = linattn.causal_conv1d(
            x, w, b, initial_state=state, return_state=True, target="nvvm-emulated", **options
        )
        ref, ref_last = reference.causal_conv1d(x, w, b, initial_state=state, return_state=True, **options)
        close(y, ref, dtype)
        assert (last.double().numpy() == np.asarray(ref_last)).all()
    packed = linattn.causal_conv1d(x, w, b, cu_seqlens=[0, 2, 9], target="nvvm-emulated")
    assert torch.equal(packed, linattn.causal_conv1d(x, w, b, cu_seqlens=[0, 2, 9]))


def test_onnx_package():
    """The NumPy reference that ONNX ships."""
    onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
    module = pytest.importorskip("onnx.reference.ops.op_causal_conv_with_state", reason=f"onnx {onnx.__version__} lacks the operator")
    op = module.CausalConvWithState.__new__(module.CausalConvWithState)
    rng = np.random.default_rng(0)
    for (B, C, T, k), dtype in itertools.product([(2, 5, 7, 4), (1, 5, 2, 4)], (np.float32, np.float16)):
        x, w, b, s = (rng.standard_normal(shape).astype(dtype) for shape in ((B, C, T), (C, 1, k), (C,), (B, C, k - 1)))
        for bias, state, activation in ((None, None, "none"), (b, s, "silu"), (b, None, "swish")):
            theirs = op._run(x, w, bias, state, activation)
            ours = linattn.onnx_causal_conv_with_state(x, w, bias, state, activation=activation)
            oracle = reference.onnx_causal_conv_with_state(x, w, bias, state, activation=activation)
            for got, other, exact in zip(ours, theirs, oracle):
                assert got.dtype == other.dtype and got.shape == other.shape == exact.shape
                assert_agrees(got, other, np.dtype(dtype).name)
                assert_agrees(got, exact, np.dtype(dtype).name)


def test_onnx_errors():
    x, w = np.zeros((1, 4, 5), np.float32), np.ones((4, 1, 3), np.float32)
    for error, message, arguments in [
        (ValueError, "expected activation to be none, silu or swish, but got \"relu\"", {"activation": "relu"}),
        (TypeError, "activation: expected none, silu or swish, but got int", {"activation": 1}),
        (ValueError, "expected the channels of bias to be 4, but got 5", {"bias": np.zeros(5, np.float32)}),
        (ValueError, "expected the inputs of past_state to be 2, but got 3", {"past_state": np.zeros((1, 4, 3), np.float32)}),
        (ValueError, "expected weight to be \\[C, 1, k\\]", {"weight": w[:, 0]}),
        (ValueError, "input: expected shape \\(B, C, T\\)", {"input": x[0]}),
    ]:
        with pytest.raises(error, match=message):
            linattn.onnx_causal_conv_with_state(**{"input": x, "weight": w, **arguments})
