"""dplr whose transition writes the key: chunks write V + R as one."""

import numpy as np
import pytest

import linattn

B, H, T, K, V = 2, 3, 37, 9, 11
GATES = {"none": (), "token": (B, H, T), "channel": (B, H, T, K)}


def text_of(gate, readout, form, feature_map):
    t, v, s = (f"tensor<{B}x{H}x{rows}x{columns}xf32>" for rows, columns in ((T, K), (T, V), (K, V)))
    g = f"tensor<{'x'.join(map(str, GATES[gate]))}xf32>"
    argument, operand, kind = ("", "", "") if gate == "none" else (f", %g: {g}", "decay(%g)", f"{g}, ")
    attributes = f"scale = 0.5, config = #linattn.config<form = {form}>"
    if feature_map:
        attributes += f", feature_map = #linattn.feature_map<{feature_map}>"
    return f"""
func.func @f(%q: {t}, %k: {t}, %v: {v}, %a: {t}, %s: {s}{argument}) -> ({v}, {s}) {{
  %e = tensor.empty() : {v}
  %o:2 = linattn.scan %q, %k, %v {operand} a(%a) b(%k) update(dplr) readout({readout}) into(%e) init(%s) {{{attributes}}}
    : ({t}, {t}, {v}, {kind}{t}, {t}, {v}, {s}) -> ({v}, {s})
  return %o#0, %o#1 : {v}, {s}
}}"""


def oracle(q, k, v, a, state, g=None, *, readout, phi):
    state, outs = state.astype(np.float64), []
    for t in range(T):
        before = state
        if g is not None:
            gate = np.exp(g[:, :, t].astype(np.float64))
            state = state * (gate[..., None, None] if g.ndim == 3 else gate[..., None])
        r = np.einsum("bhkv,bhk->bhv", state, a[:, :, t])
        state = state + k[:, :, t, :, None] * r[:, :, None] + phi(k[:, :, t])[..., None] * v[:, :, t, None]
        outs.append(0.5 * np.einsum("bhkv,bhk->bhv", before if readout == "exclusive" else state, phi(q[:, :, t])))
    return np.stack(outs, 2), state


@pytest.mark.parametrize("gate, readout, feature_map", [
    ("none", "inclusive", None), ("token", "exclusive", None), ("channel", "inclusive", None),
    # φ(k) is written, but b is k: two writes.
    ("none", "inclusive", "relu"),
])  # fmt: skip
def test_agrees(gate, readout, feature_map):
    rng = np.random.default_rng(0)
    q, k, a = (0.3 * rng.standard_normal((B, H, T, K)) for _ in range(3))
    v, s = rng.standard_normal((B, H, T, V)), rng.standard_normal((B, H, K, V))
    operands = [q, k, v, a, s] + ([-2 * rng.random(GATES[gate])] if GATES[gate] else [])
    operands = [x.astype(np.float32) for x in operands]
    expected = oracle(*operands, readout=readout, phi=(lambda x: np.maximum(x, 0)) if feature_map else (lambda x: x))
    for form in ("token", "chunk, chunk = 16"):
        got = linattn.compile(text_of(gate, readout, form, feature_map), trusted=True)(*operands)
        for x, y in zip(got, expected):
            assert np.abs(x - y).max() <= 1e-5 * np.abs(y).max(), form
