"""linattn's operators in ONNX Runtime: the standard's own cases, ours in float64, and every refusal."""

import glob
import itertools
import os

import numpy as np
import pytest
from conftest import assert_agrees
from test_onnx import make

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import linattn.onnxruntime  # noqa: E402
from linattn import reference  # noqa: E402

try:
    linattn.onnxruntime.library()
except ImportError as error:
    pytestmark = pytest.mark.skip(reason=str(error))

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
LINEAR = ("query", "key", "value", "past_state", "decay", "beta")
CONV = ("input", "weight", "bias", "past_state")


def start(model, *, ours=True, threads=2, **options):
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4
    for name, value in options.items():
        setattr(settings, name, value)
    if ours:
        contributed = not isinstance(model, str) and any(entry.domain == "com.microsoft" for entry in model.opset_import)
        linattn.onnxruntime.register(settings, contributed=contributed)
    model = model if isinstance(model, str) else model.SerializeToString()
    return ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


def wrap(nodes, inputs, outputs, domain=""):
    """A model whose inputs and outputs are float32, of any extents."""
    infos = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name, rank in values.items()]
        for values in (inputs, outputs)
    ]
    opsets = [helper.make_opsetid("", 27)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(helper.make_graph(nodes, "g", *infos), opset_imports=opsets, ir_version=10)


def one_node(op, order, ranks, given, options, *, dtype="float32", state_dtype=None, domain=""):
    """The operator between casts, since NumPy has no bfloat16."""

    def cast(name, to):
        return helper.make_node("Cast", [name], [name + "_"], to=TYPES[to])

    types = {name: dtype for name in given} | ({"past_state": state_dtype or dtype} if "past_state" in given else {})
    nodes = [cast(name, types[name]) for name in given]
    names = [name + "_" if name in given else "" for name in order]
    nodes.append(helper.make_node(op, names, ["o", "s"], domain=domain, **options))
    nodes += [cast("o", "float32"), cast("s", "float32")]
    rank = ranks["past_state"]
    return wrap(nodes, {name: ranks[name] for name in given}, {"o_": 3, "s_": rank}, domain)


def linear_attention(given, options, **kwargs):
    ranks = dict.fromkeys(LINEAR, 3) | {"past_state": 4}
    return one_node("LinearAttention", LINEAR, ranks, given, options, **kwargs)


def causal_conv(given, options, **kwargs):
    ranks = dict.fromkeys(CONV, 3) | {"bias": 1}
    return one_node("CausalConvWithState", CONV, ranks, given, options, **kwargs)


def rounded(operands, dtype, state_dtype=None):
    """float32 numbers that the types can hold."""
    import ml_dtypes

    types = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
    own = {name: types[dtype] for name in operands} | {"past_state": types[state_dtype or dtype]}
    return {name: array.astype(own[name]).astype(np.float32) for name, array in operands.items()}


def check_linear(rng, rule, *, dtype="float32", state_dtype=None, domain="", session=None, scale=0.0, **shape):
    operands, options = make(rng, rule, **shape)
    operands, options = rounded(operands, dtype, state_dtype), dict(options, scale=scale)
    session = session or start(linear_attention(operands, options, dtype=dtype, state_dtype=state_dtype, domain=domain))
    got = session.run(None, operands)
    expected = reference.onnx_linear_attention(**operands, **options)
    state = (state_dtype or dtype) if "past_state" in operands else dtype
    assert_agrees(got[0], expected[0], dtype)
    assert_agrees(got[1], expected[1], max((dtype, state), key=["float32", "float16", "bfloat16"].index))
    return operands, options, session, got


def standard_cases():
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data/node")
    found = glob.glob(f"{folder}/test_linear_attention_*") + glob.glob(f"{folder}/test_causal_conv_with_state_*")
    return sorted(path for path in found if not path.endswith("_expanded"))


def test_all_standard_cases_are_here():
    assert len(standard_cases()) == 27


@pytest.mark.parametrize("path", standard_cases(), ids=os.path.basename)
def test_standard_case(path, tmp_path):
    """The model file as it is. The operator is still there when the model runs: its body is not."""
    optimized = str(tmp_path / "optimized.onnx")
    session = start(f"{path}/model.onnx", optimized_model_filepath=optimized)
    assert {node.op_type for node in onnx.load(optimized).graph.node} <= {"LinearAttention", "CausalConvWithState"}

    def load(kind):
        files = sorted(glob.glob(f"{path}/test_data_set_0/{kind}_*.pb"))
        return [numpy_helper.to_array(onnx.load_tensor(file)) for file in files]

    names = [value.name for value in session.get_inputs()]
    for got, expected in zip(session.run(None, dict(zip(names, load("input")))), load("output")):
        assert got.dtype == expected.dtype
        assert_agrees(got, expected)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_one_session_takes_all_shapes(rng, rule):
    """Batch, length, head sizes: all are read from the operands."""
    session = None
    sizes = [(2, 7, 8, 6), (1, 1, 8, 6), (3, 40, 5, 3), (1, 0, 8, 6), (0, 4, 8, 6), (1, 70, 64, 64), (1, 33, 128, 128)]
    for B, T, dk, dv in sizes:
        _, _, session, _ = check_linear(rng, rule, B=B, T=T, dk=dk, dv=dv, session=session)


@pytest.mark.parametrize("rule, channels, shared, past", [
    (rule, *flags) for rule in ("gated", "gated_delta") for flags in itertools.product([True, False], repeat=3)
])  # fmt: skip
def test_operands(rng, rule, channels, shared, past):
    check_linear(rng, rule, channels=channels, shared=shared, past=past)


@pytest.mark.parametrize("state_dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(rng, dtype, state_dtype):
    check_linear(rng, "gated_delta", T=20, dk=16, dv=16, dtype=dtype, state_dtype=state_dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", ["linear", "gated", "delta"])
def test_dtypes_of_rules(rng, rule, dtype):
    check_linear(rng, rule, dtype=dtype, past=False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("scale", [0.3, -2.0, 128**-0.5, 0.125])
def test_scale(rng, scale, dtype):
    check_linear(rng, "gated", scale=scale, dtype=dtype)


@pytest.mark.parametrize("rule, channels", [(rule, c) for rule in ("linear", "gated", "delta", "gated_delta") for c in (True, False)])
@pytest.mark.parametrize("size", [64, 128])
def test_common_head_sizes(rng, size, rule, channels):
    check_linear(rng, rule, channels=channels, T=20, dk=size, dv=size)


def test_bound_in_place(rng):
    """One buffer for both states: what a program that decodes binds."""
    operands, options = make(rng, "gated_delta")
    expected = reference.onnx_linear_attention(**operands, **options)
    node = helper.make_node("LinearAttention", list(operands), ["o", "s"], **options)
    session = start(wrap([node], {name: array.ndim for name, array in operands.items()}, {"o": 3, "s": 4}))
    binding = session.io_binding()
    values = {name: ort.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in operands.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("s", values["past_state"])
    binding.bind_output("o")
    session.run_with_iobinding(binding)
    assert_agrees(binding.get_outputs()[1].numpy(), expected[0], "float32")
    assert_agrees(values["past_state"].numpy(), expected[1], "float32")


@pytest.mark.parametrize("rule", ["gated", "delta", "gated_delta"])
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("shape", [{}, {"channels": False}, {"channels": False, "Hkv": 4}], ids=["channels", "heads", "own"])
def test_steps(rng, shape, size, rule):
    """Single tokens, which have kernels of their own, have the bits of a few in one call."""
    operands, _, session, (o, state) = check_linear(rng, rule, T=3, dk=size, dv=size, **shape)
    past = operands.pop("past_state")
    for t in range(3):
        step = {name: array[:, t : t + 1] for name, array in operands.items()}
        token, past = session.run(None, step | {"past_state": past})
        np.testing.assert_array_equal(token[:, 0], o[:, t])
    np.testing.assert_array_equal(past, state)


@pytest.mark.parametrize("Hq, Hkv", [(6, 1), (6, 3), (1, 1)])
def test_heads(rng, Hq, Hkv):
    check_linear(rng, "gated_delta", Hq=Hq, Hkv=Hkv)


def test_contrib_operator(rng):
    """com.microsoft's, against our reference and against its own kernel, with fewer key heads as well."""
    operands, options, ours, got = check_linear(rng, "gated_delta", domain="com.microsoft", T=20, dk=16, dv=16)
    model = linear_attention(operands, options, domain="com.microsoft")
    for mine, theirs in zip(got, start(model, ours=False).run(None, operands)):
        assert_agrees(mine, theirs)
    operands["key"] = np.ascontiguousarray(operands["key"][..., :16])
    got = ours.run(None, operands)
    expected = reference.onnx_linear_attention(**dict(operands, key=np.tile(operands["key"], 2)), **options)
    for mine, theirs in zip(got, expected):
        assert_agrees(mine, theirs, "float32")


def test_fusions_of_onnx_runtime(rng):
    """Its own operators of com.microsoft, which fusions put into models that do not import that domain."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["gate"]), helper.make_node("Mul", ["x", "gate"], ["y"]),
        helper.make_node("LinearAttention", ["y", "y", "y"], ["o", "state"], q_num_heads=2, kv_num_heads=2, update_rule="linear"),
    ]  # fmt: skip
    session = start(wrap(nodes, {"x": 3}, {"o": 3}))
    x = rng.standard_normal((1, 5, 8)).astype(np.float32)
    y = x / (1 + np.exp(-x))
    expected = reference.onnx_linear_attention(y, y, y, q_num_heads=2, kv_num_heads=2, update_rule="linear")[0]
    assert_agrees(session.run(None, {"x": x})[0], expected, "float32")


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
def test_causal_conv(rng, width, domain):
    for dtype, activation, bias, past in itertools.product(
        ["float32", "float16", "bfloat16"], ["none", "silu"], [True, False], [True, False]
    ):
        if dtype == "bfloat16" and bias != past:
            continue
        operands = dict(input=rng.standard_normal((2, 5, 9)), weight=rng.standard_normal((5, 1, width)))
        if bias:
            operands["bias"] = rng.standard_normal(5)
        if past:
            operands["past_state"] = rng.standard_normal((2, 5, width - 1))
        operands = rounded(operands, dtype)
        session = start(causal_conv(operands, dict(activation=activation), dtype=dtype, domain=domain))
        for T in (9, 1, 0):
            operands["input"] = np.ascontiguousarray(operands["input"][..., :T])
            expected = reference.onnx_causal_conv_with_state(**operands, activation=activation)
            for got, exact in zip(session.run(None, operands), expected):
                assert_agrees(got, exact, dtype)


def test_same_bits(rng):
    """For any number of threads, and for a sequence alone."""
    operands, options = make(rng, "gated_delta", B=3, T=50, dk=16, dv=16)
    model = linear_attention(operands, options)
    first = start(model, threads=1).run(None, operands)
    for session in (start(model, threads=2), start(model, threads=5)):
        for _ in range(3):
            for one, other in zip(session.run(None, operands), first):
                np.testing.assert_array_equal(one, other)
    alone = session.run(None, {name: array[1:2] for name, array in operands.items()})
    for one, other in zip(alone, first):
        np.testing.assert_array_equal(one[0], other[1])


def test_states_between_nodes(rng):
    """Two nodes in a row: the second one's state is the first one's memory, and types are known in between."""
    operands, options = make(rng, "gated_delta")
    nodes = [
        helper.make_node("LinearAttention", [*operands], ["o1", "s1"], **options),
        helper.make_node("LinearAttention", [name if name != "past_state" else "s1" for name in operands], ["o2", "s2"], **options),
        helper.make_node("Add", ["o1", "o2"], ["o"]),
    ]
    session = start(wrap(nodes, {name: array.ndim for name, array in operands.items()}, {"o": 3, "s2": 4}))
    o1, s1 = reference.onnx_linear_attention(**operands, **options)
    o2, s2 = reference.onnx_linear_attention(**dict(operands, past_state=s1), **options)
    got = session.run(None, operands)
    assert_agrees(got[0], o1 + o2, "float32")
    assert_agrees(got[1], s2, "float32")


def test_inferred_shapes():
    """What ONNX Runtime knows of the results before the model runs."""
    options = dict(q_num_heads=4, kv_num_heads=2, update_rule="linear")
    node = helper.make_node("LinearAttention", ["q", "k", "v"], ["o", "s"], **options)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", "t", size])
        for name, size in (("q", 32), ("k", 16), ("v", 12))
    ]
    # No types of the results in the model: they are inferred.
    outputs = [onnx.ValueInfoProto(name=name) for name in ("o", "s")]
    graph = helper.make_graph([node], "g", inputs, outputs)
    session = start(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 27)], ir_version=10))
    assert [(out.type, out.shape) for out in session.get_outputs()] == [
        ("tensor(float)", ["b", "t", 24]),
        ("tensor(float)", ["b", 2, 8, 6]),
    ]


def hybrid_model(rng, size=16, heads=2):
    """Short convolution, gated delta rule and softmax attention, each with its projection, in one graph."""
    width = 3 * size

    def weight(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32), name)

    weights = [weight("w_qkv", size, width), weight("w_gates", size, 2 * heads), weight("w_out", size, size),
               weight("w_soft", size, width), weight("w_conv", width, 1, 4), weight("b_conv", width),
               numpy_helper.from_array(np.array([size] * 3, np.int64), "thirds"),
               numpy_helper.from_array(np.array([heads] * 2, np.int64), "halves")]  # fmt: skip
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w_qkv"], ["qkv"]),
        node("Transpose", ["qkv"], ["channels"], perm=[0, 2, 1]),
        node("CausalConvWithState", ["channels", "w_conv", "b_conv", "conv_past"], ["mixed", "conv_present"], activation="silu"),
        node("Transpose", ["mixed"], ["tokens"], perm=[0, 2, 1]),
        node("Split", ["tokens", "thirds"], ["q", "k_", "v"], axis=2),
        node("LpNormalization", ["k_"], ["k"], axis=2, p=2),
        node("MatMul", ["x", "w_gates"], ["gates"]),
        node("Split", ["gates", "halves"], ["g_", "b_"], axis=2),
        node("Softplus", ["g_"], ["g__"]),
        node("Neg", ["g__"], ["g"]),
        node("Sigmoid", ["b_"], ["b"]),
        node("LinearAttention", ["q", "k", "v", "past", "g", "b"], ["o", "present"], q_num_heads=heads, kv_num_heads=heads),
        node("MatMul", ["o", "w_out"], ["projected"]),
        node("Add", ["x", "projected"], ["h"]),
        node("MatMul", ["h", "w_soft"], ["soft"]),
        node("Split", ["soft", "thirds"], ["sq", "sk", "sv"], axis=2),
        node("Attention", ["sq", "sk", "sv"], ["so"], is_causal=1, q_num_heads=heads, kv_num_heads=heads),
        node("Add", ["h", "so"], ["y"]),
    ]
    inputs = {"x": 3, "conv_past": 3, "past": 4}
    model = wrap(nodes, inputs, {"y": 3, "h": 3, "conv_present": 3, "present": 4})
    model.graph.initializer.extend(weights)
    return model


def test_hybrid_model(rng):
    """Whole, beside ONNX Runtime alone; and its recurrent part token by token, from the states it returns."""
    model = hybrid_model(rng)
    ours, alone = start(model), start(model, ours=False)
    B, T, size, heads = 2, 19, 16, 2
    feeds = dict(
        x=rng.standard_normal((B, T, size)).astype(np.float32),
        conv_past=np.zeros((B, 3 * size, 3), np.float32),
        past=np.zeros((B, heads, size // heads, size // heads), np.float32),
    )
    whole = ours.run(None, feeds)
    for got, expected in zip(whole, alone.run(None, feeds)):
        assert_agrees(got, expected)
    steps, feeds = [], dict(feeds)
    x = feeds.pop("x")
    for t in range(T):
        _, h, feeds["conv_past"], feeds["past"] = ours.run(None, dict(feeds, x=x[:, t : t + 1]))
        steps.append(h)
    assert_agrees(np.concatenate(steps, 1), whole[1])
    assert_agrees(feeds["conv_past"], whole[2])
    assert_agrees(feeds["past"], whole[3])


ERRORS = [
    (dict(q_num_heads=0), "expected q_num_heads to be positive, but got 0"),
    (dict(q_num_heads=None), "expected the attribute q_num_heads, but got none"),
    (dict(q_num_heads=3), "expected q_num_heads and kv_num_heads to divide one another, but got 3 and 2"),
    (dict(update_rule="deltas"), "expected update_rule to be linear, gated, delta or gated_delta, but got 'deltas'"),
    (dict(scale=float("inf")), "expected scale to be finite, but got inf"),
    (dict(query=(2, 7)), r"expected query to be packed, \[B, T, H·D\], but got 2x7"),
    (dict(query=(2, 7, 30)), "expected the last size of query to be a multiple of q_num_heads, 4, but got 30"),
    (dict(key=(2, 7, 20)), "expected the last size of key to be 2 heads of 8, or a divisor of their number, but got 20"),
    (dict(key=(2, 6, 16)), "expected query and key to have the same sequence length, but got 7 and 6"),
    (dict(value=(1, 7, 12)), "expected query and value to have the same batch size, but got 2 and 1"),
    (dict(value=(2, 7, 13)), "expected the last size of value to be a multiple of kv_num_heads, 2, but got 13"),
    (dict(past_state=(2, 2, 6, 8)), "expected past_state to be 2x2x8x6, but got 2x2x6x8"),
    (dict(past_state=(2, 2, 8)), r"expected past_state to be \[B, H_kv, d_k, d_v\], but got 2x2x8"),
    (dict(decay=None), "expected decay with update_rule gated_delta, but got none"),
    (dict(decay=(2, 7, 3)), "expected the last size of decay to be kv_num_heads, 2, or kv_num_heads·d_k, 16, but got 3"),
    (dict(beta=None), "expected beta with update_rule gated_delta, but got none"),
    (dict(beta=(2, 7, 4)), "expected the last size of beta to be kv_num_heads, 2, or 1, but got 4"),
    (dict(update_rule="linear"), "expected decay only with update_rule gated or gated_delta, but got linear"),
    (dict(state_window=2), "expected state_window to be 0, but got 2"),
]


def run_changed(build, operands, options, changes):
    for name, change in changes.items():
        if isinstance(change, tuple):
            operands[name] = np.zeros(change, np.float32)
        elif change is None:
            (operands if name in operands else options).pop(name)
        else:
            options[name] = change
    model = build(operands, options)
    for value in model.graph.input:
        rank = operands[value.name].ndim
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, [None] * rank))
    start(model).run(None, operands)


@pytest.mark.parametrize("changes, message", ERRORS, ids=[message[:40] for _, message in ERRORS])
def test_errors(rng, changes, message):
    operands, options = make(rng, "gated_delta")
    with pytest.raises(Exception, match=message):
        run_changed(linear_attention, operands, options, changes)


CONV_ERRORS = [
    (dict(activation="relu"), "expected activation to be none, silu or swish, but got 'relu'"),
    (dict(input=(2, 5)), r"expected input to be \[B, C, T\], but got 2x5"),
    (dict(weight=(5, 2, 4)), "expected weight to be 5x1x4, but got 5x2x4"),
    (dict(weight=(5, 1, 0)), "expected weight to have at least one number per channel, but got 5x1x0"),
    (dict(bias=(4,)), "expected bias to be 5, but got 4"),
    (dict(past_state=(2, 5, 4)), "expected past_state to be 2x5x3, but got 2x5x4"),
    (dict(ndim=2), "expected ndim to be 1, but got 2"),
    (dict(state_window=2), "expected state_window to be 0, but got 2"),
]


@pytest.mark.parametrize("changes, message", CONV_ERRORS, ids=[message[:40] for _, message in CONV_ERRORS])
def test_conv_errors(rng, changes, message):
    operands = dict(input=(2, 5, 9), weight=(5, 1, 4), bias=(5,), past_state=(2, 5, 3))
    with pytest.raises(Exception, match=message):
        run_changed(causal_conv, {name: np.zeros(shape, np.float32) for name, shape in operands.items()}, {}, changes)


@pytest.mark.parametrize("types, message", [
    (("float32", "float16"), "expected key to have the element type of query, f32, but got f16"),
    (("double", "double"), "expected query to be of float, float16 or bfloat16, but got ONNX type 11"),
])  # fmt: skip
def test_wrong_types(types, message):
    to = TYPES | {"double": TensorProto.DOUBLE}
    nodes = [helper.make_node("Cast", [x], [x + "_"], to=to[types[x != "q"]]) for x in "qkv"]
    options = dict(q_num_heads=1, kv_num_heads=1, update_rule="linear")
    nodes.append(helper.make_node("LinearAttention", ["q_", "k_", "v_"], ["o", "s"], **options))
    nodes.append(helper.make_node("Cast", ["o"], ["o_"], to=TensorProto.FLOAT))
    x = np.zeros((1, 3, 4), np.float32)
    with pytest.raises(Exception, match=message):
        start(wrap(nodes, dict.fromkeys("qkv", 3), {"o_": 3})).run(None, dict.fromkeys("qkv", x))


def test_register_refuses():
    with pytest.raises(TypeError, match=r"session_options: expected onnxruntime.SessionOptions, but got dict"):
        linattn.onnxruntime.register({})
    with pytest.raises(TypeError, match="contributed: expected a bool, but got int"):
        linattn.onnxruntime.register(ort.SessionOptions(), contributed=1)


def test_register_twice():
    """The options of two sessions, and one of them without an operator of ours."""
    for _ in range(2):
        start(wrap([helper.make_node("Relu", ["x"], ["y"])], {"x": 1}, {"y": 1})).run(None, {"x": np.ones(3, np.float32)})


def test_missing_library(monkeypatch):
    monkeypatch.setenv("LINATTN_ONNXRUNTIME_LIBRARY", "/no/such.so")
    with pytest.raises(ImportError, match="expected /no/such.so to be linattn's library for ONNX Runtime"):
        linattn.onnxruntime.library()
