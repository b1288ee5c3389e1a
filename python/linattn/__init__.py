"""linattn: a compiler for linear attention.

    >>> import numpy as np, linattn
    >>> q, k, v = (np.random.rand(1, 128, 4, 64).astype(np.float32) for _ in range(3))
    >>> o = linattn.attention(q, k, v, causal=True)
    >>> o, state = linattn.scan(q, k, v, return_state=True)
    >>> o_next = state.step(q[:, :1], k[:, :1], v[:, :1])

Arrays are ``[B, T, H, D]``, of any library that speaks DLPack. Kernels are
compiled at the first call and kept in memory and on disk.
"""

from . import _linattn, conv, costs, feature_maps, fla, reference
from ._compiler._compile import compile
from ._compiler._deadline import deadline
from ._compiler._explain import explain
from ._core._checks import UnsupportedError
from ._core._plain import plainly as _plainly
from ._families import _named
from ._families._beyond import selective_scan
from ._families._named import *  # noqa: F403
from ._families._s4d import s4d
from ._linattn import Kernel, __version__
from ._maps._random import RandomProjection, random_projection
from ._operators._conv import causal_conv1d
from ._operators._norm import layer_norm_gated, layernorm_fn, output_norm, rms_norm_gated, rmsnorm_fn
from ._operators._onnx import onnx_causal_conv_with_state, onnx_linear_attention
from ._recurrence._bidirectional import bidirectional
from ._recurrence._attention import attention
from ._recurrence._pool import StatePool
from ._recurrence._scan import scan
from ._recurrence._state import State
from ._report import Report, report
from ._softmax._fnet import fnet
from ._softmax._groups import block_mask
from ._softmax._hybrid import hybrid
from ._softmax._linformer import linformer
from ._softmax._nystrom import nystrom
from .reference import weights


def convert(model, feature_map="hedgehog", layers=None):
    """Makes the softmax attention of a PyTorch model linear: `linattn.torch.convert`."""
    from .torch import convert

    return convert(model, feature_map, layers)


get_num_threads, set_num_threads = map(_plainly, (_linattn.get_num_threads, _linattn.set_num_threads))
for _name in ("asm", "explain", "llvm_ir", "mlir", "stages"):
    setattr(Kernel, _name, _plainly(getattr(Kernel, _name)))

__all__ = [
    "Kernel",
    "RandomProjection",
    "Report",
    "State",
    "StatePool",
    "UnsupportedError",
    "__version__",
    "attention",
    "bidirectional",
    "block_mask",
    "causal_conv1d",
    "compile",
    "conv",
    "convert",
    "costs",
    "deadline",
    "explain",
    "feature_maps",
    "fla",
    "fnet",
    "get_num_threads",
    "hybrid",
    "layer_norm_gated",
    "layernorm_fn",
    "linformer",
    "nystrom",
    "onnx_causal_conv_with_state",
    "onnx_linear_attention",
    "output_norm",
    "random_projection",
    "reference",
    "report",
    "rms_norm_gated",
    "rmsnorm_fn",
    "s4d",
    "scan",
    "selective_scan",
    "set_num_threads",
    "weights",
    *_named.__all__,
]
