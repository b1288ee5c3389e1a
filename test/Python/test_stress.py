"""Edges: long sequences, violent gates, colliding keys."""

import numpy as np
import pytest
from conftest import relative_error

import linattn
from linattn import reference

pytestmark = pytest.mark.optimized

LONG = 16384


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def rules(rng, T):
    """(name, options) of each update, with unit keys."""
    beta = rng.random((1, T, 1)).astype(np.float32)
    decay = -0.1 * rng.random((1, T, 1)).astype(np.float32)
    kappa = unit(draw(rng, 1, T, 1, 8))
    return {
        "add": {},
        "add, decayed": dict(decay=decay),
        "delta": dict(update="delta", beta=beta),
        "gated delta": dict(update="delta", beta=beta, decay=decay),
        "dplr": dict(update="dplr", a=-kappa, b=kappa * beta[..., None], decay=decay),
        "oja": dict(update="oja", beta=beta, decay=decay),
        "mlstm": dict(
            normalize=True, abs_floor=1.0, decay=decay, input_gate=draw(rng, 1, T, 1)
        ),
    }  # fmt: skip


def check(q, k, v, tolerance=3e-6, **options):
    out = linattn.scan(q, k, v, **options)
    assert np.isfinite(out).all()
    assert relative_error(out, reference.scan(q, k, v, **options)) <= tolerance


@pytest.mark.parametrize("name", rules(np.random.default_rng(0), 1))
def test_long_sequences(rng, name):
    q, k, v = (unit(draw(rng, 1, LONG, 1, 8)) for _ in range(3))
    check(q, k, v, **rules(rng, LONG)[name])


@pytest.mark.parametrize("name", ["delta", "dplr", "oja", "add", "mlstm"])
def test_violent_decays(rng, name):
    T = 200
    q, k, v = (unit(draw(rng, 1, T, 1, 8)) for _ in range(3))
    decay = np.where(rng.random((1, T, 1)) < 0.2, -300.0, -0.01).astype(np.float32)
    check(q, k, v, **dict(rules(rng, T)[name], decay=decay))


@pytest.mark.parametrize("strength", [0.95, 2.0])
def test_colliding_keys(rng, strength):
    T = 500
    base = draw(rng, 1, 1, 1, 16)
    k = unit(base + 0.05 * draw(rng, 1, T, 1, 16))
    q, v = draw(rng, 1, T, 1, 16), draw(rng, 1, T, 1, 16)
    check(q, k, v, tolerance=1e-5, update="delta", beta=np.full((1, T, 1), strength, np.float32))


@pytest.mark.parametrize("normaliser", [0.01, 0.1])
def test_sharp_gates(rng, normaliser):
    """log σ(x) / normaliser, and gates that are masked."""
    T = 300
    q, k, v = (unit(draw(rng, 1, T, 1, 8)) for _ in range(3))
    gate = -np.logaddexp(0, -draw(rng, 1, T, 1, 8)) / normaliser
    gate[:, ::7] = 0
    for form in ("state-tile", "token"):
        check(q, k, v, decay=gate.astype(np.float32), form=form)
    scalar = np.ascontiguousarray(gate[..., 0]).astype(np.float32)
    check(q, k, v, decay=scalar, update="delta", beta=np.full((1, T, 1), 0.9, np.float32))
