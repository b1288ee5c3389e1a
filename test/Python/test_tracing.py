"""Feature maps that are Python functions."""

import math

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import feature_maps as fm
from linattn import reference

FUNCTIONS = {
    "arithmetic": lambda x: (1 + x * x) / (2.0 - -abs(x)) - 0.25,
    "powers": lambda x: x**2 + x**4 + (x**2 + 1) ** -1 + (x**2) ** 0.5 + abs(x) ** 1.5,
    "elu": lambda x: np.where(x > 0, x + 1, np.exp(x)),
    "numpy": lambda x: np.maximum(np.tanh(x), 0) + np.minimum(np.sqrt(abs(x)), 2) + np.log(1 + x * x),
    "numpy-scalars": lambda x: np.float32(2) * np.square(x) + np.float64(0.5),
    "more-numpy": lambda x: np.log1p(np.exp(-np.abs(x))) + np.expm1(np.sin(x) ** 2) + np.cos(x) ** 2,
    "bool": lambda x: (x > 0) * x + ((x > -1) & (x <= 0)) * 0.5 + (~(x > 1) | (x == 3)) * 0.25,
    "clip": lambda x: np.clip(x, 0, 1) + fm.clip(x, 0.0, 2.0),
    "sign": lambda x: 1 + 0.5 * np.sign(x),
    "constant": lambda x: 1.0,
    "softplus": fm.softplus,
    "silu": lambda x: fm.silu(x) ** 2,
    "gelu": lambda x: fm.gelu(x) ** 2,
    "sigmoid": fm.sigmoid,
    "where": lambda x: fm.where(fm.abs(x) < 1, fm.exp2(x), fm.square(x)),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_the_function(qkv, name, causal):
    options = dict(feature_map=FUNCTIONS[name], causal=causal, normalize=False)
    assert_agrees(linattn.attention(*qkv, **options), reference.attention(*qkv, **options))


def test_float64(qkv):
    q, k, v = (x.astype(np.float64) for x in qkv)
    phi = FUNCTIONS["elu"]
    out = linattn.attention(q, k, v, causal=True, feature_map=phi)
    assert_agrees(out, reference.attention(q, k, v, causal=True))


def test_named_functions_work_on_numbers():
    assert fm.softplus(0.0) == pytest.approx(math.log(2))
    assert fm.gelu(1.0) == pytest.approx(0.8413447460685429)
    np.testing.assert_allclose(fm.relu(np.array([-1.0, 2.0])), [0, 2])


def branching(x):
    return x if x > 0 else 0


@pytest.mark.parametrize(
    "function, message",
    [
        (branching, "branches"),
        (lambda x: max(x, 0), "branches"),
        (lambda x: math.exp(x), "np.exp"),
        (lambda x: np.arctan2(x, x), "arctan2"),
        (lambda x: np.sum(x), "sum"),
        (lambda x: (x, x), "one number"),
        (lambda x: None, "one number"),
        (lambda x: x + "1", "number"),
        (lambda x: [y for y in x], "iteration"),
    ],
)
def test_untraceable_calls(qkv, function, message):
    with pytest.raises(TypeError, match=message):
        linattn.attention(*qkv, feature_map=function)


def test_unknown_names_list_the_known(qkv):
    with pytest.raises(ValueError, match="elu, relu, relu2, exp, softmax_kernel, softmax, l2norm, .*, but got 'gelu'"):
        linattn.attention(*qkv, feature_map="gelu")
    with pytest.raises(TypeError, match="feature_map"):
        linattn.attention(*qkv, feature_map=3)
