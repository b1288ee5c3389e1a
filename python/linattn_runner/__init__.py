"""Runs the bundles that linattn-compile writes, and those of the common recurrences, without a compiler.

    import linattn_runner

    kernel = linattn_runner.load("layer.lab")
    o, state = kernel(q, k, v, s)           # CUDA arrays, or NumPy arrays for a bundle of target cpu
    o = linattn_runner.scan(q, k, v, decay=g, beta=beta, update="delta")

Needs liblinattn_runner.so and nothing else: beside this package, where LINATTN_RUNNER_LIBRARY says, or where the
dynamic linker looks.
"""

from ._kernel import Kernel, Operand, load
from ._library import Error
from ._scan import kernel, kernels, scan

__all__ = ["Error", "Kernel", "Operand", "kernel", "kernels", "load", "scan"]
