"""The cost formulas on the numbers worked out by hand."""

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


def test_feature_sizes():
    assert costs.feature_size("elu1", 64) == 64
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
