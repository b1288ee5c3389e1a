"""Random projections: the matrices of FAVOR+ and random Fourier features."""

from __future__ import annotations

import operator

import numpy as np

from .. import _linattn
from .._core._checks import check_choice, check_flag

__all__ = ["RandomProjection", "random_projection"]


def _integer(name, value, limit):
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, but got {type(value).__name__}") from None
    if not 0 <= value < limit:
        raise ValueError(f"{name}: expected an integer from 0 to {limit - 1}, but got {value}")
    return value


def random_projection(
    m, d, *, kind="orthogonal", seed=0, norms="chi", heads=None, draw=0, dtype=np.float32
):
    """The matrix W of m random features for heads of size d.

    The same arguments give the same bits on every platform, in C++
    (``linattn::randomProjection``) too.

    Args:
      m: features; any number, not only multiples of d.
      d: the head size.
      kind: "iid", every element N(0, 1), or "orthogonal": blocks of d orthonormal
        rows times norms, the last block cut short. Orthogonal rows estimate with
        less variance; see Choromanski et al., "Rethinking attention with
        Performers", 2021.
      seed: 0 to 2^64 − 1.
      norms: of the rows: "chi", those of N(0, I), the only ones without bias; or
        "sqrt_d", all √d.
      heads: draws one matrix for each.
      draw: counts the independent draws of one seed: to draw anew, count up.
      dtype: of the result, which is the float64 matrix rounded.

    Returns:
      ``[m, d]``, or ``[heads, m, d]``.

    Raises:
      ValueError, TypeError: naming the argument, what was expected and what came.
    """
    check_choice("kind", kind, ("iid", "orthogonal"))
    check_choice("norms", norms, ("chi", "sqrt_d"))
    limit = 1 << 31
    w = _linattn.random_projection(
        _integer("m", m, limit), _integer("d", d, limit),
        1 if heads is None else _integer("heads", heads, limit), kind == "orthogonal",
        norms == "chi", _integer("seed", seed, 1 << 64), _integer("draw", draw, 1 << 63),
    )  # fmt: skip
    w = w.astype(dtype, copy=False)
    return w[0] if heads is None else w


class RandomProjection:
    """A random matrix that can be drawn anew.

    Args:
      m, d, kind, seed, norms, heads: as in `random_projection`.
      redraw: draw anew before every call that uses it; otherwise W stays, until
        `redraw` is called.

    `matrix` is W now; `draw` counts the draws so far, so that
    ``random_projection(m, d, seed=seed, draw=draw)`` gives the same W again.
    """

    def __init__(self, m, d, *, kind="orthogonal", seed=0, norms="chi", heads=None, redraw=False):
        self._arguments = dict(m=m, d=d, kind=kind, seed=seed, norms=norms, heads=heads)
        self._redraws = check_flag("redraw", redraw)
        self.draw = 0
        self._matrix = random_projection(**self._arguments)

    @property
    def matrix(self):
        """``[m, d]`` or ``[heads, m, d]``, float32."""
        return self._matrix

    def redraw(self):
        """Draws the next matrix and returns it."""
        self.draw += 1
        self._matrix = random_projection(**self._arguments, draw=self.draw)
        return self._matrix

    def next(self):
        """The matrix for another call, drawn anew under that option."""
        return self.redraw() if self._redraws else self._matrix

    def __repr__(self):
        options = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"RandomProjection({options}, redraw={self._redraws}, draw={self.draw})"
