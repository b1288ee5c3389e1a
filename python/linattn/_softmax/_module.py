"""The writer of texts and the maker of plans that the functions of this package share."""

from __future__ import annotations

from .._core._checks import check_flag
from .._core._plain import without_places
from .._core._recipe import Recipe
from .._recurrence import _function, _plans

__all__ = ["Module", "TOKENS", "check_causal", "make_plan"]

TOKENS = (("q", "tokens", "B T Hq K"), ("k", "tokens", "B Tk Hk K"), ("v", "tokens", "B Tk Hv V"))

# Loops of a product of matrices for each batch element and head.
PRODUCT = {
    "left": "(b, h, i, j, c) -> (b, h, i, c)", "transposed": "(b, h, i, j, c) -> (b, h, c, i)",
    "right": "(b, h, i, j, c) -> (b, h, c, j)", "result": "(b, h, i, j, c) -> (b, h, i, j)",
}  # fmt: skip


class Module(_function.Function):
    """A function that is being written; it computes in the type of sums."""

    def __init__(self, dtype, extents, scale=None):
        options = _function.Options(weights="softmax", scale=extents["K"] ** -0.5 if scale is None else scale)
        super().__init__(options, _function.Sizes.of(dtype, extents))
        self.op_dtype = self.scalar

    def wide_tokens(self):
        return [self.widen(token, name) for name, token in zip("qkv", self.token_arguments())]

    def convert(self, value, dtype):
        """A parameter of any floating-point dtype in the type of sums."""
        if dtype == self.scalar:
            return value
        wider = dtype in ("f16", "bf16") or dtype == "f32" and self.scalar == "f64"
        type_ = self.types[value].replace(dtype, self.scalar)
        text = f"arith.{'extf' if wider else 'truncf'} {value} : {self.types[value]} to {type_}"
        return self.define(f"{value[1:]}_wide", text, type_)

    def sizes_of(self, name, value, indices):
        """The dynamic sizes among these dimensions of a value, None for the others."""
        sizes = self.types[value].removeprefix("tensor<").split("x")
        return [self.dim(f"{name}_dim{i}", value, i) if sizes[i] == "?" else None for i in indices]

    def zeros(self, name, type_, *dims):
        zero = "  %zero = arith.constant 0.0 : " + self.scalar
        if zero not in self.lines:
            self.lines.append(zero)
        empty = self.empty(f"{name}_empty", type_, *dims)
        return self.define(
            f"{name}_zeros", f"linalg.fill ins(%zero : {self.scalar}) outs({empty} : {type_}) -> {type_}", type_
        )

    def contract(self, name, maps, left, right, out):
        """The product of two tensors, added to `out`."""
        maps = ", ".join(f"affine_map<{map_}>" for map_ in maps)
        sources, target = f"{self.types[left]}, {self.types[right]}", self.types[out]
        return self.define(
            name,
            f"linalg.contract indexing_maps = [{maps}] ins({left}, {right} : {sources}) "
            f"outs({out} : {target}) -> {target}",
            target,
        )

    def generic(self, name, maps, iterators, inputs, out, body):
        """Structured loops; `body` sees %x0, … and %y."""
        maps = ", ".join(f"affine_map<{map_}>" for map_ in maps)
        iterators = ", ".join(f'"{iterator}"' for iterator in iterators)
        arguments = ", ".join([f"%x{i}: {self.scalar}" for i in range(len(inputs))] + [f"%y: {self.scalar}"])
        ins = f" ins({', '.join(inputs)} : {', '.join(self.types[value] for value in inputs)})" if inputs else ""
        lines = "\n".join("    " + line for line in body)
        return self.define(
            name,
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}{ins} "
            f"outs({out} : {self.types[out]}) {{\n  ^bb0({arguments}):\n{lines}\n  }} -> {self.types[out]}",
            self.types[out],
        )

    def attend(self, name, q, k, v, type_):
        """Softmax attention of all queries to all keys."""
        text = f"linattn.attention {q}, {k}, {v} weights(softmax)" + self.attributes("scale")
        self.op([name], text, [q, k, v], [type_])
        return f"%{name}"


def make_plan(what, text, operands, rules, target, results=(), **recording):
    """A plan of a function of q, k, v `[B, T, H, D]` and `operands`, whose heads are known.

    Args:
      text: (dtype, extents, types of operands) -> the function as MLIR.
      rules: of sizes, beside that of the heads of the result.
      results: results beside the output, in the type of sums, described as operands are.
      recording: `recorded` or `keeps_results` of the recipe.
    """
    target = _plans.parse_target(target)

    def refuse(error):
        raise ValueError(without_places(error)) from None

    return Recipe(
        what, text, lambda on_device: _plans.resolve_target(target, on_device), refuse,
        [*TOKENS, *operands], ["H = max(Hk, Hv)", "Ho = max(Hq, H)", *rules], list(results),
        ("out", "tokens", "B T Ho V"), False, bool(results),
        **recording,
    ).plan(fixes_heads=True)  # fmt: skip


def check_causal(causal, what, why):
    if check_flag("causal", causal):
        raise ValueError(f"causal: expected False for {what}, {why}, but got True")
