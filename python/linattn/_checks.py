"""Checks of the options that are not arrays; each error names its operand."""

from __future__ import annotations

import math
import numbers

import numpy as np

__all__ = ["UnsupportedError", "check_flag", "check_number", "check_choice", "parse_form"]

FORMS = ("auto", "quadratic", "token", "state-tile", "chunk", "segments")


class UnsupportedError(ValueError, NotImplementedError):
    """A legal combination that the compiler cannot run yet."""


def check_flag(name, value):
    # 0 and 1 too: they are equal to the keys of False and True.
    if not isinstance(value, (bool, np.bool_, int)) or value not in (0, 1):
        raise TypeError(f"{name}: expected True or False, but got {value!r}")
    return bool(value)


def check_number(name, value, minimum=None):
    """A finite number or None."""
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: expected a number or None, but got {type(value).__name__}")
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, but got {value}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name}: expected a number of at least {minimum}, but got {value}")
    return value


def check_choice(name, value, choices):
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected one of {', '.join(choices)}, but got {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, but got {value!r}")
    return value


def parse_form(form):
    """(name, config): the form and the op's attribute for it, None for auto."""
    if not isinstance(form, str):
        raise TypeError(f"form: expected one of {', '.join(FORMS)}, but got {type(form).__name__}")
    name, colon, size = form.partition(":")
    check_choice("form", name, FORMS)
    if colon and (name != "chunk" or not size.isdecimal() or int(size) < 1):
        raise ValueError(f"form: expected a number of tokens only as in chunk:64, but got {form!r}")
    if name == "segments":
        raise UnsupportedError("form: expected another form than segments, which is not compiled yet")
    if name in ("auto", "quadratic"):
        return name, None
    config = f"form = {name.replace('-', '_')}"
    return name, config + (f", chunk = {int(size)}" if colon else "")
