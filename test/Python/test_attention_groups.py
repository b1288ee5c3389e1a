"""Softmax attention of packed sequences, caches by lengths and pages, and blocks."""

import ml_dtypes
import numpy as np
import pytest
from conftest import SEED, assert_agrees

import linattn
from linattn import reference

RNG = np.random.default_rng(SEED)
ENDS, KEY_ENDS = [0, 33, 33, 40, 90], [0, 50, 53, 60, 101]
LENGTHS, PAGE = np.int64([5, 70, 0, 33]), 8


def draw(B=1, T=90, Tk=90, heads=(4, 2, 2), K=24, V=16):
    shapes = ((B, T, heads[0], K), (B, Tk, heads[1], K), (B, Tk, heads[2], V))
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


def draw_pages(T=3):
    q, k, v = draw(4, T, 80)
    pool = [RNG.standard_normal((45, PAGE, *x.shape[2:]), dtype=np.float32) for x in (k, v)]
    return (q, *pool), {"block_table": RNG.permutation(45)[:40].reshape(4, 10).astype(np.int32), "cache_seqlens": LENGTHS}


def draw_blocks(T=90, size=16, B=2, **options):
    mask = linattn.block_mask(-(-T // size), window=1, random_blocks=2, seed=SEED, **options)
    return draw(B, T, T), {"block_mask": mask, "block_size": size}


CASES = {
    "packed": lambda: (draw(), {"cu_seqlens": ENDS}),
    "packed-keys": lambda: (draw(Tk=101), {"cu_seqlens": np.int32(ENDS), "cu_seqlens_k": np.int32(KEY_ENDS)}),
    "lengths": lambda: (draw(4, 3, 80), {"cache_seqlens": LENGTHS}),
    "pages": draw_pages,
    "blocks": draw_blocks,
}
MORE = {
    "plain": {},
    "causal": {"causal": True},
    "scores": {"causal": True, "softcap": 2.0, "sinks": np.float32([0, 1, -1, 2]), "scale": 0.3},
    "window": {"causal": True, "window": 7, "slopes": np.float32([0.1, 0.2, 0.0, 0.4])},
    # A query's position is then a matter of the whole group.
    "both-sides": {"window": 7, "global_tokens": 2, "slopes": np.float32([0.1, 0.2, 0.0, 0.4])},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ("cpu", "reference", "nvvm-emulated"))
@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("name", CASES)
def test_values(name, more, target):
    operands, groups = CASES[name]()
    if name == "blocks" and more in ("window", "both-sides"):
        more = "scores"
    options = {"weights": "softmax", **groups, **MORE[more]}
    assert_agrees(linattn.attention(*operands, target=target, **options), reference.attention(*operands, **options))


@pytest.mark.parametrize("target", ("cpu", "nvvm-emulated"))
@pytest.mark.parametrize("name", ("packed", "lengths"))
def test_masks(name, target):
    operands, groups = CASES[name]()
    groups["mask"] = RNG.random(operands[1].shape[:2]) > 0.3
    options = {"weights": "softmax", "causal": True, **groups}
    assert_agrees(linattn.attention(*operands, target=target, **options), reference.attention(*operands, **options))


def test_sequences_out_of_range_on_a_gpu():
    """A launch checks no elements: what a length or a page breaks is NaN, and its neighbours are themselves."""
    operands, groups = draw_pages()
    options = {"weights": "softmax", "causal": True, "target": "nvvm-emulated"}
    expected = linattn.attention(*operands, **options, **groups)
    make = linattn._recurrence._plans.find(("grouped", "pages", (), None, True, None, None, None, "nvvm-emulated"))
    for name, at, value in (("block_table", (1, 2), 45), ("block_table", (1, 0), -1), ("cache_seqlens", (1,), 81)):
        wrong = {key: array.copy() for key, array in groups.items()}
        wrong[name][at] = value
        found = make((*operands, wrong["block_table"], wrong["cache_seqlens"]), None, None, False, None)
        assert np.isnan(found[1]).all()
        np.testing.assert_array_equal(found[[0, 2, 3]], expected[[0, 2, 3]])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float64"))
def test_dtypes(name, dtype):
    operands, groups = CASES[name]()
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    operands = [x.astype(dtype) for x in operands]
    out = linattn.attention(*operands, weights="softmax", **groups)
    assert out.dtype == dtype
    assert_agrees(out, reference.attention(*operands, weights="softmax", **groups), str(dtype))


def test_sequences_have_the_bits_of_calls_of_their_own():
    q, k, v = draw()
    packed = linattn.attention(q, k, v, weights="softmax", causal=True, cu_seqlens=ENDS, num_threads=2)
    for begin, end in zip(ENDS, ENDS[1:]):
        alone = [x[:, begin:end] for x in (q, k, v)]
        alone = linattn.attention(*alone, weights="softmax", causal=True, num_threads=1)
        np.testing.assert_array_equal(packed[:, begin:end], alone)


def test_pages_have_the_bits_of_one_cache():
    (q, k, v), options = draw_pages()
    table = options["block_table"]
    whole = [x[table].reshape(4, -1, *x.shape[2:]) for x in (k, v)]
    options = dict(weights="softmax", causal=True, **options)
    paged = linattn.attention(q, k, v, **options)
    del options["block_table"]
    np.testing.assert_array_equal(paged, linattn.attention(q, *whole, **options))
    # Pages behind the end may have any number, and hold anything.
    table = np.where(np.arange(10) * PAGE < LENGTHS[:, None], table, -7)
    np.testing.assert_array_equal(linattn.attention(q, k, v, block_table=table, **options), paged)


def test_all_blocks_are_softmax_attention():
    q, k, v = draw(2, 70, 70)
    options = dict(weights="softmax", block_mask=np.ones((5, 5), bool), block_size=16)
    for causal in (False, True):
        exact = linattn.attention(q, k, v, weights="softmax", causal=causal)
        assert_agrees(linattn.attention(q, k, v, causal=causal, **options), exact)
    # Of no blocks the result is 0, as of no keys.
    options["block_mask"] = np.zeros((5, 5), bool)
    assert not linattn.attention(q, k, v, **options).any()


def test_blocks_out_of_sight_do_not_matter():
    (q, k, v), options = draw_blocks()
    hidden = np.repeat(~options["block_mask"], 16, axis=1)[:, :90]
    whole = linattn.attention(q, k, v, weights="softmax", **options)
    row = int(np.argmax(hidden.sum(1)))
    k[:, hidden[row]], v[:, hidden[row]] = np.nan, np.nan
    rows = slice(16 * row, 16 * row + 16)
    np.testing.assert_array_equal(linattn.attention(q, k, v, weights="softmax", **options)[:, rows], whole[:, rows])


def test_the_mask_of_bigbird():
    mask = linattn.block_mask(40, window=2, global_blocks=2, random_blocks=3, seed=5)
    near = abs(np.subtract.outer(np.arange(40), np.arange(40))) < 2
    assert mask[near].all() and mask[:2].all() and mask[:, :2].all()
    rest = mask[2:, 2:] & ~near[2:, 2:]
    assert (rest.sum(1) == 3).all()
    # The same blocks on every platform.
    assert (np.flatnonzero(rest[10]) + 2).tolist() == [8, 9, 15]
    assert not np.array_equal(mask, linattn.block_mask(40, window=2, global_blocks=2, random_blocks=3, seed=6))
    causal = linattn.block_mask(40, random_blocks=3, causal=True)
    assert not np.triu(causal, 1).any() and causal.sum(1).tolist() == [min(row + 1, 4) for row in range(40)]
    np.testing.assert_array_equal(causal[:9, :9], linattn.block_mask(9, random_blocks=3, causal=True))
    assert linattn.block_mask(0).shape == (0, 0)


# ----------------------------------------------------------------------------
# PyTorch and JAX
# ----------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ("cpu", "nvvm-emulated"))
@pytest.mark.parametrize("name", ("packed", "lengths", "blocks"))
def test_gradients(name, target):
    torch = pytest.importorskip("torch")
    operands, groups = CASES[name]()
    operands = [torch.from_numpy(x).requires_grad_() for x in operands]
    o = linattn.attention(*operands, weights="softmax", causal=True, target=target, **groups)
    found = torch.autograd.grad((o * torch.linspace(-1, 1, o.shape[-1])).sum(), operands)
    q, k, v = (x.detach().double().requires_grad_() for x in operands)
    sees = np.zeros((len(q), q.shape[1], k.shape[1]), bool)
    if name == "packed":
        for begin, end in zip(ENDS, ENDS[1:]):
            sees[0, begin:end, begin:end] = np.tri(end - begin)
    elif name == "lengths":
        for n, length in enumerate(LENGTHS):
            sees[n, :, :length] = np.tri(3, length, length - 3)
    else:
        sees[:] = np.kron(groups["block_mask"], np.ones((16, 16)))[:90, :90] * np.tri(90)
    scores = torch.einsum("bihd,bjhd->bhij", q, k.repeat_interleave(2, 2)) * 24**-0.5
    scores = scores.masked_fill(~torch.from_numpy(sees)[:, None], -1e30)
    w = torch.softmax(scores, -1) * torch.from_numpy(sees)[:, None]
    expected_o = torch.einsum("bhij,bjhd->bihd", w, v.repeat_interleave(2, 2))
    assert_agrees(o.detach().numpy(), expected_o.detach().numpy())
    expected = torch.autograd.grad((expected_o * torch.linspace(-1, 1, o.shape[-1])).sum(), (q, k, v))
    for gradient, other in zip(found, expected):
        assert float((gradient - other).abs().max() / other.abs().max()) <= 1e-4


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ("cpu", "nvvm-emulated"))
@pytest.mark.parametrize("change", ({}, {"cache_seqlens": np.int64([7, 16])}))
def test_gradients_of_pages(change, target):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in draw(2, 3, 16))
    table = torch.tensor([[3, 0], [1, 4]])
    pool = [torch.zeros(5, 8, *x.shape[2:]) for x in (k, v)]
    for pages, x in zip(pool, (k, v)):
        pages[table] = x.detach().unflatten(1, (2, 8))
        pages.requires_grad_()
    options = {"weights": "softmax", "causal": True, "cache_seqlens": np.int64([16, 16]), **change}
    paged = linattn.attention(q, *pool, block_table=table, target=target, **options)
    found = torch.autograd.grad(paged.square().sum(), (q, *pool))
    expected = torch.autograd.grad(linattn.attention(q, k, v, **options).square().sum(), (q, k, v))
    assert_agrees(found[0].numpy(), expected[0].numpy())
    for gradient, other in zip(found[1:], expected[1:]):
        assert_agrees(gradient[table].flatten(1, 2).numpy(), other.numpy())


MORE_GRADIENTS = {
    "window": {"causal": True, "window": 7, "slopes": np.float32([0.1, 0.2, 0.0, 0.4])},
    "both-sides": {"window": 7, "global_tokens": 2, "softcap": 2.0, "slopes": np.float32([0.1, 0.2, 0.0, 0.4])},
    "mask": {"causal": True, "mask": None, "sinks": np.float32([0, 1, -1, 2])},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("more", MORE_GRADIENTS)
@pytest.mark.parametrize("name", ("packed-keys", "lengths"))
def test_gradients_by_spans(name, more):
    """Those of a GPU, one op whose queries have spans of keys, beside those of a loop over the groups, in float64."""
    torch = pytest.importorskip("torch")
    operands, groups = CASES[name]()
    options = dict(MORE_GRADIENTS[more])
    if more == "mask":
        options["mask"] = RNG.random(operands[1].shape[:2]) > 0.3
    names = [key for key in ("slopes", "sinks") if key in options]
    tensors = [torch.from_numpy(x).double().requires_grad_() for x in (*operands, *(options.pop(key) for key in names))]
    found = []
    for target in ("nvvm-emulated", "cpu"):
        given = dict(zip(names, tensors[3:]))
        o = linattn.attention(*tensors[:3], weights="softmax", target=target, **groups, **options, **given)
        found.append(torch.autograd.grad((o * torch.linspace(-1, 1, o.shape[-1])).sum(), tensors))
    for gradient, other in zip(*found):
        assert float((gradient - other).abs().max()) <= 1e-10 * float(other.abs().max())


def test_lengths_out_of_range_have_no_gradient_on_a_gpu():
    """Their gradients are NaN, those of the other sequences are themselves."""
    from linattn import _linattn

    (q, k, v), _ = CASES["lengths"]()
    plan = linattn._recurrence._plans.find(("grouped", "lengths", (), None, True, None, None, None, "nvvm-emulated"))
    extents = {"Hq": 4, "Hk": 2, "Hv": 2, "K": q.shape[-1], "V": v.shape[-1]}
    text = plan.build.device_gradient("f32", extents, [(0, 1, "i64")])
    kernel = _linattn.compile(text, "", "<attention>", "nvvm-emulated", differentiate=[0, 1, 2])
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    right, wrong = (kernel(q, k, v, np.int64([5, n, 0, 33]), np.ones((*q.shape[:3], v.shape[-1]), np.float32)) for n in (70, 81))
    for a, b in zip(right, wrong):
        assert np.isnan(b[1]).any()
        np.testing.assert_array_equal(a[[0, 2, 3]], b[[0, 2, 3]])


def test_graphs():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    import linattn.torch  # noqa: F401

    operands, groups = draw_pages()
    expected = linattn.attention(*operands, weights="softmax", causal=True, **groups)

    def attend(q, k, v, table, lengths):
        return linattn.attention(q, k, v, weights="softmax", causal=True, block_table=table, cache_seqlens=lengths)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    tensors = [torch.from_numpy(x) for x in (*operands, groups["block_table"], groups["cache_seqlens"])]
    np.testing.assert_array_equal(compiled(*tensors).numpy(), expected)
    traced = jax.jit(attend)
    np.testing.assert_array_equal(np.asarray(traced(*(x.numpy() for x in tensors))), expected)
    # Out of range, a sequence is NaN and its neighbours are themselves.
    for wrong, at, value in ((3, (1, 2), 45), (3, (1, 0), -1), (4, (1,), 81), (4, (1,), -3)):
        tensors = [torch.from_numpy(x.copy()) for x in (*operands, groups["block_table"], groups["cache_seqlens"])]
        tensors[wrong][at] = value
        found = np.asarray(traced(*(x.numpy() for x in tensors)))
        assert np.isnan(found[1]).all()
        np.testing.assert_array_equal(found[[0, 2, 3]], expected[[0, 2, 3]])


# ----------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------


def paged(table=None, lengths=None, **options):
    operands, groups = draw_pages()
    groups["block_table"] = groups["block_table"] if table is None else table
    groups["cache_seqlens"] = groups["cache_seqlens"] if lengths is None else lengths
    return operands, {**groups, **options}


def blocks(mask=None, size=16, causal=False, **options):
    operands, groups = draw_blocks()
    mask = groups["block_mask"] if mask is None else mask
    return operands, {"block_mask": mask, "block_size": size, "causal": causal, **options}


REFUSED = (
    (lambda: (draw(), {"cu_seqlens": ENDS, "weights": "linear"}), "cu_seqlens: expected weights='softmax' with cu_seqlens"),
    (lambda: (draw(), {"cu_seqlens": [0, 80]}), "cu_seqlens: expected .*90"),
    (lambda: (draw(), {"cu_seqlens": [0, 50, 40, 90]}), "cu_seqlens: expected offsets that do not decrease"),
    (lambda: (draw(2), {"cu_seqlens": ENDS}), "cu_seqlens: expected a batch size of 1, but got 2"),
    (lambda: (draw(), {"cu_seqlens_k": ENDS}), "cu_seqlens_k: expected it only with cu_seqlens, but got it without"),
    (lambda: (draw(), {"cu_seqlens": ENDS, "cu_seqlens_k": [0, 90]}), r"cu_seqlens_k: expected the shape of cu_seqlens, \(5,\)"),
    (lambda: (draw(), {"cu_seqlens": ENDS, "prefix": 3, "causal": True}), "prefix: expected None beside cu_seqlens"),
    (lambda: (draw(), {"cu_seqlens": ENDS, "cache_seqlens": [1]}), "cache_seqlens: expected one of cu_seqlens, cache_seqlens"),
    (lambda: (draw(), {"cu_seqlens": ENDS, "form": "chunk"}), "form: expected auto or quadratic for softmax"),
    (lambda: (draw(), {"cu_seqlens": ENDS, "return_state": True}), "return_state: expected weights='linear'"),
    (lambda: (draw(), {"block_table": np.zeros((1, 2), int)}), "block_table: expected it only with cache_seqlens"),
    (lambda: (draw(), {"block_size": 4}), "block_size: expected it only with block_mask"),
    (lambda: (draw(), {"block_mask": np.ones((6, 6), bool)}), "block_mask: expected it only with block_size"),
    (lambda: (draw(4, 3, 80), {"cache_seqlens": np.int64([5, 81, 0, 1])}),
     r"cache_seqlens: expected lengths in \[0, 80\], but got 81 at 1"),
    (lambda: (draw(4, 3, 80), {"cache_seqlens": np.float32([5, 8, 0, 1])}), "cache_seqlens: expected .*int32 or int64"),
    (lambda: paged(lengths=np.int64([5, 8, -1, 1])), r"cache_seqlens: expected lengths in \[0, 80\], but got -1 at 2"),
    (lambda: paged(table=np.full((4, 10), 45)), r"block_table: expected pages in \[0, 45\), but got 45 at \(0, 0\)"),
    (lambda: paged(table=np.zeros((3, 10), int)), "block_table: expected shape"),
    (lambda: paged(mask=np.ones((4, 80), bool)), "mask: expected None beside block_table"),
    (lambda: blocks(size=0), r"block_size: expected a number in \[1, 2\*\*31\), but got 0"),
    (lambda: blocks(size=1.5), "block_size: expected an integer, but got float"),
    (lambda: blocks(mask=np.ones((5, 6), bool)), r"block_mask: expected shape \(6, 6\) for blocks of 16, but got \(5, 6\)"),
    (lambda: blocks(mask=np.ones((6, 6))), "block_mask: expected dtype bool, but got float64"),
    (lambda: blocks(mask=~np.eye(6, dtype=bool), causal=True), r"block_mask: expected the diagonal to be True with causal"),
    (lambda: blocks(window=4), "block_mask: expected no window or dilation beside it"),
    (lambda: blocks(slopes=np.ones(4, np.float32)), "slopes: expected None beside block_mask"),
)  # fmt: skip


@pytest.mark.parametrize("make, message", REFUSED, ids=range(len(REFUSED)))
def test_refused(make, message):
    operands, options = make()
    with pytest.raises((ValueError, TypeError), match=message):
        linattn.attention(*operands, **{"weights": "softmax", **options})


@pytest.mark.parametrize("options, message", (
    ({"blocks": -1}, "blocks: expected a number in"), ({"blocks": 2.0}, "blocks: expected an integer, but got float"),
    ({"blocks": 4, "window": 0}, "window: expected a number in"), ({"blocks": 4, "seed": -1}, "seed: expected a number in"),
))  # fmt: skip
def test_masks_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        linattn.block_mask(**options)
