"""Each adapter beside the function that it replaces, which runs in float64.

A few draws of the options by default, many with LINATTN_MATRIX=all.
"""

import contextlib
import importlib
import inspect
import os
from unittest import mock

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import linattn  # noqa: E402
import linattn.transformers as lt  # noqa: E402

F = torch.nn.functional
DTYPES = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float64: 1e-11, torch.float16: 3e-3}
DRAWS = 24 if os.environ.get("LINATTN_MATRIX") == "all" else 4


@pytest.fixture(autouse=True, scope="module")
def enabled():
    threads, own = torch.get_num_threads(), linattn.get_num_threads()
    torch.set_num_threads(1)
    linattn.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    with lt.enabled(), torch.no_grad():
        yield
    torch.set_num_threads(threads)
    linattn.set_num_threads(own)


@contextlib.contextmanager
def in_float64():
    """The functions of transformers ask for float32; they get float64 here."""
    with mock.patch.object(torch, "float32", torch.float64), mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        yield


def module_of(model):
    return importlib.import_module(f"transformers.models.{model}.modeling_{model}")


def widen(value):
    if isinstance(value, torch.Tensor):
        return value.double().clone() if value.is_floating_point() else value.clone()
    return [widen(item) for item in value] if isinstance(value, (list, tuple)) else value


def narrow(value):
    return value.clone() if isinstance(value, torch.Tensor) else [narrow(x) for x in value] if isinstance(value, (list, tuple)) else value


def check(function, args, kwargs, dtype, written=(), original=None):
    """Runs both, and compares what they return and the arguments that both write."""
    hook = function.__linattn_hook__
    before = hook.taken
    exact_args, exact_kwargs = widen(args), {name: widen(value) for name, value in kwargs.items()}
    with in_float64():
        expected = (original or inspect.unwrap(function))(*exact_args, **exact_kwargs)
    own_args, own_kwargs = narrow(args), {name: narrow(value) for name, value in kwargs.items()}
    found = function(*own_args, **own_kwargs)
    assert hook.taken == before + 1, hook.passed
    compare(found, expected, dtype)
    for index in written:
        compare(own_args[index], exact_args[index], dtype)


def compare(found, expected, dtype):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            compare(one, other, dtype)
        return
    if expected is None:
        assert found is None
        return
    assert found.shape == expected.shape
    # Keys and queries of length 1 are rounded to the tokens' dtype: where they are almost
    # orthogonal, the error is that of products of length 1.
    least = 0.1 if dtype.itemsize == 2 else 1e-30
    scale = max(expected.abs().max().item(), least) if expected.numel() else 1.0
    assert (found.double() - expected.double()).abs().max() <= DTYPES[dtype] * scale if expected.numel() else True


class Draw:
    """Random shapes, options and tensors, from a seed."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = [*DTYPES][seed % 4]

    def pick(self, *options):
        return options[int(torch.randint(len(options), (), generator=self.generator))]

    def normal(self, *shape, dtype=None):
        return torch.randn(shape, generator=self.generator, dtype=torch.float64).to(dtype or self.dtype)

    def uniform(self, *shape, low=0.0, high=1.0, dtype=None):
        numbers = torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low
        return numbers.to(dtype or self.dtype)

    @property
    def wide(self):
        return torch.float64 if self.dtype is torch.float64 else torch.float32

    def maybe(self, tensor):
        return self.pick(tensor, None)


def views(draw, tensor):
    """The same numbers, contiguous or with tokens innermost, as a convolution leaves them."""
    return draw.pick(tensor, tensor.transpose(1, 2).contiguous().transpose(1, 2), tensor.movedim(1, -1).contiguous().movedim(-1, 1))


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("name", ["torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"])
def test_gated_delta_rule(name, seed):
    draw = Draw(seed)
    rows, length = draw.pick(1, 2, 3), draw.pick(1, 2, 17, 70)
    heads, groups, k, v = *draw.pick((1, 2), (2, 1)), 16, 24
    q, key = (views(draw, draw.normal(rows, length, heads, k)) for _ in range(2))
    value = views(draw, draw.normal(rows, length, heads * groups, v))
    g = -draw.uniform(rows, length, heads * groups, high=draw.pick(0.2, 20.0), dtype=draw.pick(draw.dtype, draw.wide))
    beta = draw.uniform(rows, length, heads * groups, high=draw.pick(1.0, 2.0))
    norm = draw.pick(True, False)
    if not norm:
        key = F.normalize(key.double(), dim=-1).to(draw.dtype)
    options = {
        "initial_state": draw.maybe(draw.normal(rows, heads * groups, k, v, dtype=draw.pick(draw.wide, draw.dtype))),
        "output_final_state": draw.pick(True, False), "use_qk_l2norm_in_kernel": norm, "cu_seqlens": None, "use_cache": True,
    }  # fmt: skip
    if "chunk" in name:
        options["chunk_size"] = draw.pick(16, 64)
    check(getattr(module_of("qwen3_5"), name), (q, key, value, g, beta), options, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("name", ["chunk_kimi_delta_attention", "recurrent_kimi_delta_attention"])
def test_kda(name, seed):
    draw = Draw(seed)
    rows, length = draw.pick(1, 2), draw.pick(1, 2, 17, 70)
    heads, k, v = 2, 16, 24
    q, key = (views(draw, draw.normal(rows, length, heads, k)) for _ in range(2))
    value = views(draw, draw.normal(rows, length, heads, v))
    g = -draw.uniform(rows, length, heads, k, high=draw.pick(0.2, 5.0), dtype=draw.pick(draw.dtype, draw.wide))
    beta = draw.uniform(rows, length, heads)
    norm = draw.pick(True, False)
    if not norm:
        key = F.normalize(key.double(), dim=-1).to(draw.dtype)
    options = {
        "initial_state": draw.maybe(draw.normal(rows, heads, k, v, dtype=draw.wide)),
        "output_final_state": draw.pick(True, False), "use_qk_l2norm_in_kernel": norm,
    }  # fmt: skip
    check(getattr(module_of("kimi_linear"), name), (q, key, value, g, beta), options, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS + 2))
def test_mamba2_scan(seed):
    draw = Draw(seed)
    rows, length = draw.pick(1, 2), draw.pick(1, 2, 17, 70)
    groups, heads, width, size = draw.pick(1, 2), 4, 16, 8
    x = views(draw, draw.normal(rows, length, heads, width))
    B, C = (views(draw, draw.normal(rows, length, groups, size)) for _ in range(2))
    softplus = draw.pick(True, False)
    dt = draw.normal(rows, length, heads) if softplus else draw.uniform(rows, length, heads)
    options = {
        "D": draw.maybe(draw.normal(heads)), "dt_bias": draw.maybe(draw.uniform(heads)) if softplus else None,
        "initial_states": draw.maybe(draw.normal(rows, heads, width, size, dtype=draw.wide)), "dt_softplus": softplus,
        "dt_limit": draw.pick((0.0, float("inf")), (0.01, 0.5)), "return_final_states": draw.pick(True, False), "z": None,
    }  # fmt: skip
    A = -draw.uniform(heads, low=0.1, high=4.0, dtype=draw.wide)
    check(module_of("mamba2").mamba2_chunk_scan, (x, dt, A, B, C, draw.pick(16, 64)), options, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS + 2))
def test_mamba2_step(seed):
    draw = Draw(seed)
    rows, groups, heads, width, size = draw.pick(1, 3), draw.pick(1, 2), 4, 16, 8
    softplus = draw.pick(True, False)
    dt = draw.normal(rows, heads, 1) if softplus else draw.uniform(rows, heads, 1)
    bias = draw.normal(heads)[:, None].expand(-1, width)
    args = (
        draw.normal(rows, heads, width, size, dtype=draw.pick(draw.wide, draw.dtype)), draw.normal(rows, heads, width), dt.expand(-1, -1, width),
        (-draw.uniform(heads, low=0.1, dtype=draw.wide))[:, None, None].expand(-1, width, size), draw.normal(rows, groups, size),
        draw.normal(rows, groups, size), draw.maybe(draw.normal(heads)[:, None].expand(-1, width)),
    )  # fmt: skip
    options = {"dt_bias": bias if softplus else None, "dt_softplus": softplus, "z": draw.maybe(draw.normal(rows, heads, width))}
    with mock.patch(f"{__name__}.narrow", lambda value: value):  # clones have no strides of 0
        state = args[0].clone()
        check(module_of("mamba2").mamba2_selective_state_update, (state, *args[1:]), options, draw.dtype, written=(0,))


def test_a_mamba2_step_that_differs_within_a_head():
    draw = Draw(1)
    function = module_of("mamba2").mamba2_selective_state_update
    args = (
        draw.normal(1, 2, 8, 4), draw.normal(1, 2, 8), draw.normal(1, 2, 8), -draw.uniform(2, 8, 4), draw.normal(1, 1, 4),
        draw.normal(1, 1, 4),
    )  # fmt: skip
    state = args[0].clone()
    out = function(*args, dt_softplus=True)
    assert torch.equal(out, inspect.unwrap(function)(state, *args[1:], dt_softplus=True)) and torch.equal(state, args[0])
    assert "dt differs within a head" in function.__linattn_hook__.passed


@pytest.mark.parametrize("seed", range(DRAWS + 2))
def test_mamba1_scan(seed):
    draw = Draw(seed)
    rows, length, channels, size = draw.pick(1, 2), draw.pick(1, 2, 17, 70), 20, 8

    def tokens(width):
        return draw.pick(draw.normal(rows, width, length), draw.normal(rows, length, width).transpose(1, 2))

    softplus = draw.pick(True, False)
    dt = tokens(channels) if softplus else tokens(channels).abs() * 0.3
    args = (tokens(channels), dt, -draw.uniform(channels, size, low=0.1, high=8.0, dtype=draw.wide), tokens(size), tokens(size))
    options = {
        "D": draw.maybe(draw.normal(channels, dtype=draw.wide)), "z": draw.maybe(tokens(channels)),
        "delta_bias": draw.maybe(draw.uniform(channels, dtype=draw.wide)) if softplus else None, "delta_softplus": softplus,
        "return_last_state": draw.pick(True, False), "use_associative_scan": True,
    }  # fmt: skip
    check(module_of("mamba").mamba_selective_scan, args, options, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS + 2))
def test_mamba1_step(seed):
    draw = Draw(seed)
    rows, channels, size = draw.pick(1, 3), 20, 8
    softplus = draw.pick(True, False)
    dt = draw.normal(rows, channels) if softplus else draw.uniform(rows, channels)
    args = (
        draw.normal(rows, channels, size, dtype=draw.pick(draw.wide, draw.dtype)), draw.normal(rows, channels), dt,
        -draw.uniform(channels, size, low=0.1, dtype=draw.wide), draw.normal(rows, size), draw.normal(rows, size),
        draw.maybe(draw.normal(channels)),
    )  # fmt: skip
    options = {
        "dt_bias": draw.maybe(draw.uniform(channels)) if softplus else None, "dt_softplus": softplus,
        "z": draw.maybe(draw.normal(rows, channels)),
    }  # fmt: skip
    check(module_of("mamba").mamba_selective_state_update, args, options, draw.dtype, written=(0,))


@pytest.mark.parametrize("seed", range(DRAWS))
def test_rwkv4(seed):
    draw = Draw(seed)
    rows, length, channels = draw.pick(1, 3), draw.pick(1, 2, 33), 20
    state = None
    if draw.pick(True, False):
        state = [draw.normal(rows, channels, dtype=draw.wide), draw.uniform(rows, channels, low=0.5, dtype=draw.wide), draw.normal(rows, channels, dtype=draw.wide)]
    args = (draw.normal(channels), draw.normal(channels), draw.normal(rows, length, channels), draw.normal(rows, length, channels))
    function = module_of("rwkv").rwkv_linear_attention_cpu
    if state is None:
        # A maximum of nothing: the original calls it -1e38, linattn -∞.
        found, expected = function(*args), None
        with in_float64():
            expected = inspect.unwrap(function)(*widen(args))
        compare(found, expected, draw.dtype)
    check(function, args, {"state": state, "return_state": draw.pick(True, False)}, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_rg_lru(seed):
    draw = Draw(1 + 2 * (seed // 2) if seed % 4 == 0 else seed)
    dtype = draw.dtype if draw.dtype is not torch.float64 else torch.float32
    rows, length, width = draw.pick(1, 2), draw.pick(1, 2, 33), 20
    reset = torch.rand((rows, length, 1), generator=draw.generator) < draw.pick(0.0, 0.2)
    args = (
        None, draw.normal(rows, length, width, dtype=dtype), draw.uniform(rows, length, width, dtype=dtype), reset,
        draw.maybe(draw.normal(rows, width, dtype=torch.float32)),
    )  # fmt: skip
    check(module_of("recurrent_gemma").RecurrentGemmaRglru._rnn_scan, args, {}, dtype)


NORMS = {
    "qwen3_5": ("Qwen3_5RMSNormGated", {}), "kimi_linear": ("KimiLinearRMSNormGated", {}),
    "mamba2": ("MambaRMSNormGated", {"group_size": 8}), "qwen4_exp": ("Qwen4ExpTextRMSNormGated", {"activation": "sigmoid"}),
    "falcon_h1": ("FalconH1RMSNormGated", {"n_groups": 3, "norm_before_gate": False}),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", NORMS)
def test_gated_norms(model, seed):
    draw = Draw(seed)
    name, options = NORMS[model]
    options = dict(options)
    if model == "falcon_h1":
        options["norm_before_gate"] = draw.pick(True, False)
    norm = getattr(module_of(model), name)(24, **options)
    norm.weight.data = draw.uniform(24, low=0.5, high=1.5)
    exact = getattr(module_of(model), name)(24, **options)
    exact.weight.data = norm.weight.data.double()
    x, gate = (draw.normal(2, 5, 24) for _ in range(2))
    if draw.pick(True, False):
        x, gate = x.flatten(0, 1), gate.flatten(0, 1)
    function = type(norm).forward
    gates = (gate, None) if model in ("mamba2", "falcon_h1") else (gate,)
    for gate in gates:
        before = function.__linattn_hook__.taken
        found = norm(x, gate)
        assert function.__linattn_hook__.taken == before + 1 and found.dtype is draw.dtype
        with in_float64():
            expected = inspect.unwrap(function)(exact, x.double(), None if gate is None else gate.double())
        compare(found, expected, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS + 2))
def test_convolution(seed):
    draw = Draw(seed)
    rows, channels, length, width = draw.pick(1, 2), 21, draw.pick(1, 2, 33), 4
    x = draw.pick(draw.normal(rows, channels, length), draw.normal(rows, length, channels).transpose(1, 2))
    options = {"bias": draw.maybe(draw.normal(channels)), "activation": draw.pick(None, "silu", "gelu"), "use_cache": True}
    check(module_of("mamba2").causal_conv1d_fn, (x, draw.normal(channels, width)), options, draw.dtype)


@pytest.mark.parametrize("seed", range(DRAWS + 2))
def test_convolution_step(seed):
    draw = Draw(seed)
    rows, channels, length, width = draw.pick(1, 2), 21, draw.pick(1, 1, 5), 4
    x = draw.pick(draw.normal(rows, channels, length), draw.normal(rows, length, channels).transpose(1, 2))
    state = draw.normal(rows, channels, width + draw.pick(0, 1))
    options = {"bias": draw.maybe(draw.normal(channels)), "activation": draw.pick(None, "silu", "gelu")}
    check(module_of("mamba2").causal_conv1d_update, (x, state, draw.normal(channels, width)), options, draw.dtype, written=(1,))


def test_packed_convolutions():
    draw = Draw(1)
    x, weight = draw.normal(1, 24, 20), draw.normal(24, 4)
    function = module_of("mamba2").causal_conv1d_fn
    bounds = [0, 7, 8, 20]
    alone = torch.cat([function(x[:, :, begin:end], weight, activation="silu") for begin, end in zip(bounds, bounds[1:])], 2)
    numbers = torch.tensor([[0] * 7 + [1] + [2] * 12], dtype=torch.int32)
    compare(function(x, weight, activation="silu", seq_idx=numbers), alone, draw.dtype)
    compare(function(x, weight, activation="silu", cu_seq_lens_q=torch.tensor(bounds)), alone, draw.dtype)
