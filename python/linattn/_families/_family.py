"""How the named families are called.

The table of families lives in the compiler. A call looks up the plan for its
options and for which operands are there; the plan, in C++, looks at the arrays.
"""

from __future__ import annotations

import atexit
import numbers
import threading
from functools import partial

import numpy as np

from .. import _linattn
from .._core._checks import UnsupportedError, check_flag, check_legal_form, check_number, parse_form
from .._core._plain import without_places
from .._core._recipe import Recipe, local, makers
from .._recurrence._parts import check_inplace, describe_state, finish_inplace, name_state
from .._recurrence._plans import ALWAYS, PER_CALL, parse_target, remember_in, resolve_target, split_scale
from .._recurrence._state import State

__all__ = ["Family", "latest", "offsets"]

_table = _linattn.families
_families = {}


class _Latest(threading.local):
    """The thread's latest call of a plan, (plan, operands, state, in place, result), while
    `recorded`: it keeps the arrays."""

    recorded = False
    call = None


latest = _Latest()


class Family:
    """One entry of the table, with the plans that were made for it.

    Args:
      name: as the table calls it.
      flags, numbers: its options that are True or False, and those that are a
        number or None.
      integers: options that are whole numbers and must be given.
      state, returns_state: the parameters that are the initial state and whether the final
        one is returned.
    """

    def __init__(
        self, name, flags=(), numbers=("scale",), integers=(), words=(), state="initial_state",
        returns_state="output_final_state",
    ):  # fmt: skip
        self.name, self.state, self.returns_state = name, state, returns_state
        self.flags, self.numbers, self.integers, self.words = flags, numbers, integers, words
        described = _table.describe(name, {})["operands"]
        self.operands = [operand[:3] for operand in described]
        self.optional = [operand[3] for operand in described]
        # The op of log_linear has no operand for it.
        self.takes_scale = "scale" in numbers and name != "log_linear"
        self.plans = {}
        makers[name] = self._make_plan
        _families[name] = self

    def __call__(
        self, operands, options, initial_state, returns_state, out, num_threads, form, target,
        inplace=False,
    ):  # fmt: skip
        """Runs the family.

        Args:
          operands: all of the table's, in its order; None where left out.
          options: values by name, in any order but always the same.
          initial_state: None, an array, a tuple of arrays or a `State`.

        Returns:
          The output, or (output, state) with `returns_state`; the state is one
          array, a `State` where it has S and z, a tuple otherwise; with `inplace` it is
          what was given.
        """
        given = describe_state(initial_state)
        if inplace is not False:
            inplace = check_inplace(inplace, given, self.state)
        scale = ()
        if self.takes_scale and options.get("scale") is not None:
            known, scale = split_scale(options["scale"], target)
            options = {**options, "scale": known}
        key = (
            tuple([x is None for x in operands]), tuple(options.values()), given, returns_state,
            form, target, inplace,
        )  # fmt: skip
        try:
            plan = self.plans[key]
        except (KeyError, TypeError):
            plan = self._make_plan(key[0], options, *key[2:])
            self._remember(key, options, plan)
        present = tuple([x for x in operands if x is not None]) + scale
        state = None if given is None else self._unpack(initial_state, plan)
        if local.has_output:
            result = plan(present, state, out, ALWAYS if inplace else False, num_threads)
        else:
            result = plan.build.sum(present, state, num_threads)
        if latest.recorded:
            latest.call = (plan, present, state, bool(inplace), result)
        if inplace:
            o = finish_inplace(state, result)
            return (o, initial_state) if returns_state else o
        if not returns_state:
            return result
        if len(result) == 2:
            return result
        o, *parts = result
        return o, State(*parts) if self.state_names(options)[0] == "S" else tuple(parts)

    def _remember(self, key, options, plan):
        remember_in(self.plans, 256, key, plan)
        plan.build.key = (self.name, key[0], options, *key[2:])
        plan.build.with_constants = partial(_with_scale, self.name, key, options)

    def state_names(self, options):
        return [name for name, _, _ in _table.describe(self.name, self._clean(options))["state"]]

    # ------------------------------------------------------------------------

    def _clean(self, options):
        """The options in the table's types. Those that are None are left out."""
        clean = {}
        for name, value in options.items():
            if value is PER_CALL:
                continue
            if name in self.flags:
                clean[name] = float(check_flag(name, value))
            elif name in self.integers:
                if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
                    raise TypeError(f"{name}: expected an integer, but got {type(value).__name__}")
                clean[name] = check_number(name, value)
            elif name in self.words:
                if not isinstance(value, str):
                    raise TypeError(f"{name}: expected a name, but got {type(value).__name__}")
                clean[name] = value
            elif check_number(name, value, minimum=0 if name == "eps" else None) is not None:
                clean[name] = float(value)
        return clean

    def _make_plan(self, missing, options, state, returns_state, form, target, inplace):
        returns_state = check_flag("output_final_state", returns_state) or inplace
        has_state = state is not None
        given = []
        for (name, role, layouts), optional, absent in zip(self.operands, self.optional, missing):
            if not absent:
                given.append((name, role, layouts))
            elif role == "tokens" or not optional:
                raise TypeError(f"{name}: expected an array (an object with __dlpack__), but got NoneType")
        clean = self._clean(options)
        takes_scale = options.get("scale") is PER_CALL
        target, (form, config) = parse_target(target), parse_form(form)
        if form == "quadratic":
            raise ValueError(f"form: expected a recurrent form for {self.name}, but got quadratic")
        described = _table.describe(self.name, clean)
        others = [name for name, role, _ in given if role != "tokens"]
        family = self.name  # a plan that knew self would never be freed

        def text(dtype, extents, types, output=True):
            layouts = [(name, *type_[::2]) for name, type_ in zip(others, types)]
            try:
                return _table.text(
                    family, dtype, extents, layouts, clean, has_state, returns_state or not output, config or "",
                    takes_scale, output,
                )  # fmt: skip
            except ValueError as error:
                if output:
                    raise
                raise UnsupportedError(str(error)) from None

        def refuse(error):
            check_legal_form(error)
            raise UnsupportedError(f"{family}: not compiled yet: {without_places(error)}") from None

        scale = [("scale", "number", "")] if takes_scale else []
        return Recipe(
            family, text, lambda on_device: resolve_target(target, on_device), refuse, given + scale,
            described["rules"], name_state(described["state"], state, self.state),
            ("out", "tokens", described["output"]), has_state, returns_state,
        ).plan(fixes_heads=True)  # fmt: skip

    def _unpack(self, state, plan):
        """The arrays of an initial state, as many as the plan needs."""
        if isinstance(state, State):
            parts = state._parts()
        elif isinstance(state, (tuple, list)):
            parts = tuple(state)
        else:
            parts = (state,)
        if len(parts) != plan.state_parts:
            raise ValueError(
                f"{self.state}: expected {_count(plan.state_parts)} for {self.name}, but got "
                f"{_count(len(parts))}"
            )
        return parts


@atexit.register
def _forget_plans():
    """Clears plans, which hold functions of this module invisibly to the garbage collector."""
    for family in _families.values():
        family.plans.clear()


def _with_scale(name, key, options, scale):
    """The plan of a family's key for one scale."""
    family, options = _families[name], {**options, "scale": scale}
    key = (key[0], tuple(options.values()), *key[2:])
    plan = family.plans.get(key)
    if plan is None:
        plan = family._make_plan(key[0], options, *key[2:])
        family._remember(key, options, plan)
    return plan


def _count(number):
    return "one array" if number == 1 else f"{number} arrays"


def offsets(cu_seqlens):
    """`cu_seqlens` as an array; lists of integers are fine."""
    if isinstance(cu_seqlens, (list, tuple)):
        cu_seqlens = np.asarray(cu_seqlens)
        if cu_seqlens.dtype.kind == "i":
            return cu_seqlens.astype(np.int64)
    return cu_seqlens
