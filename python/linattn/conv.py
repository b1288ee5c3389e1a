"""The short causal convolution under the names and signatures that models call.

    import linattn.conv
    y = linattn.conv.causal_conv1d_fn(x, weight, bias, activation="silu")        # x [B, C, T]
    y = linattn.conv.causal_conv1d_update(x_t, conv_state, weight, bias, "silu")  # in place

`linattn.causal_conv1d` is the same for ``[B, T, C]``, with more options.
"""

from __future__ import annotations

import sys

import numpy as np

from ._core import _arrays
from ._core._checks import check_flag
from ._operators import _conv

__all__ = ["causal_conv1d_fn", "causal_conv1d_update"]

_CHANNELS_FIRST = "B C T -> B T C"


def causal_conv1d_fn(
    x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False,
    final_states_out=None, activation=None,
):  # fmt: skip
    """The causal convolution of every channel of ``[B, C, T]``.

    Args:
      x: ``[B, C, T]`` in any memory layout; y has the same one.
      weight: ``[C, W]``.
      bias: ``[C]``.
      seq_idx: int ``[B, T]``, which sequence a token belongs to: a token sees those
        tokens before it that have its number without another in between. Tokens of
        negative numbers are padding, whose outputs are 0. Not beside states.
      initial_states: ``[B, C, W − 1]``, the inputs before the first token.
      return_final_states: return ``(y, final_states [B, C, W − 1])``.
      final_states_out: where the final states are written.
      activation: None, "silu" or "swish".

    Returns:
      ``y`` of x's shape, or ``(y, final_states)``.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    _check_rank("x", x, (3,), "(B, C, T)")
    return_final_states = check_flag("return_final_states", return_final_states)
    if final_states_out is not None and not return_final_states:
        raise ValueError(
            "final_states_out: expected it only with return_final_states, but got it without"
        )
    if seq_idx is not None:
        for name, state in (("initial_states", initial_states), ("return_final_states", return_final_states or None)):
            if state is not None:
                raise ValueError(f"{name}: expected no seq_idx beside it, but got both")
        return _run_segments(x, weight, bias, seq_idx, activation)
    state = initial_states
    if final_states_out is not None:
        _fill(final_states_out, initial_states)
        state = final_states_out
    result = _run(
        x, weight, bias, activation, state, return_final_states, None, None, final_states_out is not None
    )
    return result


def causal_conv1d_update(
    x, conv_state, weight, bias=None, activation=None, cache_seqlens=None, conv_state_indices=None,
):  # fmt: skip
    """One or several tokens more, the state updated in place.

    Args:
      x: ``[B, C]`` or ``[B, C, T]``.
      conv_state: ``[B, C, S]`` with S ≥ W − 1, of x's dtype: the last S inputs, oldest
        first. It is overwritten.
      weight: ``[C, W]``.
      bias: ``[C]``.
      activation: None, "silu" or "swish".
      cache_seqlens: int ``[B]``: the state is a ring instead, in which the next input of
        sequence b has the place cache_seqlens[b] % S.
      conv_state_indices: int ``[B]``, the rows of conv_state, each at most once.

    Returns:
      y of x's shape.

    Raises:
      ValueError, TypeError: naming the operand, what was expected and what came.
    """
    rank = len(getattr(x, "shape", ()))
    if rank == 2:
        y = causal_conv1d_update(
            x[:, :, None], conv_state, weight, bias, activation, cache_seqlens, conv_state_indices
        )
        return y[:, :, 0]
    if cache_seqlens is None and conv_state_indices is None:
        return _update(x, conv_state, weight, bias, activation)
    _check_rank("x", x, (3,), "(B, C) or (B, C, T)")
    _check_rank("conv_state", conv_state, (3,), "(B, C, S)")
    _conv.check_writable(conv_state)
    rows = np.arange(x.shape[0])
    if conv_state_indices is not None:
        rows = _integers("conv_state_indices", conv_state_indices, x.shape[0])
        if len(rows) and not 0 <= rows.min() <= rows.max() < conv_state.shape[0]:
            raise ValueError(
                f"conv_state_indices: expected rows from 0 to {conv_state.shape[0] - 1}, but got "
                f"{rows.min()} to {rows.max()}"
            )
        if len(set(rows.tolist())) != len(rows):
            raise ValueError("conv_state_indices: expected every row once, but got one of them twice")
    if cache_seqlens is not None:
        return _update_ring(x, conv_state, rows, weight, bias, activation, cache_seqlens)
    if len(rows) == 1:
        row = int(rows[0])
        return _update(x, conv_state[row : row + 1], weight, bias, activation)
    index = _arrays.convert_like(rows, x)
    states = conv_state[index]
    y = _update(x, states, weight, bias, activation)
    conv_state[index] = states
    return y


def _update(x, conv_state, weight, bias, activation):
    return _conv.run(
        x, weight, bias, activation, conv_state, False, None, False, 1, None, True, None, None,
        _CHANNELS_FIRST,
    )  # fmt: skip


def _update_ring(x, conv_state, rows, weight, bias, activation, cache_seqlens):
    """A state whose oldest input is not the first."""
    lengths = _integers("cache_seqlens", cache_seqlens, x.shape[0])[:, None]
    size, tokens, taps = conv_state.shape[2], x.shape[2], weight.shape[-1]
    if size < max(taps - 1, 1):
        raise ValueError(f"conv_state: expected at least {max(taps - 1, 1)} inputs of each channel, but got {size}")

    def at(first, count):
        places = (lengths + np.arange(first, first + count)) % size
        return _arrays.convert_like(rows[:, None], x), _arrays.convert_like(places, x)

    former = None
    if taps > 1:
        row, place = at(1 - taps, taps - 1)
        former = conv_state[row, :, place].swapaxes(1, 2)
    y = _run(x, weight, bias, activation, former, False, None, None, False)
    kept = min(tokens, size)
    row, place = at(tokens - kept, kept)
    conv_state[row, :, place] = x[:, :, tokens - kept :].swapaxes(1, 2)
    return y


def _run(x, weight, bias, activation, state, return_state, cu_seqlens, out, inplace):
    """With the result in the memory layout of x."""
    options = (activation, state, return_state, cu_seqlens, False, 1)
    if not _has_channels_last(x):
        return _conv.run(x, weight, bias, *options, out, inplace, None, None, _CHANNELS_FIRST)
    out = None if out is None else out.swapaxes(1, 2)
    result = _conv.run(x.swapaxes(1, 2), weight, bias, *options, out, inplace, None, None, "B T C")
    if return_state:
        return result[0].swapaxes(1, 2), result[1]
    return result.swapaxes(1, 2)


def _has_channels_last(x):
    """Whether the channels of [B, C, T] are neighbours in memory, and tokens are not."""
    if isinstance(x, np.ndarray):
        return x.strides[1] == x.itemsize and x.strides[2] != x.itemsize
    stride = getattr(x, "stride", None)
    return callable(stride) and stride(1) == 1 and stride(2) != 1


def _run_segments(x, weight, bias, seq_idx, activation):
    """Packed sequences, row by row of the batch."""
    numbers = _arrays.to_host(seq_idx) if not isinstance(seq_idx, (list, tuple)) else np.asarray(seq_idx)
    if numbers.dtype.kind not in "iu" or numbers.shape != (x.shape[0], x.shape[2]):
        raise ValueError(
            f"seq_idx: expected integers of shape {(x.shape[0], x.shape[2])}, but got "
            f"{numbers.dtype} {numbers.shape}"
        )
    library = sys.modules[type(x).__module__.partition(".")[0]]
    y = library.empty_like(x)
    for row, tokens in enumerate(numbers):
        changes = np.flatnonzero(tokens[1:] != tokens[:-1]) + 1
        ends = np.concatenate([[0], changes, [len(tokens)]]).astype(np.int64)
        part = slice(row, row + 1)
        _run(x[part], weight, bias, activation, None, False, ends, y[part], False)
    if (numbers < 0).any():
        y.swapaxes(1, 2)[_arrays.convert_like(numbers < 0, x)] = 0
    return y


def _fill(target, source):
    if source is None:
        target[...] = 0
    elif target is not source:
        target[...] = source


def _integers(name, values, count):
    values = np.asarray(values) if isinstance(values, (list, tuple)) else _arrays.to_host(values)
    if values.dtype.kind not in "iu" or values.shape != (count,):
        raise ValueError(f"{name}: expected integers of shape {(count,)}, but got {values.dtype} {values.shape}")
    return values.astype(np.int64)


def _check_rank(name, array, ranks, shape):
    if len(getattr(array, "shape", ())) not in ranks:
        raise ValueError(f"{name}: expected shape {shape}, but got {tuple(getattr(array, 'shape', ()))}")
