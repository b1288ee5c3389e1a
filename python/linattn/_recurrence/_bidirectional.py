"""`bidirectional`: two scans, in one function."""

from __future__ import annotations

import dataclasses

import numpy as np

from .._core._checks import check_flag, check_number, parse_form
from .._core._recipe import makers
from .._maps import _features
from . import _function, _plans, _rules, _scan_plans
from ._state import State

__all__ = ["bidirectional"]

_GATES = ("decay", "value_decay", "beta", "a", "b", "cu_seqlens")


def bidirectional(
    q, k, v, *, decay=None, value_decay=None, beta=None, a=None, b=None, transition="before",
    update="add", feature_map=None, scale=None, initial_state=None, return_state=False,
    cu_seqlens=None, out=None, num_threads=None, form="auto", target=None,
):  # fmt: skip
    """Every token reads all tokens, with decays in both directions.

    The sum of two scans that run at once::

        o = scan(q, k, v, …) + scan(q, k, v, …, reverse=True, readout="exclusive")

    so a token reads itself once, the past through the decays after each key up to
    its own, and the future through the decays between it and each key. Without
    decays this is `attention` without `causal`, which costs half as much.

    Args:
      q, k, v, decay, value_decay, beta, a, b, transition, update: as in `linattn.scan`.
      feature_map, scale, cu_seqlens, out, num_threads, form, target: as in `linattn.scan`.
      initial_state: a pair of states, of what comes before the first token and of
        what comes after the last.
      return_state: also return both final states.

    Returns:
      ``o``, or ``(o, (forward, backward))`` with `return_state`.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    if isinstance(cu_seqlens, (list, tuple)):
        cu_seqlens = np.asarray(cu_seqlens, np.int64)
    given = dict(zip(_GATES, (decay, value_decay, beta, a, b, cu_seqlens)))
    given = {name: array for name, array in given.items() if array is not None}
    feature_map, maps = _features.split(feature_map, q, k, initial_state is not None)
    numbers = ()
    if scale is not None:
        scale, numbers = _plans.split_scale(scale, target)
    key = (
        "bidirectional", tuple(given), transition, update, feature_map, scale, form, target,
        initial_state is None, return_state,
    )  # fmt: skip
    plan = _plans.find(key)
    state = None if initial_state is None else unpack(initial_state)
    result = plan((q, k, v, *maps, *given.values(), *numbers), state, out, False, num_threads)
    if return_state:
        o, forward, backward = result
        return o, (State(forward), State(backward))
    return result


def unpack(initial_state):
    """The two states as arrays."""
    if not isinstance(initial_state, (tuple, list)) or len(initial_state) != 2:
        raise TypeError(
            "initial_state: expected a pair of states, forward and backward, but got "
            f"{type(initial_state).__name__}"
        )
    return tuple(part.S if isinstance(part, State) else part for part in initial_state)


def _make_plan(gates, transition, update, feature_map, scale, form, target, no_state, return_state):
    return_state = check_flag("return_state", return_state)
    if scale is not _plans.PER_CALL:
        scale = check_number("scale", scale)
    target, (form, config) = _plans.parse_target(target), parse_form(form)
    if form == "quadratic":
        raise ValueError("form: expected a recurrent form for bidirectional, but got quadratic")
    phi = _features.parse(feature_map)
    _scan_plans.check_family(gates, update, "inclusive", transition, False, phi.kind)
    options = _function.Options(
        kind=phi.kind, region=phi.region, maps=phi.maps, config=config, update=update,
        transition=transition, has_state=not no_state, returns_state=return_state, gates=gates,
    )  # fmt: skip

    return _plans.make_plan(
        options, _make_text, scale="K**-0.5" if scale is None else scale, target=target,
        what="bidirectional", gates=[(name, *_scan_plans.GATES[name]) for name in gates], same_length=True,
        state=(("S", "state", "N H K V"), ("S_reverse", "state", "N H K V")),
    )  # fmt: skip


makers["bidirectional"] = _make_plan


def _make_text(options, sizes, others, maps=()):
    f = _function.Function(options, sizes, maps)
    q, k, v = f.mapped_tokens(f.token_arguments())
    gates = f.gate_arguments(others)
    scale = f.scale_argument()
    ((_, type_),) = f.state_types()
    if options.has_state:
        states = [f.argument(name, type_) for name in ("S", "S_reverse")]
        heads = f.state_heads()
    else:
        count = f.count_sequences(q, gates)
        heads = f.state_heads()
        states = f.zero_state(count, heads) * 2
    dest = f.output(heads)
    outputs, finals = [], []
    for state, name, readout in zip(states, ("forward", "backward"), ("inclusive", "exclusive")):
        f.options = dataclasses.replace(options, reverse=name == "backward", readout=readout)
        text = f"linattn.scan {q}, {k}, {v}"
        text += "".join(_function.clause(gate, value) for gate, value in gates.items())
        text += _function.clause("scale", scale)
        if options.update != "add":
            text += f" update({options.update})"
        if readout != "inclusive":
            text += f" readout({readout})"
        if _rules.takes_transition(options.update):
            text += f" transition({options.transition})"
        text += f" into({dest}) init({state})"
        text += f.attributes("reverse", "feature_map", "scale", "config")
        results = [f"o_{name}", f"S_{name}"]
        f.op(results, text, [q, k, v, *gates.values(), *([scale] if scale else []), dest, state], [f.output_type, type_])
        outputs.append(f"%o_{name}")
        finals.append(f"%S_{name}")
    o = f.define("o", f"arith.addf {outputs[0]}, {outputs[1]} : {f.output_type}", f.output_type)
    return f.finish("bidirectional", [f.narrow(o), *(finals if options.returns_state else ())])
