"""Feature maps of whole tokens, with their parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _linattn
from .._core._literals import float_literal
from ._random import RandomProjection

__all__ = ["Signature", "Spec", "TokenMap", "array_shape"]


class Spec(NamedTuple):
    """The compiled part of one side's map. Its arrays are arguments of the call."""

    name: str  # as the compiler calls it
    attributes: str  # beside the name, as the attribute spells them
    parameters: tuple  # their names, in the op's order: matrices W…, b, gamma, beta
    has_positions: bool
    shifts: int = 1


class Signature(NamedTuple):
    """The maps of queries and keys."""

    query: Spec
    key: Spec
    shared: bool  # one set of parameters serves both
    kind: str  # of what the consumer applies: identity, or exp to a logarithm

    def operands(self, query=True, key=True, same_length=True):
        """The operands beside the tokens, (name, role, layouts), in the order of
        `TokenMap.arrays`."""
        specs = []
        for side, spec, used in (("q", self.query, query), ("k", self.key, key)):
            if used and not (self.shared and specs):
                names = zip(self.parameter_names(side), spec.parameters)
                rows = self._rows(side)
                specs += [(name, "parameter", _layouts(what, rows, f"H{side}")) for name, what in names]
        tokens = {"q": "T", "k": "T" if same_length else "Tk"}
        for side, spec, used in (("q", self.query, query), ("k", self.key, key)):
            if used and spec.has_positions:
                layout = f"{tokens[side]} | B {tokens[side]}"
                specs.append((f"{side}_positions", "positions", layout))
        return specs

    def _rows(self, side):
        """The name of the dimension that counts the rows of a matrix."""
        return "M" if self.shared else f"M{side}"

    def rule(self, side):
        """The rule for the features F of a plan."""
        spec = self.query if side == "q" else self.key
        *coefficients, counts_rows = _linattn.costs.feature_formula(spec.name, spec.shifts)
        return f"F = features({', '.join(map(str, coefficients))}, {self._rows(side) if counts_rows else 'K'})"

    def parameter_names(self, side):
        spec = self.query if side == "q" else self.key
        return [name if self.shared else f"{side}_{name}" for name in spec.parameters]


def array_shape(name, array):
    try:
        return tuple(array.shape)
    except AttributeError:
        raise TypeError(f"{name}: expected an array, but got {type(array).__name__}") from None


def _tokens(array):
    shape = array_shape("q", array)
    return shape[1] if len(shape) > 2 else shape[0]


class TokenMap:
    """A feature map that needs whole tokens: made by the functions of
    `linattn.feature_maps`, taken by all that take a feature map.

    Features are computed in float32 (float64 for float64 tokens), and stay so.
    """

    __slots__ = ("name", "options", "parameters", "positions", "key_map", "signature")

    def __init__(self, name, parameters=(), options=None, positions=None):
        self.name = name
        self.options = {key: value for key, value in (options or {}).items() if value is not None}
        self.parameters = dict(parameters)
        self.positions = positions
        self.key_map = self
        self.signature = self._sign()

    def _spec(self):
        parts = []
        for key, value in self.options.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if isinstance(value, float):
                text = float_literal(value) + " : f64"
            parts.append(f"{key} = {text}")
        return Spec(
            self.name, ", ".join(parts), tuple(self.parameters), self.name == "cosformer",
            self.options.get("shifts", 1),
        )  # fmt: skip

    def _sign(self):
        key = self.key_map
        kind = "exp" if self.options.get("log") else "identity"
        return Signature(self._spec(), key._spec(), key is self, kind)

    def with_keys(self, key_map):
        """A pair of this map for queries and `key_map` for keys."""
        if not isinstance(key_map, TokenMap):
            raise TypeError(f"key_map: expected a feature map of whole tokens, but got {type(key_map).__name__}")
        if bool(key_map.options.get("log")) != bool(self.options.get("log")):
            raise ValueError(
                f"key_map: expected both maps or neither to be exponentials, but got {self.name} and {key_map.name}"
            )
        pair = TokenMap(self.name, self.parameters, self.options, self.positions)
        pair.key_map = key_map
        pair.signature = pair._sign()
        return pair

    # ------------------------------------------------------------------------
    # Operands
    # ------------------------------------------------------------------------

    def _own(self):
        return tuple(x.next() if isinstance(x, RandomProjection) else x for x in self.parameters.values())

    def _positions(self, tokens, streams):
        if self.positions is not None:
            return self.positions
        if streams:
            raise ValueError(
                "feature_map: expected cosformer with positions for tokens that follow a state, but got none"
            )
        return np.arange(_tokens(tokens))

    def arrays(self, q=None, k=None, streams=False):
        """The operands for these tokens, in the order of `Signature.operands`.

        `streams` says that the tokens follow others, so that their positions are
        not known.
        """
        arrays = ()
        if self.key_map is self:
            arrays += self._own()
        else:
            arrays += self._own() if q is not None else ()
            arrays += self.key_map._own() if k is not None else ()
        if self.name == "cosformer" and q is not None:
            arrays += (self._positions(q, streams),)
        if self.key_map.name == "cosformer" and k is not None:
            arrays += (self.key_map._positions(k, streams),)
        return arrays

    def size(self, d):
        """The number of features of a head of size d."""
        return features_of(self.signature.query, d, [array_shape("W", w) for w in self._shapes()])

    def _shapes(self):
        return [x.matrix if isinstance(x, RandomProjection) else x for x in self.parameters.values()]

    def __repr__(self):
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        parameters = "".join(f", {name}" for name in self.parameters)
        keys = "" if self.key_map is self else f", keys={self.key_map!r}"
        return f"TokenMap({self.name!r}{parameters}{options}{keys})"


# Of vectors; one without an entry counts rows.
_VECTORS = {"gamma": "K", "beta": "K"}


def _layouts(parameter, rows, heads):
    """The layouts of a parameter: shared by all heads, or one per head."""
    shape = f"{rows} K" if parameter.startswith("W") else _VECTORS.get(parameter, rows)
    return f"{shape} | {heads} {shape}"


def features_of(spec, d, shapes):
    """The number of features for parameters of these shapes."""
    rows = shapes[0][-2] if shapes and len(shapes[0]) > 1 else 0
    return _linattn.costs.feature_size(spec.name, d, rows, spec.shifts)
