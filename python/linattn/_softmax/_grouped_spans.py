"""Grouped softmax attention whose gradient runs on a GPU: one op in which every query has a span of keys.

The gradient of a loop over groups is such a loop, whose bounds only kernels know. Spans make all groups one op: a thread
has a query and its span, or a key and the queries whose spans hold it. Keys in pages or blocks are gathered before, by
sums over all pages that pick one each, since the gradient of a sum is a sum again.
"""

from __future__ import annotations

import math

from .._core._literals import float_literal
from .._recurrence._function import tensor_type
from . import _grouped_device

__all__ = ["SpanWriter"]


class SpanWriter(_grouped_device.DeviceWriter):
    """Writes the op, the spans, and what gathers keys."""

    def write(self, others):
        self.open(others)
        s = self.sizes
        for dim in (0, 2):
            self.number(f"k_size{dim}", super().size("k", dim))
        self.chosen = ["one op for all groups, each query with a span of keys; its gradient a thread for each query and each key"]
        self.count_groups()
        q, k, v = "%q", "%k", "%v"
        if self.kind in ("pages", "blocks"):
            self.block = self.number("block", self.size("k", 2)) if self.kind == "pages" else self.constant(self.block_size)
            k, v = (self.pick(*side) for side in (("k", s.Hk, s.K), ("v", s.Hv, s.V)))
        if self.kind in ("lengths", "pages"):
            q = self.break_unknown(q)
        operands = {name: f"%{name}" for name in ("mask", "slopes", "sinks") if name in self.options.gates}
        results = self.softmax([q, k, v], {**operands, "spans": self.spans()}, "%dest")
        constants = [f"  %i{value} = arith.constant {value} : index" for value in sorted(self.constants)]
        self.lines = [*constants, *self.lines]
        return self.finish("attention", results[:1])

    def size(self, name, dim):
        """Sizes of keys are read in front of all loops, which would else depend on the keys and have gradients."""
        return f"arith.addi %k_size{dim}, {self.constant(0)} : index" if name == "k" else super().size(name, dim)

    def generic(self, name, maps, iterators, inputs, out, arguments, body):
        """Structured loops, whose body is written by a function; its result is %out."""
        before, self.lines = self.lines, []
        body()
        lines, self.lines = self.lines, before
        maps = ", ".join(f"affine_map<{map_}>" for map_ in maps)
        iterators = ", ".join(f'"{iterator}"' for iterator in iterators)
        type_ = self.types[out]
        ins = f" ins({', '.join(inputs)} : {', '.join(self.types[value] for value in inputs)})" if inputs else ""
        scalar = type_.removesuffix(">").rpartition("x")[2]
        return self.define(
            name,
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}{ins} outs({out} : {type_}) {{\n"
            f"  ^bb0({', '.join(arguments)}):\n" + "\n".join(lines) + f"\n  linalg.yield %out : {scalar}\n  }} -> {type_}",
            type_,
        )

    # ------------------------------------------------------------------------
    # Spans
    # ------------------------------------------------------------------------

    def spans(self):
        """(first key, one past the last, position of the query) of each query, `[B, T, 3]`."""
        type_ = tensor_type(None, self.sizes.T, 3, "i64")
        empty = self.empty("spans_empty", type_, "%B", None if self.sizes.T else "%T")

        def body():
            for dim, name in enumerate(("b", "t", "which")):
                self.number(name, f"linalg.index {dim} : index")
            begin, length = self.find_group()
            first, keys = self.find_keys()
            end = self.binary("span_end", "addi", first, keys)
            at = self.binary("at", "subi", self.binary("from_begin", "addi", self.binary("inside", "subi", "%t", begin), keys), length)
            self.define("is_first", f"arith.cmpi eq, %which, {self.constant(0)} : index", "i1")
            self.define("is_end", f"arith.cmpi eq, %which, {self.constant(1)} : index", "i1")
            self.number("end_or_at", f"arith.select %is_end, {end}, {at} : index")
            self.number("number", f"arith.select %is_first, {first}, %end_or_at : index")
            self.define("out", "arith.index_cast %number : index to i64", "i64")

        return self.generic("spans", ["(b, t, i) -> (b, t, i)"], ["parallel"] * 3, [], empty, ["%y: i64"], body)

    def mark(self, is_known):
        """Spans do not say so: `break_unknown` does."""

    def check_pages(self, count):
        """The length alone; all pages of the table are checked at once."""
        self.count = count
        return "%length_is_known"

    def break_unknown(self, q):
        """The queries, NaN where the length or a page of their sequence is out of range."""
        paged = self.kind == "pages"
        type_ = tensor_type(None, self.dtype)
        whole = self.define("whole", f"arith.constant 1.0 : {self.dtype}")
        broken = self.define("broken", f"arith.constant {float_literal(math.nan, self.dtype)} : {self.dtype}")
        empty = self.empty("factors_empty", type_, "%B")
        ones = self.define("ones", f"linalg.fill ins({whole} : {self.dtype}) outs({empty} : {type_}) -> {type_}", type_)

        def find_factor():
            self.number("n", "linalg.index 0 : index")
            self.find_keys()
            known = "%length_is_known"
            if paged:
                self.number("j", "linalg.index 1 : index")
                self.page("page")
                self.define("is_behind", f"arith.cmpi sge, %j, {self.count} : index", "i1")
                self.define("is_right", "arith.ori %is_behind, %page_is_known : i1", "i1")
                known = self.define("is_whole", f"arith.andi {known}, %is_right : i1", "i1")
            self.define("out", f"arith.select {known}, %y, {broken} : {self.dtype}")

        inputs = ["%block_table"] if paged else []
        factors = self.generic(
            "factors", ["(b, j) -> (b, j)", "(b, j) -> (b)"] if paged else ["(b) -> (b)"],
            ["parallel", "reduction"] if paged else ["parallel"], inputs, ones,
            [*(f"%entry: {self.index_types[name[1:]]}" for name in inputs), f"%y: {self.dtype}"], find_factor,
        )  # fmt: skip
        empty = self.empty("known_empty", self.types[q], "%B", None if self.sizes.T else "%T")
        each = "(b, h, t, d) -> (b, h, t, d)"
        return self.generic(
            "known_q", [each, "(b, h, t, d) -> (b)", each], ["parallel"] * 4, [q, factors], empty,
            [f"%{name}: {self.dtype}" for name in ("x", "factor", "y")],
            lambda: self.define("out", f"arith.mulf %x, %factor : {self.dtype}"),
        )  # fmt: skip

    # ------------------------------------------------------------------------
    # Keys in several places
    # ------------------------------------------------------------------------

    def zeros(self, name, type_, *dims):
        zero = self.define(f"{name}_zero", f"arith.constant 0.0 : {self.dtype}")
        empty = self.empty(f"{name}_empty", type_, *dims)
        return self.define(f"{name}_zeros", f"linalg.fill ins({zero} : {self.dtype}) outs({empty} : {type_}) -> {type_}", type_)

    def pick_where(self, name, loops, maps, table, entries, source, zeros):
        """The sum over all p, the last loop, of what is at p where the table's entry is p."""

        def body():
            self.number("p", f"linalg.index {loops.count(',')} : index")
            self.number("named", f"arith.index_cast %entry : {self.index_types[table]} to index")
            self.define("is_named", "arith.cmpi eq, %named, %p : index")
            self.define("term", f"arith.select %is_named, %x, {zeros.replace('_zeros', '_zero')} : {self.dtype}")
            self.define("out", f"arith.addf %y, %term : {self.dtype}")

        iterators = [*["parallel"] * loops.count(","), "reduction"]
        arguments = [f"%entry: {self.index_types[table]}", f"%x: {self.dtype}", f"%y: {self.dtype}"]
        return self.generic(name, [f"{loops} -> {dims}" for dims in maps], iterators, [entries, source], zeros, arguments, body)

    def pick(self, name, heads, size):
        """The pages or blocks of all groups side by side."""
        pages = self.kind == "pages"
        block, source = (self.extents["Tb"], f"%{name}") if pages else self.split(name, heads, size)
        table = "block_table" if pages else "block_numbers"
        entries = self.number(f"{name}_entries", self.size(table, 1 if pages else 0))
        type_ = tensor_type(None, heads, None, block, size, self.dtype)
        zeros = self.zeros(name, type_, "%B", entries)
        maps = ("(n, j)", "(p, h, x, d)") if pages else ("(j)", "(n, h, p, x, d)")
        found = self.pick_where(
            f"{name}_found", "(n, h, j, x, d, p)", (*maps, "(n, h, j, x, d)"), table, f"%{table}", source, zeros
        )
        flat = tensor_type(None, heads, None, size, self.dtype)
        return self.define(f"{name}_picked", f"tensor.collapse_shape {found} [[0], [1], [2, 3], [4]] : {type_} into {flat}", flat)

    def split(self, name, heads, size):
        """(the size of a block, the keys or values `[B, H, blocks, block, D]`, the last block filled up with zeros)."""
        length = self.number(f"{name}_length", self.size("k", 2))
        count = self.binary(f"{name}_blocks", "ceildivsi", length, self.block)
        room = self.binary(f"{name}_room", "muli", count, self.block)
        flat, blocks = tensor_type(None, heads, None, size, self.dtype), tensor_type(None, heads, None, self.block_size, size, self.dtype)
        zeros = self.zeros(f"{name}_whole", flat, "%B", room)
        sizes = f"[%B, {heads}, {length}, {size}] [1, 1, 1, 1]"
        text = f"tensor.insert_slice %{name} into {zeros}[0, 0, 0, 0] {sizes} : {self.types[f'%{name}']} into {flat}"
        whole = self.define(f"{name}_whole", text, flat)
        text = f"[[0], [1], [2, 3], [4]] output_shape [%B, {heads}, {count}, {self.block_size}, {size}] : {flat} into {blocks}"
        return self.block_size, self.define(f"{name}_parts", f"tensor.expand_shape {whole} {text}", blocks)
