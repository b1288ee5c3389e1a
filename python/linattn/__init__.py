"""linattn: a compiler for linear attention.

    >>> import numpy as np, linattn
    >>> q, k, v = (np.random.rand(1, 128, 4, 64).astype(np.float32) for _ in range(3))
    >>> o = linattn.attention(q, k, v, causal=True)
    >>> o, state = linattn.scan(q, k, v, return_state=True)
    >>> o_next = state.step(q[:, :1], k[:, :1], v[:, :1])

Arrays are ``[B, T, H, D]``, of any library that speaks DLPack. Kernels are
compiled at the first call and kept in memory and on disk.
"""

from . import costs, feature_maps, reference
from ._checks import UnsupportedError
from ._compile import compile
from ._linattn import Kernel, __version__, get_num_threads, set_num_threads
from ._ops import attention, scan
from ._state import State
from .reference import weights

__all__ = [
    "Kernel",
    "State",
    "UnsupportedError",
    "__version__",
    "attention",
    "compile",
    "costs",
    "feature_maps",
    "get_num_threads",
    "reference",
    "scan",
    "set_num_threads",
    "weights",
]
