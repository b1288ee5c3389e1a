"""Dropout of softmax weights, and softmax in a window mixed with linear attention."""

import ml_dtypes
import numpy as np
import pytest
from conftest import SEED, assert_agrees

import linattn
from linattn import feature_maps, reference
from linattn._reference._dropout import keep, philox

RNG = np.random.default_rng(SEED)


def draw(T=70, Tk=70, heads=(4, 2, 2), K=16, V=12, B=2):
    shapes = ((B, T, heads[0], K), (B, Tk, heads[1], K), (B, Tk, heads[2], V))
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


# ----------------------------------------------------------------------------
# Dropout
# ----------------------------------------------------------------------------


def test_philox_by_published_numbers():
    # Random123's known answers.
    assert [int(word) for word in philox([0] * 4, [0] * 2)] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 2**32 - 1
    assert [int(word) for word in philox([ones] * 4, [ones] * 2)] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    kept = keep(0.25, 7, 2, 4, 100, 100)
    assert abs((kept == 0).mean() - 0.25) < 0.01 and set(np.unique(kept)) == {0, 4 / 3}


DROPPED = {
    "plain": lambda: (draw(), {}),
    "causal": lambda: (draw(T=33), {"causal": True, "softcap": 2.0, "scale": 0.5}),
    "mask": lambda: (draw(heads=(2, 4, 1)), {"causal": True, "mask": RNG.random((2, 70)) > 0.3}),
    "rows": lambda: ([x[0, :, 0] for x in draw(B=1)], {"causal": True}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ("cpu", "reference"))
@pytest.mark.parametrize("name", DROPPED)
def test_dropout(name, target):
    operands, options = DROPPED[name]()
    options = dict(weights="softmax", dropout=0.3, seed=2**40 + 17, **options)
    assert_agrees(linattn.attention(*operands, target=target, **options), reference.attention(*operands, **options))


@pytest.mark.parametrize("dtype", ("bfloat16", "float64"))
def test_dtypes(dtype):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    operands = [x.astype(dtype) for x in draw()]
    options = dict(weights="softmax", causal=True, dropout=0.5, seed=3)
    out = linattn.attention(*operands, **options)
    assert out.dtype == dtype
    assert_agrees(out, reference.attention(*operands, **options), str(dtype))


def test_the_weights_that_are_dropped():
    """Values of a unit matrix show the weights."""
    q, k, _ = draw(T=40, Tk=40)
    unit = np.broadcast_to(np.eye(40, dtype=np.float32)[None, :, None], (2, 40, 1, 40))
    dropped = []
    for target in ("cpu", "reference", "nvvm-emulated"):
        for threads in (1, 2) if target == "cpu" else (1,):
            w = linattn.attention(q, k, unit, weights="softmax", dropout=0.4, seed=11, target=target, num_threads=threads)
            dropped.append(w == 0)
    for other in dropped[1:]:
        np.testing.assert_array_equal(other, dropped[0])
    np.testing.assert_array_equal(dropped[0].swapaxes(1, 2), keep(0.4, 11, 2, 4, 40, 40) == 0)
    other = linattn.attention(q, k, unit, weights="softmax", dropout=0.4, seed=12)
    assert ((other == 0) != dropped[0]).any()


@pytest.mark.parametrize("target", ("cpu", "reference", "nvvm-emulated"))
def test_gradients_of_dropout(target):
    torch = pytest.importorskip("torch")
    operands = [torch.from_numpy(x).requires_grad_() for x in draw(T=20, Tk=30)]
    o = linattn.attention(*operands, weights="softmax", causal=True, dropout=0.3, seed=5, target=target)
    found = torch.autograd.grad(o.square().sum(), operands)
    q, k, v = (x.detach().double().requires_grad_() for x in operands)
    scores = torch.einsum("bihd,bjhd->bhij", q, k.repeat_interleave(2, 2)) / 4
    scores = scores.masked_fill(~torch.ones(20, 30).tril(10).bool(), -torch.inf)
    w = torch.softmax(scores, -1) * torch.from_numpy(keep(0.3, 5, 2, 4, 20, 30))
    expected = torch.einsum("bhij,bjhd->bihd", w, v.repeat_interleave(2, 2))
    assert_agrees(o.detach().numpy(), expected.detach().numpy())
    for gradient, other in zip(found, torch.autograd.grad(expected.square().sum(), (q, k, v))):
        assert float((gradient - other).abs().max() / other.abs().max()) <= 1e-4


def test_gradients_of_dropout_have_the_bits_of_any_number_of_threads():
    torch = pytest.importorskip("torch")
    operands = [torch.from_numpy(x).requires_grad_() for x in draw(T=300, Tk=300)]
    found = []
    for threads in (1, 2):
        o = linattn.attention(*operands, weights="softmax", causal=True, dropout=0.3, seed=5, num_threads=threads)
        found.append(torch.autograd.grad(o.square().sum(), operands))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_layers_draw_seeds():
    torch = pytest.importorskip("torch")
    from linattn.torch import nn

    torch.manual_seed(0)
    layer, x = nn.MultiHeadAttention(32, 2, attention_dropout=0.5), torch.randn(1, 20, 32)
    with torch.no_grad():
        first, second = layer(x), layer(x)
        assert not torch.equal(first, second)
        torch.manual_seed(1)
        third = layer(x)
        torch.manual_seed(1)
        assert torch.equal(layer(x), third)
        assert torch.equal(layer.eval()(x), layer(x))
    with pytest.raises(ValueError, match="cache: expected None with attention_dropout in training"):
        layer.train()(x, cache=nn.Cache())


REFUSED = {
    r"dropout: expected a number in \[0, 1\), but got 1.0": dict(dropout=1, seed=1),
    "dropout: expected a number of at least 0": dict(dropout=-0.1, seed=1),
    "dropout: expected a number or None, but got str": dict(dropout="x", seed=1),
    "seed: expected an integer with dropout, but got None": dict(dropout=0.1),
    r"seed: expected a number in \[0, 2\*\*63\), but got -1": dict(dropout=0.1, seed=-1),
    "seed: expected an integer or an array of one, but got float": dict(dropout=0.1, seed=1.5),
    "dropout: expected weights='softmax' with dropout": dict(dropout=0.1, seed=1, weights="linear"),
    "window: expected none beside dropout, but got one": dict(dropout=0.1, seed=1, window=3),
    "sinks: expected none beside dropout": dict(dropout=0.1, seed=1, sinks=np.zeros(4, np.float32)),
    "dropout: expected 0 and no seed beside groups of queries": dict(dropout=0.1, seed=1, cache_seqlens=[3, 4]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises((ValueError, TypeError), match=message):
        linattn.attention(*draw(), **{"weights": "softmax", **REFUSED[message]})


# ----------------------------------------------------------------------------
# Window and linear attention
# ----------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", ("heads", "tokens"))
@pytest.mark.parametrize("feature_map", ("elu", "exp", feature_maps.taylor()), ids=("elu", "exp", "taylor"))
@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16"))
def test_hybrid(dtype, feature_map, shape):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    operands = [x.astype(dtype) for x in draw(40, 40, K=8)]
    share = RNG.random(4 if shape == "heads" else (2, 40, 4), dtype=np.float32)
    options = dict(window=6, feature_map=feature_map, scale=0.5)
    out = linattn.hybrid(*operands, share, **options)
    assert out.dtype == dtype
    assert_agrees(out, reference.hybrid(*operands, share, **options), str(dtype), scale=1.0)


def test_hybrid_at_its_ends():
    q, k, v = draw()
    near = linattn.attention(q, k, v, causal=True, weights="softmax", window=9)
    far = linattn.attention(q, k, v, causal=True)
    assert_agrees(linattn.hybrid(q, k, v, np.ones(4, np.float32), window=9), near)
    assert_agrees(linattn.hybrid(q, k, v, np.zeros(4, np.float32), window=9), far)


def test_gradients_of_hybrid():
    torch = pytest.importorskip("torch")
    operands = [torch.from_numpy(x).requires_grad_() for x in (*draw(20, 20, (2, 2, 2)), RNG.random(2, dtype=np.float32))]
    found = torch.autograd.grad(linattn.hybrid(*operands, window=4, normalize=False).square().sum(), operands)
    q, k, v, share = (x.detach().double().requires_grad_() for x in operands)
    near = torch.ones(20, 20).tril().triu(-3).bool()
    scores = torch.einsum("bihd,bjhd->bhij", q, k)
    w = torch.softmax((scores / 4).masked_fill(~near, -torch.inf), -1)
    phi_q, phi_k = (torch.nn.functional.elu(x) + 1 for x in (q, k))
    far = torch.einsum("bihd,bjhd->bhij", phi_q, phi_k).tril()
    mixed = share[:, None, None] * w + (1 - share[:, None, None]) * far
    o = torch.einsum("bhij,bjhd->bihd", mixed, v)
    for gradient, other in zip(found, torch.autograd.grad(o.square().sum(), (q, k, v, share))):
        assert float((gradient - other).abs().max() / other.abs().max()) <= 1e-4


@pytest.mark.parametrize("options, message", (
    (dict(window=0), r"window: expected a number in \[1, 2\*\*31\), but got 0"),
    (dict(window=None), "window: expected an integer, but got NoneType"),
    (dict(window=3, eps=1.0, normalize=False), "eps: expected it only with normalize=True"),
))  # fmt: skip
def test_hybrid_refuses(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        linattn.hybrid(*draw(), np.ones(4, np.float32), **options)
    with pytest.raises(ValueError, match=r"share: expected shape .*but got \(3,\)"):
        linattn.hybrid(*draw(), np.ones(3, np.float32), window=3)
