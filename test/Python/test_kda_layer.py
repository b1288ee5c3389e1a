"""The token mixer of Kimi K3 and GLM-5.3 between its projections: norms of q and k, a
decay bounded below, β from its preactivation, an output gate of full rank."""

import ml_dtypes
import numpy as np
import pytest
from test_families import error
from test_matrix import rms

import linattn
from linattn import fla

B, T, H, D = 2, 70, 3, 64
BOUND, EPS = -5.0, 1e-5
FLAGS = dict(
    use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True, lower_bound=BOUND,
)  # fmt: skip


def draw(rng, dtype=np.float32, scale=1.0, B=B):
    """Preactivations, `scale` times as far from 0."""
    normal = lambda *shape: rng.standard_normal(shape)  # noqa: E731
    tokens = {name: normal(B, T, H, D).astype(dtype) for name in ("q", "k", "v", "gate")}
    tokens["gate"] = (scale * tokens["gate"]).astype(dtype)
    return tokens | {
        "g": (scale * normal(B, T, H, D)).astype(np.float32), "beta": (scale * normal(B, T, H)).astype(dtype),
        "A_log": np.log(rng.uniform(1, 16, H)).astype(np.float32), "dt_bias": normal(H, D).astype(np.float32),
        "weight": (1 + 0.1 * normal(D)).astype(np.float32),
    }  # fmt: skip


def mix(x, kernel, **options):
    """The mixer of linattn: o before the output projection, and the state."""
    names = ("q", "k", "v", "g", "beta", "A_log", "dt_bias")
    o, S = kernel(**{name: x[name] for name in names if name in x}, **FLAGS, output_final_state=True, **options)
    return linattn.output_norm(o, weight=x["weight"], gate=x["gate"], activation="sigmoid", eps=EPS), S


def by_hand(x, S=None):
    """The same, token by token in float64."""
    x = {name: np.asarray(array, np.float64) for name, array in x.items()}
    sigmoid = lambda y: np.exp(-np.logaddexp(0, -y))  # noqa: E731
    unit = lambda y: y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6)  # noqa: E731
    q, k, rate = unit(x["q"]) * D**-0.5, unit(x["k"]), np.exp(x.get("A_log", np.zeros(H)))[:, None]
    # A multiple of the sigmoid, not a clamp: −5 is never reached.
    g, beta = BOUND * sigmoid(rate * (x["g"] + x["dt_bias"])), sigmoid(x["beta"])
    S, o = np.zeros((len(q), H, D, D)) if S is None else S.astype(np.float64), np.zeros(q.shape)
    for t in range(q.shape[1]):
        S = np.exp(g[:, t])[..., None] * S
        error = x["v"][:, t] - np.einsum("bhkv,bhk->bhv", S, k[:, t])
        S = S + np.einsum("bhk,bhv->bhkv", beta[:, t, :, None] * k[:, t], error)
        o[:, t] = np.einsum("bhkv,bhk->bhv", S, q[:, t])
    o = o / np.sqrt((o * o).mean(-1, keepdims=True) + EPS) * x["weight"]
    return o * sigmoid(x["gate"]), S


def cut(x, part):
    return {name: y[:, part] if y.ndim > 2 else y for name, y in x.items()}


@pytest.mark.parametrize("kernel", [linattn.kda, fla.chunk_kda, fla.fused_recurrent_kda], ids=lambda f: f.__name__)
@pytest.mark.parametrize("scale", [1.0, 30.0], ids=["mild", "saturated"])
def test_float32(rng, kernel, scale):
    x = draw(rng, scale=scale)
    o, S = mix(x, kernel)
    ref, end = by_hand(x)
    assert error(o, ref) <= 3e-6
    assert error(S, end) <= 3e-6


@pytest.mark.parametrize("form", ["token", "chunk:16", "chunk:64", "segments:32"])
def test_forms(rng, form):
    x = draw(rng)
    o, S = mix(x, linattn.kda, form=form)
    ref, end = by_hand(x)
    assert error(o, ref) <= 3e-6 and error(S, end) <= 3e-6


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_short_tokens(rng, dtype):
    x = draw(rng, dtype)
    o, S = mix(x, linattn.kda)
    ref, end = by_hand(x)
    assert o.dtype == dtype and S.dtype == np.float32
    # bf16 rounds q, k, o and the result.
    tolerance = 2.5e-3 if dtype == np.float16 else 5e-3
    assert rms(np.asarray(o, np.float64) - ref) <= tolerance * rms(ref)
    assert rms(S - end) <= tolerance * rms(end)


def test_decoding(rng):
    x = draw(rng)
    whole, end = mix(x, linattn.kda)
    o, S = mix(cut(x, slice(0, T - 3)), linattn.kda)
    outputs = [o]
    for t in range(T - 3, T):
        o, S = mix(cut(x, slice(t, t + 1)), linattn.kda, initial_state=S)
        outputs.append(o)
    assert error(np.concatenate(outputs, 1), whole) <= 1e-6
    assert error(S, end) <= 1e-6


def test_packed(rng):
    x = draw(rng, B=1)
    cuts = [0, 13, 13, T]
    o, S = mix(x, linattn.kda, cu_seqlens=cuts)
    parts = [by_hand(cut(x, slice(begin, end))) for begin, end in ((0, 13), (13, T))]
    assert error(o, np.concatenate([part[0] for part in parts], 1)) <= 3e-6
    assert error(S[[0, 2]], np.concatenate([part[1] for part in parts])) <= 3e-6
    assert not S[1].any()


def test_without_rate(rng):
    """Where there is a bound A_log may be left out: its exponential is one."""
    x = draw(rng)
    del x["A_log"]
    o, S = mix(x, linattn.kda)
    ref, end = by_hand(x)
    assert error(o, ref) <= 3e-6 and error(S, end) <= 3e-6
    names = ("q", "k", "v", "g", "beta")
    with pytest.raises(ValueError, match="A_log: expected it with use_gate_in_kernel and no lower_bound"):
        linattn.kda(**{name: x[name] for name in names}, use_gate_in_kernel=True)
    with pytest.raises(ValueError, match="lower_bound: expected a number from -5 to below 0"):
        linattn.kda(**{name: x[name] for name in names}, use_gate_in_kernel=True, lower_bound=0.0)
