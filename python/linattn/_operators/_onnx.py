"""`onnx_linear_attention` and `onnx_causal_conv_with_state`: operators of ONNX opset 27.

The functions compile a module of that one operator, so that what importers of
ONNX graphs get is what runs here.
"""

from __future__ import annotations

import json
import re

import numpy as np

from .. import _linattn
from .._core import _arrays
from .._core._checks import check_choice
from .._core._literals import float_literal
from .._core._plain import without_places

__all__ = ["onnx_causal_conv_with_state", "onnx_linear_attention"]

# Dtypes, ranks and sizes of the operands -> Kernel.
_kernels = {}
_MAX_KERNELS = 1024

_RULES = ("linear", "gated", "delta", "gated_delta")
_DTYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}


def onnx_linear_attention(
    query,
    key,
    value,
    past_state=None,
    decay=None,
    beta=None,
    *,
    q_num_heads,
    kv_num_heads,
    update_rule="gated_delta",
    scale=0.0,
    chunk_size=0,
    erase_gate=None,
):
    """The operator LinearAttention of ONNX (ai.onnx, opset 27).

    Per sequence, KV head and token, with S ``[d_k, d_v]``::

        S ← e^decay_t S                        gated, gated_delta
        δ = beta_t (v_t − Sᵀ k_t)              delta, gated_delta; else δ = v_t
        S ← S + k_t δᵀ
        o_t = scale · Sᵀ q_t

    Query head h reads KV head ⌊h / (q_num_heads / kv_num_heads)⌋. Sums are float32,
    float64 for float64 tokens.

    Args:
      query: ``[B, T, q_num_heads · d_k]``; float16, bfloat16, float32 or (beyond
        ONNX) float64. Any array with ``__dlpack__``, any strides; nothing is copied.
      key, value: ``[B, T, kv_num_heads · d_k]``, ``[B, T, kv_num_heads · d_v]``.
      past_state: ``[B, kv_num_heads, d_k, d_v]`` of any of these dtypes; zeros if
        None. It is left as it is.
      decay: natural logarithms, ``[B, T, kv_num_heads]`` or
        ``[B, T, kv_num_heads · d_k]``, exactly for the gated rules.
      beta: ``[B, T, kv_num_heads]`` or ``[B, T, 1]``, exactly for the delta rules.
      q_num_heads, kv_num_heads: the first a multiple of the second.
      update_rule: "linear", "gated", "delta" or "gated_delta".
      scale: 1/√d_k if 0.
      chunk_size: a hint without effect on the result; not used.
      erase_gate: ``[B, T, kv_num_heads · d_k]``, for the delta rules, of later
        versions of the operator: δ = beta_t (v_t − Sᵀ (erase_gate_t ⊙ k_t)).

    Returns:
      ``(output, present_state)``: ``[B, T, q_num_heads · d_v]`` of query's dtype and
      ``[B, kv_num_heads, d_k, d_v]`` of past_state's, or query's without one.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    operands = (query, key, value, past_state, decay, beta, erase_gate)
    options = (q_num_heads, kv_num_heads, update_rule, scale, chunk_size)
    try:
        kernel = _kernels[_signature(operands, options)]
    except (KeyError, TypeError, AttributeError, IndexError):
        kernel = _find_kernel(operands, *options)
    return kernel(*[x for x in operands if x is not None])


def _signature(operands, options):
    """The properties of a call that its kernel depends on."""
    query, past_state = operands[0], operands[3]
    return (
        options,
        query.shape[1] == 1,
        *[None if x is None else (x.dtype, x.shape[-1], len(x.shape)) for x in operands],
        None if past_state is None else past_state.shape[1:3],
    )


def _find_kernel(operands, q_num_heads, kv_num_heads, update_rule, scale, chunk_size):
    """Checks all operands, and compiles a new kernel if needed."""
    counts = [_integer("q_num_heads", q_num_heads), _integer("kv_num_heads", kv_num_heads)]
    check_choice("update_rule", update_rule, _RULES)
    if isinstance(scale, (bool, np.bool_)) or not isinstance(scale, (int, float, np.number)):
        raise TypeError(f"scale: expected a number, but got {type(scale).__name__}")
    _integer("chunk_size", chunk_size)
    arrays = [_describe(name, x) for name, x in zip(_NAMES, operands)]
    signature = _signature(arrays, (*counts, update_rule, scale, chunk_size))
    return _find(signature, "onnx_linear_attention", lambda: _module_text(arrays, counts, update_rule, float(scale)))


def _find(key, name, text):
    """The kernel of a key. `text` makes its module if there is none yet."""
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _compile(text(), name)
        if len(_kernels) >= _MAX_KERNELS:
            _kernels.clear()
        _kernels[key] = kernel
    return kernel


_NAMES = ("query", "key", "value", "past_state", "decay", "beta", "erase_gate")


def _integer(name, value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: expected an integer, but got {type(value).__name__}")
    return int(value)


def _describe(name, array):
    """The shape and dtype of the operand."""
    if array is None and name in _NAMES[3:]:
        return None
    if not (hasattr(array, "shape") and hasattr(array, "dtype")):
        array = _arrays.to_numpy(array, name)
    if len(array.shape) < 2:
        raise ValueError(f"{name}: expected shape (B, T, H·D), but got {tuple(array.shape)}")
    return array


def _declare(names, arrays, sizes_of):
    """(arguments of a function, operands and types of its operator); None stands for an absent operand.

    Args:
      sizes_of: (name, sizes as text) -> the sizes of its type, of which "?" are open.
    """
    arguments, operands, types = [], [], []
    for name, array in zip(names, arrays):
        if array is None:
            operands.append("%none")
            types.append("none")
            continue
        dtype = str(array.dtype).rpartition(".")[2]
        if dtype not in _DTYPES:
            raise TypeError(f"{name}: expected float16, bfloat16, float32 or float64, but got {dtype}")
        sizes = sizes_of(name, [str(size) for size in array.shape])
        types.append(f"tensor<{'x'.join([*sizes, _DTYPES[dtype]])}>")
        operands.append("%" + name)
        arguments.append(f"%{name}: {types[-1]}")
    return arguments, operands, types


def _module_text(arrays, counts, rule, scale):
    """The module of one operator. Sizes of heads are constants in it, as is the
    length 1 of decoding; batch and length are not."""
    length = "1" if arrays[0].shape[1] == 1 else "?"

    def sizes_of(name, sizes):
        return ["?", sizes[1] if name == "past_state" else length, *sizes[2:]]

    arguments, names, types = _declare(_NAMES, arrays, sizes_of)
    # The sizes of the results, unless an error is on its way.
    query, _, value, past, *_ = arrays
    d_k, d_v = (x.shape[-1] // max(count, 1) for x, count in zip((query, value), counts))
    element = types[0].rpartition("x")[2][:-1]
    state = element if past is None else types[3].rpartition("x")[2][:-1]
    results = (
        f"tensor<?x{length}x{max(counts[0], 1) * d_v}x{element}>, "
        f"tensor<?x{max(counts[1], 1)}x{d_k}x{d_v}x{state}>"
    )
    attributes = (
        f'{{q_num_heads = {counts[0]} : si64, kv_num_heads = {counts[1]} : si64, '
        f'update_rule = "{rule}", scale = {float_literal(scale)} : f64}}'
    )
    return "\n".join([
        f"func.func @onnx_linear_attention({', '.join(arguments)}) -> ({results}) {{",
        '  %none = "onnx.NoValue"() {value} : () -> none',
        f'  %output, %present_state = "onnx.LinearAttention"({", ".join(names)}) {attributes}',
        f"    : ({', '.join(types)}) -> ({results})",
        f"  return %output, %present_state : {results}",
        "}",
        "",
    ])  # fmt: skip


def _compile(text, name):
    try:
        return _linattn.compile(text, "", f"<{name}>", "cpu")
    except ValueError as error:
        # The rules are the compiler's; the place in the module means nothing here.
        broken = re.search(r"error: 'onnx\.\w+' op (.*)", str(error))
        if broken is None:
            raise ValueError(without_places(error)) from None
        raise ValueError(broken.group(1)) from None


def onnx_causal_conv_with_state(input, weight, bias=None, past_state=None, *, activation="none"):
    """The operator CausalConvWithState of ONNX (ai.onnx, opset 27).

    Per channel, with k weights::

        output_t = act(bias + Σ_j weight_j · input_{t − (k−1−j)})

    where the inputs before the first one are those of past_state.

    Args:
      input: ``[B, C, T]``; float16, bfloat16, float32 or (beyond ONNX) float64. Any
        array with ``__dlpack__``, any strides; nothing is copied.
      weight: ``[C, 1, k]`` of input's dtype, k from 1 to 16.
      bias: ``[C]`` of input's dtype.
      past_state: ``[B, C, k − 1]`` of input's dtype; zeros if None. It is left as it is.
      activation: "none", "silu" or "swish".

    Returns:
      ``(output, present_state)``: of input's shape and ``[B, C, k − 1]``, the last
      inputs.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    if not isinstance(activation, str):
        raise TypeError(f"activation: expected none, silu or swish, but got {type(activation).__name__}")
    operands = (input, weight, bias, past_state)
    arrays = [
        None if x is None and name in ("bias", "past_state") else _describe_any(name, x)
        for name, x in zip(_CONV_NAMES, operands)
    ]
    key = ("conv", activation, *[None if x is None else (str(x.dtype), *x.shape[1:], len(x.shape)) for x in arrays[1:]],
           str(arrays[0].dtype), len(arrays[0].shape), arrays[1].shape[0])  # fmt: skip
    kernel = _find(key, "onnx_causal_conv_with_state", lambda: _conv_text(arrays, activation))
    return kernel(*[x for x in operands if x is not None])


_CONV_NAMES = ("input", "weight", "bias", "past_state")


def _describe_any(name, array):
    if not (hasattr(array, "shape") and hasattr(array, "dtype")):
        array = _arrays.to_numpy(array, name)
    return array


def _conv_text(arrays, activation):
    """A module with one operator, for any batch and length."""

    def sizes_of(name, sizes):
        if name == "input":
            if len(sizes) != 3:
                raise ValueError(f"input: expected shape (B, C, T), but got {tuple(arrays[0].shape)}")
            return ["?", sizes[1], "?"]
        return ["?", *sizes[1:]] if name == "past_state" and sizes else sizes

    arguments, names, types = _declare(_CONV_NAMES, arrays, sizes_of)
    element = types[0].rpartition("x")[2][:-1]
    taps = arrays[1].shape[-1] if len(arrays[1].shape) else 1
    results = f"{types[0]}, tensor<?x{arrays[0].shape[1]}x{max(taps - 1, 0)}x{element}>"
    return "\n".join([
        f"func.func @onnx_causal_conv_with_state({', '.join(arguments)}) -> ({results}) {{",
        '  %none = "onnx.NoValue"() {value} : () -> none',
        f'  %output, %present_state = "onnx.CausalConvWithState"({", ".join(names)}) {{activation = {json.dumps(activation)}}}',
        f"    : ({', '.join(types)}) -> ({results})",
        f"  return %output, %present_state : {results}",
        "}",
        "",
    ])  # fmt: skip
