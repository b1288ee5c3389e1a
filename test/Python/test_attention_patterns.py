"""Windows, dilations, global tokens, softcap, slopes and sinks of `attention`."""

import numpy as np
import pytest
from conftest import SEED, assert_agrees

import linattn
from linattn import reference

RNG = np.random.default_rng(SEED)


def draw(T, Tk, Hq=4, H=2, K=24, V=40, B=2):
    shapes = ((B, T, Hq, K), (B, Tk, H, K), (B, Tk, H, V))
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


# Windows below, at and beyond blocks of keys; globals that meet the window and that do not.
PATTERNS = {
    "window": dict(window=9),
    "wide": dict(window=70),
    "one": dict(window=1),
    "dilated": dict(window=5, dilation=3),
    "strided": dict(dilation=4),
    "globals": dict(window=17, global_tokens=3),
    "dilated-globals": dict(window=4, dilation=2, global_tokens=5),
    "strided-globals": dict(dilation=7, global_tokens=2),
}
SCORES = {
    "plain": lambda: {},
    "softcap": lambda: {"softcap": 1.5},
    "slopes": lambda: {"slopes": RNG.random(4, dtype=np.float32)},
    "sinks": lambda: {"sinks": 3 * RNG.standard_normal(4, dtype=np.float32)},
    "all": lambda: {
        "softcap": 2.0,
        "slopes": RNG.random(4, dtype=np.float32) / 8,
        "sinks": np.float32([-np.inf, 0.0, 4.0, -4.0]),
    },
}


def by_formula(q, k, v, causal, window=None, dilation=1, global_tokens=0, softcap=None, slopes=None, sinks=None):
    """Softmax attention in NumPy, with a T×Tk array of what each query sees."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    T, Tk, heads = q.shape[1], k.shape[1], q.shape[2]
    k, v = (np.repeat(x, heads // x.shape[2], axis=2) for x in (k, v))
    p, j = np.arange(Tk - T, Tk)[:, None], np.arange(Tk)[None]
    sees = abs(p - j) % dilation == 0
    if window is not None:
        sees &= abs(p - j) < window * dilation
    sees |= (j < global_tokens) | (p < global_tokens)
    if causal:
        sees &= j <= p
    s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    if softcap is not None:
        s = softcap * np.tanh(s / softcap)
    if slopes is not None:
        s = s - slopes[:, None, None] * abs(p - j)
    s = np.where(sees, s, -np.inf)
    sink = np.full(heads, -np.inf) if sinks is None else np.asarray(sinks, np.float64)
    s = np.concatenate([np.broadcast_to(sink[:, None, None], s.shape[:3] + (1,)), s], axis=-1)
    w = np.exp(s - s.max(-1, keepdims=True))
    w = (w / w.sum(-1, keepdims=True))[..., 1:]
    return np.einsum("bhij,bjhd->bihd", w, v)


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("pattern", (*PATTERNS, "none"))
def test_the_oracle_is_the_formula(pattern, scores, causal):
    q, k, v = draw(11, 29)
    options = {**PATTERNS.get(pattern, {}), **SCORES[scores]()}
    expected = by_formula(q, k, v, causal, **options)
    out = reference.attention(*(x.astype(np.float64) for x in (q, k, v)), causal=causal, weights="softmax", **options)
    assert_agrees(out, expected)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("target", ("cpu", "reference"))
@pytest.mark.parametrize("T, Tk", ((150, 150), (1, 150), (37, 150), (5, 5)))
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("pattern", (*PATTERNS, "none"))
def test_softmax_agrees(pattern, scores, causal, T, Tk, target):
    q, k, v = draw(T, Tk)
    options = {**PATTERNS.get(pattern, {}), **SCORES[scores](), "causal": causal, "weights": "softmax"}
    out = linattn.attention(q, k, v, target=target, **options)
    assert_agrees(out, reference.attention(q, k, v, **options))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("feature_map", ("elu", "exp"))
@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_linear_weights_agree(pattern, causal, feature_map):
    q, k, v = draw(90, 90)
    mask = RNG.random((2, 90)) > 0.2
    options = {**PATTERNS[pattern], "causal": causal, "feature_map": feature_map, "mask": mask}
    assert_agrees(linattn.attention(q, k, v, **options), reference.attention(q, k, v, **options))


@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float64"))
def test_dtypes(dtype):
    import ml_dtypes

    q, k, v = (x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for x in draw(70, 70))
    options = dict(causal=True, weights="softmax", window=20, softcap=5.0, sinks=np.zeros(4, np.float32))
    assert_agrees(linattn.attention(q, k, v, **options), reference.attention(q, k, v, **options), dtype)


@pytest.mark.parametrize("options", (dict(causal=True, window=6, global_tokens=2), dict(window=6), dict(dilation=3)))
@pytest.mark.parametrize("T", (3, 100))
def test_what_is_out_of_sight_does_not_matter(T, options):
    q, k, v = draw(T, 100)
    w = reference.weights(q, k, weights="softmax", **options)
    for token in RNG.choice(100, 5, replace=False):
        hidden = (w[:, :, :, token] == 0).all(axis=(0, 1))
        broken_k, broken_v = k.copy(), v.copy()
        broken_k[:, token], broken_v[:, token] = np.nan, np.nan
        out = linattn.attention(q, k, v, weights="softmax", **options)
        broken = linattn.attention(q, broken_k, broken_v, weights="softmax", **options)
        np.testing.assert_array_equal(broken[:, hidden], out[:, hidden])


def test_a_window_as_wide_as_the_keys_is_none():
    q, k, v = draw(64, 64)
    whole = linattn.attention(q, k, v, causal=True, weights="softmax")
    np.testing.assert_array_equal(linattn.attention(q, k, v, causal=True, weights="softmax", window=64), whole)


def test_queries_follow_a_cache_of_keys():
    q, k, v = draw(80, 80)
    whole = linattn.attention(q, k, v, causal=True, weights="softmax", window=30)
    parts = [
        linattn.attention(q[:, t : t + 20], k[:, : t + 20], v[:, : t + 20], causal=True, weights="softmax", window=30)
        for t in range(0, 80, 20)
    ]
    assert_agrees(np.concatenate(parts, axis=1), whole)


@pytest.mark.parametrize("options, error, message", (
    (dict(window=0), ValueError, r"window: expected a number in \[1, 2\*\*31\), but got 0"),
    (dict(window=2.5), TypeError, "window: expected an integer, but got float"),
    (dict(dilation=0), ValueError, "dilation: expected a number in"),
    (dict(global_tokens=2), ValueError, "global_tokens: expected a window or dilation beside them, but got neither"),
    (dict(window=4, prefix=2, causal=True), ValueError, "prefix: expected either a prefix or a window"),
    (dict(window=4, return_state=True), ValueError, "return_state: expected no window"),
    (dict(window=4, form="chunk"), ValueError, "form: expected auto or quadratic with a window"),
    (dict(softcap=2.0), ValueError, "softcap: expected weights='softmax' with softcap"),
    (dict(slopes=np.zeros(2, np.float32)), ValueError, "slopes: expected weights='softmax' with slopes"),
    (dict(sinks=np.zeros(2, np.float32)), ValueError, "sinks: expected weights='softmax' with sinks"),
    (dict(softcap=-1.0, weights="softmax"), ValueError, "softcap: expected a positive number, but got -1.0"),
    (dict(sinks=np.zeros(3, np.float32), weights="softmax"), ValueError, r"sinks: expected shape"),
    (dict(slopes=np.zeros(2, np.int32), weights="softmax"), TypeError, "slopes: expected dtype"),
))  # fmt: skip
def test_errors(options, error, message):
    q, k, v = draw(6, 6, Hq=2)
    with pytest.raises(error, match=message):
        linattn.attention(q, k, v, **options)


@pytest.mark.parametrize("options", (
    dict(causal=True, window=7, global_tokens=2),
    dict(window=4, dilation=2, softcap=2.0),
    dict(causal=True, slopes=True, sinks=True),
))  # fmt: skip
def test_gradients(options):
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(SEED)

    def make(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    q, k, v, d = make(1, 20, 4, 8), make(1, 20, 2, 8), make(1, 20, 2, 6), make(1, 20, 4, 6).detach()
    names = [name for name in ("slopes", "sinks") if options.get(name)]
    per_head = [make(4) for _ in names]
    rest = {name: value for name, value in options.items() if name not in names}

    out = linattn.attention(q, k, v, weights="softmax", **rest, **dict(zip(names, per_head)))
    got = torch.autograd.grad(out, (q, k, v, *per_head), d)
    # The same by PyTorch's own operators.
    T = torch.arange(20)
    distance = (T[:, None] - T[None]).abs()
    sees = distance % rest.get("dilation", 1) == 0
    if "window" in rest:
        sees &= distance < rest["window"] * rest.get("dilation", 1)
    g = rest.get("global_tokens", 0)
    sees |= (T[None] < g) | (T[:, None] < g)
    if rest.get("causal"):
        sees &= T[None] <= T[:, None]
    s = torch.einsum("bihd,bjhd->bhij", q, k.repeat_interleave(2, 2)) / 8**0.5
    if "softcap" in rest:
        s = rest["softcap"] * torch.tanh(s / rest["softcap"])
    numbers = dict(zip(names, per_head))
    if "slopes" in numbers:
        s = s - numbers["slopes"][:, None, None] * distance
    s = s.masked_fill(~sees, -torch.inf)
    if "sinks" in numbers:
        s = torch.cat([s, numbers["sinks"][None, :, None, None].expand(1, 4, 20, 1)], -1)
    w = torch.softmax(s, -1)[..., :20]
    expected = torch.autograd.grad(torch.einsum("bhij,bjhd->bihd", w, v.repeat_interleave(2, 2)), (q, k, v, *per_head), d)
    for a, b in zip(got, expected):
        assert_agrees(a.detach().numpy(), b.detach().numpy())
