"""Where recorded calls and gradients write: cotangents without elements of their own, and a caller's memory."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import linattn  # noqa: E402
from linattn._torch import _gradient, _places  # noqa: E402


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.standard_normal((1, 40, 4, 16), np.float32)).requires_grad_() for _ in range(3)]


def test_cotangents_of_a_sum(arrays):
    """They are one number with strides of 0, for which kernels are slow."""
    o = linattn.linear_attention(*arrays)
    expected = torch.autograd.grad(o, arrays, torch.ones(o.shape), retain_graph=True)
    for got, gradient in zip(torch.autograd.grad(o.sum(), arrays), expected):
        assert torch.equal(got, gradient)
    one = torch.ones(()).expand(1, 40, 4, 16)
    assert _gradient._dense(one).stride() == (40 * 64, 64, 16, 1)
    rows = torch.ones(16).expand(1, 40, 4, 16)
    assert _gradient._dense(rows) is rows


def test_a_state_alone_has_a_cotangent(arrays):
    k = arrays[1]
    _, state = linattn.linear_attention(*arrays, output_final_state=True)
    found = torch.autograd.grad((state.S if isinstance(state, linattn.State) else state)[..., 0].sum(), arrays)
    assert not found[0].any()
    mapped = torch.nn.functional.elu(k.detach()) + 1
    np.testing.assert_allclose(found[2][..., 0], mapped.sum(-1), rtol=1e-5, atol=1e-5)


def test_an_output_goes_to_its_place(arrays):
    expected = linattn.linear_attention(*arrays)
    gradients = torch.autograd.grad(expected.square().sum(), arrays)
    whole = torch.full((1, 40, 8, 16), 7.0)
    with pytest.raises(linattn.UnsupportedError, match="out: expected None where gradients are recorded"):
        linattn.linear_attention(*arrays, out=whole[:, :, 2:6])
    with _places.records_into():
        o = linattn.linear_attention(*arrays, out=whole[:, :, 2:6])
    assert o.data_ptr() == whole[:, :, 2:6].data_ptr()
    assert torch.equal(whole[:, :, 2:6], expected) and (whole[:, :, :2] == 7).all() and (whole[:, :, 6:] == 7).all()
    for got, gradient in zip(torch.autograd.grad(o.square().sum(), arrays), gradients):
        assert torch.equal(got, gradient)


def test_gradients_go_to_their_places(arrays):
    gradients = torch.autograd.grad(linattn.linear_attention(*arrays).square().sum(), arrays)
    memory = torch.zeros(3, 1, 40, 8, 16)
    places = [part[:, :, 4:] for part in memory]
    with _places.gradients(zip(arrays, places)):
        found = torch.autograd.grad(linattn.linear_attention(*arrays).square().sum(), arrays)
    for got, place, gradient in zip(found, places, gradients):
        assert got.data_ptr() == place.data_ptr() and torch.equal(got, gradient)
    assert not memory[..., :4, :].any()


def test_an_operand_twice(arrays):
    """Its gradients are summed, wherever they are."""
    q, _, v = arrays
    gradient = torch.autograd.grad(linattn.linear_attention(q, q, v).square().sum(), q)[0]
    with _places.gradients([(q, torch.zeros(q.shape))]):
        got = torch.autograd.grad(linattn.linear_attention(q, q, v).square().sum(), q)[0]
    assert torch.equal(got, gradient)
