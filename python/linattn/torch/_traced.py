"""Public functions as `torch.compile` sees them: calls that it need not look into."""

from __future__ import annotations

import sys
import types
from importlib.machinery import PathFinder

from torch.utils import _pytree

import linattn

from .._graph._trees import TREES

__all__ = ["register"]


def _public_functions():
    for module in (linattn, linattn.fla, linattn.conv):
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, types.FunctionType):
                yield function


# What Dynamo traces, by the functions' addresses.
_RULES = "torch._dynamo.trace_rules"


def _let_pass(trace_rules):
    """Has the functions traced with tensors that have shapes alone, as `nonstrict_trace` would
    have copies of them."""
    for function in _public_functions():
        trace_rules._allowed_callable_ids.add(id(function))
        trace_rules._nonstrict_trace_callable_ids.add(id(function))


class _AtImport:
    """Adds the functions when the rules are imported. Dynamo takes longer to import than PyTorch,
    and a program that compiles nothing never imports it."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name == _RULES else None
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            sys.meta_path.remove(cls)
            _let_pass(module)

        spec.loader.exec_module = exec_module
        return spec


def _register_functions():
    if _RULES in sys.modules:
        _let_pass(sys.modules[_RULES])
    else:
        sys.meta_path.insert(0, _AtImport)


def register():
    _register_functions()
    for kind, flatten, unflatten in TREES:
        _pytree.register_pytree_node(kind, flatten, unflatten, serialized_type_name=f"linattn.{kind.__name__}")
