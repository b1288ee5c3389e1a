"""Arrays of other libraries, strides, and what must be refused."""

import ml_dtypes
import numpy as np
import pytest
from conftest import Foreign, assert_agrees

import linattn
from linattn import reference


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_producer(qkv, versioned):
    out = linattn.attention(*(Foreign(x, versioned=versioned) for x in qkv))
    assert isinstance(out, np.ndarray)
    np.testing.assert_array_equal(out, linattn.attention(*qkv))


def test_mixed_kinds(qkv):
    q, k, v = qkv
    np.testing.assert_array_equal(
        linattn.attention(q, Foreign(k), Foreign(v)), linattn.attention(q, k, v)
    )


def test_torch(qkv):
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(x) for x in qkv]
    out, state = linattn.scan(*tensors, return_state=True)
    assert isinstance(out, torch.Tensor) and isinstance(state.S, torch.Tensor)
    np.testing.assert_array_equal(out.numpy(), linattn.scan(*qkv))
    half = linattn.attention(*(x.to(torch.bfloat16) for x in tensors))
    assert half.dtype == torch.bfloat16
    assert linattn.attention(tensors[0], tensors[1].clone().requires_grad_(), tensors[2]).requires_grad


def test_jax(qkv):
    jnp = pytest.importorskip("jax.numpy")
    arrays = [jnp.asarray(x) for x in qkv]
    out, state = linattn.scan(*arrays, return_state=True)
    assert isinstance(out, jnp.ndarray) and isinstance(state.S, jnp.ndarray)
    np.testing.assert_array_equal(np.asarray(out), linattn.scan(*qkv))
    half = linattn.attention(*(x.astype(jnp.bfloat16) for x in arrays))
    assert half.dtype == jnp.bfloat16


def test_gradients_are_refused(qkv):
    class Tensor(Foreign):
        requires_grad = True

    with pytest.raises(ValueError, match="q: .*gradient"):
        linattn.attention(Tensor(qkv[0]), *qkv[1:])


def test_other_devices_are_refused(qkv):
    with pytest.raises(ValueError, match="v: expected an array where the first one is, the memory of the CPU, but got one in GPU 0"):
        linattn.attention(*qkv[:2], Foreign(qkv[2], device=(2, 0)))
    with pytest.raises(ValueError, match="v: expected .* but got one on DLPack device type 4"):
        linattn.attention(*qkv[:2], Foreign(qkv[2], device=(4, 0)))


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"weights": "softmax"}])
def test_strides(rng, options):
    def make(size):
        return rng.standard_normal((4, 40, 6, 2 * size)).astype(np.float32)[::2, ::-2, 1::2, ::-2]

    q, k, v = make(16), make(16), make(24)
    ref = linattn.attention(*(np.ascontiguousarray(x) for x in (q, k, v)), **options)
    np.testing.assert_allclose(linattn.attention(q, k, v, **options), ref, rtol=1e-5, atol=1e-6)
    # Packed side by side, and one head for all by a stride of 0.
    packed = rng.standard_normal((2, 19, 3, 48)).astype(np.float32)
    parts = packed[..., :16], packed[..., 16:32], packed[..., 32:]
    assert_agrees(linattn.attention(*parts, **options), reference.attention(*parts, **options))
    wide = [np.broadcast_to(x[:, :, :1], x.shape) for x in parts]
    assert_agrees(linattn.attention(*wide, **options), reference.attention(*wide, **options))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_out(qkv, dtype):
    q, k, v = (x.astype(dtype) for x in qkv)
    out = np.empty((2, 19, 3, 24), dtype)
    assert linattn.attention(q, k, v, out=out) is out
    np.testing.assert_array_equal(out, linattn.attention(q, k, v))
    strided = np.zeros((2, 38, 3, 48), dtype)
    linattn.attention(q, k, v, out=strided[:, ::2, :, ::2])
    assert_agrees(strided[:, ::2, :, ::2].astype(np.float32), out.astype(np.float32), np.dtype(dtype).name)
    assert not strided[:, 1::2].any() and not strided[..., 1::2].any()


def test_out_is_checked(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match=r"out: expected shape \(2, 19, 3, 24\), but got \(2, 19, 24\)"):
        linattn.attention(q, k, v, out=np.empty((2, 19, 24), np.float32))
    with pytest.raises(TypeError, match="out: expected dtype float32, but got float64"):
        linattn.attention(q, k, v, out=np.empty((2, 19, 3, 24)))
    frozen = np.empty((2, 19, 3, 24), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected a writable array"):
        linattn.attention(q, k, v, out=frozen)
    square = np.array(q)
    with pytest.raises(ValueError, match="out: .*overlaps k"):
        linattn.attention(q, square, q, out=square)
    with pytest.raises(ValueError, match="out"):
        linattn.attention(q, k, v, out=np.broadcast_to(np.zeros(24, np.float32), (2, 19, 3, 24)))


def test_read_only_inputs_are_fine(qkv):
    for x in qkv:
        x.flags.writeable = False
    assert linattn.attention(*qkv).shape == (2, 19, 3, 24)


BAD = {
    "rank": (lambda q, k, v: (q[0, 0, 0], k, v), ValueError, r"q: expected shape \(T, D\), .*got \(16,\)"),
    "ranks": (lambda q, k, v: (q, k[:, :, 0], v), ValueError, "k: expected the number of dimensions of q, 4, but got 3"),
    "batch": (lambda q, k, v: (q, k[:1], v), ValueError, "k: expected the batch size of q, 2, but got 1"),
    "head size": (lambda q, k, v: (q, k[..., :8], v), ValueError, "k: expected the head size of q, 16, but got 8"),
    "keys": (lambda q, k, v: (q, k, v[:, :4]), ValueError, "v: expected the sequence length of k, 19, but got 4"),
    "heads": (lambda q, k, v: (q, k[:, :, :2], v), ValueError, "head counts .* 3, 2 and 3"),
    "dtypes": (lambda q, k, v: (q, k, v.astype(np.float64)), TypeError, "v: expected the dtype of q, float32, but got float64"),
    "integers": (lambda q, k, v: (q, k, v.astype(np.int32)), TypeError, "v: expected float16.* got int32"),
    "complex": (lambda q, k, v: (q, k, v.astype(complex)), TypeError, "v: expected elements .* got complex128"),
    "big-endian": (lambda q, k, v: (q, k, v.astype(">f4")), TypeError, "v: .*>f4"),
    "list": (lambda q, k, v: (q, k, v.tolist()), TypeError, "v: expected an array .* got list"),
    "None": (lambda q, k, v: (None, k, v), TypeError, "q: expected an array .* got NoneType"),
    "no features": (lambda q, k, v: (q[..., :0], k, v), ValueError, "q: expected at least one head"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("function", [linattn.attention, linattn.scan])
def test_bad_arrays(qkv, function, name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        function(*make(*qkv))


def test_misaligned(qkv):
    raw = np.zeros(qkv[0].nbytes + 1, np.uint8)[1:].view(np.float32).reshape(qkv[0].shape)
    with pytest.raises(ValueError, match="q: expected memory aligned to 4 bytes"):
        linattn.attention(raw, *qkv[1:])
    records = np.zeros((2, 19, 3, 16), np.dtype([("x", "<f4"), ("tag", "<u2")]))["x"]
    with pytest.raises(ValueError, match="q: expected"):
        linattn.attention(records, *qkv[1:])


OPTIONS = {
    "causal": (2, TypeError), "normalize": ("yes", TypeError), "return_state": (None, TypeError),
    "eps": (float("nan"), ValueError), "scale": (float("inf"), ValueError), "weights": ("cosine", ValueError),
    "form": ("fast", ValueError), "target": ("tpu", ValueError), "num_threads": (0, ValueError),
    "mask": (np.ones((2, 18), bool), ValueError), "initial_state": (np.zeros((2, 3, 16, 24), np.float32), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(qkv, name):
    value, error = OPTIONS[name]
    with pytest.raises(error, match=name):
        linattn.attention(*qkv, **{name: value})


def test_more_bad_options(qkv):
    q, k, v = qkv
    cases = [
        (dict(eps=-1.0), "eps"),
        (dict(eps="small"), "eps"),
        (dict(scale=True), "scale"),
        (dict(form="chunk:0"), "form"),
        (dict(form="token:8"), "form"),
        (dict(form="token", weights="softmax"), "form"),
        (dict(form="quadratic", return_state=True), "form"),
        (dict(num_threads="two"), "num_threads"),
        (dict(num_threads=True), "num_threads"),
        (dict(mask=np.ones((2, 19), np.uint8)), "mask"),
        (dict(weights="softmax", feature_map="relu"), "feature_map"),
        (dict(weights="softmax", return_state=True), "return_state"),
        (dict(normalize=False, eps=1e-3), "eps"),
        (dict(normalize=False, initial_state=np.zeros((2, 3, 16, 24))), "initial_state"),
        (dict(colour="red"), "colour"),
    ]
    for options, name in cases:
        with pytest.raises((TypeError, ValueError), match=name):
            linattn.attention(q, k, v, **options)


def test_bad_scans(qkv):
    gate = np.zeros((2, 19, 3), np.float32)
    cases = [
        (dict(beta=gate), "beta"),
        (dict(update="delta"), "beta"),
        (dict(update="dplr", a=gate), "b"),
        (dict(bonus=np.zeros((3, 16), np.float32)), "bonus"),
        (dict(decay=np.zeros((2, 19), np.float32)), r"decay: expected shape \(3,\) or \(2, 19, 3\)"),
        (dict(decay=gate.astype(int)), "decay"),
        (dict(normalize=True, readout="exclusive"), "normalize"),
        (dict(form="quadratic"), "form"),
        (dict(transition="during"), "transition"),
        (dict(reverse=2), "reverse"),
        (dict(cu_seqlens=[0, 19]), "cu_seqlens: expected a batch size of 1"),
    ]
    for options, message in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            linattn.scan(*qkv, **options)
    one = [x[:1] for x in qkv]
    for offsets in ([0, 5], [1, 19], [0, 7, 5, 19], [], [0.0, 19.0], [[0, 19]]):
        with pytest.raises((TypeError, ValueError), match="cu_seqlens"):
            linattn.scan(*one, cu_seqlens=offsets)


def test_causal_lengths(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match="k: expected the sequence length of q, 7, but got 19"):
        linattn.attention(q[:, :7], k, v, causal=True)


def test_threads(qkv):
    before = linattn.get_num_threads()
    try:
        linattn.set_num_threads(3)
        assert linattn.get_num_threads() == 3
        with pytest.raises(ValueError):
            linattn.set_num_threads(-1)
    finally:
        linattn.set_num_threads(None)
    assert linattn.get_num_threads() == before


def test_masks_of_other_bytes(qkv):
    """A byte of 2 is neither True nor False to compiled code."""
    mask = np.full((2, 19), 2, np.uint8).view(bool)
    with pytest.raises(ValueError, match="mask.*expected bytes of 0 and 1"):
        linattn.attention(*qkv, mask=mask, feature_map="exp")


@pytest.mark.parametrize("scale", [1e39, 1e-60])
def test_scales_f32_cannot_hold(qkv, scale):
    with pytest.raises(ValueError, match="scale: expected 0 or a normal number of float32"):
        linattn.attention(*qkv, scale=scale)


def test_matrices_in_the_oracle():
    x = np.matrix(np.ones((5, 3)))
    np.testing.assert_allclose(linattn.reference.attention(x, x, x), 1, atol=1e-5)


def test_calls_like_the_last_one(rng):
    """The binding of a call's arrays serves arrays like them, and no others."""

    def check(shape, dtype="float32", turned=(0, 1, 2, 3), heads=None):
        make = lambda shape: rng.standard_normal([shape[i] for i in turned]).astype(dtype).transpose(np.argsort(turned))
        q = make(shape)
        k, v = (make((*shape[:2], heads or shape[2], shape[3])) for _ in range(2))
        out = linattn.attention(q, k, v, causal=True)
        assert out.dtype == dtype
        assert_agrees(out.astype(np.float64), linattn.reference.attention(q, k, v, causal=True), dtype)

    for _ in range(2):  # each after itself, and after another
        for arguments in (
            dict(shape=(2, 5, 4, 8)), dict(shape=(1, 5, 4, 8)), dict(shape=(2, 5, 4, 8), heads=2),
            dict(shape=(2, 5, 4, 8), dtype="float64"), dict(shape=(2, 5, 4, 8), turned=(0, 2, 1, 3)),
            dict(shape=(2, 5, 4, 8), turned=(3, 2, 1, 0)), dict(shape=(2, 1, 4, 8)), dict(shape=(2, 9, 4, 6)),
        ):  # fmt: skip
            check(**arguments)
            check(**arguments)
    x = np.ones((2, 9, 4, 6), np.float32)
    for _ in range(2):
        with pytest.raises(ValueError, match="expected the sequence length of k, 8, but got 9"):
            linattn.attention(x[:, :8], x[:, :8], x, causal=True)
        linattn.attention(x, x, x, causal=True)


def test_steps_like_the_last_one(rng):
    """A state that was writable need not stay so."""
    q, k, v = (rng.standard_normal((1, 1, 2, 8)).astype(np.float32) for _ in range(3))
    state = linattn.State.zeros(1, 2, 8, 8)
    for _ in range(3):
        state.step(q, k, v)
    kept, before = state.S, state.S.copy()
    kept.flags.writeable = False
    state.step(q, k, v)
    np.testing.assert_array_equal(kept, before)
    np.testing.assert_allclose(state.S, 4 / 3 * before, rtol=1e-6)


def test_memory_of_large_results():
    x = np.ones((1, 4096, 4, 64), np.float32)  # 4 MiB
    first = linattn.scan(x, x, x)
    kept, address = first.copy(), first.ctypes.data
    assert address % (2 << 20) == 0
    # While a view of it lives, no other result gets it.
    view = first[:, 100:]
    del first
    second = linattn.scan(2 * x, x, x)
    assert second.ctypes.data != address
    np.testing.assert_array_equal(view, kept[:, 100:])
    del view
    third = linattn.scan(x, x, x)
    assert third.ctypes.data == address
    np.testing.assert_array_equal(third, kept)
