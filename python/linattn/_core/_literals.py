"""Numbers in MLIR's syntax."""

from __future__ import annotations

import math
import struct

__all__ = ["float_literal"]


def float_literal(value, dtype="f64"):
    """A number in MLIR's syntax: with a point, or as bits."""
    if not math.isfinite(value):
        code, width = {"f16": ("<e", 4), "bf16": ("<f", 8), "f32": ("<f", 8)}.get(dtype, ("<d", 16))
        text = f"{int.from_bytes(struct.pack(code, value), 'little'):0{width}X}"
        # Of bfloat16 the upper half of the bits.
        return f"0x{text[:4] if dtype == 'bf16' else text}"
    text = repr(float(value))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text
