"""Messages between processes: the agreement before a call, and states."""

from __future__ import annotations

import datetime
import hashlib

import torch
import torch.distributed as dist

__all__ = ["Channel", "PeerError"]

# The agreement of a call: numbers, a digest, and the beginning of a text for error messages.
_NUMBERS = 4
_TEXT = 960
# A message whose words are all this one, a NaN that arithmetic does not make, says that its
# sender has failed. Checked word by word only where the first one is a NaN.
_FAILED = {
    torch.float64: (torch.int64, 0x7FF80000DEADC0DE), torch.float32: (torch.int32, 0x7FC0DEAD),
    torch.float16: (torch.int16, 0x7E5A), torch.bfloat16: (torch.int16, 0x7FDA),
}  # fmt: skip

_FAREWELL = datetime.timedelta(seconds=10)


class PeerError(RuntimeError):
    """Another process of the group is lost, or failed in the same call."""


class Channel:
    """The processes of a group, and the count of what goes out to them.

    Attributes:
      sent: numbers of states, and of their gradients, sent by this process.
      messages: in how many messages.
    """

    def __init__(self, group, timeout):
        if not dist.is_available():
            raise RuntimeError("group: expected a PyTorch with torch.distributed, but got one without")
        if not dist.is_initialized():
            raise ValueError(
                "group: expected an initialized process group, but got none; "
                "torch.distributed.init_process_group makes one"
            )
        self.group, self.timeout = group, timeout
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError("group: expected one that this process belongs to, but got another")
        self.sent = self.messages = 0
        self._pending = []

    # ------------------------------------------------------------------------

    def agree(self, what, fields, numbers, error, device):
        """Compares a call between all processes, and raises the same error on each.

        Args:
          fields: texts that must be the same everywhere.
          numbers: up to four integers that need not be.
          error: an exception of this process's own arguments, or None.

        Returns:
          The numbers of every process.
        """
        text = "\n".join(fields) if error is None else f"{type(error).__name__}: {error}"
        digest = hashlib.sha256(text.encode()).digest()
        numbers = [error is not None, *numbers, *[0] * (_NUMBERS - len(numbers))]
        head = torch.tensor(numbers, dtype=torch.int64)
        body = text.encode()[:_TEXT].ljust(_TEXT, b"\0")
        mine = torch.cat([head.view(torch.uint8), torch.frombuffer(bytearray(digest + body), dtype=torch.uint8)])
        mine = mine.to(self._place(device))
        everyone = [torch.empty_like(mine) for _ in range(self.ranks)]
        self._guard(lambda: dist.all_gather(everyone, mine, group=self.group), f"agreeing on a call of {what}")
        everyone = [entry.cpu() for entry in everyone]
        heads = [entry[: head.nbytes].clone().view(torch.int64).tolist() for entry in everyone]
        texts = [bytes(entry[head.nbytes + len(digest) :].tolist()) for entry in everyone]
        texts = [text.rstrip(b"\0").decode(errors="replace") for text in texts]
        if error is not None:
            raise error
        for rank, (numbers, theirs) in enumerate(zip(heads, texts)):
            if numbers[0]:
                raise PeerError(f"{what}: rank {rank} refused its arguments: {theirs}")
        for rank, entry in enumerate(everyone):
            if not torch.equal(entry[head.nbytes :], everyone[0][head.nbytes :]):
                raise ValueError(_difference(texts[0], texts[rank], rank))
        return [numbers[1:] for numbers in heads]

    # ------------------------------------------------------------------------

    def send(self, parts, rank, what):
        """Sends arrays as one message, and does not wait until it has arrived."""
        message = torch.cat([part.reshape(-1) for part in parts])
        self.sent += message.numel()
        self.messages += 1
        self._isend(message, rank, what)

    def receive(self, shapes, dtype, device, rank, what):
        """Waits for a message, and returns its arrays."""
        return self.expect(shapes, dtype, device, rank, what)()

    def expect(self, shapes, dtype, device, rank, what):
        """Lets a message come in; returns a function that waits for it and returns its arrays.

        A process sends at once where it is expected. Otherwise the threads of the two backends first agree on
        the message, which takes milliseconds while both processes compute.
        """
        sizes = [shape.numel() for shape in shapes]
        message = torch.empty(sum(sizes), dtype=dtype, device=self._place(device))
        source = self._global(rank)
        waiting = f"waiting for rank {rank}: {what}"
        work = self._guard(lambda: dist.irecv(message, src=source, group=self.group), waiting)

        def wait():
            self._guard(lambda: self._wait(work), waiting)
            words, pattern = _FAILED[dtype]
            if message.numel() and bool(message[0].isnan()) and bool((message.view(words) == pattern).all()):
                raise PeerError(f"rank {rank} failed before it could send: {what}")
            return [part.view(shape) for part, shape in zip(message.to(device).split(sizes), shapes)]

        return wait

    def fail(self, shapes, dtype, device, rank, what):
        """Notifies a process that waits for a message that the message will not come."""
        words, pattern = _FAILED[dtype]
        size = sum(shape.numel() for shape in shapes)
        message = torch.full((size,), pattern, dtype=words, device=device).view(dtype)
        try:
            self._isend(message, rank, what)
            # This process may end right after; the other one may be lost as well.
            self._pending.pop()[0].wait(min(self.timeout or _FAREWELL, _FAREWELL))
        except RuntimeError:
            pass  # the error that led here says more

    def finish(self):
        """Waits until what was sent has left."""
        pending, self._pending = self._pending, []
        for work, _, rank, what in pending:
            self._guard(lambda: self._wait(work), f"sending to rank {rank}: {what}")

    # ------------------------------------------------------------------------

    def _isend(self, message, rank, what):
        message = message.to(self._place(message.device))
        target = self._global(rank)
        work = self._guard(lambda: dist.isend(message, dst=target, group=self.group), f"sending to rank {rank}: {what}")
        self._pending.append((work, message, rank, what))  # the memory lives until it has left

    def _global(self, rank):
        return rank if self.group is None else dist.get_global_rank(self.group, rank)

    def _place(self, device):
        """The device that the backend takes messages from."""
        if device.type == "cpu" and dist.get_backend(self.group) == "nccl":
            return torch.device("cuda", torch.cuda.current_device())
        if device.type != "cpu" and dist.get_backend(self.group) == "gloo":
            return torch.device("cpu")
        return device

    def _wait(self, work):
        work.wait() if self.timeout is None else work.wait(self.timeout)

    def _guard(self, action, what):
        try:
            return action()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise PeerError(f"rank {self.rank} lost its group while {what}: {reason}") from error


def _difference(first, other, rank):
    """The first line in which two descriptions of a call differ."""
    for ours, theirs in zip(first.splitlines(), other.splitlines()):
        if ours != theirs:
            return f"expected the same call on every rank, but got {ours} on rank 0 and {theirs} on rank {rank}"
    return f"expected the same call on every rank, but rank 0 and rank {rank} differ"
