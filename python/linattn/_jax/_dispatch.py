"""From a plan to the primitives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._checks import UnsupportedError
from .._graph._calls import name_of
from ._primitives import run

__all__ = ["dispatch"]

# How a plan is told that the initial state must become the final one.
_ALWAYS = 2


def dispatch(plan, operands, state, out, in_place, num_threads, destination, refusal):
    """A call of a plan with arrays that JAX traces. Returns what the plan does; arrays of JAX
    are constant, so that nothing is updated in place.

    Args:
      refusal: why the plan does not take the call itself.
    """
    state = () if state is None else state[: plan.state_parts]
    arrays = [_as_array(array, refusal) for array in (*operands, *state)]
    if in_place == _ALWAYS:
        raise UnsupportedError(
            f"inplace: expected False where JAX traces a call, but got True for {plan.build.what}; donate the "
            "initial state to the compiled function"
        )
    if out is not None:
        raise UnsupportedError("out: expected None where JAX traces a call, but got an array")
    results = run(name_of(plan), num_threads, arrays)
    if plan.build.output is None:
        results = [None, *results]
    return tuple(results) if len(results) > 1 else results[0]


def _as_array(array, refusal):
    """Gates and offsets may be NumPy's."""
    if isinstance(array, (jax.Array, np.ndarray)):
        return jnp.asarray(array)
    raise ValueError(refusal)
