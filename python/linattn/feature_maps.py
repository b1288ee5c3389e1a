"""Feature maps of whole tokens, and the functions that others may be made of.

The maps take their parameters, arrays of any library, and go wherever a
``feature_map`` is an argument:

    >>> from linattn import feature_maps as fm
    >>> W = linattn.random_projection(256, 64, seed=0)
    >>> o = linattn.attention(q, k, v, feature_map=fm.favor(W), causal=True)
    >>> o = linattn.attention(q, k, v, feature_map=fm.hedgehog(Wq, Wk))

W is ``[m, d]``, or ``[H, m, d]`` with a matrix for each head of the queries or
keys. ``a.with_keys(b)`` maps queries by a and keys by b. ``softmax()``, ``l2norm(eps)``,
``sum_norm(eps)``, ``hadamard(W1, W2)``, ``outer_product(W1, W2)`` and any map below without a
function of its own are made from the compiler's table of maps.

The functions work on the number that a feature map is traced on, on plain numbers and on
arrays alike; NumPy's functions of the same names do too.

    >>> import linattn
    >>> from linattn import feature_maps as fm
    >>> o = linattn.attention(q, k, v, feature_map=lambda x: fm.softplus(x) ** 2)
"""

import inspect as _inspect
from functools import partial as _partial

from . import _linattn
from ._core._checks import check_flag as _flag, check_number as _number
from ._maps._token_maps import TokenMap, array_shape as _shape
from ._maps._trace import apply as _apply

__all__ = [
    "TokenMap", "cosformer", "dpfp", "favor", "hedgehog", "random_fourier", "rebased", "t2r", "taylor",
    "abs", "ceil", "clip", "cos", "erf", "exp", "exp2", "expm1", "floor", "gelu", "log", "log1p",
    "log2", "maximum", "minimum", "relu", "sigmoid", "sign", "silu", "sin", "softplus", "sqrt",
    "square", "tanh", "where",
]  # fmt: skip

abs = _partial(_apply, "absolute")
ceil = _partial(_apply, "ceil")
cos = _partial(_apply, "cos")
erf = _partial(_apply, "erf")
exp = _partial(_apply, "exp")
exp2 = _partial(_apply, "exp2")
expm1 = _partial(_apply, "expm1")
floor = _partial(_apply, "floor")
log = _partial(_apply, "log")
log1p = _partial(_apply, "log1p")
log2 = _partial(_apply, "log2")
maximum = _partial(_apply, "maximum")
minimum = _partial(_apply, "minimum")
sign = _partial(_apply, "sign")
sin = _partial(_apply, "sin")
sqrt = _partial(_apply, "sqrt")
square = _partial(_apply, "square")
tanh = _partial(_apply, "tanh")
where = _partial(_apply, "where")


def clip(x, low, high):
    """`x` limited to [low, high]."""
    return minimum(maximum(x, low), high)


def relu(x):
    """max(x, 0)"""
    return maximum(x, 0.0)


def sigmoid(x):
    """1 / (1 + e^-x)"""
    return 1.0 / (1.0 + exp(-x))


def silu(x):
    """x · sigmoid(x)"""
    return x * sigmoid(x)


def softplus(x):
    """log(1 + e^x), without overflow."""
    return maximum(x, 0.0) + log1p(exp(-abs(x)))


def gelu(x):
    """x · Φ(x), with the normal distribution's Φ."""
    return x * (0.5 * (1.0 + erf(x * 0.7071067811865476)))


# ----------------------------------------------------------------------------
# Maps of whole tokens
# ----------------------------------------------------------------------------


def _integer(name, value):
    import operator

    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, but got {type(value).__name__}") from None


def _matrices(**matrices):
    for name, w in matrices.items():
        if len(_shape(name, getattr(w, "matrix", w))) not in (2, 3):
            raise ValueError(f"{name}: expected shape (m, d) or (H, m, d), but got {_shape(name, w)}")
    return matrices


def favor(W, *, hyperbolic=False, scale=None):
    """FAVOR+, positive random features: m^-½ e^(Wx − x·x/2), or with ``hyperbolic``
    (2m)^-½ e^([Wx, −Wx] − x·x/2).

    φ(q)·φ(k) estimates e^(q·k) without bias if the rows of W are N(0, I) or
    orthogonal with such norms: `linattn.random_projection`, or a
    `linattn.RandomProjection` that is drawn anew for every call. ``scale``
    multiplies x beforehand; d^-¼ unless given, so that normalised attention
    estimates softmax(QKᵀ/√d).

    Normalised, it is stabilised: each query by the maximum of its exponents, the
    keys by one constant of the head, causally the running maximum, as for
    ``"exp"``. The eps of the normaliser meets the stabilised denominator.

    Choromanski et al., "Rethinking attention with Performers", 2021.
    """
    _matrices(W=W)
    scale = _number("scale", scale)
    if scale is None:
        scale = _shape("W", getattr(W, "matrix", W))[-1] ** -0.25
    name = "favor_hyperbolic" if _flag("hyperbolic", hyperbolic) else "favor"
    return TokenMap(name, {"W": W}, {"log": True, "scale": scale})


def random_fourier(W, *, exponential=False, scale=None):
    """Random Fourier features m^-½ [sin Wx, cos Wx]: φ(q)·φ(k) estimates
    e^(−‖q−k‖²/2); with ``exponential``, which multiplies by e^(x·x/2), e^(q·k).
    Weights may be negative, and their sum near 0: a normaliser then divides rounding
    too, which costs float32 about 6e-8 Σ|w| / |Σw| of the output several times over.
    Rahimi and Recht, 2007; Peng et al., "Random feature attention", 2021 (on unit q and k).
    """
    name = "random_fourier_exp" if _flag("exponential", exponential) else "random_fourier"
    return TokenMap(name, _matrices(W=W), {"scale": _number("scale", scale)})


def cosformer(positions=None, *, max_length):
    """[relu(x) cos(πt/2M), relu(x) sin(πt/2M)], M = ``max_length`` ≥ the number of
    tokens: relu attention that fades with distance.

    ``positions`` are int32 or int64, ``[T]`` or ``[B, T]``, of queries and keys
    alike (``a.with_keys(b)`` gives keys others); 0, 1, 2, … unless given, and
    needed where tokens follow a state. Qin et al., "cosFormer", 2022.
    """
    return TokenMap("cosformer", {}, {"max_length": _integer("max_length", max_length)}, positions)


def hedgehog(W, W_key=None, *, softmax=True):
    """softmax([Wx, −Wx]), or e^[Wx, −Wx] (stabilised where normalised) without
    ``softmax``; W ``[d, d]``, trained, for queries and, unless ``W_key`` is given, keys.
    flash-linear-attention doubles the logits: pass 2·W for its map. Zhang et al.,
    "The Hedgehog & the Porcupine", 2024.
    """
    _matrices(W=W, **({} if W_key is None else {"W_key": W_key}))
    is_softmax = _flag("softmax", softmax)
    name, options = ("hedgehog", {}) if is_softmax else ("hedgehog_exp", {"log": True})
    queries = TokenMap(name, {"W": W}, options)
    return queries if W_key is None else queries.with_keys(TokenMap(name, {"W": W_key}, options))


def dpfp(shifts=1):
    """r ⊙ roll(r, j) for j = 1 … ``shifts``, r = relu([x, −x]): 2d·shifts features.
    Schlag et al., "Linear transformers are secretly fast weight programmers", 2021.
    """
    return TokenMap("dpfp", {}, {"shifts": _integer("shifts", shifts)})


def taylor(*, symmetric=True):
    """1 + y + y²/2 for y = q·k/√d, the exponential to second order, always positive:
    1 + d + d(d + 1)/2 features, or 1 + d + d² where not ``symmetric``. Arora et al.,
    "Simple linear attention language models" (Based), 2024. The features are
    stored for every token: project to a small d, such as 16, before.
    """
    return TokenMap("taylor" if _flag("symmetric", symmetric) else "taylor_full")


def rebased(gamma, beta, *, eps=1e-5):
    """(q̂·k̂)²/d with x̂ = γ ⊙ LN(x) + β; γ and β ``[d]`` or ``[H, d]``. Aksenov et al.,
    "Linear transformers with learnable kernel functions" (ReBased), 2024.
    """
    return TokenMap("rebased", {"gamma": gamma, "beta": beta}, {"eps": _number("eps", eps, 0.0)})


def t2r(W, b=None):
    """relu(Wx + b); b ``[m]`` or ``[H, m]``. Kasai et al., "Finetuning pretrained
    transformers into RNNs", 2021.
    """
    return TokenMap("t2r", _matrices(W=W) if b is None else {**_matrices(W=W), "b": b})


def _make(row):
    """The function of a map that takes its parameters, eps and shifts, and nothing else."""
    names = [name for name, _, _ in row["parameters"]]
    defaults = {name: None if optional else _inspect.Parameter.empty for name, _, optional in row["parameters"]}
    if row["eps"] is not None:
        defaults["eps"] = row["eps"]
    if row["shifts"]:
        defaults["shifts"] = 1
    kind = _inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = _inspect.Signature(
        [_inspect.Parameter(name, kind, default=default) for name, default in defaults.items()]
    )

    def function(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        given = given.arguments
        arrays = {name: given[name] for name in names if given[name] is not None or defaults[name] is not None}
        _matrices(**{name: arrays[name] for name, matrix, _ in row["parameters"] if matrix})
        options = {}
        if "eps" in given:
            options["eps"] = _number("eps", given["eps"], 0.0)
        if "shifts" in given:
            options["shifts"] = _integer("shifts", given["shifts"])
        return TokenMap(row["name"], arrays, options)

    function.__name__ = function.__qualname__ = row["name"]
    function.__signature__ = signature
    shapes = [f"{name} {'[m, d] or [H, m, d]' if matrix else '[n] or [H, n]'}" for name, matrix, _ in row["parameters"]]
    text = "; ".join([row["formula"], *shapes]) + "."
    function.__doc__ = f"{text} {row['source']}." if row["source"] else text
    return function


# Maps that have no function above: hadamard, outer_product, softmax, l2norm, sum_norm.
for _row in _linattn.costs.token_maps():
    if _row["name"] not in globals() and not _row["variant"]:
        globals()[_row["name"]] = _make(_row)
        __all__ += [_row["name"]]
del _row
