"""Whole mixers of Mamba-1 and Mamba-2 beside their formulas in plain PyTorch and float64."""

import inspect

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from linattn.transformers import _fused, _guard, _known  # noqa: E402

F = torch.nn.functional
# The bits of a seed say which options there are.
DRAWS = [(0, torch.float32), (21, torch.bfloat16), (42, torch.float64), (63, torch.float32), (9, torch.bfloat16), (48, torch.float32)]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11, torch.bfloat16: 3e-2}


@pytest.fixture(autouse=True, scope="module")
def no_grad():
    with torch.no_grad():
        yield


def make(generator, dtype=torch.float32):
    def normal(*shape, scale=1.0):
        return (torch.randn(*shape, generator=generator) * scale).to(dtype)

    return normal


def rms(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def conv(x, weight, bias, activation):
    """x ``[B, C, T]``."""
    weight = weight.reshape(weight.shape[0], 1, -1)
    out = F.conv1d(x, weight, bias, padding=weight.shape[-1] - 1, groups=x.shape[1])[..., : x.shape[2]]
    return F.silu(out) if activation in ("silu", "swish") else out


def selective(u, dt, A, B, C, D):
    """u and dt ``[B, D, T]``, B and C ``[B, N, T]``."""
    state, out = 0, []
    for t in range(u.shape[2]):
        state = torch.exp(dt[:, :, t, None] * A) * state + (dt * u)[:, :, t, None] * B[:, None, :, t]
        out.append((state * C[:, None, :, t]).sum(-1))
    out = torch.stack(out, 2)
    return out if D is None else out + D[:, None] * u


def mamba_inner(xz, conv_w, conv_b, x_proj, dt_proj, out_w, out_b, A, B, C, D, dt_bias, softplus, weights, eps, biases):
    x, z = xz.chunk(2, 1)
    x = conv(x, conv_w, conv_b, "silu")
    parts = list((x.transpose(1, 2) @ x_proj.T).split([dt_proj.shape[1]] + [A.shape[1]] * ((B is None) + (C is None)), -1))
    dt = parts.pop(0)
    if weights[2] is not None:
        dt = rms(dt, weights[2], eps)
    found = []
    for given, bias, weight in zip((B, C), biases, weights):
        if given is None:
            given = parts.pop(0)
            given = given if bias is None else given + bias
            given = (given if weight is None else rms(given, weight, eps)).transpose(1, 2)
        elif given.ndim == 2:
            raise AssertionError("of every token")
        found.append(given)
    dt = (dt @ dt_proj.T).transpose(1, 2)
    dt = dt if dt_bias is None else dt + dt_bias[:, None]
    dt = F.softplus(dt) if softplus else dt
    y = selective(x, dt, A, *found, D) * F.silu(z)
    return F.linear(y.transpose(1, 2), out_w, out_b)


def draw_inner(normal, seed):
    """Every option in one of the draws."""
    pick = lambda bit: bool(seed >> bit & 1)  # noqa: E731
    batch, width, T, N, R, E = 2, 12, 9, 4, 3, 10
    norms = pick(0)
    given = {"B": normal(batch, N, T) if pick(1) else None, "C": normal(batch, N, T) if pick(2) else None}
    count = R + N * sum(x is None for x in given.values())
    args = (
        normal(batch, 2 * width, T), normal(width, 1, 4) if pick(3) else normal(width, 4), normal(width) if pick(4) else None,
        normal(count, width, scale=0.3), normal(width, R, scale=0.3), normal(E, width), normal(E) if pick(5) else None,
        -torch.rand(width, N, generator=torch.Generator().manual_seed(seed)),
    )  # fmt: skip
    kwargs = {
        **given, "D": normal(width) if pick(1) else None, "delta_bias": normal(width) if pick(2) else None,
        "delta_softplus": pick(3) or pick(0), "b_rms_weight": normal(N) if norms and not pick(1) else None,
        "c_rms_weight": normal(N) if norms and not pick(2) else None, "dt_rms_weight": normal(R) if norms else None,
        "b_c_dt_rms_eps": 1e-3, "B_proj_bias": normal(N) if pick(4) and not pick(1) else None,
        "C_proj_bias": normal(N) if pick(5) and not pick(2) else None,
    }  # fmt: skip
    if not kwargs["delta_softplus"]:  # steps are positive
        kwargs["delta_bias"] = normal(width).abs() + 9
    return args, kwargs


def widen(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def compare(found, expected, dtype):
    assert found.shape == expected.shape
    assert (found.double() - expected).abs().max() <= TOLERANCE[dtype] * expected.abs().max()


@pytest.mark.parametrize("seed, dtype", DRAWS)
def test_mamba_inner_fn(seed, dtype):
    normal = make(torch.Generator().manual_seed(seed), dtype)
    args, kwargs = draw_inner(normal, seed)
    found = _fused.mamba_inner_fn(*args, **kwargs)
    k = {name: widen(x) for name, x in kwargs.items()}
    expected = mamba_inner(
        *(widen(x) for x in args), k["B"], k["C"], k["D"], k["delta_bias"], k["delta_softplus"],
        (k["b_rms_weight"], k["c_rms_weight"], k["dt_rms_weight"]), k["b_c_dt_rms_eps"],
        (k["B_proj_bias"], k["C_proj_bias"]),
    )  # fmt: skip
    assert found.dtype is dtype
    compare(found, expected, dtype)


def split_conv1d(x, conv_w, conv_b, dt_bias, A, D, heads, P, groups, initial, limit, activation, weight, eps, out_w, out_b, before):
    inner, states = heads * P, (conv_w.shape[0] - heads * P) // groups // 2
    extra = (x.shape[-1] - 2 * inner - 2 * groups * states - heads) // 2
    beside, z, xbc, dt = x.split([2 * extra, inner, conv_w.shape[0], heads], -1)
    xbc = conv(xbc.transpose(1, 2), conv_w, conv_b, activation).transpose(1, 2)
    u, B, C = xbc.split([inner, groups * states, groups * states], -1)
    u = u.unflatten(-1, (heads, P))
    B, C = (y.unflatten(-1, (groups, states)).repeat_interleave(heads // groups, 2) for y in (B, C))
    dt = F.softplus(dt + dt_bias).clamp(*limit)
    state = initial if initial is not None else 0
    out = []
    for t in range(x.shape[1]):
        state = torch.exp(dt[:, t] * A)[..., None, None] * state + (dt[:, t, :, None] * u[:, t])[..., None] * B[:, t, :, None]
        out.append((state * C[:, t, :, None]).sum(-1))
    y = torch.stack(out, 1)
    y = (y + (D if D.ndim == 2 else D[:, None]) * u).flatten(2)
    if weight is None:
        y = y * F.silu(z)
    else:
        y = y if before else y * F.silu(z)
        y = rms(y.unflatten(-1, (groups, -1)), 1.0, eps).flatten(2) * weight
        y = y * F.silu(z) if before else y
    if extra:
        a, b = beside.chunk(2, -1)
        y = torch.cat((F.silu(a) * b, y), -1)
    return (y if out_w is None else F.linear(y, out_w, out_b)), state


@pytest.mark.parametrize("seed, dtype", DRAWS)
def test_mamba_split_conv1d_scan_combined(seed, dtype):
    normal = make(torch.Generator().manual_seed(seed), dtype)
    pick = lambda bit: bool(seed >> bit & 1)  # noqa: E731
    heads, P, N, groups, T, extra, E = 4, 8, 6, 2 if pick(0) else 1, 11, 3 if pick(1) else 0, 10
    inner, channels = heads * P, heads * P + 2 * groups * N
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    A = -torch.rand(heads, generator=torch.Generator().manual_seed(seed)).to(wide)
    D = normal(heads, P) if pick(2) else normal(heads)
    x = normal(2, T, 2 * extra + inner + channels + heads)
    initial = normal(2, heads, P, N).to(wide) if pick(3) else None
    weight = normal(inner) if pick(4) else None
    out_w = normal(E, inner + extra, scale=0.2) if pick(5) or pick(0) else None
    out_b = normal(E) if out_w is not None and pick(2) else None
    limit = (0.0, float("inf")) if pick(1) else (0.1, 1.0)
    bias, conv_w, conv_b = normal(heads), normal(channels, 4), normal(channels) if pick(2) else None
    activation = "silu" if not pick(3) else "swish"
    own = None if initial is None else initial.clone()
    found, state = _fused.mamba_split_conv1d_scan_combined(
        x, conv_w, conv_b, bias, A, D, 64, own, limit, True, activation, weight, 1e-3, out_w, out_b,
        None if D.ndim == 2 else P, groups, pick(5),
    )  # fmt: skip
    args = [widen(y) for y in (x, conv_w, conv_b, bias, A, D)]
    expected, end = split_conv1d(
        *args, heads, P, groups, widen(initial), limit, activation, widen(weight), 1e-3, widen(out_w), widen(out_b), pick(5)
    )
    compare(found, expected, dtype)
    compare(state, end, dtype)
    alone = _fused.mamba_split_conv1d_scan_combined(
        x, conv_w, conv_b, bias, A, D, 64, None if initial is None else initial.clone(), limit, False, activation,
        weight, 1e-3, out_w, out_b, P, groups, pick(5),
    )  # fmt: skip
    assert torch.equal(alone, found)


def test_packed_sequences():
    """The rows of seq_idx are those of calls of their own."""
    normal = make(torch.Generator().manual_seed(0))
    heads, P, N = 2, 8, 4
    channels = heads * P + 2 * N
    rest = (normal(channels, 4), normal(channels), normal(heads), -torch.rand(heads), normal(heads), 64)
    x = normal(1, 9, heads * P + channels + heads)
    index = torch.tensor([[0] * 5 + [1] * 4], dtype=torch.int32)
    found = _fused.mamba_split_conv1d_scan_combined(x, *rest, headdim=P, seq_idx=index)
    apart = [_fused.mamba_split_conv1d_scan_combined(y, *rest, headdim=P) for y in (x[:, :5], x[:, 5:])]
    torch.testing.assert_close(found, torch.cat(apart, 1), rtol=1e-5, atol=1e-5)


def test_signatures_and_refusals():
    """The parameters are those that transformers looks up; the rest is passed on by name."""
    for name in ("mamba_inner_fn", "mamba_split_conv1d_scan_combined"):
        original = _original(name)
        assert not _known.refuse(name, original)
        own, theirs = (inspect.signature(f).parameters.values() for f in (getattr(_fused, name), original))
        assert [(p.name, p.default, p.kind) for p in own] == [(p.name, p.default, p.kind) for p in theirs]
    normal = make(torch.Generator().manual_seed(0))
    args, kwargs = draw_inner(normal, 21)
    with pytest.raises(_guard.PassOn, match="^seq_idx, which the whole mixer does not take"):
        _fused.mamba_inner_fn(*args, **kwargs, seq_idx=torch.zeros(1))
    args[0][0, :, 2] = 0
    with pytest.raises(_guard.PassOn, match="padded tokens"):
        _fused.mamba_inner_fn(*args, **kwargs)
    x = (normal(1, 3, 40), normal(24, 4), None, normal(2), -torch.ones(2), normal(2), 64)
    with pytest.raises(TypeError, match="headdim: expected the head size"):
        _fused.mamba_split_conv1d_scan_combined(*x)
    with pytest.raises(ValueError, match="zxbcdt: expected 42 channels"):
        _fused.mamba_split_conv1d_scan_combined(*x, headdim=8)
    with pytest.raises(_guard.PassOn, match="^other, which"):
        _fused.mamba_split_conv1d_scan_combined(*x, headdim=8, other=1)


def _original(name):
    from transformers.models.mamba import modeling_mamba
    from transformers.models.mamba2 import modeling_mamba2

    found = modeling_mamba.mamba_inner_fn if name == "mamba_inner_fn" else modeling_mamba2.mamba2_split_conv1d_scan_combined
    return inspect.unwrap(found)
