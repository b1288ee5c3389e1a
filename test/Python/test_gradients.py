"""Gradients of scans beside autograd of the plain recurrence in float64."""

import gradient_oracle as oracle
import numpy as np
import pytest

import linattn

pytestmark = pytest.mark.optimized(3)

torch = pytest.importorskip("torch")

B, T, K, V = 2, 37, 8, 5
BOUND = {"f32": 1e-5, "f64": 1e-12}
FORMS = {"token": "form = token", "state-tile": "form = state_tile", "chunk": "form = chunk, chunk = 16"}
OFFSETS = np.array([0, 5, 5, 20, 37])


def make_operands(gates, dtype, *, normalize=None, packed=False, strong=False, heads=(2, 2, 2), feature_map="", **_):
    """q, k, v, the gates, S and z, in the op's order."""
    rng = np.random.default_rng(0)
    H = max(heads[1:])
    batch, states = (1, len(OFFSETS) - 1) if packed else (B, B)
    shapes = {
        "H": (H,), "BHT": (batch, H, T), "BHTK": (batch, H, T, K), "BHTV": (batch, H, T, V), "HK": (H, K),
    }  # fmt: skip
    operands = {
        name: rng.standard_normal((batch, count, T, size)) for name, count, size in zip("qkv", heads, (K, K, V))
    }
    for name, layout in gates.items():
        x = rng.random(shapes.get(layout, (batch, T)))
        if name in ("decay", "value_decay"):
            x = -2 * x
            if strong:
                x[:, :, ::7] = -300
        elif name in ("a", "b", "bonus"):
            x = 0.6 * x - 0.3
        elif name == "input_gate":
            x = 4 * x - 3
        operands[name] = x < 0.8 if name == "mask" else x
    if packed:
        operands["cu_seqlens"] = OFFSETS
    operands["S"] = rng.standard_normal((states, H, K, V))
    if normalize:
        operands["z"] = rng.random((states, H, K))
    if "input_gate" in gates or (normalize and feature_map == "exp"):
        operands["m"] = rng.standard_normal((states, H)) - 1
    floats = {"f32": np.float32, "f64": np.float64}[dtype]
    return {name: x.astype(floats) if x.dtype.kind == "f" else x for name, x in operands.items()}


def differentiate(operands, dtype, form=None, chosen=None, has_state=True, **options):
    """The gradients of linattn and of the oracle, by name."""
    options = {name: x for name, x in options.items() if name not in ("packed", "strong", "heads")}
    names = [name for name, x in operands.items() if x.dtype.kind == "f" and name in (chosen or operands)]
    indices = [list(operands).index(name) for name in names]
    text = oracle.text_of(operands, dtype, config=FORMS.get(form), **options)
    kernel = linattn.compile(text, differentiate=indices, trusted=True)

    wide = {n: torch.tensor(x.astype(np.float64) if x.dtype.kind == "f" else x) for n, x in operands.items()}
    for name in names:
        wide[name].requires_grad_()
    outputs = oracle.scan(**wide, **options)
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(o.shape).astype(operands["q"].dtype) for o in outputs]
    if not has_state:
        cotangents = cotangents[:1] + [np.zeros_like(x) for x in cotangents[1:]]
    expected = torch.autograd.grad(
        outputs, [wide[n] for n in names], [torch.tensor(x.astype(np.float64)) for x in cotangents]
    )
    got = kernel(*operands.values(), *cotangents)
    got = got if isinstance(got, tuple) else (got,)
    return {name: (g, e.numpy()) for name, g, e in zip(names, got, expected)}


def assert_gradients(pairs, bound):
    for name, (got, expected) in pairs.items():
        assert got.shape == expected.shape, name
        error = np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-30)
        assert error <= bound, f"{name}: {error}"


CASES = {
    "linear": ({}, {}),
    "retnet": ({"decay": "H"}, {}),
    "scalar": ({"decay": "BHT"}, {}),
    "channel": ({"decay": "BHTK"}, {}),
    "values": ({"decay": "BHT", "value_decay": "BHTV"}, {"reverse": True}),
    "strong": ({"decay": "BHTK"}, {"strong": True}),
    "rwkv6": ({"decay": "BHTK", "bonus": "HK"}, {"readout": "exclusive"}),
    "exclusive-values": ({"decay": "BHTK", "value_decay": "BHTV"}, {"readout": "exclusive"}),
    "packed": ({"decay": "BHTK"}, {"packed": True}),
    "normalized": ({"decay": "BHT"}, {"feature_map": "elu1", "normalize": {"eps": 1e-6}}),
    "floor": ({"mask": ""}, {"feature_map": "relu", "normalize": {"abs_floor": 1.0}}),
    "softmax-kernel": ({}, {"feature_map": "softmax_kernel"}),
    "delta": ({"beta": "BHT"}, {"update": "delta"}),
    "gdn": ({"decay": "BHT", "beta": "BHT", "mask": ""}, {"update": "delta"}),
    "kda": ({"decay": "BHTK", "beta": "BHT"}, {"update": "delta", "packed": True}),
    "gdn2": ({"decay": "BHTK", "erase": "BHTK", "write": "BHTV"}, {"update": "delta", "strong": True}),
    "dplr": ({"decay": "BHTK", "a": "BHTK", "b": "BHTK"}, {"update": "dplr"}),
    "rwkv7-exclusive": ({"decay": "BHTK", "a": "BHTK", "b": "BHTK", "bonus": "HK"}, {"update": "dplr", "readout": "exclusive"}),
    "gqa": ({"decay": "BHTK"}, {"heads": (6, 2, 2)}),
    "gqa-normalized": ({}, {"heads": (4, 1, 2), "feature_map": "elu1", "normalize": {"eps": 1e-6}}),
    "gqa-delta": ({"decay": "H", "beta": "BHT", "mask": ""}, {"heads": (2, 2, 6), "update": "delta"}),
    "mlstm": ({"decay": "BHT", "input_gate": "BHT"}, {"normalize": {"abs_floor": 1.0}}),
    "mlstm-constant": ({"decay": "H", "input_gate": "BHT", "mask": ""}, {"normalize": {"eps": 1e-2}, "heads": (4, 1, 2), "feature_map": "elu1"}),
    "mlstm-packed": ({"input_gate": "BHT"}, {"normalize": {"eps": 1e-2, "abs_floor": 0.5}, "packed": True, "reverse": True}),
    "exp": ({"decay": "BHTK"}, {"feature_map": "exp", "normalize": {"eps": 1e-3}, "heads": (4, 2, 2)}),
    "exp-plain": ({"mask": ""}, {"feature_map": "exp", "normalize": {"floor": 1e-3}, "heads": (2, 1, 2)}),
    "oja": ({"value_decay": "BHTV", "beta": "BHT"}, {"update": "oja"}),
    "oja-gated": ({"decay": "BHT", "value_decay": "BHTV", "beta": "BHT", "mask": ""}, {"update": "oja", "readout": "exclusive", "heads": (4, 1, 2)}),
    "columns": ({"decay": "BHTK", "beta": "BHTV"}, {"update": "delta"}),
    "columns-grouped": ({"beta": "BHTV", "erase": "BHTK", "mask": ""}, {"update": "delta", "heads": (4, 1, 2)}),
    "snapshots": ({"decay": "BHT"}, {"every": 8}),
    "snapshots-normalized": ({"decay": "H", "input_gate": "BHT"}, {"normalize": {"eps": 1e-2}, "heads": (4, 2, 1), "feature_map": "elu1", "every": 5}),
    "snapshots-delta": ({"decay": "BHTK", "beta": "BHT"}, {"update": "delta", "heads": (2, 2, 2), "every": 37}),
    "dplr-after": ({"a": "BHTK", "b": "BHTK"}, {"update": "dplr", "transition": "after"}),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", sorted(CASES.keys() - {"scalar", "gdn", "normalized", "kda"}))
def test_recurrence(case):
    """Token by token, which compiles fastest; the cases left out run in the tests below."""
    gates, options = CASES[case]
    operands = make_operands(gates, "f32", **options)
    gradients = differentiate(operands, "f32", form="token", scale=0.3, **options)
    # m scales the state up and down again: two paths cancel (docs/Gradients.md, Checks).
    cancelled = [gradients.pop(name) for name in ("decay", "m") if case == "snapshots-normalized"]
    assert_gradients(dict(enumerate(cancelled)), 5e-5)
    assert_gradients(gradients, BOUND["f32"])


@pytest.mark.parametrize("case", ["scalar", "normalized", "kda"])
def test_double(case):
    gates, options = CASES[case]
    operands = make_operands(gates, "f64", **options)
    assert_gradients(differentiate(operands, "f64", **options), BOUND["f64"])


@pytest.mark.parametrize(
    "form, case", [(form, "scalar") for form in FORMS] + [("chunk", case) for case in ("gdn", "kda", "dplr")]
)
def test_form(form, case):
    gates, options = CASES[case]
    operands = make_operands(gates, "f32", **options)
    assert_gradients(differentiate(operands, "f32", form=form, **options), BOUND["f32"])


def test_closed_gates():
    """Behind decays of −300 nothing is left, and the gradient of the decay is zero, not noise."""
    operands = make_operands({"decay": "BHTK"}, "f32")
    operands["decay"][:] = -300
    pairs = differentiate(operands, "f32", has_state=False)
    assert np.abs(pairs.pop("decay")[0]).max() == 0
    pairs.pop("S")
    assert_gradients(pairs, BOUND["f32"])


def gradient_of_decay(q, k, v, g, do):
    """Of the recurrence by its formula, in float64: the state once decayed times its cotangent, over the values."""
    q, k, v, g, do = (x.astype(np.float64) for x in (q, k, v, g, do))
    state, decayed = np.zeros((k.shape[1], v.shape[1])), []
    for t in range(len(g)):
        decayed.append(np.exp(g[t])[:, None] * state)
        state = decayed[-1] + np.outer(k[t], v[t])
    cotangent, found = np.zeros_like(state), np.empty_like(g)
    for t in reversed(range(len(g))):
        cotangent += np.outer(q[t], do[t])
        found[t] = (decayed[t] * cotangent).sum(1)
        cotangent *= np.exp(g[t])[:, None]
    return found


@pytest.mark.parametrize("closed", [0, 97], ids=["open", "closed"])
def test_many_tokens(closed):
    """The sum over 16,384 tokens of differences that nearly cancel; with decays of −300 in between."""
    rng = np.random.default_rng(0)
    shapes = {"q": K, "k": K, "v": V, "decay": K}
    operands = {n: rng.standard_normal((1, 1, 16384, size)).astype(np.float32) for n, size in shapes.items()}
    operands["decay"] = -0.01 * np.abs(operands["decay"])
    if closed:
        operands["decay"][:, :, ::closed] = -300
    operands["S"] = np.zeros((1, 1, K, V), np.float32)
    kernel = linattn.compile(oracle.text_of(operands, "f32"), differentiate=[3], trusted=True)
    do = rng.standard_normal((1, 1, 16384, V)).astype(np.float32)
    found = kernel(*operands.values(), do, np.zeros_like(operands["S"]))
    expected = gradient_of_decay(*(operands[n][0, 0] for n in shapes), do[0, 0])
    assert_gradients({"decay": (found[0, 0], expected)}, BOUND["f32"])


def test_keys_that_are_nearly_the_same():
    """Steps of the delta rule that nearly undo each other, solved for chunk by chunk."""
    operands = make_operands({"decay": "BHT", "beta": "BHT"}, "f32")
    keys = 1 + 1e-3 * operands["k"]
    operands["k"] = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    operands["decay"] *= np.float32(1e-3)
    operands["beta"] = 1 - np.float32(1e-3) * operands["beta"]
    assert_gradients(differentiate(operands, "f32", form="chunk", update="delta"), BOUND["f32"])


def test_wide_rows():
    """Rows of features that fill registers and leave some over."""
    rng = np.random.default_rng(0)
    operands = {n: rng.standard_normal((1, 2, 40, size)) for n, size in zip("qkv", (20, 20, 37))}
    operands["k"] /= np.linalg.norm(operands["k"], axis=-1, keepdims=True)
    operands |= {"decay": -rng.random((1, 2, 40, 20)), "beta": rng.random((1, 2, 40)), "S": np.zeros((1, 2, 20, 37))}
    operands = {name: x.astype(np.float32) for name, x in operands.items()}
    assert_gradients(differentiate(operands, "f32", form="token", has_state=False, update="delta"), BOUND["f32"])


def test_same_bits():
    """Gradients of a batch are those of its parts, whatever the number of threads."""
    operands = make_operands({"decay": "BHTK", "beta": "BHT"}, "f32")
    text = oracle.text_of(operands, "f32", update="delta")
    kernel = linattn.compile(text, differentiate=[], trusted=True)
    rng = np.random.default_rng(1)
    operands = list(operands.values())
    operands += [rng.standard_normal(operands[i].shape).astype(np.float32) for i in (2, 5)]
    whole = kernel(*operands, num_threads=2)
    alone = kernel(*(np.ascontiguousarray(x[1:]) for x in operands), num_threads=1)
    for mine, other in zip(whole, alone):
        np.testing.assert_array_equal(mine[1:], other)


def test_packed_sequences_have_the_bits_of_each_alone():
    gates, options = CASES["kda"]
    operands = make_operands(gates, "f32", **options)
    kernel, alone = (
        linattn.compile(oracle.text_of(x, "f32", update="delta"), differentiate=[], trusted=True)
        for x in (operands, {name: x for name, x in operands.items() if name != "cu_seqlens"})
    )
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(operands[name].shape).astype(np.float32) for name in ("v", "S")]
    whole = kernel(*operands.values(), *cotangents)
    for n, (begin, end) in enumerate(zip(OFFSETS, OFFSETS[1:])):
        part = [x[n : n + 1] if name == "S" else x[:, :, begin:end] for name, x in operands.items() if name != "cu_seqlens"]
        one = alone(*part, cotangents[0][:, :, begin:end], cotangents[1][n : n + 1])
        for mine, other in zip(whole, one, strict=True):
            np.testing.assert_array_equal(mine[n : n + 1] if mine.ndim == 4 and mine.shape[0] > 1 else mine[:, :, begin:end], other)


def test_bad_operands():
    text = "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    with pytest.raises(ValueError, match="expected operands of 'f' to be from 0 to 0, but got 1"):
        linattn.compile(text, differentiate=[1])
    with pytest.raises(TypeError, match="differentiate: expected a list of integers or None, but got int"):
        linattn.compile(text, differentiate=1)
    with pytest.raises(TypeError, match="differentiate: expected integers, but got str"):
        linattn.compile(text, differentiate=["x"])
    kernel = linattn.compile(text, differentiate=[0])
    with pytest.raises(TypeError, match="'f_vjp': expected 2 arguments, but got 1"):
        kernel(np.zeros(3, np.float32))


def test_same_bits_for_any_number_of_threads():
    """Blocks of tokens depend on the sizes alone."""
    gates, options = CASES["kda"]
    operands = make_operands(gates, "f32", **options)
    text = oracle.text_of(operands, "f32", update="delta")
    kernel = linattn.compile(text, differentiate=[0, 1, 2, 3], trusted=True)
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(operands[name].shape).astype(np.float32) for name in ("v", "S")]
    one, two = (kernel(*operands.values(), *cotangents, num_threads=count) for count in (1, 2))
    for x, y in zip(one, two):
        assert np.array_equal(x, y)
