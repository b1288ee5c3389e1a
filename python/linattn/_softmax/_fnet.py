"""`fnet`: tokens mixed by a Fourier transform."""

from __future__ import annotations

import functools
import sys

import numpy as np

from .. import _linattn
from .._core._arrays import dtype_name, library_of
from .._core._notes import note

__all__ = ["fnet"]

# Of x in memory, and of the transforms.
_TYPES = {"float16": ("f16", "f32"), "bfloat16": ("bf16", "f32"), "float32": ("f32", "f32"), "float64": ("f64", "f64")}


def fnet(x):
    """The real part of the Fourier transform over tokens and features::

        y[t, d] = Re Σ_{s, c} x[s, c] e^{−2πi (s t / T + c d / D)}

    See Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms", 2022. The transforms are those of
    x's library, `numpy.fft` (PocketFFT), `torch.fft` or `jax.numpy.fft`. The result is the transform of x's even
    part, and even itself: half of the features are transformed over tokens, `rfft`, and half of the tokens over
    features, `irfft`; the others follow by ``y[t, d] = y[−t, −d]``. Compiled loops make the even part and the other
    half; where gradients are recorded, or a graph is traced, the library does.

    Args:
      x: ``[..., T, D]`` of NumPy, PyTorch or JAX; float16, bfloat16, float32 or float64.

    Returns:
      An array of x's kind, shape and dtype.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    library = library_of("x", x)
    if len(x.shape) < 2 or 0 in x.shape[-2:]:
        raise ValueError(f"x: expected shape (..., T, D) with tokens and features, but got {tuple(x.shape)}")
    if "float" not in str(x.dtype):
        raise TypeError(f"x: expected a floating-point dtype, but got {x.dtype}")
    T, D = x.shape[-2:]
    types = _TYPES.get(dtype_name(x)) if _is_in_memory(x) else None
    note(
        f"passed: fnet: half of the features by {library.__name__}.fft.rfft over {T} tokens, half of the tokens by irfft over "
        f"{D}; the others by {'compiled loops' if types else library.__name__}"
    )  # fmt: skip
    if types is None:
        return _by_library(library, x)
    rows = (x.detach() if hasattr(x, "detach") else x).reshape((-1, T, D))
    fold, unfold = _kernels(*types)
    return unfold(_transform(library, fold(rows), D), rows).reshape(x.shape)


def _is_in_memory(x):
    """Whether a kernel can take x: not where PyTorch or JAX trace or differentiate."""
    if type(x) is np.ndarray:
        return True
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, torch.Tensor) or torch.compiler.is_compiling():
        return False
    from .._torch._eager import find_reason

    return find_reason((x,), {}) is None


def _transform(library, even, D):
    """y of the rows t ≤ T / 2. The inverse transform over features, in place of the forward one, takes the even part at
    (−s, c), so that these rows are there as they are."""
    return library.fft.irfft(library.fft.rfft(even, None, -2), D, -1, "forward")


def _by_library(library, x):
    """`fnet` by the functions of x's library."""
    (T, D), dtype = x.shape[-2:], x.dtype
    if "16" in str(dtype):
        x = _cast(x, library.float32)

    def mirrored(x, axis):
        return library.roll(library.flip(x, (axis,)), 1, axis)

    half = D // 2 + 1
    w = _transform(library, 0.5 * (mirrored(x, -1)[..., :half] + mirrored(x[..., :half], -2)), D)
    others = mirrored(library.flip(w[..., 1 : (T + 1) // 2, :], (-2,)), -1)
    return _cast(library.concatenate([w, others], -2), dtype)


def _cast(x, dtype):
    if x.dtype == dtype:
        return x
    return x.to(dtype) if hasattr(x, "to") and not hasattr(x, "astype") else x.astype(dtype)


@functools.cache
def _kernels(narrow, wide):
    return [_linattn.compile(text(narrow, wide), "", "<fnet>", "cpu") for text in (_fold_text, _unfold_text)]


_SIZES = """
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %B = tensor.dim %x, %zero : tensor<?x?x?x{narrow}>
  %T = tensor.dim %x, %one : tensor<?x?x?x{narrow}>
  %D = tensor.dim %x, %two : tensor<?x?x?x{narrow}>
"""


def _fold_text(narrow, wide):
    """The even part of x at (−s, c), halves of x at (s, −c) and (−s, c), of half of the features. Index 0 is its own
    mirror image."""
    wider = "" if narrow == wide else f"""
    %p = arith.extf %p_narrow : {narrow} to {wide}
    %q = arith.extf %q_narrow : {narrow} to {wide}"""
    suffix = "_narrow" if wider else ""
    return f"""func.func @fold(%x: tensor<?x?x?x{narrow}>) -> tensor<?x?x?x{wide}> {{{_SIZES.format(narrow=narrow)}
  %half = arith.constant 0.5 : {wide}
  %last = arith.divui %D, %two : index
  %columns = arith.addi %last, %one : index
  %even = tensor.generate %B, %T, %columns {{
  ^bb0(%b: index, %s: index, %c: index):
    %is_first_row = arith.cmpi eq, %s, %zero : index
    %s_up = arith.subi %T, %s : index
    %row = arith.select %is_first_row, %s, %s_up : index
    %is_first_column = arith.cmpi eq, %c, %zero : index
    %c_left = arith.subi %D, %c : index
    %column = arith.select %is_first_column, %c, %c_left : index
    %p{suffix} = tensor.extract %x[%b, %s, %column] : tensor<?x?x?x{narrow}>
    %q{suffix} = tensor.extract %x[%b, %row, %c] : tensor<?x?x?x{narrow}>{wider}
    %sum = arith.addf %p, %q : {wide}
    %mean = arith.mulf %sum, %half : {wide}
    tensor.yield %mean : {wide}
  }} : tensor<?x?x?x{wide}>
  return %even : tensor<?x?x?x{wide}>
}}"""


def _unfold_text(narrow, wide):
    """y of its upper rows w, and of the others, y[t, d] = w[T − t, −d]."""

    def yields(value):
        if narrow == wide:
            return f"linalg.yield {value} : {narrow}"
        return f"%narrow = arith.truncf {value} : {wide} to {narrow}\n    linalg.yield %narrow : {narrow}"

    tokens = f"tensor<?x?x?x{narrow}>"
    here = "affine_map<(b, s, d) -> (b, s, d)>"
    parallel = 'iterator_types = ["parallel", "parallel", "parallel"]'
    return f"""func.func @unfold(%w: tensor<?x?x?x{wide}>, %x: {tokens}) -> {tokens} {{{_SIZES.format(narrow=narrow)}
  %kept = tensor.dim %w, %one : tensor<?x?x?x{wide}>
  %others = arith.subi %T, %kept : index
  %empty = tensor.empty(%B, %T, %D) : {tokens}
  %top = tensor.extract_slice %empty[0, 0, 0] [%B, %kept, %D] [1, 1, 1] : {tokens} to {tokens}
  %same = linalg.generic {{indexing_maps = [{here}, {here}], {parallel}}} ins(%w : tensor<?x?x?x{wide}>) outs(%top : {tokens}) {{
  ^bb0(%v: {wide}, %out: {narrow}):
    {yields("%v")}
  }} -> {tokens}
  %upper = tensor.insert_slice %same into %empty[0, 0, 0] [%B, %kept, %D] [1, 1, 1] : {tokens} into {tokens}
  %bottom = tensor.extract_slice %upper[0, %kept, 0] [%B, %others, %D] [1, 1, 1] : {tokens} to {tokens}
  %mirrored = linalg.generic {{indexing_maps = [{here}], {parallel}}} outs(%bottom : {tokens}) {{
  ^bb0(%out: {narrow}):
    %b = linalg.index 0 : index
    %s = linalg.index 1 : index
    %d = linalg.index 2 : index
    %row = arith.subi %others, %s : index
    %d_left = arith.subi %D, %d : index
    %is_first = arith.cmpi eq, %d, %zero : index
    %column = arith.select %is_first, %d, %d_left : index
    %v = tensor.extract %w[%b, %row, %column] : tensor<?x?x?x{wide}>
    {yields("%v")}
  }} -> {tokens}
  %y = tensor.insert_slice %mirrored into %upper[0, %kept, 0] [%B, %others, %D] [1, 1, 1] : {tokens} into {tokens}
  return %y : {tokens}
}}"""
