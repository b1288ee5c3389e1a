"""The shapes of a call by the layouts of its recipe.

A plan learns extents from arrays in memory. Here they come from shapes alone, which may
be symbols, and checks are left to the plan.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from .. import _linattn

__all__ = ["Binding", "bind", "has_sequences", "result_layouts", "results"]

# Operands that have all their dimensions, also if the tokens lack some.
_WHOLE = ("state", "carried", "offsets", "parameter")

_rule = functools.cache(_linattn.families.rule)


class Layout(NamedTuple):
    """One alternative: the user's dimensions, "H*K" undivided, and those of the op."""

    user: list
    logical: list

    def drop(self, dropped):
        """The layout without these dimensions."""
        return Layout([word for word in self.user if word not in dropped], self.logical)

    def shape(self, extents):
        return [_extent(word, extents) for word in self.user]

    def to_logical(self, tensor, extents):
        """A view of the tensor in the order of the op."""
        names = []
        for index, word in reversed([*enumerate(self.user)]):
            parts = word.split("*")
            if len(parts) > 1:
                tensor = tensor.unflatten(index, [extents[part] for part in parts])
            names = parts + names
        for index, name in reversed([*enumerate(names)]):
            if name not in self.logical:  # of extent 1
                tensor, names = tensor.select(index, 0), names[:index] + names[index + 1 :]
        order = [names.index(name) for name in self.logical if name in names]
        tensor = tensor.permute(order)
        for index, name in enumerate(self.logical):
            if name not in names:
                tensor = tensor.unsqueeze(index)
        return tensor


class Binding(NamedTuple):
    """The sizes that the shapes of a call give.

    Attributes:
      extents: sizes by the names of dimensions.
      layouts: one for each operand, then for each part of the state.
      alternatives: of the operands, which of its layouts each one has.
      output: the layout of the output, or None.
    """

    extents: dict
    layouts: list
    alternatives: list
    output: Layout | None


@functools.cache
def kind(name):
    """The kind of a dimension."""
    return {"B": "batch", "N": "batch", "H": "head", "G": "head", "T": "length"}.get(name[0], "feature")


@functools.cache
def parse(text):
    """The alternatives of a recipe's text."""
    layouts = []
    for alternative in text.split("|"):
        user, arrow, logical = alternative.partition("->")
        user, logical = user.split(), logical.split()
        if not arrow:
            words = [part for word in user for part in word.split("*")]
            logical = [word for counted in ("batch", "head", "length", "feature") for word in words if kind(word) == counted]
        layouts.append(Layout(user, logical))
    return tuple(layouts)


def _extent(word, extents):
    size = 1
    for part in word.split("*"):
        if part not in extents:
            return None
        size = size * extents[part]
    return size


def _names(recipe):
    arrays = (*recipe.operands, *recipe.state, *recipe.results)
    texts = [layouts for _, _, layouts in arrays]
    return {part for text in texts for layout in parse(text) for word in layout.user for part in word.split("*")}


def _apply(rules, extents, offsets):
    """Applies the rules for dimensions that follow from others."""
    if "B" in extents and not offsets:
        extents["N"] = extents["B"]
    for kind, result, left, right, factor, coefficients in map(_rule, rules):
        if any(source and source not in extents for source in (left, right)):
            continue
        size = extents[left] if left else 1
        if kind == "max":
            extents[result] = max(size, extents[right])
        elif kind == "features":
            constant, linear, quadratic = coefficients
            extents[result] = (constant + linear * size + quadratic * size * size) // 2
        elif kind == "quotient":
            extents[result] = size // factor
        else:
            extents[result] = factor * size


def bind(recipe, shapes):
    """The `Binding` of a call, from the shapes of its operands and of its state.

    Raises:
      ValueError: a shape that fits none of its layouts.
    """
    extents, layouts, alternatives = {"1": 1}, [], []
    offsets = any(role == "offsets" for _, role, _ in recipe.operands)
    full = parse(recipe.operands[0][2])[0]
    names = _names(recipe)
    heads = {name for name in names if kind(name) == "head"}
    dropped = next(
        (gone for gone in (set(), heads, heads | {"B"}) if len(full.drop(gone).user) == len(shapes[0])), None
    )
    if dropped is None:
        raise ValueError(f"{recipe.operands[0][0]}: expected shape {tuple(full.user)}, but got {tuple(shapes[0])}")
    extents.update(dict.fromkeys(dropped, 1))
    applied = False
    for (name, role, text), shape in zip((*recipe.operands, *recipe.state), shapes):
        if role != "tokens" and not applied:
            _apply(recipe.rules, extents, offsets)
            applied = True
        if role == "offsets":
            extents["N"] = shape[0] - 1
            layouts.append(Layout(["N"], ["N"]))
            alternatives.append(0)
            continue
        index, layout = _match(name, role, text, shape, extents, dropped)
        for word, size in zip(layout.user, shape):
            if "*" not in word:
                extents[word] = size
        layouts.append(layout)
        alternatives.append(index)
        if role == "parameter":
            _apply(recipe.rules, extents, offsets)
    _apply(recipe.rules, extents, offsets)
    output = None
    if recipe.output is not None:
        output = parse(recipe.output[2])[0].drop(dropped)
    return Binding(extents, layouts, alternatives[: len(recipe.operands)], output)


def _match(name, role, text, shape, extents, dropped):
    """The first layout that fits a shape. The gate of a single head may keep its head dimension."""
    parsed = parse(text)
    modes = [set()] if role in _WHOLE else [dropped] if role == "tokens" else [set(), dropped]
    for gone in modes:
        for index, layout in enumerate(parsed):
            layout = layout.drop(gone)
            if layout.user and len(layout.user) == len(shape) and all(
                extent is None or extent == size for extent, size in zip(layout.shape(extents), shape)
            ):
                return index, layout
    raise ValueError(f"{name}: expected shape {' or '.join(' '.join(x.user) for x in parsed)}, but got {tuple(shape)}")


def result_layouts(recipe, binding):
    """The layouts of what a call returns: of the output, if there is one, then of the parts of
    the state and of the states between tokens that are returned."""
    layouts = [parse(text)[0] for _, _, text in recipe.results]
    if binding.output is not None:
        layouts[0] = binding.output
    return layouts


def results(recipe, binding):
    """The shapes of the results, each with its role."""
    layouts = result_layouts(recipe, binding)
    return [(role, layout.shape(binding.extents)) for (_, role, _), layout in zip(recipe.results, layouts)]


def has_sequences(layout):
    """Whether an array's first dimension counts sequences or their states."""
    return layout.user[:1] in (["B"], ["N"])
