"""`explain`: what the compiler decided, for calls and for kernels."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import linattn

B, T, H, D = 1, 12, 2, 64


@pytest.fixture
def qkv(rng):
    return [rng.standard_normal((B, T, H, D)).astype(np.float32) for _ in range(3)]


CHOICE = re.compile(r"passed: select-form: .*cost (\d+) per token and head, \d+ % of the peak of multiply-adds; (.+)")


def test_costs_of_the_choice_and_its_alternatives(qkv):
    text = linattn.explain(linattn.scan, *qkv)
    choices = CHOICE.findall(text)
    assert len(choices) == 1, text
    considered = re.findall(r"([a-z_:0-9]+) (\d+)", choices[0][1])
    assert {"state_tile", "token"} == {form for form, _ in considered}


def test_refusals(qkv):
    beta = np.ones((B, T, H), np.float32)
    text = linattn.explain(linattn.scan, *qkv, beta=beta, update="delta")
    assert "not state_tile: a rank-1 transition couples the rows of a state column" in text
    text = linattn.explain(linattn.scan, *qkv, beta=beta, update="oja")
    assert "runs as scalar loops" in text
    assert "not chunk: its transition" in text


def test_a_slower_form_by_name(rng):
    q, k, v = (rng.standard_normal((B, T, H, 256)).astype(np.float32) for _ in range(3))
    beta = np.ones((B, T, H), np.float32)
    text = linattn.explain(linattn.scan, q, k, v, beta=beta, update="delta", form="token")
    assert re.search(r"missed: select-form: token was requested and is predicted to cost \d+, chunk:\d+ only \d+", text)
    assert "as requested" in text


def test_short_causal_attention(qkv):
    text = linattn.explain(linattn.attention, *qkv, causal=True, feature_map="identity", normalize=False)
    assert re.search(r"a sequence of up to \d+ tokens is one chunk", text)
    text = linattn.explain(linattn.attention, *qkv, causal=True, feature_map="identity", normalize=False, form="chunk")
    assert "is one chunk" not in text


@pytest.mark.parametrize("m, said", [(16, "fewer than the head size"), (64, None), (256, None), (320, "more than 4 times")])
def test_random_features(qkv, m, said):
    W = np.random.default_rng(0).standard_normal((m, D)).astype(np.float32)
    text = linattn.explain(linattn.attention, *qkv, causal=True, feature_map=linattn.feature_maps.favor(W))
    assert (f"{m} random features for heads of {D}" in text) == (said is not None)
    assert said is None or said in text


def test_layouts(qkv):
    q, k, v = qkv
    wide = np.zeros((B, T, H, 2 * D), np.float32)[..., ::2]
    text = linattn.explain(linattn.scan, wide, k, v)
    assert "%q) has the innermost stride 2: the call runs in code for any strides" in text
    assert "layout" not in linattn.explain(linattn.scan, q, k, v)
    transposed = np.ascontiguousarray(np.asarray(q).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert f"%q) has the innermost stride {T}: the kernel transposes it tile by tile" in linattn.explain(linattn.scan, transposed, k, v)
    beta = np.ones((B, T, H), np.float32)
    text = linattn.explain(linattn.scan, q, k, v, beta=beta, update="delta")
    assert f"%beta) has the innermost stride {H}: it is small, and every call copies it" in text


def test_nothing_is_computed(qkv):
    out = np.full((B, T, H, D), 7.0, np.float32)
    linattn.explain(linattn.scan, *qkv, out=out)
    np.testing.assert_array_equal(out, 7.0)
    state = linattn.State.zeros(B, H, D, D)
    assert "select-form" in linattn.explain(state.step, *(x[:, :1] for x in qkv))
    assert not state.S.any()
    # And computed again afterwards.
    linattn.scan(*qkv, out=out)
    assert not (out == 7.0).any()


def test_families_and_functions_of_several_kernels(qkv):
    q, k, v = qkv
    assert "select-form" in linattn.explain(linattn.gla, q, k, v, -np.ones_like(k))

    def two(q):
        beta = np.ones((B, T, H), np.float32)
        return linattn.scan(q, k, v) + linattn.scan(q, k, v, beta=beta, update="delta")

    assert len(CHOICE.findall(linattn.explain(two, q))) == 2


def test_errors(qkv):
    with pytest.raises(TypeError, match="function: expected a callable, but got int"):
        linattn.explain(3)
    with pytest.raises(TypeError, match="function: expected one that runs compiled code, but sum ran none"):
        linattn.explain(sum, [1, 2])
    with pytest.raises(ValueError, match="k: "):
        linattn.explain(linattn.scan, qkv[0], qkv[1][:, :3], qkv[2])
    # A call that failed leaves nothing behind.
    assert linattn.scan(*qkv).any()


def softmax(*operands, **options):
    return linattn.attention(*operands, weights="softmax", **options)


PAGES = np.zeros((4, 4, H, D), np.float32)
RELATIVES = {
    "linformer": (lambda q: (linattn.linformer, (q, q, q, np.ones((T, 4), np.float32)), {}), ["keys and values are summed to 4"]),
    "nystrom": (lambda q: (linattn.nystrom, (q, q, q), {"landmarks": 4}), ["4 landmarks, means of segments", "by 6 iterations"]),
    "nystrom-uneven": (lambda q: (linattn.nystrom, (q, q, q), {"landmarks": 5}), ["5 landmarks, products with weights"]),
    "fnet": (lambda q: (linattn.fnet, (q,), {}), ["numpy.fft.rfft"]),
    "hybrid": (
        lambda q: (linattn.hybrid, (q, q, q, np.ones(H, np.float32)), {"window": 3}),
        ["softmax in a window of 3, a scan over all tokens", "runs as a scan"],
    ),
    "packed": (lambda q: (softmax, (q, q, q), {"cu_seqlens": [0, 5, T]}), ["a loop over the sequences"]),
    "lengths": (lambda q: (softmax, (q, q, q), {"cache_seqlens": np.int64([5])}), ["a loop over the sequences"]),
    "pages": (
        lambda q: (softmax, (q, PAGES, PAGES), {"cache_seqlens": np.int64([5]), "block_table": np.zeros((1, 3), np.int32)}),
        ["pages are gathered side by side", "missed: attention: a kernel that reads pages where they lie"],
    ),
    "blocks": (
        lambda q: (softmax, (q, q, q), {"block_mask": np.ones((3, 3), bool), "block_size": 4}),
        ["a loop over the blocks of queries", "blocks are gathered", "missed: attention: a kernel that reads blocks"],
    ),
    "dropout": (
        lambda q: (softmax, (q, q, q), {"dropout": 0.5, "seed": 1}),
        ["weights drawn by Philox4x32-10 of their places, where they are used"],
    ),
    "window": (lambda q: (softmax, (q, q, q), {"window": 3, "causal": True}), ["select-form: quadratic"]),
    "s4d": (
        lambda q: (linattn.s4d, (q[:, :4, 0], np.ones(4, np.float32), -np.ones((4, 2), np.complex64), np.ones((4, 2), np.complex64)), {}),
        ["by selective_scan, discretised by zoh", "channels side by side in vectors", "missed: s4d: the convolution"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_of_softmax(qkv, name):
    make, expected = RELATIVES[name]
    function, operands, options = make(qkv[0])
    text = linattn.explain(function, *operands, **options)
    for line in expected:
        assert line in text, text


def test_groups_on_a_gpu(qkv):
    text = linattn.explain(softmax, *qkv, cu_seqlens=[0, 5, T], target="nvvm-emulated")
    assert "a thread has a query and head" in text
    assert "no kernel: it is in a parallel loop" in text


LAYER = """
func.func @layer(%q: tensor<2x2x?x64xf32>) -> tensor<2x2x?x64xf32> {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32>) -> tensor<2x2x?x64xf32>
  return %o : tensor<2x2x?x64xf32>
}
"""


def test_kernels(rng):
    kernel = linattn.compile(LAYER)
    q = rng.standard_normal((2, 2, 9, 64)).astype(np.float32)
    assert CHOICE.search(kernel.explain())
    assert kernel.explain(q) == kernel.explain() == linattn.explain(kernel, q)
    strided = np.zeros((2, 2, 9, 128), np.float32)[..., ::2]
    assert kernel.explain(strided).startswith(kernel.explain())
    assert "argument 0 (%q) has the innermost stride 2" in kernel.explain(strided)
    with pytest.raises(ValueError, match="argument 0"):
        kernel.explain(q[0])


def test_the_disk_cache_keeps_it(tmp_path):
    program = f"import linattn; print(linattn.compile('''{LAYER}''').explain()); print(linattn.compile.__module__, linattn._linattn.cache_stats())"
    environment = {**os.environ, "LINATTN_CACHE_DIR": str(tmp_path / "cache"), "LINATTN_CACHE": "on"}
    first, second = (
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert "'disk_hits': 0" in first and "'disk_hits': 1" in second
    assert CHOICE.search(first)
    assert first.rsplit("\n", 2)[0] == second.rsplit("\n", 2)[0]
