"""The functions of the named families, made from the compiler's table.

The table gives a function its signature, docstring and operands; the function is
compiled from the signature, so that Python itself knows its parameters and refuses
any other. `selective_scan`, which takes complex arrays, is written by hand (`_beyond`).
"""

from __future__ import annotations

import inspect
import re
import textwrap

from .. import _linattn
from ._family import Family, offsets

__all__ = []  # every family's function

_table = _linattn.families

# Family by name: without the checks and the defaults of the functions.
families = {}


def _parse(signature):
    """Parses the parameters of a signature in Python's syntax."""
    namespace = {}
    exec(f"def function({signature}): pass", namespace)  # noqa: S102
    return inspect.signature(namespace["function"]).parameters


def _make_family(name, document, parameters):
    """Makes the `Family`, with options of the types of their defaults."""
    kinds = {"flags": [], "numbers": [], "integers": [], "words": []}
    for option, _ in document["options"]:
        default = parameters[option].default
        if default is inspect.Parameter.empty:
            kinds["integers"].append(option)
        elif isinstance(default, bool):
            kinds["flags"].append(option)
        elif isinstance(default, str):
            kinds["words"].append(option)
        else:
            kinds["numbers"].append(option)
    described = {name for name, _ in (*document["operands"], *document["options"])}
    state, returns_state = (name for name in parameters if name not in described)
    return Family(name, state=state, returns_state=returns_state, **kinds)


def _make(name):
    """Makes the function of a family."""
    document = _table.document(name)
    signature = document["signature"]
    parameters = _parse(signature)
    family = _make_family(name, document, parameters)
    families[name] = family
    operands = [operand for operand, _, _ in family.operands]
    if "*" not in signature:
        signature += ", *"
    if "cu_seqlens" in operands:
        signature += ", cu_seqlens=None"
    signature += ", inplace=False, out=None, num_threads=None"
    form = '"auto"'
    if document["has_forms"]:
        signature, form = signature + ', form="auto"', "form"
    signature += ", target=None"
    given = ", ".join("_offsets(cu_seqlens)" if x == "cu_seqlens" else x for x in operands)
    options = ", ".join(f'"{option}": {option}' for option, _ in document["options"])
    source = (
        f"def {name}({signature}):\n"
        f"    return _family(({given},), {{{options}}}, {family.state}, {family.returns_state}, out, num_threads, "
        f"{form}, target, inplace)\n"
    )
    namespace = {"_family": family, "_offsets": offsets}
    exec(compile(source, f"<linattn.{name}>", "exec"), namespace)  # noqa: S102
    function = namespace[name]
    function.__module__ = "linattn"
    function.__doc__ = _describe(name, document, inspect.signature(function).parameters, family.returns_state)
    return function


# ----------------------------------------------------------------------------
# Docstrings
# ----------------------------------------------------------------------------

_WIDTH = 88


def _shape(layouts):
    """Layouts of the table as shapes: ``[B, T, H]`` or ``[B, T, H, V]``."""
    shapes = [layout.split("->")[0].split() for layout in layouts.split("|")]
    return " or ".join(f"``[{', '.join(dims)}]``" for dims in shapes).replace("*", "·")


def _describe_operand(name, role, layouts, doc, first):
    text = f"{_shape(layouts)}, {doc}"
    if name == first:
        return (
            f"{text}, or without the dimension of the batch or of the heads; float16, bfloat16, float32 or "
            "float64. Any array with ``__dlpack__``, any strides."
        )
    return f"{text}; of {first}'s rank and dtype." if role == "tokens" else f"{text}; any floating-point dtype."


def _describe_state(parts):
    texts = []
    for name, layout, condition, initial in parts:
        text = _shape(layout) if len(parts) == 1 else f"{name} {_shape(layout)}"
        if initial:
            text += f" (at first {initial:g})"
        texts.append(f"{text} with {condition}" if condition else text)
    joined = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    whole = ", or a `State`" if len(texts) == 1 or texts[0].startswith("S ") else ""
    return f"{joined}, float32 (float64 for float64 tokens){whole}; zeros unless given."


def _wrap(text, indent="", hanging=""):
    return textwrap.fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    )


def _describe(name, document, parameters, returns_state):
    described = _table.describe(name, {})
    operands = {operand: (role, layouts) for operand, role, layouts, _ in described["operands"]}
    docs = dict((*document["operands"], *document["options"]))
    first = next(iter(operands))
    rules = [rule for rule in described["rules"] if "{" not in rule]
    has_heads = any(dim.startswith("H") for role, layouts in operands.values() for dim in layouts.split())
    lines = [f"{document['title']}.", "", f"{'Per head, for' if has_heads else 'For'} t = 0, 1, …::", ""]
    lines += [_wrap(line, "    ", "    ") for line in re.split(r"[,;]  ", document["formula"])]
    lines += ["", _wrap(f"{document['paper']}.")]
    if document["note"]:
        lines += ["", _wrap(document["note"])]
    if rules:
        lines += ["", _wrap(f"Head counts divide one another: {', '.join(rules)}.")]
    lines += ["", "Args:"]
    names = list(parameters)
    names, common = names[: names.index("inplace")], names[names.index("inplace") :]
    for parameter in names:
        if parameter == "cu_seqlens":
            text = "``[N + 1]`` offsets of packed sequences, B = 1."
        elif parameter in operands:
            text = _describe_operand(parameter, *operands[parameter], docs[parameter], first)
        elif parameter in docs:
            text = docs[parameter] + "."
        elif parameter == returns_state:
            text = "also return the state after the last token."
        else:
            text = _describe_state(document["state"])
        lines.append(_wrap(f"{parameter}: {text}", "  ", "  "))
    lines.append(f"  {', '.join(common)}: as in `scan`.")
    output = _shape(described["output"])[2:-2]
    lines += [
        "", "Returns:",
        _wrap(f"``o {output}``, of {first}'s kind and rank; with {returns_state} ``(o, state)``.", "  "),
        "", "Raises:",
        "  ValueError, TypeError: naming the operand, what was expected and what came.",
    ]  # fmt: skip
    if "form" in parameters:
        lines.append("  ValueError: naming `form`, one that is illegal for the recurrence, and why.")
    return "\n".join(lines)


for _name in _table.names():
    if _table.document(_name)["signature"]:
        globals()[_name] = _make(_name)
        __all__.append(_name)
