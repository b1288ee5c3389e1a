"""`fnet`: tokens mixed by a Fourier transform."""

from __future__ import annotations

from .._core._arrays import library_of
from .._core._notes import note

__all__ = ["fnet"]

_FIRST, _OTHERS = slice(1), slice(1, None)


def fnet(x):
    """The real part of the Fourier transform over tokens and features::

        y[t, d] = Re Σ_{s, c} x[s, c] e^{−2πi (s t / T + c d / D)}

    See Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms", 2022. The transforms are those of
    x's library, `numpy.fft` (PocketFFT), `torch.fft` or `jax.numpy.fft`. The result is the transform of x's even
    part, and even itself: half of the features are transformed over tokens, `rfft`, and half of the tokens over
    features, `irfft`; the others follow by ``y[t, d] = y[−t, −d]``.

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
    (T, D), dtype = x.shape[-2:], x.dtype
    note(f"passed: fnet: half of the features by {library.__name__}.fft.rfft over {T} tokens, half of the tokens by irfft over {D}")
    if "16" in str(dtype):
        x = _cast(x, library.float32)

    # The even part at (−s, c), halves of x at (s, −c) and (−s, c), of half of the features. Index 0 is its own mirror
    # image. The inverse transform over features, in place of the forward one, then gives y at (t, d): half of the rows
    # are there as they are, and the flips are few.
    half = D // 2
    even = library.empty_like(x[..., : half + 1])
    for columns, mirrored in ((_FIRST, _FIRST), (_OTHERS, slice(D - half, None))):
        even = _put(even, (..., columns), library.flip(x[..., mirrored], (-1,)))
    for rows in (_FIRST, _OTHERS):
        even = _average(even, (..., rows, slice(None)), library.flip(x[..., rows, : half + 1], (-2,)))
    w = library.fft.irfft(library.fft.rfft(even, None, -2), D, -1, "forward")
    y, kept = library.empty_like(x), T // 2 + 1
    y = _put(y, (..., slice(kept), slice(None)), w)
    for columns in (_FIRST, _OTHERS):
        y = _put(y, (..., slice(kept, None), columns), library.flip(w[..., 1 : (T + 1) // 2, columns], (-2, -1)))
    return _cast(y, dtype)


def _average(array, index, value):
    """The mean of what is there and the value. Arrays of JAX do not change."""
    if hasattr(array, "at"):
        return array.at[index].set(0.5 * (array[index] + value))
    part = array[index]
    if hasattr(part, "lerp_"):
        part.lerp_(value, 0.5)
    else:
        part += value
        part *= 0.5
    return array


def _put(array, index, value):
    if hasattr(array, "at"):
        return array.at[index].set(value)
    array[index] = value
    return array


def _cast(x, dtype):
    if x.dtype == dtype:
        return x
    return x.to(dtype) if hasattr(x, "to") and not hasattr(x, "astype") else x.astype(dtype)
