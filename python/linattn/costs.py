"""Cost functions of the forms: flops, bytes and multiply-adds of one head in fp32.

``n`` is the number of tokens, ``d`` the head size (``k`` and ``v`` where keys and values differ),
``m`` the number of random features or landmarks, ``r`` the rank of a projection. Functions named
``_layer_multiply_adds`` give the growth of a layer's cost, its leading term; ``_multiply_adds`` counts all products.
``_score_bytes`` are those of the scores that the formula has; a compiled function keeps a tile of them.

    >>> linattn.costs.softmax_flops(4096, 64) / linattn.costs.linear_flops(4096, 64)   # 64.2
    >>> linattn.costs.crossover_tokens(64, 64)   # tokens from which Q(KᵀV) takes fewer: 64

``feature_size(name, head_size, m=0, shifts=1)`` is the number of features a map makes of a head:
64 for ``"elu"`` of 64, 128 for ``"favor"`` with m = 128, 256 for ``"random_fourier"``. An unknown
name or a missing parameter is a ``ValueError``.
"""

import math as _math

from ._core._checks import check_flag as _check_flag, check_number as _check_number
from ._core._plain import plainly as _plainly
from ._linattn import costs as _costs
from ._maps._features import KNOWN as _KNOWN
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

_FLOAT = 4  # bytes


def feature_size(name, head_size, m=0, shifts=1):
    """The number of features that a map makes of a head: a name of the table of maps or of `linattn.attention`, or a
    map object of `linattn.feature_maps`, which knows its m and shifts."""
    if isinstance(name, _TokenMap):
        return name.size(head_size)
    return _plainly(_costs.feature_size)(_KNOWN.get(name, name), head_size, m, shifts)


def _check(least=0, **sizes):
    for name, size in sizes.items():
        if _check_number(name, size, least) is None:
            raise TypeError(f"{name}: expected a number, but got None")


# ----------------------------------------------------------------------------
# Relatives of softmax
# ----------------------------------------------------------------------------


def linformer_multiply_adds(n, d, r):
    """Multiply-adds of `linattn.linformer` with r sums: 2nrd of the sums, 2nrd of scores and values."""
    _check(n=n, d=d, r=r)
    return 4 * n * r * d


def linformer_score_bytes(n, r):
    """Bytes of Linformer's n × r scores."""
    _check(n=n, r=r)
    return _FLOAT * n * r


def nystrom_multiply_adds(n, d, m, iterations=6):
    """Multiply-adds of `linattn.nystrom` with m landmarks: 4nmd of the two outer products with their scores, 2m²d
    of the landmarks' scores and values, 4m³ of each iteration. The means of segments are additions."""
    _check(n=n, d=d, m=m, iterations=iterations)
    return 4 * n * m * d + 2 * m * m * d + 4 * iterations * m**3


def nystrom_score_bytes(n, m):
    """Bytes of Nyström's scores: n × m, m × n and m × m."""
    _check(n=n, m=m)
    return _FLOAT * (2 * n * m + m * m)


def fnet_flops(n, d):
    """Flops of the two transforms of `linattn.fnet` over n tokens and d features: 1.25 nd log₂(nd), a quarter of the
    5 N log₂ N of a complex transform of powers of two, since it has real numbers and works on half of them."""
    _check(1, n=n, d=d)
    return 1.25 * n * d * _math.log2(n * d)


def fnet_spectrum_bytes(n, d):
    """Bytes of the (⌊n/2⌋ + 1) × (⌊d/2⌋ + 1) complex numbers between the two transforms of `linattn.fnet`."""
    _check(1, n=n, d=d)
    return 2 * _FLOAT * (n // 2 + 1) * (d // 2 + 1)


# ----------------------------------------------------------------------------
# Softmax to some of the keys
# ----------------------------------------------------------------------------


def window_scores(n, window=None, dilation=1, global_tokens=0, causal=False):
    """The number of scores of `linattn.attention` with these options, for n queries and n keys."""
    causal = _check_flag("causal", causal)
    _check(n=n, global_tokens=global_tokens)
    _check(1, dilation=dilation, **({} if window is None else {"window": window}))
    # A pattern depends on distances alone, so that tokens behind the global ones have that of fewer tokens.
    rest = max(n - global_tokens, 0)
    distances = -(-rest // dilation)
    if window is not None:
        distances = min(distances, window)
    near = distances * rest - dilation * distances * (distances - 1) // 2
    if causal:
        return near + (n * (n + 1) - rest * (rest + 1)) // 2
    return 2 * near - rest + n * n - rest * rest


def window_multiply_adds(n, d, window=None, dilation=1, global_tokens=0, causal=False):
    """Multiply-adds of softmax attention with these options: 2d per score."""
    _check(d=d)
    return 2 * d * window_scores(n, window, dilation, global_tokens, causal)


def window_score_bytes(n, window=None, dilation=1, global_tokens=0, causal=False):
    """Bytes of the scores of `window_scores`."""
    return _FLOAT * window_scores(n, window, dilation, global_tokens, causal)


def block_multiply_adds(blocks, block_size, d):
    """Multiply-adds of softmax attention with a `block_mask` of so many true blocks, ``mask.sum()``: 2d per score
    of whole blocks."""
    _check(blocks=blocks, block_size=block_size, d=d)
    return 2 * blocks * block_size * block_size * d


def block_score_bytes(blocks, block_size):
    """Bytes of the scores of so many blocks."""
    _check(blocks=blocks, block_size=block_size)
    return _FLOAT * blocks * block_size * block_size


def hybrid_multiply_adds(n, d, window, features=None):
    """Multiply-adds of `linattn.hybrid`: those of the causal window, and 2nfd of a linear attention with f
    features, `feature_size` of its map; d unless given."""
    features = d if features is None else features
    _check(features=features)
    return window_multiply_adds(n, d, window, causal=True) + 2 * n * features * d


def hybrid_state_bytes(d, window, features=None):
    """Bytes that the next token of a hybrid needs, for any n: keys and values of the window, the f × d state and
    its normalizer."""
    features = d if features is None else features
    _check(d=d, window=window, features=features)
    return _FLOAT * (2 * window * d + features * d + features)


# ----------------------------------------------------------------------------
# Decoding from pages
# ----------------------------------------------------------------------------


def paged_decode_multiply_adds(n, d, queries=1):
    """Multiply-adds of softmax attention of new tokens to the n keys of a cache: 2nd each. `queries` are the new
    tokens times the query heads of a key head."""
    _check(n=n, d=d, queries=queries)
    return 2 * n * d * queries


def paged_decode_bytes(n, d, block_size):
    """Bytes of the pages of keys and values that hold n tokens, ``block_size`` in each; a step of `linattn.attention`
    with a ``block_table`` reads all of them, the last one whole."""
    _check(n=n, d=d)
    _check(1, block_size=block_size)
    return 2 * _FLOAT * -(-n // block_size) * block_size * d


__all__ = [
    "block_multiply_adds",
    "block_score_bytes",
    "crossover_tokens",
    "favor_layer_multiply_adds",
    "feature_size",
    "fnet_flops",
    "fnet_layer_multiply_adds",
    "fnet_spectrum_bytes",
    "hybrid_multiply_adds",
    "hybrid_state_bytes",
    "linear_flops",
    "linear_layer_multiply_adds",
    "linear_state_bytes",
    "linformer_multiply_adds",
    "linformer_score_bytes",
    "nystrom_layer_multiply_adds",
    "nystrom_multiply_adds",
    "nystrom_score_bytes",
    "paged_decode_bytes",
    "paged_decode_multiply_adds",
    "quadratic_multiply_adds",
    "reassociated_multiply_adds",
    "softmax_flops",
    "softmax_layer_multiply_adds",
    "softmax_score_bytes",
    "window_multiply_adds",
    "window_score_bytes",
    "window_scores",
]
