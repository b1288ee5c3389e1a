"""Random projections: their bits, and what they estimate."""

import numpy as np
import pytest

import linattn


def philox(counter, key):
    """Philox4x32-10 on plain integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & 0xFFFFFFFF, first >> 32 ^ c[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_iid_is_box_muller_of_philox():
    seed, draw, w = 0x123456789ABCDEF0, 3, []
    for pair in range(21):
        x = philox((pair, 0, draw << 1, 0), (seed & 0xFFFFFFFF, seed >> 32))
        first, second = (x[1] << 32 | x[0]) >> 11, (x[3] << 32 | x[2]) >> 11
        radius = np.sqrt(-2 * np.log((first + 1) * 2.0**-53))
        angle = 2 * np.pi * (second * 2.0**-53)
        w += [radius * np.cos(angle), radius * np.sin(angle)]
    out = linattn.random_projection(6, 7, kind="iid", seed=seed, draw=draw, dtype=np.float64)
    np.testing.assert_allclose(out, np.reshape(w, (6, 7)), rtol=1e-13, atol=1e-14)


def test_shapes_and_dtypes():
    assert linattn.random_projection(5, 4).shape == (5, 4)
    assert linattn.random_projection(5, 4).dtype == np.float32
    w = linattn.random_projection(5, 4, heads=3, dtype=np.float64)
    assert w.shape == (3, 5, 4) and w.dtype == np.float64
    np.testing.assert_array_equal(w[0].astype(np.float32), linattn.random_projection(5, 4))


def test_redraw():
    w = linattn.RandomProjection(8, 4, seed=1)
    first = w.matrix
    assert w.next() is first
    second = w.redraw()
    assert (first != second).any() and w.matrix is second and w.draw == 1
    np.testing.assert_array_equal(second, linattn.random_projection(8, 4, seed=1, draw=1))
    always = linattn.RandomProjection(8, 4, seed=1, redraw=True)
    np.testing.assert_array_equal(always.next(), second)
    assert (always.next() != second).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(m=0, d=4), "expected features from 1 to 1048576, but got 0"),
        (dict(m=4, d=-1), "d: expected an integer from 0"),
        (dict(m=4, d=4, seed=-1), "seed: expected an integer from 0"),
        (dict(m=4, d=4, kind="qmc"), "kind: expected one of iid, orthogonal, but got 'qmc'"),
        (dict(m=4, d=4, norms="unit"), "norms: expected one of chi, sqrt_d, but got 'unit'"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        linattn.random_projection(**arguments)
    with pytest.raises(TypeError, match="m: expected an integer, but got float"):
        linattn.random_projection(4.0, 4)


# ----------------------------------------------------------------------------
# The kernels that the features estimate, by their formulas: in float64, with NumPy
# ----------------------------------------------------------------------------

FEATURES = (32, 64, 128, 256, 512)


def favor(x, w):
    return np.exp(x @ w.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(w))


def estimate(q, k, v, w):
    """softmax(QKᵀ/√d) V by FAVOR+."""
    root = q.shape[-1] ** -0.25
    a = favor(q * root, w) @ favor(k * root, w).T
    return a @ v / a.sum(-1, keepdims=True)


def softmax_attention(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


def row_cosine(x, y):
    return ((x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))).mean()


def inputs(seed, n=64, d=32):
    rng = np.random.default_rng(seed)
    q, k = 0.3 * rng.standard_normal((2, n, d))
    return q, k, rng.standard_normal((n, d))


def mean_cosines(projection, seeds=20):
    cosines = np.zeros(len(FEATURES))
    for seed in range(seeds):
        q, k, v = inputs(seed)
        true = softmax_attention(q, k, v)
        for i, m in enumerate(FEATURES):
            cosines[i] += row_cosine(estimate(q, k, v, projection(m, 32, seed)), true) / seeds
    return cosines


def draw(kind):
    return lambda m, d, seed: linattn.random_projection(m, d, kind=kind, seed=seed, dtype=np.float64)


def test_accuracy_of_favor():
    expected = np.array([0.9900, 0.9944, 0.9974, 0.9986, 0.9992])
    orthogonal, iid = (mean_cosines(draw(kind)) for kind in ("orthogonal", "iid"))
    np.testing.assert_allclose(orthogonal, expected, atol=0.002)
    assert (iid <= orthogonal).all() and iid[-1] > 0.998, iid


def test_trap_of_wrong_norms():
    """Rows without the norms of N(0, I) converge, but to another kernel."""
    right = mean_cosines(draw("orthogonal"), seeds=5)

    def unit(m, d, seed):
        w = draw("orthogonal")(m, d, seed)
        return w / np.linalg.norm(w, axis=-1, keepdims=True)

    def scaled(m, d, seed):
        return draw("iid")(m, d, seed) / np.sqrt(d)

    for wrong in (unit, scaled):
        cosines = mean_cosines(wrong, seeds=5)
        assert cosines[-1] < 0.995 < right[-1] - 0.003, cosines
        # More features do not help.
        assert np.ptp(cosines) < 5e-4, cosines


def kernel_estimates(kind, m, draws=400, d=16):
    """Estimates of e^{q·k} over draws of W, and what they estimate."""
    rng = np.random.default_rng(1)
    q, k = 0.5 * rng.standard_normal((2, 48, d)) / np.sqrt(d)
    true = np.exp(np.einsum("nd,nd->n", q, k))
    estimates = np.array([
        np.einsum("nm,nm->n", favor(q, w), favor(k, w))
        for w in (
            linattn.random_projection(m, d, kind=kind, seed=5, draw=i, dtype=np.float64) for i in range(draws)
        )
    ])  # fmt: skip
    return estimates, true


@pytest.mark.parametrize("kind", ["iid", "orthogonal"])
def test_favor_is_unbiased(kind):
    estimates, true = kernel_estimates(kind, 32, draws=2000)
    deviation = (estimates.mean(0) - true) / (estimates.std(0) / np.sqrt(len(estimates)))
    assert np.abs(deviation).max() < 4.5, deviation


def test_variance_halves_and_orthogonal_is_not_worse():
    variance = {}
    for kind in ("iid", "orthogonal"):
        for m in FEATURES:
            estimates, true = kernel_estimates(kind, m)
            variance[kind, m] = (((estimates - true) / true) ** 2).mean()
    for kind in ("iid", "orthogonal"):
        for m in FEATURES[1:]:
            ratio = variance[kind, m // 2] / variance[kind, m]
            assert 1.7 < ratio < 2.35, (kind, m, ratio)
    for m in FEATURES:
        assert variance["orthogonal", m] <= variance["iid", m]
