"""Writes the module of one kernel of the ONNX Runtime library: kernels.py NAME.

A name is that of a rule and an element type, such as gated_delta_channel_bf16, or conv4_silu_f32. Of bf16xf32 the
second type is that of decay and beta. All extents are open but the width of a convolution: one kernel serves every model.
In gated_delta_h128_f32 keys and values have heads of that size, which a kernel is faster to know, and in
gated_delta_s128_f32 there is one token. gated_s128_f32 has one head besides: the heads of a token are then sequences, since
only a known number of heads is read token by token.
"""

import re
import sys


def linear_attention(rule, size, types, kind):
    """Tokens are [B, T, H, D], decay [B, T, H] or [B, T, H, K], beta [B, T, H, 1]:
    the stride of its heads may then be 0. The state is float32, the scale a number, the
    last argument. `kind` is empty where all extents are open, h with heads of `size`, s
    with one token as well."""
    by_channel = rule.endswith("_channel")
    gated, delta = rule.startswith("gated"), "delta" in rule
    element, _, other = types.partition("x")
    gates = other or element
    width, length = size if kind else "?", "1" if kind == "s" else "?"
    heads = "1" if kind == "s" and not delta else "?"

    def both(*tail):
        """The type of an operand, and the same with its heads before its tokens."""
        return [f"tensor<{'x'.join(['?', *middle, *tail])}>" for middle in ((length, heads), (heads, length))]

    (tokens, tokens_h), (gate, gate_h) = both(width, element), both(gates)
    state, (column, _) = f"tensor<?x{heads}x{width}x{width}xf32>", both("1", gates)
    decay, decay_h = both(width, gates) if by_channel else (gate, gate_h)
    arguments = [f"%q: {tokens}", f"%k: {tokens}", f"%v: {tokens}", f"%s: {state}"]
    types, clauses, update, steps = [tokens_h] * 3, "", "", []
    if gated:
        arguments.append(f"%g: {decay}")
        order = "0, 2, 1, 3" if by_channel else "0, 2, 1"
        steps.append(f"%gh = linattn.permute %g [{order}] : {decay} to {decay_h}")
        clauses += " decay(%gh)"
        types.append(decay_h)
    if delta:
        arguments.append(f"%b: {column}")
        steps += [
            f"%bh = tensor.dim %b, %c2 : {column}",
            f"%bt = tensor.extract_slice %b[0, 0, 0, 0] [%n, {'1' if kind == 's' else '%t'}, %bh, 1] [1, 1, 1, 1] : {column} to {gate}",
            f"%beta = linattn.permute %bt [0, 2, 1] : {gate} to {gate_h}",
        ]
        clauses += " beta(%beta)"
        update = " update(delta)"
        types.append(gate_h)
    arguments.append("%scale: f64")
    types += ["f64", tokens_h, state]
    sizes = "%n" + ", %ho" * (heads == "?") + ", %t" * (kind != "s") + ", %e" * (not kind)
    lines = [
        *(f"%c{i} = arith.constant {i} : index" for i in range(4)),
        f"%n = tensor.dim %q, %c0 : {tokens}",
        f"%t = tensor.dim %q, %c1 : {tokens}",
        f"%hq = tensor.dim %q, %c2 : {tokens}",
        f"%hk = tensor.dim %k, %c2 : {tokens}",
        f"%hv = tensor.dim %v, %c2 : {tokens}",
        f"%e = tensor.dim %v, %c3 : {tokens}",
        "%hs = arith.maxsi %hk, %hv : index",
        "%ho = arith.maxsi %hq, %hs : index",
        *(f"%{x}h = linattn.permute %{x} [0, 2, 1, 3] : {tokens} to {tokens_h}" for x in "qkv"),
        *steps,
        f"%into = tensor.empty({sizes}) : {tokens_h}",
        f"%oh, %s1 = linattn.scan %qh, %kh, %vh{clauses} scale(%scale){update} into(%into) init(%s)",
        f"  : ({', '.join(types)}) -> ({tokens_h}, {state})",
        f"%o = linattn.permute %oh [0, 2, 1, 3] : {tokens_h} to {tokens}",
        f"return %o, %s1 : {tokens}, {state}",
    ]
    return function("linear_attention", arguments, f"{tokens}, {state}", lines)


def causal_conv(width, activation, element):
    """Input and output are [B, C, T], the weight is [C, W], the state [B, C, W − 1]."""
    tokens, weight, bias = f"tensor<?x?x?x{element}>", f"tensor<?x{width}x{element}>", f"tensor<?x{element}>"
    state = f"tensor<?x?x{width - 1}x{element}>"
    activate = f" activation({activation})" if activation else ""
    lines = [
        *(f"%c{i} = arith.constant {i} : index" for i in range(3)),
        f"%n = tensor.dim %x, %c0 : {tokens}",
        f"%c = tensor.dim %x, %c1 : {tokens}",
        f"%t = tensor.dim %x, %c2 : {tokens}",
        f"%xt = linattn.permute %x [0, 2, 1] : {tokens} to {tokens}",
        f"%into = tensor.empty(%n, %t, %c) : {tokens}",
        f"%ot, %s1 = linattn.causal_conv %xt, %w bias(%b){activate} into(%into) init(%s)",
        f"  : ({tokens}, {weight}, {bias}, {tokens}, {state}) -> ({tokens}, {state})",
        f"%o = linattn.permute %ot [0, 2, 1] : {tokens} to {tokens}",
        f"return %o, %s1 : {tokens}, {state}",
    ]
    arguments = [f"%x: {tokens}", f"%w: {weight}", f"%b: {bias}", f"%s: {state}"]
    return function("causal_conv", arguments, f"{tokens}, {state}", lines)


def convert(name, source, target):
    """x in another type, rounded once."""
    step = "extf" if name == "widen" else "truncf"
    a, b = f"tensor<?x{source}>", f"tensor<?x{target}>"
    map = "affine_map<(i) -> (i)>"
    lines = [
        "%c0 = arith.constant 0 : index",
        f"%n = tensor.dim %x, %c0 : {a}",
        f"%into = tensor.empty(%n) : {b}",
        f'%y = linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = ["parallel"]}}',
        f"  ins(%x : {a}) outs(%into : {b}) {{",
        f"^bb0(%in: {source}, %out: {target}):",
        f"  %number = arith.{step} %in : {source} to {target}",
        f"  linalg.yield %number : {target}",
        f"}} -> {b}",
        f"return %y : {b}",
    ]
    return function(name, [f"%x: {a}"], b, lines)


def function(name, arguments, results, lines):
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func @{name}({', '.join(arguments)}) -> ({results}) {{\n{body}}}\n"


def module(name):
    rule, _, element = name.rpartition("_")
    if rule == "widen":
        return convert(rule, element, "f32")
    if rule == "narrow":
        return convert(rule, "f32", element)
    if rule.startswith("conv"):
        width, _, activation = rule[len("conv") :].partition("_")
        return causal_conv(int(width), activation, element)
    rule, kind, size = re.fullmatch(r"(\w+?)(?:_([hs])(\d+))?", rule).groups()
    return linear_attention(rule, size, element, kind or "")


if __name__ == "__main__":
    print(module(sys.argv[1]), end="")
