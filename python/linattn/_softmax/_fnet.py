"""`fnet`: tokens mixed by a Fourier transform."""

from __future__ import annotations

from .._core._arrays import library_of

__all__ = ["fnet"]


def fnet(x):
    """The real part of the Fourier transform over tokens and features::

        y[t, d] = Re Σ_{s, c} x[s, c] e^{−2πi (s t / T + c d / D)}

    See Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms", 2022. The transform is that of
    x's library, `numpy.fft.rfft2` (PocketFFT), `torch.fft.rfft2` or `jax.numpy.fft.rfft2`, of half of the
    features; the others follow by ``y[t, d] = y[−t, −d]``.

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
    D, dtype = x.shape[-1], x.dtype
    y = library.fft.rfft2(_cast(x, library.float32) if "16" in str(dtype) else x).real
    rows = y[..., 1 : (D + 1) // 2]
    # Row 0 is its own mirror image, row t that of row T − t.
    first, others = library.flip(rows[..., :1, :], (-1,)), library.flip(rows[..., 1:, :], (-2, -1))
    mirrored = library.concatenate([first, others], -2)
    return _cast(library.concatenate([y, mirrored], -1), dtype)


def _cast(x, dtype):
    if x.dtype == dtype:
        return x
    return x.to(dtype) if hasattr(x, "to") and not hasattr(x, "astype") else x.astype(dtype)
