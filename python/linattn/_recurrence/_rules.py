"""The update rules of a scan, from the compiler's table."""

from __future__ import annotations

from .. import _linattn

__all__ = ["BEFORE", "OPERANDS", "RULES", "describe", "spell_rules_with", "takes_transition"]


# By name: formula, the operands it takes and needs, the schedules that refuse it and why.
RULES = {rule["name"]: rule for rule in _linattn.rules.list()}

# The clause that says where a transition reads the state.
BEFORE = "transition(before)"

# Operands that some rules have no place for, in the order of the checks.
OPERANDS = ("beta", "erase", "write", "a", "b", "value_decay", "bonus")


def takes_transition(update):
    """True if the transition may be placed before or after the decay."""
    return BEFORE in RULES[update]["takes"]


def spell_rules_with(clause):
    """``update='delta' or update='oja'``: the rules that take an operand or a clause."""
    return " or ".join(f"update={name!r}" for name, rule in RULES.items() if clause in rule["takes"])


def describe(function):
    """Puts a line for each rule in place of the line RULES of a docstring."""
    if function.__doc__ is None:  # Python runs without docstrings.
        return
    lines = (
        f'- ``"{name}"``: ``{rule["formula"]}``; {", ".join(rule["takes"])}'
        for name, rule in RULES.items()
    )  # fmt: skip
    function.__doc__ = function.__doc__.replace("RULES", "\n        ".join(lines))
