"""From a call of flash-linear-attention to a call of a named family."""

from __future__ import annotations

from .._core._checks import check_flag
from ._define import swap_state

__all__ = ["run"]


def run(
    family, *operands, initial_state=None, output_final_state=False, state_v_first=False, reverse=False,
    **options,
):  # fmt: skip
    """``(o, final_state or None)`` of a family whose state is one array."""
    output_final_state = check_flag("output_final_state", output_final_state)
    if reverse is not False:
        options["reverse"] = reverse
    result = family(
        *operands, initial_state=swap_state(initial_state, state_v_first),
        output_final_state=output_final_state, **options,
    )  # fmt: skip
    if not output_final_state:
        return result, None
    if options.get("inplace"):
        return result[0], initial_state
    return result[0], swap_state(result[1], state_v_first)
