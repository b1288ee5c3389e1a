"""Softmax attention whose weights are dropped by a seed."""

from __future__ import annotations

import numpy as np

from .._core import _arrays
from .._core._checks import check_number
from .._core._literals import float_literal
from .._core._recipe import makers
from .._recurrence import _plans
from .._recurrence._text import _tensor
from ._module import PRODUCT, Module, make_plan

__all__ = ["attend_with_dropout", "check_dropout", "threshold_of"]

# Queries whose weights are formed at once.
_ROWS = 64
# Of Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
MULTIPLIERS, WEYL, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


def check_dropout(dropout, seed, refused):
    """The share of weights to drop as a number.

    Args:
      refused: options that dropout does not go with, those that are given, by name.
    """
    dropout = check_number("dropout", dropout, minimum=0.0)
    if dropout is None or dropout >= 1:
        raise ValueError(f"dropout: expected a number in [0, 1), but got {dropout}")
    if seed is None:
        raise ValueError("seed: expected an integer with dropout, but got None")
    for name in refused:
        raise ValueError(f"{name}: expected none beside dropout, but got one")
    return dropout


def threshold_of(dropout):
    """A weight is dropped if its 32 random bits are below it."""
    return min(round(dropout * 2**32), 2**32 - 1)


def attend_with_dropout(q, k, v, dropout, seed, mask, causal, scale, softcap, out, num_threads, target):
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not 0 <= seed < 2**63:
            raise ValueError(f"seed: expected a number in [0, 2**63), but got {seed}")
        seed = _arrays.integers_like([int(seed)], q)
    elif getattr(seed, "shape", None) != (1,):
        raise TypeError(f"seed: expected an integer or an array of one, but got {type(seed).__name__}")
    key = ("dropout", dropout, mask is None, causal, scale, softcap, target)
    operands = (q, k, v, seed) if mask is None else (q, k, v, seed, mask)
    return _plans.find(key)(operands, None, out, False, num_threads)


def _make_plan(dropout, no_mask, causal, scale, softcap, target):
    operands = [("seed", "positions", "Ts"), *([] if no_mask else [("mask", "mask", "B Tk")])]

    def text(dtype, extents, types):
        writer = _Writer(dtype, extents, scale)
        return writer.write(dropout, causal, softcap, types[0][2], not no_mask)

    return make_plan("attention", text, operands, [], target)


makers["dropout"] = _make_plan


class _Writer(Module):
    """Writes the loop over blocks of queries, each by its formula. Sums are over keys in their order."""

    def write(self, dropout, causal, softcap, seed_type, has_mask):
        s, scalar = self.sizes, self.scalar
        self.chosen = [f"scores of {_ROWS} queries at a time in memory; weights drawn by Philox4x32-10 of their places"]
        self.refused = ["the quadratic kernel with a running maximum: it has no draw of weights"]
        q, k, v = self.wide_tokens()
        # The loop's body has its own names.
        seed = self.argument("seed", f"tensor<?x{seed_type}>")
        if has_mask:
            self.argument("mask", _tensor(None, s.Tk, "i1"))
        for value in (0, 1, 2, _ROWS):
            self.constant_index(value)
        for name, token, dim in (("B", q, 0), ("T", q, 2), ("Tk", k, 2)):
            self.define(name, f"tensor.dim {token}, %c{dim} : {self.types[token]}")
        given = "wide" if seed_type == "i64" else "given"
        self.lines.append(f"  %seed_{given} = tensor.extract {seed}[%c0] : tensor<?x{seed_type}>")
        if given == "given":
            self.lines.append("  %seed_wide = arith.extsi %seed_given : i32 to i64")
        self.lines.append("  %before = arith.subi %Tk, %T : index")
        q, k, v = (self.repeat(*entry) for entry in zip("qkv", (q, k, v), (s.Hq, s.Hk, s.Hv)))
        type_ = _tensor(None, s.Ho, None, s.V, scalar)
        dest = self.empty("dest", type_, "%B", None, "%T")
        count, self.types["%done"] = len(self.lines), type_
        self.block(q, k, v, dropout, causal, softcap, has_mask)
        body = self.lines[count:]
        del self.lines[count:]
        lines = [
            f"scf.for %first = %c0 to %T step %c{_ROWS} iter_args(%done = {dest}) -> ({type_}) {{", *body,
            f"  scf.yield %next : {type_}", "  }",
        ]  # fmt: skip
        o = self.define("o_wide", "\n".join(lines), type_)
        if s.T is not None:
            fixed = _tensor(None, s.Ho, s.T, s.V, scalar)
            o = self.define("o_fixed", f"tensor.cast {o} : {type_} to {fixed}", fixed)
        return self.finish("attention", [self.narrow(o)])

    def repeat(self, name, token, heads):
        """The tokens with the heads of the result."""
        s = self.sizes
        if heads == s.Ho:
            return token
        size, length = (s.K, s.T if name == "q" else s.Tk) if name != "v" else (s.V, s.Tk)
        type_ = _tensor(None, s.Ho, length, size, self.scalar)
        empty = self.empty(f"{name}_empty", type_, "%B", None if length else "%T" if name == "q" else "%Tk")
        maps = [f"(b, h, t, d) -> (b, h floordiv {s.Ho // heads}, t, d)", "(b, h, t, d) -> (b, h, t, d)"]
        body = [f"linalg.yield %x0 : {self.scalar}"]
        return self.generic(f"{name}_heads", maps, ("parallel",) * 4, [token], empty, body)

    def block(self, q, k, v, dropout, causal, softcap, has_mask):
        s, scalar = self.sizes, self.scalar
        self.lines += ["  %left = arith.subi %T, %first : index", f"  %rows = arith.minsi %left, %c{_ROWS} : index"]
        part = _tensor(None, s.Ho, None, s.K, scalar)
        self.define(
            "q_part", f"tensor.extract_slice {q}[0, 0, %first, 0] [%B, {s.Ho}, %rows, {s.K}] [1, 1, 1, 1] "
            f": {self.types[q]} to {part}", part,
        )  # fmt: skip
        matrix, row = _tensor(None, s.Ho, None, None, scalar), _tensor(None, s.Ho, None, scalar)
        sizes = ("%B", None, "%rows", "%Tk")
        maps = [f"(b, h, i, j, c) -> (b, h, {dims})" for dims in ("i, c", "j, c", "i, j")]
        scores = self.contract("scores", maps, "%q_part", k, self.zeros("scores", matrix, *sizes))
        scores = self.adjust(scores, causal, softcap, has_mask, sizes)
        least = self.define("least", f"arith.constant -1.0e+30 : {scalar}")
        empty = self.empty("highest_empty", row, *sizes[:3])
        start = self.define(
            "highest_start", f"linalg.fill ins({least} : {scalar}) outs({empty} : {row}) -> {row}", row
        )
        full, rows = "(b, h, i, j) -> (b, h, i, j)", "(b, h, i, j) -> (b, h, i)"
        sums = ("parallel", "parallel", "parallel", "reduction")
        body = [f"%0 = arith.maximumf %y, %x0 : {scalar}", f"linalg.yield %0 : {scalar}"]
        highest = self.generic("highest", [full, rows], sums, [scores], start, body)
        body = [f"%0 = arith.subf %x0, %x1 : {scalar}", f"%1 = math.exp %0 : {scalar}", f"linalg.yield %1 : {scalar}"]
        weights = self.generic(
            "exps", [full, rows, full], ("parallel",) * 4, [scores, highest], self.empty("exps_empty", matrix, *sizes), body
        )
        body = [f"%0 = arith.addf %y, %x0 : {scalar}", f"linalg.yield %0 : {scalar}"]
        total = self.generic("total", [full, rows], sums, [weights], self.zeros("total", row, *sizes[:3]), body)
        kept = self.draw(dropout, matrix, sizes)
        body = [
            f"%is_none = arith.cmpf oeq, %x1, %none : {scalar}", f"%sum = arith.select %is_none, %unit, %x1 : {scalar}",
            f"%0 = arith.divf %x0, %sum : {scalar}", f"%1 = arith.mulf %0, %x2 : {scalar}", f"linalg.yield %1 : {scalar}",
        ]  # fmt: skip
        self.lines += [f"  %none = arith.constant 0.0 : {scalar}", f"  %unit = arith.constant 1.0 : {scalar}"]
        weights = self.generic(
            "weights", [full, rows, full, full], ("parallel",) * 4, [weights, total, kept],
            self.empty("weights_empty", matrix, *sizes), body,
        )  # fmt: skip
        result = _tensor(None, s.Ho, None, s.V, scalar)
        maps = [PRODUCT[name] for name in ("left", "right", "result")]
        o = self.contract("part", maps, weights, v, self.zeros("part", result, *sizes[:3]))
        self.lines.append(
            f"  %next = tensor.insert_slice {o} into %done[0, 0, %first, 0] [%B, {s.Ho}, %rows, {s.V}] [1, 1, 1, 1] "
            f": {result} into {self.types['%done']}"
        )

    def adjust(self, scores, causal, softcap, has_mask, sizes):
        """The scores after scale and softcap, −∞ where a query does not see a key."""
        scalar, matrix = self.scalar, self.types[scores]
        body = [
            f"%scale = arith.constant {float_literal(self.options.scale, scalar)} : {scalar}",
            f"%s0 = arith.mulf %x0, %scale : {scalar}",
        ]  # fmt: skip
        last = "%s0"
        if softcap is not None:
            body += [
                f"%cap = arith.constant {float_literal(softcap, scalar)} : {scalar}",
                f"%ratio = arith.divf %s0, %cap : {scalar}", f"%tanh = math.tanh %ratio : {scalar}",
                f"%s1 = arith.mulf %tanh, %cap : {scalar}",
            ]  # fmt: skip
            last = "%s1"
        body.append(f"%hidden = arith.constant {float_literal(-np.inf, scalar)} : {scalar}")
        if causal:
            body += [
                "%i = linalg.index 2 : index", "%j = linalg.index 3 : index", "%i1 = arith.addi %i, %first : index",
                "%p = arith.addi %i1, %before : index", "%sees = arith.cmpi sle, %j, %p : index",
                f"%s2 = arith.select %sees, {last}, %hidden : {scalar}",
            ]  # fmt: skip
            last = "%s2"
        full = "(b, h, i, j) -> (b, h, i, j)"
        inputs, maps = [f"%x0: {scalar}"], [full]
        operands, types = [scores], [matrix]
        if has_mask:
            body.append(f"%s3 = arith.select %x1, {last}, %hidden : {scalar}")
            last = "%s3"
            inputs.append("%x1: i1")
            maps.append("(b, h, i, j) -> (b, j)")
            operands.append("%mask")
            types.append(self.types["%mask"])
        empty = self.empty("adjusted_empty", matrix, *sizes)
        lines = "\n".join("    " + line for line in (*body, f"linalg.yield {last} : {scalar}"))
        maps = ", ".join(f"affine_map<{map_}>" for map_ in (*maps, full))
        return self.define(
            "adjusted",
            f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} '
            f"ins({', '.join(operands)} : {', '.join(types)}) outs({empty} : {matrix}) {{\n"
            f"  ^bb0({', '.join(inputs)}, %y: {scalar}):\n{lines}\n  }} -> {matrix}",
            matrix,
        )

    def draw(self, dropout, matrix, sizes):
        """1 / (1 − dropout), or 0 where the weight is dropped: Philox4x32-10 of the counter (key, query, head,
        batch) under the seed, whose first 32 bits count."""
        scalar, lines = self.scalar, []

        def emit(name, text):
            lines.append(f"%{name} = arith.{text} : i64")
            return f"%{name}"

        low, shift = emit("low", f"constant {2**32 - 1}"), emit("shift", "constant 32")
        lines.append("%query = linalg.index 2 : index")
        lines.append("%position = arith.addi %query, %first : index")
        words = []
        for word, dim in enumerate((3, None, 1, 0)):
            source = "%position" if dim is None else f"%at{word}"
            if dim is not None:
                lines.append(f"%at{word} = linalg.index {dim} : index")
            lines.append(f"%word{word} = arith.index_cast {source} : index to i64")
            words.append(f"%word{word}")
        keys = [emit("key0_0", f"andi %seed_wide, {low}"), emit("key1_0", f"shrui %seed_wide, {shift}")]
        for i, number in enumerate((*MULTIPLIERS, *WEYL)):
            emit(f"m{i}", f"constant {number}")
        for round_ in range(ROUNDS):
            products = [emit(f"p{i}_{round_}", f"muli %m{i}, {words[2 * i]}") for i in (0, 1)]
            high = [emit(f"h{i}_{round_}", f"shrui {product}, {shift}") for i, product in enumerate(products)]
            rest = [emit(f"l{i}_{round_}", f"andi {product}, {low}") for i, product in enumerate(products)]
            mixed = []
            for i in (0, 1):
                name = emit(f"e{i}_{round_}", f"xori {high[1 - i]}, {words[2 * i + 1]}")
                mixed.append(emit(f"y{i}_{round_}", f"xori {name}, {keys[i]}"))
            words = [mixed[0], rest[1], mixed[1], rest[0]]
            for i in (0, 1):
                name = emit(f"w{i}_{round_}", f"addi {keys[i]}, %m{2 + i}")
                keys[i] = emit(f"k{i}_{round_}", f"andi {name}, {low}")
        emit("threshold", f"constant {threshold_of(dropout)}")
        lines += [
            f"%is_kept = arith.cmpi uge, {words[0]}, %threshold : i64",
            f"%kept = arith.constant {float_literal(1 / (1 - dropout), scalar)} : {scalar}",
            f"%dropped = arith.constant 0.0 : {scalar}", f"%0 = arith.select %is_kept, %kept, %dropped : {scalar}",
            f"linalg.yield %0 : {scalar}",
        ]  # fmt: skip
        empty = self.empty("kept_empty", matrix, *sizes)
        return self.generic("kept", ["(b, h, i, j) -> (b, h, i, j)"], ("parallel",) * 4, [], empty, lines)
