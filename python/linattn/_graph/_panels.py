"""A call of a recurrence whose tokens lie in several places: its arrays by the letters of their
dimensions, and its panels."""

from __future__ import annotations

import inspect
import math

from .. import _linattn
from .._core._checks import UnsupportedError
from .._core._recipe import without_output
from .._families import _named
from .._families._beyond import selective_scan
from .._maps._token_maps import TokenMap
from .._recurrence._scan import scan
from .._recurrence._scan_plans import GATES
from .._recurrence._state import State

__all__ = ["REFUSED", "Call", "bind"]

_TOKENS = {"q": "B T Hq K", "k": "B T Hk K", "v": "B T Hv V"}
_SCAN = {**_TOKENS, **{name: layout for name, (_, layout) in GATES.items()}}
_STATES = ("initial_state", "initial_states", "Input_States")
_RETURNS = ("return_state", "output_final_state", "return_final_states", "return_last_state")
# Options that mean nothing for a part of the tokens, or for a state that goes on to another process.
REFUSED = {"out": None, "inplace": False, "states_every": None, "state_indices": None}
# The dimension that divides a recurrence into panels, if it is not heads: in these families the
# computation depends on the head's number.
_PANELS = {"retnet": "V", "lightning": "V", "hgrn": "V", "rwkv4": "C", "selective_scan": "C"}
# Columns come in whole vectors.
_COLUMNS = 32
# A panel should take longer than its message: operations in each, at least.
_LEAST_WORK = 1e7
# Panels for each part that waits for the first one: of n, n / (n + 1) of the time is work.
_PER_WAIT = 8
# Bytes of a token in a panel, at least, unless there are few panels.
_LEAST_BYTES, _LEAST_PANELS = 1024, 4


def bind(kind, function, args, kwargs):
    """The call of a function, its arguments by name.

    Args:
      kind: the class of the call, for one library of arrays.

    Raises:
      TypeError, UnsupportedError: naming what cannot be called so.
    """
    name = getattr(function, "__name__", type(function).__name__)
    described = None
    if function is selective_scan or function is getattr(_named, name, None):
        described = _linattn.families.describe(name, {})
    elif function is not scan:
        raise TypeError(f"function: expected linattn.scan or a named family of linattn, but got {name}")
    arguments = inspect.signature(function).bind(*args, **kwargs)
    arguments.apply_defaults()
    return kind(function, name, described, dict(arguments.arguments))


def _axes(layout):
    """The letters of each of the user's dimensions."""
    return [dim.replace("*", " ").split() for dim in layout.split("->")[0].split()]


class Call:
    """A function, and what it is called with. A library of arrays makes a class of it that has
    `check(name, operand)`, `narrow(array, axis, start, length)` and `offsets_of(offsets)`.

    Attributes:
      operands: the arrays that are there, by name, but for the states and cu_seqlens.
      initial: the parts of the initial state, or None.
      returns: whether the final state is returned.
      out: where the outputs go, or None.
      refused: the options that this library's calls do not take, and their harmless values.
    """

    refused = REFUSED

    def __init__(self, function, name, described, arguments):
        self.function, self.name = function, name
        for option, harmless in self.refused.items():
            if arguments.pop(option, harmless) is not harmless:
                raise UnsupportedError(f"{option}: expected it only on one process, but got it on several")
        self.out = arguments.pop("out", None)
        self._state_name = next((option for option in _STATES if option in arguments), None)
        self._returns_name = next((option for option in _RETURNS if option in arguments), None)
        if self._state_name is None or self._returns_name is None:
            raise UnsupportedError(f"function: expected one with an initial and a final state, but got {name}")
        self.initial = _parts(arguments.pop(self._state_name))
        self.returns = bool(arguments.pop(self._returns_name))
        self.offsets = arguments.pop("cu_seqlens", None)
        self.takes_offsets = "cu_seqlens" in inspect.signature(function).parameters
        if described is None:
            layouts = _SCAN
        else:
            layouts = {operand: layout for operand, _, layout, _ in described["operands"]}
        if isinstance(arguments.get("feature_map"), TokenMap):
            raise UnsupportedError(
                "feature_map: expected a map of numbers, but got one of whole tokens, which q and k can be put through before"
            )
        self.operands, self._axes = {}, {}
        for operand, layout in layouts.items():
            if arguments.get(operand) is not None:
                self.operands[operand] = self.check(operand, arguments.pop(operand))
                self._axes[operand] = _match(operand, self.operands[operand], layout)
        self.options = arguments
        self.reverse = bool(arguments.get("reverse", False))
        self._describe_results(described, arguments)
        self.panel = _PANELS.get(name, "H")

    def _describe_results(self, described, arguments):
        if described is None:
            transposed = arguments.get("state_layout") == "vk"
            self.state_axes = [_axes("N H V K" if transposed else "N H K V"), _axes("N H K"), _axes("N H")]
            self.state_names, self.output_axes = ["S", "z", "m"], _axes("B T Ho V")
            return
        if "normalize" in arguments:
            described = _linattn.families.describe(self.name, {"normalize": float(bool(arguments["normalize"]))})
        self.state_axes = [_axes(layout) for _, _, layout in described["state"]]
        self.state_names = [name for name, _, _ in described["state"]]
        self.output_axes = _axes(described["output"])

    # ------------------------------------------------------------------------

    def time_axis(self, name):
        """The axis of an operand's tokens, and the number of its rows per token; or None."""
        for axis, letters in enumerate(self._axes[name]):
            if letters[0] in ("T", "Tn"):
                rows = self.options.get("num_householder", 1) if letters[0] == "Tn" else 1
                return axis, rows
        return None

    def length(self):
        """The number of tokens. Raises a ValueError if operands differ in it."""
        lengths = {}
        for name, operand in self.operands.items():
            place = self.time_axis(name)
            if place is not None:
                lengths[name] = operand.shape[place[0]] / place[1]
        (first, length), *others = lengths.items()
        for name, other in others:
            if other != length:
                raise ValueError(f"{name}: expected the sequence length of {first}, {length:g}, but got {other:g}")
        return int(length)

    def output_time(self):
        return next(axis for axis, letters in enumerate(self.output_axes) if letters[0] == "T")

    def batch(self):
        name, operand = next(iter(self.operands.items()))
        axes = [letters[0] for letters in self._axes[name]]
        return operand.shape[axes.index("B")]

    def panel_counts(self, state_shapes):
        """Into how many panels every array falls, ascending. Each has parts of the state of
        its own."""
        members, least = _members(self.panel), 1 if self.panel == "H" else _COLUMNS
        arrays = [(self.operands[name].shape, axes) for name, axes in self._axes.items()]
        sizes = {shape[axis] for shape, axes in arrays for axis, letters in enumerate(axes) if letters[0] in members}
        own = [
            [shape[axis] for axis, letters in enumerate(axes) if letters[0] in members]
            for shape, axes in zip(state_shapes, self.state_axes)
        ]
        if not all(own):
            return [1]
        own = {size for sizes in own for size in sizes}
        return [1] + [
            count
            for count in range(2, max(own) // least + 1)
            if all(size % (count * least) == 0 for size in own)
            and all(size % count == 0 or count % size == 0 for size in sizes)
        ]

    def choose_panels(self, requested, state_shapes, waits, tokens, threads, token_bytes):
        """Into how many panels a call falls: the requested number, or one that is chosen.

        Args:
          waits: for how many parts the last one waits.
          tokens: of a part; token_bytes: of the output of a token.

        Raises:
          ValueError: the arrays do not fall into the requested number.
        """
        counts = self.panel_counts(state_shapes)
        if requested is not None:
            if requested not in counts:
                counts = ", ".join(map(str, counts))
                raise ValueError(f"panels: expected one of {counts} for {self.name}, but got {requested}")
            return requested
        work = 4.0 * tokens * sum(math.prod(shape) for shape in state_shapes)
        heads = max((shape[0] * shape[1] for shape in state_shapes if len(shape) > 2), default=1)
        most = min(_PER_WAIT * waits, work / _LEAST_WORK)
        if self.panel == "H":
            most = min(most, heads // threads)
        counts = [count for count in counts if count <= max(most, 1)]
        # Narrow panels read little of each token's memory; few panels wait long.
        wide = [count for count in counts if count <= _LEAST_PANELS or token_bytes / count >= _LEAST_BYTES]
        return wide[-1]

    # ------------------------------------------------------------------------

    def slice(self, name, tokens, panel, panels):
        """A view of some tokens of an operand and a panel of its heads."""
        return self.slice_of(self.operands[name], name, tokens, panel, panels)

    def slice_of(self, operand, name, tokens, panel, panels):
        """The same view of another array of that shape."""
        place = self.time_axis(name)
        if place is not None:
            axis, rows = place
            operand = self.narrow(operand, axis, tokens.start * rows, (tokens.stop - tokens.start) * rows)
        return self._panel_of(operand, self._axes[name], panel, panels)

    def slice_state(self, part, index, panel, panels):
        return self._panel_of(part, self.state_axes[index], panel, panels)

    def slice_output(self, output, tokens, panel, panels):
        output = self.narrow(output, self.output_time(), tokens.start, tokens.stop - tokens.start)
        return self._panel_of(output, self.output_axes, panel, panels)

    def _panel_of(self, array, axes, panel, panels):
        if panels == 1:
            return array
        for axis, letters in enumerate(axes):
            if letters[0] in _members(self.panel):
                size = array.shape[axis]
                # Fewer heads than panels: neighbouring panels share one.
                count = max(size // panels, 1)
                array = self.narrow(array, axis, panel * size // panels, count)
        return array

    def panel_of(self, name, panel, panels):
        """A panel of an operand's heads with all tokens."""
        return self._panel_of(self.operands[name], self._axes[name], panel, panels)

    def owns(self, name, panels):
        """Whether no two panels of the tokens share elements of an operand."""
        if self.time_axis(name) is None:
            return False
        sizes = zip(self.operands[name].shape, self._axes[name])
        return panels == 1 or any(size >= panels for size, letters in sizes if letters[0] in _members(self.panel))

    def panel_axis(self, axes):
        """The axis of a result along which panels divide it."""
        return next(axis for axis, letters in enumerate(axes) if letters[0] in _members(self.panel))

    def run(self, operands, state, offsets, out=None):
        """Calls the function. Returns the output and the parts of the final state."""
        options = dict(self.options)
        if offsets is not None:
            options["cu_seqlens"] = self.offsets_of(offsets)
        if state is not None:
            if self.function is scan:
                layout = options.get("state_layout")
                state = State(*state, layout=layout) if layout else State(*state)
            else:
                state = state[0] if len(state) == 1 else tuple(state)
            options[self._state_name] = state
        if out is not None:
            options["out"] = out
        o, final = self.function(**operands, **options, **{self._returns_name: True})
        return o, _parts(final)

    def run_state(self, operands, state, offsets):
        """The parts of the final state alone, in fewer operations than `run`. An UnsupportedError
        where tokens read the state that they update."""
        with without_output():
            return self.run(operands, state, offsets)[1]

    def wrap(self, parts):
        """The final state in the function's own form."""
        if self.function is scan:
            layout = self.options.get("state_layout")
            return State(*parts, layout=layout) if layout else State(*parts)
        if len(parts) == 1:
            return parts[0]
        return State(*parts) if self.state_names[0] == "S" else tuple(parts)


def _members(panel):
    """The letters of dimensions that panels divide together with this one."""
    return {"H": ("H", "Hq", "Hk", "Hv", "Ho", "G"), "V": ("V",), "C": ("C", "G")}[panel]


def _parts(state):
    if state is None:
        return None
    if isinstance(state, State):
        return state._parts()
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)


def _match(name, operand, layout):
    """The letters of the dimensions in the layout of the operand's rank."""
    options = [_axes(option) for option in layout.split("|")]
    for axes in options:
        if len(axes) == operand.ndim:
            return axes
    expected = " or ".join("[" + ", ".join("·".join(dim) for dim in axes) + "]" for axes in options)
    raise ValueError(f"{name}: expected {expected}, but got {operand.ndim} dimensions")
