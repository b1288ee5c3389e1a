"""The cases: rules, shapes, and the functions that are compiled.

Shared by the machine that compiles and the one that runs; needs neither NumPy nor
PyTorch. Functions take [B, H, T, D] with any strides of the outer dimensions.
"""

import dataclasses

__all__ = ["DECODE", "LONG", "RULES", "SMALL", "STANDARD", "Kernel", "Shape", "kernels", "module_text", "timed"]

DTYPES = ("bf16", "f16", "f32")
CHECKED_HEADS = 2
# The most used sizes come first: time may run out.
CORRECTNESS_SIZES = (64, 128, 256, 16, 32, 96, 192, 60)
STEP_SIZES = (64, 128, 256)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A recurrence; its operands, beside q, k, v, in the order of the function."""

    name: str
    gates: tuple = ()  # (name, layout of its dimensions)
    clause: str = ""
    feature_map: str = ""
    normalize: bool = False
    # Of an attention without a state: words of softmax, linear, causal.
    attention: str = ""
    # Options of linattn-compile, for kernels that only products of wgmma have.
    options: tuple = ()

    @property
    def is_delta(self):
        return "update(delta)" in self.clause


RULES = {
    rule.name: rule
    for rule in (
        Rule("linear"),
        Rule("retention", (("g", "H"),), "decay(%g)"),
        Rule("simple_gla", (("g", "B H T"),), "decay(%g)"),
        Rule("gla", (("g", "B H T D"),), "decay(%g)"),
        Rule("columns", (("gv", "B H T D"),), "value_decay(%gv)"),
        Rule("delta", (("beta", "B H T"),), "beta(%beta) update(delta)"),
        Rule("gated_delta", (("g", "B H T"), ("beta", "B H T")), "decay(%g) beta(%beta) update(delta)"),
        Rule("kda", (("g", "B H T D"), ("beta", "B H T")), "decay(%g) beta(%beta) update(delta)"),
        Rule("rwkv6", (("g", "B H T D"), ("bonus", "H D")), "decay(%g) bonus(%bonus) readout(exclusive)"),
        Rule("rwkv7", (("g", "B H T D"), ("a", "B H T D"), ("b", "B H T D")),
             "decay(%g) a(%a) b(%b) update(dplr) transition(before)"),
        Rule("elu", feature_map="elu1", normalize=True),
        Rule("softmax", attention="softmax causal"),
        Rule("softmax_all", attention="softmax"),
        Rule("softmax_tma", attention="softmax causal", options=("--copy=tma",)),
        Rule("softmax_all_tma", attention="softmax", options=("--copy=tma",)),
        Rule("linear_wgmma", options=("--scan-mma=wgmma",)),
        Rule("simple_gla_wgmma", (("g", "B H T"),), "decay(%g)", options=("--scan-mma=wgmma",)),
        Rule("elu_all", feature_map="elu1", normalize=True, attention="linear"),
    )
}  # fmt: skip

EPS = 1e-4  # of the normalized rule


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A function to compile, for any B and T. "prefill": from an empty state, returning no
    state; "carry": from a state to a state; "step": the same for one token, in place."""

    rule: str
    dtype: str
    heads: int
    size: int
    form: str

    @property
    def name(self):
        return f"{self.rule}_{self.dtype}_h{self.heads}_d{self.size}_{self.form}"


@dataclasses.dataclass(frozen=True)
class Shape:
    batch: int
    tokens: int
    heads: int
    size: int

    def __str__(self):
        return f"B{self.batch} T{self.tokens} H{self.heads} D{self.size}"

    @property
    def states(self):
        return self.batch * self.heads


# The shapes that flash-linear-attention is measured on, in its order.
STANDARD = (
    Shape(1, 8192, 96, 128), Shape(2, 16384, 16, 128), Shape(4, 2048, 16, 128),
    Shape(4, 4096, 64, 128), Shape(8, 2048, 32, 256), Shape(8, 1024, 8, 64),
)  # fmt: skip
# Many heads of 64, and few heads.
SMALL = (
    Shape(4, 8192, 64, 64), Shape(1, 2048, 8, 64), Shape(1, 32768, 8, 128),
    Shape(1, 8192, 16, 128), Shape(1, 2048, 2, 128),
)  # fmt: skip
# One token each; the last is too small for a GPU, and measures the launch.
DECODE = (Shape(128, 1, 64, 64), Shape(128, 1, 32, 128), Shape(64, 1, 64, 256), Shape(1, 1, 32, 128))
# Timed kernels that are also compared with float64, token by token, at their length.
LONG = (Shape(1, 2048, 2, 128), Shape(1, 8192, 16, 128))
TIMED_RULES = ("linear", "linear_wgmma", "simple_gla", "simple_gla_wgmma", "gla", "delta", "gated_delta", "kda", "softmax", "softmax_tma", "elu_all")
RECURRENCES = [name for name, rule in RULES.items() if not rule.attention]


def kernels(quick=False, chips="sm_90"):
    """Everything to compile for these chips, without duplicates: what is compared with
    float64, then what is timed."""
    if quick:
        return [Kernel("linear", "bf16", CHECKED_HEADS, 64, "carry"), Kernel("simple_gla", "bf16", CHECKED_HEADS, 64, "carry"),
                Kernel("elu", "f32", CHECKED_HEADS, 16, "carry"), Kernel("gated_delta", "f32", CHECKED_HEADS, 16, "carry"),
                Kernel("linear", "bf16", 8, 64, "prefill"), Kernel("linear", "bf16", 8, 64, "step")]  # fmt: skip
    chosen = [Kernel(rule, dtype, CHECKED_HEADS, size, "carry") for size in CORRECTNESS_SIZES for rule in RECURRENCES for dtype in DTYPES]
    chosen += [Kernel(rule, dtype, CHECKED_HEADS, size, "step") for size in STEP_SIZES for rule in RECURRENCES for dtype in ("bf16", "f32")]
    chosen += [Kernel(rule, dtype, CHECKED_HEADS, size, "prefill") for size in CORRECTNESS_SIZES for rule in RULES
               if RULES[rule].attention for dtype in DTYPES]  # fmt: skip
    chosen += [timed(rule, shape) for rule in TIMED_RULES for shape in STANDARD + SMALL + DECODE
               if shape.tokens > 1 or not RULES[rule].attention]  # fmt: skip
    return [kernel for kernel in dict.fromkeys(chosen) if not RULES[kernel.rule].options or _takes_options(kernel, chips)]


def _takes_options(kernel, chips):
    """Tensor maps and scans by warpgroups are for products of wgmma; rows of the former are multiples of 16 bytes, states of the
    latter have at most 128 rows, and many tokens."""
    if "sm_90a" not in chips.split(",") or kernel.dtype == "f32":
        return False
    if RULES[kernel.rule].attention:
        return kernel.size % 8 == 0
    return kernel.size <= 128 and kernel.form != "step"


def timed(rule, shape):
    """The kernel that a shape is timed with."""
    return Kernel(rule, "bf16", shape.heads, shape.size, "step" if shape.tokens == 1 else "prefill")


def _tensor(layout, extents, dtype):
    return "tensor<" + "x".join([*(extents[name] for name in layout.split()), dtype]) + ">"


def _attention_text(kernel, rule):
    t = _tensor("B H T D", {"B": "?", "H": str(kernel.heads), "T": "?", "D": str(kernel.size)}, kernel.dtype)
    weights = " weights(softmax)" if "softmax" in rule.attention else ""
    attributes = ["causal"] * ("causal" in rule.attention) + [f"scale = {kernel.size**-0.5!r} : f64"] + _map_attributes(rule)
    return (
        f"func.func @{kernel.name}(%q: {t}, %k: {t}, %v: {t}) -> {t} {{\n"
        f"  %o = linattn.attention %q, %k, %v{weights} {{{', '.join(attributes)}}} : ({t}, {t}, {t}) -> {t}\n"
        f"  return %o : {t}\n}}\n"
    )


def _map_attributes(rule):
    attributes = [f"feature_map = #linattn.feature_map<{rule.feature_map}>"] * bool(rule.feature_map)
    return attributes + [f"normalize = #linattn.normalize<eps = {EPS!r} : f64>"] * rule.normalize


def module_text(kernel):
    """The function in MLIR: (q, k, v, gates…[, state…]) -> o[, state…]."""
    rule, dtype = RULES[kernel.rule], kernel.dtype
    if rule.attention:
        return _attention_text(kernel, rule)
    extents = {"B": "?", "H": str(kernel.heads), "T": "1" if kernel.form == "step" else "?", "D": str(kernel.size)}
    tokens = _tensor("B H T D", extents, dtype)
    states = [_tensor("B H D D", extents, "f32")] + [_tensor("B H D", extents, "f32")] * rule.normalize
    gates = [(f"%{name}", _tensor(layout, extents, "f32")) for name, layout in rule.gates]
    carries = kernel.form != "prefill"
    arguments = [("%q", tokens), ("%k", tokens), ("%v", tokens), *gates]
    inits = ["%s", "%z"][: len(states)]
    arguments += list(zip(inits, states)) if carries else []
    lines = [f"%c{i} = arith.constant {i} : index" for i in (0, 2)]
    lines += [f"%n{name} = tensor.dim %q, %c{i} : {tokens}" for i, name in ((0, "b"), (2, "t"))]
    lines.append(f"%e = tensor.empty(%nb{'' if kernel.form == 'step' else ', %nt'}) : {tokens}")
    if not carries:
        lines.append("%zero = arith.constant 0.0 : f32")
        for name, state in zip(inits, states):
            lines.append(f"%{name[1]}e = tensor.empty(%nb) : {state}")
            lines.append(f"{name} = linalg.fill ins(%zero : f32) outs(%{name[1]}e : {state}) -> {state}")
    attributes = [f"scale = {kernel.size**-0.5!r} : f64"] * (kernel.rule != "rwkv7")
    attributes += _map_attributes(rule)
    braces = " {" + ", ".join(attributes) + "}" if attributes else ""
    results = [tokens, *states]
    types = ", ".join([tokens] * 3 + [type_ for _, type_ in gates] + [tokens] + states)
    normalizer = " normalizer(%z)" if rule.normalize else ""
    lines.append(
        f"%r:{len(results)} = linattn.scan %q, %k, %v {rule.clause} into(%e) init(%s){normalizer}{braces} "
        f": ({types}) -> ({', '.join(results)})"
    )
    returned = results if carries else results[:1]
    lines.append(f"return {', '.join(f'%r#{i}' for i in range(len(returned)))} : {', '.join(returned)}")
    signature = ", ".join(f"{name}: {type_}" for name, type_ in arguments)
    body = "\n".join(f"  {line}" for line in lines)
    return f"func.func @{kernel.name}({signature}) -> ({', '.join(returned)}) {{\n{body}\n}}\n"
