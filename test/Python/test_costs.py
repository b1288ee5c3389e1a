"""The cost formulas on the numbers worked out by hand."""

import math

import numpy as np
import pytest

import linattn
from linattn import costs


def test_orders_of_the_product():
    assert costs.quadratic_multiply_adds(5, 4, 4) == 200
    assert costs.reassociated_multiply_adds(5, 4, 4) == 160
    assert costs.crossover_tokens(64, 64) == 64
    assert costs.crossover_tokens(64, 64, causal=True) == 128


def test_flops_and_bytes():
    assert costs.softmax_flops(128, 64) == 4_276_224
    assert costs.linear_flops(128, 64) == 2_130_048
    for n, ratio in [(128, 2.0), (4096, 64.2), (16384, 257.0)]:
        assert costs.softmax_flops(n, 64) / costs.linear_flops(n, 64) == pytest.approx(ratio, abs=0.05)
    assert costs.linear_state_bytes(64) == 16_640
    assert costs.softmax_score_bytes(16384) == pytest.approx(1.07e9, rel=5e-3)
    assert costs.softmax_score_bytes(512) / costs.linear_state_bytes(64) == pytest.approx(63, abs=0.5)
    assert round(costs.softmax_score_bytes(16384) / costs.linear_state_bytes(64)) == 64_528


def test_layers():
    n, d = 4096, 64
    softmax = costs.softmax_layer_multiply_adds(n, d)
    assert softmax == pytest.approx(1.07e9, rel=5e-3)
    for other, ratio in [
        (costs.linear_layer_multiply_adds(n, d), 64),
        (costs.favor_layer_multiply_adds(n, d, 256), 16),
        (costs.nystrom_layer_multiply_adds(n, d, 64), 64),
        (costs.fnet_layer_multiply_adds(n, d), 341),
    ]:
        assert softmax / other == pytest.approx(ratio, abs=0.5)


def count(*products, **sizes):
    """Multiply-adds of einsums: the product of the sizes of all indices of each."""
    return sum(math.prod(sizes[index] for index in set(product) - set(",->")) for product in products)


def test_linformer_and_nystrom():
    n, d, m, r = 100, 16, 12, 10
    sums, attention = ("tr,td->rd",) * 2, ("td,rd->tr", "tr,rd->td")
    assert costs.linformer_multiply_adds(n, d, r) == count(*sums, *attention, t=n, d=d, r=r)
    assert costs.linformer_score_bytes(n, r) == np.zeros((n, r), np.float32).nbytes
    scores = "td,md->tm", "md,td->mt", "md,ld->ml"
    values = "mt,td->md", "ml,ld->md", "tm,md->td"
    iteration = ("ml,lk->mk",) * 4
    sizes = dict(t=n, d=d, m=m, l=m, k=m)
    assert costs.nystrom_multiply_adds(n, d, m, iterations=3) == count(*scores, *values, *iteration * 3, **sizes)
    assert costs.nystrom_score_bytes(n, m) == 4 * sum(count(score.split("->")[1], **sizes) for score in scores)


def test_fnet():
    def butterflies(n):
        return 2 * butterflies(n // 2) + n // 2 if n > 1 else 0

    n, d = 64, 16
    # One complex product and two sums are 10 flops, half of them for real numbers. Each transform has half of the rows.
    assert costs.fnet_flops(n, d) == pytest.approx(5 * (n / 2 * butterflies(d) + d / 2 * butterflies(n)))
    half = np.zeros((n, d // 2 + 1), np.float32)
    assert costs.fnet_spectrum_bytes(n, d) == np.fft.rfft(half, axis=0).astype(np.complex64).nbytes


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("window", (None, 1, 5, 40))
@pytest.mark.parametrize("dilation", (1, 3))
@pytest.mark.parametrize("global_tokens", (0, 4, 40))
def test_windows(window, dilation, global_tokens, causal):
    n, d = 29, 8
    p, j = np.mgrid[:n, :n]
    sees = (abs(p - j) % dilation == 0) & (abs(p - j) < (n if window is None else window) * dilation)
    sees |= (j < global_tokens) | (p < global_tokens)
    scores = int((sees & (j <= p) if causal else sees).sum())
    pattern = (window, dilation, global_tokens, causal)
    assert costs.window_scores(n, *pattern) == scores
    assert costs.window_multiply_adds(n, d, *pattern) == count("sd->s", "s,sd->d", s=scores, d=d)
    assert costs.window_score_bytes(n, *pattern) == 4 * scores


def test_blocks_and_hybrids():
    size, d, n, window, f = 8, 16, 40, 6, 24
    mask = linattn.block_mask(5, window=2, global_blocks=1, random_blocks=1, seed=0)
    scores = int(np.kron(mask, np.ones((size, size))).sum())
    assert costs.block_multiply_adds(mask.sum(), size, d) == count("sd->s", "s,sd->d", s=scores, d=d)
    assert costs.block_score_bytes(mask.sum(), size) == 4 * scores
    linear = count("tf,td->fd", "tf,fd->td", t=n, f=f, d=d)
    assert costs.hybrid_multiply_adds(n, d, window, f) == costs.window_multiply_adds(n, d, window, causal=True) + linear
    assert costs.hybrid_multiply_adds(n, d, window) == costs.hybrid_multiply_adds(n, d, window, d)
    kept = [(window, d), (window, d), (f, d), (f,)]
    assert costs.hybrid_state_bytes(d, window, f) == sum(np.zeros(shape, np.float32).nbytes for shape in kept)


@pytest.mark.parametrize(("n", "pages"), [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_paged_decoding(n, pages):
    d, size, queries = 8, 16, 4
    assert costs.paged_decode_multiply_adds(n, d, queries) == count("gd,td->gt", "gt,td->gd", g=queries, t=n, d=d)
    assert costs.paged_decode_bytes(n, d, size) == 2 * np.zeros((pages, size, d), np.float32).nbytes


def test_refusals():
    with pytest.raises(ValueError, match="r: expected a number of at least 0, but got -1"):
        costs.linformer_multiply_adds(8, 4, -1)
    with pytest.raises(ValueError, match="dilation: expected a number of at least 1, but got 0"):
        costs.window_scores(8, 4, 0)
    with pytest.raises(ValueError, match="block_size: expected a number of at least 1, but got 0"):
        costs.paged_decode_bytes(8, 4, 0)
    with pytest.raises(TypeError, match="d: expected a number, but got None"):
        costs.block_multiply_adds(3, 8, None)


def test_feature_sizes():
    assert costs.feature_size("elu1", 64) == costs.feature_size("elu", 64) == 64
    assert costs.feature_size("favor", 64, m=128) == 128
    assert costs.feature_size("random_fourier", 64, m=128) == 256
    with pytest.raises(ValueError, match="nothing"):
        costs.feature_size("nothing", 64)


@pytest.mark.parametrize(
    ("rule", "expected"), [("eps = 0.0", 2.0), ("floor = 1.0e-4", -1e4), ("floor = 1.0e-4, clamp = 10.0", -10.0)]
)
def test_normalizer_rules(rule, expected):
    """A numerator of -1 over a denominator of -0.5."""
    kernel = linattn.compile(f"""
func.func @f(%q: tensor<1x1x1x1xf64>, %k: tensor<1x1x1x1xf64>, %v: tensor<1x1x1x1xf64>) -> tensor<1x1x1x1xf64> {{
  %o = linattn.attention %q, %k, %v {{normalize = #linattn.normalize<{rule}>}}
    : (tensor<1x1x1x1xf64>, tensor<1x1x1x1xf64>, tensor<1x1x1x1xf64>) -> tensor<1x1x1x1xf64>
  return %o : tensor<1x1x1x1xf64>
}}""")
    q, k, v = (np.full((1, 1, 1, 1), x) for x in (-0.5, 1.0, 2.0))
    assert kernel(q, k, v).item() == pytest.approx(expected, rel=1e-15)
