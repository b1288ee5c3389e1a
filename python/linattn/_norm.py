"""`output_norm`: RMS and layer norms of every token and head."""

from __future__ import annotations

import numpy as np

from . import _arrays, _linattn, _ops
from ._checks import check_choice, check_flag, check_number
from ._plain import without_places
from ._text import _tensor, float_literal

__all__ = ["output_norm"]

KINDS = ("rms", "layer")
ACTIVATIONS = ("silu", "swish", "sigmoid")


def output_norm(
    x, *, weight=None, bias=None, gate=None, kind="rms", activation="silu", gate_first=False,
    eps=1e-5, out=None, num_threads=None, target=None,
):  # fmt: skip
    """Normalizes the features of every token and head, as many linear attentions
    do instead of dividing by a denominator.

    ::

        rms     y = x / √(mean(x²) + eps)
        layer   y = (x − mean(x)) / √(var(x) + eps)
        o = (y · weight + bias) · act(gate)

    Statistics never cross tokens, so a stream gives the bits of the whole. See
    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Args:
      x: ``[B, T, H, D]``, ``[B, T, D]`` or ``[T, D]``; float16, bfloat16, float32
        or float64.
      weight, bias: ``[D]`` or ``[H, D]``; any floating-point dtype.
      gate: an array of x's shape and dtype.
      kind: "rms" or "layer".
      activation: "silu" (or "swish"), g·σ(g), or "sigmoid", σ(g).
      gate_first: normalize ``x · act(gate)`` instead of gating the result.
      eps: added to the mean square or the variance.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      An array of x's kind, shape and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    key = (
        "output_norm", weight is None, bias is None, gate is None, kind, activation, gate_first,
        eps, target,
    )  # fmt: skip
    try:
        plan = _ops._plans[key]
    except (KeyError, TypeError):
        plan = _make_plan(*key[1:])
        _ops._remember(key, plan)
    operands = tuple(array for array in (x, gate, weight, bias) if array is not None)
    return plan(operands, None, out, False, num_threads)


def _make_plan(no_weight, no_bias, no_gate, kind, activation, gate_first, eps, target):
    kind, activation, gate_first, eps = check_options(no_gate, kind, activation, gate_first, eps)
    target = _ops.parse_target(target)
    operands = [("x", "tokens", "B T H D")]
    if not no_gate:
        operands.append(("gate", "tokens", "B T H D"))
    for name, absent in (("weight", no_weight), ("bias", no_bias)):
        if not absent:
            operands.append((name, "gate", "D | H D"))

    def build(dtype, extents, others, on_device):
        chosen = _ops.resolve_target(target, on_device)
        T, H, D = extents.get("T"), extents.get("H"), extents["D"]
        tokens = _tensor(None, H, T, D, dtype)
        types = {"x": tokens}
        if not no_gate:
            types["gate"] = tokens
        for (name, role, _), (_, rank, scalar) in zip(
            [operand for operand in operands if operand[1] == "gate"], others
        ):
            types[name] = _tensor(*(D,) if rank == 1 else (H, D), scalar)
        order = [name for name in ("x", "weight", "bias", "gate") if name in types]
        clauses = "".join(f" {name}(%{name})" for name in order[1:])
        attributes = [f"eps = {float_literal(eps)}"] + (["gate_first"] if gate_first else [])
        head = f"linattn.output_norm %x kind({kind}){clauses}"
        head += f" activation({activation})" if "gate" in types else ""
        lines = [
            f"func.func @output_norm({', '.join(f'%{name}: {type_}' for name, type_ in types.items())}) -> {tokens} {{",
            *(f"  %c{i} = arith.constant {i} : index" for i in range(3)),
            *(f"  %d{i} = tensor.dim %x, %c{i} : {tokens}" for i in range(3)),
            f"  %empty = tensor.empty({', '.join(f'%d{i}' for i, size in enumerate((None, H, T)) if size is None)}) : {tokens}",
            f"  %o = {head} into(%empty) {{{', '.join(attributes)}}}",
            f"    : ({', '.join([types[name] for name in order] + [tokens])}) -> {tokens}",
            f"  return %o : {tokens}",
            "}",
            "",
        ]
        try:
            return _linattn.compile("\n".join(lines), "", "<output_norm>", chosen)
        except ValueError as error:
            raise ValueError(without_places(error)) from None

    return _linattn.Plan(build, operands, [], [], ("out", "tokens", "B T H D"), False, False, False)


def check_options(no_gate, kind, activation, gate_first, eps):
    kind = check_choice("kind", kind, KINDS)
    activation = check_choice("activation", activation, ACTIVATIONS)
    gate_first = check_flag("gate_first", gate_first)
    eps = check_number("eps", eps, minimum=0.0)
    if eps is None:
        raise TypeError("eps: expected a number, but got None")
    if gate_first and no_gate:
        raise ValueError("gate_first: expected it only with gate, but got it without")
    return kind, "silu" if activation == "swish" else activation, gate_first, eps


def reference_output_norm(
    x, *, weight=None, bias=None, gate=None, kind="rms", activation="silu", gate_first=False,
    eps=1e-5, out=None, num_threads=None, target=None,
):  # fmt: skip
    """`linattn.output_norm` by its formula, in float64."""
    kind, activation, gate_first, eps = check_options(gate is None, kind, activation, gate_first, eps)
    _ops.parse_target(target)

    def wide(array):
        return _arrays.to_numpy(array).astype(np.float64)

    y = wide(x)
    if gate is not None:
        g = wide(gate)
        act = 1.0 / (1.0 + np.exp(-g))
        act = act * g if activation == "silu" else act
    if gate_first:
        y = y * act
    if kind == "layer":
        y = y - y.mean(-1, keepdims=True)
    y = y / np.sqrt((y * y).mean(-1, keepdims=True) + eps)
    if weight is not None:
        y = y * wide(weight)
    if bias is not None:
        y = y + wide(bias)
    if gate is not None and not gate_first:
        y = y * act
    if out is not None:
        np.copyto(_arrays.to_numpy(out, "out"), y, casting="same_kind")
        return out
    return _arrays.convert_like(y, x)
