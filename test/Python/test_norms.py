"""Epilogues of recurrences: norms, gates and skips of any dtypes, strides and groups, and
the same by the names that the field has for it."""

import inspect

import numpy as np
import pytest

import linattn
from conftest import assert_agrees
from linattn import reference

torch = pytest.importorskip("torch")


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("kind", ["rms", "layer", "none"])
@pytest.mark.parametrize("D", [1, 20, 128])
def test_options(rng, kind, D):
    x, gate, skip = (normal(rng, 2, 70, 3, D) for _ in range(3))
    weight = normal(rng, D)
    for options in (
        {"weight": weight, "weight_offset": 1.0},
        {"skip": skip, "skip_weight": normal(rng, 3)},
        {"skip": skip, "skip_weight": normal(rng, 3, D), "gate": gate, "gate_first": True, "weight": weight},
        {"skip": skip, "skip_weight": normal(rng, 3, D), "gate": gate, "weight": normal(rng, 3, D), "weight_offset": -0.5, "bias": weight},
    ):  # fmt: skip
        out = linattn.output_norm(x, kind=kind, **options)
        assert_agrees(out, reference.output_norm(x, kind=kind, **options))
        assert_agrees(linattn.output_norm(x, kind=kind, target="reference", **options), out)


@pytest.mark.parametrize("dtypes", ["bf16 f32 f32", "f32 bf16 bf16", "bf16 bf16 f32", "f16 f32 bf16", "f64 f32 f16", "f32 f64 f64"])
def test_mixed_dtypes(rng, dtypes):
    names = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
    own, of_gate, of_weight = (names[name] for name in dtypes.split())
    x, gate, skip = (torch.from_numpy(normal(rng, 2, 9, 3, 32)) for _ in range(3))
    weight, D = torch.from_numpy(normal(rng, 32)), torch.from_numpy(normal(rng, 3))
    x, gate, skip, weight, D = x.to(own), gate.to(of_gate), skip.to(of_gate), weight.to(of_weight), D.to(of_weight)
    options = dict(gate=gate, weight=weight, skip=skip, skip_weight=D)
    out = linattn.output_norm(x, **options)
    assert out.dtype == own and out.shape == x.shape
    dtype = str(own).rpartition(".")[2]
    # A gate of f64 beside f32 is rounded to f32.
    assert_agrees(out.double().numpy(), np.asarray(reference.output_norm(x, **options)), dtype)


@pytest.mark.parametrize("shape", [(33, 48), (2, 33, 48), (2, 0, 48), (1, 1, 48)])
@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_groups(rng, shape, kind):
    x, gate, skip = (normal(rng, *shape) for _ in range(3))
    weight, bias, D = (normal(rng, 48) for _ in range(3))
    for groups in (1, 2, 3, 48):
        options = dict(weight=weight, bias=bias, gate=gate, skip=skip, skip_weight=D, gate_first=True, kind=kind, groups=groups)
        out = linattn.output_norm(x, **options)
        assert out.shape == shape
        if out.size:
            assert_agrees(out, reference.output_norm(x, **options))
        given = np.empty_like(x)
        assert linattn.output_norm(x, out=given, **options) is given
        np.testing.assert_array_equal(given, out)


@pytest.mark.parametrize("D", [4096, 5000, 8192])
def test_wide_rows(rng, D):
    """A thousand times the square root of eps, and sums of many terms."""
    x = (1e3 * normal(rng, 3, D)).astype(np.float32)
    gate = torch.from_numpy(normal(rng, 3, D)).bfloat16()
    for kind in ("rms", "layer"):
        out = linattn.output_norm(torch.from_numpy(x), gate=gate, weight=torch.ones(D), kind=kind)
        assert_agrees(out.numpy(), np.asarray(reference.output_norm(x, gate=gate.float().numpy(), weight=np.ones(D), kind=kind)))


def test_strides(rng):
    """Slices, transposes and steps; results do not depend on them, nor on threads."""
    wide, gates = normal(rng, 2, 9, 3, 128), normal(rng, 2, 9, 3, 64)
    x, gate = wide[..., 64:], gates
    expected = linattn.output_norm(np.ascontiguousarray(x), gate=np.ascontiguousarray(gate), num_threads=1)
    assert_agrees(expected, reference.output_norm(x, gate=gate))
    turned = np.ascontiguousarray(gate.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    last = np.asfortranarray(gate)
    for y, g in ((x, gate), (x, turned), (x, last), (np.asfortranarray(x), gate)):
        assert_agrees(linattn.output_norm(y, gate=g, num_threads=2), expected)
    np.testing.assert_array_equal(linattn.output_norm(x, gate=turned, num_threads=2), expected)
    everyother = normal(rng, 2, 9, 3, 128)[..., ::2]
    assert_agrees(linattn.output_norm(everyother), reference.output_norm(everyother))


# ----------------------------------------------------------------------------
# By the names of the field
# ----------------------------------------------------------------------------


def silu(x):
    return x / (1 + np.exp(-x))


def rms(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


@pytest.mark.parametrize("shape", [(40,), (9, 40), (2, 9, 40), (2, 9, 3, 40), (2, 2, 3, 2, 40)])
def test_rms_norm_gated(rng, shape):
    x, g, r = (normal(rng, *shape) for _ in range(3))
    w, b = normal(rng, 40), normal(rng, 40)
    wide = [y.astype(np.float64) for y in (x, g, r, w, b)]
    assert_agrees(linattn.rms_norm_gated(x, g, w, b), (rms(wide[0], 1e-6) * wide[3] + wide[4]) * silu(wide[1]))
    out = linattn.rms_norm_gated(x, g, w, activation="sigmoid", residual=r, eps=1e-3)
    assert_agrees(out, rms(wide[0] + wide[2], 1e-3) * wide[3] / (1 + np.exp(-wide[1])))
    centred = wide[0] - wide[0].mean(-1, keepdims=True)
    assert_agrees(linattn.layer_norm_gated(x, g, None, None), rms(centred, 1e-6) * silu(wide[1]))


@pytest.mark.parametrize("group_size", [None, 8, 20, 40])
@pytest.mark.parametrize("norm_before_gate", [True, False])
@pytest.mark.parametrize("shape", [(9, 40), (2, 9, 40), (2, 3, 2, 40)])
def test_rmsnorm_fn(rng, shape, group_size, norm_before_gate):
    x, z, w, b = normal(rng, *shape), normal(rng, *shape), normal(rng, 40), normal(rng, 40)
    for layer in (False, True):
        for gate in (z, None):
            y = x.astype(np.float64)
            act = 1.0 if gate is None else silu(gate.astype(np.float64))
            y = y if norm_before_gate else y * act
            y = y.reshape(*shape[:-1], -1, group_size or 40)
            y = rms(y - y.mean(-1, keepdims=True) if layer else y, 1e-5).reshape(shape) * w + b
            y = y * act if norm_before_gate else y
            function = linattn.layernorm_fn if layer else linattn.rmsnorm_fn
            assert_agrees(function(x, w, b, gate, 1e-5, group_size, norm_before_gate), y)


@pytest.mark.parametrize("module", ["qwen3_next.modeling_qwen3_next.Qwen3NextRMSNormGated", "mamba2.modeling_mamba2.MambaRMSNormGated"])
def test_modules_of_transformers(module):
    """Their modules in f32, whose parameters are as they come."""
    import importlib

    pytest.importorskip("transformers")
    path, name = module.rsplit(".", 1)
    generator = torch.Generator().manual_seed(0)
    x, gate = (torch.randn(2, 9, 64, generator=generator) for _ in range(2))
    try:
        kind = getattr(importlib.import_module(f"transformers.models.{path}"), name)
    except (ImportError, AttributeError):
        pytest.skip("not in this version")
    group = name == "MambaRMSNormGated"
    layer = kind(64, group_size=16) if group else kind(64)
    weight = torch.randn(64, generator=generator)
    layer.weight.data = weight
    with torch.no_grad():
        expected = layer(x, gate)
    if group:
        out = linattn.rmsnorm_fn(x, weight, None, gate, group_size=16, norm_before_gate=False)
    else:
        out = linattn.rms_norm_gated(x, gate, weight)
    assert type(out) is torch.Tensor
    assert_agrees(out.numpy(), expected.numpy())


def test_signatures():
    def names(function):
        return list(inspect.signature(function).parameters)

    assert names(linattn.rms_norm_gated)[:9] == [
        "x", "g", "weight", "bias", "activation", "residual", "prenorm", "residual_in_fp32", "eps",
    ]  # fmt: skip
    assert names(linattn.layer_norm_gated) == names(linattn.rms_norm_gated)
    assert names(linattn.rmsnorm_fn)[:7] == ["x", "weight", "bias", "z", "eps", "group_size", "norm_before_gate"]
    assert names(linattn.layernorm_fn)[:8] == [*names(linattn.rmsnorm_fn)[:7], "is_rms_norm"]
    assert inspect.signature(linattn.output_norm) == inspect.signature(reference.output_norm)


def test_errors(rng):
    x = normal(rng, 2, 5, 16)
    w = normal(rng, 16)
    cases = [
        (lambda: linattn.output_norm(x, skip=x), ValueError, "skip_weight: expected an array with skip, but got None"),
        (lambda: linattn.output_norm(x, skip_weight=w), ValueError, "skip: expected an array with skip_weight, but got None"),
        (lambda: linattn.output_norm(x, skip=x[:, :4], skip_weight=w), ValueError, "skip: expected shape"),
        (lambda: linattn.output_norm(x, weight_offset=1.0), ValueError, "weight_offset: expected it only with weight"),
        (lambda: linattn.output_norm(x, weight=w, weight_offset="1"), TypeError, "weight_offset: expected a number"),
        (lambda: linattn.output_norm(x, gate=x.astype(np.int32)), TypeError, "gate: expected dtype float16, bfloat16, float32 or float64, but got int32"),
        (lambda: linattn.output_norm(x, groups=3), ValueError, "groups: expected a number that divides the features of x, 16, but got 3"),
        (lambda: linattn.output_norm(x, groups=0), ValueError, "groups: expected a number that divides"),
        (lambda: linattn.output_norm(x, groups=2.0), TypeError, "groups: expected an integer, but got float"),
        (lambda: linattn.output_norm(x[:, :, None], groups=2), ValueError, r"groups: expected x of shape \(B, T, D\) or \(T, D\)"),
        (lambda: linattn.output_norm(x, gate=x[:1], groups=2), ValueError, r"gate: expected shape \(2, 5, 16\), but got \(1, 5, 16\)"),
        (lambda: linattn.output_norm(x, weight=w[:8], groups=2), ValueError, r"weight: expected shape \(16,\), but got \(8,\)"),
        (lambda: linattn.rms_norm_gated(x, x[:1], w), ValueError, r"gate: expected shape \(2, 5, 16\), but got \(1, 5, 16\)"),
        (lambda: linattn.rms_norm_gated(x, x, w, activation="gelu"), ValueError, "activation: expected one of silu, swish, sigmoid"),
        (lambda: linattn.rms_norm_gated(x, x, w, prenorm=True), linattn.UnsupportedError, "prenorm: expected False, but got True"),
        (lambda: linattn.rms_norm_gated(3, x, w), TypeError, "x: expected an array, but got int"),
        (lambda: linattn.rmsnorm_fn(x, w, None, group_size=5), ValueError, "group_size: expected a number that divides"),
        (lambda: linattn.rmsnorm_fn(x, w, None, group_size="5"), TypeError, "group_size: expected an integer or None"),
    ]  # fmt: skip
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
