"""Plans: the kernels of calls that differ in their arrays alone.

A call looks up the plan for its options; the plan, in C++, looks at the arrays
and finds the kernel for their dtype and head sizes. Everything else runs once
per combination.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial

from .. import _linattn
from .._core._checks import UnsupportedError, check_choice, check_legal_form, check_number, check_positive
from .._core._plain import without_places
from .._core._recipe import Recipe, makers
from ._parts import name_state
from ._function import Sizes

__all__ = [
    "ALWAYS", "PER_CALL", "check_abs_floor", "check_denominator", "default_eps", "filled_eps", "find", "known",
    "make_plan", "parse_target", "remember_in", "resolve_target", "split_scale",
]  # fmt: skip

# In the key of a plan: the scale of each call is an operand of its kernels.
PER_CALL = object()

# Options -> Plan. Feature maps that are made anew for every call must not fill
# the memory.
known = {}
_MAX_PLANS = 1024

# The flag of a plan whose initial state must become the final one.
ALWAYS = 2

# The state's parts.
_STATE = (("S", "state", "N H K V"), ("z", "state", "N H K"), ("m", "state", "N H"))


def split_scale(scale, target):
    """The scale as a plan knows it and the operands that it has for it: 1 costs nothing as
    a constant, and kernels of a GPU take no other."""
    if type(scale) is not float or not math.isfinite(scale):
        scale = check_number("scale", scale)
    if scale is None or scale == 1.0 or target in ("nvvm", "nvvm-emulated"):
        return scale, ()
    return PER_CALL, (scale,)


def find(key):
    """The plan of a key, which is the name of a maker and its arguments."""
    try:
        return known[key]
    except (KeyError, TypeError):
        pass
    plan = makers[key[0]](*key[1:])
    remember_in(known, _MAX_PLANS, key, plan)
    plan.build.key = key
    plan.build.with_constants = partial(_with_scale, key)
    return plan


def _with_scale(key, scale):
    """The plan of that key for one scale."""
    return find(tuple([scale if part is PER_CALL else part for part in key]))


def remember_in(plans, most, key, plan):
    """Remembers a plan, and drops the least recently used half of too many."""
    if len(plans) >= most:
        for old, _ in sorted(list(plans.items()), key=lambda item: item[1].last_use)[: most // 2]:
            plans.pop(old, None)
    plans[key] = plan


def default_eps(dtype):
    return 1e-4 if dtype in ("f16", "bf16") else 1e-6


def check_denominator(numbers, normalize):
    """(eps, floor, abs_floor, clamp) as numbers or None."""
    eps, floor, abs_floor, clamp = numbers
    eps = check_number("eps", eps, minimum=0.0)
    floor, abs_floor, clamp = (
        check_positive(name, number)
        for name, number in (("floor", floor), ("abs_floor", abs_floor), ("clamp", clamp))
    )
    for name, number in (("eps", eps), ("floor", floor), ("abs_floor", abs_floor), ("clamp", clamp)):
        if number is not None and not normalize:
            raise ValueError(f"{name}: expected it only with normalize=True, but got {number} without")
    for name, number in (("eps", eps), ("abs_floor", abs_floor)):
        if floor is not None and number is not None:
            raise ValueError(f"floor: expected it without {name}, but got both")
    return eps, floor, abs_floor, clamp


def check_abs_floor(denominator, kind):
    if denominator[2] is not None and kind == "exp":
        raise ValueError(
            "abs_floor: expected another feature map than exp, whose true denominator is never "
            "formed, but got both; use floor"
        )


def filled_eps(denominator, dtype):
    """The eps to add: 0 beside a floor, unless the caller gives one."""
    eps, floor, abs_floor, _ = denominator
    if eps is None and floor is None and abs_floor is None:
        return default_eps(dtype)
    return eps


def make_plan(
    options, text, *, scale, target, what, gates=(), tokens="qkv", same_length=False, parts=3,
    state=None, state_layout="kv", pool=False, given=None, recorded=None, keeps_results=False,
):  # fmt: skip
    """A plan whose kernels come from `text`; eps and scale are filled in for the
    dtype and head size. `given` is what `describe_state` says of the initial state, or
    "step" where a state steps itself."""

    def write(dtype, extents, others, output=True):
        sizes = Sizes.of(dtype, extents)
        filled = dataclasses.replace(
            options,
            eps=filled_eps(options.denominator, sizes.dtype),
            scale=sizes.K**-0.5 if scale == "K**-0.5" else None if scale is PER_CALL else scale,
            takes_scale=scale is PER_CALL,
            output=output,
        )
        entries = [
            (rank, dtype, [extents.get(name) for name in layouts.split("|")[alternative].split()])
            for (alternative, rank, dtype), (_, _, layouts) in zip(others, described[len(tokens) :])
        ]
        maps_, others = entries[: len(maps)], [entry[:2] for entry in entries[len(maps) :]]
        return text(filled, sizes, others, maps_) if maps else text(filled, sizes, others)

    def refuse(error):
        check_legal_form(error)
        unsupported = _describe_unsupported(options)
        if unsupported:
            raise UnsupportedError(f"{unsupported}: not compiled yet: {without_places(error)}") from None
        raise ValueError(without_places(error)) from None

    keys = "T" if same_length else "Tk"
    layouts = {"q": "B T Hq K", "k": f"B {keys} Hk K", "v": f"B {keys} Hv V"}
    rules = ["H = max(Hk, Hv)"] if "k" in tokens else []
    rules += ["Ho = max(Hq, H)"] if "q" in tokens else []
    if state is None:
        state = _STATE[: min(parts, 1 + options.normalize + options.stabilized)]
    if state_layout == "vk":
        state = (("S", "state", "N H V K -> N H K V"), *state[1:])
    if pool:  # of any number of states
        state = [(name, role, layout.replace("N ", "Np ")) for name, role, layout in state]
    maps = []
    if options.maps is not None:
        # Gates and states have a row for every feature.
        maps = options.maps.operands("q" in tokens, "k" in tokens, same_length)
        rules.append(options.maps.rule("k" if "k" in tokens else "q"))
        state = [(name, role, layout.replace(" K", " F")) for name, role, layout in state]
        gates = [(name, role, layout.replace(" K", " F")) for name, role, layout in gates]
    # A scan takes no tuples: one would be its S.
    state = name_state(state, "array" if given == "tuple" else given)
    kept = []
    if options.every is not None:
        rules.append(f"Ts = T / {options.every}")
        kept = [(name, role, _between(layout)) for name, role, layout in state]
    described = [(name, "tokens", layouts[name]) for name in tokens] + maps + list(gates)
    numbers = [("scale", "number", "")] if scale is PER_CALL else []
    return Recipe(
        what, write, lambda on_device: resolve_target(target, on_device), refuse, described + numbers, rules, state,
        ("out", "tokens", "B T Ho V") if "q" in tokens else None, options.has_state, options.returns_state,
        options.wide_state, kept, recorded=recorded, keeps_results=keeps_results,
    ).plan(
        # Recurrences are laid out for the heads of the call, and so are the kernels of a GPU and of a matrix unit.
        target == "nvvm-emulated" or what == "scan"
        or options.weights == "linear" and (options.causal or _linattn.has_matrix_unit())
        or bool(options.config) and ("token" in options.config or "chunk" in options.config),
        given == "step",
    )  # fmt: skip


def _between(layout):
    """The layout of snapshots, from that of a state."""
    user, _, logical = layout.partition("->")
    return " -> ".join(order.strip().replace("N ", "N Ts ", 1) for order in (user, logical or user))


def _describe_unsupported(options):
    """The options beyond the plain recurrence, by name."""
    names = [name for name in options.gates if name != "mask"]
    if options.update != "add":
        names.append("update")
    if options.readout != "inclusive":
        names.append("readout")
    if options.reverse:
        names.append("reverse")
    return ", ".join(names)


def parse_target(target):
    if target is None:
        return None
    return check_choice("target", target, ("cpu", "nvvm", "reference", "nvvm-emulated"))


def resolve_target(target, on_device):
    """The target of a call: the named one, or that of the arrays' device."""
    if target is None:
        return "nvvm" if on_device else "cpu"
    if on_device != (target == "nvvm"):
        where = ("the memory of the CPU", "the memory of a GPU")
        raise ValueError(
            f"target: expected arrays in {where[target == 'nvvm']} for target={target!r}, but got "
            f"arrays in {where[on_device]}"
        )
    return target


