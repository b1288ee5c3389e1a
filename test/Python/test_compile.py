"""Functions written in MLIR."""

import sys
import threading

import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import reference

pytestmark = pytest.mark.optimized

LAYER = """
func.func @layer(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>, %v: tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}
"""
TWO = """
func.func @scaled(%x: tensor<?xf32>, %s: f32) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %s : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  return %x, %y : tensor<?xf32>, tensor<?xf32>
}
"""


def heads_first(x):
    return np.ascontiguousarray(x.swapaxes(1, 2))


def test_attention(rng, tmp_path):
    q, k, v = (rng.standard_normal((2, 8, 33, 64)).astype(np.float32) for _ in range(3))
    ref = heads_first(reference.attention(*map(heads_first, (q, k, v)), causal=True))
    path = tmp_path / "layer.mlir"
    path.write_text(LAYER)
    for kernel in (linattn.compile(LAYER), linattn.compile(path, "layer"), linattn.compile(str(path))):
        assert_agrees(kernel(q, k, v), ref)
    assert_agrees(linattn.compile(LAYER, target="reference")(q, k, v), ref)
    out = np.empty_like(v)
    assert kernel(q, k, v, out=out, num_threads=1) is out
    assert_agrees(out, ref)


def test_several_results_and_numbers():
    kernel = linattn.compile(TWO)
    x = np.arange(5, dtype=np.float32)
    same, doubled = kernel(x, 2.0)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(doubled, 2 * x)


def test_stages_and_code_of_a_kernel():
    kernel = linattn.compile(LAYER)
    assert "linattn.attention" in kernel.mlir()
    assert "linattn.attention" not in kernel.mlir(kernel.stages()[-1])
    assert "layer" in kernel.asm()
    assert "scan" in kernel.explain()
    assert "@layer" in repr(kernel)
    with pytest.raises(ValueError, match="expected a stage among input"):
        kernel.mlir("nonsense")


@pytest.mark.parametrize(
    "text, message",
    [
        ("func.func @f(\n", r"<string>:\d+:\d+: error"),
        ("func.func @f() {\n  %0 = no.such_op\n  return\n}", r"<string>:2:\d+: error"),
        (LAYER.replace("2x8x?x64xf32>)", "2x8x?x32xf32>)", 1), r"<string>:\d+:\d+: error"),
    ],
)
def test_malformed(text, message):
    with pytest.raises(ValueError, match=message):
        linattn.compile(text)


def test_errors():
    with pytest.raises(OSError):
        linattn.compile("no-such-file.mlir")
    with pytest.raises(TypeError, match="text_or_path"):
        linattn.compile(3)
    with pytest.raises(ValueError, match="target"):
        linattn.compile(LAYER, target="tpu")
    with pytest.raises(ValueError, match="other"):
        linattn.compile(LAYER, entry="other")
    kernel = linattn.compile(TWO)
    x = np.arange(5, dtype=np.float32)
    with pytest.raises(TypeError, match="2 arguments, but got 1"):
        kernel(x)
    with pytest.raises(ValueError, match="argument 0"):
        kernel(x.astype(np.float64), 2.0)
    with pytest.raises(TypeError, match=r"argument 1 \(%s\)"):
        kernel(x, "2")


def test_many_threads(qkv):
    """Calls from several threads at once, the first of which compiles."""
    linattn._linattn.clear_cache()
    ref = reference.attention(*qkv, causal=True, scale=0.77)
    outputs = [None] * 8

    def work(i):
        for _ in range(20):
            outputs[i] = linattn.attention(*qkv, causal=True, scale=0.77)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outputs:
        assert_agrees(out, ref)


def test_call_is_cheap():
    """A call's work in Python: functions that it enters and calls of C, counted."""
    q = np.ones((1, 1, 1, 16), np.float32)
    linattn.attention(q, q, q, causal=True)
    events = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    linattn.attention(q, q, q, causal=True)
    sys.setprofile(None)
    # `attention`, the state's description, the lookup of the plan, `isinstance`, and the end of the count.
    assert events.count("call") <= 3 and events.count("c_call") <= 2, events


def test_math(rng):
    """Fast arithmetic rounds otherwise, but computes the same."""
    source = """
func.func @f(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %o = linattn.attention %q, %q, %q {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}"""
    q = rng.standard_normal((1, 2, 70, 16)).astype(np.float32)
    strict, fast = (linattn.compile(source, math=math) for math in ("strict", "fast"))
    assert "reassoc" in fast.llvm_ir() and "reassoc" not in strict.llvm_ir()
    np.testing.assert_allclose(fast(q), strict(q), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="math: expected .*strict.*fast.*but got 'loose'"):
        linattn.compile(source, math="loose")


def test_math_of_a_gpu(rng, monkeypatch):
    """Products take 16 bits of float32: more than their own error, and no more than that."""
    source = """
func.func @f(%q: tensor<1x1x?x32xf32>) -> tensor<1x1x?x32xf32> {
  %o = linattn.attention %q, %q, %q weights(softmax) {causal, scale = 0.2}
    : (tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32>) -> tensor<1x1x?x32xf32>
  return %o : tensor<1x1x?x32xf32>
}"""
    q = rng.standard_normal((1, 1, 40, 32)).astype(np.float32)
    expected = linattn.compile(source, target="reference")(q)
    strict, fast = (linattn.compile(source, target="nvvm-emulated", math=math) for math in ("strict", "fast"))
    assert np.abs(strict(q) - expected).max() <= 2e-6 < np.abs(fast(q) - expected).max() <= 1e-4
    assert "math=fast" in fast.explain() and "math=fast" not in strict.explain()
    monkeypatch.setenv("LINATTN_MATH", "fast")
    assert "math=fast" in linattn.compile(source, target="nvvm-emulated").explain()


SCAN = """
func.func @scan(%q: tensor<1x2x?x32xf32>, %k: tensor<1x2x?x32xf32>, %v: tensor<1x2x?x32xf32>, %s: tensor<1x2x32x32xf32>)
    -> (tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %v, %c2 : tensor<1x2x?x32xf32>
  %e = tensor.empty(%n) : tensor<1x2x?x32xf32>
  %o, %t = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>)
    -> (tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>)
  return %o, %t : tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>
}
"""


def test_emulated_kernels_agree_with_naive_loops(rng):
    q, k, v = (rng.standard_normal((1, 2, 40, 32)).astype(np.float32) for _ in range(3))
    s = rng.standard_normal((1, 2, 32, 32)).astype(np.float32)
    emulated = linattn.compile(SCAN, target="nvvm-emulated")(q, k, v, s)
    for got, other in zip(emulated, linattn.compile(SCAN, target="reference")(q, k, v, s)):
        assert_agrees(got, other)


def test_findings_of_the_emulator_are_errors(rng):
    # Rows that are not multiples of 16 bytes apart, which the kernel relies on.
    text = SCAN.replace("x32xf32>", "x32xf16>").replace("32x32xf16>", "32x32xf32>")
    kernel = linattn.compile(text, target="nvvm-emulated")
    wide = [rng.standard_normal((1, 2, 70, 33)).astype(np.float16) for _ in range(3)]
    s = np.zeros((1, 2, 32, 32), np.float32)
    kernel(*(np.ascontiguousarray(x[..., :32]) for x in wide), s)
    with pytest.raises(ValueError, match="scan_scan: misaligned: [1-9]"):
        kernel(*(x[..., :32] for x in wide), s)


SUMS = """
func.func @sums(%k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %c: tensor<4xi64>) -> tensor<3x2x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x16x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x16x16xf32>) -> tensor<3x2x16x16xf32>
  %s = linattn.state %k, %v cu_seqlens(%c) init(%zeros) {config = #linattn.config<form = state_tile>}
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<4xi64>, tensor<3x2x16x16xf32>) -> tensor<3x2x16x16xf32>
  return %s : tensor<3x2x16x16xf32>
}
"""


@pytest.mark.parametrize("offsets", [(0, 20, 20, 50), (0, 0, 0, 0)], ids=["one empty", "no tokens"])
def test_sums_of_sequences_without_tokens_are_zero(rng, offsets):
    """No fill writes the zeros: the kernel starts from them."""
    k, v = (rng.standard_normal((1, 2, offsets[-1], 16)).astype(np.float32) for _ in range(2))
    expected = [np.einsum("htk,htv->hkv", k[0, :, a:b], v[0, :, a:b]) for a, b in zip(offsets, offsets[1:])]
    kernel = linattn.compile(SUMS)
    # The next result takes the memory of this one.
    kernel(k, v, np.array(offsets))[:] = np.nan
    sums = kernel(k, v, np.array(offsets))
    assert not sums[1].any()
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)
