"""Gradients that are loops over chunks beside autograd of the plain recurrence in float64."""

import gradient_oracle as oracle
import numpy as np
import pytest

import linattn

torch = pytest.importorskip("torch")

K, V = 16, 32
OFFSETS = np.array([0, 5, 5, 21, 53])
BOUND = {np.float32: 1e-5, np.float64: 1e-12}
CASES = {
    "gated-delta": ("decay beta", "delta"),
    "delta": ("beta", "delta"),
    "decay": ("decay", "add"),
    "gla": ("channels", "add"),
    "kda": ("channels beta", "delta"),
}
# Of both rules that decay: per token and per channel.
DELTAS = ("decay beta", "channels beta")


def make_operands(gates, *, tokens=53, packed=False, batch=2, floats=np.float32):
    """q, k, v, the gates and S, in the op's order."""
    rng = np.random.default_rng(0)
    batch, states = (1, len(OFFSETS) - 1) if packed else (batch, batch)
    operands = {n: rng.standard_normal((batch, 2, tokens, size)) for n, size in zip("qkv", (K, K, V))}
    operands["k"] /= np.linalg.norm(operands["k"], axis=-1, keepdims=True)
    if "decay" in gates:
        operands["decay"] = -rng.random((batch, 2, tokens))
        operands["decay"][:, :, 3::7] = -300
    if "channels" in gates:
        operands["decay"] = -rng.random((batch, 2, tokens, K))
        operands["decay"][:, :, 3::7, ::3] = -300
        operands["decay"][:, :, 12] = -300
    if "beta" in gates:
        operands["beta"] = rng.random((batch, 2, tokens))
    operands["S"] = rng.standard_normal((states, 2, K, V))
    operands = {name: x.astype(floats) for name, x in operands.items()}
    if packed:
        state = operands.pop("S")
        operands |= {"cu_seqlens": OFFSETS, "S": state}
    return operands


def compile_gradient(operands, update, scale=0.3):
    dtype = "f64" if operands["q"].dtype == np.float64 else "f32"
    indices = [i for i, x in enumerate(operands.values()) if x.dtype.kind == "f"]
    text = oracle.text_of(operands, dtype, update=update, scale=scale)
    kernel = linattn.compile(text, differentiate=indices, trusted=True)
    assert "loop over chunks of 16 tokens" in str(kernel.explain())
    return kernel


def make_cotangents(operands):
    rng = np.random.default_rng(1)
    return [rng.standard_normal(operands[name].shape).astype(operands["q"].dtype) for name in ("v", "S")]


def assert_gradients(operands, update):
    floats = operands["q"].dtype.type
    cotangents = make_cotangents(operands)
    found = compile_gradient(operands, update)(*operands.values(), *cotangents)
    wide = {n: torch.tensor(x.astype(np.float64) if x.dtype.kind == "f" else x) for n, x in operands.items()}
    names = [name for name, x in operands.items() if x.dtype.kind == "f"]
    for name in names:
        wide[name].requires_grad_()
    outputs = oracle.scan(**wide, update=update, scale=0.3)
    expected = torch.autograd.grad(
        outputs, [wide[n] for n in names], [torch.tensor(x.astype(np.float64)) for x in cotangents]
    )
    for name, mine, other in zip(names, found, expected, strict=True):
        other = other.numpy()
        error = np.abs(mine - other).max() / np.abs(other).max()
        assert error <= BOUND[floats], f"{name}: {error}"


@pytest.mark.parametrize("case", CASES)
def test_recurrence(case):
    gates, update = CASES[case]
    assert_gradients(make_operands(gates), update)


@pytest.mark.parametrize("gates", DELTAS)
def test_double(gates):
    assert_gradients(make_operands(gates, floats=np.float64), "delta")


@pytest.mark.parametrize("gates", DELTAS)
def test_packed(gates):
    assert_gradients(make_operands(gates, packed=True), "delta")


@pytest.mark.parametrize("gates", DELTAS)
def test_keys_that_are_nearly_the_same(gates):
    operands = make_operands(gates)
    keys = 1 + 1e-3 * operands["k"]
    operands["k"] = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    operands["decay"] = np.float32(-1e-3) * np.random.default_rng(2).random(operands["decay"].shape, np.float32)
    operands["beta"] = 1 - np.float32(1e-3) * operands["beta"]
    assert_gradients(operands, "delta")


@pytest.mark.parametrize("gates", DELTAS)
def test_many_tokens(gates):
    """The gradient of a decay is a sum over 4,096 tokens of differences that nearly cancel."""
    operands = make_operands(gates, tokens=4096, batch=1)
    operands["decay"] *= np.float32(1e-2)
    operands["decay"][:, :, 5::97] = -300
    assert_gradients(operands, "delta")


@pytest.mark.parametrize("gates", DELTAS)
def test_bits(gates):
    """Those of a sequence alone, for any number of threads."""
    operands = make_operands(gates, packed=True)
    alone = {name: x for name, x in operands.items() if name != "cu_seqlens"}
    kernel, single = compile_gradient(operands, "delta"), compile_gradient(alone, "delta")
    cotangents = make_cotangents(operands)
    whole = kernel(*operands.values(), *cotangents, num_threads=2)
    for mine, other in zip(whole, kernel(*operands.values(), *cotangents, num_threads=1), strict=True):
        np.testing.assert_array_equal(mine, other)
    for n, (begin, end) in enumerate(zip(OFFSETS, OFFSETS[1:])):
        part = [x[n : n + 1] if name == "S" else x[:, :, begin:end] for name, x in alone.items()]
        one = single(*part, cotangents[0][:, :, begin:end], cotangents[1][n : n + 1])
        for mine, other in zip(whole, one, strict=True):
            mine = mine[n : n + 1] if len(mine) > 1 else mine[:, :, begin:end]
            np.testing.assert_array_equal(mine, other)
