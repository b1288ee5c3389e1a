"""Segments whose merge has something peculiar to merge."""

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import reference

pytestmark = pytest.mark.optimized(3)


@pytest.mark.parametrize("pad", [4, 8, 9, 16, 19])
@pytest.mark.parametrize("feature_map", ["exp", "elu"])
def test_left_padding_over_whole_segments(qkv, pad, feature_map):
    """Such a segment has written nothing: its maximum is −∞, and −∞ less −∞ would be NaN."""
    mask = np.zeros((2, 19), bool)
    mask[0, pad:], mask[1, 3:] = True, True
    options = dict(feature_map=feature_map, normalize=True, return_state=True)
    o, state = linattn.scan(*qkv, mask=mask, form="segments:4", **options)
    # The same as without the tokens that are not there.
    for n, first in enumerate((pad, 3)):
        assert not o[n, :first].any() and np.isfinite(o[n]).all()
        part = [x[n : n + 1, first:] for x in qkv]
        expected, last = reference.scan(*part, **options)
        assert_agrees(o[n : n + 1, first:], expected)
        assert_agrees(state.S[n], last.S[0])
        assert_agrees(state.z[n], last.z[0])


@pytest.mark.parametrize("rule", ["gate", "token", "delta"])
def test_f64_tokens_with_f32_gates(rng, rule):
    q, k, v = (0.5 * rng.standard_normal((2, 23, 2, n)) for n in (8, 8, 12))
    gate = -rng.random((2, 23, 2, 8)).astype(np.float32)
    options = {
        "gate": dict(decay=gate), "token": dict(decay=gate[..., 0]),
        "delta": dict(decay=gate[..., 0], beta=-gate[..., 1], update="delta"),
    }[rule]  # fmt: skip
    for form in ("segments:4", "segments:5"):
        o, state = linattn.scan(q, k, v, return_state=True, form=form, **options)
        expected, last = reference.scan(q, k, v, return_state=True, **options)
        assert o.dtype == state.S.dtype == np.float64
        assert_agrees(o, expected)
        assert_agrees(state.S, last.S)
