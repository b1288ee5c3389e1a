"""The plans of scans, which `scan`, `bidirectional` and steps of a `State` call.

Combinations of operands are checked here, their shapes in C++, and both again by
the compiler.
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from .._core._arrays import dtype_name, integers_like, to_numpy
from .._core._checks import check_choice, check_flag, check_number, parse_form
from .._core._recipe import makers
from .._maps import _features
from .._maps._token_maps import TokenMap
from . import _plans, _rules, _text
from ._parts import Parts, find_layout
from ._function import Options

__all__ = ["GATES", "check_decays", "check_every", "check_family", "find_plan"]


# Operands beside the tokens, in the op's order, with their role and layouts.
GATES = {
    "decay": ("gate", "H | B T H | B T H K"),
    "value_decay": ("gate", "B T H V"),
    "beta": ("gate", "B T H | B T H V"),
    "a": ("gate", "B T H K"),
    "b": ("gate", "B T H K"),
    "bonus": ("gate", "H K"),
    "erase": ("gate", "B T H K"),
    "write": ("gate", "B T H V"),
    "input_gate": ("gate", "B T H"),
    "mask": ("mask", "B T"),
    "cu_seqlens": ("offsets", "T"),
    "state_indices": ("counts", "N"),
}


def find_plan(
    q, k, v, operands, transition, update, readout, feature_map, normalize, denominator, scale,
    initial_state, return_state, state_dtype, reverse, form, target, check, state_layout, given,
    every=None,
):  # fmt: skip
    """The plan of a scan, and its arrays and numbers."""
    if check is not False and check_flag("check", check):
        check_decays(decay=operands[0], value_decay=operands[1])
    present, maps = (), ()
    if isinstance(feature_map, TokenMap):
        feature_map, maps = _features.split(feature_map, q, k, initial_state is not None)
    arrays = (q, k, v, *maps)
    gates = [operand for operand in operands if operand is not None]
    if gates:
        if operands[-1] is not None or operands[-2] is not None:
            operands = (*operands[:-2], *(integers_like(operand, q) for operand in operands[-2:]))
            gates = [operand for operand in operands if operand is not None]
        present = tuple([operand is not None for operand in operands])
        arrays += tuple(gates)
    if state_dtype is None and isinstance(initial_state, Parts):
        # Made so on purpose, unlike an array, which is float64 by NumPy's default.
        state_dtype = "float64" if dtype_name(initial_state.S) == "float64" else None
    state_layout = find_layout(initial_state, state_layout)
    if scale is not None:
        scale, numbers = _plans.split_scale(scale, target)
        arrays += numbers
    key = (
        "scan", present, transition, update, readout, feature_map, normalize, denominator, scale,
        form, target, reverse, given, return_state, state_dtype, state_layout, every,
    )  # fmt: skip
    plan = _plans.find(key)
    return plan, arrays


def _make_scan_plan(
    present, transition, update, readout, feature_map, normalize, denominator, scale, form, target,
    reverse, given, return_state, state_dtype, state_layout, every,
):  # fmt: skip
    gates = tuple(compress(GATES, present))
    normalize = check_flag("normalize", normalize)
    reverse = check_flag("reverse", reverse)
    return_state = check_flag("return_state", return_state)
    if scale is not _plans.PER_CALL:
        scale = check_number("scale", scale)
    if state_dtype is not None:
        check_choice("state_dtype", state_dtype, ("float32", "float64"))
    denominator = _plans.check_denominator(denominator, normalize)
    target, (form, config) = _plans.parse_target(target), parse_form(form)
    phi = _features.parse(feature_map)
    check_family(gates, update, readout, transition, normalize, phi.kind)
    _plans.check_abs_floor(denominator, phi.kind)
    if form == "quadratic":
        raise ValueError(
            "form: expected a recurrent form for scan, but got quadratic; attention(causal=True) has it"
        )
    options = Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, normalize=normalize,
        denominator=denominator, config=config, update=update, readout=readout,
        transition=transition, reverse=reverse, has_state=given is not None,
        returns_state=return_state, gates=gates, state_dtype=state_dtype, every=every,
    )  # fmt: skip
    return _plans.make_plan(
        options, _text.scan_text, scale="K**-0.5" if scale is None else scale, target=target,
        what="scan", gates=[(name, *GATES[name]) for name in gates], same_length=True,
        state_layout=state_layout, pool="state_indices" in gates, given=given,
    )  # fmt: skip


makers["scan"] = _make_scan_plan


def check_family(gates, update, readout, transition, normalize, kind):
    """Raises for operands and options without others that they need."""
    check_choice("transition", transition, ("before", "after"))
    check_choice("update", update, tuple(_rules.RULES))
    check_choice("readout", readout, ("inclusive", "exclusive"))
    rule = _rules.RULES[update]
    if "bonus" in gates and readout != "exclusive":
        raise ValueError("bonus: expected it only with readout='exclusive', but got it without")
    for name in _rules.OPERANDS:
        if name in gates and name not in rule["takes"]:
            raise ValueError(f"{name}: expected it only with {_rules.spell_rules_with(name)}, but got it without")
    if transition == "after" and not rule["couples_rows"]:
        raise ValueError(
            f"transition: expected it only with {_rules.spell_rules_with(_rules.BEFORE)}, but got update={update!r}"
        )
    _check_needs(rule, gates)
    if normalize and ("normalize" not in rule["takes"] or readout != "inclusive"):
        raise ValueError(
            f"normalize: expected it only with {_rules.spell_rules_with('normalize')} and readout='inclusive', but got "
            f"update={update!r} and readout={readout!r}"
        )
    if normalize and "value_decay" in gates:
        raise ValueError(
            "normalize: expected it without value_decay, but got both: one denominator cannot "
            "follow factors that differ between value columns"
        )
    if "input_gate" in gates and not normalize:
        raise ValueError("input_gate: expected it only with normalize=True, but got it without")
    if "input_gate" in gates and kind == "exp":
        raise ValueError("input_gate: expected another feature map than exp, but got both")


def _check_needs(rule, gates):
    missing = [name for name in rule["needs"] if name not in gates]
    if not missing or (not rule["needs_all"] and len(missing) < len(rule["needs"])):
        return
    others = "" if rule["needs_all"] else "".join(f", or {name}" for name in missing[1:])
    raise ValueError(f"{missing[0]}: expected an array with update={rule['name']!r}{others}, but got None")


def check_decays(**decays):
    """Raises a ValueError for the first decay that is above 0 or NaN."""
    for name, decay in decays.items():
        if decay is None:
            continue
        decay = to_numpy(decay, name)
        bad = np.argwhere(~(decay <= 0))
        if len(bad):
            index = tuple(bad[0].tolist())
            raise ValueError(
                f"{name}: expected natural logarithms of at most 0, but got {decay[index]} at {index}"
            )


# More tokens than any array has, and few enough to multiply.
_LONGEST = 1 << 40


def check_every(every):
    if isinstance(every, (bool, np.bool_)) or not isinstance(every, (int, np.integer)):
        raise TypeError(f"states_every: expected an integer, but got {type(every).__name__}")
    if every < 1:
        raise ValueError(f"states_every: expected a positive number of tokens, but got {every}")
    return min(int(every), _LONGEST)
