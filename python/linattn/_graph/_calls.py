"""Calls by name: plans for graphs that outlive the Python objects of a call."""

from __future__ import annotations

import json
from typing import NamedTuple

from .. import _linattn
from .._core._recipe import Recipe, makers
from . import _layouts

__all__ = ["Call", "find", "name_of"]

_calls = {}
# Graphs keep names, and these the plans.
_linattn.outlive()


class Call(NamedTuple):
    """A plan and its recipe."""

    plan: _linattn.Plan
    recipe: Recipe
    # Kernels by signature, and by the shapes of a call.
    gradients: dict
    derived: dict

    @property
    def what(self):
        return self.recipe.what

    @property
    def names(self):
        """The names of operands and of parts of the state."""
        return [name for name, _, _ in (*self.recipe.operands, *self.recipe.state)]

    @property
    def roles(self):
        return [role for _, role, _ in (*self.recipe.operands, *self.recipe.state)]

    def bind(self, shapes):
        return _layouts.bind(self.recipe, shapes)

    def result_dtypes(self, tokens):
        """The names of the dtypes of results, for tokens of a dtype."""
        state = "float64" if self.recipe.wide_state or tokens == "float64" else "float32"
        return [state if role == "state" else tokens for _, role, _ in self.recipe.results]


def name_of(plan):
    """The name of a plan in a graph."""
    name = plan.build.name
    if name not in _calls:
        _calls[name] = Call(plan, plan.build, {}, {})
    return name


def find(name):
    """The call of that name. Makes the plan if another process named it."""
    try:
        return _calls[name]
    except KeyError:
        pass
    try:
        kind, *arguments = json.loads(name, object_hook=None)
        maker = makers[kind]
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"call: expected the name of a call, but got {name!r}; one with a function of Python in it is known to "
            "the process alone that made it"
        ) from None
    plan = maker(*_tuples(arguments))
    plan.build.key = (kind, *_tuples(arguments))
    return _calls.setdefault(name, Call(plan, plan.build, {}, {}))


def _tuples(value):
    """Converts lists to tuples, which JSON lacks."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
