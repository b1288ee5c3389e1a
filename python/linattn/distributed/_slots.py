"""Which process holds which tokens, and where states cross from one to the next."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LAYOUTS", "Piece", "Slot", "cut", "slots_of"]

LAYOUTS = ("contiguous", "zigzag")


@dataclass(frozen=True)
class Slot:
    """Consecutive tokens on one process: of the whole from `start`, there from `begin`."""

    rank: int
    begin: int
    start: int
    length: int

    @property
    def tokens(self):
        return slice(self.begin, self.begin + self.length)


@dataclass(frozen=True)
class Piece:
    """The part of the sequences that lies in a slot.

    Attributes:
      rows: which sequences they are.
      offsets: their borders inside of the slot, or None where every sequence of the
        batch goes through.
      enters, leaves: the rows, counted in this piece, whose state comes from the slot
        before and goes to the one after; empty where none does.
    """

    rows: range
    offsets: tuple | None
    enters: range
    leaves: range


def slots_of(layout, lengths, reverse=False):
    """All slots, in the order in which tokens are read.

    Args:
      lengths: the number of tokens of every process.
    """
    slots, start = [], 0
    if layout == "contiguous":
        for rank, length in enumerate(lengths):
            slots.append(Slot(rank, 0, start, length))
            start += length
    else:
        half, last = lengths[0] // 2, 2 * len(lengths) - 1
        for index in range(last + 1):
            rank = min(index, last - index)
            slots.append(Slot(rank, 0 if index == rank else half, index * half, half))
    return slots[::-1] if reverse else slots


def cut(slots, offsets, batch, reverse=False):
    """The piece of every slot, in the same order.

    Args:
      offsets: the borders of packed sequences in the whole, or None.
    """
    if offsets is None:
        rows = range(batch)
        none = range(0)
        last = len(slots) - 1
        return [
            Piece(rows, None, rows if index else none, rows if index < last else none)
            for index in range(len(slots))
        ]
    total = offsets[-1]
    return [_cut_packed(slot.start, slot.start + slot.length, offsets, total, reverse) for slot in slots]


def _cut_packed(begin, end, offsets, total, reverse):
    rows = [
        row
        for row, (first, last) in enumerate(zip(offsets, offsets[1:]))
        if (first < end and last > begin)
        or (first == last and (begin <= first < end or first == end == total))
    ]  # fmt: skip
    # Borders do not decrease, so the rows are consecutive.
    rows = range(rows[0], rows[-1] + 1)
    borders = tuple(min(max(offset, begin), end) - begin for offset in offsets[rows.start : rows.stop + 1])
    before = range(1) if offsets[rows.start] < begin else range(0)
    after = range(len(rows) - 1, len(rows)) if offsets[rows.stop] > end else range(0)
    return Piece(rows, borders, *((after, before) if reverse else (before, after)))
