"""The MLIR that `attention`, `scan` and `State` compile.

Head sizes are constants in it. Batch, heads and tokens are not, so that one kernel
serves all of them, except where that costs speed: one token at a time is decoding,
which has kernels of its own.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["float_literal", "Options", "Sizes", "attention_text", "scan_text", "noncausal_text",
           "update_text", "query_text"]  # fmt: skip

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


class Sizes(NamedTuple):
    """What a kernel is made for; None is left to the call."""

    dtype: str  # of the tokens
    K: int
    V: int
    T: int | None = None  # of the queries, if there are any
    Tk: int | None = None
    Hq: int | None = None
    Hk: int | None = None
    Hv: int | None = None

    @property
    def H(self):
        return None if self.Hk is None else max(self.Hk, self.Hv)

    @property
    def Ho(self):
        return None if self.H is None else max(self.Hq, self.H)


def _tensor(*shape):
    """tensor<?x4xf32> for None, 4 and f32."""
    return "tensor<" + "x".join("?" if size is None else str(size) for size in shape) + ">"


class _Function:
    """One function that is being written."""

    def __init__(self, options, sizes):
        self.options = options
        self.sizes = sizes
        self.dtype = sizes.dtype
        self.scalar = "f64" if sizes.dtype == "f64" else "f32"
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

    def token_arguments(self, names="qkv"):
        s = self.sizes
        shapes = {"q": (s.Hq, s.T, s.K), "k": (s.Hk, s.Tk, s.K), "v": (s.Hv, s.Tk, s.V)}
        return [self.argument(name, _tensor(None, *shapes[name], self.dtype)) for name in names]

    def mask_argument(self):
        if "mask" not in self.options.gates:
            return None
        return self.argument("mask", _tensor(None, self.sizes.Tk, "i1"))

    def gate_argument(self, name, rank, dtype):
        s = self.sizes
        last = s.V if name in ("value_decay", "beta") else s.K
        shapes = {1: (s.H,), 3: (None, s.H, s.Tk), 4: (None, s.H, s.Tk, last)}
        shape = {"cu_seqlens": (None,), "bonus": (s.H, s.K)}.get(name) or shapes[rank]
        return self.argument(name, _tensor(*shape, dtype))

    @property
    def output_type(self):
        s = self.sizes
        return _tensor(None, s.Ho, s.T, s.V, self.dtype)

    def state_types(self):
        """The types of S, z and m, as far as they are there."""
        s = self.sizes
        types = [("S", _tensor(None, s.H, s.K, s.V, self.scalar))]
        if self.options.normalize:
            types.append(("z", _tensor(None, s.H, s.K, self.scalar)))
        if self.options.stabilized:
            types.append(("m", _tensor(None, s.H, self.scalar)))
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
        if self.sizes.H is not None:
            return None
        keys, values = self.dim("Hk", "%k", 1), self.dim("Hv", "%v", 1)
        return self.define("H", f"arith.maxsi {keys}, {values} : index")

    def empty(self, name, type_, *dims):
        """An empty tensor; `dims` are its dynamic sizes, None for a static one."""
        dynamic = ", ".join(dim for dim in dims if dim is not None)
        return self.define(name, f"tensor.empty({dynamic}) : {type_}", type_)

    def zero_state(self, states, heads):
        zero = self.define("zero", f"arith.constant 0.0 : {self.scalar}")
        values = []
        for name, type_ in self.state_types():
            start = zero
            if name == "m":
                lowest = float_literal(_LOWEST[self.scalar], self.scalar)
                start = self.define("lowest", f"arith.constant {lowest} : {self.scalar}")
            empty = self.empty(f"{name}_empty", type_, states, heads)
            fill = f"linalg.fill ins({start} : {self.scalar}) outs({empty} : {type_}) -> {type_}"
            values.append(self.define(name, fill, type_))
        return values

    def output(self, state_heads):
        """The destination of the result, [B, Ho, T, V]."""
        heads = None
        if self.sizes.Ho is None:
            heads = self.define("Ho", f"arith.maxsi {self.dim('Hq', '%q', 1)}, {state_heads} : index")
        tokens = self.dim("T", "%q", 2) if self.sizes.T is None else None
        return self.empty("dest", self.output_type, self.dim("Bq", "%q", 0), heads, tokens)

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


def attention_text(options, sizes, extra):
    """Attention without a state: the quadratic meaning, for the compiler to
    rewrite, or the quadratic form itself."""
    f = _Function(options, sizes)
    q, k, v = operands = f.token_arguments()
    mask = f.mask_argument()
    operands += [mask] if mask else []
    weights = " weights(softmax)" if options.weights == "softmax" else ""
    attributes = f.attributes("causal", "feature_map", "normalize", "scale", "config")
    source = f"{q}, {k}, {v}{_operand('mask', mask)}{weights}"
    if options.quadratic:
        operands.append(f.output(f.state_heads()))
        text = f"linattn.quadratic {source} into({operands[-1]}){attributes}"
    else:
        text = f"linattn.attention {source}{attributes}"
    f.op(["o"], text, operands, [f.output_type])
    return f.finish("attention", ["%o"])


def scan_text(options, sizes, extra):
    """The recurrence, from the state that is given or from zeros."""
    f = _Function(options, sizes)
    q, k, v = f.token_arguments()
    gates = {
        name: f.gate_argument(name, rank, dtype)
        for name, (rank, dtype) in zip(options.gates, extra)
    }
    given = f.state_arguments() if options.has_state else None
    states = f.dim("B", q, 0)
    if "cu_seqlens" in gates:
        offsets = f.dim("offsets", gates["cu_seqlens"], 0)
        f.constant_index(1)
        states = f.define("N", f"arith.subi {offsets}, %c1 : index")
    heads = f.state_heads()
    state = given or f.zero_state(states, heads)
    dest = f.output(heads)
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
    types = [f.output_type] + [type_ for _, type_ in f.state_types()]
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


def update_text(options, sizes, extra):
    """The sum of all keys and values, added to a state."""
    f = _Function(options, sizes)
    k, v = f.token_arguments("kv")
    return f.finish("update", _emit_state(f, k, v, None, f.state_arguments()))


def _emit_read(f, q, state):
    """Reads queries from a state; its running maximum cancels in the quotient."""
    heads = f.dim("Hs", state[0], 1) if f.sizes.H is None else None
    dest = f.output(heads)
    normalizer = state[1] if f.options.normalize else None
    text = f"linattn.read {q}, {state[0]}{_operand('normalizer', normalizer)} into({dest})"
    text += f.attributes("feature_map", "normalize", "scale", "config")
    operands = [q, state[0], *([normalizer] if normalizer else []), dest]
    f.op(["o"], text, operands, [f.output_type])
    return "%o"


def query_text(options, sizes, extra):
    """Reads queries from a state."""
    f = _Function(options, sizes)
    (q,) = f.token_arguments("q")
    return f.finish("query", [_emit_read(f, q, f.state_arguments(parts=2))])


def noncausal_text(options, sizes, extra):
    """Attention over all keys and a state: the state first, then all reads."""
    f = _Function(options, sizes)
    q, k, v = f.token_arguments()
    mask = f.mask_argument()
    if options.has_state:
        state = f.state_arguments()
    else:
        state = f.zero_state(f.dim("B", k, 0), f.state_heads())
    state = _emit_state(f, k, v, mask, state)
    o = _emit_read(f, q, state)
    return f.finish("attention", [o, *state] if options.returns_state else [o])
