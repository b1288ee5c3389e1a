"""A recurrence whose tokens lie on several processes.

Every process runs its tokens from the state that the process before it has ended with, so
that each token is worked on once and by the sums of a single process. The state goes on
in panels of heads: while one process works on a panel, the next one works on the panel
before it. Cotangents of the states go the other way.
"""

from __future__ import annotations

import torch

from .._core._checks import UnsupportedError
from .._torch import _places
from . import _calls, _slots

__all__ = ["run"]


def run(parallel, function, args, kwargs):
    """The call on all processes; see `SequenceParallel.__call__`."""
    job = _Job(parallel, function, args, kwargs)
    call = job.call
    results = _Recorded.apply(job, *call.operands.values(), *(call.initial or ())) if job.records else job.forward()
    if not call.returns:
        return results[0]
    return results[0], call.wrap(results[1:])


def _is_in(array, place):
    return array.data_ptr() == place.data_ptr() and array.stride() == place.stride()


def check_offsets(offsets, batch):
    """The offsets of packed sequences as integers, or None."""
    if offsets is None:
        return None
    offsets = tuple(int(offset) for offset in (offsets.tolist() if hasattr(offsets, "tolist") else offsets))
    if len(offsets) < 2 or offsets[0] or any(a > b for a, b in zip(offsets, offsets[1:])):
        raise ValueError("cu_seqlens: expected offsets of the whole from 0 on that do not decrease, but got others")
    if batch != 1:
        raise ValueError(f"cu_seqlens: expected a batch of 1, but got {batch}")
    return offsets


def check_lengths(layout, lengths, offsets):
    """Checks the tokens of all ranks against the layout and the offsets."""
    if min(lengths) < 1:
        raise ValueError(f"expected at least one token on every rank, but got {lengths}")
    if layout == "zigzag" and (len(set(lengths)) > 1 or lengths[0] % 2):
        raise ValueError(
            f"expected an even number of tokens, the same on every rank, for the zigzag layout, but got {lengths}"
        )
    if offsets is not None and offsets[-1] != sum(lengths):
        raise ValueError(f"cu_seqlens: expected to end at {sum(lengths)}, the tokens of all ranks, but got {offsets[-1]}")


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, job, *arrays):
        ctx.job = job
        return tuple(job.forward())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *cotangents):
        return None, *ctx.job.backward(cotangents, ctx.needs_input_grad[1:])


class _Job:
    """One call on this process: its pieces, their results, and their messages."""

    def __init__(self, parallel, function, args, kwargs):
        self.channel, self.layout = parallel.channel, parallel.layout
        error, fields, length, threads = None, [], 0, 1
        try:
            self.call = call = _calls.bind(function, args, kwargs)
            arrays = [*call.operands.values(), *(call.initial or ())]
            self.records = torch.is_grad_enabled() and any(array.requires_grad for array in arrays)
            length = self._check()
            threads = parallel.threads(call.options.get("num_threads"))
            fields = [*call.describe(), *self._describe(parallel)]
        except (TypeError, ValueError, RuntimeError) as problem:
            error = problem
        # An error of this process's own is everyone's: nothing is left to wait for.
        device = next((array.device for array in args if isinstance(array, torch.Tensor)), torch.device("cpu"))
        name = getattr(function, "__name__", type(function).__name__)
        numbers = self.channel.agree(name, fields, (length, threads), error, device)
        lengths = [entry[0] for entry in numbers]
        check_lengths(self.layout, lengths, self.offsets)
        slots = _slots.slots_of(self.layout, lengths, call.reverse)
        pieces = _slots.cut(slots, self.offsets, call.batch(), call.reverse)
        self.pieces = [
            (index, slot, piece)
            for index, (slot, piece) in enumerate(zip(slots, pieces))
            if slot.rank == self.channel.rank
        ]
        self.slots = slots
        self.panels = self._choose_panels(parallel.panels, sum(lengths), max(entry[1] for entry in numbers))
        self.kept, self.handed, self.expected = {}, {}, {}

    def _check(self):
        """Checks the arguments of this process; returns its number of tokens."""
        call = self.call
        length = call.length()
        if length < 1:
            raise ValueError("expected at least one token on every rank, but got none")
        if call.offsets is not None and not call.takes_offsets:
            raise TypeError(f"cu_seqlens: expected a family with packed sequences, but got {call.name}")
        self.offsets = check_offsets(call.offsets, call.batch())
        self.output, self.states, self.blank = call.probe()
        if len(self.states) > len(call.state_axes):
            raise UnsupportedError(
                f"{call.name}: expected a state of {len(call.state_axes)} parts, but got {len(self.states)}"
            )
        self._check_out(length)
        self.dtype = self.states[0].dtype
        if any(part.dtype != self.dtype for part in self.states):
            raise UnsupportedError(f"{call.name}: expected a state whose parts have one dtype, but got several")
        rows = call.batch() if self.offsets is None else len(self.offsets) - 1
        expected = [(rows, *part.shape[1:]) for part in self.states]
        if call.initial is not None:
            got = [tuple(part.shape) for part in call.initial]
            if got != expected:
                raise ValueError(f"initial_state: expected shapes {expected}, but got {got}")
        self.shapes = expected
        return length

    def _shape_of_output(self, length):
        shape = list(self.output.shape)
        shape[self.call.output_time()] = length
        return tuple(shape)

    def _check_out(self, length):
        out = self.call.out
        if out is None:
            return
        self.call.check("out", out)
        if self.records:
            raise UnsupportedError("out: expected None where gradients are recorded, but got a tensor")
        shape = self._shape_of_output(length)
        if tuple(out.shape) != shape:
            raise ValueError(f"out: expected shape {shape}, the tokens of this rank, but got {tuple(out.shape)}")
        if out.dtype != self.output.dtype:
            raise TypeError(f"out: expected dtype {str(self.output.dtype)[6:]}, but got {str(out.dtype)[6:]}")
        if out.device != self.call.device:
            raise ValueError(f"out: expected a tensor on {self.call.device}, that of the operands, but got {out.device}")

    def _describe(self, parallel):
        return [
            f"layout {self.layout}",
            f"panels {parallel.panels}",
            f"cu_seqlens {self.offsets}",
            f"initial state {'there' if self.call.initial is not None else 'left out'}",
            f"gradients {'recorded' if self.records else 'not recorded'}",
        ]

    def _choose_panels(self, requested, tokens, threads):
        shapes = [part.shape for part in self.states]
        token = self.output.numel() * self.output.element_size() / self.output.shape[0]
        return self.call.choose_panels(requested, shapes, self.channel.ranks - 1, tokens / len(self.slots), threads, token)

    # ------------------------------------------------------------------------

    def forward(self):
        call = self.call
        output = call.out
        if output is None:
            output = _places.empty(self._shape_of_output(call.length()), self.output.dtype, call.device)
        finals = [part.new_zeros(shape) for part, shape in zip(self.states, self.shapes)] if call.returns else []
        for index, slot, piece in self.pieces:
            ahead, later = self._count_ahead(index, piece), []
            for panel in range(self.panels):
                with self._notify_failure(index + 1, piece.leaves, (panel, "forward")):
                    state = self._enter(index, piece, panel)
                    parts = self._sum(slot, piece, panel, state) if panel < ahead else None
                    if parts is not None:
                        later.append((panel, state))
                    else:
                        parts = self._compute(index, slot, piece, panel, state, output)
                        self._keep_finals(finals, parts, piece, panel)
                    self._leave(index + 1, [part.detach() for part in parts], piece.leaves, (panel, "forward"))
            for panel, state in later:
                parts = self._compute(index, slot, piece, panel, state, output)
                self._keep_finals(finals, parts, piece, panel)
        self.channel.finish()
        return [output, *finals]

    def _count_ahead(self, index, piece):
        """How many panels a piece hands on before it computes their outputs: one for each rank that
        waits behind it. Then no rank waits but for these sums."""
        ranks = self.channel.ranks
        return ranks - 1 - index % ranks if piece.leaves and self.call.device.type == "cpu" else 0

    def _sum(self, slot, piece, panel, state):
        """The final state of a panel of a piece, without its outputs, in half of the operations. None
        where the tokens read the state."""
        try:
            with torch.no_grad():
                return self.call.run_state(self._operands(slot, panel), state, piece.offsets)
        except UnsupportedError:
            return None

    def _operands(self, slot, panel):
        call = self.call
        return {name: call.slice(name, slot.tokens, panel, self.panels).detach() for name in call.operands}

    def _enter(self, index, piece, panel):
        """The initial state of a piece; None for zeros."""
        arrived = self._arrive(index - 1, piece.enters, (panel, "forward")) if piece.enters else None
        if len(piece.enters) == len(piece.rows) or (arrived is None and self.call.initial is None):
            return arrived
        if self.call.initial is not None:
            wholes = [part.detach()[piece.rows.start : piece.rows.stop] for part in self.call.initial]
        else:
            wholes = [part.expand(len(piece.rows), *part.shape[1:]) for part in self.blank]
        parts = [
            self.call.slice_state(whole, position, panel, self.panels).clone(memory_format=torch.contiguous_format)
            for position, whole in enumerate(wholes)
        ]
        for part, rows in zip(parts, arrived or ()):
            part[piece.enters.start : piece.enters.stop] = rows
        return parts

    def _compute(self, index, slot, piece, panel, state, output):
        """Runs a panel of a piece and stores the outputs. Returns the final state."""
        call, tokens = self.call, slot.tokens
        place = call.slice_output(output, tokens, panel, self.panels)
        operands = self._operands(slot, panel)
        if not self.records:
            with torch.no_grad():
                return call.run(operands, state, piece.offsets, place)[1]
        for name, operand in operands.items():
            operand.requires_grad_(call.operands[name].requires_grad)
        if state is not None and (piece.enters or any(part.requires_grad for part in call.initial)):
            state = [part.detach().requires_grad_() for part in state]
        with torch.enable_grad(), _places.records_into():
            o, parts = call.run(operands, state, piece.offsets, place.detach())
        self.kept[index, panel] = operands, state, o, parts
        return parts

    def _keep_finals(self, finals, parts, piece, panel):
        ended = self._ended(piece)
        for position, (final, part) in enumerate(zip(finals, parts)):
            rows = final[piece.rows.start : piece.rows.stop]
            self.call.slice_state(rows, position, panel, self.panels)[ended] = part.detach()[ended]

    @staticmethod
    def _ended(piece):
        """The rows of a piece that end in it."""
        return [row for row in range(len(piece.rows)) if row not in piece.leaves]

    # ------------------------------------------------------------------------

    def backward(self, cotangents, needed):
        call = self.call
        arrays = [*call.operands.values(), *(call.initial or ())]
        if not self.kept:
            raise RuntimeError(f"{call.name}: expected one backward pass for a call, but got a second one")
        grads = [_places.empty(array.shape, array.dtype, array.device) if is_needed else None for array, is_needed in zip(arrays, needed)]
        names = [*call.operands, *(None for _ in call.initial or ())]
        self.owned = {name for name in call.operands if call.owns(name, self.panels)}
        for name, grad in zip(names, grads):
            if grad is not None and name not in self.owned:
                grad.zero_()
        for index, slot, piece in reversed(self.pieces):
            for panel in range(self.panels):
                with self._notify_failure(index - 1, piece.enters, (panel, "backward")):
                    operands, entered = self._differentiate(index, slot, piece, panel, cotangents, grads)
                    self._leave(index - 1, entered, piece.enters, (panel, "backward"))
                self._add(grads, operands, entered, slot, piece, panel)
        self.channel.finish()
        return grads

    def _differentiate(self, index, slot, piece, panel, cotangents, grads):
        """The gradients of a piece's operands, by name, those that the panel owns in `grads` if the
        kernel can write there, and of the state it starts from."""
        call = self.call
        operands, state, o, parts = self.kept.pop((index, panel))
        given = [call.slice_output(cotangents[0], slot.tokens, panel, self.panels)]
        for position, part in enumerate(parts):
            cotangent = torch.zeros_like(part)
            if call.returns:
                rows = cotangents[1 + position][piece.rows.start : piece.rows.stop]
                ended = self._ended(piece)
                cotangent[ended] = call.slice_state(rows, position, panel, self.panels)[ended]
            given.append(cotangent)
        if piece.leaves:
            arrived = self._arrive(index + 1, piece.leaves, (panel, "backward"))
            for cotangent, rows in zip(given[1:], arrived):
                cotangent[piece.leaves.start : piece.leaves.stop] = rows
        leaves = {name: operand for name, operand in operands.items() if operand.requires_grad}
        states = [part for part in state or () if part.requires_grad]
        results = [(result, cotangent) for result, cotangent in zip((o, *parts), given) if result.requires_grad]
        places = dict(zip(call.operands, grads))
        places = [
            (leaf, call.slice_of(places[name], name, slot.tokens, panel, self.panels))
            for name, leaf in leaves.items() if name in self.owned
        ]  # fmt: skip
        with _places.gradients(places):
            found = torch.autograd.grad(
                [result for result, _ in results], [*leaves.values(), *states],
                [cotangent for _, cotangent in results], allow_unused=True,
            )  # fmt: skip
        entered = [
            torch.zeros_like(part) if grad is None else grad for part, grad in zip(states, found[len(leaves) :])
        ]
        return dict(zip(leaves, found)), entered

    def _add(self, grads, operands, entered, slot, piece, panel):
        """Puts the gradients of a panel where they belong: heads that panels share, and what
        has no tokens, get sums."""
        call = self.call
        for place, name in zip(grads, call.operands):
            if place is None:
                continue
            place, grad = call.slice_of(place, name, slot.tokens, panel, self.panels), operands.get(name)
            if name not in self.owned:
                if grad is not None:
                    place.add_(grad)
            elif grad is None:
                place.zero_()
            elif not _is_in(grad, place):
                place.copy_(grad)
        for position, (place, grad) in enumerate(zip(grads[len(call.operands) :], entered)):
            own = [row for row in range(len(piece.rows)) if row not in piece.enters]
            if place is not None and own:
                rows = place[piece.rows.start : piece.rows.stop]
                call.slice_state(rows, position, panel, self.panels)[own] += grad[own]

    # ------------------------------------------------------------------------

    def _message_shapes(self, rows):
        shapes = []
        for position, part in enumerate(self.states):
            shape = list(self.call.slice_state(part, position, 0, self.panels).shape)
            shapes.append(torch.Size([len(rows), *shape[1:]]))
        return shapes

    def _leave(self, index, parts, rows, what):
        """Passes rows of a state, or of its cotangent, to another slot."""
        if not rows:
            return
        parts = [part[rows.start : rows.stop] for part in parts]
        rank = self.slots[index].rank
        if rank == self.channel.rank:
            self.handed[index, what] = parts
        else:
            self.channel.send(parts, rank, _name(what))

    def _arrive(self, index, rows, what):
        """The rows that another slot has passed on. Those of the next panel are expected from then on, while
        this process works on the panel."""
        rank = self.slots[index].rank
        if rank == self.channel.rank:
            mine = index + 1 if what[1] == "forward" else index - 1
            return self.handed.pop((mine, what))
        panel, direction = what
        wait = self.expected.pop((index, what), None) or self._expect(rank, rows, what)
        arrived = wait()
        if panel + 1 < self.panels and self.call.device.type == "cpu":
            following = (panel + 1, direction)
            self.expected[index, following] = self._expect(rank, rows, following)
        return arrived

    def _expect(self, rank, rows, what):
        return self.channel.expect(self._message_shapes(rows), self.dtype, self.call.device, rank, _name(what))

    def _notify_failure(self, index, rows, what):
        return _FailureNotice(self, index, rows, what)


class _FailureNotice:
    """Notifies the process that waits for a piece's state if the piece fails."""

    def __init__(self, job, index, rows, what):
        self.job, self.index, self.rows, self.what = job, index, rows, what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        job = self.job
        if error is None or not self.rows:
            return
        rank = job.slots[self.index].rank
        if rank != job.channel.rank:
            job.channel.fail(job._message_shapes(self.rows), job.dtype, job.call.device, rank, _name(self.what))


def _name(what):
    panel, direction = what
    return f"the state of panel {panel}" if direction == "forward" else f"the gradient of the state of panel {panel}"
