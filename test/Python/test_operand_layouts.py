"""Operands as models have them: gates in 16 bits or wider than the tokens, expanded,
slices of one projection's output, results in memory of any strides."""

import os

import numpy as np
import pytest
from conftest import TOLERANCE, rank_of
from test_families import CASES, Draw

import linattn
from linattn import _linattn, fla, reference

torch = pytest.importorskip("torch")

B, T, H, D = 2, 11, 3, 16

# Of tokens and gates.
DTYPES = [("float32", "bfloat16"), ("float32", "float16"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"), ("float16", "bfloat16")]


def sliced(x):
    """A part of the last dimension of a projection's output."""
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 3), float("nan") if x.is_floating_point() else 1).to(x.dtype)
    wide[..., 3 : 3 + x.shape[-1]] = x
    return wide[..., 3 : 3 + x.shape[-1]]


def strided(x):
    """Every second element of memory."""
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1]).to(x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def swapped(x):
    """The last dimension is the slowest but for the batch."""
    return x.transpose(-1, min(1, x.ndim - 1)).contiguous().transpose(-1, min(1, x.ndim - 1))


def expanded(x):
    """The same for every head, or for the last dimension of what has no heads."""
    axis = min(2, x.ndim - 1)
    return x.narrow(axis, 0, 1).expand(x.shape)


LAYOUTS = [sliced, expanded, strided, swapped]


def wide(x):
    return x.double().numpy() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def check(function, oracle, operands, dtype):
    out = function(**operands)
    assert isinstance(out, torch.Tensor) and out.dtype == getattr(torch, dtype)
    expected = oracle(**{name: wide(x) for name, x in operands.items()})
    assert tuple(out.shape) == expected.shape
    error = np.linalg.norm(wide(out) - expected) / max(np.linalg.norm(expected), 1e-30)
    assert error <= min(TOLERANCE[dtype], 4e-3), error
    return out


def mixed(operands, turn):
    """Every operand in another layout; from turn to turn each has all of them."""
    return {
        name: LAYOUTS[(i + turn) % len(LAYOUTS)](x) if isinstance(x, torch.Tensor) else x
        for i, (name, x) in enumerate(operands.items())
    }


def draw(name, make, tokens, gates):
    roles = {operand: role for operand, role, *_ in _linattn.families.describe(name, {})["operands"]}
    return {
        key: torch.from_numpy(np.ascontiguousarray(x)).to(getattr(torch, tokens if roles[key] == "tokens" else gates))
        if isinstance(x, np.ndarray) else x
        for key, x in make(Draw(T=T)).items()
    }  # fmt: skip


PLAIN = [case for case in CASES if "-" not in case]


def sample():
    """The half of the families that the seed picks; all of them with LINATTN_MATRIX=all."""
    numbers = sorted(range(len(PLAIN)), key=lambda index: rank_of(PLAIN[index]))
    return sorted(numbers if os.environ.get("LINATTN_MATRIX") == "all" else numbers[::2])


@pytest.mark.parametrize("index", sample(), ids=lambda index: PLAIN[index])
def test_families(index):
    """Each has layouts and dtypes of its own."""
    name, make = CASES[PLAIN[index]]
    function, oracle = getattr(linattn, name), getattr(reference, name)
    tokens, gates = DTYPES[index % len(DTYPES)]
    operands = draw(name, make, tokens, gates)
    check(function, oracle, mixed(operands, index), tokens)


SCANS = {
    "channel": lambda r: dict(decay=-r(B, T, H, D), value_decay=-r(B, T, H, D)),
    "delta-values": lambda r: dict(beta=r(B, T, H, D), update="delta"),
    "erase": lambda r: dict(erase=r(B, T, H, D), write=r(B, T, H, D), update="delta"),
    "dplr": lambda r: dict(decay=-r(B, T, H, D), a=-r(B, T, H, D) / 8, b=r(B, T, H, D) / 8, update="dplr"),
    "oja": lambda r: dict(beta=r(B, T, H) / 8, update="oja"),
    "gate": lambda r: dict(decay=-r(B, T, H), input_gate=r(B, T, H), normalize=True, abs_floor=1.0),
    "mask": lambda r: dict(mask=r(B, T) > 0.3, feature_map="elu", normalize=True),
}


def tokens_of(random, dtype):
    q, k, v = (random.standard_normal((B, T, H, D)) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    return {name: torch.from_numpy(x).to(dtype) for name, x in dict(q=q, k=k, v=v).items()}


@pytest.mark.parametrize("index", range(len(SCANS)), ids=list(SCANS))
def test_scan(rng, index):
    tokens, gates = DTYPES[(index + 1) % len(DTYPES)]
    operands = tokens_of(rng, getattr(torch, tokens))
    for name, x in SCANS[list(SCANS)[index]](lambda *shape: torch.from_numpy(rng.random(shape))).items():
        floats = isinstance(x, torch.Tensor) and x.is_floating_point()
        operands[name] = x.to(getattr(torch, gates)) if floats else x
    check(linattn.scan, reference.scan, mixed(operands, index), tokens)


@pytest.mark.parametrize("tokens", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", [{"causal": True}, {}, {"weights": "softmax", "causal": True, "normalize": True}], ids=["causal", "plain", "softmax"])
def test_attention(rng, options, tokens):
    if "weights" not in options:
        options = {**options, "feature_map": "elu"}
    operands = {**tokens_of(rng, getattr(torch, tokens)), **options}
    for turn in range(2):
        check(linattn.attention, reference.attention, mixed(operands, turn), tokens)


@pytest.mark.parametrize("name, family, gate", [
    ("fused_recurrent_gla", "gla", {"gk": (D,)}), ("chunk_gated_delta_rule", "gated_delta_rule", {"g": (), "beta": ()}),
    ("fused_recurrent_kda", "kda", {"g": (D,), "beta": ()}),
])  # fmt: skip
def test_fla(rng, name, family, gate):
    for turn, (tokens, gates) in enumerate(DTYPES[2:4]):
        operands = tokens_of(rng, getattr(torch, tokens))
        for operand, tail in gate.items():
            x = torch.from_numpy(rng.random((B, T, H, *tail))).to(getattr(torch, gates))
            operands[operand] = x if operand == "beta" else -x
        rename = {"gk": "g"}
        check(
            lambda **given: getattr(fla, name)(**given)[0],
            lambda **given: getattr(reference, family)(**{rename.get(key, key): x for key, x in given.items()}),
            mixed(operands, turn), tokens,
        )  # fmt: skip


OUTPUTS = {
    "scan": lambda t: linattn.scan(**t, decay=torch.full((B, T, H), -0.1), **OUT),
    "scan-delta": lambda t: linattn.scan(**t, beta=torch.full((B, T, H), 0.5), update="delta", **OUT),
    "attention": lambda t: linattn.attention(**t, causal=True, **OUT),
    "softmax": lambda t: linattn.attention(**t, weights="softmax", **OUT),
    "gla": lambda t: linattn.gla(**t, g=torch.full((B, T, H, D), -0.1), **OUT),
    "gsa": lambda t: linattn.gsa(**t, s=t["k"], g=torch.full((B, T, H, D), -0.1), **OUT),
}
OUT = {}


@pytest.mark.parametrize("case, dtype", [(case, ("float32", "float16")[i % 2]) for i, case in enumerate(OUTPUTS)])
def test_out(rng, monkeypatch, case, dtype):
    """Memory between the elements of a result stays as it is."""
    operands = tokens_of(rng, getattr(torch, dtype))
    expected = OUTPUTS[case](operands)
    for layout in (sliced, strided, swapped):
        out = layout(torch.zeros_like(expected))
        base = out._base if out._base is not None else out
        before = base.clone()
        monkeypatch.setitem(OUT, "out", out)
        assert OUTPUTS[case](operands) is out
        error = np.linalg.norm(wide(out) - wide(expected)) / np.linalg.norm(wide(expected))
        assert error <= (1e-3 if dtype == "float16" else 1e-6)
        out.copy_(torch.zeros_like(out))
        assert torch.equal(torch.nan_to_num(base), torch.nan_to_num(before))
    monkeypatch.setitem(OUT, "out", torch.zeros(1, dtype=expected.dtype).expand(expected.shape))
    with pytest.raises(ValueError, match="out: expected strides that give every element its own place"):
        OUTPUTS[case](operands)


def test_numpy(rng):
    """Strides that no tensor of PyTorch has."""
    q, k, v = (rng.standard_normal((B, T, H, D)).astype(np.float32) for _ in range(3))
    g = -rng.random((B, T, H)).astype(np.float16)
    expected = reference.scan(q[:, ::-1], k[..., ::-1], v, decay=np.broadcast_to(g[:1], g.shape))
    out = np.full((B, T, H, 2 * D), np.nan, np.float32)[..., ::-2]
    assert linattn.scan(q[:, ::-1], k[..., ::-1], v, decay=np.broadcast_to(g[:1], g.shape), out=out) is out
    assert np.linalg.norm(out - expected) <= 1e-6 * np.linalg.norm(expected)
    assert np.isnan(out.base.reshape(-1)[::2]).all()


def test_steps(rng):
    """One token after another, out of one projection, as a model decodes."""
    operands = tokens_of(rng, torch.bfloat16)
    g = -torch.from_numpy(rng.random((B, T, H))).to(torch.bfloat16)
    beta = torch.from_numpy(rng.random((B, T, H))).to(torch.float16)
    state = linattn.State.zeros(B, H, D, D, like=operands["q"])
    outputs = []
    for t in range(T):
        step = {name: sliced(x[:, t : t + 1]) for name, x in operands.items()}
        outputs.append(state.step(**step, decay=strided(g[:, t : t + 1]), beta=expanded(beta[:, t : t + 1]), update="delta"))
    expected = reference.scan(**{name: wide(x) for name, x in operands.items()}, decay=wide(g), beta=wide(beta[:, :, :1].expand(B, T, H)), update="delta")
    out = torch.cat(outputs, dim=1)
    assert out.dtype == torch.bfloat16
    assert np.linalg.norm(wide(out) - expected) <= 4e-3 * np.linalg.norm(expected)


TRANSPOSED = {
    "chunk": lambda t, g, s, **o: linattn.scan(**t, decay=g, beta=torch.full(g.shape[:3], 0.5, dtype=g.dtype), update="delta", initial_state=s, return_state=True, form="chunk:4", **o),
    "token": lambda t, g, s, **o: linattn.scan(**t, decay=g, beta=torch.full(g.shape[:3], 0.5, dtype=g.dtype), update="delta", initial_state=s, return_state=True, form="token", **o),
    "state-tile": lambda t, g, s, **o: linattn.scan(**t, decay=g, initial_state=s, return_state=True, form="state-tile", **o),
    "stream": lambda t, g, s, **o: linattn.scan(**t, decay=g, initial_state=s, return_state=True, form="token", **o),
}


@pytest.mark.parametrize(
    "form, tokens, K, V, dtype, reverse",
    [
        ("chunk", 21, 17, 48, "float64", False), ("chunk", 21, 16, 24, "float32", True), ("token", 1, 32, 32, "float32", False),
        ("state-tile", 40, 24, 5, "bfloat16", True), ("stream", 1, 16, 24, "float32", False),
    ],
)  # fmt: skip
def test_transposed(rng, form, tokens, K, V, dtype, reverse):
    """Tokens of a convolution's output, [B, H, D, T] in memory, and states [N, H, V, K]: the bits of the usual layout."""

    def draw(*shape):
        return torch.from_numpy(rng.standard_normal(shape)).to(getattr(torch, dtype))

    def in_memory(x):
        return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)

    t = {"q": draw(B, tokens, H, K), "k": draw(B, tokens, H, K) / K, "v": draw(B, tokens, H, V)}
    g = -draw(B, tokens, H, K).abs() / 4
    state = draw(B, H, K, V).to(torch.float64 if dtype == "float64" else torch.float32)
    expected, expected_state = TRANSPOSED[form](t, g, state.clone(), reverse=reverse)
    flipped = {name: in_memory(x) for name, x in t.items()}
    for operands, decay, initial in [(flipped, in_memory(g), state.clone()), ({**t, "v": flipped["v"]}, g, state.mT.contiguous().mT)]:
        out, last = TRANSPOSED[form](operands, decay, initial, reverse=reverse)
        assert torch.equal(out, expected)
        assert torch.equal(last.S, expected_state.S)


def test_transposed_steps(rng):
    """A state [N, H, V, K] in memory, updated in place."""
    x = {name: rng.standard_normal((2, 1, 3, 32)).astype(np.float32) for name in ("q", "k", "v")}
    g = -rng.random((2, 1, 3)).astype(np.float32)
    states = [np.zeros((2, 3, 32, 32), np.float32), np.zeros((2, 3, 32, 32), np.float32).swapaxes(2, 3)]
    outputs = [[linattn.simple_gla(**x, g=g, initial_state=s, output_final_state=True, inplace=True)[0] for _ in range(3)] for s in states]
    assert np.array_equal(*outputs) and np.array_equal(*states) and states[1].any()
