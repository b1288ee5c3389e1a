"""Recurrences whose tokens lie on several devices of a mesh.

Every device runs its tokens from the state that the device before it has ended with, in panels
of heads, as processes do in `linattn.distributed`: while one device works on a panel, the next
one works on the panel before it.
"""

from __future__ import annotations

import numbers

import jax
import jax.numpy as jnp

from .._core._checks import UnsupportedError
from .._graph import _panels
from .._operators._conv import causal_conv1d
from ._primitives import find_varying, vary

__all__ = ["SequenceParallel"]


class _Call(_panels.Call):
    @staticmethod
    def check(name, operand):
        return jnp.asarray(operand)

    @staticmethod
    def narrow(array, axis, start, length):
        return jax.lax.slice_in_dim(array, start, start + length, axis=axis)


class SequenceParallel:
    """Recurrences over tokens that are divided along an axis of a mesh, inside of
    `jax.shard_map`.

    Args:
      axis_name: the axis of the mesh. The device of index r holds the r-th part of the tokens.
      panels: into how many parts the state of a call goes from device to device: a number that
        divides the heads. Chosen by the sizes unless given.
    """

    def __init__(self, axis_name, *, panels=None):
        if not isinstance(axis_name, str):
            raise TypeError(f"axis_name: expected the name of an axis, but got {type(axis_name).__name__}")
        if panels is not None and (isinstance(panels, bool) or not isinstance(panels, numbers.Integral)):
            raise TypeError(f"panels: expected an integer, but got {type(panels).__name__}")
        self.axis_name, self.panels = axis_name, panels

    def __call__(self, function, *args, **kwargs):
        """Calls a recurrence with this device's tokens.

        Args:
          function: `linattn.scan`, or a named family, `linattn.gla` for instance.
          args, kwargs: those of the function. Operands with tokens are this device's, all
            others, and the initial state, the same on every device.

        Returns:
          The results of the function: the outputs of this device's tokens, and on request
          the final state of all tokens, the same on every device.

        Raises:
          ValueError, TypeError: naming the operand, what was expected and what came.
          UnsupportedError: packed sequences, `inplace`, `out` and others that have no meaning
            for a part.
        """
        call = _panels.bind(_Call, function, args, kwargs)
        if call.offsets is not None:
            raise UnsupportedError("cu_seqlens: expected None on several devices, but got packed sequences")
        if call.length() < 1:
            raise ValueError("expected at least one token on every device, but got none")
        return _run(call, self.axis_name, self.panels)

    def causal_conv1d(self, x, weight, bias=None, *, activation=None, reverse=False, dilation=1, num_threads=None):
        """`linattn.causal_conv1d` of this device's tokens, ``[B, T of this device, C]``.

        The last (W − 1)·dilation inputs of every part go to the next one.

        Args:
          weight, bias, activation, reverse, dilation, num_threads: as there; the weights are the
            same on every device.

        Raises:
          ValueError, TypeError: as there; also where a part has fewer tokens than go to the
            next one.
        """
        options = {"activation": activation, "reverse": reverse, "dilation": dilation, "num_threads": num_threads}
        x, weight = jnp.asarray(x), jnp.asarray(weight)
        if x.ndim != 3 or weight.ndim != 2 or not isinstance(dilation, int) or dilation < 1:
            return causal_conv1d(x, weight, bias, **options)  # It says what is wrong.
        count = (weight.shape[-1] - 1) * dilation
        if x.shape[1] < count:
            raise ValueError(f"x: expected at least {count} tokens on every device, but got {x.shape[1]}")
        given = x[:, :count] if reverse else x[:, x.shape[1] - count :]
        border = jax.lax.ppermute(given, self.axis_name, _forward(jax.lax.axis_size(self.axis_name), reverse))
        whole = jnp.concatenate([x, border] if reverse else [border, x], axis=1)
        y = causal_conv1d(whole, weight, bias, **options)
        return y[:, : x.shape[1]] if reverse else y[:, count:]


def _forward(devices, reverse):
    """Passes arrays from each device to its successor. The first device receives zeros."""
    pairs = [(device, device + 1) for device in range(devices - 1)]
    return [(b, a) for a, b in pairs] if reverse else pairs


def _run(call, axis_name, panels):
    devices = jax.lax.axis_size(axis_name)
    rank = jax.lax.axis_index(axis_name)
    if call.reverse:
        rank = devices - 1 - rank
    arrays = [*call.operands.values(), *(call.initial or ())]
    varying = find_varying(arrays) | find_varying([rank])
    call.operands = dict(zip(call.operands, vary(call.operands.values(), varying)))
    initial = None if call.initial is None else vary(map(jnp.asarray, call.initial), varying)

    output, states = jax.eval_shape(lambda operands: call.run(operands, None, None), call.operands)
    shapes = [part.shape for part in states]
    if initial is not None and [part.shape for part in initial] != shapes:
        raise ValueError(f"initial_state: expected shapes {shapes}, but got {[part.shape for part in initial]}")
    token = output.size * output.dtype.itemsize / call.length()
    panels = call.choose_panels(panels, shapes, devices - 1, call.length(), 1, token)
    steps = panels + devices - 1

    def distribute(parts):
        """Distributes panels along the first axis to the steps in which this device runs them."""
        stacked = jnp.stack(parts)
        places = vary([jnp.zeros((steps, *stacked.shape[1:]), stacked.dtype)], varying)[0]
        return jax.lax.dynamic_update_slice_in_dim(places, stacked, rank, axis=0)

    def gather(stacked, axes):
        """The inverse of `distribute`."""
        mine = jax.lax.dynamic_slice_in_dim(stacked, rank, panels, axis=0)
        return jnp.concatenate(list(mine), axis=call.panel_axis(axes)) if panels > 1 else mine[0]

    operands = {
        name: distribute([call.panel_of(name, panel, panels) for panel in range(panels)]) for name in call.operands
    }
    first = None
    if initial is not None:
        first = [
            distribute([call.slice_state(part, index, panel, panels) for panel in range(panels)])
            for index, part in enumerate(initial)
        ]
    blank = jax.eval_shape(lambda x: call.run(x, None, None), {name: x[0] for name, x in operands.items()})
    blank = vary([jnp.zeros(x.shape, x.dtype) for x in (blank[0], *blank[1])], varying)

    def skip(operands, state):
        return blank

    def begin(operands, state):
        o, parts = call.run(operands, None, None)
        return [o, *parts]

    def go_on(operands, state):
        o, parts = call.run(operands, tuple(state), None)
        return [o, *parts]

    def step(arrived, given):
        number, operands, first = given
        works = (number >= rank) & (number < rank + panels)
        if first is not None:
            arrived = [jnp.where(rank == 0, mine, other) for mine, other in zip(first, arrived)]
        branch = jnp.where(works, 2 if first is not None else jnp.where(rank == 0, 1, 2), 0)
        o, *parts = jax.lax.switch(branch, (skip, begin, go_on), operands, arrived)
        passed = [jax.lax.ppermute(part, axis_name, _forward(devices, call.reverse)) for part in parts]
        return passed, (o, parts)

    _, (outputs, parts) = jax.lax.scan(step, blank[1:], (jnp.arange(steps), operands, first))
    o = gather(outputs, call.output_axes)
    if not call.returns:
        return o
    ends = [gather(part, axes) for part, axes in zip(parts, call.state_axes)]
    ends = [jnp.where(rank == devices - 1, part, jnp.zeros_like(part)) for part in ends]
    return o, call.wrap(tuple(jax.lax.psum(part, axis_name) for part in ends))
