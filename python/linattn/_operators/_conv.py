"""`causal_conv1d`: the short convolution before a recurrence."""

from __future__ import annotations

import numbers

import numpy as np

from .._core import _arrays
from .._core._arrays import integers_like
from .._core._checks import check_flag
from .._core._recipe import Recipe, makers
from .._recurrence import _plans
from .._recurrence._function import tensor_type

__all__ = ["causal_conv1d"]

ACTIVATIONS = (None, "silu", "swish")
MAX_WIDTH = 16


def causal_conv1d(
    x, weight, bias=None, *, activation=None, initial_state=None, return_state=False,
    cu_seqlens=None, reverse=False, dilation=1, out=None, inplace=False, num_threads=None,
    target=None,
):  # fmt: skip
    """The short causal convolution of every channel with weights of its own.

    Per channel c, for t = 0, 1, … and W weights::

        y_t[c] = act(bias[c] + Σ_k weight[c, k] · x_{t − (W−1−k)·dilation}[c])

    as before the recurrence of Mamba, gated DeltaNet or KDA. A sequence that is split
    anywhere, its state carried on, gives the bits of the whole.

    Args:
      x: ``[B, T, C]`` or ``[T, C]``; float16, bfloat16, float32 or float64. Any strides:
        a view of ``[B, C, T]`` runs as fast, without a copy.
      weight: ``[C, W]`` or ``[C, 1, W]`` with W from 1 to 16; any floating-point dtype.
      bias: ``[C]``; any floating-point dtype.
      activation: None or "silu" (or "swish"), x·σ(x).
      initial_state: ``[N, C, S]`` of x's dtype, the S ≥ (W−1)·dilation inputs before the
        first token, oldest first; zeros unless given.
      return_state: also return the last inputs, ``[N, C, S]``; S is that of the initial
        state, or (W−1)·dilation.
      cu_seqlens: ``[N + 1]`` offsets of packed sequences, B = 1.
      reverse: from the last token to the first.
      dilation: how far apart the inputs of one output are.
      inplace: overwrite initial_state with the last inputs; with `return_state` it is
        what is returned.
      out, num_threads, target: as in `linattn.attention`.

    Returns:
      ``y`` of x's kind, shape and dtype, or ``(y, state)`` with `return_state`.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    return run(
        x, weight, bias, activation, initial_state, return_state, cu_seqlens, reverse, dilation, out,
        inplace, num_threads, target, "B T C",
    )  # fmt: skip


def run(
    x, weight, bias, activation, state, return_state, cu_seqlens, reverse, dilation, out, inplace,
    num_threads, target, layout,
):  # fmt: skip
    """`causal_conv1d` for tokens of that layout."""
    key = (
        "causal_conv1d", bias is None, activation, state is None, return_state, cu_seqlens is None,
        reverse, dilation, inplace, target, layout,
    )  # fmt: skip
    plan = _plans.find(key)
    inplace = bool(inplace)
    operands = (x, weight) if bias is None else (x, weight, bias)
    if cu_seqlens is not None:
        operands += (integers_like(cu_seqlens, x),)
    if inplace:
        check_writable(state)
    result = plan(operands, None if state is None else (state,), out, inplace, num_threads)
    if inplace and result[1] is not state:
        raise ValueError("initial_state: expected an array that can be written in place, but got one that cannot")
    return result if return_state or not inplace else result[0]


def check_writable(state):
    """Raises if the array is known to be read-only. The call itself checks the other cases."""
    if isinstance(state, np.ndarray) and not state.flags.writeable:
        raise ValueError("initial_state: expected an array that can be written in place, but got a read-only one")


def check_options(activation, no_state, return_state, reverse, dilation, inplace):
    if activation not in ACTIVATIONS:
        kind = repr(activation) if isinstance(activation, str) else type(activation).__name__
        raise (ValueError if isinstance(activation, str) else TypeError)(
            f"activation: expected None, silu or swish, but got {kind}"
        )
    return_state = check_flag("return_state", return_state)
    reverse = check_flag("reverse", reverse)
    inplace = check_flag("inplace", inplace)
    if isinstance(dilation, (bool, np.bool_)) or not isinstance(dilation, numbers.Integral):
        raise TypeError(f"dilation: expected a whole number, but got {type(dilation).__name__}")
    if not 1 <= dilation <= 1 << 20:
        raise ValueError(f"dilation: expected a number from 1 to {1 << 20}, but got {dilation}")
    if inplace and no_state:
        raise ValueError("inplace: expected it only with initial_state, but got it without")
    return activation is not None, return_state, reverse, int(dilation), inplace


def check_sizes(W, S, dilation):
    if not 1 <= W <= MAX_WIDTH:
        raise ValueError(f"weight: expected a width from 1 to {MAX_WIDTH}, but got {W}")
    if S < (W - 1) * dilation:
        raise ValueError(
            f"initial_state: expected at least (W - 1) * dilation = {(W - 1) * dilation} inputs of "
            f"each channel, but got {S}"
        )


def _make_plan(
    no_bias, activation, no_state, return_state, no_offsets, reverse, dilation, inplace, target, layout
):  # fmt: skip
    silu, return_state, reverse, dilation, inplace = check_options(
        activation, no_state, return_state, reverse, dilation, inplace
    )
    target = _plans.parse_target(target)
    operands = [("x", "tokens", layout), ("weight", "gate", "C W | C 1 W -> C W")]
    if not no_bias:
        operands.append(("bias", "gate", "C"))
    if not no_offsets:
        operands.append(("cu_seqlens", "offsets", "T"))
    returns = return_state or inplace

    def text(dtype, extents, others):
        W, S = extents["W"], extents["S"]
        check_sizes(W, S, dilation)
        types = [scalar for _, _, scalar in others]
        return conv_text(
            dtype, extents.get("T"), extents["C"], W, S, types[0], None if no_bias else types[1],
            None if no_offsets else types[-1], silu, reverse, dilation, not no_state, returns,
        )  # fmt: skip

    def refuse(error):
        raise error

    # Of a state that is given, the number of inputs is its own.
    rules = [f"S = features({-2 * dilation}, {2 * dilation}, 0, W)"] if no_state else []
    return Recipe(
        "causal_conv1d", text, lambda on_device: _plans.resolve_target(target, on_device), refuse, operands, rules,
        [("initial_state", "carried", "N C S")], ("out", "tokens", layout), not no_state, returns,
    ).plan(fixes_heads=False)  # fmt: skip


makers["causal_conv1d"] = _make_plan


def conv_text(dtype, T, C, W, S, weight, bias, offsets, silu, reverse, dilation, has_state, returns):
    """The MLIR of one call."""
    tokens, state = tensor_type(None, T, C, dtype), tensor_type(None, C, S, dtype)
    types = {"%x": tokens, "%w": tensor_type(C, W, weight)}
    clauses = ""
    if bias:
        types["%b"] = tensor_type(C, bias)
        clauses += " bias(%b)"
    clauses += " activation(silu)" if silu else ""
    if offsets:
        types["%offsets"] = tensor_type(None, offsets)
        clauses += " cu_seqlens(%offsets)"
    operands = dict(types)
    if has_state:
        types["%s"] = state
    lines = [
        "  %c0 = arith.constant 0 : index",
        "  %c1 = arith.constant 1 : index",
        f"  %B = tensor.dim %x, %c0 : {tokens}",
        f"  %T = tensor.dim %x, %c1 : {tokens}",
        f"  %dest = tensor.empty({'%B, %T' if T is None else '%B'}) : {tokens}",
    ]
    if not has_state:
        count = "%B"
        if offsets:
            count = "%N"
            lines += [
                f"  %ends = tensor.dim %offsets, %c0 : {types['%offsets']}",
                "  %N = arith.subi %ends, %c1 : index",
            ]
        lines += [
            f"  %zero = arith.constant 0.0 : {dtype}",
            f"  %empty = tensor.empty({count}) : {state}",
            f"  %s = linalg.fill ins(%zero : {dtype}) outs(%empty : {state}) -> {state}",
        ]
    attributes = ([f"dilation = {dilation} : i64"] if dilation != 1 else []) + ["reverse"] * reverse
    operands.update({"%dest": tokens, "%s": state})
    results = f"{tokens}, {state}" if returns else tokens
    lines += [
        f"  %y, %s1 = linattn.causal_conv %x, %w{clauses} into(%dest) init(%s) {{{', '.join(attributes)}}}",
        f"    : ({', '.join(operands.values())}) -> ({tokens}, {state})",
        f"  return %y{', %s1' if returns else ''} : {results}",
        "}",
        "",
    ]
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
    return "\n".join([f"func.func @causal_conv1d({arguments}) -> ({results}) {{", *lines])


def reference_causal_conv1d(
    x, weight, bias=None, *, activation=None, initial_state=None, return_state=False,
    cu_seqlens=None, reverse=False, dilation=1, out=None, inplace=False, num_threads=None,
    target=None,
):  # fmt: skip
    """`linattn.causal_conv1d` by its formula, in float64."""
    silu, return_state, reverse, dilation, inplace = check_options(
        activation, initial_state is None, return_state, reverse, dilation, inplace
    )
    _plans.parse_target(target)

    def wide(array):
        return _arrays.to_numpy(array).astype(np.float64)

    tokens, w = wide(x), wide(weight)
    tokens = tokens[None] if tokens.ndim == 2 else tokens
    w = w[:, 0] if w.ndim == 3 else w
    if reverse:
        tokens = tokens[:, ::-1]
    C, W = w.shape
    parts = [(b, 0, tokens.shape[1]) for b in range(len(tokens))]
    if cu_seqlens is not None:
        ends = _arrays.to_numpy(cu_seqlens).tolist() if not isinstance(cu_seqlens, (list, tuple)) else list(cu_seqlens)
        T = tokens.shape[1]
        parts = [(0, T - end, T - begin) if reverse else (0, begin, end) for begin, end in zip(ends, ends[1:])]
    S = (W - 1) * dilation if initial_state is None else initial_state.shape[2]
    check_sizes(W, S, dilation)
    before = np.zeros((len(parts), C, S)) if initial_state is None else wide(initial_state)
    y, states = np.zeros_like(tokens), np.zeros((len(parts), C, S))
    for n, (b, begin, end) in enumerate(parts):
        inputs = np.concatenate([before[n].T, tokens[b, begin:end]])
        for k in range(W):
            first = S - (W - 1 - k) * dilation
            y[b, begin:end] += w[:, k] * inputs[first : first + end - begin]
        states[n] = inputs[len(inputs) - S :].T
    if bias is not None:
        y += wide(bias)
    if silu:
        with np.errstate(over="ignore"):
            y = y / (1.0 + np.exp(-y))
    y = y[:, ::-1] if reverse else y
    y = _arrays.convert_like(np.ascontiguousarray(y[0] if len(x.shape) == 2 else y), x)
    if out is not None:
        np.copyto(_arrays.to_numpy(out, "out"), _arrays.to_numpy(y), casting="same_kind")
        y = out
    if inplace:
        initial_state[...] = _arrays.convert_like(states, initial_state)
        return (y, initial_state) if return_state else y
    return (y, _arrays.convert_like(states, x)) if return_state else y
