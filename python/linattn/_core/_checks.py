"""Checks of options other than arrays. Each error names its operand."""

from __future__ import annotations

import math
import numbers
import operator
import re

import numpy as np

__all__ = [
    "UnsupportedError", "check_choice", "check_divides", "check_flag", "check_legal_form", "check_number", "check_parity",
    "check_positive", "check_size", "parse_form", "parse_pattern",
]  # fmt: skip

FORMS = ("auto", "quadratic", "token", "state-tile", "chunk", "segments")


# How the compiler refuses a form.
_ILLEGAL_FORM = re.compile(r"cannot run in form (\w+): ([^\n]*)")


class UnsupportedError(ValueError, NotImplementedError):
    """A legal combination that the compiler does not support yet."""


def check_flag(name, value):
    if value is True or value is False:
        return value
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
    try:
        value = float(value)
    except OverflowError:  # of an integer
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, but got {value}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name}: expected a number of at least {minimum}, but got {value}")
    return value


def check_positive(name, value):
    """A finite number above 0, or None."""
    value = check_number(name, value)
    if value is not None and value <= 0:
        raise ValueError(f"{name}: expected a positive number, but got {value}")
    return value


def check_size(name, value):
    """A positive integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected an integer, but got {type(value).__name__}")
    value = operator.index(value)
    if value < 1:
        raise ValueError(f"{name}: expected a positive integer, but got {value}")
    return value


def check_parity(name, value, odd):
    """A positive integer that is odd, or even."""
    if check_size(name, value) % 2 != odd:
        raise ValueError(f"{name}: expected an {'odd' if odd else 'even'} number, but got {value}")
    return value


def check_divides(name, size, of, whole):
    if whole % size:
        raise ValueError(f"{name}: expected a number that divides {of}, {whole}, but got {size}")
    return size


def check_choice(name, value, choices):
    """One of these names, or None if it is among them."""
    if value is None and None in choices:
        return None
    expected = ", ".join(map(str, choices))
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected one of {expected}, but got {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"{name}: expected one of {expected}, but got {value!r}")
    return value


def parse_form(form):
    """(name, config): the form, and the op's attribute for it or None for auto."""
    if not isinstance(form, str):
        raise TypeError(f"form: expected one of {', '.join(FORMS)}, but got {type(form).__name__}")
    name, colon, size = form.partition(":")
    check_choice("form", name, FORMS)
    sizes = {"chunk": "chunk", "segments": "segment"}
    if colon and (name not in sizes or not size.isdecimal() or int(size) < 1):
        raise ValueError(f"form: expected a number of tokens only as in chunk:64 or segments:512, but got {form!r}")
    if name in ("auto", "quadratic"):
        return name, None
    config = f"form = {name.replace('-', '_')}"
    return name, config + (f", {sizes[name]} = {int(size)}" if colon else "")


def check_legal_form(error):
    """Raises the compiler's refusal of a form as an error of the operand `form`."""
    illegal = _ILLEGAL_FORM.search(str(error))
    if illegal:
        form, why = illegal.groups()
        raise ValueError(
            f"form: expected one that is legal here, but got {form.replace('_', '-')}: {why}"
        ) from None


def parse_pattern(window, dilation, global_tokens):
    """The parameters of `#linattn.pattern`; None if all keys are visible."""
    numbers = {"window": (0 if window is None else window, 0 if window is None else 1),
               "dilation": (dilation, 1), "global_tokens": (global_tokens, 0)}  # fmt: skip
    for name, (number, least) in numbers.items():
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise TypeError(f"{name}: expected an integer, but got {type(number).__name__}")
        if not least <= number < 2**31:
            raise ValueError(f"{name}: expected a number in [{least}, 2**31), but got {number}")
    if window is None and dilation == 1:
        if global_tokens:
            raise ValueError("global_tokens: expected a window or dilation beside them, but got neither")
        return None
    return tuple(int(number) for number, _ in numbers.values())
