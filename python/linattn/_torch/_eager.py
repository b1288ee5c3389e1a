"""Whether a call reaches kernels that know tensors in memory alone."""

from __future__ import annotations

import torch

__all__ = ["find_reason"]

_PLAIN = (torch.Tensor, torch.nn.Parameter)

# None of these is public; without one, what it would show is unknown.
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_functorch = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)
_tracing = getattr(torch._C, "_get_tracing_state", lambda: None)
_forward_ad = torch.autograd.forward_ad


def find_reason(args, kwargs, trains=False):
    """Why a kernel cannot take the tensors among the arguments of a call; None if it can.

    Args:
      trains: whether gradients may be recorded.
    """
    grad = torch.is_grad_enabled() and not trains
    for values in (args, kwargs.values()):
        for value in values:
            if not isinstance(value, torch.Tensor):
                continue
            if type(value) not in _PLAIN:
                return f"a tensor is a {type(value).__name__}"
            if not value.is_cpu:
                return f"tensors on {value.device.type}"
            if grad and value.requires_grad:
                return "gradients are recorded"
            if value.layout is not torch.strided:
                return f"a tensor is {str(value.layout).rpartition('.')[2]}"
    if _dispatch_modes() > 0:
        return "a dispatch mode of PyTorch traces or changes the calls"
    if _functorch() is not None:
        return "a transform of torch.func is active"
    if _tracing() is not None:
        return "torch.jit traces the call"
    if getattr(_forward_ad, "_current_level", -1) >= 0:
        return "forward gradients are recorded"
    return None
