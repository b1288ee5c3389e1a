"""Cost functions of the forms: flops, bytes and multiply-adds of one head in fp32.

``n`` is the number of tokens, ``d`` the head size (``k`` and ``v`` where keys and values differ),
``m`` the number of random features or landmarks.

    >>> linattn.costs.softmax_flops(4096, 64) / linattn.costs.linear_flops(4096, 64)   # 64.2
    >>> linattn.costs.crossover_tokens(64, 64)   # tokens from which Q(KᵀV) takes fewer: 64

``feature_size(name, head_size, m=0, shifts=1)`` is the number of features a map makes of a head:
64 for ``"elu1"`` of 64, 128 for ``"favor"`` with m = 128, 256 for ``"random_fourier"``. An unknown
name or a missing parameter is a ``ValueError``.
"""

from ._core._plain import plainly as _plainly
from ._linattn import costs as _costs
from ._maps._token_maps import TokenMap as _TokenMap

crossover_tokens = _plainly(_costs.crossover_tokens)
favor_layer_multiply_adds = _plainly(_costs.favor_layer_multiply_adds)
fnet_layer_multiply_adds = _plainly(_costs.fnet_layer_multiply_adds)
linear_flops = _plainly(_costs.linear_flops)
linear_layer_multiply_adds = _plainly(_costs.linear_layer_multiply_adds)
linear_state_bytes = _plainly(_costs.linear_state_bytes)
nystrom_layer_multiply_adds = _plainly(_costs.nystrom_layer_multiply_adds)
quadratic_multiply_adds = _plainly(_costs.quadratic_multiply_adds)
reassociated_multiply_adds = _plainly(_costs.reassociated_multiply_adds)
softmax_flops = _plainly(_costs.softmax_flops)
softmax_layer_multiply_adds = _plainly(_costs.softmax_layer_multiply_adds)
softmax_score_bytes = _plainly(_costs.softmax_score_bytes)



def feature_size(name, head_size, m=0, shifts=1):
    """The number of features that a map makes of a head: a name of the table of maps, or a map
    object of `linattn.feature_maps`, which knows its m and shifts."""
    if isinstance(name, _TokenMap):
        return name.size(head_size)
    return _plainly(_costs.feature_size)(name, head_size, m, shifts)


__all__ = [
    "crossover_tokens",
    "favor_layer_multiply_adds",
    "feature_size",
    "fnet_layer_multiply_adds",
    "linear_flops",
    "linear_layer_multiply_adds",
    "linear_state_bytes",
    "nystrom_layer_multiply_adds",
    "quadratic_multiply_adds",
    "reassociated_multiply_adds",
    "softmax_flops",
    "softmax_layer_multiply_adds",
    "softmax_score_bytes",
]
