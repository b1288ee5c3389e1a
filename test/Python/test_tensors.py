"""Tensors of PyTorch: results of the tokens' dtype from every function, and tensors
whose memory is not their elements."""

import numpy as np
import pytest
import test_beyond
import test_fla

import linattn
from linattn import fla, reference

torch = pytest.importorskip("torch")

B, T, H, D = 1, 3, 2, 8
POLYNOMIALS = ["parallel_based", "fused_chunk_based", "parallel_rebased"]
LINEAR = ["chunk_linear_attn", "fused_chunk_linear_attn", "fused_recurrent_linear_attn"]


def normal(*shape, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


def narrow(operands):
    return {name: torch.from_numpy(np.ascontiguousarray(x)).bfloat16() if isinstance(x, np.ndarray) else x for name, x in operands.items()}


def first(result):
    return result[0] if isinstance(result, tuple) else result


# Those of test_families are in test_operand_layouts.
BEYOND = {name: make for name, make in test_beyond.CASES.items() if "-" not in name}


@pytest.mark.parametrize("name", BEYOND)
def test_families_return_the_dtype_of_the_tokens(rng, name):
    assert getattr(linattn, name)(**narrow(BEYOND[name](rng, np.float32))).dtype == torch.bfloat16


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case, name", test_fla.ALL, ids=test_fla.IDS)
def test_fla_returns_the_dtype_of_the_tokens(rng, case, name):
    assert first(case.call(name, narrow(case.draw(rng, tokens=T)))).dtype == torch.bfloat16


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*POLYNOMIALS, *LINEAR, "chunk_abc", "chunk_gsa", "fused_mul_recurrent_rwkv7"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_more_of_fla_returns_the_dtype_of_the_tokens(name, dtype):
    x = abs(normal(B, T, H, D, dtype=getattr(torch, dtype)))
    count = 6 if "rwkv7" in name else 4 if name in ("chunk_abc", "chunk_gsa") else 3
    out = first(getattr(fla, name)(*[-x if i == 1 and count == 6 else x for i in range(count)]))
    assert out.dtype == x.dtype and out.shape == x.shape
    if name in POLYNOMIALS:
        wide = getattr(fla, name)(*[x.double()] * 3)
        assert (out.double() - wide).norm() <= 2.5e-3 * wide.norm()


def test_numpy_keeps_its_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.ones((B, T, H, D), ml_dtypes.bfloat16)
    assert fla.parallel_based(x, x, x).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("family", ["gsa", "abc"])
def test_slots_are_rounded_once(family):
    """Scores between the passes are f32: the error is that of rounding the result."""
    q, k, v, s = (normal(2, 120, H, K) for K in (32, 32, 32, 16))
    operands = (q, k, v, s) if family == "abc" else (q, k, v, s, -abs(s) / 8)
    out = getattr(linattn, family)(*operands).double().numpy()
    expected = getattr(reference, family)(*(x.double().numpy() for x in operands))
    rounded = torch.from_numpy(expected).bfloat16().double().numpy()
    alone = np.linalg.norm(rounded - expected)
    assert np.linalg.norm(out - expected) <= 1.01 * alone <= 2.5e-3 * np.linalg.norm(expected)


# ----------------------------------------------------------------------------
# Memory that is not the elements
# ----------------------------------------------------------------------------


def odd_tensors():
    x = normal(B, T, H, D, dtype=torch.float32)
    z = torch.complex(x, x)
    return {
        "negative": (z.conj().imag, r"negative bit|resolve_neg\(\)"),
        "conjugate": (z.conj(), r"conjugate bit; pass its resolve_conj\(\)|complex(64| numbers of 64 bits)"),
        "complex": (z, "complex(64| numbers of 64 bits)"),
        "meta": (torch.empty(B, T, H, D, device="meta"), "a tensor on the meta device"),
        "sparse": (x.to_sparse(), "a tensor of the layout torch.sparse_coo"),
        "quantized": (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "a quantized tensor"),
        "nested": (torch.nested.nested_tensor([x[0], x[0, :2]]), "a nested tensor"),
    }


CALLS = {
    "q": lambda x, y: linattn.scan(x, y, y),
    "v": lambda x, y: linattn.attention(y, y, x),
    "decay": lambda x, y: linattn.scan(y, y, y, decay=x),
    "out": lambda x, y: linattn.scan(y, y, y, out=x),
    "initial_state": lambda x, y: linattn.scan(y, y, y, initial_state=x),
    "g": lambda x, y: fla.chunk_gla(y, y, y, x),
    "k": lambda x, y: fla.parallel_based(y, x, y),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["negative", "conjugate", "complex", "meta", "sparse", "quantized", "nested"])
@pytest.mark.parametrize("name", CALLS)
def test_odd_tensors_are_refused(kind, name):
    odd, message = odd_tensors()[kind]
    with pytest.raises((ValueError, TypeError), match=f"^{name}: expected.*({message})") as error:
        CALLS[name](odd, normal(B, T, H, D, dtype=torch.float32))
    assert "Internal error" not in str(error.value)


def test_resolved_signs_are_taken():
    x = normal(B, T, H, D, dtype=torch.float32)
    negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    assert torch.equal(linattn.scan(x, x, negative.resolve_neg()), -linattn.scan(x, x, x))
