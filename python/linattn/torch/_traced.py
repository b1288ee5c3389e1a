"""Public functions as `torch.compile` sees them: calls that it need not look into."""

from __future__ import annotations

import types

from torch._dynamo import trace_rules
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


def register():
    """Has the functions traced with tensors that have shapes alone, as `nonstrict_trace` would
    have copies of them."""
    for function in _public_functions():
        trace_rules._allowed_callable_ids.add(id(function))
        trace_rules._nonstrict_trace_callable_ids.add(id(function))
    for kind, flatten, unflatten in TREES:
        _pytree.register_pytree_node(kind, flatten, unflatten, serialized_type_name=f"linattn.{kind.__name__}")
