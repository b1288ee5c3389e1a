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


# ----------------------------------------------------------------------------
# S4D
# ----------------------------------------------------------------------------


def draw_s4d(rng, T=40, channels=6, states=4):
    A = -rng.uniform(0.2, 1, (channels, states)) + 1j * rng.uniform(0, 9, (channels, states))
    C = rng.standard_normal((channels, states)) + 1j * rng.standard_normal((channels, states))
    u, dt = rng.standard_normal((2, channels, T)), rng.uniform(0.01, 0.2, channels)
    D = rng.standard_normal(channels)
    return [x.astype(np.complex64 if np.iscomplexobj(x) else np.float32) for x in (u, dt, A, C, A[::-1], D)]


@pytest.mark.parametrize("method", ("zoh", "bilinear"))
def test_s4d(rng, method):
    u, dt, A, C, B, D = draw_s4d(rng)
    o, state = linattn.s4d(u, dt, A, C, B, D, method=method, return_last_state=True)
    expected, last = reference.s4d(u, dt, A, C, B, D, method=method, return_last_state=True)
    assert_agrees(o, expected)
    assert np.abs(state - last).max() <= 1e-5 * np.abs(last).max()
    first, state = linattn.s4d(u[..., :13], dt, A, C, B, D, method=method, return_last_state=True)
    rest = linattn.s4d(u[..., 13:], dt, A, C, B, D, method=method, initial_state=state)
    assert_agrees(np.concatenate([first, rest], -1), expected)
    assert_agrees(linattn.s4d(u[0], dt, A, C), reference.s4d(u[0], dt, A, C))


def test_s4d_is_its_convolution(rng):
    """As S4D is trained: the kernel 2 Re Σ C (e^{ΔA} − 1)/A e^{ΔA t}, and an FFT."""
    u, dt, A, C, _, D = draw_s4d(rng)
    z, times = A * dt[:, None], np.arange(u.shape[-1])
    kernel = 2 * (C * (np.exp(z) - 1) / A)[..., None] * np.exp(z[..., None] * times)
    spectrum = np.fft.rfft(kernel.real.sum(1), 80) * np.fft.rfft(u, 80)
    expected = np.fft.irfft(spectrum, 80)[..., :40] + D[:, None] * u
    assert_agrees(linattn.s4d(u, dt, A, C, D=D), expected)


def test_gradients_of_s4d(rng):
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(x.copy()).requires_grad_() for x in draw_s4d(rng, T=12)]
    found = torch.autograd.grad(linattn.s4d(*given).square().sum(), given)
    wide = [x.detach().to(torch.complex128 if x.is_complex() else torch.float64).requires_grad_() for x in given]
    u, dt, A, C, B, D = wide
    factor = torch.exp(dt[:, None] * A)
    h, outputs = 0, []
    for t in range(12):
        h = factor * h + (factor - 1) / A * B * u[..., t, None]
        outputs.append(2 * (C * h).real.sum(-1))
    o = torch.stack(outputs, -1) + D[:, None] * u
    for gradient, other in zip(found, torch.autograd.grad(o.square().sum(), wide)):
        assert float((gradient - other).abs().max() / other.abs().max()) <= 1e-4


def test_s4d_refuses(rng):
    u, dt, A, C, B, D = draw_s4d(rng)
    for change, message in (
        (dict(method="euler"), "method: expected one of zoh, bilinear, but got 'euler'"),
        (dict(A=A.real), "A: expected complex numbers, but got float32"),
        (dict(A=A[:2]), r"A: expected shape \(6, S\), but got \(2, 4\)"),
        (dict(C=None), "C: expected"), (dict(dt=0.1), r"dt: expected shape \(6,\), one for each channel"),
        (dict(u=[1.0]), "u: expected an array of NumPy, PyTorch or JAX, but got list"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=message):
            linattn.s4d(**{"u": u, "dt": dt, "A": A, "C": C, **change})
