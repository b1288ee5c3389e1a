"""The text of one function: constants, sizes, loops over elements."""

from __future__ import annotations

import operator

import numpy as np

from ._values import Value, is_float, width_of

__all__ = ["Body", "Writer"]


_FOLDS = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "minsi": min, "maxsi": max,
    "divsi": lambda a, b: int(a / b), "ceildivsi": lambda a, b: -(-a // b),
}  # fmt: skip


class Body:
    """The scalars of one iteration; `apply` adds an operation and returns its result."""

    def __init__(self, writer):
        self._writer, self.lines = writer, []

    def apply(self, operation, element, *operands):
        """An operation whose operands and result have one type."""
        return self.emit(f"{operation} {', '.join(operands)} : {element}")

    def emit(self, text):
        name = self._writer.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def number(self, element, number):
        if not is_float(element):
            return self.emit(f"arith.constant {int(number)} : {element}")
        return self.emit(f"arith.constant {_float_text(float(number), element)} : {element}")

    def convert(self, scalar, source, target):
        """A scalar in another type, as Cast converts it."""
        if source == target:
            return scalar
        if target == "i1":
            zero = self.number(source, 0)
            compare = "cmpf une" if is_float(source) else "cmpi ne"
            return self.emit(f"arith.{compare}, {scalar}, {zero} : {source}")
        widens = width_of(source) < width_of(target)
        if is_float(source) and is_float(target):
            if width_of(source) == width_of(target):  # f16 and bf16
                return self.convert(self.convert(scalar, source, "f32"), "f32", target)
            operation = "extf" if widens else "truncf"
        elif is_float(source):
            operation = "fptosi"
        elif is_float(target):
            operation = "uitofp" if source == "i1" else "sitofp"
        else:
            operation = ("extui" if source == "i1" else "extsi") if widens else "trunci"
        return self.emit(f"arith.{operation} {scalar} : {source} to {target}")


def _float_text(number, element):
    bits = {"f64": (np.float64, np.uint64, 16), "f32": (np.float32, np.uint32, 8), "f16": (np.float16, np.uint16, 4)}
    if element == "bf16":
        word = int(np.float32(number).view(np.uint32))
        # To nearest, ties to even; a NaN stays one.
        word = word >> 16 if number != number else (word + 0x7FFF + (word >> 16 & 1)) >> 16
        return f"0x{word:04X}"
    kind, word, digits = bits[element]
    return f"0x{int(np.array(number, kind).view(word)):0{digits}X}"


class Writer:
    """Lines of the function, and sizes as expressions that are made once."""

    def __init__(self):
        self.lines, self._count = [], 0
        self._made = {}  # text of an operation on sizes -> its result
        self._factors = {}  # a size that is a product -> (number, sizes)

    def fresh(self):
        self._count += 1
        return f"%{self._count}"

    def emit(self, text):
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def once(self, text):
        """The result of an operation that is written the first time it is used."""
        if text not in self._made:
            self._made[text] = self.emit(text)
        return self._made[text]

    # ------------------------------------------------------------------------
    # Sizes: integers, or names of values of type index
    # ------------------------------------------------------------------------

    def index(self, size):
        """The SSA value of a size."""
        return self.once(f"arith.constant {size} : index") if isinstance(size, int) else size

    def size(self, operation, a, b):
        """An operation of `arith` on two sizes, done here where both are numbers."""
        if isinstance(a, int) and isinstance(b, int):
            return _FOLDS[operation](a, b)
        neutral = {"addi": 0, "subi": 0, "muli": 1}.get(operation)
        if b == neutral:
            return a
        if a == neutral and operation != "subi":
            return b
        if a == b and operation in ("minsi", "maxsi"):
            return a
        return self.once(f"arith.{operation} {self.index(a)}, {self.index(b)} : index")

    def factors(self, sizes):
        """A product as an integer and sorted names."""
        number, names = 1, []
        for size in sizes:
            if isinstance(size, int):
                number *= size
            else:
                inner, more = self._factors.get(size, (1, (size,)))
                number, names = number * inner, [*names, *more]
        return number, tuple(sorted(names))

    def product(self, sizes):
        number, names = self.factors(sizes)
        if not names:
            return number
        result = number if number != 1 else None
        for name in names:
            result = name if result is None else self.size("muli", result, name)
        self._factors[result] = (number, names)
        return result

    def divide(self, whole, parts):
        """The size that `parts` lack of the product `whole`, or None where that is not known."""
        number, names = self.factors(whole)
        by, others = self.factors(parts)
        rest = list(names)
        for name in others:
            if name not in rest:
                return None
            rest.remove(name)
        if by == 0 or number % by:
            return None
        return self.product([number // by, *rest])

    # ------------------------------------------------------------------------
    # Tensors
    # ------------------------------------------------------------------------

    def tensor(self, value):
        """The SSA value of a tensor; constants are written where they are first used."""
        if value.name is not None:
            return value.name
        known = value.known
        if known.dtype == object:
            elements = [self.once(f"arith.index_cast {self.index(x)} : index to {value.element}") for x in known.flat]
            return self.once(f"tensor.from_elements {', '.join(elements)} : {value.type}")
        return self.once(f"arith.constant {_dense(known, value.element)} : {value.type}")

    def empty(self, element, dims):
        result = Value(element, tuple(dims))
        sizes = ", ".join(size for size in dims if isinstance(size, str))
        return Value(element, result.dims, self.emit(f"tensor.empty({sizes}) : {result.type}"))

    def filled(self, element, dims, number):
        scalar = Body(self)
        start = scalar.number(element, number)
        self.lines.extend(scalar.lines)
        into = self.empty(element, dims)
        name = self.emit(f"linalg.fill ins({start} : {element}) outs({into.name} : {into.type}) -> {into.type}")
        return Value(element, into.dims, name)

    def generic(self, into, operands, maps, compute, reductions=()):
        """`linalg.generic`.

        Args:
          into: the tensor that the results go to; its elements are the start of reductions.
          operands, maps: values, and for each the loops of its dimensions, None for a dimension of
            size 1; those of `into` come last.
          compute: takes the body, the scalars of the operands and that of `into`.
          reductions: the loops that are reduced over.
        """
        loops = 1 + max((loop for dims in maps for loop in dims if loop is not None), default=-1)
        letters = ", ".join(f"d{loop}" for loop in range(loops))
        texts = [", ".join("0" if loop is None else f"d{loop}" for loop in dims) for dims in maps]
        kinds = ", ".join(f'"{"reduction" if loop in reductions else "parallel"}"' for loop in range(loops))
        body = Body(self)
        scalars = [self.fresh() for _ in (*operands, into)]
        result = compute(body, *scalars)
        names = [self.tensor(value) for value in operands]
        ins = f"ins({', '.join(names)} : {', '.join(value.type for value in operands)}) " if operands else ""
        arguments = ", ".join(f"{scalar}: {value.element}" for scalar, value in zip(scalars, (*operands, into)))
        name = self.fresh()
        self.lines.extend([
            f"{name} = linalg.generic {{indexing_maps = [{', '.join(f'affine_map<({letters}) -> ({text})>' for text in texts)}], "
            f"iterator_types = [{kinds}]}} {ins}outs({into.name} : {into.type}) {{",
            f"^bb0({arguments}):", *("  " + line for line in body.lines),
            f"  linalg.yield {result} : {into.element}", f"}} -> {into.type}",
        ])  # fmt: skip
        return Value(into.element, into.dims, name)

    def reshape(self, value, dims):
        """A tensor of as many elements under other dimensions; equal ones at both ends stay."""
        dims = tuple(dims)
        if value.dims == dims:
            return value
        if value.known is not None and all(isinstance(size, int) for size in dims):
            return Value(value.element, dims, None, value.known.reshape(dims))
        groups = self._match(value.dims, dims)
        if any(sum(isinstance(dims[axis], str) for axis in new) > 1 and len(new) > 1 for _, new in groups):
            return self._reshape_open(value, dims)
        name, source = self.tensor(value), value
        if any(len(old) > 1 or not new for old, new in groups):
            middle = [
                dims[new[0]] if len(new) == 1 else self.product(value.dims[axis] for axis in old) for old, new in groups if new
            ]
            source = Value(value.element, tuple(middle))
            name = self.emit(f"tensor.collapse_shape {name} {[list(old) for old, new in groups if new]} : {value.type} into {source.type}")
        if any(len(new) > 1 or not old for old, new in groups):
            result = Value(value.element, dims)
            places = [list(new) for old, new in groups if old]
            shape = ", ".join(map(str, dims))
            name = self.emit(f"tensor.expand_shape {name} {places} output_shape [{shape}] : {source.type} into {result.type}")
        return Value(value.element, dims, name)

    def _reshape_open(self, value, dims):
        """Several open sizes out of one: `tensor.expand_shape` of LLVM 22 folds no such thing."""
        shape = ", ".join(self.index(size) for size in dims)
        shape = self.once(f"tensor.from_elements {shape} : tensor<{len(dims)}xindex>")
        result = Value(value.element, dims)
        name = self.emit(f"tensor.reshape {self.tensor(value)}({shape}) : ({value.type}, tensor<{len(dims)}xindex>) -> {result.type}")
        return Value(value.element, dims, name)

    def _match(self, old, new):
        """Pairs of ranges of dimensions with the same product, as short as they get. Sizes of 1 belong
        to a neighbour; of a scalar there is one pair, in which a range is empty."""
        if not old or not new:
            return [(range(len(old)), range(len(new)))]
        groups, i, j = [], 0, 0
        while i < len(old) and j < len(new):
            a, b = i + 1, j + 1
            while self.factors(old[i:a]) != self.factors(new[j:b]):
                if a < len(old) and (b == len(new) or self.divide(new[j:b], old[i:a]) is not None):
                    a += 1
                elif b < len(new):
                    b += 1
                else:
                    a, b = len(old), len(new)
                    break
            groups.append((range(i, a), range(j, b)))
            i, j = a, b
        if i < len(old) or j < len(new):
            (first, second) = groups.pop()
            groups.append((range(first.start, len(old)), range(second.start, len(new))))
        return groups

    def slice(self, value, offsets, sizes, strides):
        """`tensor.extract_slice`."""
        result = Value(value.element, tuple(sizes))
        parts = "".join(f"[{', '.join(map(str, list_))}]" + " " for list_ in (offsets, sizes, strides))
        name = self.emit(f"tensor.extract_slice {self.tensor(value)}{parts}: {value.type} to {result.type}")
        return Value(value.element, result.dims, name)

    def insert(self, value, into, offsets):
        parts = " ".join(f"[{', '.join(map(str, list_))}]" for list_ in (offsets, value.dims, [1] * value.rank))
        name = self.emit(f"tensor.insert_slice {self.tensor(value)} into {into.name}{parts} : {value.type} into {into.type}")
        return Value(into.element, into.dims, name)


def _dense(array, element):
    if array.size == 0:
        return "dense<>"
    if element == "i1":
        return f"dense<{str(array.astype(bool).tolist()).lower()}>"
    array = np.ascontiguousarray(array)
    return f'dense<"0x{array.tobytes().hex().upper()}">'
