"""The recurrences whose bundles are in this package."""

import functools
import math
import pathlib
import sys

from . import _arrays
from ._kernel import load

_FOLDER = pathlib.Path(__file__).parent / "kernels"
# By the type of the tokens: that of the names of kernels, decay and beta in f32.
_TYPES = {"f32": "f32", "bf16": "bf16xf32"}


def kernels():
    """The names of the bundles that are in this package, for `kernel`."""
    return sorted(path.stem for path in _FOLDER.glob("*.lab"))


@functools.lru_cache(maxsize=None)
def kernel(name):
    """A bundle of this package, loaded: the code for the best of x86-64-v3 and x86-64-v4 that this CPU has.

    Operands are ``[B, T, H, D]`` of any extents, the state ``[B, H, K, V]`` in float32; `scan` calls them.

    Raises:
      Error: this CPU has neither, it says which it has.
      ValueError: for an unknown name.
    """
    path = _FOLDER / f"{name}.lab"
    if not path.exists():
        raise ValueError(f"name: expected one of {', '.join(kernels()) or 'none, since this build has no bundles'}, but got {name!r}")
    return load(path)


def _describe(array, name, ranks):
    """(shape, dtype) of an array that has one of the ranks."""
    try:
        _, layout, _, _ = _arrays.describe(array, 0)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    shape, _, dtype = layout[0](*layout[1:])
    if len(shape) not in ranks:
        expected = " or ".join(map(str, ranks))
        raise ValueError(f"{name}: expected {expected} dimensions, but got {len(shape)}")
    if getattr(array, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise ValueError(f"{name}: expected a tensor without gradients, which bundles do not compute, but got one that requires them")
    return tuple(shape), dtype


def _check(shape, name, expected):
    if shape != expected:
        words = ", ".join(map(str, expected)), ", ".join(map(str, shape))
        raise ValueError(f"{name}: expected [{words[0]}], but got [{words[1]}]")


def scan(q, k, v, *, decay=None, beta=None, update="add", scale=None, initial_state=None, return_state=False, inplace=False):
    """The recurrence of `linattn.scan`, by the bundles of this package, without a compiler::

        S_t = Diag(e^decay_t) S_{t-1} + k_t v_tᵀ                            update="add"
        S_t = (1 - beta_t k_t k_tᵀ) Diag(e^decay_t) S_{t-1} + beta_t k_t v_tᵀ      update="delta"
        o_t = scale · S_tᵀ q_t

    Args:
      q, k, v: ``[B, T, H, D]`` of NumPy or PyTorch in host memory, float32 or bfloat16. Heads of q may be a multiple of
        those of k and v.
      decay: float32, natural logarithms, ≤ 0: ``[B, T, H]`` or ``[B, T, H, K]``, H that of k and v.
      beta: float32, ``[B, T, H]``, for ``update="delta"``.
      scale: K**-0.5 unless given.
      initial_state: float32 ``[B, H, K, V]``, zeros unless given.
      inplace: the final state overwrites the initial one.

    Returns:
      ``o``, or ``(o, state)`` with `return_state`.

    Raises:
      ValueError, TypeError, Error: naming the operand, what was expected and what came; the CPU, where it has no AVX2.
    """
    (B, T, H, K), dtype = _describe(q, "q", (4,))
    if dtype not in _TYPES:
        raise TypeError(f"q: expected float32 or bfloat16, but got {dtype}")
    key_shape, _ = _describe(k, "k", (4,))
    value_shape, _ = _describe(v, "v", (4,))
    heads, V = value_shape[2:]
    _check(key_shape, "k", (B, T, heads, K))
    _check(value_shape, "v", (B, T, heads, V))
    if heads == 0 or H % heads:
        raise ValueError(f"q: expected a multiple of the {heads} heads of k and v, but got {H}")
    if update not in ("add", "delta"):
        raise ValueError(f"update: expected 'add' or 'delta', but got {update!r}")
    if (beta is not None) != (update == "delta"):
        raise ValueError(f"beta: expected {'it' if beta is None else 'none'} with update={update!r}")

    rule, gates = ("" if decay is None else "gated"), []
    if decay is not None:
        shape, _ = _describe(decay, "decay", (3, 4))
        _check(shape, "decay", (B, T, heads, K)[: len(shape)])
        gates.append(decay)
    if update == "delta":
        shape, _ = _describe(beta, "beta", (3,))
        _check(shape, "beta", (B, T, heads))
        gates.append(beta[..., None])
        rule += "_delta" if rule else "delta"
    if decay is not None and len(decay.shape) == 4:
        rule += "_channel"
    types = _TYPES[dtype] if gates else dtype
    run = kernel(f"{rule or 'linear'}_{types}")

    if initial_state is None:
        if inplace:
            raise ValueError("inplace: expected an initial state, but got none")
        initial_state = state = _arrays.zeros(q, (B, heads, K, V), "f32")
    else:
        shape, state_dtype = _describe(initial_state, "initial_state", (4,))
        _check(shape, "initial_state", (B, heads, K, V))
        if state_dtype != "f32":
            raise TypeError(f"initial_state: expected float32, but got {state_dtype}")
        state = initial_state if inplace else _arrays.allocate(q, shape, "f32")
    scale = K**-0.5 if scale is None else scale
    if not math.isfinite(scale):
        raise ValueError(f"scale: expected a finite number, but got {scale}")
    o = _arrays.allocate(q, (B, T, H, V), dtype)
    run.launch(q, k, v, initial_state, *gates, scale, o, state)
    return (o, state) if return_state else o
