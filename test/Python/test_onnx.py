"""The operator LinearAttention of ONNX: the specification's own reference where
the onnx package has it, ours in float64, and every rule's error."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from conftest import TOLERANCE, Foreign, assert_agrees, relative_error

import linattn
from linattn import reference

RULES = ["linear", "gated", "delta", "gated_delta"]


def make(rng, rule, *, B=2, T=7, Hq=4, Hkv=2, dk=8, dv=6, channels=True, shared=False, past=True, erase=False, dtype=np.float32, state_dtype=None):
    """Operands of one call, and its keywords."""

    def tokens(heads, size):
        return rng.standard_normal((B, T, heads * size)).astype(dtype)

    key = rng.standard_normal((B, T, Hkv, dk))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    operands = dict(query=tokens(Hq, dk), key=key.reshape(B, T, Hkv * dk).astype(dtype), value=tokens(Hkv, dv))
    if past:
        operands["past_state"] = rng.standard_normal((B, Hkv, dk, dv)).astype(state_dtype or dtype)
    if rule.startswith("gated"):
        operands["decay"] = -np.abs(rng.standard_normal((B, T, Hkv * (dk if channels else 1)))).astype(dtype)
    if rule.endswith("delta"):
        operands["beta"] = rng.random((B, T, 1 if shared else Hkv)).astype(dtype)
        if erase:
            operands["erase_gate"] = rng.random((B, T, Hkv * dk)).astype(dtype)
    return operands, dict(q_num_heads=Hq, kv_num_heads=Hkv, update_rule=rule)


def check(operands, options):
    """Against our reference: both results, shapes and dtypes."""
    out, state = linattn.onnx_linear_attention(**operands, **options)
    ref, ref_state = reference.onnx_linear_attention(**operands, **options)
    query, past = operands["query"], operands.get("past_state")
    assert out.dtype == query.dtype and state.dtype == (query if past is None else past).dtype
    assert ref.dtype == ref_state.dtype == np.float64
    assert_agrees(out.astype(np.float64), ref, query.dtype.name)
    assert_agrees(state.astype(np.float64), ref_state, max((query.dtype.name, state.dtype.name), key=TOLERANCE.get))
    return out, state


SHAPES = [
    dict(),
    dict(B=1, T=1),
    dict(T=0),
    dict(B=0),
    dict(B=1, T=70, Hq=1, Hkv=1, dk=64, dv=64),
    dict(Hq=6, Hkv=1, dk=16, dv=16),
    dict(Hq=3, Hkv=3, dk=5, dv=3),
    dict(T=33, dk=1, dv=2),
    dict(past=False, channels=False, shared=True),
    dict(past=False, T=1),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_shapes(rng, rule, shape):
    check(*make(rng, rule, **shape))


@pytest.mark.parametrize("channels, shared, past", list(itertools.product([True, False], repeat=3)))
def test_operands(rng, channels, shared, past):
    check(*make(rng, "gated_delta", channels=channels, shared=shared, past=past))


@pytest.mark.parametrize("rule", ["delta", "gated_delta"])
def test_erase_gate(rng, rule):
    operands, options = make(rng, rule, erase=True)
    out, _ = check(operands, options)
    ones = dict(operands, erase_gate=np.ones_like(operands["erase_gate"]))
    del operands["erase_gate"]
    without = linattn.onnx_linear_attention(**operands, **options)[0]
    assert relative_error(linattn.onnx_linear_attention(**ones, **options)[0], without) <= 1e-6
    assert relative_error(out, without) > 1e-3


@pytest.mark.parametrize("state_dtype", [None, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_dtypes(rng, dtype, state_dtype):
    check(*make(rng, "gated_delta", dtype=dtype, state_dtype=state_dtype))


@pytest.mark.parametrize("scale", [0, 0.0, 0.3, -2.0])
def test_scale(rng, scale):
    operands, options = make(rng, "gated")
    out, _ = check(operands, dict(options, scale=scale, chunk_size=64))
    unit, _ = linattn.onnx_linear_attention(**operands, **options, scale=1.0)
    np.testing.assert_allclose(out, unit * (scale or 8**-0.5), rtol=1e-5, atol=1e-6)


def test_query_heads_share_states(rng):
    """Query head h reads KV head ⌊h / (Hq / Hkv)⌋."""
    operands, options = make(rng, "gated_delta", Hq=6, Hkv=2)
    out = linattn.onnx_linear_attention(**operands, **options)[0].reshape(2, 7, 6, 6)
    for head in range(6):
        own, own_options = {}, dict(options, q_num_heads=1, kv_num_heads=1)
        for name, array in operands.items():
            count = 6 if name == "query" else 2
            which = head if name == "query" else head // 3
            if name == "past_state":
                own[name] = array[:, which : which + 1]
            else:
                own[name] = array.reshape(2, 7, count, -1)[:, :, which]
        alone = linattn.onnx_linear_attention(**own, **own_options)[0]
        np.testing.assert_array_equal(alone, out[:, :, head])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("split", [0, 1, 3, 7])
def test_present_state_continues(rng, rule, split):
    operands, options = make(rng, rule)
    whole, last = linattn.onnx_linear_attention(**operands, **options)
    past = operands.pop("past_state")
    first = {name: array[:, :split] for name, array in operands.items()}
    second = {name: array[:, split:] for name, array in operands.items()}
    o1, past = linattn.onnx_linear_attention(**first, past_state=past, **options)
    o2, past = linattn.onnx_linear_attention(**second, past_state=past, **options)
    assert_agrees(np.concatenate([o1, o2], axis=1), whole)
    assert_agrees(past, last)


def test_past_state_stays(rng):
    operands, options = make(rng, "gated_delta")
    before = {name: array.copy() for name, array in operands.items()}
    _, state = linattn.onnx_linear_attention(**operands, **options)
    assert not np.shares_memory(state, operands["past_state"])
    for name, array in operands.items():
        np.testing.assert_array_equal(array, before[name])
    # An empty sequence hands it on.
    empty = {name: array if name == "past_state" else array[:, :0] for name, array in operands.items()}
    out, state = linattn.onnx_linear_attention(**empty, **options)
    assert out.shape == (2, 0, 24)
    np.testing.assert_array_equal(state, before["past_state"])


def test_any_strides(rng):
    operands, options = make(rng, "gated_delta")
    expected = linattn.onnx_linear_attention(**operands, **options)
    # Time first, every second feature, backwards: views, and the same bits.
    views = {}
    for name, array in operands.items():
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        views[name] = wide[..., ::2]
    for got, other in zip(linattn.onnx_linear_attention(**views, **options), expected):
        np.testing.assert_array_equal(got, other)
    transposed = {
        name: np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1) for name, array in operands.items()
    }
    for got, other in zip(linattn.onnx_linear_attention(**transposed, **options), expected):
        np.testing.assert_array_equal(got, other)


def test_other_libraries(rng):
    operands, options = make(rng, "gated_delta")
    expected = linattn.onnx_linear_attention(**operands, **options)
    foreign = {name: Foreign(array) for name, array in operands.items()}
    for got, other in zip(linattn.onnx_linear_attention(**foreign, **options), expected):
        np.testing.assert_array_equal(np.from_dlpack(got), other)


def test_onnx_package(rng):
    """The NumPy reference that ONNX ships, over all rules and shapes."""
    onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
    module = pytest.importorskip("onnx.reference.ops.op_linear_attention", reason=f"onnx {onnx.__version__} lacks the operator")
    op = module.LinearAttention.__new__(module.LinearAttention)
    compared = 0
    for rule, shape in itertools.product(RULES, SHAPES):
        for dtype, scale in ((np.float32, 0.0), (np.float16, 0.5)) if shape in SHAPES[:2] else ((np.float32, 0.0),):
            operands, options = make(rng, rule, dtype=dtype, **shape)
            options["scale"] = scale
            theirs = op._run(*(operands.get(name) for name in ("query", "key", "value", "past_state", "decay", "beta")), **options)
            ours = linattn.onnx_linear_attention(**operands, **options)
            for got, other in zip(ours, theirs):
                assert got.dtype == other.dtype and got.shape == other.shape
                assert_agrees(got, other, np.dtype(dtype).name)
            compared += 1
    assert compared == len(RULES) * (len(SHAPES) + 2)


def test_generic_form_compiles(rng):
    """An importer's module runs as it is."""
    text = """
    func.func @layer(%q: tensor<?x?x32xf32>, %k: tensor<?x?x16xf32>, %v: tensor<?x?x12xf32>, %g: tensor<?x?x2xf32>) -> tensor<?x?x24xf32> {
      %none = "onnx.NoValue"() {value} : () -> none
      %o, %s = "onnx.LinearAttention"(%q, %k, %v, %none, %g) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "gated"}
        : (tensor<?x?x32xf32>, tensor<?x?x16xf32>, tensor<?x?x12xf32>, none, tensor<?x?x2xf32>) -> (tensor<?x?x24xf32>, tensor<?x2x8x6xf32>)
      return %o : tensor<?x?x24xf32>
    }"""
    operands, options = make(rng, "gated", channels=False, past=False)
    arrays = [operands[name] for name in ("query", "key", "value", "decay")]
    for target in ("cpu", "reference"):
        kernel = linattn.compile(text, target=target)
        assert_agrees(kernel(*arrays), reference.onnx_linear_attention(**operands, **options)[0])
    with pytest.raises(ValueError, match="expected query and key to have the same sequence length, but got 7 and 6"):
        kernel(arrays[0], arrays[1][:, :6], *arrays[2:])
    with pytest.raises(ValueError, match=r"<string>:4:\d+: error: 'onnx.LinearAttention' op expected decay only with"):
        linattn.compile(text.replace('"gated"', '"linear"'))
    with pytest.raises(ValueError, match=r"<string>:4:\d+: error: expected an op of a known dialect, but got 'onnx.Linear'"):
        linattn.compile(text.replace("LinearAttention", "Linear"))


def test_no_copies():
    """Packed tokens are seen under other strides; only the state moves."""
    text = """
    func.func @layer(%q: tensor<?x?x32xf32>, %s: tensor<?x4x8x8xf32>, %g: tensor<?x?x32xf32>, %b: tensor<?x?x4xf32>) -> (tensor<?x?x32xf32>, tensor<?x4x8x8xf32>) {
      %o, %s1 = "onnx.LinearAttention"(%q, %q, %q, %s, %g, %b) {q_num_heads = 4 : si64, kv_num_heads = 4 : si64}
        : (tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x4x8x8xf32>, tensor<?x?x32xf32>, tensor<?x?x4xf32>) -> (tensor<?x?x32xf32>, tensor<?x4x8x8xf32>)
      return %o, %s1 : tensor<?x?x32xf32>, tensor<?x4x8x8xf32>
    }"""
    kernel = linattn.compile(text)
    entry = kernel.mlir("ownership-based-buffer-deallocation")
    entry = entry[entry.index("func.func @layer(") :].split("func.func")[1]
    assert "linattn.scan" in entry and "memref.transpose" in entry
    assert "memref.alloc" not in entry and "memref.copy" not in entry
    assert entry.count("linalg.copy") == 1


ERRORS = [
    (dict(update_rule="deltas"), ValueError, "update_rule: expected one of linear, gated, delta, gated_delta, but got 'deltas'"),
    (dict(update_rule=3), TypeError, "update_rule: expected one of .*, but got int"),
    (dict(q_num_heads=2.0), TypeError, "q_num_heads: expected an integer, but got float"),
    (dict(kv_num_heads=0), ValueError, "expected kv_num_heads to be positive, but got 0"),
    (dict(q_num_heads=3), ValueError, "expected q_num_heads to be a multiple of kv_num_heads, but got 3 and 2"),
    (dict(scale="x"), TypeError, "scale: expected a number, but got str"),
    (dict(scale=float("nan")), ValueError, "expected scale to be 0 or a normal number"),
    (dict(chunk_size=1.5), TypeError, "chunk_size: expected an integer, but got float"),
    (dict(query=None), TypeError, "query: expected an array"),
    (dict(query=np.zeros((2, 7), np.float32)), ValueError, r"expected query to be packed, \[B, T, H·D\]"),
    (dict(query=np.zeros(7, np.float32)), ValueError, r"query: expected shape \(B, T, H·D\), but got \(7,\)"),
    (dict(query=np.zeros((2, 7, 32), np.int32)), TypeError, "query: expected float16, bfloat16, float32 or float64, but got int32"),
    (dict(key=np.zeros((2, 7, 16), np.float16)), ValueError, "expected key to have the element type of query, 'f32', but got 'f16'"),
    (dict(key=np.zeros((2, 7, 20), np.float32)), ValueError, "expected size of a head of key to be 8, but got 10"),
    (dict(key=np.zeros((2, 6, 16), np.float32)), ValueError, "expected query and key to have the same sequence length, but got 7 and 6"),
    (dict(value=np.zeros((1, 7, 12), np.float32)), ValueError, "expected query and value to have the same batch size, but got 2 and 1"),
    (dict(past_state=np.zeros((2, 2, 6, 8), np.float32)), ValueError, "expected key size of past_state to be 8, but got 6"),
    (dict(decay=None), ValueError, "expected decay with update_rule gated_delta, but got none"),
    (dict(beta=None), ValueError, "expected beta with update_rule gated_delta, but got none"),
    (dict(update_rule="linear"), ValueError, "expected decay only with update_rule gated or gated_delta, but got linear"),
    (dict(beta=np.zeros((2, 7, 4), np.float32)), ValueError, "expected the last size of beta to be kv_num_heads, 2, or 1, but got 4"),
    (dict(erase_gate=np.zeros((2, 7, 2), np.float32)), ValueError, "expected the last size of erase_gate to be kv_num_heads·d_k, 16, but got 2"),
]


@pytest.mark.parametrize("changes, error, message", ERRORS, ids=[message[:40] for _, _, message in ERRORS])
def test_errors(rng, changes, error, message):
    operands, options = make(rng, "gated_delta")
    with pytest.raises(error, match=message):
        linattn.onnx_linear_attention(**{**operands, **options, **changes})
