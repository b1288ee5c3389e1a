"""S4D: a state space of fixed steps."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

import linattn

from ..._core._checks import check_parity
from ._base import Layer, layer

__all__ = ["S4D"]


@layer
class S4D(Layer):
    """A diagonal state space of fixed steps, with complex states: `linattn.torch.nn.S4D`.

    Args:
      hidden_size: of the tokens, each of whose features is a channel.
      state_size: of a channel, an even number; half as many are kept, with their conjugates.
      dt_min, dt_max: between which the logarithms of steps are drawn.
      dropout: of the output, where `apply` gets a key.

    Parameters are those of the original: `D`; of `kernel` the arrays `C` ``[channels, states, 2]``, `log_dt` ``[channels]``,
    `log_A_real` and `A_imag` ``[channels, states]``; `output_linear`, a projection to twice the features with a gated linear
    unit.
    """

    state_size: int = 64
    dt_min: float = 1e-3
    dt_max: float = 0.1

    _refused = {"cu_seqlens": "whose recurrence has one sequence in a row"}

    def __post_init__(self):
        super().__post_init__()
        check_parity("state_size", self.state_size, odd=False)

    def _init(self, draws):
        size, shape = self.hidden_size, (self.hidden_size, self.state_size // 2)
        output = draws.dense(size, 2 * size, bias=True)
        return {
            "D": jax.random.normal(draws.next_key(), (size,), draws.dtype),
            "kernel": {
                "C": jax.random.normal(draws.next_key(), (*shape, 2)) * math.sqrt(0.5),
                "log_dt": draws.log_steps(size, self.dt_min, self.dt_max),
                "log_A_real": jnp.full(shape, math.log(0.5)),
                "A_imag": jnp.tile(math.pi * jnp.arange(shape[1], dtype=jnp.float32), (size, 1)),
            },
            "output_linear": {"0": output | {"kernel": output["kernel"][None]}},
        }  # fmt: skip

    def _cached(self):
        return {"state": ((self.hidden_size, self.state_size // 2), jnp.complex64)}

    def _mix(self, params, x, calls):
        parts = params["kernel"]
        A = jax.lax.complex(-jnp.exp(parts["log_A_real"]), parts["A_imag"])
        C = jax.lax.complex(parts["C"][..., 0], parts["C"][..., 1])
        y = calls.recur(
            linattn.s4d, x.transpose(0, 2, 1), jnp.exp(parts["log_dt"]), A, C, D=params["D"], returns="return_last_state"
        )
        output = params["output_linear"]["0"]
        y = jax.nn.gelu(y.transpose(0, 2, 1), approximate=False) @ output["kernel"][0] + output["bias"]
        values, gate = jnp.split(y, 2, axis=-1)
        return values * jax.nn.sigmoid(gate)
