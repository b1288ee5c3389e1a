"""The recipe of a plan: the part of a call other than arrays.

A plan compiles a kernel for the dtype and the sizes that it meets. `linattn.torch`
needs the same description without the plan: to name a call in a graph, to know the
shapes of results before there are elements, and to derive a gradient from the text.
"""

from __future__ import annotations

import json
from itertools import count

from .. import _linattn

__all__ = ["Recipe", "makers"]

# The functions that make plans, by name; each returns a plan, whatever else it returns.
makers = {}

_numbers = count()


class Recipe:
    """The source of a plan's kernels, and the function that compiles it.

    Args:
      what: the function that is called, as messages call it.
      text: (dtype, extents, types) -> the function as MLIR.
      device_text: the same for a GPU, where that is another one.
      resolve: (on_device) -> the target.
      refuse: raises an error of the compiler in the user's terms.
      operands, rules, state, output, has_state, returns_state, wide_state, snapshots: as
        `Plan` takes them.
      recorded: the maker of a plan with further results, for the same arguments, that takes
        this one's place where gradients are recorded.
      keeps_results: the kernel of its gradient takes the results between operands and cotangents.
    """

    def __init__(
        self, what, text, resolve, refuse, operands, rules, state, output, has_state, returns_state,
        wide_state=False, snapshots=(), device_text=None, recorded=None, keeps_results=False,
    ):  # fmt: skip
        self.what, self.text, self.resolve, self.refuse = what, text, resolve, refuse
        self.operands, self.rules, self.state, self.output = list(operands), list(rules), list(state), output
        self.has_state, self.returns_state, self.wide_state = has_state, returns_state, wide_state
        self.snapshots, self.device_text = list(snapshots), device_text or text
        self.recorded, self.keeps_results = recorded, keeps_results
        # The name of a maker and its arguments, once the plan is remembered by them.
        self.key = None
        # Numbers -> the plan that has them as constants; of a plan whose operands they are.
        self.with_constants = None
        self._name = None

    def __call__(self, dtype, extents, types, on_device, sequences=0, tokens=0):
        chosen = self.resolve(on_device)
        text = (self.device_text if chosen.startswith("nvvm") else self.text)(dtype, extents, types)
        try:
            return _linattn.compile(text, "", f"<{self.what}>", chosen, sequences=sequences, tokens=tokens)
        except ValueError as error:
            self.refuse(error)
            raise

    def plan(self, fixes_heads, trusts_state=False):
        """The plan."""
        return _linattn.Plan(
            self, self.operands, self.rules, self.state, self.output, self.has_state, self.returns_state,
            fixes_heads, self.wide_state, trusts_state, self.snapshots, self._emulates_device(),
        )  # fmt: skip

    def _emulates_device(self):
        try:
            return self.resolve(False) == "nvvm-emulated"
        except ValueError:  # arrays of a GPU are expected
            return False

    @property
    def results(self):
        """The results of a call, described as operands are."""
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
    """NumPy's numbers and flags."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError
