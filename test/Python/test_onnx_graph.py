"""Whole ONNX models: every operator against the standard's reference, a hybrid model against ONNX
Runtime, and what is refused."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import assert_agrees

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import linattn  # noqa: E402
import linattn.onnx  # noqa: E402

OPSET = 24
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def model_of(nodes, inputs, outputs, constants=(), opset=OPSET, domains=()):
    """A model; inputs are name -> (type, dimensions), constants name -> array."""
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "graph", infos, [], tensors)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    known = {info.name: info for info in onnx.shape_inference.infer_shapes(model).graph.value_info}
    model.graph.output.extend(known.get(name, helper.make_tensor_value_info(name, FLOAT, [])) for name in outputs)
    return model


def run(model, *arrays):
    results = linattn.compile(linattn.onnx.to_mlir(model))(*arrays)
    return results if isinstance(results, tuple) else (results,)


def check(model, *arrays):
    """Against the standard's own evaluator: shapes, types and numbers."""
    names = [info.name for info in model.graph.input]
    expected = ReferenceEvaluator(model).run(None, dict(zip(names, arrays)))
    for output, got, other in zip(model.graph.output, run(model, *arrays), expected, strict=True):
        other = np.asarray(other)
        assert got.shape == other.shape and got.dtype == other.dtype, (output.name, got.shape, other.shape, got.dtype)
        np.testing.assert_allclose(np.asarray(got, np.float64), other.astype(np.float64), rtol=2e-5, atol=2e-6, err_msg=output.name)


class Graph:
    """Nodes and constants as they come; each result of interest is an output."""

    def __init__(self):
        self.nodes, self.constants, self.outputs = [], {}, []

    def add(self, op, *inputs, outputs=1, keep=True, **attributes):
        names = [self.constant(x) if not isinstance(x, str) else x for x in inputs]
        results = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, results, name=f"n{len(self.nodes)}", **attributes))
        self.outputs += results if keep else []
        return results[0] if outputs == 1 else results

    def constant(self, array):
        array = np.asarray(array)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def model(self, inputs, **options):
        return model_of(self.nodes, inputs, self.outputs, self.constants, **options)


UNARY = "Abs Exp Sqrt Tanh Erf Sin Cos Floor Ceil Sigmoid Swish Softplus Gelu Relu Reciprocal Log Neg Identity".split()


def test_arithmetic(rng):
    g = Graph()
    for op in UNARY:
        g.add(op, "p")
    g.add("Swish", "x", alpha=1.5)
    g.add("Gelu", "x", approximate="tanh")
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        g.add(op, "x", "row")
        g.add(op, "column", "x")
    for exponent in (2.0, 0.5, 3.0, np.int64(2)):
        g.add("Pow", "p", exponent)
    g.add("Max", "x", "row", 0.25)
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        g.add(op, "x", "row")
    g.add("Where", g.add("Not", g.add("Less", "x", 0.0)), "x", "row")
    g.add("Where", g.add("And", g.add("Less", "x", 0.5), g.add("Or", g.add("Less", -0.5, "x"), g.add("Less", "row", "x"))), 1.0, "column")
    g.add("Clip", "x", -0.5, 0.5)
    g.add("Cast", g.add("Cast", "x", to=INT), to=FLOAT)
    g.add("Cast", g.add("Greater", "x", "row", keep=False), to=FLOAT)
    g.add("Cast", g.add("Mul", g.add("Cast", "x", to=TensorProto.FLOAT16), np.float16(3)), to=FLOAT)
    inputs = {"x": (FLOAT, ["B", "T", 5]), "p": (FLOAT, ["B", "T", 5]), "row": (FLOAT, [5]), "column": (FLOAT, ["T", 1])}
    x = rng.standard_normal((2, 3, 5)).astype(np.float32)
    check(g.model(inputs), x, np.abs(x) + 0.1, *(rng.standard_normal(shape).astype(np.float32) for shape in ((5,), (3, 1))))


def test_shapes(rng):
    """Sizes come from Shape, through arithmetic on them."""
    g = Graph()
    sizes = g.add("Shape", "x")
    batch = g.add("Gather", sizes, np.array([0]), keep=False)
    time = g.add("Slice", sizes, [1], [2], keep=False)
    g.add("Reshape", "x", g.add("Concat", batch, time, np.array([3, 4]), axis=0, keep=False))
    flat = g.add("Reshape", "x", np.array([-1, 12]))
    g.add("Reshape", flat, g.add("Concat", batch, np.array([-1, 12]), axis=0, keep=False))
    g.add("Reshape", "x", np.array([0, 0, -1, 2]))
    g.add("Reshape", "x", g.add("Concat", g.add("Mul", batch, time, keep=False), np.array([12]), axis=0, keep=False))
    g.add("Flatten", "x", axis=2)
    g.add("Squeeze", g.add("Unsqueeze", "x", np.array([0, -1])), np.array([0]))
    g.add("Transpose", "x", perm=[0, 2, 1])
    g.add("Transpose", "x")
    g.add("Slice", "x", [1], [np.iinfo(np.int64).max], [1])
    g.add("Slice", "x", [-2, 1], [1000, -1], [1, 2], [1, 2])
    g.add("Slice", "x", [0], g.add("Div", time, np.array([2]), keep=False), [1])
    g.add("Concat", "x", "y", "x", axis=1)
    g.add("Split", "x", outputs=3, axis=2, num_outputs=3)
    g.add("Split", "x", np.array([7, 5]), outputs=2, axis=-1)
    g.add("Gather", "x", np.array([[1, -2]]), axis=1)
    g.add("Gather", "x", np.int64(3), axis=2)
    g.add("Gather", rng.standard_normal((7, 4)), "i")
    g.add("Expand", "column", g.add("Concat", time, np.array([3]), axis=0, keep=False))
    g.add("ConstantOfShape", g.add("Concat", batch, np.array([3]), axis=0, keep=False), value=numpy_helper.from_array(np.array([2.5], np.float32)))
    g.add("Range", np.int64(0), g.add("Squeeze", time, keep=False), np.int64(1))
    g.add("Add", g.add("Size", "x"), np.int64(1))
    g.add("Constant", value_floats=[1.0, 2.0])
    inputs = {"x": (FLOAT, ["B", "T", 12]), "y": (FLOAT, ["B", "S", 12]), "column": (FLOAT, ["T", 1]), "i": (INT, ["B", "T"])}
    for b, t, s in ((2, 5, 3), (1, 4, 1)):
        x, y, column = (rng.standard_normal(shape).astype(np.float32) for shape in ((b, t, 12), (b, s, 12), (t, 1)))
        check(g.model(inputs), x, y, column, rng.integers(-7, 7, (b, t)))


def test_products_and_norms(rng):
    g = Graph()
    g.add("MatMul", "x", rng.standard_normal((12, 5)))
    g.add("MatMul", "x", rng.standard_normal(12))
    g.add("MatMul", rng.standard_normal((5, 3, 5)), g.add("Transpose", "x", perm=[1, 0, 2], keep=False))
    g.add("MatMul", "x", g.add("Transpose", "x", perm=[0, 2, 1], keep=False))
    flat = g.add("Reshape", "x", np.array([-1, 12]), keep=False)
    g.add("Gemm", flat, rng.standard_normal((5, 12)), rng.standard_normal(5), transB=1, alpha=0.5, beta=2.0)
    g.add("Gemm", rng.standard_normal((12, 4)), flat, transA=1, transB=1)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare"):
        g.add(op, "x", np.array([-1]))
        g.add(op, "x", np.array([0, 1]), keepdims=0)
    g.add("ReduceMean", "x", keepdims=0)
    g.add("Softmax", "x")
    g.add("Softmax", "x", axis=1)
    g.add("LayerNormalization", "x", np.arange(12.0), np.ones(12), axis=-1, epsilon=1e-3)
    g.add("RMSNormalization", "x", np.arange(12.0), axis=-1)
    g.add("LpNormalization", "x", axis=2)
    x = rng.standard_normal((5, 5, 12)).astype(np.float32)
    check(g.model({"x": (FLOAT, ["B", "T", 12])}), x)


class Hybrid(Graph):
    """A small language model: an embedding, a layer of a short convolution and a gated delta rule, one of
    softmax attention with rotary positions, feed-forward nets, RMS norms, and logits."""

    D, HEADS, SIZE, WORDS = 32, 4, 8, 50

    def __init__(self, rng, layers=("gated_delta", "softmax")):
        super().__init__()
        self.rng, self.inputs, self.states = rng, {"words": (INT, ["B", "T"])}, []
        x = self.add("Gather", self.weight(self.WORDS, self.D), "words", keep=False)
        for number, layer in enumerate(layers):
            mixer = self.softmax if layer == "softmax" else self.recurrent
            x = self.residual(x, lambda h: mixer(h, number, layer))
            x = self.residual(x, self.feed_forward)
        self.outputs = [self.op("MatMul", self.norm(x), self.weight(self.D, self.WORDS)), *self.states]

    def op(self, op, *inputs, **attributes):
        return self.add(op, *inputs, keep=False, **attributes)

    def weight(self, *shape):
        return self.constant(self.rng.standard_normal(shape) / np.sqrt(shape[0]))

    def norm(self, x):
        return self.op("RMSNormalization", x, self.constant(1 + 0.1 * self.rng.standard_normal(self.D)), axis=-1)

    def residual(self, x, layer):
        return self.op("Add", x, layer(self.norm(x)))

    def project(self, x, size=None):
        return self.op("MatMul", x, self.weight(self.D, size or self.D))

    def feed_forward(self, x):
        up, gate = self.add("Split", self.project(x, 4 * self.D), outputs=2, keep=False, axis=-1, num_outputs=2)
        return self.op("MatMul", self.op("Mul", up, self.op("Mul", gate, self.op("Sigmoid", gate))), self.weight(2 * self.D, self.D))

    def recurrent(self, x, number, rule):
        self.inputs[f"conv{number}"] = (FLOAT, ["B", 3 * self.D, 3])
        self.inputs[f"state{number}"] = (FLOAT, ["B", self.HEADS, self.SIZE, self.SIZE])
        packed = self.op("Transpose", self.project(x, 3 * self.D), perm=[0, 2, 1])
        packed, conv = self.add(
            "CausalConvWithState", packed, self.weight(3 * self.D, 1, 4), "", f"conv{number}", outputs=2, keep=False, activation="silu"
        )  # fmt: skip
        packed = self.op("Transpose", packed, perm=[0, 2, 1])
        q, k, v = self.add("Split", packed, outputs=3, keep=False, axis=-1, num_outputs=3)
        split = np.array([0, 0, self.HEADS, self.SIZE])
        k = self.op("Reshape", self.op("LpNormalization", self.op("Reshape", k, split), axis=-1, p=2), np.array([0, 0, self.D]))
        beta = self.op("Sigmoid", self.project(x, self.HEADS))
        operands = [q, k, v, f"state{number}", "", beta]
        if rule == "gated_delta":
            operands[4] = self.op("Neg", self.op("Softplus", self.project(x, self.HEADS)))
        o, state = self.add(
            "LinearAttention", *operands, outputs=2, keep=False, q_num_heads=self.HEADS, kv_num_heads=self.HEADS, update_rule=rule
        )  # fmt: skip
        self.states += [conv, state]
        return self.op("MatMul", self.op("Mul", o, self.op("Sigmoid", self.project(x))), self.weight(self.D, self.D))

    def rotate(self, x, cos, sin):
        first, second = self.add("Split", x, outputs=2, keep=False, axis=-1, num_outputs=2)
        turned = self.op("Concat", self.op("Neg", second), first, axis=-1)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))

    def softmax(self, x, number, layer):
        time = self.op("Gather", self.op("Shape", x), np.int64(1))
        places = self.op("Range", np.int64(0), time, np.int64(1))
        column = self.op("Unsqueeze", places, np.array([1]))
        angles = self.op("Mul", self.op("Cast", column, to=FLOAT), 10.0 ** -np.tile(np.arange(self.SIZE // 2), 2))
        cos, sin = self.op("Cos", angles), self.op("Sin", angles)
        heads = [
            self.op("Transpose", self.op("Reshape", self.project(x), np.array([0, 0, self.HEADS, -1])), perm=[0, 2, 1, 3])
            for _ in range(3)
        ]
        q, k = (self.rotate(h, cos, sin) for h in heads[:2])
        scores = self.op("Div", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), np.sqrt(self.SIZE))
        seen = self.op("LessOrEqual", self.op("Unsqueeze", places, np.array([0])), column)
        weights = self.op("Softmax", self.op("Where", seen, scores, -np.inf), axis=-1)
        o = self.op("Transpose", self.op("MatMul", weights, heads[2]), perm=[0, 2, 1, 3])
        return self.op("MatMul", self.op("Reshape", o, np.array([0, 0, self.D])), self.weight(self.D, self.D))

    def model(self):
        return model_of(self.nodes, self.inputs, self.outputs, self.constants, opset=27)

    def blank(self, batch):
        shapes = [[batch, *dims[1:]] for _, dims in list(self.inputs.values())[1:]]
        return [np.zeros(shape, np.float32) for shape in shapes]


def test_hybrid_model(rng):
    """A prompt of two sequences, then tokens one by one, through one kernel with open sizes."""
    ort = pytest.importorskip("onnxruntime")
    hybrid = Hybrid(rng)
    model = hybrid.model()
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    kernel = linattn.compile(linattn.onnx.to_mlir(model))
    states = hybrid.blank(2)
    for length in (37, 1, 5):
        words = rng.integers(0, hybrid.WORDS, (2, length))
        expected = session.run(None, dict(zip(hybrid.inputs, [words, *states])))
        got = kernel(words, *states)
        for ours, theirs in zip(got, expected, strict=True):
            assert_agrees(ours, theirs, "float32")
        states = list(got[1:])


def test_sizes_that_must_agree_are_checked(rng):
    """Names of sizes that come twice, and sums of operands."""
    g = Graph()
    g.add("Concat", "x", "y", axis=1)
    g.add("Concat", "x", "y", axis=0)
    model = g.model({"x": (FLOAT, ["B", "T"]), "y": (FLOAT, ["B", "T"])})
    kernel = linattn.compile(linattn.onnx.to_mlir(model))
    x = rng.standard_normal((2, 3)).astype(np.float32)
    assert kernel(x, x)[0].shape == (2, 6)
    for other in ((2, 4), (2, 2), (3, 3), (1, 3)):
        with pytest.raises(ValueError, match="expected"):
            kernel(x, np.zeros(other, np.float32))


def test_indices_outside_of_a_table_give_nan(rng):
    g = Graph()
    g.add("Gather", rng.standard_normal((7, 4)), "i")
    (got,) = run(g.model({"i": (INT, ["N"])}), np.array([0, 7, -7, -8, 2**40]))
    assert np.isnan(got).all(1).tolist() == [False, True, False, True, True]


REFUSED = {
    "Conv 'n0': Conv is not covered": ("Conv", ("x", np.zeros((3, 4, 1))), {}),
    "Reshape 'n0': expected sizes that follow from constants": ("Reshape", ("x", "i"), {}),
    "Reshape 'n0': expected sizes whose product": ("Reshape", ("x", np.array([-1, 7])), {}),
    "Slice 'n0': expected steps of 1 and more, but got -1": ("Slice", ("x", [5], [0], [1], [-1]), {}),
    "Gather 'n0': expected a table of floating point": ("Gather", (np.arange(5), "i"), {}),
    "Add 'n0': expected operands that broadcast, but got sizes": ("Add", ("x", np.zeros(5)), {}),
    "LpNormalization 'n0': expected p = 2, but got 1": ("LpNormalization", ("x",), {"p": 1}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_name_operator_and_node(message):
    op, inputs, attributes = REFUSED[message]
    g = Graph()
    g.add(op, *inputs, **attributes)
    model = g.model({"x": (FLOAT, ["B", "T", 4]), "i": (INT, [3])})
    with pytest.raises(linattn.onnx.NotCovered) as error:
        linattn.onnx.to_mlir(model)
    assert str(error.value).startswith(message)


def test_the_list_of_the_documentation_is_complete():
    page = (pathlib.Path(__file__).parents[2] / "docs/Runtime.md").read_text()
    section = page[page.index("## ONNX models") : page.index("## The file")]
    compared = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}
    assert [name for name in linattn.onnx.COVERED if name not in compared and f" {name}" not in section] == []


def test_files_without_a_model_are_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08none")
    with pytest.raises(ValueError, match="expected a model of ONNX"):
        linattn.onnx.to_mlir(path)
    with pytest.raises(OSError):
        linattn.onnx.to_mlir(tmp_path / "missing.onnx")
    with pytest.raises(TypeError, match="expected an onnx.ModelProto or a path, but got int"):
        linattn.onnx.to_mlir(3)


def test_command_line(rng, tmp_path):
    """A model becomes a module, a bundle and a header by the programs."""
    pytest.importorskip("linattn_runner")
    path = tmp_path / "model.onnx"
    hybrid = Hybrid(rng, ("gated_delta",))
    onnx.save(hybrid.model(), path)
    text = subprocess.run(
        [sys.executable, "-m", "linattn", "import", path, "--entry=step"], capture_output=True, text=True, check=True
    ).stdout
    assert text.startswith("func.func @step(%words: tensor<?x?xi64>, %conv0: tensor<?x96x3xf32>")
    program = pathlib.Path(linattn._linattn.__file__).resolve().parents[2] / "bin/linattn-compile"
    if not program.exists():
        pytest.skip("the tools are not built beside the Python module")
    command = [program, path, f"--python={sys.executable}", "--target=cpu", "--chip=x86-64-v3", "-o", tmp_path / "model.lab"]
    subprocess.run(command, check=True, capture_output=True)
    import linattn_runner

    arrays = [rng.integers(0, hybrid.WORDS, (1, 5)), *hybrid.blank(1)]
    bundled = linattn_runner.load(str(tmp_path / "model.lab"))(*arrays)
    for got, expected in zip(bundled, run(hybrid.model(), *arrays), strict=True):
        assert_agrees(got, expected, "float32")
    onnx.save(model_of([helper.make_node("Det", ["x"], ["y"], name="det")], {"x": (FLOAT, [2, 2])}, ["y"]), path)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "Det 'det': Det is not covered" in done.stderr and "cannot be imported by" in done.stderr
