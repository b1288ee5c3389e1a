"""S4D: a state space of fixed steps."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

import linattn

from ..._core._checks import check_parity
from ._base import Layer

__all__ = ["S4D"]


class _Kernel(nn.Module):
    """The parameters of a kernel, by the names of the original: `C` ``[channels, states, 2]``, `log_dt`
    ``[channels]``, `log_A_real` and `A_imag` ``[channels, states]``."""

    def __init__(self, channels, states, dt_min, dt_max):
        super().__init__()
        self.C = nn.Parameter(torch.view_as_real(torch.randn(channels, states, dtype=torch.complex64)))
        steps = torch.rand(channels) * (math.log(dt_max) - math.log(dt_min)) + math.log(dt_min)
        self.log_dt = nn.Parameter(steps)
        self.log_A_real = nn.Parameter(torch.full((channels, states), 0.5).log())
        self.A_imag = nn.Parameter(math.pi * torch.arange(states).float().repeat(channels, 1))

    def parts(self):
        """(dt, A, C), in float32."""
        A = torch.complex(-self.log_A_real.float().exp(), self.A_imag.float())
        return self.log_dt.float().exp(), A, torch.view_as_complex(self.C.float())


class S4D(Layer):
    """A diagonal state space of fixed steps, with complex states: `linattn.s4d`.

    Args:
      hidden_size: of the tokens, each of whose features is a channel.
      state_size: of a channel, an even number; half as many are kept, with their conjugates.
      dt_min, dt_max: between which the logarithms of steps are drawn.
      dropout: of the output.

    Parameters are those of the layer S4D of the original: `D`, `kernel`, and `output_linear`, a projection to
    twice the features with a gated linear unit.

    Gu et al., "On the Parameterization and Initialization of Diagonal State Space Models", 2022.
    """

    def __init__(self, hidden_size, *, state_size=64, dt_min=1e-3, dt_max=0.1, dropout=0.0):
        super().__init__(hidden_size, dropout)
        check_parity("state_size", state_size, odd=False)
        self.D = nn.Parameter(torch.randn(self.hidden_size))
        self.kernel = _Kernel(self.hidden_size, state_size // 2, dt_min, dt_max)
        self.output_linear = nn.Sequential(nn.Conv1d(self.hidden_size, 2 * self.hidden_size, 1), nn.GLU(dim=-2))

    def mix(self, x, cache, cu_seqlens):
        before = None if cache is None else cache.get("state")
        parts = self.kernel.parts()
        ends = [0, x.shape[1]] if cu_seqlens is None else cu_seqlens.tolist()
        outputs, states = [], []
        for row, (begin, end) in enumerate(zip(ends, ends[1:])):
            u = x[:, begin:end].transpose(1, 2)
            initial = None if before is None else before if cu_seqlens is None else before[row : row + 1]
            result = linattn.s4d(u, *parts, D=self.D, initial_state=initial, return_last_state=cache is not None)
            y, state = result if cache is not None else (result, None)
            outputs.append(y)
            states.append(state)
        if cache is not None:
            cache.parts["state"] = torch.cat(states)
        return self.output_linear(F.gelu(torch.cat(outputs, 2))).transpose(1, 2)
