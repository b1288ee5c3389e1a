"""Feature maps by name or by function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ._trace import emit_region, trace

__all__ = ["FeatureMap", "KNOWN", "parse"]

# The user's names and the compiler's.
KNOWN = {
    "identity": "identity",
    "elu": "elu1",
    "relu": "relu",
    "relu2": "relu2",
    "exp": "exp",
    "softmax_kernel": "softmax_kernel",
}


@dataclass(frozen=True)
class FeatureMap:
    kind: str  # as the compiler calls it
    region: object = None  # scalar type -> text
    oracle: object = None  # what the oracle takes: a name or the function


def parse(feature_map):
    """The feature map that the user means, or an error that lists what there is."""
    if feature_map is None:
        return FeatureMap("identity", oracle="identity")
    if isinstance(feature_map, str):
        if feature_map in KNOWN:
            return FeatureMap(KNOWN[feature_map], oracle=feature_map)
        raise ValueError(
            f"feature_map: expected a function or one of {', '.join(KNOWN)}, but got {feature_map!r}"
        )
    if callable(feature_map):
        # NumPy's numbers, on which ~ and comparisons mean what they do in a trace.
        oracle = lambda x: feature_map(np.float64(x))  # noqa: E731
        return FeatureMap("region", partial(emit_region, trace(feature_map)), oracle)
    raise TypeError(
        f"feature_map: expected a name, a function or None, but got {type(feature_map).__name__}"
    )
