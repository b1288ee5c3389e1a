"""The selective scan with complex states, as S4D-Lin and Mamba with complex A have them."""

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import reference

B, C, S, T = 2, 12, 5, 37


def operands(rng, projections="complex", dtype=np.float32):
    normal = lambda *shape: rng.standard_normal(shape)
    shapes = {"complex": (B, S, T), "interleaved": (B, S, 2 * T), "real": (B, S, T), "grouped": (B, 3, S, T), "fixed": (C, S)}
    pair = [normal(*shapes[projections]) for _ in range(4)]
    if projections in ("complex", "grouped", "fixed"):
        pair = [pair[0] + 1j * pair[1], pair[2] + 1j * pair[3]]
    wide = dtype == np.float64
    narrow = {True: np.complex128 if wide else np.complex64, False: dtype}
    return {
        "u": normal(B, C, T).astype(dtype), "delta": (normal(B, C, T) / 2).astype(dtype),
        "A": (-np.exp(normal(C, S)) + 6j * normal(C, S)).astype(narrow[True]),
        "B": pair[0].astype(narrow[np.iscomplexobj(pair[0])]), "C": pair[1].astype(narrow[np.iscomplexobj(pair[1])]),
        "D": normal(C).astype(dtype), "z": normal(B, C, T).astype(dtype), "delta_softplus": True,
    }  # fmt: skip


def check(given, dtype=None, **more):
    o, state = linattn.selective_scan(**given, **more, return_last_state=True)
    expected, expected_state = reference.selective_scan(**given, **more, return_last_state=True)
    assert_agrees(np.asarray(o), expected, dtype)
    assert np.iscomplexobj(np.asarray(state)) and state.shape == (B, C, S)
    assert abs(np.asarray(state) - expected_state).max() <= 5e-6 * abs(expected_state).max()
    return o, state


def by_hand(u, delta, A, B, C):
    """One channel, one state, from the definition."""
    h, o = 0, []
    for t in range(len(u)):
        h = np.exp(delta[t] * A) * h + delta[t] * B[t] * u[t]
        o.append(2 * (C[t] * h).real)
    return np.array(o)


def test_definition(rng):
    u, delta, *parts = rng.standard_normal((6, T))
    A, b, c = np.array([[-0.3 + 2j]]), parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    delta = abs(delta)
    o = reference.selective_scan(u[None, None], delta[None, None], A, b[None, None], c[None, None])
    np.testing.assert_allclose(o[0, 0], by_hand(u, delta, A[0, 0], b, c), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("projections", ["complex", "interleaved", "real", "grouped", "fixed"])
def test_projections(rng, projections):
    check(operands(rng, projections))


def test_interleaved_is_complex(rng):
    given = operands(rng, "interleaved")
    o = linattn.selective_scan(**given)
    for name in "BC":
        x = given[name]
        given[name] = np.ascontiguousarray(x[..., ::2] + 1j * x[..., 1::2]).astype(np.complex64)
    np.testing.assert_array_equal(linattn.selective_scan(**given), o)


def test_other_dtypes(rng):
    o, state = check(operands(rng, dtype=np.float64))
    assert o.dtype == np.float64 and state.dtype == np.complex128
    o, state = check(operands(rng, "interleaved", dtype=np.float16), "float16")
    assert o.dtype == np.float16 and state.dtype == np.complex64


def test_state_goes_in_and_out(rng):
    given = operands(rng)
    whole, end = check(given)
    part = lambda begin, stop: {
        name: x[..., begin:stop] if isinstance(x, np.ndarray) and x.ndim == 3 else x for name, x in given.items()
    }  # fmt: skip
    first, state = linattn.selective_scan(**part(0, 20), return_last_state=True)
    rest, last = check(part(20, T), initial_state=state)
    np.testing.assert_array_equal(np.concatenate([first, rest], axis=-1), whole)
    np.testing.assert_array_equal(last, end)


def test_on_an_emulated_gpu(rng):
    given = operands(rng, "interleaved")
    o = linattn.selective_scan(**given, target="nvvm-emulated")
    assert_agrees(o, reference.selective_scan(**given))


def test_torch(rng):
    torch = pytest.importorskip("torch")
    given = operands(rng)
    tensors = {name: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
    expected, end = linattn.selective_scan(**given, return_last_state=True)
    tensors["A"] = tensors["A"].conj().resolve_conj().conj()  # with the bit
    o, state = linattn.selective_scan(**tensors, return_last_state=True)
    assert tensors["A"].is_conj() and state.dtype == torch.complex64
    np.testing.assert_array_equal(o.numpy(), expected)
    np.testing.assert_array_equal(state.numpy(), end)


def test_errors(rng):
    given = operands(rng)
    with pytest.raises(TypeError, match="B: expected real numbers with a real A, but got complex64"):
        linattn.selective_scan(**{**given, "A": given["A"].real})
    with pytest.raises(TypeError, match="initial_state: expected complex numbers with a complex A, but got float32"):
        linattn.selective_scan(**given, initial_state=np.zeros((B, C, S), np.float32))
    with pytest.raises(ValueError, match="B"):
        linattn.selective_scan(**{**given, "B": given["B"][..., :-1]})
