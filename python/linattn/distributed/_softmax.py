"""Softmax attention of tokens that lie on several processes: a ring of keys and values.

Keys and values go from rank to rank, W − 1 times; each rank attends to what it holds at the
moment with a running maximum and sum. Backward they go around again, and their gradients
with them, which end where they began.
"""

from __future__ import annotations

import torch

from .._core._checks import check_flag, check_number
from . import _recurrence, _slots

__all__ = ["run"]

# Rows of queries that are worked on at once, which bounds the scores in memory.
_ROWS = 256


def run(parallel, q, k, v, causal, scale, cu_seqlens):
    """`SequenceParallel.softmax_attention`."""
    ring = _Ring(parallel, q, k, v, causal, scale, cu_seqlens)
    return _Recorded.apply(ring, q, k, v)


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ring, q, k, v):
        o, lse = ring.forward(q, k, v)
        ctx.ring = ring
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, cotangent):
        return None, *ctx.ring.backward(*ctx.saved_tensors, cotangent)


class _Ring:
    def __init__(self, parallel, q, k, v, causal, scale, cu_seqlens):
        self.channel = parallel.channel
        error, fields, length = None, [], 0
        try:
            self.causal, scale = check_flag("causal", causal), check_number("scale", scale)
            _check_operands(q, k, v)
            length = q.shape[1]
            self.offsets = _recurrence.check_offsets(cu_seqlens, q.shape[0])
            self.scale = q.shape[3] ** -0.5 if scale is None else float(scale)
            records = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
            fields = [
                f"function softmax_attention, layout {parallel.layout}, causal {self.causal}, scale {self.scale}",
                *(f"{name} [{x.shape[0]}, T, {list(x.shape[2:])}] {x.dtype}" for name, x in zip("qkv", (q, k, v))),
                f"cu_seqlens {self.offsets}", f"gradients {'recorded' if records else 'not recorded'}",
            ]  # fmt: skip
        except (TypeError, ValueError) as problem:
            error = problem
        device = getattr(q, "device", torch.device("cpu"))
        numbers = self.channel.agree("softmax_attention", fields, (length,), error, device)
        self.lengths = [entry[0] for entry in numbers]
        _recurrence.check_lengths(parallel.layout, self.lengths, self.offsets)
        self.device, self.dtype = device, q.dtype
        self.wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        slots = _slots.slots_of(parallel.layout, self.lengths)
        self.slots = [[slot for slot in slots if slot.rank == rank] for rank in range(self.channel.ranks)]

    # ------------------------------------------------------------------------

    def forward(self, q, k, v):
        groups = k.shape[2]
        rows = _heads(q, groups).to(self.wide)
        most = rows.new_full(rows.shape[:-1], float("-inf"))
        total, o = torch.zeros_like(most), rows.new_zeros(*rows.shape[:-1], v.shape[3])
        for source, (keys, values) in self._around([k, v], self.channel.ranks - 1):
            for tile, part, mask in self._tiles(source):
                scores = self._scores(rows, keys, tile, part, mask)
                above = torch.maximum(most[..., tile], scores.amax(-1))
                base = torch.where(above.isfinite(), above, torch.zeros_like(above))  # nothing seen yet
                weights = torch.exp(scores - base[..., None])
                kept = torch.exp(most[..., tile] - base)
                most[..., tile] = above
                total[..., tile] = total[..., tile] * kept + weights.sum(-1)
                held = _heads(values[:, part], groups).to(self.wide)
                o[..., tile, :] = o[..., tile, :] * kept[..., None] + weights @ held
        self.channel.finish()
        o /= total[..., None]
        return _tokens(o).to(self.dtype), most + total.log()

    def backward(self, q, k, v, o, lse, cotangent):
        groups = k.shape[2]
        rows, do = _heads(q, groups).to(self.wide), _heads(cotangent, groups).to(self.wide)
        delta = (do * _heads(o, groups).to(self.wide)).sum(-1)
        dq = torch.zeros_like(rows)
        dk, dv = (torch.zeros(x.shape, dtype=self.wide, device=self.device) for x in (k, v))
        ranks = self.channel.ranks
        for source, (keys, values) in self._around([k, v], ranks - 1):
            if source != self.channel.rank:
                dk, dv = self._follow([dk, dv], source)
            for tile, part, mask in self._tiles(source):
                weights = torch.exp(self._scores(rows, keys, tile, part, mask) - lse[..., tile, None])
                held = _heads(values[:, part], groups).to(self.wide)
                scores = weights * (do[..., tile, :] @ held.mT - delta[..., tile, None]) * self.scale
                dq[..., tile, :] += scores @ _heads(keys[:, part], groups).to(self.wide)
                dk[:, part] += (scores.mT @ rows[..., tile, :]).sum(2).transpose(1, 2)
                dv[:, part] += (weights.mT @ do[..., tile, :]).sum(2).transpose(1, 2)
            if ranks > 1:
                self.channel.send([dk, dv], (self.channel.rank + 1) % ranks, "gradients of keys and values")
        if ranks > 1:
            dk, dv = self._follow([dk, dv], self.channel.rank)  # home
        self.channel.finish()
        return _tokens(dq).to(self.dtype), dk.to(self.dtype), dv.to(self.dtype)

    # ------------------------------------------------------------------------

    def _around(self, arrays, passes):
        """The keys and values of every rank, this one's first, then from the rank before."""
        ranks, rank = self.channel.ranks, self.channel.rank
        arrays = [array.detach().contiguous() for array in arrays]
        for step in range(passes + 1):
            if step < passes:
                self.channel.send(arrays, (rank + 1) % ranks, "keys and values")
            source = (rank - step) % ranks
            yield source, arrays
            if step < passes:
                shapes = self._shapes(arrays, (source - 1) % ranks)
                arrays = self.channel.receive(shapes, self.dtype, self.device, (rank - 1) % ranks, "keys and values")

    def _follow(self, like, source):
        """The gradients of the keys and values of `source`, which come after these."""
        before = (self.channel.rank - 1) % self.channel.ranks
        shapes = self._shapes(like, source)
        return self.channel.receive(shapes, self.wide, self.device, before, "gradients of keys and values")

    def _shapes(self, arrays, source):
        return [torch.Size([array.shape[0], self.lengths[source], *array.shape[2:]]) for array in arrays]

    def _tiles(self, source):
        """Rows of queries, a part of the keys of `source`, and which of these each row sees;
        None for all."""
        for mine in self.slots[self.channel.rank]:
            for other in self.slots[source]:
                for first in range(0, mine.length, _ROWS):
                    count = min(_ROWS, mine.length - first)
                    sees = self._mask(mine.start + first, count, other.start, other.length)
                    if sees is not False:
                        yield slice(mine.begin + first, mine.begin + first + count), other.tokens, sees

    def _mask(self, row, rows, column, columns):
        """The others that `rows` tokens from `row` on see: False for nothing, None for all."""
        if self.causal and column > row + rows - 1:
            return False
        mask = None
        i = torch.arange(row, row + rows, device=self.device)
        j = torch.arange(column, column + columns, device=self.device)
        if self.causal and column + columns - 1 > row:
            mask = i[:, None] >= j
        if self.offsets is not None:
            ends = torch.tensor(self.offsets[1:], device=self.device)
            same = torch.searchsorted(ends, i, right=True)[:, None] == torch.searchsorted(ends, j, right=True)
            mask = same if mask is None else mask & same
            if not bool(mask.any()):
                return False
        return mask

    def _scores(self, rows, keys, tile, part, mask):
        scores = rows[..., tile, :] @ _heads(keys[:, part], keys.shape[2]).to(self.wide).mT * self.scale
        return scores if mask is None else scores.masked_fill(~mask, float("-inf"))


def _heads(array, groups):
    """[B, T, H, D] -> [B, groups, H / groups, T, D], a view."""
    B, T, H, D = array.shape
    return array.reshape(B, T, groups, H // groups, D).permute(0, 2, 3, 1, 4)


def _tokens(array):
    B, groups, each, T, D = array.shape
    return array.permute(0, 3, 1, 2, 4).reshape(B, T, groups * each, D)


def _check_operands(q, k, v):
    for name, x in zip("qkv", (q, k, v)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor of PyTorch, but got {type(x).__name__}")
        if x.dim() != 4:
            raise ValueError(f"{name}: expected [B, T, H, D], but got {x.dim()} dimensions")
        if x.dtype != q.dtype or not x.is_floating_point():
            raise ValueError(f"{name}: expected floating-point numbers of q's dtype, but got {str(x.dtype)[6:]}")
        if x.shape[:2] != q.shape[:2]:
            raise ValueError(f"{name}: expected batch and length of q, {tuple(q.shape[:2])}, but got {tuple(x.shape[:2])}")
    if k.shape[3] != q.shape[3]:
        raise ValueError(f"k: expected the head size of q, {q.shape[3]}, but got {k.shape[3]}")
    if v.shape[2] != k.shape[2] or q.shape[2] % k.shape[2]:
        raise ValueError(
            f"k, v: expected one number of heads, which divides {q.shape[2]}, but got {k.shape[2]} and {v.shape[2]}"
        )
