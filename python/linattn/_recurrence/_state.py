"""The state of a recurrence, for streaming and for decoding."""

from __future__ import annotations

import os
from collections import deque
from functools import partial

import numpy as np

from .. import _linattn
from .._core import _arrays
from .._core._checks import check_choice, check_number
from .._core._recipe import makers
from .._maps import _features
from . import _function, _plans, _text
from ._parts import Parts, shape_of, unpack
from ._scan_plans import check_every, find_plan

__all__ = ["State"]


class State(Parts):
    """The state of a recurrence between two tokens.

    Args:
      S: ``[N, H, K, V]``, float32 (float64 for float64 tokens).
      z: ``[N, H, K]``, the sum of the keys, where the result is normalized.
      m: ``[N, H]``, a running maximum; S and z are then e^-m times the plain
        sums. It is the largest key element so far, where the feature map is "exp"
        and the result is normalized, and with an input gate max(decay + m, gate).

    `step` and `update` replace the contents in place, without a copy. They never
    write to the arrays that the state was made from, but do write to those that
    they, `zeros`, `copy` or `load` made: copy S, or take a `snapshot`, to keep a moment
    of it. One thread steps a state at a time; of two that overlap one gets a
    RuntimeError. Contents that were to be replaced in place are lost where a step ends
    with a MemoryError, by a `deadline` or by a signal: the state is then a ValueError to
    use, until `rollback` goes back to one that it keeps, or S (and z and m) are set to
    other arrays. Of a pool the rows of that step are lost alone.

    Args:
      layout: "kv", or "vk" for S ``[N, H, V, K]``.
      history: how many of the last states to keep for `rollback`, as speculative
        decoding needs it. Steps then write to other memory than they read.
    """

    __slots__ = ("_owned", "_last", "_past", "_lost")

    def __init__(self, S, z=None, m=None, layout="kv", history=0):
        super().__init__(S, z, m, layout)
        self._owned = False
        self._last = None
        # The S of a step that was ended, and its rows of a pool, or None for all.
        self._lost = None
        # Former parts, the latest at the end, and whether their memory may be used again.
        self._past = deque(maxlen=history) if _check_history(history) else None

    @classmethod
    def _own(cls, *parts, layout="kv", history=0):
        """A state with newly allocated arrays."""
        state = cls(*parts, layout=layout, history=history)
        state._owned = True
        return state

    @classmethod
    def zeros(
        cls, batch, heads, k, v, normalize=False, like=None, feature_map=None, running_max=False,
        dtype=None, layout="kv", history=0,
    ):  # fmt: skip
        """The state before the first token.

        It is of `like`'s array kind, and of `dtype` ("float32" or "float64"),
        which is float32 unless `like` is float64. `k` counts features:
        ``feature_map.size(d)`` of a map of whole tokens. With `normalize` it
        carries z, and with the feature map "exp", one that is an exponential
        (``favor``), or `running_max` for an input gate, as well m.
        """
        if dtype is not None:
            check_choice("dtype", dtype, ("float32", "float64"))
        if running_max and not normalize:
            raise ValueError("running_max: expected it only with normalize=True, but got it without")
        for name, size in (("batch", batch), ("heads", heads), ("k", k), ("v", v)):
            if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
                raise TypeError(f"{name}: expected an integer, but got {type(size).__name__}")
            if size < (0 if name == "batch" else 1):
                raise ValueError(f"{name}: expected a positive integer, but got {size}")
        wide = dtype == "float64" or (dtype is None and _arrays.dtype_name(like) == "float64")
        dtype = np.float64 if wide else np.float32
        shape = (batch, heads, k)
        parts = [_arrays.zeros((batch, heads, *((v, k) if layout == "vk" else (k, v))), dtype)]
        if normalize:
            parts.append(np.zeros(shape[:3], dtype))
            if running_max or _features.parse(feature_map).kind == "exp":
                parts.append(np.full(shape[:2], -np.inf, dtype))
        parts = (_arrays.convert_like(part, like) for part in parts)
        return cls._own(*parts, layout=layout, history=history)

    def step(
        self, q, k, v, *, decay=None, value_decay=None, beta=None, a=None, b=None,
        transition="before", bonus=None, erase=None, write=None, input_gate=None, mask=None,
        update="add", readout="inclusive", feature_map=None, normalize=None, eps=None, floor=None,
        abs_floor=None, clamp=None, scale=None, cu_seqlens=None, reverse=False, out=None,
        num_threads=None, form="auto", target=None, check=False, state_indices=None,
        states_every=None,
    ):  # fmt: skip
        """Reads and writes one or several tokens; returns their outputs.

        The arguments are those of `linattn.scan`; `normalize` is what the state
        is made for unless given.

        Up to 8 tokens have kernels of their own. Where ``update="add"`` they pass
        over the state once, with the bits of a step for each; other updates may run
        as a short chunk, which rounds differently, unless ``form="token"``.

        With `state_indices`, int32 or int64 ``[N]``, the state is a pool
        ``[P, H, K, V]``: sequence n has its state in row ``state_indices[n]``, and
        no other row is read or written. An index of -1 pads the batch: that
        sequence has no state, and its outputs are 0. Other indices outside the
        pool, and rows that are there twice, are a ValueError.

        With a history, the state before the step can be had back by `rollback`; with
        `states_every` also those after every so many of the step's tokens, 1 for all.
        """
        if self._past is not None or states_every is not None:
            return self._step_keeping(
                q, k, v,
                (decay, value_decay, beta, a, b, bonus, erase, write, input_gate, mask, cu_seqlens, state_indices),
                transition, update, readout, feature_map, normalize, (eps, floor, abs_floor, clamp),
                scale, reverse, out, num_threads, form, target, check, states_every,
            )  # fmt: skip
        arrays = (q, k, v, decay, value_decay, beta, a, b, bonus, erase, write, input_gate, mask)
        options = (
            cu_seqlens, state_indices, transition, update, readout, feature_map, normalize, eps,
            floor, abs_floor, clamp, scale, reverse, form, target, check, self.S, self.z, self.m,
        )  # fmt: skip
        last, result = self._last, None
        try:
            if last is not None:  # which gives None unless it differs in its arrays alone
                result = last(arrays, options, out, self._owned, num_threads)
            if result is None:
                self._check_kept(state_indices)
                plan, operands = find_plan(
                    q, k, v, (*arrays[3:], cu_seqlens, state_indices), transition, update, readout,
                    feature_map, self.z is not None if normalize is None else normalize,
                    (eps, floor, abs_floor, clamp), scale, self, True, None, reverse, form, target,
                    check, self.layout, "step",
                )  # fmt: skip
                state = unpack(self, plan, "state")
                self._last = None
                if check is False and cu_seqlens is None and state_indices is None and (
                    feature_map is None or isinstance(feature_map, str)
                ):
                    numbers = operands[sum(array is not None for array in arrays) :]
                    self._last = _linattn.Step(arrays, options, plan, state, numbers)
                result = plan(operands, state, out, self._owned, num_threads)
        except BaseException as error:
            self._lose(error, state_indices)
            raise
        if result[1] is not self.S or len(result) > 2:
            self._replace(options[-3], *result[1:])
        return result[0]

    def _step_keeping(
        self, q, k, v, operands, transition, update, readout, feature_map, normalize, denominator,
        scale, reverse, out, num_threads, form, target, check, every,
    ):  # fmt: skip
        """`step` of a state with a history."""
        if self._past is None:
            raise ValueError("states_every: expected it only for a state with a history, but got it without")
        if operands[-1] is not None:
            raise ValueError("state_indices: expected it only for a state without a history, but got both")
        self._check_kept()
        if every is not None:
            every = check_every(every)
            if operands[-2] is not None:
                raise ValueError("states_every: expected it only without cu_seqlens, but got both")
        plan, arrays = find_plan(
            q, k, v, operands, transition, update, readout, feature_map,
            self.z is not None if normalize is None else normalize, denominator, scale, self, True,
            None, reverse, form, target, check, self.layout, "step", every,
        )  # fmt: skip
        state = unpack(self, plan, "state")
        memory = self._take_memory() or False
        try:
            o, *results = plan(arrays, state, out, memory, num_threads)
        except BaseException as error:
            if memory and _was_ended(error):
                self._past.popleft()
            raise
        final, kept = results[: len(state)], results[len(state) :]
        count = kept[0].shape[1] if kept else 0
        for index in range(count):
            self._keep([parts[:, index] for parts in kept], reuse=False)
        # The state after the last token may be among these.
        if not count or count * every < shape_of("q", q)[-2 if len(shape_of("q", q)) < 4 else 1]:
            self._keep(final)
        return o

    def _take_memory(self):
        """Arrays of the oldest kept state for reuse, or None."""
        if len(self._past) < self._past.maxlen or not self._past[0][1]:
            return None
        parts = self._past[0][0]
        return parts if all(_is_reusable(part) for part in parts) else None

    def _keep(self, parts, reuse=True):
        """Replaces the parts, and appends the former ones to the history."""
        self._past.append((self._parts(), self._owned))
        self._replace(self.S, *parts)
        self._owned = reuse

    def rollback(self, n=1):
        """Goes back to the state before the last n steps; a step with `states_every`
        counts as many as it kept states. A ValueError if that many are not kept."""
        if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)):
            raise TypeError(f"n: expected an integer, but got {type(n).__name__}")
        kept = 0 if self._past is None else len(self._past)
        if not 0 <= n <= kept:
            raise ValueError(f"n: expected at most {kept}, the states that are kept, but got {n}")
        for _ in range(n):
            parts, owned = self._past.pop()
            self._replace(self.S, *parts)
            self._owned = owned

    @property
    def history(self):
        """The largest number of kept states."""
        return 0 if self._past is None else self._past.maxlen

    def snapshot(self):
        """An independent state with the current contents and without a history."""
        return self.copy()

    def update(self, k, v, *, feature_map=None, num_threads=None, target=None, **gates):
        """Writes tokens without reading any: S + Σ φ(k) vᵀ.

        With gates, or with other updates than "add", the keywords of
        `linattn.scan`.
        """
        if gates:
            self.step(k, k, v, feature_map=feature_map, num_threads=num_threads, target=target, **gates)
            return
        feature_map, maps = _features.split(feature_map, k=k, streams=True)
        plan = _state_plan("update", feature_map, self, (None,) * 4, None, target)
        before, keeps = self.S, self._past is not None
        self._check_kept()
        try:
            _, *parts = plan((k, v, *maps), self._parts(), None, self._owned and not keeps, num_threads)
        except BaseException as error:
            if not keeps:
                self._lose(error)
            raise
        self._keep(parts) if keeps else self._replace(before, *parts)

    def query(
        self, q, *, feature_map=None, normalize=None, eps=None, floor=None, abs_floor=None,
        clamp=None, scale=None, out=None, num_threads=None, target=None,
    ):  # fmt: skip
        """Reads tokens without writing any: scale · Sᵀφ(q), divided by
        scale · z·φ(q) + eps under `normalize`, the default where there is a z.

        eps, floor, abs_floor and clamp are those of `linattn.attention`.
        """
        if normalize is not None and bool(normalize) != (self.z is not None):
            raise ValueError(
                f"normalize: expected {self.z is not None} for a state "
                f"{'with' if self.z is not None else 'without'} z, but got {normalize}"
            )
        self._check_kept()
        feature_map, maps = _features.split(feature_map, q=q, streams=True)
        denominator = (eps, floor, abs_floor, clamp)
        numbers = ()
        if scale is not None:
            scale, numbers = _plans.split_scale(scale, target)
        plan = _state_plan("query", feature_map, self, denominator, scale, target)
        # But for an absolute floor a running maximum cancels in the quotient.
        return plan((q, *maps, *numbers), self._parts()[: plan.state_parts], out, False, num_threads)

    def _replace(self, before, S, z=None, m=None):
        """Replaces the contents by those of another state, unless another thread has."""
        if self.S is not before:
            raise RuntimeError("state: expected no other thread to step it meanwhile, but one did")
        self.S, self.z, self.m = S, z, m
        self._owned = True

    def _lose(self, error, rows=None):
        """Records the parts that an ended call has left half written."""
        if not self._owned or not _was_ended(error):
            return
        self._last = None
        former = self._lost[1] if self._lost is not None and self._lost[0] is self.S else frozenset()
        if rows is not None and former is not None:
            rows = np.asarray(rows) if isinstance(rows, (list, tuple)) else _arrays.to_host(rows)
            former = former.union(rows.tolist()) - {-1}
        else:
            former = None
        self._lost = (self.S, former)

    def _check_kept(self, rows=None):
        """Raises a ValueError if contents are lost."""
        if self._lost is None or self._lost[0] is not self.S:
            return
        lost = self._lost[1]
        if lost is None:
            raise ValueError(
                "state: expected one whose last step was done, but got one whose step was ended before; "
                "its contents are lost"
            )
        rows = range(self.S.shape[0]) if rows is None else np.asarray(rows).tolist()
        for row in rows:
            if row in lost:
                raise ValueError(
                    f"state: expected rows whose last step was done, but got row {row}, whose step was "
                    f"ended before; its contents are lost"
                )

    def _restore(self, rows):
        """Marks rows of a pool as valid again after they have been written."""
        if self._lost is not None and self._lost[1] is not None:
            self._lost = (self._lost[0], self._lost[1].difference(rows.tolist()))
            if not self._lost[1]:
                self._lost = None

    def copy(self):
        """An independent state with the same contents, and without a history."""
        self._check_kept()
        parts = (self.S, self.z, self.m)
        parts = (part if part is None else _arrays.copy(part) for part in parts)
        return State._own(*parts, layout=self.layout)

    def save(self, path):
        """Writes a .npz file, or a .safetensors file by the suffix of the path."""
        self._check_kept()
        parts = {"S": self.S, "z": self.z, "m": self.m}
        arrays = {name: _arrays.to_numpy(part) for name, part in parts.items() if part is not None}
        if self.layout == "vk":  # keys come first in files
            arrays["S"] = arrays["S"].swapaxes(2, 3)
        if os.fspath(path).endswith(".safetensors"):
            _arrays.save_safetensors(path, arrays)
            return
        with _arrays.replacing(path) as file:
            np.savez(file, **arrays)  # a file: given a path, savez may change its name

    @classmethod
    def load(cls, path):
        """Reads a file of `save`. Nothing in it is executed."""
        if os.fspath(path).endswith(".safetensors"):
            arrays = _arrays.load_safetensors(path)
        else:
            arrays = _arrays.load_npz(path)
        if "S" not in arrays or not set(arrays) <= {"S", "z", "m"}:
            raise ValueError(f"{os.fspath(path)}: expected arrays S, z and m, but got {', '.join(arrays) or 'none'}")
        for name, array in arrays.items():
            if array.dtype not in (np.float32, np.float64):
                raise ValueError(f"{name}: expected float32 or float64, but got {array.dtype}")
        return cls._own(*(arrays.get(name) for name in ("S", "z", "m")))


def _check_history(history):
    if isinstance(history, (bool, np.bool_)) or not isinstance(history, (int, np.integer)):
        raise TypeError(f"history: expected an integer, but got {type(history).__name__}")
    if history < 0:
        raise ValueError(f"history: expected a number of states, but got {history}")
    return int(history)


def _was_ended(error):
    """Whether a kernel ran and ended early."""
    return getattr(error, "_ended_call", False)


def _is_reusable(part):
    """Whether results can be written to the array. Arrays of JAX are constant."""
    return isinstance(part, np.ndarray) or hasattr(part, "data_ptr")


def _state_plan(what, feature_map, state, denominator, scale, target):
    wide = _arrays.dtype_name(state.S) == "float64"
    key = (what, feature_map, state.z is None, state.m is None, denominator, scale, target, wide, state.layout)
    return _plans.find(key)


def _make_state_plan(what, feature_map, no_z, no_m, denominator, scale, target, wide, layout):
    if scale is not _plans.PER_CALL:
        scale = check_number("scale", scale)
    denominator = _plans.check_denominator(denominator, not no_z)
    phi = _features.parse(feature_map)
    _plans.check_abs_floor(denominator, phi.kind)
    if phi.kind == "exp" and not no_z and no_m:
        raise ValueError(
            "feature_map: expected exp, or an exponential, only for a state with m, but got "
            f"{feature_map!r} for one without m"
        )
    # A state with m and another map is one that an input gate has written.
    gated = not no_m and phi.kind != "exp"
    if gated and what == "update":
        raise ValueError(
            "feature_map: expected exp, or an input_gate, for a state with m, but got "
            f"{feature_map!r} and none"
        )
    options = _function.Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, normalize=not no_z,
        denominator=denominator, has_state=True, returns_state=what == "update",
        state_dtype="float64" if wide else None, gates=("input_gate",) if gated else (),
    )  # fmt: skip
    return _plans.make_plan(
        options, _text.update_text if what == "update" else _text.query_text,
        scale="K**-0.5" if scale is None else scale, target=_plans.parse_target(target), what=what,
        tokens="q" if what == "query" else "kv",
        parts=options.query_parts if what == "query" else 3, state_layout=layout, given="step",
    )  # fmt: skip


makers.update({what: partial(_make_state_plan, what) for what in ("update", "query")})
