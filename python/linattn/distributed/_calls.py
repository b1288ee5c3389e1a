"""Calls with tensors of PyTorch."""

from __future__ import annotations

import torch

from .._graph import _panels

__all__ = ["Call", "bind"]


def bind(function, args, kwargs):
    """The call of a function; see `_panels.bind`."""
    return _panels.bind(Call, function, args, kwargs)


class Call(_panels.Call):
    refused = {option: harmless for option, harmless in _panels.REFUSED.items() if option != "out"}

    @property
    def device(self):
        return next(iter(self.operands.values())).device

    @staticmethod
    def check(name, operand):
        if not isinstance(operand, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor of PyTorch, but got {type(operand).__name__}")
        return operand

    @staticmethod
    def narrow(array, axis, start, length):
        """A view."""
        return array.narrow(axis, start, length)

    def offsets_of(self, offsets):
        return torch.tensor(offsets, dtype=torch.int64, device=self.device)

    def describe(self):
        """Lines that are the same on every process of one call."""
        lines = [f"function {self.name}"]
        for name, operand in self.operands.items():
            place = self.time_axis(name)
            shape = [
                "T" if place is not None and axis == place[0] else str(size)
                for axis, size in enumerate(operand.shape)
            ]
            lines.append(f"{name} [{', '.join(shape)}] {str(operand.dtype)[6:]}")
        for option, value in self.options.items():
            if option != "num_threads":
                lines.append(f"{option}={getattr(value, '__name__', value) if callable(value) else value}")
        return lines

    def probe(self):
        """Calls the function with the first token, to see whether its operands go with one
        another.

        Returns:
          The output and state of that token, which say what those of all look like; and of
          packed sequences the state that a sequence starts from.
        """
        offsets = (0, 0, 1) if self.offsets is not None else None
        with torch.no_grad():
            operands = {name: self.slice(name, slice(0, 1), 0, 1).detach() for name in self.operands}
            output, parts = self.run(operands, None, offsets)
        if offsets is None:
            return output, parts, None
        return output, [part[1:] for part in parts], [part[:1] for part in parts]
