"""Feature maps by name or by function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import _linattn
from .._core._checks import check_choice
from ._token_maps import Signature, TokenMap
from ._trace import emit_region, trace

__all__ = ["FeatureMap", "KNOWN", "TOKEN_MAPS", "TRAINED_MAPS", "check_layer_map", "count_features", "parse", "split"]

# The user's names and the compiler's.
KNOWN = {
    "identity": "identity",
    "elu": "elu1",
    "relu": "relu",
    "relu2": "relu2",
    "exp": "exp",
    "softmax_kernel": "softmax_kernel",
}
# Maps of whole tokens that need nothing else.
TOKEN_MAPS = tuple(
    row["name"]
    for row in _linattn.costs.token_maps()
    if all(optional for *_, optional in row["parameters"]) and not (row["positions"] or row["variant"])
)
# Maps whose parameters layers train: those of a head by name, in the order of `linattn.feature_maps`.
TRAINED_MAPS = {"hedgehog": ("weight",), "t2r": ("weight", "bias"), "hadamard": ("weight", "weight2")}


@dataclass(frozen=True)
class FeatureMap:
    kind: str  # as the compiler calls it
    region: object = None  # scalar type -> text
    oracle: object = None  # what the oracle takes: a name or the function
    maps: Signature | None = None  # what is applied to whole tokens before it


def parse(feature_map):
    """The feature map of a name or function. The error lists the known names."""
    if feature_map is None:
        return FeatureMap("identity", oracle="identity")
    if isinstance(feature_map, TokenMap):
        feature_map = feature_map.signature
    elif isinstance(feature_map, str) and feature_map in TOKEN_MAPS:
        feature_map = TokenMap(feature_map).signature
    if isinstance(feature_map, Signature):
        return FeatureMap(feature_map.kind, oracle=feature_map.kind, maps=feature_map)
    if isinstance(feature_map, str):
        if feature_map in KNOWN:
            return FeatureMap(KNOWN[feature_map], oracle=feature_map)
        raise ValueError(
            f"feature_map: expected a function or one of {', '.join((*KNOWN, *TOKEN_MAPS))}, but got {feature_map!r}"
        )
    if callable(feature_map):
        # NumPy's numbers, on which ~ and comparisons mean what they do in a trace.
        oracle = lambda x: feature_map(np.float64(x))  # noqa: E731
        return FeatureMap("region", partial(emit_region, trace(feature_map)), oracle)
    raise TypeError(
        f"feature_map: expected a name, a function or None, but got {type(feature_map).__name__}"
    )


def split(feature_map, q=None, k=None, streams=False):
    """(the part of the map that a plan depends on, its arrays)."""
    if isinstance(feature_map, TokenMap):
        return feature_map.signature, feature_map.arrays(q, k, streams)
    return feature_map, ()


def check_layer_map(feature_map):
    """The feature map of a layer: what `parse` takes, or the name of one that is trained."""
    if isinstance(feature_map, str):
        return check_choice("feature_map", feature_map, (*KNOWN, *TOKEN_MAPS, *TRAINED_MAPS))
    parse(feature_map)
    return feature_map


def count_features(feature_map, d):
    """The number of features of a head of size d."""
    if isinstance(feature_map, str) and feature_map in TOKEN_MAPS:
        feature_map = TokenMap(feature_map)
    return feature_map.size(d) if isinstance(feature_map, TokenMap) else d
