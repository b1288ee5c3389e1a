"""The builder of functions in MLIR that compute attention, scans and states."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import NamedTuple

from .._core._literals import float_literal
from .._maps._token_maps import features_of

__all__ = ["Function", "Options", "Sizes", "clause", "tensor_type"]


@dataclass(frozen=True)
class Options:
    """The attributes of an op."""

    kind: str = "identity"  # the feature map attribute
    region: object = None  # dtype -> text, for kind "region"
    normalize: bool = False
    denominator: tuple = (None, None, None, None)  # eps, floor, abs_floor, clamp as given
    eps: float | None = None  # with its default
    scale: float | None = None
    takes_scale: bool = False  # the scale is an argument
    causal: bool = False
    weights: str = "linear"
    pattern: tuple | None = None  # window, dilation, globals
    softcap: float | None = None
    dropout: float | None = None
    config: str | None = None
    update: str = "add"
    readout: str = "inclusive"
    transition: str | None = None
    reverse: bool = False
    quadratic: bool = False
    has_state: bool = False
    returns_state: bool = False
    state_dtype: str | None = None  # None: the default for the tokens
    gates: tuple = field(default=())  # names, in the op's order
    every: int | None = None  # tokens between states that are returned, too
    output: bool = True  # False: a scan returns its final state alone
    maps: object = None  # the Signature of maps of whole tokens, applied before kind

    @property
    def wide_state(self):
        return self.state_dtype == "float64"

    @property
    def stabilized(self):
        """Whether the state has a running maximum."""
        return self.normalize and (self.kind == "exp" or "input_gate" in self.gates)

    @property
    def query_parts(self):
        """The number of parts of a state that a read needs."""
        return 3 if self.stabilized and self.denominator[2] is not None else 1 + self.normalize


class Sizes(NamedTuple):
    """The types and sizes of a kernel. None stands for a dynamic size."""

    dtype: str  # of the tokens
    K: int
    V: int
    T: int | None = None  # of the queries, if there are any
    Tk: int | None = None
    Hq: int | None = None
    Hk: int | None = None
    Hv: int | None = None

    @classmethod
    def of(cls, dtype, extents):
        """The sizes from a plan's extents by name."""
        T, H = extents.get("T"), extents.get("H")
        heads = (extents.get(name, H) for name in ("Hq", "Hk", "Hv"))
        return cls(dtype, extents["K"], extents["V"], T, extents.get("Tk", T), *heads)

    @property
    def H(self):
        return None if self.Hk is None else max(self.Hk, self.Hv)

    @property
    def Ho(self):
        return None if self.H is None else max(self.Hq, self.H)


def tensor_type(*shape):
    """A type such as tensor<?x4xf32>, for None, 4 and f32."""
    return "tensor<" + "x".join("?" if size is None else str(size) for size in shape) + ">"


def clause(keyword, value):
    return f" {keyword}({value})" if value else ""


class Function:
    """A function under construction: its arguments, lines and results."""

    def __init__(self, options, sizes, maps=(), sides="qkv"):
        self.options = options
        self.sizes = sizes
        self.dtype = sizes.dtype
        self.scalar = "f64" if sizes.dtype == "f64" or options.wide_state else "f32"
        self.maps = options.maps
        # The op's dtype: features keep the precision that they are computed in.
        self.op_dtype = self.dtype if self.maps is None else self.scalar
        self.sides = sides
        self.map_operands = {}
        if self.maps is not None:
            operands = self.maps.operands("q" in sides, "k" in sides)
            self.map_operands = {name: entry for (name, _, _), entry in zip(operands, maps)}
        self.state_rows = self.features("k" if "k" in sides else "q")
        self.arguments, self.lines, self.results = [], [], []
        # Remarks about the text itself: choices, and alternatives that were refused.
        self.chosen, self.refused = [], []
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
        return [self.argument(name, tensor_type(None, *shapes[name], self.dtype)) for name in names]

    def features(self, side):
        """The number of features of a query or a key in the op."""
        if self.maps is None:
            return self.sizes.K
        spec = self.maps.query if side == "q" else self.maps.key
        shapes = [self.map_operands[name][2] for name in self.maps.parameter_names(side)]
        return features_of(spec, self.sizes.K, shapes)

    def mapped_tokens(self, tokens):
        """The tokens as the op takes them: features of queries and keys, in the
        type that they are computed in, and values of that type."""
        if self.maps is None:
            return tokens
        arguments = {
            name: self.argument(name, tensor_type(*shape, dtype))
            for name, (_, dtype, shape) in self.map_operands.items()
        }
        return [
            self.widen(token, side) if side == "v" else self.feature_map(side, token, arguments)
            for side, token in zip(self.sides, tokens)
        ]

    def feature_map(self, side, token, arguments):
        """Emits φ of the tokens."""
        s, spec = self.sizes, self.maps.query if side == "q" else self.maps.key
        if self.scalar == "f64":
            token = self.widen(token, side)
        parameters = [arguments[name] for name in self.maps.parameter_names(side)]
        positions = arguments[f"{side}_positions"] if spec.has_positions else None
        outer = (None, s.Hq, s.T) if side == "q" else (None, s.Hk, s.Tk)
        type_ = tensor_type(*outer, self.features(side), self.op_dtype)
        dims = [self.dim(f"{side}_dim{i}", token, i) if size is None else None for i, size in enumerate(outer)]
        dest = self.empty(f"{side}_dest", type_, *dims)
        attributes = f"{spec.name}, {spec.attributes}" if spec.attributes else spec.name
        text = f"linattn.feature_map {token}{clause('params', ', '.join(parameters))}"
        text += f"{clause('positions', positions)} into({dest})"
        text += f" {{feature_map = #linattn.feature_map<{attributes}>}}"
        operands = [token, *parameters, *([positions] if positions else []), dest]
        self.op([f"{side}_features"], text, operands, [type_])
        return f"%{side}_features"

    def widen(self, value, side):
        """Extends the tokens to the type of the features."""
        if self.op_dtype == self.dtype:
            return value
        type_ = self.types[value].replace(self.dtype, self.op_dtype)
        return self.define(f"wide_{side}", f"arith.extf {value} : {self.types[value]} to {type_}", type_)

    def narrow(self, value):
        """Truncates the result to the type of the tokens."""
        if self.op_dtype == self.dtype:
            return value
        type_ = self.types[value].replace(self.op_dtype, self.dtype)
        return self.define("result", f"arith.truncf {value} : {self.types[value]} to {type_}", type_)

    def scale_argument(self):
        return self.argument("scale", "f64") if self.options.takes_scale else None

    def mask_argument(self):
        if "mask" not in self.options.gates:
            return None
        return self.argument("mask", tensor_type(None, self.sizes.Tk, "i1"))

    def prefix_argument(self, extra):
        if "prefix" not in self.options.gates:
            return None
        _, dtype = extra[self.options.gates.index("prefix")]
        return self.argument("prefix", tensor_type(None, dtype))

    def per_head_argument(self, name, dtype):
        return self.argument(name, tensor_type(self.sizes.Ho, dtype)) if dtype else None

    def gate_argument(self, name, rank, dtype):
        s = self.sizes
        last = s.V if name in ("value_decay", "beta", "write") else self.state_rows
        shapes = {1: (s.H,), 2: (None, s.Tk), 3: (None, s.H, s.Tk), 4: (None, s.H, s.Tk, last)}
        special = {"cu_seqlens": (None,), "state_indices": (None,), "bonus": (s.H, self.state_rows)}
        shape = special.get(name) or shapes[rank]
        return self.argument(name, tensor_type(*shape, dtype))

    def gate_arguments(self, gates):
        """The operands in `options.gates` by name, with the ranks and dtypes of `gates`."""
        return {name: self.gate_argument(name, *gate) for name, gate in zip(self.options.gates, gates)}

    def count_sequences(self, q, gates):
        """The number of states: the batch, or for packed sequences one less than their offsets."""
        if "cu_seqlens" not in gates:
            return self.dim("B", q, 0)
        offsets = self.dim("offsets", gates["cu_seqlens"], 0)
        self.constant_index(1)
        return self.define("N", f"arith.subi {offsets}, %c1 : index")

    @property
    def output_type(self):
        s = self.sizes
        return tensor_type(None, s.Ho, s.T, s.V, self.op_dtype)

    def state_types(self):
        """The types of the parts S, z and m that are present."""
        s = self.sizes
        types = [("S", tensor_type(None, s.H, self.state_rows, s.V, self.scalar))]
        if self.options.normalize:
            types.append(("z", tensor_type(None, s.H, self.state_rows, self.scalar)))
        if self.options.stabilized:
            types.append(("m", tensor_type(None, s.H, self.scalar)))
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
        """An empty tensor. `dims` are its dynamic sizes, None for static ones."""
        dynamic = ", ".join(dim for dim in dims if dim is not None)
        return self.define(name, f"tensor.empty({dynamic}) : {type_}", type_)

    def zero_state(self, states, heads):
        zero = self.define("zero", f"arith.constant 0.0 : {self.scalar}")
        values = []
        for name, type_ in self.state_types():
            start = zero
            if name == "m":
                lowest = float_literal(-math.inf, self.scalar)
                start = self.define("lowest", f"arith.constant {lowest} : {self.scalar}")
            empty = self.empty(f"{name}_empty", type_, states, heads)
            fill = f"linalg.fill ins({start} : {self.scalar}) outs({empty} : {type_}) -> {type_}"
            values.append(self.define(name, fill, type_))
        return values

    def snapshots(self, states, heads):
        """The destinations of snapshots, if they are returned."""
        every = self.options.every
        if every is None:
            return []
        tokens, count = self.sizes.T, None
        if tokens is None:
            length = self.dim("length", "%q", 2)
            self.lines.append(f"  %every = arith.constant {every} : index")
            count = self.define("count", f"arith.divsi {length}, %every : index")
        found = []
        for name, type_ in self.state_types():
            (first, *rest), scalar = type_[len("tensor<") : -1].split("x")[:-1], self.scalar
            sizes = [first, "?" if count else str(tokens // every), *rest, scalar]
            found.append(self.empty(f"{name}_kept", f"tensor<{'x'.join(sizes)}>", states, count, heads))
        return found

    def output(self, state_heads):
        """The destination of the result, [B, Ho, T, V]."""
        heads = None
        if self.sizes.Ho is None:
            heads = self.define("Ho", f"arith.maxsi {self.dim('Hq', '%q', 1)}, {state_heads} : index")
        tokens = self.dim("T", "%q", 2) if self.sizes.T is None else None
        return self.empty("dest", self.output_type, self.dim("Bq", "%q", 0), heads, tokens)

    def attributes(self, *names):
        """The attribute dictionary and the region of the op."""
        options, parts = self.options, []
        if "causal" in names and options.causal:
            parts.append("causal")
        if "pattern" in names and options.pattern:
            window, dilation, globals_ = options.pattern
            parts.append(f"pattern = #linattn.pattern<window = {window}, dilation = {dilation}, globals = {globals_}>")
        if "softcap" in names and options.softcap is not None:
            parts.append(f"softcap = {float_literal(options.softcap)}")
        if "dropout" in names and options.dropout is not None:
            parts.append(f"dropout = {float_literal(options.dropout)}")
        if "reverse" in names and options.reverse:
            parts.append("reverse")
        if "every" in names and options.every is not None:
            parts.append(f"every = {options.every}")
        if "feature_map" in names and options.kind != "identity":
            parts.append(f"feature_map = #linattn.feature_map<{options.kind}>")
        if "normalize" in names and options.normalize:
            _, *rest = options.denominator
            numbers = zip(("eps", "floor", "abs_floor", "clamp"), (options.eps, *rest))
            given = [f"{name} = {float_literal(x)}" for name, x in numbers if x is not None]
            parts.append(f"normalize = #linattn.normalize<{', '.join(given)}>")
        if "scale" in names and options.scale is not None:
            parts.append(f"scale = {float_literal(options.scale)}")
        if "config" in names and options.config:
            parts.append(f"config = #linattn.config<{options.config}>")
        text = " {" + ", ".join(parts) + "}" if parts else ""
        if "feature_map" in names and options.kind == "region":
            text += " " + options.region(self.scalar)
        return text

    def softmax(self, tokens, others, dest=None):
        """Adds `linattn.softmax`: %o, and the log-sum-exp of its rows, `[B, Ho, T]`.

        Args:
          others: operands by keyword; None for those that are not there.
        """
        others = {name: value for name, value in others.items() if value}
        dest = dest or self.output(self.state_heads())
        type_ = tensor_type(None, self.sizes.Ho, self.sizes.T, self.scalar)
        heads = self.dim("rows_H", dest, 1) if self.sizes.Ho is None else None
        count = self.dim("rows_T", dest, 2) if self.sizes.T is None else None
        rows = self.empty("rows", type_, self.dim("rows_B", dest, 0), heads, count)
        source = ", ".join(tokens) + "".join(clause(name, value) for name, value in others.items())
        scale = [] if "scale" in others else ["scale"]
        text = f"linattn.softmax {source} into({dest}, {rows}){self.attributes('causal', 'pattern', 'softcap', 'dropout', *scale)}"
        self.op(["o", "log_sum"], text, [*tokens, *others.values(), dest, rows], [self.output_type, type_])
        return ["%o", "%log_sum"]

    def op(self, names, text, operands, results):
        """Adds `%names = text : (operands) -> (results)`."""
        sources = ", ".join(self.types[operand] for operand in operands)
        targets = ", ".join(results)
        self.lines.append(
            f"  {', '.join('%' + name for name in names)} = {text}\n"
            f"    : ({sources}) -> ({targets})"
        )
        self.types.update({"%" + name: type_ for name, type_ in zip(names, results)})

    def finish(self, name, results, keeps_results=False):
        """The function; where it keeps its results, its gradient takes them."""
        types = ", ".join(self.types[result] for result in results)
        remarks = {"linattn.chosen": self.chosen, "linattn.refused": self.refused}
        remarks = [f"{key} = {json.dumps(texts, ensure_ascii=False)}" for key, texts in remarks.items() if texts]
        attributes = [*remarks, "linattn.keep_results"] if keeps_results else remarks
        attributes = f"attributes {{{', '.join(attributes)}}} " if attributes else ""
        header = f"func.func @{name}({', '.join(self.arguments)}) -> ({types}) {attributes}{{"
        tail = f"  return {', '.join(results)} : {types}"
        return "\n".join([header, *self.lines, tail, "}", ""])
