"""The functions of flash-linear-attention, under their names and signatures.

A program that imports them from ``fla.ops`` runs on a CPU with another import:

    >>> from linattn.fla import chunk_gated_delta_rule
    >>> o, final_state = chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)

Arrays are ``[B, T, H, D]``, of any library that speaks DLPack, float32 included
everywhere; results are ``(o, final_state)``, o alone for based and rebased. The chunk, fused_chunk, fused_recurrent
and parallel functions of a family compute the same and differ in their parameters
alone: the compiler chooses the form. Unlike the original, an unknown keyword, a
shape or dtype that does not fit and an option that means nothing without another
are errors. Tensors of PyTorch record gradients.

MesaNet, TTT with its layer norm and stick-breaking attention, which are not linear
recurrences, and what is between the two scans of CyFA run in NumPy, on the CPU. Not
here are softmax attention (``parallel_attn`` and its kin), Titans and preconditioned
delta rules. Names and parameters are those of flash-linear-attention 0.6.0.
"""

from ._additive import (
    chunk_gla, chunk_hgrn, chunk_lightning_attn, chunk_linear_attn, chunk_retention, chunk_rwkv6,
    chunk_simple_gla, fused_chunk_linear_attn, fused_chunk_retention, fused_chunk_simple_gla,
    fused_recurrent_gla, fused_recurrent_hgrn, fused_recurrent_lightning_attn,
    fused_recurrent_linear_attn, fused_recurrent_retention, fused_recurrent_rwkv6,
    fused_recurrent_simple_gla, parallel_retention, parallel_simple_gla,
)  # fmt: skip
from ._delta import (
    chunk_comba, chunk_delta_rule, chunk_dplr_delta_rule, chunk_gated_delta_product,
    chunk_gated_delta_rule, chunk_gdn, chunk_gdn2, chunk_iplr_delta_rule, chunk_kda, chunk_rwkv7,
    fused_mul_recurrent_rwkv7, fused_recurrent_comba, fused_recurrent_delta_rule,
    fused_recurrent_dplr_delta_rule, fused_recurrent_gated_delta_rule, fused_recurrent_gdn,
    fused_recurrent_gdn2, fused_recurrent_iplr_delta_rule, fused_recurrent_kda, fused_recurrent_rwkv7,
    parallel_delta_rule,
)  # fmt: skip
from ._host import (
    chunk_cyfa, chunk_mesa_net, chunk_ttt_linear, fused_chunk_ttt_linear, fused_recurrent_cyfa,
    mesa_net_decoding_one_step, parallel_stickbreaking_attn,
)  # fmt: skip
from ._polynomials import fused_chunk_based, parallel_based, parallel_rebased
from ._recent import (
    chunk_gated_oja_rule, chunk_lightnet, chunk_log_linear_attn, chunk_momentum_delta_rule,
    fused_recurrent_gated_oja_rule, fused_recurrent_lightnet, fused_recurrent_momentum_delta_rule,
    fused_recurrent_rwkv4,
)  # fmt: skip
from ._slots import chunk_abc, chunk_gsa, fused_recurrent_gsa

__all__ = [name for name in dir() if name.startswith(("chunk_", "fused_", "mesa_", "parallel_"))]
