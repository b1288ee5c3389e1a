"""The gated delta rule and Kimi delta attention."""

from __future__ import annotations

from .._families._family import offsets
from .._families._named import families
from ._guard import trains
from ._packed import find_offsets
from ._run import detach, initial, of_dtype, run

__all__ = ["chunk_gated_delta_rule", "chunk_kda", "fused_recurrent_gated_delta_rule", "fused_recurrent_kda"]


def _delta(family, tail, query, key, value, g, beta, initial_state, output_final_state, l2norm, packed):
    cu_seqlens = find_offsets(packed.get("cu_seqlens"), packed.get("seq_idx"), query)
    state = initial(initial_state, query)
    dtype = query.dtype
    operands = (
        detach(query), detach(of_dtype(key, dtype)), detach(of_dtype(value, dtype)), detach(g), detach(beta),
        None, None, offsets(cu_seqlens),
    )  # fmt: skip
    options = {"scale": None, "use_qk_l2norm_in_kernel": bool(l2norm), "use_gate_in_kernel": False, **tail}
    return run(family, operands, options, state, bool(output_final_state))


_OPTIONS = {"use_beta_sigmoid_in_kernel": False, "allow_neg_eigval": False, "reverse": False}
_KDA_OPTIONS = {"lower_bound": None, **_OPTIONS}


@trains
def chunk_gated_delta_rule(
    query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, **kwargs,
):  # fmt: skip
    """`linattn.gated_delta_rule`; the initial state is overwritten by the final one if that
    is returned, and is then what is returned."""
    return _delta(
        families["gated_delta_rule"], _OPTIONS, query, key, value, g, beta, initial_state, output_final_state,
        use_qk_l2norm_in_kernel, kwargs,
    )  # fmt: skip


@trains
def fused_recurrent_gated_delta_rule(
    query, key, value, g, beta, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
    **kwargs,
):  # fmt: skip
    """As `chunk_gated_delta_rule`."""
    return _delta(
        families["gated_delta_rule"], _OPTIONS, query, key, value, g, beta, initial_state, output_final_state,
        use_qk_l2norm_in_kernel, kwargs,
    )  # fmt: skip


@trains
def chunk_kda(
    query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False,
    use_qk_l2norm_in_kernel=False, **kwargs,
):  # fmt: skip
    """`linattn.kda`; the initial state is overwritten as in `chunk_gated_delta_rule`."""
    return _delta(
        families["kda"], _KDA_OPTIONS, query, key, value, g, beta, initial_state, output_final_state,
        use_qk_l2norm_in_kernel, kwargs,
    )  # fmt: skip


@trains
def fused_recurrent_kda(
    query, key, value, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel=False, **kwargs,
):  # fmt: skip
    """As `chunk_kda`."""
    return chunk_kda(
        query, key, value, g, beta, 64, initial_state, output_final_state, use_qk_l2norm_in_kernel, **kwargs
    )  # fmt: skip
