"""The MLIR that `attention`, `scan` and `State` compile.

Sizes of heads are constants in it; batch, heads and tokens are not, so that one
kernel serves all of them.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

__all__ = ["float_literal", "Options", "attention_text", "scan_text", "update_text", "query_text"]

# The running maximum before the first key: finite, so that the first rescaling
# is a plain 0.
_LOWEST = {"f32": -3.4028234663852886e38, "f64": -1.7976931348623157e308}


def float_literal(value, dtype="f64"):
    """A number as MLIR spells it: with a point, or as bits."""
    if not math.isfinite(value):
        code, width = ("<f", 8) if dtype == "f32" else ("<d", 16)
        bits = int.from_bytes(struct.pack(code, value), "little")
        return f"0x{bits:0{width}X}"
    text = repr(float(value))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


@dataclass(frozen=True)
class Options:
    """What an op says beside its operands."""

    kind: str = "identity"  # the feature map attribute
    region: object = None  # dtype -> text, for kind "region"
    normalize: bool = False
    eps: float | None = None
    scale: float | None = None
    causal: bool = False
    weights: str = "linear"
    config: str | None = None
    update: str = "add"
    readout: str = "inclusive"
    transition: str | None = None
    reverse: bool = False
    quadratic: bool = False
    has_state: bool = False
    returns_state: bool = False
    gates: tuple = field(default=())  # names, in the op's order

    @property
    def stabilized(self):
        return self.normalize and self.kind == "exp"


class _Function:
    """One function that is being written."""

    def __init__(self, options, dtype, K, V):
        self.options = options
        self.dtype = dtype
        self.scalar = "f64" if dtype == "f64" else "f32"
        self.K, self.V = K, V
        self.arguments, self.lines, self.results = [], [], []
        self.types = {}

    def argument(self, name, type_):
        self.arguments.append(f"%{name}: {type_}")
        self.types[f"%{name}"] = type_
        return f"%{name}"

    def define(self, name, text, type_=None):
        self.lines.append(f"  %{name} = {text}")
        self.types[f"%{name}"] = type_
        return f"%{name}"

    def tokens(self, size):
        return f"tensor<?x?x?x{size}x{self.dtype}>"

    def state_types(self):
        """The types of S, z and m, as far as they are there."""
        K, V, t = self.K, self.V, self.scalar
        types = [("S", f"tensor<?x?x{K}x{V}x{t}>")]
        if self.options.normalize:
            types.append(("z", f"tensor<?x?x{K}x{t}>"))
        if self.options.stabilized:
            types.append(("m", f"tensor<?x?x{t}>"))
        return types

    def state_arguments(self, parts=3):
        return [self.argument(name, type_) for name, type_ in self.state_types()[:parts]]

    def dim(self, name, value, index):
        self.constant_index(index)
        return self.define(name, f"tensor.dim {value}, %c{index} : {self.types[value]}")

    def constant_index(self, index):
        line = f"  %c{index} = arith.constant {index} : index"
        if line not in self.lines:
            self.lines.append(line)

    def state_heads(self):
        keys, values = self.dim("Hk", "%k", 1), self.dim("Hv", "%v", 1)
        return self.define("H", f"arith.maxsi {keys}, {values} : index")

    def zero_state(self, states, heads):
        zero = self.define("zero", f"arith.constant 0.0 : {self.scalar}")
        values = []
        for name, type_ in self.state_types():
            start = zero
            if name == "m":
                lowest = float_literal(_LOWEST[self.scalar], self.scalar)
                start = self.define("lowest", f"arith.constant {lowest} : {self.scalar}")
            empty = self.define(f"{name}_empty", f"tensor.empty({states}, {heads}) : {type_}")
            values.append(
                self.define(
                    name,
                    f"linalg.fill ins({start} : {self.scalar}) outs({empty} : {type_}) -> {type_}",
                    type_,
                )
            )
        return values

    def output(self, batch, heads, tokens):
        type_ = self.tokens(self.V)
        return self.define("dest", f"tensor.empty({batch}, {heads}, {tokens}) : {type_}", type_)

    def attributes(self, *names):
        """The attribute dictionary and the region, as the op takes them."""
        options, parts = self.options, []
        if "causal" in names and options.causal:
            parts.append("causal")
        if "reverse" in names and options.reverse:
            parts.append("reverse")
        if "feature_map" in names and options.kind != "identity":
            parts.append(f"feature_map = #linattn.feature_map<{options.kind}>")
        if "normalize" in names and options.normalize:
            parts.append(f"normalize = #linattn.normalize<eps = {float_literal(options.eps)}>")
        if "scale" in names and options.scale is not None:
            parts.append(f"scale = {float_literal(options.scale)}")
        if "config" in names and options.config:
            parts.append(f"config = #linattn.config<{options.config}>")
        text = " {" + ", ".join(parts) + "}" if parts else ""
        if "feature_map" in names and options.kind == "region":
            text += " " + options.region(self.scalar)
        return text

    def op(self, names, text, operands, results):
        """Adds `%names = text : (operands) -> (results)`."""
        sources = ", ".join(self.types[operand] for operand in operands)
        targets = ", ".join(results)
        self.lines.append(
            f"  {', '.join('%' + name for name in names)} = {text}\n"
            f"    : ({sources}) -> ({targets})"
        )
        self.types.update({"%" + name: type_ for name, type_ in zip(names, results)})

    def finish(self, name, results):
        types = ", ".join(self.types[result] for result in results)
        header = f"func.func @{name}({', '.join(self.arguments)}) -> ({types}) {{"
        tail = f"  return {', '.join(results)} : {types}"
        return "\n".join([header, *self.lines, tail, "}", ""])


def _operand(keyword, value):
    return f" {keyword}({value})" if value else ""


def _state_operands(values):
    keywords = ("init", "normalizer", "running_max")
    return "".join(_operand(keyword, value) for keyword, value in zip(keywords, values))


def _gate_type(rank, dtype, last, name):
    if name == "cu_seqlens":
        return f"tensor<?x{dtype}>"
    if name == "bonus" or rank == 4:
        return "tensor<" + "?x" * (rank - 1) + f"{last}x{dtype}>"
    return "tensor<" + "?x" * rank + f"{dtype}>"


def attention_text(options, dtype, K, V, extra):
    """Attention without a state: the quadratic meaning, for the compiler to
    rewrite, or the quadratic form itself."""
    f = _Function(options, dtype, K, V)
    q, k = f.argument("q", f.tokens(K)), f.argument("k", f.tokens(K))
    v = f.argument("v", f.tokens(V))
    operands = [q, k, v]
    mask = f.argument("mask", "tensor<?x?xi1>") if "mask" in options.gates else None
    operands += [mask] if mask else []
    weights = " weights(softmax)" if options.weights == "softmax" else ""
    attributes = f.attributes("causal", "feature_map", "normalize", "scale", "config")
    source = f"{q}, {k}, {v}{_operand('mask', mask)}{weights}"
    if options.quadratic:
        queries = f.dim("Hq", q, 1)
        heads = f.define("Ho", f"arith.maxsi {queries}, {f.state_heads()} : index")
        dest = f.output(f.dim("B", q, 0), heads, f.dim("T", q, 2))
        operands.append(dest)
        f.op(["o"], f"linattn.quadratic {source} into({dest}){attributes}", operands, [f.tokens(V)])
    else:
        f.op(["o"], f"linattn.attention {source}{attributes}", operands, [f.tokens(V)])
    return f.finish("attention", ["%o"])


def _initial_state(f, states):
    heads = f.state_heads()
    return heads, f.state_values if f.options.has_state else f.zero_state(states, heads)


def scan_text(options, dtype, K, V, extra):
    """The recurrence, from the state that is given or from zeros."""
    f = _Function(options, dtype, K, V)
    q, k = f.argument("q", f.tokens(K)), f.argument("k", f.tokens(K))
    v = f.argument("v", f.tokens(V))
    gates = {}
    for name, (rank, gate_dtype) in zip(options.gates, extra):
        last = V if name in ("value_decay", "beta") else K
        gates[name] = f.argument(name, _gate_type(rank, gate_dtype, last, name))
    if options.has_state:
        f.state_values = f.state_arguments()
    batch = states = f.dim("B", q, 0)
    if "cu_seqlens" in gates:
        offsets = f.dim("offsets", gates["cu_seqlens"], 0)
        f.constant_index(1)
        states = f.define("N", f"arith.subi {offsets}, %c1 : index")
    heads, state = _initial_state(f, states)
    output_heads = f.define("Ho", f"arith.maxsi {f.dim('Hq', q, 1)}, {heads} : index")
    dest = f.output(batch, output_heads, f.dim("T", q, 2))
    text = f"linattn.scan {q}, {k}, {v}"
    text += "".join(_operand(name, value) for name, value in gates.items())
    if options.update != "add":
        text += f" update({options.update})"
    if options.readout != "inclusive":
        text += f" readout({options.readout})"
    if options.transition and options.update == "dplr":
        text += f" transition({options.transition})"
    text += f" into({dest}){_state_operands(state)}"
    text += f.attributes("reverse", "feature_map", "normalize", "scale", "config")
    names = ["o"] + [f"{name}1" for name, _ in f.state_types()]
    types = [f.tokens(V)] + [type_ for _, type_ in f.state_types()]
    f.op(names, text, [q, k, v, *gates.values(), dest, *state], types)
    returned = names if options.returns_state else names[:1]
    return f.finish("scan", ["%" + name for name in returned])


def _emit_state(f, k, v, mask, state):
    names = [f"{name}1" for name, _ in f.state_types()]
    text = f"linattn.state {k}, {v}{_operand('mask', mask)}{_state_operands(state)}"
    text += f.attributes("feature_map", "config")
    operands = [k, v, *([mask] if mask else []), *state]
    f.op(names, text, operands, [type_ for _, type_ in f.state_types()])
    return ["%" + name for name in names]


def update_text(options, dtype, K, V, extra):
    """The sum of all keys and values, added to a state."""
    f = _Function(options, dtype, K, V)
    k, v = f.argument("k", f.tokens(K)), f.argument("v", f.tokens(V))
    f.state_values = f.state_arguments()
    return f.finish("update", _emit_state(f, k, v, None, f.state_values))


def _emit_read(f, q, state):
    """Reads queries from a state; its running maximum cancels in the quotient."""
    heads = f.define("Ho", f"arith.maxsi {f.dim('Hq', q, 1)}, {f.dim('Hs', state[0], 1)} : index")
    dest = f.output(f.dim("B", q, 0), heads, f.dim("T", q, 2))
    normalizer = state[1] if f.options.normalize else None
    text = f"linattn.read {q}, {state[0]}{_operand('normalizer', normalizer)} into({dest})"
    text += f.attributes("feature_map", "normalize", "scale")
    operands = [q, state[0], *([normalizer] if normalizer else []), dest]
    f.op(["o"], text, operands, [f.tokens(f.V)])
    return "%o"


def query_text(options, dtype, K, V, extra):
    """Reads queries from a state."""
    f = _Function(options, dtype, K, V)
    q = f.argument("q", f.tokens(K))
    return f.finish("query", [_emit_read(f, q, f.state_arguments(parts=2))])


def noncausal_text(options, dtype, K, V, extra):
    """Attention over all keys and a state: the state first, then all reads."""
    f = _Function(options, dtype, K, V)
    q, k = f.argument("q", f.tokens(K)), f.argument("k", f.tokens(K))
    v = f.argument("v", f.tokens(V))
    mask = f.argument("mask", "tensor<?x?xi1>") if "mask" in options.gates else None
    if options.has_state:
        f.state_values = f.state_arguments()
    _, state = _initial_state(f, f.dim("B0", k, 0))
    state = _emit_state(f, k, v, mask, state)
    o = _emit_read(f, q, state)
    return f.finish("attention", [o, *state] if options.returns_state else [o])
