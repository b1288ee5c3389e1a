"""Gates of 16 bits and arithmetic of one summand: chunk kernels in the emulator."""

import ml_dtypes
import numpy as np
import pytest

import linattn

B, T, H, D = 1, 70, 2, 32
FORMS = {
    "token": ([H], "add"), "channel": ([H, D], "add"), "delta": ([H], "delta"), "kda": ([H, D], "delta"), "head": (None, "add"),
    "gdn2": ([H, D], "delta"), "rwkv7": ([H, D], "dplr"),
}  # fmt: skip


def draw(rng, form, gate):
    shape, update = FORMS[form]
    q, k, v = (rng.standard_normal((B, T, H, D)) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    tokens = [x.astype(np.float16) for x in (q, k, v)]
    decay = -rng.random([H] if shape is None else [B, T, *shape])
    gates = {"decay": (0.2 * decay).astype(gate), "update": update}
    if form == "gdn2":
        gates |= {name: rng.random((B, T, H, D)).astype(gate) for name in ("erase", "write")}
    elif update == "delta":
        gates["beta"] = rng.random((B, T, H)).astype(gate)
    elif update == "dplr":
        a = rng.standard_normal((B, T, H, D))
        a /= np.linalg.norm(a, axis=-1, keepdims=True)
        gates |= {"a": (-a).astype(gate), "b": (a * rng.random(a.shape)).astype(gate)}
    return tokens, gates


@pytest.mark.parametrize("gate", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("form", FORMS)
def test_gates_of_16_bits(rng, form, gate):
    """Chunk kernels take them, with the bits of the same numbers in f32."""
    tokens, gates = draw(rng, form, gate)
    if gate is not np.float16:  # NumPy's own arrays have no bf16 that DLPack knows
        torch = pytest.importorskip("torch")
        gates = {k: torch.from_numpy(x.astype(np.float32)).bfloat16() if k != "update" else x for k, x in gates.items()}
        wide = {k: x.float().numpy() if k != "update" else x for k, x in gates.items()}
    else:
        wide = {k: x.astype(np.float32) if k != "update" else x for k, x in gates.items()}
    call = lambda gates: linattn.scan(*tokens, **gates, return_state=True, target="nvvm-emulated")  # noqa: E731
    assert "chunk kernel" in linattn.explain(lambda: call(gates))
    (o, state), (expected, final) = call(gates), call(wide)
    if form == "rwkv7":  # of narrower vectors more tokens fit a chunk, and scores are summed in another order
        assert np.abs(o - expected).max() <= 1e-3 * np.abs(expected).max()
        assert np.abs(state.S - final.S).max() <= 1e-6 * np.abs(final.S).max()
    else:
        assert (o == expected).all() and (state.S == final.S).all()
    assert np.isfinite(state.S).all() and np.abs(state.S).max() > 0


@pytest.mark.parametrize("form", ["token", "channel", "delta", "kda", "gdn2", "rwkv7"])
def test_fast_arithmetic_takes_one_summand(rng, form, monkeypatch):
    """Products of 16-bit tokens as they are: errors of 2^-11 for f16, and nothing of strict arithmetic changes."""
    tokens, gates = draw(rng, form, np.float32)
    expected, final = linattn.scan(*(x.astype(np.float64) for x in tokens), **gates, return_state=True)
    call = lambda: linattn.scan(*tokens, **gates, return_state=True, target="nvvm-emulated")  # noqa: E731
    errors = {}
    for math in ("strict", "fast"):
        monkeypatch.setenv("LINATTN_MATH", math)
        linattn._recurrence._plans.known.clear()  # which hold kernels of the other
        assert ("math=fast" in linattn.explain(call)) == (math == "fast")
        o, state = call()
        errors[math] = [np.abs(x - y).max() / np.abs(y).max() for x, y in ((o, expected), (state.S, final.S))]
    linattn._recurrence._plans.known.clear()
    assert errors["strict"][1] < 1e-6 and errors["strict"][0] < 6e-4
    assert 1e-6 < errors["fast"][1] < 1e-3 and errors["fast"][0] < 2e-3
