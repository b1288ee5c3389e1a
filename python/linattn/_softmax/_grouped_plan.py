"""Plans of softmax attention whose queries are in groups."""

from __future__ import annotations

from functools import partial

from .._core._plain import without_places
from .._core._recipe import Recipe, makers
from .._recurrence import _function, _plans
from ._grouped import Writer
from ._grouped_device import DeviceWriter
from ._grouped_spans import SpanWriter

__all__ = ["GROUPED", "make_grouped_plan"]

# How queries and keys lie, by the kind of groups, and the operands that say so.
GROUPED = {
    "packed": ("B T Hq K", "B Tk Hk K", "B Tk Hv V"),
    "lengths": ("B T Hq K", "B Tk Hk K", "B Tk Hv V"),
    "pages": ("B T Hq K", "Nb Tb Hk K", "Nb Tb Hv V"),
    "blocks": ("B T Hq K", "B Tk Hk K", "B Tk Hv V"),
}
_GROUPS = {
    "packed": lambda keys: [("cu_seqlens", "offsets", "T"), *([("cu_seqlens_k", "offsets", "Tk")] if keys else [])],
    "lengths": lambda keys: [("cache_seqlens", "counts", "B")],
    "pages": lambda keys: [("block_table", "positions", "B Tm"), ("cache_seqlens", "counts", "B")],
    "blocks": lambda keys: [("block_starts", "positions", "Ts"), ("block_numbers", "positions", "Ti")],
}


def make_grouped_plan(kind, given, block_size, causal, scale, pattern, softcap, target):
    """A plan of grouped softmax attention.

    Args:
      kind: of `GROUPED`.
      given: the names of the operands that are there, of cu_seqlens_k, mask, slopes and sinks.
      block_size: of "blocks".
    """
    target = _plans.parse_target(target)
    tokens = [(name, "tokens", layout) for name, layout in zip("qkv", GROUPED[kind])]
    same = kind == "packed" and "cu_seqlens_k" not in given
    if same:
        tokens = [(name, role, layout.replace("Tk", "T")) for name, role, layout in tokens]
    operands = _GROUPS[kind]("cu_seqlens_k" in given)
    layouts = {"mask": ("mask", "B T" if same else "B Tk"), "slopes": ("gate", "Ho"), "sinks": ("gate", "Ho")}
    operands += [(name, *layouts[name]) for name in ("mask", "slopes", "sinks") if name in given]

    def write(make, dtype, extents, types):
        options = _function.Options(
            weights="softmax", causal=causal, pattern=pattern, softcap=softcap, gates=given,
            scale=extents["K"] ** -0.5 if scale is None else scale,
        )  # fmt: skip
        writer = make(options, _function.Sizes.of(dtype, extents), kind, block_size, extents)
        return writer.write([(name, *type_[1:]) for (name, _, _), type_ in zip(operands, types)])

    def refuse(error):
        raise ValueError(without_places(error)) from None

    return Recipe(
        "attention", partial(write, Writer), lambda on_device: _plans.resolve_target(target, on_device),
        refuse, tokens + operands, ["H = max(Hk, Hv)", "Ho = max(Hq, H)"], [],
        ("out", "tokens", "B T Ho V"), False, False, device_text=partial(write, DeviceWriter),
        device_gradient=partial(write, SpanWriter),
        fixed=("Tb",),
    ).plan(fixes_heads=True)  # fmt: skip


makers["grouped"] = make_grouped_plan
