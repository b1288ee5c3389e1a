"""Softmax attention whose queries are in groups with keys of their own: packed sequences, caches of
keys by lengths or by pages, and blocks.

A loop over the groups runs the kernel of softmax attention on slices. Keys that lie in several
places are gathered first, once for all queries of the group.
"""

from __future__ import annotations

import math

from .._core._literals import float_literal
from .._recurrence import _function
from .._recurrence._function import tensor_type

__all__ = ["Writer"]

_ALL = ", ".join(["1"] * 4)

_NAMES = {"packed": "sequences", "lengths": "sequences", "pages": "sequences", "blocks": "blocks of queries"}


class Writer(_function.Function):
    """Writes the loop over the groups, whose number is %n."""

    def __init__(self, options, sizes, kind, block_size, extents):
        super().__init__(options, sizes)
        self.kind, self.block_size, self.extents = kind, block_size, extents
        self.batch = None if kind == "blocks" else 1

    def open(self, others):
        """Writes the arguments, sizes and the destination."""
        s = self.sizes
        if self.kind == "pages":
            block = self.extents.get("Tb")
            shapes = {"q": (None, s.Hq, s.T, s.K), "k": (None, s.Hk, block, s.K), "v": (None, s.Hv, block, s.V)}
        else:
            shapes = {"q": (None, s.Hq, s.T, s.K), "k": (None, s.Hk, s.Tk, s.K), "v": (None, s.Hv, s.Tk, s.V)}
        for name, shape in shapes.items():
            self.argument(name, tensor_type(*shape, self.dtype))
        self.index_types, self.constants = {}, set()
        for name, rank, dtype in others:
            shape = {"slopes": (s.Ho,), "sinks": (s.Ho,), "mask": (None, s.Tk)}.get(name, (None,) * rank)
            self.argument(name, tensor_type(*shape, dtype))
            self.index_types[name] = dtype
        self.number("B", self.size("q", 0))
        self.number("T", self.size("q", 2))
        dest = self.empty("dest", tensor_type(None, s.Ho, s.T, s.V, self.dtype), "%B", None, None if s.T else "%T")
        self.types["%done"] = self.types[dest]

    def write(self, others):
        self.open(others)
        self.chosen = [f"a loop over the {_NAMES[self.kind]}, each a call of the quadratic kernel on slices"]
        if self.kind in ("pages", "blocks"):
            self.chosen.append(f"keys and values of a group's {self.kind} are gathered side by side, once for all of its queries")
            self.refused = [f"a kernel that reads {self.kind} where they lie: there is none yet"]
        count = self.count_groups()
        outside, self.lines = self.lines, []
        # Constants of the loop's body stand in front of it, where all see them.
        body = self.write_group()
        constants = [f"  %i{value} = arith.constant {value} : index" for value in sorted(self.constants)]
        type_ = self.types["%done"]
        lines = [
            *constants, *outside, f"  %o = scf.for %n = %i0 to {count} step %i1 iter_args(%done = %dest) -> ({type_}) {{",
            *body, f"  scf.yield %next : {type_}", "  }",
        ]  # fmt: skip
        self.lines, self.types["%o"] = lines, type_
        return self.finish("attention", ["%o"])

    # ------------------------------------------------------------------------
    # Indices
    # ------------------------------------------------------------------------

    def constant(self, value):
        self.constants.add(value)
        return f"%i{value}"

    def number(self, name, text):
        return self.define(name, text, "index")

    def size(self, name, dim):
        return f"tensor.dim %{name}, {self.constant(dim)} : {self.types[f'%{name}']}"

    def load(self, name, array, *indices):
        """An element of an array of integers as an index."""
        dtype, type_ = self.index_types[array], self.types[f"%{array}"]
        self.lines.append(f"  %{name}_int = tensor.extract %{array}[{', '.join(indices)}] : {type_}")
        return self.number(name, f"arith.index_cast %{name}_int : {dtype} to index")

    def binary(self, name, op, left, right):
        return self.number(name, f"arith.{op} {left}, {right} : index")

    def slice(self, name, source, offsets, sizes, shape, scalar=None):
        """Part of a tensor."""
        type_ = tensor_type(*shape, scalar or self.dtype)
        ones = ", ".join(["1"] * len(shape))
        text = f"tensor.extract_slice {source}[{', '.join(offsets)}] [{', '.join(map(str, sizes))}] [{ones}]"
        return self.define(name, f"{text} : {self.types[source]} to {type_}", type_)

    def count_groups(self):
        one = self.constant(1)
        self.constant(0)
        if self.kind in ("lengths", "pages"):
            return "%B"
        array = "cu_seqlens" if self.kind == "packed" else "block_starts"
        offsets = self.number("offsets", self.size(array, 0))
        return self.binary("groups", "subi", offsets, one)

    # ------------------------------------------------------------------------
    # A group
    # ------------------------------------------------------------------------

    def write_group(self):
        """The lines of the loop's body, which yields %next."""
        s, batch = self.sizes, self.batch
        b = "%B" if batch is None else batch
        row, first, length = self.place_queries()
        queries = self.slice(
            "q_part", "%q", (row, "0", first, "0"), (b, s.Hq, length, s.K), (batch, s.Hq, None, s.K)
        )
        keys, values, mask = self.place_keys()
        into = self.slice("into", "%done", (row, "0", first, "0"), (b, s.Ho, length, s.V), (batch, s.Ho, None, s.V))
        others = {"mask": mask} if mask else {}
        for name in ("scale", "slopes", "sinks"):
            if name in self.options.gates or f"%{name}" in self.types:
                others[name] = f"%{name}"
        self.lines.append(
            self.write_op(
                [queries, keys, values], others, into, (row, "0", first, "0"), (b, s.Ho, length, s.V), parallel=False
            )
        )
        return self.lines

    def write_op(self, operands, others, into, offsets, sizes, parallel):
        """The op on a group; returns the line that inserts its output into %done."""
        text = f"linattn.quadratic {', '.join(operands)}"
        text += "".join(f" {name}({value})" for name, value in others.items())
        scale = [] if "scale" in others else ["scale"]
        text += f" weights(softmax) into({into}){self.attributes('causal', 'pattern', 'softcap', *scale)}"
        self.op(["part"], text, [*operands, *others.values(), into], [self.types[into]])
        insert = "  tensor.parallel_insert_slice" if parallel else "  %next = tensor.insert_slice"
        return (
            f"{insert} %part into %done[{', '.join(offsets)}] [{', '.join(map(str, sizes))}] [{_ALL}] "
            f": {self.types[into]} into {self.types['%done']}"
        )

    def place_queries(self):
        """(row of the batch, first token, number of tokens)."""
        if self.kind in ("lengths", "pages"):
            return "%n", "0", "%T"
        if self.kind == "packed":
            return "0", *self.between("tokens", "cu_seqlens")
        size = self.constant(self.block_size)
        first = self.binary("first", "muli", "%n", size)
        return "0", first, self.binary("length", "minsi", size, self.binary("left", "subi", "%T", first))

    def between(self, name, array):
        """Where a group begins in what an array delimits, and its length."""
        begin = self.load(f"{name}_begin", array, "%n")
        end = self.load(f"{name}_end", array, self.binary(f"{name}_n1", "addi", "%n", self.constant(1)))
        return begin, self.binary(f"{name}_length", "subi", end, begin)

    def place_keys(self):
        """(keys, values, mask or None) of the group."""
        s = self.sizes
        sides = (("k", s.Hk, s.K), ("v", s.Hv, s.V))
        if self.kind in ("packed", "lengths"):
            row, first = "0", "0"
            if self.kind == "lengths":
                row, length = "%n", self.known_length(self.number("room", self.size("k", 2)))
                self.mark("%length_is_known")
            elif "cu_seqlens_k" in self.options.gates:
                first, length = self.between("keys", "cu_seqlens_k")
            else:
                first, length = "%tokens_begin", "%tokens_length"
            parts = [
                self.slice(
                    f"{name}_part", f"%{name}", (row, "0", first, "0"), (1, heads, length, size), (1, heads, None, size)
                )
                for name, heads, size in sides
            ]
            mask = None
            if "mask" in self.options.gates:
                mask = self.slice("mask_part", "%mask", (row, first), (1, length), (1, None), "i1")
            return *parts, mask
        if self.kind == "pages":
            block = self.number("block", self.size("k", 2))
            pages = self.binary("pages", "muli", self.number("row", self.size("block_table", 1)), block)
            length = self.known_length(pages)
            count = self.binary("count", "ceildivsi", length, block)
            self.mark(self.check_pages(count))
        else:
            block = self.constant(self.block_size)
            begin, count = self.between("blocks", "block_starts")
            self.number("Tk", self.size("k", 2))
        room = self.binary("room", "muli", count, block)
        gathered = [self.gather(*side, block, count, room) for side in sides]
        if self.kind == "blocks":
            length = self.total_length(count, block, room)
        b = "%B" if self.batch is None else 1
        parts = [
            self.slice(f"{name}_part", source, ("0",) * 4, (b, heads, length, size), (self.batch, heads, None, size))
            for (name, heads, size), source in zip(sides, gathered)
        ]
        return *parts, None

    def known_length(self, room):
        """The number of keys of a cache, all of it where it is none of [0, room]."""
        length = self.load("length_given", "cache_seqlens", "%n")
        self.clamp("length", length, self.constant(0), room)
        return self.number("length", f"arith.select %length_is_known, {length}, {room} : index")

    def clamp(self, name, value, least, most):
        """`value` in [least, most], and %name_is_known, whether it was."""
        self.number(f"{name}_least", f"arith.maxsi {value}, {least} : index")
        self.number(f"{name}_clamped", f"arith.minsi %{name}_least, {most} : index")
        self.define(f"{name}_is_known", f"arith.cmpi eq, {value}, %{name}_clamped : index", "i1")
        return f"%{name}_clamped"

    def page(self, name):
        """The page %j of the sequence, a row of the pool for any entry of the table."""
        pages = self.number(f"{name}_pages", self.size("k", 0))
        most = self.binary(f"{name}_most", "subi", pages, self.constant(1))
        return self.clamp(name, self.load(f"{name}_given", "block_table", "%n", "%j"), self.constant(0), most)

    def check_pages(self, count):
        """Whether the length and all pages are known."""
        before, self.lines = self.lines, []
        self.page("page")
        inner, self.lines = self.lines, before
        loop = [
            f"scf.for %j = {self.constant(0)} to {count} step {self.constant(1)} "
            "iter_args(%so_far = %length_is_known) -> (i1) {",
            *inner, "  %and_page = arith.andi %so_far, %page_is_known : i1", "  scf.yield %and_page : i1", "  }",
        ]  # fmt: skip
        return self.define("pages_are_known", "\n".join(loop), "i1")

    def mark(self, is_known):
        """Makes the outputs of a group NaN where its length or a page is out of range. Calls on
        arrays in memory are refused before; those in graphs cannot be."""
        self.lines += [
            f"  %scale_known = arith.constant {float_literal(self.options.scale)} : f64",
            f"  %scale_nan = arith.constant {float_literal(math.nan)} : f64",
        ]  # fmt: skip
        self.define("scale", f"arith.select {is_known}, %scale_known, %scale_nan : f64", "f64")

    def total_length(self, count, block, room):
        """The number of keys in the blocks, of which the last one may be shorter."""
        one = self.constant(1)
        self.binary("blocks_last", "subi", "%blocks_end", one)
        # The last block of no blocks is the first one of all.
        self.number("blocks_some", f"arith.maxsi %blocks_last, {self.constant(0)} : index")
        last = self.load("last", "block_numbers", "%blocks_some")
        begin = self.binary("last_begin", "muli", last, block)
        rest = self.binary("last_rest", "subi", "%Tk", begin)
        missing = self.binary("missing", "subi", block, self.binary("last_length", "minsi", rest, block))
        full = self.binary("full", "subi", room, missing)
        return self.number("keys_length", f"arith.maxsi {full}, {self.constant(0)} : index")

    def gather(self, name, heads, size, block, count, room):
        """The blocks of a group side by side."""
        b = "%B" if self.batch is None else None
        type_ = tensor_type(self.batch, heads, None, size, self.dtype)
        empty = self.empty(f"{name}_empty", type_, b, room)
        before, self.lines = self.lines, []
        sofar = f"%{name}_sofar"
        self.types[sofar] = type_
        if self.kind == "pages":
            row, first, length = self.page(f"{name}_page"), "0", block
        else:
            self.binary(f"{name}_j", "addi", "%blocks_begin", "%j")
            number = self.load(f"{name}_number", "block_numbers", f"%{name}_j")
            row, first = "0", self.binary(f"{name}_first", "muli", number, block)
            rest = self.binary(f"{name}_rest", "subi", "%Tk", first)
            length = self.binary(f"{name}_length", "minsi", rest, block)
        at = self.binary(f"{name}_at", "muli", "%j", block)
        rows = "%B" if self.batch is None else 1
        part = self.slice(
            f"{name}_block", f"%{name}", (row, "0", first, "0"), (rows, heads, length, size), (self.batch, heads, None, size)
        )
        inner, self.lines = self.lines, before
        loop = [
            f"scf.for %j = {self.constant(0)} to {count} step {self.constant(1)} iter_args({sofar} = {empty}) -> ({type_}) {{",
            *inner,
            f"  %{name}_more = tensor.insert_slice {part} into {sofar}[0, 0, {at}, 0] [{rows}, {heads}, {length}, {size}] "
            f"[{_ALL}] : {self.types[part]} into {type_}",
            f"  scf.yield %{name}_more : {type_}",
            "  }",
        ]  # fmt: skip
        return self.define(f"{name}_gathered", "\n".join(loop), type_)
