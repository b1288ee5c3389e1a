"""Norms that the kernel of a scan applies: the bits of two kernels, or closer ones."""

import numpy as np
import pytest

import linattn
from conftest import relative_error
from linattn import reference

pytestmark = pytest.mark.sampled(3)

B, H, K = 2, 4, 32

FORMS = {
    # The update, and the schedule.
    "chunk": ("update(delta)", "form = chunk, chunk = 16"),
    "chunk-few": ("update(delta)", "form = chunk, chunk = 16, few = 8"),
    "add": ("", "form = chunk, chunk = 16"),
    "add-few": ("", "form = chunk, chunk = 16, few = 8"),
    "tile": ("", "form = state_tile"),
}
NORMS = {
    "rms": "weight(%w) gate(%g)",
    "skip": "kind(none) gate(%g) skip(%v) skip_weight(%w)",
    "layer": "kind(layer) weight(%w) bias(%w) gate(%g) activation(sigmoid)",
}


def module(form, norm, dtype, V, parts):
    """The scan, the norm, or both in one function."""
    update, config = FORMS[form]
    tokens, wide = f"tensor<?x{H}x?x{K}x{dtype}>", f"tensor<?x{H}x?x{V}x{dtype}>"
    beta = f"tensor<?x{H}x?xf32>"
    operands = {"%v": wide, "%g": wide, "%w": f"tensor<{V}xf32>"}
    order = {"rms": ["%w", "%g"], "skip": ["%g", "%v", "%w"], "layer": ["%w", "%w", "%g"]}[norm]
    head = f"""
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %b = tensor.dim %x, %c0 : {{0}}
      %t = tensor.dim %x, %c2 : {{0}}
      %e = tensor.empty(%b, %t) : {wide}
      %f = tensor.empty(%b, %t) : {wide}
    """
    clause = f"beta(%beta) {update}" if update else ""
    scan = f"""
      %zero = arith.constant 0.0 : f32
      %se = tensor.empty(%b) : tensor<?x{H}x{K}x{V}xf32>
      %s = linalg.fill ins(%zero : f32) outs(%se : tensor<?x{H}x{K}x{V}xf32>) -> tensor<?x{H}x{K}x{V}xf32>
      %o, %s1 = linattn.scan %x, %k, %v {clause} into(%e) init(%s) {{scale = 0.17, config = #linattn.config<{config}>}}
        : ({tokens}, {tokens}, {wide}, {beta + ', ' if update else ''}{wide}, tensor<?x{H}x{K}x{V}xf32>) -> ({wide}, tensor<?x{H}x{K}x{V}xf32>)
    """
    source = "%o" if "scan" in parts else "%x"
    normed = f"""
      %n = linattn.output_norm {source} {NORMS[norm]} into(%f) : ({wide}, {', '.join(operands[x] for x in order)}, {wide}) -> {wide}
    """
    arguments = {"%x": tokens, "%k": tokens, "%v": wide, "%beta": beta}
    if "norm" in parts:
        arguments |= {"%g": wide, "%w": operands["%w"]}
    if parts == "norm":
        arguments = {"%x": wide, "%v": wide, "%g": wide, "%w": operands["%w"]}
    body = head.format(arguments["%x"]) + (scan if "scan" in parts else "") + (normed if "norm" in parts else "")
    results = {"scan": ["%o", "%s1"], "norm": ["%n"], "scan norm": ["%n", "%s1"]}[parts]
    types = {"%o": wide, "%n": wide, "%s1": f"tensor<?x{H}x{K}x{V}xf32>"}
    returned = ", ".join(types[x] for x in results)
    listed = ", ".join(f"{name}: {type_}" for name, type_ in arguments.items())
    return linattn.compile(f"func.func @f({listed}) -> ({returned}) {{{body}return {', '.join(results)} : {returned}\n}}\n")


def make(rng, dtype, T, V):
    import ml_dtypes

    kind = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}[dtype]
    x, k = (rng.standard_normal((B, H, T, K)).astype(kind) for _ in range(2))
    k = (k.astype(np.float32) / 6).astype(kind)
    v, g = (rng.standard_normal((B, H, T, V)).astype(kind) for _ in range(2))
    beta = rng.random((B, H, T)).astype(np.float32)
    return x, k, v, beta, g, rng.standard_normal(V).astype(np.float32)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("form", FORMS)
def test_bits_of_two_kernels(rng, form, norm):
    for V in (64, 44):
        both, scan, alone = (module(form, norm, "f32", V, parts) for parts in ("scan norm", "scan", "norm"))
        assert "is applied by the kernel of its scan" in str(both.explain())
        for T in (1, 8, 37):
            x, k, v, beta, g, w = make(rng, "f32", T, V)
            n, s = both(x, k, v, beta, g, w)
            o, s1 = scan(x, k, v, beta)
            np.testing.assert_array_equal(n, alone(o, v, g, w))
            np.testing.assert_array_equal(s, s1)


@pytest.mark.parametrize("form, unit", [*((form, "none") for form in FORMS), ("chunk", "emulated"), ("add", "emulated")])
def test_rounds_once(rng, monkeypatch, form, unit):
    """In 16 bits the rows are rounded behind the norm alone, in tiles of a matrix unit, too."""
    monkeypatch.setenv("LINATTN_MATRIX_UNIT", unit)
    both, scan, alone = (module(form, "rms", "bf16", 64, parts) for parts in ("scan norm", "scan", "norm"))
    assert ("kernel of its recurrence" in str(both.explain())) == (unit == "emulated")
    x, k, v, beta, g, w = make(rng, "bf16", 37, 64)
    options = {"update": "delta", "beta": beta.swapaxes(1, 2)} if "delta" in FORMS[form][0] else {}
    tokens = [a.swapaxes(1, 2).astype(np.float64) for a in (x, k, v)]
    o = reference.scan(*tokens, scale=0.17, **options).swapaxes(1, 2)
    expected = o / np.sqrt((o * o).mean(-1, keepdims=True) + 1e-5) * w
    gate = g.astype(np.float64)
    expected = expected * gate / (1 + np.exp(-gate))
    fused, apart = both(x, k, v, beta, g, w)[0], alone(scan(x, k, v, beta)[0], v, g, w)
    errors = [np.abs(np.asarray(y, np.float64) - expected).mean() for y in (fused, apart)]
    assert errors[0] < errors[1]
    assert relative_error(fused, expected) < 1e-2


def test_threads_and_layouts(rng):
    both = module("chunk", "rms", "f32", 64, "scan norm")
    x, k, v, beta, g, w = make(rng, "f32", 70, 64)
    first = both(x, k, v, beta, g, w)[0]
    strided = [np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) for a in (x, k, v)]
    np.testing.assert_array_equal(both(*strided, beta, g, w)[0], first)
    np.testing.assert_array_equal(both(x[:1], k[:1], v[:1], beta[:1], g[:1], w)[0], first[:1])
