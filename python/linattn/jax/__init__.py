"""linattn inside of JAX: `jit`, `grad`, `vmap`, `checkpoint`.

    >>> q, k, v = (jax.random.normal(key, (1, 512, 8, 64)) for key in jax.random.split(jax.random.key(0), 3))
    >>> loss = lambda q, k, v: linattn.scan(q, k, v, decay=g).sum()
    >>> jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(q, k, v)

A call of a public function with an array that JAX traces becomes a primitive by itself.
XLA runs it as a foreign function, without Python. `linattn.jax.scan` and the others are the
functions of `linattn`. `SequenceParallel` calls them inside of `jax.shard_map` with tokens that
lie on several devices. Importing this module lets functions of JAX take and return
`linattn.State` and feature maps of whole tokens. It needs JAX; `linattn` itself does not.
"""

import jax as _jax

import linattn as _linattn

from .. import _jax as _primitives  # noqa: F401
from . import nn  # noqa: F401
from .._graph._trees import TREES as _TREES
from .._jax._sequence import SequenceParallel as SequenceParallel


def _register(kind, flatten, unflatten):
    _jax.tree_util.register_pytree_node(kind, flatten, lambda context, arrays: unflatten(arrays, context))


for _tree in _TREES:
    _register(*_tree)


def __getattr__(name):
    if name in _linattn.__all__:
        return getattr(_linattn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_linattn.__all__})
