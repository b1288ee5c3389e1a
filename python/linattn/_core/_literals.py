"""Numbers as MLIR spells them."""

from __future__ import annotations

import math
import struct

__all__ = ["float_literal"]


def float_literal(value, dtype="f64"):
    """A number as MLIR spells it: with a point, or as bits."""
    if not math.isfinite(value):
        code, width = ("<f", 8) if dtype == "f32" else ("<d", 16)
        bits = int.from_bytes(struct.pack(code, value), "little")
        return f"0x{bits:0{width}X}"
    text = repr(float(value))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text
