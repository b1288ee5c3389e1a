"""The recipe of a plan: the part of a call other than arrays.

A plan compiles a kernel for the dtype and the sizes that it meets. `linattn.torch`
needs the same description without the plan: to name a call in a graph, to know the
shapes of results before there are elements, and to derive a gradient from the text.
"""

from __future__ import annotations

import contextlib
import json
import threading
from functools import partial
from itertools import count

from .. import _linattn
from ._checks import UnsupportedError

__all__ = ["Recipe", "local", "makers", "without_output"]

# The functions that make plans, by name; each returns a plan, and possibly more.
makers = {}

_numbers = count()


class _Local(threading.local):
    has_output = True


local = _Local()


@contextlib.contextmanager
def without_output():
    """Inside of it, a call of a recurrence computes its final state alone, by `Recipe.sum`, and
    returns the state as a call with an output does, with None for the output.

    The call raises an UnsupportedError where tokens read the state that they update.
    """
    local.has_output = False
    try:
        yield
    finally:
        local.has_output = True


class Recipe:
    """The source of a plan's kernels, and the function that compiles it.

    Args:
      what: the function that is called, as messages call it.
      text: (dtype, extents, types) -> the function as MLIR; those of recurrences also take
        `output`, False for the final state alone.
      device_text: the same for a GPU, where that is another one.
      device_gradient: the same for gradients on a GPU, where that is a third one.
      resolve: (on_device) -> the target.
      refuse: raises an error of the compiler in the user's terms.
      operands, rules, state, output, has_state, returns_state, wide_state, snapshots: as
        `Plan` takes them.
      fixed: names of sizes that the text of a gradient has as constants, beside heads and features.
      recorded: the maker of a plan with further results, for the same arguments, that takes
        this one's place where gradients are recorded.
      keeps_results: the kernel of its gradient takes the results between operands and cotangents.
    """

    def __init__(
        self, what, text, resolve, refuse, operands, rules, state, output, has_state, returns_state,
        wide_state=False, snapshots=(), device_text=None, device_gradient=None, fixed=(), recorded=None, keeps_results=False,
    ):  # fmt: skip
        self.what, self.text, self.resolve, self.refuse = what, text, resolve, refuse
        self.operands, self.rules, self.state, self.output = list(operands), list(rules), list(state), output
        self.has_state, self.returns_state, self.wide_state = has_state, returns_state, wide_state
        self.snapshots, self.device_text = list(snapshots), device_text or text
        self.device_gradient, self.fixed = device_gradient or text, fixed
        self.recorded, self.keeps_results = recorded, keeps_results
        # The name of a maker and its arguments, once the plan is remembered by them.
        self.key = None
        # Plans with numbers as constants, by these numbers, for a plan that takes them as operands.
        self.with_constants = None
        self._name = None
        self._fixes_heads, self._sum = False, None

    def __call__(self, dtype, extents, types, on_device, sequences=0, tokens=0):
        chosen = self.resolve(on_device)
        text = (self.device_text if chosen.startswith("nvvm") else self.text)(dtype, extents, types)
        try:
            return _linattn.compile(text, "", f"<{self.what}>", chosen, sequences=sequences, tokens=tokens)
        except ValueError as error:
            self.refuse(error)
            raise

    def plan(self, fixes_heads, trusts_state=False):
        """The plan of this recipe."""
        self._fixes_heads = fixes_heads
        return _linattn.Plan(
            self, self.operands, self.rules, self.state, self.output, self.has_state, self.returns_state,
            fixes_heads, self.wide_state, trusts_state, self.snapshots, self._emulates_device(),
        )  # fmt: skip

    def sum(self, operands, state, num_threads):
        """The final state of a call with these arrays, without its output: (None, part, …)."""
        if self._sum is None:
            recipe = Recipe(
                f"{self.what}, its state alone,", partial(self.text, output=False), self.resolve, self.refuse,
                self.operands, self.rules, self.state, None, self.has_state, True, self.wide_state,
            )  # fmt: skip
            self._sum = recipe.plan(self._fixes_heads)
        if not self._sum:
            raise UnsupportedError(f"{self.what}: expected a state that is a sum over tokens, but got one that they read")
        try:
            return self._sum(operands, state, None, False, num_threads)
        except UnsupportedError:
            self._sum = False
            raise

    def _emulates_device(self):
        try:
            return self.resolve(False) == "nvvm-emulated"
        except ValueError:  # arrays of a GPU are expected
            return False

    @property
    def results(self):
        """The results of a call, described like operands."""
        found = [] if self.output is None else [self.output]
        return found + (self.state if self.returns_state else []) + self.snapshots

    @property
    def name(self):
        """The key in words. Another process can make the plan of them, unless a function of
        Python is part of it."""
        if self._name is None:
            try:
                self._name = json.dumps(self.key, default=_plain)
            except TypeError:
                self._name = f"{self.what} #{next(_numbers)}"
        return self._name


def _plain(value):
    """Converts NumPy's numbers and flags to Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError
