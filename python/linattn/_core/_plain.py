"""Errors of the extension module in the user's terms."""

from __future__ import annotations

import functools
import re

__all__ = ["plainly", "without_places"]

_REFUSED = re.compile(
    r"^(\w+)\(\): incompatible function arguments.*?1\. \w+\((.*?)\) -> .*?Invoked with types: (.*)$", re.DOTALL
)
# Where something is in a module that the package has written: nothing to a user.
_PLACE = re.compile(r"<\w+>(:\d+:\d+)?: (error|note): ")


def plainly(function):
    """Wraps a function so that its TypeError states the expected type."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            message = _describe(str(error))
            if message is None:
                raise
        raise TypeError(message)

    return call


def _describe(message):
    refused = _REFUSED.match(message)
    if refused is None:
        return None
    name, expected, got = refused.groups()
    expected = re.sub(r"^self(, )?", "", expected)
    if expected != refused.group(2):
        got = got.partition(", ")[2]
    return f"{name}: expected {f'the arguments {expected}' if expected else 'no arguments'}, but got {got or 'none'}"


def without_places(error):
    """The text of a compiler error without the locations in a generated module."""
    return _PLACE.sub("", str(error))
