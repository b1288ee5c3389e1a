"""The state of a recurrence, for streaming and for decoding."""

from __future__ import annotations

import os

import numpy as np

from . import _arrays

__all__ = ["State"]


class State:
    """What a recurrence carries from token to token.

    Args:
      S: ``[N, H, K, V]``, float32 (float64 for float64 tokens).
      z: ``[N, H, K]``, the sum of the keys, where the result is normalized.
      m: ``[N, H]``, the largest key element so far, where the feature map is
        "exp" and the result is normalized; S and z are then e^-m times the plain
        sums.

    `step` and `update` replace the contents in place. They never write to the
    arrays that the state was made from, but do reuse those that they made
    themselves: copy S, or the state, to keep a moment of it.
    """

    __slots__ = ("S", "z", "m", "_spare", "_owned")

    def __init__(self, S, z=None, m=None):
        shape = _shape("S", S)
        if len(shape) != 4:
            raise ValueError(f"S: expected shape (N, H, K, V), but got {shape}")
        for name, part, expected in (("z", z, shape[:3]), ("m", m, shape[:2])):
            if part is not None and _shape(name, part) != expected:
                raise ValueError(f"{name}: expected shape {expected}, but got {_shape(name, part)}")
        if m is not None and z is None:
            raise ValueError("z: expected an array beside m, but got None")
        self.S, self.z, self.m = S, z, m
        self._spare = None
        self._owned = False

    @classmethod
    def zeros(cls, batch, heads, k, v, normalize=False, like=None, feature_map=None):
        """The state before the first token.

        It is float32, or float64 if `like` is, and of `like`'s array kind. With
        `normalize` it carries z, and with the feature map "exp" as well m.
        """
        for name, size in (("batch", batch), ("heads", heads), ("k", k), ("v", v)):
            if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
                raise TypeError(f"{name}: expected an integer, but got {type(size).__name__}")
            if size < (0 if name == "batch" else 1):
                raise ValueError(f"{name}: expected a positive integer, but got {size}")
        dtype = np.float64 if _arrays.dtype_name(like) == "float64" else np.float32
        shape = (batch, heads, k, v)
        parts = [np.zeros(shape, dtype)]
        if normalize:
            parts.append(np.zeros(shape[:3], dtype))
            if feature_map == "exp":
                parts.append(np.full(shape[:2], -np.inf, dtype))
        return cls(*(_arrays.convert_like(part, like) for part in parts))

    def step(
        self, q, k, v, *, decay=None, value_decay=None, beta=None, a=None, b=None,
        transition="before", bonus=None, update="add", readout="inclusive", feature_map=None,
        normalize=None, eps=None, scale=None, cu_seqlens=None, reverse=False, out=None,
        num_threads=None, form="auto", target=None,
    ):  # fmt: skip
        """Reads and writes one or several tokens; returns their outputs.

        The arguments are those of `linattn.scan`; `normalize` is what the state
        is made for unless given.
        """
        if normalize is None:
            normalize = self.z is not None
        result = _ops._run_scan(
            q, k, v, decay, value_decay, beta, a, b, transition, bonus, update, readout,
            feature_map, normalize, eps, scale, self, True, cu_seqlens, reverse, out,
            num_threads, form, target, self._spare,
        )  # fmt: skip
        self._replace(result[1], result[2], result[3])
        return result[0]

    def update(self, k, v, *, feature_map=None, num_threads=None, target=None, **gates):
        """Writes tokens without reading any: S + Σ φ(k) vᵀ.

        With gates, or with other updates than "add", the keywords of
        `linattn.scan`.
        """
        if gates:
            self.step(k, k, v, feature_map=feature_map, num_threads=num_threads, target=target, **gates)
            return
        plan = _state_plan("update", feature_map, self, None, None, target)
        _, S, z, m = plan(None, k, v, None, self.S, self.z, self.m, None, self._spare, num_threads)
        self._replace(S, z, m)

    def query(
        self, q, *, feature_map=None, normalize=None, eps=None, scale=None, out=None,
        num_threads=None, target=None,
    ):  # fmt: skip
        """Reads tokens without writing any: scale · Sᵀφ(q), divided by
        scale · z·φ(q) + eps under `normalize`, the default where there is a z."""
        if normalize is not None and bool(normalize) != (self.z is not None):
            raise ValueError(
                f"normalize: expected {self.z is not None} for a state "
                f"{'with' if self.z is not None else 'without'} z, but got {normalize}"
            )
        plan = _state_plan("query", feature_map, self, eps, scale, target)
        return plan(q, None, None, None, self.S, self.z, self.m, out, None, num_threads)

    def _replace(self, S, z, m):
        # Two sets of arrays take turns: a kernel never writes what it reads.
        if self._owned and isinstance(S, np.ndarray):
            parts = (self.S, self.z, self.m)
            self._spare = tuple(part for part in parts if part is not None)
        self.S, self.z, self.m = S, z, m
        self._owned = True

    def copy(self):
        """An independent state with the same contents."""
        parts = (self.S, self.z, self.m)
        return State(*(part if part is None else _arrays.copy(part) for part in parts))

    def save(self, path):
        """Writes a .npz file, or a .safetensors file if the path ends so."""
        parts = {"S": self.S, "z": self.z, "m": self.m}
        arrays = {name: _arrays.to_numpy(part) for name, part in parts.items() if part is not None}
        if os.fspath(path).endswith(".safetensors"):
            _arrays.save_safetensors(path, arrays)
            return
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # a file: given a path, savez may change its name

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote; a file never brings code with it."""
        if os.fspath(path).endswith(".safetensors"):
            arrays = _arrays.load_safetensors(path)
        else:
            arrays = _arrays.load_npz(path)
        if "S" not in arrays or not set(arrays) <= {"S", "z", "m"}:
            raise ValueError(f"{os.fspath(path)}: expected arrays S, z and m, but got {', '.join(arrays) or 'none'}")
        for name, array in arrays.items():
            if array.dtype not in (np.float32, np.float64):
                raise ValueError(f"{name}: expected float32 or float64, but got {array.dtype}")
        return cls(**arrays)

    def __repr__(self):
        parts = {"S": self.S, "z": self.z, "m": self.m}
        return f"State({', '.join(f'{name} {_shape(name, part)}' for name, part in parts.items() if part is not None)})"


def _shape(name, array):
    try:
        return tuple(array.shape)
    except AttributeError:
        raise TypeError(f"{name}: expected an array, but got {type(array).__name__}") from None


def _state_plan(what, feature_map, state, eps, scale, target):
    key = (what, feature_map, state.z is None, state.m is None, eps, scale, target)
    try:
        return _ops._plans[key]
    except (KeyError, TypeError):
        pass
    plan = _make_state_plan(*key)
    _ops._remember(key, plan)
    return plan


def _make_state_plan(what, feature_map, no_z, no_m, eps, scale, target):
    eps, scale = _checks.check_number("eps", eps, minimum=0.0), _checks.check_number("scale", scale)
    phi = _features.parse(feature_map)
    options = _text.Options(
        kind=phi.kind, region=phi.region, normalize=not no_z, has_state=True,
        returns_state=what == "update",
    )  # fmt: skip
    if options.stabilized == no_m:
        raise ValueError(
            "feature_map: expected exp exactly for a state with m, but got "
            f"{feature_map!r} for one {'without' if no_m else 'with'} m"
        )
    return _ops.make_plan(
        options, _text.update_text if what == "update" else _text.query_text, eps=eps,
        scale="K**-0.5" if scale is None else scale, target=_ops.parse_target(target), what=what,
        has_query=what == "query", has_keys=what == "update",
    )  # fmt: skip


# At the end: _ops needs State.
from . import _checks, _features, _ops, _text  # noqa: E402
