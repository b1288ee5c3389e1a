"""A call of a recurrence: its arrays by the letters of their dimensions, and its panels."""

from __future__ import annotations

import inspect

import torch

from .. import _linattn
from .._checks import UnsupportedError
from .._scan import GATES, scan
from .._state import State
from .._token_maps import TokenMap

__all__ = ["Call", "bind"]

_TOKENS = {"q": "B T Hq K", "k": "B T Hk K", "v": "B T Hv V"}
_SCAN = {**_TOKENS, **{name: layout for name, (_, layout) in GATES.items()}}
_STATES = ("initial_state", "initial_states", "Input_States")
_RETURNS = ("return_state", "output_final_state", "return_final_states", "return_last_state")
# Options that mean nothing for a part of the tokens, or for a state that goes on to another process.
_REFUSED = {"out": None, "inplace": False, "states_every": None, "state_indices": None}
# Dimensions along which a recurrence falls into panels, where it is not heads: those of these
# families depend on a head's number.
_PANELS = {"retnet": "V", "lightning": "V", "hgrn": "V", "rwkv4": "C", "selective_scan": "C"}
# Columns come in whole vectors.
_COLUMNS = 32


def bind(function, args, kwargs):
    """The call of a function, its arguments by name.

    Raises:
      TypeError, UnsupportedError: naming what cannot be called so.
    """
    name = getattr(function, "__name__", type(function).__name__)
    try:
        described = None if function is scan else _linattn.families.describe(name, {})
    except Exception:
        described = None
    if function is not scan and (described is None or not (function.__module__ or "").startswith("linattn._")):
        raise TypeError(f"function: expected linattn.scan or a named family of linattn, but got {name}")
    arguments = inspect.signature(function).bind(*args, **kwargs)
    arguments.apply_defaults()
    return Call(function, name, described, dict(arguments.arguments))


def _axes(layout):
    """The letters of each dimension as users see it."""
    return [dim.replace("*", " ").split() for dim in layout.split("->")[0].split()]


class Call:
    """A function, and what it is called with.

    Attributes:
      operands: the arrays that are there, by name, but for the states and cu_seqlens.
      initial: the parts of the initial state, or None.
      returns: whether the caller wants the final state.
    """

    def __init__(self, function, name, described, arguments):
        self.function, self.name = function, name
        for option, harmless in _REFUSED.items():
            if arguments.pop(option, harmless) is not harmless:
                raise UnsupportedError(f"{option}: expected it only on one process, but got it on several")
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
                self.operands[operand] = _check_tensor(operand, arguments.pop(operand))
                self._axes[operand] = _match(operand, self.operands[operand], layout)
        self.options = arguments
        self.reverse = bool(arguments.get("reverse", False))
        self.device = next(iter(self.operands.values())).device
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
        """The axis of an operand's tokens and how many of its rows a token has, or None."""
        for axis, letters in enumerate(self._axes[name]):
            if letters[0] in ("T", "Tn"):
                rows = self.options.get("num_householder", 1) if letters[0] == "Tn" else 1
                return axis, rows
        return None

    def length(self):
        """The number of tokens; a ValueError where operands differ in it."""
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

    def describe(self):
        """Lines that are the same on every process of one call."""
        lines = [f"function {self.name}"]
        for name, operand in self.operands.items():
            place = self.time_axis(name)
            shape = [
                "T" if place is not None and axis == place[0] else str(size)
                for axis, size in enumerate(operand.shape)
            ]
            lines.append(f"{name} [{', '.join(shape)}] {str(operand.dtype)[6:]}")
        for option, value in self.options.items():
            if option != "num_threads":
                lines.append(f"{option}={getattr(value, '__name__', value) if callable(value) else value}")
        return lines

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

    # ------------------------------------------------------------------------

    def slice(self, name, tokens, panel, panels):
        """A view of an operand: some of its tokens, and a panel of its heads."""
        return self.slice_of(self.operands[name], name, tokens, panel, panels)

    def slice_of(self, operand, name, tokens, panel, panels):
        """The same of an array of that operand's shape."""
        place = self.time_axis(name)
        if place is not None:
            axis, rows = place
            operand = operand.narrow(axis, tokens.start * rows, (tokens.stop - tokens.start) * rows)
        return self._panel_of(operand, self._axes[name], panel, panels)

    def slice_state(self, part, index, panel, panels):
        return self._panel_of(part, self.state_axes[index], panel, panels)

    def slice_output(self, output, tokens, panel, panels):
        output = output.narrow(self.output_time(), tokens.start, tokens.stop - tokens.start)
        return self._panel_of(output, self.output_axes, panel, panels)

    def _panel_of(self, array, axes, panel, panels):
        if panels == 1:
            return array
        for axis, letters in enumerate(axes):
            if letters[0] in _members(self.panel):
                size = array.shape[axis]
                # Fewer heads than panels: neighbouring panels share one.
                count = max(size // panels, 1)
                array = array.narrow(axis, panel * size // panels, count)
        return array

    def run(self, operands, state, offsets, out=None):
        """Calls the function. Returns the output and the parts of the final state."""
        options = dict(self.options)
        if offsets is not None:
            options["cu_seqlens"] = torch.tensor(offsets, dtype=torch.int64, device=self.device)
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

    def probe(self):
        """Calls the function with the first token, to see whether its operands go with one
        another.

        Returns:
          The output and state of that token, which say what those of all look like; and of
          packed sequences the state that a sequence starts from.
        """
        offsets = (0, 0, 1) if self.offsets is not None else None
        with torch.no_grad():
            operands = {name: self.slice(name, slice(0, 1), 0, 1).detach() for name in self.operands}
            output, parts = self.run(operands, None, offsets)
        if offsets is None:
            return output, parts, None
        return output, [part[1:] for part in parts], [part[:1] for part in parts]

    def wrap(self, parts):
        """The final state as the function would return it."""
        if self.function is scan:
            layout = self.options.get("state_layout")
            return State(*parts, layout=layout) if layout else State(*parts)
        if len(parts) == 1:
            return parts[0]
        return State(*parts) if self.state_names[0] == "S" else tuple(parts)


def _members(panel):
    """The letters of dimensions that are cut with that one."""
    return {"H": ("H", "Hq", "Hk", "Hv", "Ho", "G"), "V": ("V",), "C": ("C", "G")}[panel]


def _parts(state):
    if state is None:
        return None
    if isinstance(state, State):
        return state._parts()
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)


def _check_tensor(name, operand):
    if not isinstance(operand, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor of PyTorch, but got {type(operand).__name__}")
    return operand


def _match(name, operand, layout):
    """The letters of the dimensions, by the layout of the operand's rank."""
    options = [_axes(option) for option in layout.split("|")]
    for axes in options:
        if len(axes) == operand.dim():
            return axes
    expected = " or ".join("[" + ", ".join("·".join(dim) for dim in axes) + "]" for axes in options)
    raise ValueError(f"{name}: expected {expected}, but got {operand.dim()} dimensions")
