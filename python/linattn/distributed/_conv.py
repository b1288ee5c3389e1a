"""The short convolution of tokens that lie on several processes.

Its state is inputs, which a process has before it computes anything: the last ones of
each slot go to the next slot at once, and no process waits for the work of another.
"""

from __future__ import annotations

import torch

from .._operators._conv import causal_conv1d
from . import _recurrence, _slots

__all__ = ["run"]


def run(parallel, x, weight, bias, activation, cu_seqlens, reverse, dilation, num_threads, target):
    """`SequenceParallel.causal_conv1d`."""
    job = _Halos(parallel, x, weight, bias, activation, cu_seqlens, bool(reverse), dilation)
    halos = _Exchanged.apply(job, x)
    parts = []
    for halo, (_, slot, piece) in zip(halos, job.pieces):
        if piece.offsets is not None:
            # The other sequences of the slot begin in it.
            begun = [halo.new_zeros(1, *halo.shape[1:])] * (len(piece.rows) - 1)
            halo = torch.cat([*begun, halo] if reverse else [halo, *begun])
        offsets = None if piece.offsets is None else torch.tensor(piece.offsets, device=x.device)
        parts.append((slot.begin, causal_conv1d(
            x[:, slot.tokens], weight, bias, activation=activation, initial_state=halo, cu_seqlens=offsets,
            reverse=reverse, dilation=dilation, num_threads=num_threads, target=target,
        )))  # fmt: skip
    parts = [y for _, y in sorted(parts, key=lambda part: part[0])]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


class _Exchanged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, job, x):
        ctx.job = job
        return tuple(job.forward(x.detach()))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *cotangents):
        return None, ctx.job.backward(cotangents)


class _Halos:
    """The inputs before each slot of this process, ``[B, C, S]``, oldest first."""

    def __init__(self, parallel, x, weight, bias, activation, cu_seqlens, reverse, dilation):
        self.channel, self.reverse = parallel.channel, reverse
        self.records = torch.is_grad_enabled() and getattr(x, "requires_grad", False)
        error, length, fields = None, 0, []
        try:
            if not isinstance(x, torch.Tensor) or not isinstance(weight, torch.Tensor):
                raise TypeError("x, weight: expected tensors of PyTorch, but got others")
            if x.dim() != 3:
                raise ValueError(f"x: expected [B, T, C], but got {x.dim()} dimensions")
            self.offsets = _recurrence.check_offsets(cu_seqlens, x.shape[0])
            self.size = (weight.shape[-1] - 1) * int(dilation)
            length = x.shape[1]
            with torch.no_grad():  # whether the operands go with one another
                causal_conv1d(
                    x[:, :1], weight, bias, activation=activation, dilation=dilation,
                    initial_state=x.new_zeros(x.shape[0], x.shape[2], self.size),
                )  # fmt: skip
            fields = [
                f"function causal_conv1d, layout {parallel.layout}, reverse {reverse}, dilation {dilation}",
                f"x [{x.shape[0]}, T, {x.shape[2]}] {x.dtype}", f"width {weight.shape[-1]}",
                f"cu_seqlens {self.offsets}", f"gradients {'recorded' if self.records else 'not recorded'}",
            ]  # fmt: skip
        except (TypeError, ValueError, RuntimeError) as problem:
            error = problem
        device = getattr(x, "device", torch.device("cpu"))
        numbers = self.channel.agree("causal_conv1d", fields, (length,), error, device)
        lengths = [entry[0] for entry in numbers]
        _recurrence.check_lengths(parallel.layout, lengths, self.offsets)
        self.shape, self.dtype, self.device = x.shape, x.dtype, device
        self.slots = _slots.slots_of(parallel.layout, lengths, reverse)
        least = min(slot.length for slot in self.slots)
        if least < self.size:
            raise ValueError(f"x: expected at least (W - 1) * dilation = {self.size} tokens in every part, but got {least}")
        pieces = _slots.cut(self.slots, self.offsets, x.shape[0], reverse)
        self.pieces = [
            (index, slot, piece)
            for index, (slot, piece) in enumerate(zip(self.slots, pieces))
            if slot.rank == self.channel.rank
        ]

    def forward(self, x):
        return self._exchange(
            lambda slot, piece: self._tail(x, slot, piece).transpose(1, 2).contiguous(),
            lambda index, piece: (index + 1, piece.leaves), lambda index, piece: (index - 1, piece.enters), "inputs",
        )  # fmt: skip

    def backward(self, cotangents):
        given = {slot: cotangent for cotangent, (_, slot, _) in zip(cotangents, self.pieces)}
        arrived = self._exchange(
            lambda slot, piece: given[slot].contiguous(), lambda index, piece: (index - 1, piece.enters),
            lambda index, piece: (index + 1, piece.leaves), "gradients of inputs",
        )  # fmt: skip
        grad = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        for part, (_, slot, piece) in zip(arrived, self.pieces):
            if piece.leaves:
                self._add_tail(grad, slot, piece, part.transpose(1, 2))
        return grad

    def _exchange(self, make, target, source, what):
        """Sends something of every slot, then receives something for every slot."""
        mine = {}
        for index, slot, piece in self.pieces:
            place, rows = target(index, piece)
            if not rows:
                continue
            rank, part = self.slots[place].rank, make(slot, piece)
            if rank == self.channel.rank:
                mine[place] = part
            else:
                self.channel.send([part], rank, what)
        results = []
        for index, _, piece in self.pieces:
            place, rows = source(index, piece)
            shape = torch.Size([self.shape[0], self.shape[2], self.size])
            if not rows:
                results.append(torch.zeros(shape, dtype=self.dtype, device=self.device))
            elif self.slots[place].rank == self.channel.rank:
                results.append(mine[index])
            else:
                rank = self.slots[place].rank
                results.append(self.channel.receive([shape], self.dtype, self.device, rank, what)[0])
        self.channel.finish()
        return results

    def _own(self, slot, piece):
        """How many of a slot's last inputs belong to the sequence that leaves it, at most S."""
        if piece.offsets is None:
            return self.size
        begin, end = piece.offsets[piece.leaves.start : piece.leaves.start + 2]
        return min(self.size, end - begin)

    def _tail(self, x, slot, piece):
        """The last inputs of a slot that go on, ``[B, S, C]``; zeros before their sequence."""
        count = self._own(slot, piece)
        tail = x.new_zeros(x.shape[0], self.size, x.shape[2])
        if self.reverse:
            own = x[:, slot.begin : slot.begin + count].flip(1)
        else:
            own = x[:, slot.tokens][:, slot.length - count :]
        tail[:, self.size - count :] = own
        return tail

    def _add_tail(self, grad, slot, piece, part):
        count = self._own(slot, piece)
        own = part[:, self.size - count :]
        if self.reverse:
            grad[:, slot.begin : slot.begin + count] += own.flip(1)
        else:
            grad[:, slot.tokens][:, slot.length - count :] += own
