"""Grouped softmax attention on a GPU: where groups begin and end is known to kernels alone.

A loop of the host over the groups would read offsets, which lie in the memory of the GPU. Here one
parallel loop has an iteration for every query, which finds its group and the group's keys. Keys in
pages or blocks are gathered before, for all groups at once.
"""

from __future__ import annotations

from .._recurrence._function import tensor_type
from . import _grouped

__all__ = ["DeviceWriter"]


class DeviceWriter(_grouped.Writer):
    """Writes the parallel loop, over batch elements %b, heads %h and queries %t."""

    def write(self, others):
        self.open(others)
        s, type_ = self.sizes, self.types["%done"]
        # Positions of queries that are neither the last nor causal follow from the whole group.
        is_alone = self.options.causal or not (self.options.pattern or "slopes" in self.options.gates)
        what = "query" if is_alone else "group"
        self.chosen = [f"a parallel loop, of which a thread has a {what} and head: kernels alone read where groups begin"]
        if self.kind in ("pages", "blocks"):
            self.chosen.append(f"keys and values of all {self.kind} are gathered side by side before")
        groups = self.count_groups()
        if self.kind in ("pages", "blocks"):
            self.block = self.number("block", self.size("k", 2)) if self.kind == "pages" else self.constant(self.block_size)
            for name, heads, size in (("k", s.Hk, s.K), ("v", s.Hv, s.V)):
                self.gather_all(name, heads, size)
        bounds = (("b", "%B"), ("h", self.constant(s.Ho)), ("t", "%T")) if is_alone else (("n", groups), ("h", self.constant(s.Ho)))
        outside, self.lines = self.lines, []
        insert = self.write_query() if is_alone else self.write_whole_group()
        names = ", ".join(f"%{name}" for name, _ in bounds)
        counts = ", ".join(count for _, count in bounds)
        lines = [
            f"  %o = scf.forall ({names}) in ({counts}) shared_outs(%done = %dest) -> ({type_}) {{", *self.lines,
            "  scf.forall.in_parallel {", insert, "  }", "  }",
        ]  # fmt: skip
        constants = [f"  %i{value} = arith.constant {value} : index" for value in sorted(self.constants)]
        self.lines, self.types["%o"] = [*constants, *outside, *lines], type_
        return self.finish("attention", ["%o"])

    # ------------------------------------------------------------------------
    # Iterations
    # ------------------------------------------------------------------------

    def write_query(self):
        """The lines of one query; returns what inserts its output."""
        begin, length = self.find_group()
        first, keys = self.find_keys()
        if self.options.causal:
            # The last query of the group sees all keys.
            behind = self.binary("behind", "subi", self.binary("end", "addi", begin, length), "%t")
            seen = self.binary("seen", "subi", self.binary("keys_and_one", "addi", keys, self.constant(1)), behind)
            seen = self.binary("seen_some", "maxsi", seen, self.constant(0))
            keys = self.binary("seen_keys", "minsi", seen, keys)
        return self.attend("%b", "%t", 1, first, keys)

    def write_whole_group(self):
        row, begin, length = self.place_queries()
        return self.attend(row, begin, length, *self.find_keys())

    def find_group(self):
        """Defines %n, the query's group; (its first query, how many it has)."""
        if self.kind in ("lengths", "pages"):
            self.binary("n", "addi", "%b", self.constant(0))
            return self.constant(0), "%T"
        if self.kind == "blocks":
            size = self.constant(self.block_size)
            self.binary("n", "divsi", "%t", size)
            _, begin, length = self.place_queries()
            return begin, length
        # The groups that end at or before the query. The last group includes everything after the
        # last offset.
        before, self.lines = self.lines, []
        end = self.load("border", "cu_seqlens", "%m")
        self.define("is_behind", f"arith.cmpi sge, %t, {end} : index", "i1")
        self.number("more", "arith.index_castui %is_behind : i1 to index")
        self.binary("next_n", "addi", "%so_far", "%more")
        body, self.lines = self.lines, before
        loop = [
            f"scf.for %m = {self.constant(1)} to %groups step {self.constant(1)} iter_args(%so_far = {self.constant(0)}) "
            "-> (index) {", *body, "  scf.yield %next_n : index", "  }",
        ]  # fmt: skip
        self.number("n", "\n".join(loop))
        return self.between("tokens", "cu_seqlens")

    def find_keys(self):
        """(first key of the group %n, how many it has) in keys that lie side by side."""
        if self.kind == "packed":
            if "cu_seqlens_k" in self.options.gates:
                return self.between("keys", "cu_seqlens_k")
            return "%tokens_begin", "%tokens_length"
        if self.kind == "lengths":
            length = self.known_length(self.number("room", self.size("k", 2)))
            self.mark("%length_is_known")
            return self.constant(0), length
        if self.kind == "pages":
            pages = self.number("pages", self.size("block_table", 1))
            length = self.known_length(self.binary("room", "muli", pages, self.block))
            self.mark(self.check_pages(self.binary("count", "ceildivsi", length, self.block)))
            return self.constant(0), length
        begin, count = self.between("blocks", "block_starts")
        self.number("Tk", self.size("k", 2))
        first = self.binary("keys_first", "muli", begin, self.block)
        return first, self.total_length(count, self.block, self.binary("room", "muli", count, self.block))

    def attend(self, row, first, length, first_key, keys):
        """The op on a head's queries and keys; returns what inserts its output."""
        s = self.sizes
        shape = (1, 1, length if isinstance(length, int) else None)

        def of_head(name, heads, first, count, size, shape):
            head = "%h"
            if heads != s.Ho:
                head = self.binary(f"{name}_head", "divsi", "%h", self.constant(s.Ho // heads))
            source = f"%{name}_gathered" if f"%{name}_gathered" in self.types else f"%{name}"
            return self.slice(f"{name}_part", source, (row, head, first, "0"), (1, 1, count, size), (*shape, size))

        queries = of_head("q", s.Hq, first, length, s.K, shape)
        operands = [queries] + [
            of_head(name, heads, first_key, keys, size, (1, 1, None)) for name, heads, size in (("k", s.Hk, s.K), ("v", s.Hv, s.V))
        ]
        into = self.slice("into", "%done", (row, "%h", first, "0"), (1, 1, length, s.V), (*shape, s.V))
        others = {}
        if "mask" in self.options.gates:
            others["mask"] = self.slice("mask_part", "%mask", (row, first_key), (1, keys), (1, None), "i1")
        if "%scale" in self.types:
            others["scale"] = "%scale"
        for name in ("slopes", "sinks"):
            if name in self.options.gates:
                scalar = self.types[f"%{name}"].removesuffix(">").rpartition("x")[2]
                others[name] = self.slice(f"{name}_part", f"%{name}", ("%h",), (1,), (1,), scalar)
        return self.write_op(operands, others, into, (row, "%h", first, "0"), (1, 1, length, s.V), parallel=True)

    # ------------------------------------------------------------------------
    # Keys in several places
    # ------------------------------------------------------------------------

    def gather_all(self, name, heads, size):
        """%name_gathered: the pages or blocks of all groups side by side, an element at a time."""
        table = self.size("block_table", 1) if self.kind == "pages" else self.size("block_numbers", 0)
        room = self.binary(f"{name}_room", "muli", self.number(f"{name}_entries", table), self.block)
        type_ = tensor_type(None, heads, None, size, self.dtype)
        empty = self.empty(f"{name}_empty", type_, "%B", room)
        before, self.lines = self.lines, []
        for dim, index in enumerate(("n", "head", "token", "channel")):
            self.number(index, f"linalg.index {dim} : index")
        self.binary("j", "divsi", "%token", self.block)
        self.binary("inside", "remsi", "%token", self.block)
        if self.kind == "pages":
            row, token = self.page("page"), "%inside"
        else:
            start = self.binary("start", "muli", self.load("number", "block_numbers", "%j"), self.block)
            # Behind the last block, which may be shorter, nothing is read from here.
            last = self.binary("last", "subi", self.number("Tk", self.size("k", 2)), self.constant(1))
            row, token = "%n", self.binary("known", "minsi", self.binary("place", "addi", start, "%inside"), last)
        self.lines.append(f"  %x = tensor.extract %{name}[{row}, %head, {token}, %channel] : {self.types[f'%{name}']}")
        body, self.lines = self.lines, before
        return self.define(
            f"{name}_gathered",
            "linalg.generic {indexing_maps = [affine_map<(b, h, t, d) -> (b, h, t, d)>], "
            'iterator_types = ["parallel", "parallel", "parallel", "parallel"]} '
            f"outs({empty} : {type_}) {{\n  ^bb0(%y: {self.dtype}):\n" + "\n".join(body)
            + f"\n  linalg.yield %x : {self.dtype}\n  }} -> {type_}",
            type_,
        )
