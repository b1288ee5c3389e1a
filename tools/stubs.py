#!/usr/bin/env python3
"""Prints python/linattn/_families/_named.pyi: the functions that the table of families makes.

Needs the built package in its path. `tools/docs.sh` keeps the file up to date.
"""

import inspect

from linattn._families import _named

_TYPES = {bool: "bool", float: "float", str: "str"}
_OTHERS = {"num_threads": "int | None", "target": "str | None", "scale": "float | None", "eps": "float | None",
           "lower_bound": "float | None", "layer_idx": "int", "num_layers": "int", "num_householder": "int"}  # fmt: skip


def _annotate(parameter):
    kind = _OTHERS.get(parameter.name) or _TYPES.get(type(parameter.default), "Any")
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}".replace("'", '"')
    return f"{parameter.name}: {kind}{default}"


def _stub(function):
    lines, parameters, starred = [], inspect.signature(function).parameters.values(), False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("*")
            starred = True
        lines.append(_annotate(parameter))
    body = "".join(f"    {line},\n" for line in lines)
    return f"def {function.__name__}(\n{body}) -> Any: ...\n"


def main():
    print("# Written by tools/stubs.py; do not edit.\n")
    print("from typing import Any\n\nfrom ._family import Family\n\nfamilies: dict[str, Family]\n")
    print("\n".join(_stub(getattr(_named, name)) for name in _named.__all__), end="")


if __name__ == "__main__":
    main()
