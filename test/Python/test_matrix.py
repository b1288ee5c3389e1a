"""Families × forms × dtypes × the field's shapes and gate laws, against float64.

A seeded sample runs by default, all of it (some hours) with LINATTN_MATRIX=all.
"""

import functools
import inspect
import itertools
import os
import re

import ml_dtypes
import numpy as np
import pytest
from conftest import REASONS, rank_of
from test_families import CASES, PLAIN, REVERSIBLE, Draw, error, parts, run

import linattn
from linattn import _linattn, reference
from linattn._families import _family

pytestmark = pytest.mark.optimized

FORMS = ["auto", "token", "state-tile", "chunk:16", "chunk:64", "segments:100"]
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

# B, T, H, K, V: flash-linear-attention's shapes, and the corners around them.
DENSE = [
    (1, 63, 1, 64, 64), (2, 500, 3, 60, 60), (2, 1000, 3, 128, 128), (2, 1024, 4, 60, 60),
    (2, 1024, 8, 128, 128), (3, 1000, 4, 64, 64), (3, 1024, 4, 100, 100), (4, 2048, 8, 64, 64),
    (2, 2048, 4, 256, 256), (1, 64, 2, 320, 320), (1, 128, 4, 64, 128),
    (1, 1, 2, 64, 64), (1, 15, 2, 64, 64), (1, 16, 2, 64, 64), (1, 17, 2, 64, 64), (1, 65, 2, 60, 100),
]  # fmt: skip
PACKED = [
    [0, 15], [0, 0, 16], [0, 256, 500, 1000], [0, 15, 100, 300, 1200, 2000],
    [0, 1, 100, 300, 1200, 2048], [0, 200, 512, 1200, 2048],
]  # fmt: skip
# Gates are logsigmoid(x) / norm: at 0.01 a token forgets hundreds of nats.
NORMS = [10.0, 1.0, 0.1, 0.01]

# Half of flash-linear-attention's bounds, as rms(out − ref) / rms(ref). Rounding the
# results to bf16 alone is more than that: the reference is rounded, too. The tokens that
# a family's preamble makes are rounded, and in the reference only Comba's are.
LOOSE = {
    "linear_attention": 5e-4, "retnet": 2e-3, "lightning": 2.5e-3, "simple_gla": 2e-3, "gla": 2e-3,
    "rwkv5": 2e-3, "rwkv6": 2e-3, "gsa": 2.5e-3, "abc": 2.5e-3, "lightnet": 2.5e-3, "hgrn": 2.5e-3, "hgrn2": 2e-3,
    "mamba2": 2e-3, "rfa": 5e-4, "iplr": 1.5e-3, "rwkv7": 3.5e-3, "dplr": 3.5e-3,
}  # fmt: skip
DELTA = 2.5e-3
PREAMBLE = {"rfa", "mamba2", "hgrn2", "lightnet"}, 3e-3
EXACT = {"f64": 1e-12, "f32": 3e-6}  # max|out − ref| / max|ref|
# A constant factor is rounded alike at every token, unless chunks multiply by few of
# them (RationaleCode.md, "Accumulation in f32, and where it ends").
DRIFTING = {"lightning", "retnet", "rwkv5"}, {"state-tile", "token"}, 2e-5


# Forms that a rule has not, and why.
RANK_ONE = [
    "rwkv7", "delta_rule", "gated_delta_rule", "kda", "gdn2", "ttt_linear", "comba", "iplr", "dplr", "gated_deltaproduct",
]  # fmt: skip
REFUSED = {
    **{(case, "state-tile"): REASONS["state-tile", "rank-1"] for case in RANK_ONE},
    **{(case, "chunk"): REASONS["chunk", "value decay"] for case in ("hgrn", "gsa", "abc")},
    **{("gated_oja", form): REASONS[form, "oja"] for form in ("state-tile", "chunk", "segments")},
    ("mlstm", "segments"): REASONS["segments", "input gate"],
}


class Law(Draw):
    """Operands at the sizes of one shape, gates by the law of the field."""

    def __init__(self, dtype, shape, norm, seed):
        B, T, H, K, V = shape
        super().__init__(dtype, T=T, B=B, HQ=H, HK=H, HV=H, K=K, V=V, seed=seed)
        self.norm = norm

    def decay(self, *tail, low=1.0):
        x = self.rng.standard_normal((self.B, self.T, self.H, *tail))
        gate = -np.logaddexp(0.0, -x) / self.norm
        gate[self.rng.random(gate.shape) < 0.1] = 0.0  # a masked gate keeps all
        return gate.astype(self.gate)


def points():
    """The forms of one problem follow one another: the oracle runs once for all."""
    for case, dtype, (i, shape), form in itertools.product(PLAIN, DTYPES, enumerate(DENSE), FORMS):
        yield case, form, dtype, shape, None, NORMS[i % len(NORMS)]
    packable = [case for case in PLAIN if "cu_seqlens" in run_parameters(case)]
    for case, dtype, (i, cuts), form in itertools.product(packable, DTYPES, enumerate(PACKED), FORMS):
        yield case, form, dtype, (1, cuts[-1], 2, 64, 64), tuple(cuts), NORMS[i % len(NORMS)]


def run_parameters(case):
    return inspect.signature(getattr(linattn, CASES[case][0])).parameters


def name_of(point):
    case, form, dtype, shape, cuts, norm = point
    where = "x".join(map(str, shape)) if cuts is None else "-".join(map(str, cuts))
    return f"{case} {form} {dtype} {where} /{norm:g}"


def cost(point):
    B, T, H, K, V = point[3]
    return B * T * H * K * V


def sample(all_points):
    """Every family in every form, and packed as well, each on the shape, dtype and
    gates that the seed picks among those that are quickly walked."""
    if os.environ.get("LINATTN_MATRIX") == "all":
        return all_points
    chosen = {}
    for point in all_points:
        case, form, _, _, cuts, _ = point
        if cost(point) <= 4_000_000 and (cuts is None or form == "auto"):
            key = case, form, cuts is None
            rank = rank_of(name_of(point))
            if key not in chosen or rank < chosen[key][0]:
                chosen[key] = rank, point
    return [point for _, point in chosen.values()]


def rms(x):
    return float(np.sqrt(np.mean(np.square(x)))) if x.size else 0.0


def exactness(case, form, dtype):
    families, forms, bound = DRIFTING
    drifts = dtype == "f32" and CASES[case][0] in families and form in forms
    return bound if drifts else EXACT.get(dtype, 0.0)


def assert_close(case, form, dtype, out, ref):
    rounded = np.asarray(out).dtype == ml_dtypes.bfloat16
    out = np.asarray(out).astype(np.float64)
    if dtype in EXACT or not ref.size:
        assert error(out, ref) <= exactness(case, form, dtype)
        return
    if rounded:
        ref = ref.astype(ml_dtypes.bfloat16).astype(np.float64)
    families, bound = PREAMBLE
    tolerance = bound if dtype == "bf16" and case in families else LOOSE.get(CASES[case][0], DELTA)
    # The maximum of an empty sequence is −∞ in both.
    finite = np.isfinite(ref)
    assert np.array_equal(out[~finite], ref[~finite])
    assert rms(out[finite] - ref[finite]) <= tolerance * rms(ref[finite]) + 1e-6


def draw(case, dtype, shape, norm, seed=0):
    name, make = CASES[case]
    operands = make(Law(DTYPES[dtype], shape, norm, seed))
    # NumPy widens bf16 on the way.
    return name, operands | {key: operands[key].astype(DTYPES[dtype]) for key in "qkv" if key in operands}


def round_preamble(case, dtype, operands):
    """Comba's operands with βk rounded to the dtype of the tokens, as its kernel rounds it."""
    if case != "comba" or dtype in EXACT:
        return operands
    key = operands["k"].astype(np.float64) * operands["beta"][..., None]
    return operands | {"k": key.astype(DTYPES[dtype]), "beta": None}


@functools.lru_cache(maxsize=1)
def problem(case, dtype, shape, cuts, norm):
    """The operands, and what comes of them in float64."""
    name, operands = draw(case, dtype, shape, norm)
    if cuts is not None:
        operands["cu_seqlens"] = list(cuts)
    return name, operands, run(reference, name, round_preamble(case, dtype, operands))


@pytest.mark.parametrize("point", sample(list(points())), ids=name_of)
def test_matrix(point):
    case, form, dtype, shape, cuts, norm = point
    name, operands, (ref, ref_state) = problem(case, dtype, shape, cuts, norm)
    kind = form.split(":")[0]
    if (case, kind) in REFUSED:
        message = f"form: expected one that is legal here, but got {kind}: {REFUSED[case, kind]}"
        with pytest.raises(ValueError, match=re.escape(message)):
            run(linattn, name, operands, form=form)
        return
    o, state = run(linattn, name, operands, form=form)
    assert_close(case, form, dtype, o, ref)
    state_dtype = "f64" if dtype == "f64" else "f32"
    for part, expected in zip(parts(state), parts(ref_state), strict=True):
        # The preamble of a family rounds to the dtype of the tokens.
        assert_close(case, form, state_dtype if dtype in EXACT else dtype, part, expected)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", PLAIN)
def test_long_sequences(case):
    """T = 16384 with unit keys, in f32: no error that grows with T."""
    name, operands = draw(case, "f32", (1, 16384, 1, 32, 32), 10.0)
    o, _ = run(linattn, name, operands)
    ref, _ = run(reference, name, operands)
    assert error(o, ref) <= 3e-6


@pytest.mark.parametrize("tail", [(), (32,)], ids=["head", "channel"])
@pytest.mark.parametrize("log", [0.0, -1.5e-5, float(np.log1p(-(2.0**-16))), -1e-3, -0.05])
def test_slow_decays_do_not_drift(log, tail):
    """The same e^g at every token, which rounds the same way every time."""
    T, D = 16384, 32
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((1, T, 1, D)) for _ in range(3))
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    tokens = [x.astype(np.float32) for x in (q, k, v)]
    decay = np.full((1, T, 1, *tail) if tail else (1,), log, np.float32)
    o = linattn.scan(*tokens, decay=decay)
    assert error(o, reference.scan(*tokens, decay=decay)) <= 3e-6


@pytest.mark.parametrize("tail", [(), (32,)], ids=["head", "channel"])
@pytest.mark.parametrize("log", [-1e-5, -1e-3])
def test_states_of_positive_features_do_not_drift(log, tail):
    """S and z after 16384 tokens, whose writes never cancel. Chunks add what rounding
    left of a factor; segments round the sum of a segment's logarithms at every token; the
    other forms round S and z at every token, alike each time."""
    T, D = 16384, 32
    rng = np.random.default_rng(5)
    q, k, v = (np.abs(rng.standard_normal((1, T, 1, D))).astype(np.float32) for _ in range(3))
    decay = np.full((1, T, 1, *tail), log, np.float32)
    options = dict(decay=decay, normalize=True, return_state=True)
    ref, expected = reference.scan(q, k, v, **options)
    for form, bound in (("chunk", 3e-6), ("segments:1000", 1e-5), ("state-tile", 3e-4), ("token", 3e-4)):
        o, state = linattn.scan(q, k, v, form=form, **options)
        assert error(o, ref) <= 3e-6  # the drift cancels in the quotient
        assert error(state.S, expected.S) <= bound
        assert error(state.z, expected.z) <= bound


def test_running_logarithms_do_not_drift():
    """ABC's states after a thousand tokens: the log of a growing sum is rounded at
    every one of them."""
    name, operands = draw("abc", "f32", (1, 1000, 1, 64, 64), 1.0)
    _, state = run(linattn, name, operands)
    _, ref = run(reference, name, operands)
    for part, expected in zip(state, ref, strict=True):
        assert error(part, expected) <= 3e-6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", REVERSIBLE)
def test_reverse_is_reversed_tokens(case):
    name, operands = draw(case, "f32", (2, 37, 2, 16, 24), 1.0)
    out, _ = run(linattn, name, operands, reverse=True)
    flipped = {key: np.flip(x, 1) if isinstance(x, np.ndarray) and x.ndim > 2 else x for key, x in operands.items()}
    ref, _ = run(linattn, name, flipped)
    assert error(out, np.flip(ref, 1)) <= 1e-6


# ----------------------------------------------------------------------------
# Memory of the compiled code
# ----------------------------------------------------------------------------

TOKENS, HEADS, KEYS, VALUES = 977, 2, 16, 24


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", PLAIN)
def test_memory_is_linear_in_tokens(case, monkeypatch):
    """No T × T value and no state per token."""
    name, operands = draw(case, "f32", (1, 33, HEADS, KEYS, VALUES), 1.0, seed=1)
    most = HEADS * operands.get("num_householder", 1) * TOKENS * max(KEYS, VALUES)
    assert_linear_in_tokens(monkeypatch, name, operands, most)


def assert_linear_in_tokens(monkeypatch, name, operands, most):
    """Reads the buffers off the lowered IR, compiled for a number of tokens that no
    other size is: along at most one dimension, and none of more than `most`."""
    texts = []
    table, call = _family._table, _family.Family.__call__

    class Static:
        describe = staticmethod(table.describe)

        @staticmethod
        def text(family, dtype, extents, *rest):
            texts.append(table.text(family, dtype, {**extents, "B": 1, "T": TOKENS}, *rest))
            return table.text(family, dtype, extents, *rest)

    def compile_anew(self, *arguments):
        self.plans.clear()
        return call(self, *arguments)

    monkeypatch.setattr(_family, "_table", Static)
    monkeypatch.setattr(_family.Family, "__call__", compile_anew)
    getattr(linattn, name)(**operands)
    kernel = _linattn.compile(texts[-1], "", "<memory>", "cpu")
    shapes = allocated_shapes(kernel.mlir("convert-scf-to-cf"))
    assert shapes, "expected scratch at least"
    for shape in shapes:
        assert sum(extent >= TOKENS for extent in shape) <= 1, shape
        assert np.prod(shape) <= most, shape


def allocated_shapes(ir):
    """The sizes of all buffers. The module leaves open how many heads there are."""
    types = re.findall(r"memref\.alloca?\(.*: memref<([0-9x?]*)x\w+[,>]", ir)
    return [[HEADS if extent == "?" else int(extent) for extent in type_.split("x")] for type_ in types]
