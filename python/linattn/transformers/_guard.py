"""Which calls linattn takes, and the counts of those it takes and of those it does not."""

from __future__ import annotations

import functools
import types

import torch

from .._core._checks import UnsupportedError
from .._torch import differentiable
from .._torch._eager import find_reason

__all__ = ["Hook", "PassOn", "make_hook", "refuses", "trains"]


def trains(adapter):
    """Says of an adapter that it may be called where gradients are recorded."""
    adapter.trains = True
    return adapter


def refuses(refuse):
    """Gives an adapter a function of the same arguments that is asked first: why the replaced function computes the
    call, or None. For functions that are called often, and mostly for nothing."""

    def decorate(adapter):
        adapter.refuse = refuse
        return adapter

    return decorate


class PassOn(Exception):
    """Raised by an adapter, before it has written anything, for a call that the
    replaced function must compute; the message says why."""


class Hook:
    """The replacement of one function, with the counts of its calls.

    Args:
      name: the kernel, as transformers calls it.
      original: the function that was there before.
      adapter: the function of linattn with the same parameters.
    """

    __slots__ = ("name", "original", "adapter", "active", "taken", "passed", "traced", "function")

    def __init__(self, name, original, adapter):
        self.name, self.original, self.adapter = name, original, adapter
        self.active = False
        self.taken, self.traced, self.passed = 0, 0, {}
        self.function = make_hook(self)

    def pass_on(self, why):
        self.passed[why] = self.passed.get(why, 0) + 1


def make_hook(hook):
    """The function that decides, for each call, where it goes."""
    original, is_compiling = hook.original, torch.compiler.is_compiling
    trains = getattr(hook.adapter, "trains", False)
    refuse = getattr(hook.adapter, "refuse", None)

    def take(args, kwargs):
        """Whether linattn computes the call, and its result or why not."""
        why = refuse(*args, **kwargs) if refuse is not None else None
        why = why or find_reason(args, kwargs, trains)
        if why is not None:
            return False, why
        try:
            # A call whose gradient has no kernel is the replaced function's.
            with differentiable(torch.is_grad_enabled()):
                return True, hook.adapter(*args, **kwargs)
        except (PassOn, UnsupportedError) as error:
            return False, str(error)

    def hooked(*args, **kwargs):
        # First, so that a graph that is traced holds nothing of this function.
        if is_compiling():
            return original(*args, **kwargs)
        if not hook.active:
            return original(*args, **kwargs)
        is_taken, result = take(args, kwargs)
        if is_taken:
            hook.taken += 1
            return result
        hook.pass_on(result)
        return original(*args, **kwargs)

    # torch.jit.script reads the source of the original, and looks up its names in the globals of the hook.
    hooked = types.FunctionType(hooked.__code__, original.__globals__, closure=hooked.__closure__)
    functools.update_wrapper(hooked, original)
    hooked.__linattn_hook__ = hook
    return hooked
