"""The supported operators, by name."""

from . import _elementwise, _products, _recurrent, _shapes

__all__ = ["HANDLERS"]

#: Operator -> function that takes a Node and returns its results.
HANDLERS = {**_elementwise.HANDLERS, **_shapes.HANDLERS, **_products.HANDLERS, **_recurrent.HANDLERS}
