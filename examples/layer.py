"""The same layer from Python, at once and token by token."""

import numpy as np

import linattn

rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((2, 128, 8, 64), dtype=np.float32) for _ in range(3))
o = linattn.attention(q, k, v, causal=True)  # [B, T, H, D] in and out, no copies

state = linattn.State.zeros(2, 8, 64, 64, normalize=True)
for t in range(128):  # decoding: the state is all that is kept
    token = slice(t, t + 1)
    o_t = state.step(
        q[:, token], k[:, token], v[:, token], feature_map="elu", normalize=True, scale=1.0
    )
print("last token differs by", np.abs(o_t - o[:, -1:]).max())
