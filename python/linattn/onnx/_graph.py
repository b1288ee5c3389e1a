"""A graph of the standard, node by node, as one function of MLIR."""

from __future__ import annotations

import re

from ._values import ELEMENTS, NotCovered, Value
from ._writer import Writer

__all__ = ["Node", "write"]

# Domains whose LinearAttention and CausalConvWithState are the standard's.
_DOMAINS = ("", "ai.onnx", "com.microsoft")


class Node:
    """A node while it is written.

    Attributes:
      inputs: its values; None for those that are left out.
      op: its operator; name: what messages call it.
    """

    def __init__(self, graph, proto, inputs):
        import onnx.helper

        self.writer, self.opset = graph.writer, graph.opset
        self.op, self.domain, self.inputs, self.outputs = proto.op_type, proto.domain, inputs, len(proto.output)
        self.label = f"{proto.op_type} '{proto.name or proto.output[0]}'"
        self._attributes = {}
        for attribute in proto.attribute:
            self._attributes[attribute.name] = onnx.helper.get_attribute_value(attribute)
        self.tensor_of = graph.constant

    def get(self, name, default=None):
        """An attribute; text is decoded."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    @property
    def attributes(self):
        return {name: self.get(name) for name in self._attributes}

    def input(self, index):
        """An operand, or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def integers(self, index, what):
        """The elements of an operand of integers, numbers or sizes, as a list; None if left out."""
        value = self.input(index)
        if value is None:
            return None
        if value.known is None:
            raise self.refuse(f"{what} that follow from constants and sizes", "computed ones")
        return [x if isinstance(x, str) else int(x) for x in value.known.flat]

    def axis(self, axis, rank):
        if not -rank <= axis < max(rank, 1):
            raise self.refuse(f"an axis from {-rank} to {rank - 1}", str(axis))
        return axis + rank if axis < 0 else axis

    def refuse(self, expected, got):
        return NotCovered(f"{self.label}: expected {expected}, but got {got}")


class _Graph:
    def __init__(self, model):
        self.graph, self.writer = model.graph, Writer()
        opsets = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
        self.opset = max(opsets, default=1)
        self.values, self.arguments = {"": None}, []

    def constant(self, proto):
        """The value of a TensorProto."""
        import onnx.numpy_helper

        element = ELEMENTS.get(proto.data_type)
        if element is None:
            kind = type(proto).DataType.Name(proto.data_type)
            raise NotCovered(f"tensor '{proto.name}': expected elements of {', '.join(_names())}, but got {kind}")
        array = onnx.numpy_helper.to_array(proto)
        if element == "bf16" and array.dtype.itemsize != 2:
            import ml_dtypes

            array = array.astype(ml_dtypes.bfloat16)
        return Value(element, array.shape, None, array)

    def read_inputs(self):
        named = {}
        for info in self.graph.input:
            if info.name in self.values:
                continue  # an initializer that a caller may replace; its default is taken
            kind = info.type.tensor_type
            element = ELEMENTS.get(kind.elem_type)
            if element is None or not kind.HasField("shape"):
                raise NotCovered(
                    f"input '{info.name}': expected a tensor of {', '.join(_names())} whose rank is known, but got another type"
                )
            sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
            argument = f"%{_identifier(info.name)}"
            while any(argument == other.name for other in self.arguments):
                argument += "_"
            dynamic = Value(element, tuple("?" if size is None else size for size in sizes), argument)
            dims = []
            for axis, (size, dim) in enumerate(zip(sizes, kind.shape.dim)):
                if size is None:
                    size = named.get(dim.dim_param) if dim.dim_param else None
                    if size is None:
                        place = self.writer.index(axis)
                        size = self.writer.emit(f"tensor.dim {argument}, {place} : {dynamic.type}")
                        named[dim.dim_param] = size
                dims.append(size)
            self.arguments.append(dynamic)
            self.values[info.name] = dynamic.with_dims(dims)

    def write_nodes(self):
        from ._operators import HANDLERS

        for proto in self.graph.node:
            inputs = [self.values[name] for name in proto.input]
            node = Node(self, proto, inputs)
            handler = HANDLERS.get(proto.op_type) if proto.domain in _DOMAINS else None
            if handler is None or (proto.domain == "com.microsoft" and not getattr(handler, "contributed", False)):
                domain = f"{proto.domain}." if proto.domain not in ("", "ai.onnx") else ""
                raise NotCovered(
                    f"{node.label}: {domain}{proto.op_type} is not covered; linattn.onnx.COVERED lists the operators that are"
                )
            results = handler(node)
            results = [results] if isinstance(results, Value) else results
            self.values.update(zip(proto.output, results))

    def text(self, name):
        results = [self.values[info.name] for info in self.graph.output]
        names = [self.writer.tensor(value) for value in results]
        types = ", ".join(value.type for value in results)
        arguments = ", ".join(f"{value.name}: {value.type}" for value in self.arguments)
        return "\n".join([
            f"func.func @{name}({arguments}) -> ({types}) {{",
            *("  " + line for line in self.writer.lines),
            f"  return {', '.join(names)} : {types}", "}", "",
        ])  # fmt: skip


def write(model, entry):
    """The module of a model whose functions are inlined."""
    graph = _Graph(model)
    for proto in graph.graph.initializer:
        graph.values[proto.name] = graph.constant(proto)
    if graph.graph.sparse_initializer:
        raise NotCovered("sparse_initializer: expected dense initializers, but got a sparse one")
    graph.read_inputs()
    graph.write_nodes()
    return graph.text(entry or _identifier(graph.graph.name or "main"))


def _identifier(text):
    text = re.sub(r"\W", "_", text, flags=re.ASCII)
    return text if text and not text[0].isdigit() else "_" + text


def _names():
    return list(ELEMENTS.values())
