"""Calls of plans by JAX's primitives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._core._checks import UnsupportedError
from .._graph._calls import name_of
from ._primitives import run

__all__ = ["dispatch"]

# The flag of a plan whose initial state must become the final one.
_ALWAYS = 2


def dispatch(plan, operands, state, out, in_place, num_threads, destination, refusal):
    """A call of a plan with arrays that JAX traces. Returns what the plan does; arrays of JAX
    are constant, so that nothing is updated in place."""
    state = () if state is None else state[: plan.state_parts]
    recipe = plan.build
    names = [name for name, _, _ in (*recipe.operands, *recipe.state)]
    arrays = [_as_array(name, array) for name, array in zip(names, (*operands, *state))]
    if in_place == _ALWAYS:
        raise UnsupportedError(
            f"inplace: expected False where JAX traces a call, but got True for {recipe.what}; donate the "
            "initial state to the compiled function"
        )
    if out is not None:
        raise UnsupportedError("out: expected None where JAX traces a call, but got an array")
    results = run(name_of(plan), num_threads, arrays)
    if recipe.output is None:
        results = [None, *results]
    return tuple(results) if len(results) > 1 else results[0]


def _as_array(name, array):
    """Converts gates and offsets, which may be NumPy arrays."""
    if isinstance(array, (jax.Array, np.ndarray)):
        return jnp.asarray(array)
    raise TypeError(
        f"{name}: expected an array of JAX or NumPy where JAX traces a call, but got {type(array).__name__}"
    )
