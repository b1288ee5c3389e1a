"""linattn inside of PyTorch: gradients, `torch.compile`, `torch.export`, `torch.func`.

    >>> q, k, v = (torch.randn(1, 512, 8, 64, requires_grad=True) for _ in range(3))
    >>> linattn.scan(q, k, v, decay=g).sum().backward()
    >>> import linattn.torch                     # before a function is compiled
    >>> torch.compile(lambda q: linattn.retnet(q, q, q), fullgraph=True)(q)

A call of a public function with a tensor that requires a gradient, or that stands for
something else than memory, goes through PyTorch's dispatcher by itself; that of other
tensors does not. Three operators serve all functions:

``torch.ops.linattn.run(call, operands, state)``
    A call of a function on tensors. `call` holds the function and all arguments but tensors.
``torch.ops.linattn.run_(call, operands, state)``
    The same, where the initial state becomes the final one in place.
``torch.ops.linattn.run_backward(call, operands, state, cotangents, given, needed)``
    The gradients of `run`, by a kernel that is derived from its own.

`linattn.torch.nn` has layers: modules with projections, norms, convolutions and caches. `convert`
makes the softmax attention of a model linear, `distill` trains it to imitate softmax.

Second derivatives and forward mode are not supported. Importing this module informs
`torch.compile` that it need not look into the functions of linattn. It needs PyTorch;
`linattn` itself does not.
"""

from .._torch._operators import run, run_, run_backward
from . import nn
from ._convert import convert, converted_layers, distill
from ._traced import register as _register

__all__ = ["convert", "converted_layers", "distill", "nn", "run", "run_", "run_backward"]

_register()
