"""`fnet`: tokens mixed by a Fourier transform."""

from __future__ import annotations

from .._core._arrays import library_of
from .._core._notes import note

__all__ = ["fnet"]


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

    def reverse(x, axis):
        """x at −i for every index i; 0 is its own mirror image."""
        first, others = (x[..., :1], x[..., 1:]) if axis == -1 else (x[..., :1, :], x[..., 1:, :])
        return library.concatenate([first, library.flip(others, (axis,))], axis)

    # The even part at (s, −c): the inverse transform over c equals the forward transform of the
    # part.
    features = library.concatenate([x[..., :1], library.flip(x[..., D - D // 2 :], (-1,))], -1)
    even = 0.5 * (reverse(x[..., : D // 2 + 1], -2) + features)
    y = library.fft.irfft(library.fft.rfft(even, None, -2), D, -1, "forward")
    mirrored = reverse(library.flip(y[..., 1 : (T + 1) // 2, :], (-2,)), -1)
    return _cast(library.concatenate([y, mirrored], -2), dtype)


def _cast(x, dtype):
    if x.dtype == dtype:
        return x
    return x.to(dtype) if hasattr(x, "to") and not hasattr(x, "astype") else x.astype(dtype)
