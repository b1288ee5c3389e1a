"""The standard's recurrences, which stay operators of the module: `linattn-raise-onnx` checks them
and writes the scan or the convolution."""

from __future__ import annotations

import json

from .._core._literals import float_literal
from ._values import Value

__all__ = ["HANDLERS"]

_LINEAR = {"q_num_heads", "kv_num_heads", "update_rule", "scale", "chunk_size"}
_CONV = {"activation"}
# Attributes of com.microsoft's operators that the standard's lack, and the value that changes nothing.
_HARMLESS = {"state_window": 0, "ndim": 1, "domain": ""}


def _attributes(node, known):
    texts = []
    for name, value in node.attributes.items():
        if name not in known:
            if name in _HARMLESS and value == _HARMLESS[name]:
                continue
            raise node.refuse(f"the attributes {', '.join(sorted(known))}", f"{name} = {value}")
        if isinstance(value, str):
            texts.append(f"{name} = {json.dumps(value)}")
        elif isinstance(value, float):
            texts.append(f"{name} = {float_literal(value)} : f64")
        else:
            texts.append(f"{name} = {value} : si64")
    return f"{{{', '.join(texts)}}}"


def _emit(node, operator, attributes, results):
    """The operator in generic form; operands that are left out are of type none."""
    w = node.writer
    names = [w.tensor(value) if value is not None else w.once('"onnx.NoValue"() {value} : () -> none') for value in node.inputs]
    types = [value.type if value is not None else "none" for value in node.inputs]
    base = w.fresh()
    w.lines.append(
        f'{base}:2 = "onnx.{operator}"({", ".join(names)}) {attributes} : ({", ".join(types)}) -> '
        f"({', '.join(result.type for result in results)})"
    )
    return [Value(result.element, result.dims, f"{base}#{i}") for i, result in enumerate(results)]


def _linear_attention(node):
    query, key, value, past = (node.input(i) for i in range(4))
    heads, states = node.get("q_num_heads", 0), node.get("kv_num_heads", 0)
    for name, operand in (("query", query), ("key", key), ("value", value)):
        if operand is None or operand.rank != 3:
            raise node.refuse(f"{name} [B, T, heads * size]", "none" if operand is None else f"rank {operand.rank}")
        if not isinstance(operand.dims[2], int):
            raise node.refuse(f"the last size of {name} to be known", "an open one")
    if heads < 1 or states < 1 or query.dims[2] % heads or value.dims[2] % states:
        raise node.refuse("head counts that divide the sizes", f"q_num_heads = {heads} and kv_num_heads = {states}")
    d_k, d_v = query.dims[2] // heads, value.dims[2] // states
    output = Value(query.element, (*query.dims[:2], heads * d_v))
    present = Value((past or query).element, (query.dims[0], states, d_k, d_v))
    return _emit(node, "LinearAttention", _attributes(node, _LINEAR), [output, present])


def _causal_conv(node):
    x, weight = node.inputs[:2]
    if x.rank != 3 or weight.rank != 3 or not isinstance(weight.dims[2], int):
        raise node.refuse("input [B, C, T] and weight [C, 1, k]", f"ranks {x.rank} and {weight.rank}")
    present = Value(x.element, (*x.dims[:2], weight.dims[2] - 1))
    return _emit(node, "CausalConvWithState", _attributes(node, _CONV), [Value(x.element, x.dims), present])


_linear_attention.contributed = _causal_conv.contributed = True

HANDLERS = {"LinearAttention": _linear_attention, "CausalConvWithState": _causal_conv}
