"""`SequenceParallel`: a group of processes that hold parts of the same sequences."""

from __future__ import annotations

import datetime
import numbers

import torch

from .. import _linattn
from .._core._checks import check_choice
from . import _conv, _messages, _recurrence, _slots, _softmax

__all__ = ["SequenceParallel"]


class SequenceParallel:
    """Recurrences over tokens that lie on several processes.

    Args:
      group: a process group of torch.distributed, of any backend; the default one if None.
      layout: which tokens a rank holds. "contiguous": rank r the r-th of as many parts, of
        any lengths. "zigzag": of 2·W parts of the same length, parts r and 2·W − 1 − r, one
        after the other, so that causal softmax attention is the same work on every rank.
      panels: into how many parts the state of a call goes from rank to rank: a number that
        divides the heads. Chosen by the sizes unless given.
      timeout: seconds that this process waits for another one; the group's unless given.

    Attributes:
      sent, messages: how many numbers of states, and of their gradients, this process has
        sent, and in how many messages.
    """

    def __init__(self, group=None, *, layout="contiguous", panels=None, timeout=None):
        self.layout = check_choice("layout", layout, _slots.LAYOUTS)
        if panels is not None and (isinstance(panels, bool) or not isinstance(panels, numbers.Integral)):
            raise TypeError(f"panels: expected an integer, but got {type(panels).__name__}")
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, numbers.Real)):
            raise TypeError(f"timeout: expected a number of seconds, but got {type(timeout).__name__}")
        self.panels = panels
        timeout = None if timeout is None else datetime.timedelta(seconds=float(timeout))
        self.channel = _messages.Channel(group, timeout)

    @property
    def sent(self):
        return self.channel.sent

    @property
    def messages(self):
        return self.channel.messages

    def __call__(self, function, *args, **kwargs):
        """Calls a recurrence with this rank's tokens.

        Every rank of the group calls the same function with operands of the same shapes but
        for the number of tokens. A call that records gradients must be followed by a backward
        pass through the results on every rank, in the same order.

        Args:
          function: `linattn.scan`, or a named family, `linattn.gla` for instance.
          args, kwargs: those of the function, tensors of PyTorch. Operands with tokens are
            this rank's, ``[B, T of this rank, H, D]``; `cu_seqlens` holds the offsets of the
            whole, and the initial state one row for each sequence of the whole, the same on
            every rank. `out`, without gradients, is where this rank's outputs go.

        Returns:
          The results of the function: the outputs of this rank's tokens, and on request the
          final state, ``[N, H, K, V]`` for all sequences, with the states of those that end
          on this rank and zeros for the others.

        Raises:
          ValueError, TypeError: naming the operand, what was expected and what came. Where
            ranks differ, the same error on all of them.
          UnsupportedError: `inplace` and others that have no meaning for a part; `out` where
            gradients are recorded.
          PeerError: another rank is lost, does not answer in time, or has failed.
        """
        return _recurrence.run(self, function, args, kwargs)

    def causal_conv1d(
        self, x, weight, bias=None, *, activation=None, cu_seqlens=None, reverse=False, dilation=1,
        num_threads=None, target=None,
    ):  # fmt: skip
        """`linattn.causal_conv1d` of this rank's tokens, ``[B, T of this rank, C]``.

        The last (W − 1)·dilation inputs of every part go to the next one, and their gradients
        come back. The gradients of the weights are those of this rank's tokens.

        Args:
          weight, bias, activation, reverse, dilation, num_threads, target: as there; the
            weights are the same on every rank.
          cu_seqlens: the offsets of the whole.

        Raises:
          ValueError, TypeError, PeerError: as those of a recurrence; also where a part has
            fewer than (W − 1)·dilation tokens.
        """
        return _conv.run(self, x, weight, bias, activation, cu_seqlens, reverse, dilation, num_threads, target)

    def softmax_attention(self, q, k, v, *, causal=True, scale=None, cu_seqlens=None):
        """Softmax attention of this rank's queries to the keys of all ranks, for the layers
        between the recurrences.

        Keys and values go from rank to rank, and each rank holds those of one other at a time.
        The blocks are computed by PyTorch's products of matrices, in float32 or better.

        Args:
          q: ``[B, T of this rank, Hq, K]``; k, v: ``[B, T of this rank, Hk, K]`` and
            ``[B, T of this rank, Hk, V]``, of q's dtype. Hk divides Hq.
          causal: a token attends to tokens up to itself only.
          scale: multiplies the scores; K**-0.5 unless given.
          cu_seqlens: the offsets of the whole; tokens attend inside of their sequence.

        Returns:
          ``[B, T of this rank, Hq, V]``.

        Raises:
          ValueError, TypeError, PeerError: as those of a recurrence.
        """
        return _softmax.run(self, q, k, v, causal, scale, cu_seqlens)

    def split(self, array, axis=1):
        """This rank's tokens of an array that holds all of them, a copy."""
        ranks = self.channel.ranks
        tokens = array.shape[axis]
        parts = ranks if self.layout == "contiguous" else 2 * ranks
        if self.layout == "zigzag" and tokens % parts:
            raise ValueError(f"expected a number of tokens that {parts} divides, but got {tokens}")
        lengths = [tokens // ranks + (rank < tokens % ranks) for rank in range(ranks)]
        mine = [slot for slot in _slots.slots_of(self.layout, lengths) if slot.rank == self.channel.rank]
        return torch.cat([array.narrow(axis, slot.start, slot.length) for slot in mine], axis)

    def threads(self, given):
        """How many threads a call uses on this process."""
        return int(given) if given else _linattn.get_num_threads()
