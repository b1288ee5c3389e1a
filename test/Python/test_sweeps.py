"""`linattn.sweep`, both reads of its state, beside the recurrence in float64."""

import numpy as np
import pytest

import linattn

OFFSETS = np.array([0, 7, 7, 40, 53])


def recurrence(q, k, v, x, S, decay=None, a=None, b=None, readout="inclusive", reverse=False, scale=1.0, decay_writes=False):
    """Token by token, [B, H, T, D]."""
    T = k.shape[2]
    o, p, S = np.zeros_like(v), np.zeros_like(k), S.copy()
    for t in reversed(range(T)) if reverse else range(T):
        before = S
        if decay is not None:
            g = decay[None, :, None] if decay.ndim == 1 else decay[:, :, t]
            factor = np.exp(g if g.ndim == 3 else g[..., None])[..., None]
            S = factor * S
        S = S + (factor if decay_writes else 1.0) * k[:, :, t, :, None] * v[:, :, t, None, :]
        if a is not None:
            r = np.einsum("bhkv,bhk->bhv", before, a[:, :, t])
            S = S + b[:, :, t, :, None] * r[:, :, None, :]
        read = S if readout == "inclusive" else before
        o[:, :, t] = scale * np.einsum("bhkv,bhk->bhv", read, q[:, :, t])
        p[:, :, t] = scale * np.einsum("bhkv,bhv->bhk", read, x[:, :, t])
    return o, p, S


def oracle(operands, offsets=None, **options):
    if offsets is None:
        return recurrence(**operands, **options)
    parts = []
    for n, (first, last) in enumerate(zip(offsets, offsets[1:])):
        cut = {name: x[:, :, first:last] if x.ndim > 2 else x for name, x in operands.items()}
        cut["S"] = operands["S"][n : n + 1]
        parts.append(recurrence(**cut, **options))
    o, p, S = zip(*parts)
    return np.concatenate(o, 2), np.concatenate(p, 2), np.concatenate(S)


def make_operands(B=1, H=2, T=53, K=20, V=40, decay="", transition=False, states=None):
    rng = np.random.default_rng(0)
    shapes = {"q": (B, H, T, K), "k": (B, H, T, K), "v": (B, H, T, V), "x": (B, H, T, V)}
    operands = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    if decay:
        sizes = {"B": B, "H": H, "T": T, "K": K}
        operands["decay"] = -0.2 * rng.random([sizes[letter] for letter in decay])
    if transition:
        for name in "ab":
            rows = rng.standard_normal((B, H, T, K))
            operands[name] = 0.7 * rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    operands["S"] = rng.standard_normal((states or B, H, K, V))
    return operands


def text_of(operands, dtype, offsets=None, readout="inclusive", reverse=False, scale=1.0, decay_writes=False, form=None):
    """The op on tensors whose token and batch sizes are open."""

    def type_of(x, name):
        if name == "S":
            return f"tensor<?x{x.shape[1]}x{x.shape[2]}x{x.shape[3]}x{'f64' if dtype == 'f64' else 'f32'}>"
        sizes = [f"{x.shape[0]}"] if x.ndim == 1 else ["?", str(x.shape[1]), "?", *map(str, x.shape[3:])]
        return f"tensor<{'x'.join(sizes)}x{dtype}>"

    types = {name: type_of(x, name) for name, x in operands.items()}
    order = ["q", "k", "v", *(n for n in ("decay", "a", "b") if n in operands), "x"]
    arguments = [f"%{name}: {types[name]}" for name in order]
    clauses = "".join(f" {name}(%{name})" for name in ("decay", "a", "b") if name in operands) + " value_query(%x)"
    operand_types = [types[name] for name in order]
    if offsets is not None:
        arguments.append("%n: tensor<?xi64>")
        clauses += " cu_seqlens(%n)"
        operand_types.append("tensor<?xi64>")
    attributes = [f"scale = {scale}"] + ["reverse"] * reverse + ["decay_writes"] * decay_writes
    if form:
        attributes.append(f"config = #linattn.config<form = {form}>")
    results = f"{types['v']}, {types['k']}, {types['S']}"
    return f"""
func.func @f({", ".join(arguments)}, %S: {types["S"]}) -> ({results}) {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %B = tensor.dim %k, %c0 : {types["k"]}
  %T = tensor.dim %k, %c2 : {types["k"]}
  %o = tensor.empty(%B, %T) : {types["v"]}
  %p = tensor.empty(%B, %T) : {types["k"]}
  %r:3 = linattn.sweep %q, %k, %v{clauses} readout({readout}) into(%o, %p) init(%S) {{{", ".join(attributes)}}}
    : ({", ".join(operand_types)}, {results}) -> ({results})
  return %r#0, %r#1, %r#2 : {results}
}}"""


def run(operands, dtype="f32", offsets=None, num_threads=None, **options):
    floats = {"f32": np.float32, "f64": np.float64}[dtype]
    kernel = linattn.compile(text_of(operands, dtype, offsets=offsets, **options), trusted=True)
    names = ["q", "k", "v", *(n for n in ("decay", "a", "b") if n in operands), "x"]
    arrays = [operands[name].astype(floats) for name in names]
    arrays += [] if offsets is None else [offsets]
    return kernel(*arrays, operands["S"].astype(floats), num_threads=num_threads), kernel


def assert_close(got, expected, bound):
    for mine, other in zip(got, expected):
        assert np.abs(mine - other).max() <= bound * np.abs(other).max()


CASES = {
    "linear": ({}, {}),
    "linear-reverse": ({"K": 64, "V": 64}, {"reverse": True, "scale": 0.125}),
    "heads": ({"decay": "H", "B": 2, "T": 16}, {"readout": "exclusive"}),
    "scalar": ({"decay": "BHT", "V": 5}, {"readout": "exclusive", "reverse": True}),
    "channel": ({"decay": "BHTK"}, {"readout": "exclusive", "reverse": True}),
    "channel-inclusive": ({"decay": "BHTK", "K": 64, "V": 64}, {"scale": 0.5}),
    "packed": ({"decay": "BHT", "states": 4}, {"offsets": OFFSETS, "reverse": True}),
    "heads-writes": ({"decay": "H", "T": 40}, {"readout": "exclusive", "reverse": True, "decay_writes": True}),
    "scalar-writes": ({"decay": "BHT", "K": 64}, {"readout": "exclusive", "reverse": True, "decay_writes": True}),
    "channel-writes": ({"decay": "BHTK", "states": 4}, {"offsets": OFFSETS, "scale": 0.5, "decay_writes": True}),
    "transition": ({"decay": "BHT", "transition": True}, {"readout": "exclusive", "reverse": True}),
    "transition-inclusive": ({"transition": True, "K": 33}, {"scale": 0.5}),
    "transition-packed": ({"decay": "H", "transition": True, "states": 4}, {"offsets": OFFSETS, "readout": "exclusive"}),
    "transition-channel": ({"decay": "BHTK", "transition": True}, {"readout": "exclusive"}),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["chunk, chunk = 16", "chunk, chunk = 40", "token"])
def test_reads(case, form):
    """In chunks both reads are one kernel, token by token scans of their own."""
    shape, options = CASES[case]
    operands = make_operands(**shape)
    got, kernel = run(operands, form=form, **options)
    assert_close(got, oracle(operands, **options), 2e-6)


@pytest.mark.parametrize("case", ["scalar", "transition", "channel"])
def test_double(case):
    shape, options = CASES[case]
    operands = make_operands(**shape)
    got, _ = run(operands, "f64", form="chunk, chunk = 16", **options)
    assert_close(got, oracle(operands, **options), 1e-13)


@pytest.mark.parametrize("case", ["scalar", "transition", "channel"])
def test_same_bits_for_any_number_of_threads(case):
    shape, options = CASES[case]
    operands = make_operands(**{**shape, "H": 1})
    one, two = (run(operands, num_threads=count, **options)[0] for count in (1, 2))
    for x, y in zip(one, two):
        assert np.array_equal(x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", ["linear", "scalar", "transition", "channel"])
@pytest.mark.parametrize("name", ["k", "v", "x"])
def test_nan_stays_behind_its_token(case, name):
    """Within a chunk, too: what tokens write does not reach those that were read before."""
    shape, options = CASES[case]
    operands, options = make_operands(**shape), {**options, "reverse": False}
    expected, _ = run(operands, form="chunk, chunk = 16", **options)
    operands[name][:, :, 21] = np.nan
    got, _ = run(operands, form="chunk, chunk = 16", **options)
    for mine, other in zip(got[:2], expected[:2]):
        assert np.array_equal(mine[:, :, :21], other[:, :, :21])
    assert np.isnan(got[1][:, :, 21 if name == "x" else 22 :]).any()
