"""Linear layers of 16 bits where PyTorch has no kernels for them, beside float64."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import linattn  # noqa: E402
import linattn.transformers as lt  # noqa: E402
from linattn.transformers import _linear  # noqa: E402

# The rounding of the result, half a unit in the last place of the largest one.
BOUNDS = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
has_kernels = _linear._has_kernels
DTYPES = pytest.mark.parametrize("dtype", BOUNDS, ids=["bf16", "f16"])


@pytest.fixture(autouse=True)
def without_kernels(monkeypatch):
    """As on a CPU without AVX-512."""
    monkeypatch.setattr(_linear, "_has_kernels", lambda dtype: False)
    transformers.logging.set_verbosity_error()
    yield
    lt.disable()


def layer(dtype, n=70, k=52, bias=True):
    torch.manual_seed(0)
    return torch.nn.Linear(k, n, bias, dtype=dtype)


def entry():
    (found,) = lt.status()["torch.nn.modules.linear"]
    return found


def check(found, expected, bound):
    assert found.shape == expected.shape
    assert (found.double() - expected).abs().max() <= bound * expected.abs().max()


@DTYPES
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize("shape", [(16, 52), (3, 67, 52), (2, 1, 201, 52)], ids=str)
def test_products(dtype, bias, shape):
    module = layer(dtype, bias=bias)
    x = torch.randn(shape).to(dtype)
    expected = torch.nn.functional.linear(x.double(), module.weight.double(), module.bias.double() if bias else None)
    with torch.no_grad(), lt.enabled():
        found = module(x)
        assert entry().taken == 1, entry()
        columns = torch.empty(52, x.numel() // 52, dtype=dtype).t().copy_(x.reshape(-1, 52))
        assert torch.equal(module(columns), found.reshape(-1, 70)) and entry().taken == 2
    assert found.dtype is dtype
    check(found, expected.detach(), BOUNDS[dtype])


@DTYPES
@pytest.mark.parametrize("needed", ["all", "weights", "input"])
def test_gradients(dtype, needed):
    module = layer(dtype)
    x = torch.randn(2, 40, 52).to(dtype).requires_grad_(needed != "weights")
    module.requires_grad_(needed != "input")
    leaves = [tensor for tensor in (x, module.weight, module.bias) if tensor.requires_grad]
    cotangent = torch.randn(2, 40, 70).to(dtype)
    with lt.enabled():
        y = module(x)
        assert entry().taken == 1, entry()
    found = torch.autograd.grad(y, leaves, cotangent)
    exact = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in (x, module.weight, module.bias)]
    y = torch.nn.functional.linear(*exact)
    expected = torch.autograd.grad(y, [tensor for tensor in exact if tensor.requires_grad], cotangent.double())
    for one, other in zip(found, expected, strict=True):
        assert one.dtype is dtype
        check(one, other, BOUNDS[dtype])


def test_gradients_of_gradients():
    module, x = layer(torch.bfloat16), torch.randn(40, 52).to(torch.bfloat16).requires_grad_()
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, module.weight, module.bias)]
    results = []
    with lt.enabled():
        for operands, y in (
            ((x, module.weight), module(x)),
            (exact[:2], torch.nn.functional.linear(*exact)),
        ):
            first = torch.autograd.grad((y * y).sum(), operands, create_graph=True)
            results.append(torch.autograd.grad(sum((grad * grad).sum() for grad in first), operands))
        assert entry().taken == 1
    for found, expected in zip(*results, strict=True):
        check(found, expected, 0.05)


def test_numbers_do_not_depend_on_threads_or_other_rows(monkeypatch):
    module, x = layer(torch.bfloat16), torch.randn(300, 52).to(torch.bfloat16)
    before = linattn.get_num_threads()
    try:
        with torch.no_grad(), lt.enabled():
            results = []
            for threads in (1, 3):
                linattn.set_num_threads(threads)
                results.append(module(x))
            assert torch.equal(*results) and torch.equal(module(x[100:120]), results[0][100:120])
            monkeypatch.setattr(_linear, "_MOST_BYTES", 0)  # in parts of 192 rows
            assert torch.equal(module(x), results[0])
    finally:
        linattn.set_num_threads(before)


def test_calls_that_go_on():
    module = layer(torch.bfloat16)
    x = torch.randn(20, 52).to(torch.bfloat16)
    with torch.no_grad(), lt.enabled():
        module(x[:7])
        module(x[0])
        layer(torch.float32)(x.float())
        with torch.autocast("cpu", torch.bfloat16):
            module(x)
        layer(torch.bfloat16).to("meta")(x.to("meta"))
        torch.vmap(module)(x.expand(2, 20, 52))
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            module(x.repeat(2, 1)[:, :40])
        with pytest.raises(RuntimeError, match="dtype"):
            module(x.half())
        with pytest.raises(TypeError, match="must be Tensor"):
            module([1.0])
        assert entry().taken == 0
        assert entry().passed == {
            "fewer than 8 rows": 2, "PyTorch has kernels for float32": 1, "autocast, or several dtypes": 2,
            "tensors on meta": 1, "a transform of torch.func is active": 1, "sizes that are empty or do not fit": 1,
            "the input is not a tensor": 1,
        }  # fmt: skip


def test_weights_elsewhere():
    """A layer whose weights are loaded when it is called."""
    module, x = layer(torch.bfloat16).to("meta"), torch.randn(20, 52).to(torch.bfloat16)
    with torch.no_grad(), lt.enabled():
        with pytest.raises(RuntimeError):
            module(x)
        assert entry().passed == {"tensors on meta": 1}


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_graphs_hold_pytorch():
    module, x = layer(torch.bfloat16), torch.randn(20, 52).to(torch.bfloat16)
    expected = module(x).detach()
    with torch.no_grad(), lt.enabled():
        assert torch.equal(torch.compile(module, backend="eager", fullgraph=True)(x), expected)
        assert torch.equal(torch.jit.trace(module, (x,), check_trace=False)(x), expected)
        assert torch.equal(torch.jit.script(module)(x), expected)
        assert torch.equal(torch.export.export(module, (x,)).module()(x), expected)
        assert entry().taken == 0 and entry().passed == {"torch.jit traces the call": 1}


def test_other_processors(monkeypatch):
    """Nothing is replaced where PyTorch has kernels."""
    monkeypatch.setattr(_linear, "_has_kernels", lambda dtype: True)
    forward = torch.nn.Linear.forward
    with lt.enabled():
        assert torch.nn.Linear.forward is forward
        assert not [x for x in lt.status() if x.kernel == "Linear"]
    monkeypatch.setattr(_linear, "_has_kernels", lambda dtype: dtype is torch.bfloat16)
    with torch.no_grad(), lt.enabled():
        assert torch.nn.Linear.forward is not forward
        for dtype in BOUNDS:
            layer(dtype)(torch.randn(20, 52).to(dtype))
        assert entry().taken == 1 and entry().passed == {"PyTorch has kernels for bfloat16": 1}
    assert torch.nn.Linear.forward is forward


def test_the_processor_is_asked():
    from_pytorch = {
        torch.bfloat16: torch.ops.mkldnn._is_mkldnn_bf16_supported(),
        torch.float16: torch.ops.mkldnn._is_mkldnn_fp16_supported(),
    }
    for dtype, supported in from_pytorch.items():
        assert has_kernels(dtype) == supported
