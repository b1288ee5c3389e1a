"""Numbers worked out by hand: five tokens, four features, one head."""

import numpy as np
import pytest

import linattn

Q = np.array([[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]], float)
K = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0.5, 0.5]], float)
V = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0.5] * 4], float)

MODULES = [linattn, linattn.reference]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=6e-5)


@pytest.mark.parametrize("module", MODULES)
def test_elu(module):
    o, state = module.attention(Q, K, V, return_state=True)
    close(state.z[0, 0], [8, 7, 7.5, 7.5])
    close(
        state.S[0, 0],
        [[2, 3, 3, 2], [2.5, 1.5, 2.5, 1.5], [1.75, 2.75, 1.75, 2.75], [2.75, 1.75, 1.75, 2.75]],
    )
    expected = [
        [0.2802, 0.3242, 0.3022, 0.3022],
        [0.3252, 0.2670, 0.3058, 0.2864],
        [0.2905, 0.3095, 0.3095, 0.2905],
        [0.3, 0.3, 0.2778, 0.3222],
        [0.3022] * 4,
    ]
    close(o, expected)
    close(module.attention(Q, K, V), expected)


@pytest.mark.parametrize("module", MODULES)
def test_elu_numerators(module):
    close(
        module.attention(Q, K, V, normalize=False),
        [
            [12.75, 14.75, 13.75, 13.75],
            [16.75, 13.75, 15.75, 14.75],
            [15.25, 16.25, 16.25, 15.25],
            [13.5, 13.5, 12.5, 14.5],
            [13.75] * 4,
        ],
    )


def test_weights():
    close(
        linattn.weights(Q, K),
        [
            [0.1758, 0.2198, 0.1978, 0.1978, 0.2088],
            [0.2330, 0.1748, 0.2136, 0.1942, 0.1845],
            [0.1905, 0.2095, 0.2095, 0.1905, 0.2],
            [0.2, 0.2, 0.1778, 0.2222, 0.2],
            [0.1978, 0.1978, 0.1978, 0.1978, 0.2088],
        ],
    )
    close(
        linattn.weights(Q, K, normalize=False),
        [
            [8, 10, 9, 9, 9.5],
            [12, 9, 11, 10, 9.5],
            [10, 11, 11, 10, 10.5],
            [9, 9, 8, 10, 9],
            [9, 9, 9, 9, 9.5],
        ],
    )
    close(
        linattn.weights(Q, K, causal=True).sum(axis=0), [2.3317, 1.2201, 0.7638, 0.4756, 0.2088]
    )


@pytest.mark.parametrize("module", MODULES)
def test_softmax(module):
    close(
        module.attention(Q, K, V, weights="softmax"),
        [
            [0.2254, 0.4135, 0.2964, 0.2964],
            [0.4602, 0.1475, 0.3018, 0.2058],
            [0.2495, 0.3481, 0.3481, 0.2495],
            [0.2854, 0.2854, 0.2106, 0.4089],
            [0.3108] * 4,
        ],
    )
    close(
        linattn.weights(Q, K, weights="softmax")[1], [0.4026, 0.0898, 0.2442, 0.1481, 0.1153]
    )


@pytest.mark.parametrize("module", MODULES)
def test_causal(module):
    close(
        module.attention(Q, K, V, causal=True),
        [
            [1, 0, 0, 0],
            [0.5714, 0.4286, 0, 0],
            [0.3125, 0.3438, 0.3438, 0],
            [0.25, 0.25, 0.2222, 0.2778],
            [0.3022] * 4,
        ],
    )
    sums = [[1, 2, 1, 2], [3] * 4, [5, 5, 4, 4], [6] * 4, [8, 7, 7.5, 7.5]]
    for t, expected in enumerate(sums, 1):
        _, state = module.attention(Q[:t], K[:t], V[:t], causal=True, return_state=True)
        close(state.z[0, 0], expected)


@pytest.mark.parametrize("module", MODULES)
def test_relu(module):
    close(
        module.attention(Q, K, V, feature_map="relu"),
        [
            [0.1364, 0.5, 0.3182, 0.3182],
            [0.5, 0.0385, 0.3462, 0.1923],
            [0.2333, 0.3667, 0.3667, 0.2333],
            [0.3, 0.3, 0.1, 0.5],
            [0.3182] * 4,
        ],
    )
    # The first query meets no key at all.
    causal = module.attention(Q, K, V, feature_map="relu", causal=True)
    np.testing.assert_array_equal(causal[0], 0)


@pytest.mark.parametrize("module", MODULES)
def test_recurrence_by_hand(module):
    k = np.array([[1, 0], [0, 1], [1, 1]], float)
    v = np.array([[10, 20], [30, 40], [50, 60]], float)
    options = dict(feature_map=None, normalize=False)
    close(module.attention(k, k, v, causal=True, **options), [[10, 20], [30, 40], [140, 180]])
    close(module.attention(k, k, v, **options), [[60, 80], [80, 100], [140, 180]])
    states = [[[10, 20], [0, 0]], [[10, 20], [30, 40]], [[60, 80], [80, 100]]]
    for t, expected in enumerate(states, 1):
        o, state = module.scan(k[:t], k[:t], v[:t], scale=1.0, return_state=True)
        close(state.S[0, 0], expected)
    _, state = module.scan(k[:2], k[:2], v[:2], scale=1.0, return_state=True)
    read = linattn.State(state.S).query(np.array([[0.5, 0.5]]), scale=1.0)
    close(read, [[20, 30]])


def test_softmax_kernel_is_not_exp():
    q, k = np.zeros((1, 2)), np.array([[0.0, 0], [2, 0]])
    close(linattn.weights(q, k, feature_map="softmax_kernel"), [[0.6379, 0.3621]])
    close(linattn.weights(q, k, feature_map="exp"), [[0.1925, 0.8075]])
