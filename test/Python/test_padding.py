"""Sizes that a tile of the state pads: nothing outside of the arrays is read."""

import numpy as np
import pytest

import linattn


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nothing_is_read_behind_the_normalizer(dtype, rng):
    """24 keys in tiles of 16: the normalizer of the last head ends before its tile."""
    q, k, v = (rng.standard_normal((2, 9, 3, n)).astype(dtype) for n in (24, 24, 8))
    for _ in range(50):
        # The allocator's next blocks hold NaN.
        del [np.full(size, np.nan) for size in range(100, 200, 4) for _ in range(4)][:]
        o = linattn.attention(q, k, v, causal=True, num_threads=1)
        assert np.isfinite(o).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nothing_is_read_behind_gates(dtype, rng):
    """Decays of keys, of values and a bonus that end within a tile, before a NaN."""

    def draw(*shape):
        room = np.full((2, *shape), np.nan, dtype)
        room[0] = -rng.random(shape)
        return room[0]

    q, k, v = (rng.standard_normal((2, 9, 3, n)).astype(dtype) for n in (24, 24, 8))
    decay, value_decay, bonus = draw(2, 9, 3, 24), draw(2, 9, 3, 8), draw(3, 24)
    for options in (
        dict(decay=decay, normalize=True),
        dict(decay=decay, value_decay=value_decay),
        dict(bonus=bonus, readout="exclusive"),
    ):
        for form in ("auto", "state-tile"):
            o, state = linattn.scan(q, k, v, return_state=True, form=form, **options)
            ref = linattn.reference.scan(*(x.astype(np.float64) for x in (q, k, v)), **options)
            assert np.abs(o - ref).max() <= 1e-4 * np.abs(ref).max()
            assert np.isfinite(state.S).all()
