"""The recurrences of Hugging Face transformers, in linattn.

    >>> import linattn.transformers as lt
    >>> lt.enable()                      # models that exist and models to come
    >>> model.generate(...)
    >>> print(lt.status())               # where calls ran, and why
    >>> lt.disable()                     # everything as it was
    >>> with lt.enabled():
    ...     model(...)

The models of transformers compute their recurrences, short convolutions and gated
norms in functions that they look up by name, and which are plain PyTorch unless the
kernels of a GPU library are there. `enable` puts functions of linattn in their
place, and of ``torch.nn.Linear.forward`` on CPUs where PyTorch has no kernels for
products of 16 bits. They run for tensors in the memory of the CPU. A call that records
gradients runs there as well if they have a kernel; any other call goes to the function
that was there before, and `status` counts it with the reason. Tracing (torch.compile,
torch.export, torch.jit) sees the function that was there before.

A function of transformers is replaced only if its parameters and its body are
known. Others stay, with a warning and a line of `status`.

linattn itself needs neither PyTorch nor transformers; this package does.
"""

from ._switch import disable, enable, enabled, status
from ._report import Entry, Status

__all__ = ["Entry", "Status", "disable", "enable", "enabled", "status"]
