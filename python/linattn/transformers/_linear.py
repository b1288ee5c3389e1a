"""Linear layers of 16 bits, where PyTorch has no kernels for them.

PyTorch leaves products of 16-bit matrices to oneDNN, whose kernels need AVX-512 for bfloat16 and AVX-512 FP16 for
float16. Without these it converts each number again for each product, at a fifth of the rate of float32.
"""

from __future__ import annotations

import functools
import platform

import torch
import torch.nn.functional as F

from .. import _linattn
from .._torch._eager import find_reason
from ._guard import PassOn, refuses, trains
from ._run import is_recorded

__all__ = ["is_offered", "linear", "product"]

_TYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}
# With fewer rows most of the time is reading the weights, which PyTorch does as they are.
_LEAST_ROWS = 8
# Bytes of sums in float32 at a time, and the rows of one task, a multiple of which a call takes.
_MOST_BYTES, _TASK_ROWS = 1 << 26, 192


@functools.cache
def _has_kernels(dtype):
    """Whether PyTorch has kernels for products of this dtype; where it does not say, they count as there."""
    name = {torch.bfloat16: "_is_mkldnn_bf16_supported", torch.float16: "_is_mkldnn_fp16_supported"}[dtype]
    supported = getattr(torch.ops.mkldnn, name, None)
    return platform.machine() not in ("x86_64", "AMD64") or supported is None or supported()


def is_offered():
    """Whether there is a dtype whose linear layers are faster here."""
    return not all(_has_kernels(dtype) for dtype in _TYPES)


def _refuse(x, weight):
    """Why PyTorch computes a product; None if linattn may."""
    if not isinstance(x, torch.Tensor):
        return "the input is not a tensor"
    dtype = x.dtype
    if dtype not in _TYPES or _has_kernels(dtype):
        return f"PyTorch has kernels for {str(dtype)[6:]}"
    # torch.jit would record the comparison; `find_reason` refuses what it traces.
    if not torch.jit.is_tracing() and x.numel() < _LEAST_ROWS * weight.shape[-1]:
        return f"fewer than {_LEAST_ROWS} rows"
    return None


@refuses(lambda self, input: _refuse(input, self.weight))
@trains
def linear(self, input):
    """``torch.nn.Linear.forward``."""
    return _product(input, self.weight, self.bias)


def product(x, weight, bias):
    """``x weightᵀ + bias`` with sums in float32 that are rounded once, or as PyTorch has it.

    Args:
      x: ``[..., K]``; weight: ``[N, K]``; bias: ``[N]`` or None.

    Returns:
      ``[..., N]`` of x's dtype.
    """
    if _refuse(x, weight) is None:
        try:
            return _product(x, weight, bias)
        except PassOn:
            pass
    return F.linear(x, weight, bias)


def _product(x, weight, bias):
    weights = (weight,) if bias is None else (weight, bias)
    why = find_reason(weights, {}, trains=True)
    if why is not None:
        raise PassOn(why)
    if torch.is_autocast_enabled("cpu") or any(operand.dtype is not x.dtype for operand in weights):
        raise PassOn("autocast, or several dtypes")
    fits = weight.ndim == 2 and x.shape[-1:] == weight.shape[1:] and (bias is None or bias.shape == weight.shape[:1])
    if not fits or weight.numel() == 0:
        raise PassOn("sizes that are empty or do not fit")
    N, K = weight.shape
    operands = (x.reshape(-1, K), *weights)
    y = _Recorded.apply(*operands) if is_recorded(*operands) else _forward(*operands)
    return y.view(*x.shape[:-1], N)


def _forward(x, *weights):
    kernel, weights = _kernel(_text_of(x, *weights), None), [weight.detach() for weight in weights]
    rows, N = len(x), len(weights[0])
    step = max(_MOST_BYTES // (4 * N * _TASK_ROWS), 1) * _TASK_ROWS
    if rows <= step:
        return kernel(x.detach(), *weights)
    y = x.new_empty(rows, N)
    for some, place in zip(x.detach().split(step), y.split(step)):
        place.copy_(kernel(some, *weights))
    return y


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *operands):
        ctx.save_for_backward(*operands)
        return _forward(*operands)

    @staticmethod
    def backward(ctx, cotangent):
        operands = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is differentiated, too
            x, weight, *bias = operands
            return cotangent @ weight, cotangent.mT @ x, *(cotangent.sum(0) for _ in bias)
        needed = [index for index, needs in enumerate(ctx.needs_input_grad) if needs]
        grads = _kernel(_text_of(*operands), tuple(needed))(*(operand.detach() for operand in operands), cotangent)
        grads = dict(zip(needed, grads if len(needed) > 1 else (grads,)))
        return tuple(grads.get(index) for index in range(len(operands)))


def _text_of(x, weight, bias=None):
    return _text(_TYPES[x.dtype], *weight.shape, bias is not None)


@functools.cache
def _kernel(text, differentiate):
    """The function, or its gradient by the operands `differentiate`. Sizes of weights are known to the compiler, the
    number of rows is not."""
    differentiate = None if differentiate is None else list(differentiate)
    return _linattn.compile(text, "", "<linear>", "cpu", trusted=True, differentiate=differentiate)


@functools.cache
def _text(dtype, N, K, has_bias):
    if has_bias:
        bias = f", %bias: tensor<{N}x{dtype}>"
        start = f"""linalg.generic {{indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%bias : tensor<{N}x{dtype}>) outs(%wide : tensor<?x{N}xf32>) {{
  ^bb0(%b: {dtype}, %old: f32):
    %b_wide = arith.extf %b : {dtype} to f32
    linalg.yield %b_wide : f32
  }} -> tensor<?x{N}xf32>"""
    else:
        bias, start = "", f"linalg.fill ins(%zero : f32) outs(%wide : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>"
    return f"""func.func @linear(%x: tensor<?x{K}x{dtype}>, %weight: tensor<{N}x{K}x{dtype}>{bias}) -> tensor<?x{N}x{dtype}> {{
  %first = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %M = tensor.dim %x, %first : tensor<?x{K}x{dtype}>
  %wide = tensor.empty(%M) : tensor<?x{N}xf32>
  %start = {start}
  %sums = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %weight : tensor<?x{K}x{dtype}>, tensor<{N}x{K}x{dtype}>) outs(%start : tensor<?x{N}xf32>) {{
  ^bb0(%a: {dtype}, %b: {dtype}, %sum: f32):
    %left = arith.extf %a : {dtype} to f32
    %right = arith.extf %b : {dtype} to f32
    %product = arith.mulf %left, %right : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> tensor<?x{N}xf32>
  %narrow = tensor.empty(%M) : tensor<?x{N}x{dtype}>
  %y = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%sums : tensor<?x{N}xf32>) outs(%narrow : tensor<?x{N}x{dtype}>) {{
  ^bb0(%sum: f32, %old: {dtype}):
    %rounded = arith.truncf %sum : f32 to {dtype}
    linalg.yield %rounded : {dtype}
  }} -> tensor<?x{N}x{dtype}>
  return %y : tensor<?x{N}x{dtype}>
}}"""
