"""Gradients of `linattn.selective_scan`, by their sweep and by scans, beside autograd in float64."""

import numpy as np
import pytest

import linattn

torch = pytest.importorskip("torch")

OFFSETS = np.array([0, 33, 33, 40, 75])
NAMES = ("u", "delta", "a", "b", "c", "h", "dy", "dh")
CASES = {
    "plain": {},
    "batches": {"B": 2, "T": 33, "C": 70, "N": 3},
    "wide": {"C": 200},
    "groups": {"B": 2, "C": 40, "G": 2, "T": 40},
    "packed": {"offsets": OFFSETS},
    "packed-reverse": {"offsets": OFFSETS, "reverse": True, "G": 2, "C": 6},
    "one": {"T": 1, "N": 1, "C": 1},
}


def make_operands(B=1, T=75, C=20, N=4, G=None, offsets=None, reverse=False):
    rng = np.random.default_rng(0)
    states = B if offsets is None else len(offsets) - 1
    projection = (B, T, N) if G is None else (B, G, T, N)
    shapes = {"u": (B, T, C), "delta": (B, T, C), "a": (C, N), "b": projection, "c": projection, "h": (states, C, N)}
    shapes |= {"dy": (B, T, C), "dh": (states, C, N)}
    operands = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return operands | {"delta": 0.5 * rng.random((B, T, C)), "a": -0.5 - rng.random((C, N))}


def oracle(operands, offsets=None, reverse=False):
    x = {name: torch.tensor(value, requires_grad=True) for name, value in operands.items()}
    repeats = x["u"].shape[2] // (x["b"].shape[1] if x["b"].dim() == 4 else 1)
    b, c = (y.repeat_interleave(repeats, 1).transpose(1, 2) if y.dim() == 4 else y[:, :, None] for y in (x["b"], x["c"]))
    bounds = [(n, 0, x["u"].shape[1]) for n in range(len(x["h"]))] if offsets is None else zip(range(len(x["h"])), offsets, offsets[1:])
    total = 0
    for n, first, last in bounds:
        h, row = x["h"][n], n if offsets is None else 0
        for t in reversed(range(first, last)) if reverse else range(first, last):
            step = x["delta"][row, t, :, None]
            h = (step * x["a"]).exp() * h + step * x["u"][row, t, :, None] * b[row, t]
            total = total + (x["dy"][row, t] * (c[row, t] * h).sum(-1)).sum()
        total = total + (x["dh"][n] * h).sum()
    return [y.numpy() for y in torch.autograd.grad(total, [x[name] for name in NAMES[:6]])]


def text_of(operands, dtype, offsets=None, reverse=False):
    """The scan on tensors whose token count is open."""
    types = {}
    for name, x in operands.items():
        sizes = list(map(str, x.shape))
        if name in ("u", "delta", "b", "c", "dy"):
            sizes[-2] = "?"
        types[name] = f"tensor<{'x'.join(sizes)}x{dtype}>"
    packed = offsets is not None
    taken = [types[name] for name in NAMES[:5]] + ["tensor<?xi64>"] * packed + [types["u"], types["h"]]
    return f"""
func.func @f({", ".join(f"%{name}: {types[name]}" for name in NAMES[:6])}{", %n: tensor<?xi64>" * packed}) -> ({types["u"]}, {types["h"]}) {{
  %c1 = arith.constant 1 : index
  %T = tensor.dim %u, %c1 : {types["u"]}
  %e = tensor.empty(%T) : {types["u"]}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c{" cu_seqlens(%n)" * packed} into(%e) init(%h) {"{reverse}" * reverse}
    : ({", ".join(taken)}) -> ({types["u"]}, {types["h"]})
  return %r#0, %r#1 : {types["u"]}, {types["h"]}
}}"""


def run(case, dtype="f32", num_threads=None, **options):
    shape = CASES[case]
    operands = make_operands(**shape)
    kernel = linattn.compile(
        text_of(operands, dtype, shape.get("offsets"), shape.get("reverse", False)),
        differentiate=list(range(6)), trusted=True, **options,
    )  # fmt: skip
    arrays = [operands[name].astype({"f32": np.float32, "f64": np.float64}[dtype]) for name in NAMES]
    if "offsets" in shape:
        arrays.insert(6, OFFSETS)
    return kernel(*arrays, num_threads=num_threads)


def assert_close(got, case, bound):
    shape = CASES[case]
    expected = oracle(make_operands(**shape), shape.get("offsets"), shape.get("reverse", False))
    for name, mine, other in zip(NAMES, got, expected):
        assert mine.shape == other.shape, name
        error = np.abs(mine - other).max() / np.abs(other).max()
        assert error <= bound, f"{name}: {error}"


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    assert_close(run(case), case, 2e-6)


@pytest.mark.parametrize("case", ["groups", "packed-reverse"])
def test_double(case):
    assert_close(run(case, "f64"), case, 1e-13)


@pytest.mark.parametrize("case", ["wide", "packed"])
def test_same_bits_for_any_number_of_threads(case):
    for one, two in zip(run(case, num_threads=1), run(case, num_threads=2)):
        assert np.array_equal(one, two)


def test_same_bits_in_a_batch():
    """A sequence has the gradients that it has alone; a's are summed over the sequences."""
    operands = make_operands(B=2, T=40, C=20)
    kernel = linattn.compile(text_of(operands, "f32"), differentiate=list(range(6)), trusted=True)
    alone = linattn.compile(text_of(make_operands(T=40, C=20), "f32"), differentiate=list(range(6)), trusted=True)
    arrays = [operands[name].astype(np.float32) for name in NAMES]
    both = kernel(*arrays)
    for n in range(2):
        one = alone(*(x if name == "a" else x[n : n + 1] for name, x in zip(NAMES, arrays)))
        for name, mine, other in zip(NAMES, both, one):
            assert name == "a" or np.array_equal(mine[n : n + 1], other), name
