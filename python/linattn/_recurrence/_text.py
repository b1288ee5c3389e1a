"""The MLIR that `attention`, `scan` and `State` compile.

Head sizes are constants in it. Batch, heads and tokens are not, so that one kernel
serves all of them, except where that costs speed: recurrences know their heads, and
one token at a time is decoding, which has kernels of its own.
"""

from __future__ import annotations

from .._core._checks import UnsupportedError
from . import _rules
from ._function import Function, clause

__all__ = ["attention_text", "recorded_text", "scan_text", "noncausal_text", "update_text", "query_text"]


def _state_operands(values):
    keywords = ("init", "normalizer", "running_max")
    return "".join(clause(keyword, value) for keyword, value in zip(keywords, values))


def attention_text(options, sizes, extra, maps=()):
    """Attention without a state: the quadratic meaning, for the compiler to
    rewrite, or the quadratic form itself."""
    f = Function(options, sizes, maps)
    q, k, v = operands = f.mapped_tokens(f.token_arguments())
    mask = f.mask_argument()
    prefix = f.prefix_argument(extra)
    dtypes = {name: dtype for name, (_, dtype) in zip(options.gates, extra)}
    slopes, sinks = (f.per_head_argument(name, dtypes.get(name)) for name in ("slopes", "sinks"))
    scale = f.scale_argument()
    operands = operands + [operand for operand in (mask, prefix, scale, slopes, sinks) if operand]
    weights = " weights(softmax)" if options.weights == "softmax" else ""
    attributes = f.attributes("causal", "pattern", "softcap", "feature_map", "normalize", "scale", "config")
    source = f"{q}, {k}, {v}{clause('mask', mask)}{clause('prefix', prefix)}{clause('scale', scale)}"
    source += f"{clause('slopes', slopes)}{clause('sinks', sinks)}{weights}"
    if options.quadratic:
        operands.append(f.output(f.state_heads()))
        text = f"linattn.quadratic {source} into({operands[-1]}){attributes}"
    else:
        text = f"linattn.attention {source}{attributes}"
    f.op(["o"], text, operands, [f.output_type])
    return f.finish("attention", [f.narrow("%o")])


def recorded_text(options, sizes, extra, maps=()):
    """Softmax attention with the log-sum-exp of its rows, `[B, Ho, T]`, for its gradient."""
    f = Function(options, sizes, maps)
    tokens = f.token_arguments()
    mask = f.mask_argument()
    prefix = f.prefix_argument(extra)
    dtypes = {name: dtype for name, (_, dtype) in zip(options.gates, extra)}
    slopes, sinks = (f.per_head_argument(name, dtypes.get(name)) for name in ("slopes", "sinks"))
    scale = f.scale_argument()
    others = {"mask": mask, "prefix": prefix, "scale": scale, "slopes": slopes, "sinks": sinks}
    return f.finish("attention", f.softmax(tokens, others), keeps_results=True)


def scan_text(options, sizes, extra, maps=()):
    """The recurrence, from a given state or zeros."""
    if sizes.dtype == "f64" and options.state_dtype == "float32":
        raise ValueError("state_dtype: expected float64 for float64 tokens, but got float32")
    f = Function(options, sizes, maps)
    q, k, v = f.mapped_tokens(f.token_arguments())
    gates = f.gate_arguments(extra)
    scale = f.scale_argument()
    if scale:
        gates["scale"] = scale
    given = f.state_arguments() if options.has_state else None
    states = f.count_sequences(q, gates)
    heads = f.state_heads()
    state = given or f.zero_state(states, heads)
    if not options.output:
        return f.finish("scan", _emit_sum(f, k, v, gates, state))
    dest = f.output(heads)
    kept = f.snapshots(states, heads)
    text = f"linattn.scan {q}, {k}, {v}"
    text += "".join(clause(name, value) for name, value in gates.items())
    if options.update != "add":
        text += f" update({options.update})"
    if options.readout != "inclusive":
        text += f" readout({options.readout})"
    if options.transition and _rules.takes_transition(options.update):
        text += f" transition({options.transition})"
    text += f" into({dest}){_state_operands(state)}{clause('snapshots', ', '.join(kept))}"
    text += f.attributes("reverse", "every", "feature_map", "normalize", "scale", "config")
    names = ["o"] + [f"{name}1" for name, _ in f.state_types()]
    types = [f.output_type] + [type_ for _, type_ in f.state_types()]
    returned = names[1:] if options.returns_state else []
    names += [f"{name}_kept1" for name, _ in f.state_types()][: len(kept)]
    types += [f.types[part] for part in kept]
    f.op(names, text, [q, k, v, *gates.values(), dest, *state, *kept], types)
    returned += names[1 + len(state) :]
    return f.finish("scan", [f.narrow("%o"), *("%" + name for name in returned)])


# The gates of a scan that its state has without the outputs.
_SUMMED = ("decay", "value_decay", "mask", "cu_seqlens")


def _emit_sum(f, k, v, gates, state):
    """The final state of a scan."""
    beyond = [name for name in gates if name not in (*_SUMMED, "bonus", "scale")]
    if f.options.update != "add" or f.options.every is not None or beyond:
        raise UnsupportedError("scan: expected update='add' for a state without outputs, but got another recurrence")
    return _emit_state(f, k, v, {name: gates[name] for name in _SUMMED if name in gates}, state)


def _emit_state(f, k, v, gates, state):
    """The sum of keys and values, with these gates."""
    names = [f"{name}1" for name, _ in f.state_types()]
    text = f"linattn.state {k}, {v}{''.join(clause(name, value) for name, value in gates.items())}"
    text += _state_operands(state) + f.attributes("reverse", "feature_map", "config")
    operands = [k, v, *gates.values(), *state]
    f.op(names, text, operands, [type_ for _, type_ in f.state_types()])
    return ["%" + name for name in names]


def update_text(options, sizes, extra, maps=()):
    """The sum of all keys and values, added to a state."""
    f = Function(options, sizes, maps, "kv")
    k, v = f.mapped_tokens(f.token_arguments("kv"))
    return f.finish("update", _emit_state(f, k, v, {}, f.state_arguments()))


def _emit_read(f, q, state, scale):
    """Reads queries from a state; its running maximum cancels in the quotient."""
    heads = f.dim("Hs", state[0], 1) if f.sizes.H is None else None
    dest = f.output(heads)
    # Only an absolute floor needs a running maximum; elsewhere it cancels.
    gated = f.options.kind != "exp" and f.options.denominator[2] is not None
    state = state[: 3 if gated else 2]
    keywords = ("normalizer", "running_max")
    text = f"linattn.read {q}, {state[0]}"
    text += "".join(clause(keyword, value) for keyword, value in zip(keywords, state[1:]))
    text += f"{clause('scale', scale)} into({dest})"
    text += f.attributes("feature_map", "normalize", "scale", "config")
    operands = [q, *state, *([scale] if scale else []), dest]
    f.op(["o"], text, operands, [f.output_type])
    return "%o"


def query_text(options, sizes, extra, maps=()):
    """Reads queries from a state."""
    f = Function(options, sizes, maps, "q")
    (q,) = f.mapped_tokens(f.token_arguments("q"))
    scale = f.scale_argument()
    return f.finish("query", [f.narrow(_emit_read(f, q, f.state_arguments(options.query_parts), scale))])


def noncausal_text(options, sizes, extra, maps=()):
    """Attention over all keys and a state: the state first, then all reads."""
    f = Function(options, sizes, maps)
    q, k, v = f.mapped_tokens(f.token_arguments())
    mask = f.mask_argument()
    scale = f.scale_argument()
    if options.has_state:
        state = f.state_arguments()
    else:
        state = f.zero_state(f.dim("B", k, 0), f.state_heads())
    state = _emit_state(f, k, v, {"mask": mask} if mask else {}, state)
    o = f.narrow(_emit_read(f, q, state, scale))
    return f.finish("attention", [o, *state] if options.returns_state else [o])
