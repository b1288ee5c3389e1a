"""Feature maps of whole tokens, in every function that takes a feature map."""

import ml_dtypes
import numpy as np
import pytest
from conftest import assert_agrees

import linattn
from linattn import feature_maps as fm

pytestmark = pytest.mark.sampled(2)

D, M, H = 16, 24, 3


def _arrays(*shape, scale=1.0, seed=7):
    rng = np.random.default_rng(seed)
    return (scale * rng.standard_normal(shape)).astype(np.float32)


W = linattn.random_projection(M, D, seed=1)
W_HEADS = linattn.random_projection(M, D, seed=1, heads=H)
SQUARE = _arrays(D, D, scale=0.4)

# name -> (map, its weights are positive).
MAPS = {
    "favor": (fm.favor(W), True),
    "favor per head": (fm.favor(W_HEADS), True),
    "favor hyperbolic": (fm.favor(W, hyperbolic=True, scale=0.4), True),
    "random_fourier": (fm.random_fourier(W), False),
    "random_fourier exponential": (fm.random_fourier(W, exponential=True, scale=0.3), False),
    "cosformer": (fm.cosformer(max_length=32), True),
    "cosformer positions": (fm.cosformer(np.arange(19)[::-1].copy(), max_length=64), True),
    "hedgehog": (fm.hedgehog(SQUARE, _arrays(H, D, D, scale=0.4)), True),
    "hedgehog exponential": (fm.hedgehog(SQUARE, softmax=False), True),
    "dpfp": (fm.dpfp(3), True),
    "taylor": (fm.taylor(), True),
    "taylor full": (fm.taylor(symmetric=False), True),
    "rebased": (fm.rebased(_arrays(D), _arrays(H, D)), True),
    "t2r": (fm.t2r(W), True),
    "t2r bias": (fm.t2r(W, _arrays(M)), True),
    "hadamard": (fm.hadamard(W, _arrays(H, M, D)), False),
    "outer_product": (fm.outer_product(SQUARE, _arrays(D, D, seed=8)), False),
    "softmax": ("softmax", True),
    "l2norm": ("l2norm", False),
    "sum_norm": (fm.sum_norm(eps=9.0), False),
    "two maps": (fm.t2r(W).with_keys(fm.hadamard(np.abs(W), np.abs(_arrays(M, D)))), False),
}
NAMES = list(MAPS)

# Inputs of 16 bits are the same numbers for the oracle: only the result is rounded.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 1.5e-3, "bfloat16": 1.2e-2}


def tokens(dtype=np.float32, T=19, seed=0):
    rng = np.random.default_rng(seed)
    return tuple((0.7 * rng.standard_normal((2, T, H, n))).astype(dtype) for n in (D, D, 8))


def check(out, ref, dtype):
    error = np.abs(np.asarray(out, np.float64) - ref).max() / np.abs(ref).max()
    assert error <= TOLERANCE[str(np.dtype(dtype))], error


def _spell(kind, shape):
    return f"tensor<{'x'.join(map(str, shape))}x{kind}>"


def one_function(kind, shape):
    """MLIR that applies every map, one result each, and the arrays it takes."""
    wide = "f64" if kind == "f64" else "f32"
    arguments, lines, arrays, results = [f"%x: {_spell(kind, shape)}"], [], [], []

    def argument(array, type_):
        arrays.append(array)
        arguments.append(f"%a{len(arrays)}: {type_}")
        return f"%a{len(arrays)}", type_

    for n, (phi, _) in enumerate(MAPS.values()):
        phi = fm.TokenMap(phi) if isinstance(phi, str) else phi
        spec = phi.signature.query
        operands = [argument(w, _spell("f32", w.shape)) for w in phi.parameters.values()]
        names = ", ".join(name for name, _ in operands)
        text = f"linattn.feature_map %x{f' params({names})' if names else ''}"
        if spec.has_positions:
            operands.append(argument(phi.arrays(q=np.zeros(shape[2:]))[0], _spell("i64", shape[2:3])))
            text += f" positions({operands[-1][0]})"
        result = _spell(wide, (*shape[:3], phi.size(shape[3])))
        attributes = ", ".join(filter(None, (spec.name, spec.attributes)))
        types = ", ".join([_spell(kind, shape), *(type_ for _, type_ in operands), result])
        lines.append(f"%d{n} = tensor.empty() : {result}")
        lines.append(
            f"%r{n} = {text} into(%d{n}) {{feature_map = #linattn.feature_map<{attributes}>}}"
            f" : ({types}) -> {result}"
        )
        results.append((f"%r{n}", result))
    names, types = (", ".join(part) for part in zip(*results))
    body = "\n  ".join(lines)
    text = f"func.func @all({', '.join(arguments)}) -> ({types}) {{\n  {body}\n  return {names} : {types}\n}}"
    return text, arrays


@pytest.mark.parametrize(
    "kind, target",
    [("f32", None), ("f64", None), ("f16", None), ("bf16", None), ("f32", "reference")],
)
def test_every_map(kind, target):
    shape = (2, H, 19, D)
    x = 0.7 * np.random.default_rng(0).standard_normal(shape)
    x = x.astype({"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind])
    text, arrays = one_function(kind, shape)
    outputs = linattn.compile(text, target=target)(x, *arrays)
    for name, out in zip(NAMES, outputs):
        phi = MAPS[name][0]
        phi = fm.TokenMap(phi) if isinstance(phi, str) else phi
        parameters = [np.ascontiguousarray(w, np.float64) for w in phi.parameters.values()]
        positions = phi.arrays(q=np.zeros((19, D)))[-1].astype(np.float64) if phi.name == "cosformer" else None
        ref = linattn._linattn.reference.token_map(x.astype(np.float64), phi.name, parameters, positions, phi.options)
        out = np.asarray(out, np.float64)
        # Features are computed in f32, whatever the tokens were stored in.
        error = np.abs(out - ref).max() / np.abs(ref).max()
        assert error <= (1e-14 if kind == "f64" else 3e-6), (name, error)


SOME = ["favor", "cosformer", "hedgehog", "two maps"]


@pytest.mark.parametrize("name", SOME)
def test_attention(name):
    phi, positive = MAPS[name]
    q, k, v = tokens()
    for causal in (False, True):
        options = dict(causal=causal, feature_map=phi, normalize=positive)
        ref = linattn.reference.attention(q, k, v, **options)
        check(linattn.attention(q, k, v, **options), ref, np.float32)
        w = linattn.weights(q, k, **options)
        assert_agrees(np.einsum("bhij,bjhv->bihv", w, v), ref, "float64")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_dtypes(dtype):
    q, k, v = tokens(dtype)
    options = dict(causal=True, feature_map=MAPS["favor"][0], eps=1e-6)
    ref = linattn.reference.attention(*(x.astype(np.float64) for x in (q, k, v)), **options)
    o = linattn.attention(q, k, v, **options)
    assert o.dtype == dtype
    check(o, ref, dtype)


@pytest.mark.parametrize("name", ["favor", "taylor"])
def test_streaming_is_the_whole(name):
    """Token by token, in pieces, and by a state that is written and then read."""
    phi, positive = MAPS[name]
    q, k, v = tokens()
    options = dict(feature_map=phi, normalize=positive)
    whole, last = linattn.scan(q, k, v, return_state=True, **options)
    rows = phi.size(D)
    state = linattn.State.zeros(2, H, rows, 8, normalize=positive, feature_map=phi)
    outputs = [
        state.step(q[:, a:b], k[:, a:b], v[:, a:b], feature_map=phi)
        for a, b in [(0, 1), (1, 2), (2, 11), (11, 19)]
    ]
    check(np.concatenate(outputs, axis=1), whole.astype(np.float64), np.float32)
    check(state.S, last.S.astype(np.float64), np.float32)

    state = linattn.State.zeros(2, H, rows, 8, normalize=positive, feature_map=phi)
    state.update(k, v, feature_map=phi)
    o = state.query(q, feature_map=phi, scale=1.0)
    check(o, linattn.reference.attention(q, k, v, **options), np.float32)


@pytest.mark.parametrize("name, form", [("favor", "token"), ("dpfp", "state-tile"), ("taylor", "chunk:8")])
def test_forms(name, form):
    phi, positive = MAPS[name]
    q, k, v = tokens()
    options = dict(causal=True, feature_map=phi, normalize=positive)
    o = linattn.attention(q, k, v, form=form, **options)
    check(o, linattn.reference.attention(q, k, v, **options), np.float32)


@pytest.mark.parametrize("name", ["favor per head", "taylor", "dpfp", "hedgehog", "cosformer positions"])
def test_features_do_not_depend_on_the_tokens_beside(name):
    """Bit for bit: in blocks and tiles of tokens, alone, and by any number of threads."""
    phi = MAPS[name][0]
    if name == "cosformer positions":
        phi = fm.cosformer(np.arange(70), max_length=128)
    q, k, v = tokens(T=70)
    options = dict(feature_map=phi, normalize=False, num_threads=1)
    whole = linattn.scan(q, k, v, form="token", **options)
    np.testing.assert_array_equal(whole, linattn.scan(q, k, v, form="token", **{**options, "num_threads": 2}))
    one = [x[1:] for x in (q, k, v)]
    np.testing.assert_array_equal(whole[1:], linattn.scan(*one, form="token", **options))
    if name == "cosformer positions":
        options["feature_map"] = fm.cosformer(np.arange(67), max_length=128)
    fewer = [x[:, :67] for x in (q, k, v)]
    np.testing.assert_array_equal(whole[:, :67], linattn.scan(*fewer, form="token", **options))


def test_cosformer_goes_on_from_its_positions():
    q, k, v = tokens()
    whole = linattn.scan(q, k, v, feature_map=fm.cosformer(max_length=32))
    state = linattn.State.zeros(2, H, 2 * D, 8)
    with pytest.raises(ValueError, match="expected cosformer with positions for tokens that follow a state"):
        state.step(q[:, :1], k[:, :1], v[:, :1], feature_map=fm.cosformer(max_length=32))
    for t in range(4):
        phi = fm.cosformer(np.full((2, 1), t), max_length=32)
        o = state.step(q[:, t : t + 1], k[:, t : t + 1], v[:, t : t + 1], feature_map=phi)
        check(o, whole[:, t : t + 1].astype(np.float64), np.float32)


def test_maps_beside_gates_and_masks():
    q, k, v = tokens()
    rng = np.random.default_rng(3)
    phi = fm.t2r(W)
    decay = -rng.random((2, 19, H, M)).astype(np.float32)
    o = linattn.scan(q, k, v, feature_map=phi, decay=decay)
    check(o, linattn.reference.scan(q, k, v, feature_map=phi, decay=decay), np.float32)
    with pytest.raises(ValueError, match=r"decay: expected shape \(3,\) or \(2, 19, 3\) or \(2, 19, 3, 24\)"):
        linattn.scan(q, k, v, feature_map=phi, decay=decay[..., :D])
    beta = rng.random((2, 19, H)).astype(np.float32)
    keys = fm.l2norm()
    o = linattn.scan(q, k, v, feature_map=keys, update="delta", beta=beta)
    check(o, linattn.reference.scan(q, k, v, feature_map=keys, update="delta", beta=beta), np.float32)
    mask = rng.random((2, 19)) < 0.7
    options = dict(feature_map=fm.favor(W), mask=mask, causal=True)
    o = linattn.attention(q, k, v, **options)
    check(o, linattn.reference.attention(q, k, v, **options), np.float32)


def _gates(names):
    rng = np.random.default_rng(5)
    shapes = {"erase": (H, M), "write": (H, 8), "decay": (H, M), "input_gate": (H,), "beta": (H,), "mask": ()}
    drawn = {name: rng.random((2, 19, *shape)).astype(np.float32) for name, shape in shapes.items()}
    drawn["decay"], drawn["mask"] = -drawn["decay"], drawn["mask"] < 0.7
    return {name: drawn[name] for name in names}


SCANS = {
    "erase and write": dict(use=("erase", "write"), update="delta", scale=0.01),
    "input gate": dict(use=("input_gate",), normalize=True, abs_floor=1.0),
    "mask and floor": dict(use=("mask", "decay"), normalize=True, floor=0.5, clamp=1.0),
    "oja": dict(use=("beta",), update="oja"),
    "wide": dict(use=("decay", "mask"), normalize=True, state_dtype="float64"),
}


@pytest.mark.parametrize("name", SCANS)
def test_maps_beside_every_operand_of_scan(name):
    """Gates along the keys have as many elements as there are features."""
    options = dict(SCANS[name])
    options.update(_gates(options.pop("use")))
    q, k, v = tokens()
    options["feature_map"] = fm.t2r(0.2 * W)
    o, state = linattn.scan(q, k, v, return_state=True, **options)
    exact = (x.astype(np.float64) for x in (q, k, v))
    oracle, final = linattn.reference.scan(*exact, return_state=True, **options)
    wide = options.get("state_dtype") == "float64"
    check(o, oracle, np.float32)
    assert state.S.shape == (2, H, M, 8) and state.S.dtype == (np.float64 if wide else np.float32)
    for part, expected in zip((state.S, state.z, state.m), (final.S, final.z, final.m)):
        assert (part is None) == (expected is None)
        if part is not None:
            check(part, np.asarray(expected, np.float64), np.float64 if wide else np.float32)


def test_states_of_maps_beside_the_options_of_states():
    """A running maximum of an input gate, an absolute floor, and float64."""
    q, k, v = tokens()
    phi = fm.t2r(0.2 * W)
    gate = _gates(("input_gate",))["input_gate"]
    state = linattn.State.zeros(2, H, M, 8, normalize=True, running_max=True)
    state.update(k, v, feature_map=phi, input_gate=gate)
    _, final = linattn.reference.scan(
        q, k, v, feature_map=phi, input_gate=gate, normalize=True, return_state=True
    )
    check(state.S, np.asarray(final.S, np.float64), np.float32)
    o = state.query(q, feature_map=phi, abs_floor=1.0)
    S, z = (np.asarray(x, np.float64) * np.exp(np.asarray(state.m, np.float64)).reshape(2, H, *[1] * n)
            for x, n in ((state.S, 2), (state.z, 1)))  # fmt: skip
    features = np.maximum(np.einsum("bthd,md->bhtm", q.astype(np.float64), 0.2 * np.float64(W)), 0) * D**-0.5
    weights = np.einsum("bhtm,bhm->bht", features, z)[..., None]
    oracle = np.einsum("bhtm,bhmv->bhtv", features, S) / np.maximum(np.abs(weights), 1.0)
    check(o, oracle.swapaxes(1, 2), np.float32)

    wide = linattn.State.zeros(2, H, M, 8, normalize=True, dtype="float64")
    wide.update(k, v, feature_map=phi)
    o = wide.query(q, feature_map=phi, scale=1.0)
    assert wide.S.dtype == np.float64 and o.dtype == np.float32
    ref = linattn.reference.attention(q, k, v, feature_map=phi)
    check(o, ref, np.float32)


def test_explain_reports_signs():
    """A kernel says that its denominators may vanish; one with positive weights does not."""
    text = """func.func @f(%q: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {{
  %o = linattn.attention %q, %q, %q {{causal{}, normalize = #linattn.normalize<>}}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}}"""
    warning = "the denominator may vanish or turn negative"
    assert warning in linattn.compile(text.format("")).explain()
    assert warning not in linattn.compile(text.format(", feature_map = #linattn.feature_map<elu1>")).explain()


def test_grouped_heads_and_ranks():
    q, k, v = tokens()
    k1, v1 = k[:, :, :1], v[:, :, :1]
    phi = fm.hedgehog(_arrays(H, D, D), _arrays(1, D, D))
    o = linattn.attention(q, k1, v1, feature_map=phi, causal=True)
    check(o, linattn.reference.attention(q, k1, v1, feature_map=phi, causal=True), np.float32)
    for phi in (fm.t2r(W_HEADS[:1]), fm.cosformer(max_length=32)):
        one = [x[:1, :, :1] for x in (q, k, v)]
        whole = linattn.attention(*one, feature_map=phi)
        one = [x[0, :, 0] for x in one]
        assert_agrees(linattn.attention(*one, feature_map=phi), whole[0, :, 0])


def test_cross_attention():
    q, k, v = tokens()
    for phi in (fm.cosformer(max_length=32),):
        o = linattn.attention(q[:, :5], k, v, feature_map=phi)
        check(o, linattn.reference.attention(q[:, :5], k, v, feature_map=phi), np.float32)


def test_redraw_takes_a_new_matrix_for_every_call():
    q, k, v = tokens()
    projection = linattn.RandomProjection(M, D, seed=1, redraw=True)
    phi = fm.favor(projection)
    first, second = (linattn.attention(q, k, v, feature_map=phi) for _ in range(2))
    assert projection.draw == 2 and (first != second).any()
    drawn = linattn.random_projection(M, D, seed=1, draw=2)
    np.testing.assert_array_equal(second, linattn.attention(q, k, v, feature_map=fm.favor(drawn)))


def test_one_plan_serves_all_parameters():
    q, k, v = tokens()
    before = len(linattn._recurrence._plans.known)
    for seed in range(3):
        linattn.attention(q, k, v, feature_map=fm.t2r(linattn.random_projection(M, D, seed=seed)))
    assert len(linattn._recurrence._plans.known) <= before + 1


def test_sizes():
    assert linattn.costs.feature_size(fm.taylor(), 16) == 153
    assert linattn.costs.feature_size(fm.favor(W, hyperbolic=True), D) == 2 * M
    assert linattn.costs.feature_size(fm.dpfp(3), 16) == 96
    assert fm.taylor(symmetric=False).size(16) == 273


def test_errors():
    q, k, v = tokens()
    with pytest.raises(ValueError, match=r"W: expected shape \(M, 16\) or \(3, M, 16\), but got \(24, 15\)"):
        linattn.attention(q, k, v, feature_map=fm.favor(W[:, :15].copy()))
    with pytest.raises(ValueError, match=r"expected W and input to have the same head size, but got 24 and 16"):
        linattn.attention(q, k, v, feature_map=fm.hedgehog(W))
    with pytest.raises(TypeError, match="q_positions: expected dtype int32 or int64, but got float64"):
        linattn.attention(q, k, v, feature_map=fm.cosformer(np.arange(19.0), max_length=32))
    with pytest.raises(ValueError, match=r"W: expected shape \(m, d\) or \(H, m, d\), but got \(16,\)"):
        fm.favor(W[0])
    with pytest.raises(ValueError, match="key_map: expected both maps or neither to be exponentials"):
        fm.favor(W).with_keys(fm.taylor())
    with pytest.raises(ValueError, match="expected query and key to have the same head size, but got 24 and 153"):
        linattn.attention(q, k, v, feature_map=fm.t2r(W).with_keys(fm.taylor()))
    with pytest.raises(ValueError, match="expected cosformer with a max_length from 1"):
        linattn.attention(q, k, v, feature_map=fm.cosformer(max_length=0))
    with pytest.raises(ValueError, match=r"^initial_state: expected shape \(2, 3, 153, 8\), but got \(2, 3, 16, 8\)"):
        linattn.scan(q, k, v, feature_map=fm.taylor(), initial_state=np.zeros((2, 3, 16, 8), np.float32))


# ----------------------------------------------------------------------------
# FAVOR+ as it is compiled
# ----------------------------------------------------------------------------


def test_favor_estimates_softmax_attention():
    """The accuracy of the compiled map; test_random.py has that of the formula."""
    cosines = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, k = (0.3 * rng.standard_normal((2, 64, 32))).astype(np.float32)
        v = rng.standard_normal((64, 32)).astype(np.float32)
        true = linattn.attention(q, k, v, weights="softmax")
        o = linattn.attention(q, k, v, feature_map=fm.favor(linattn.random_projection(256, 32, seed=seed)))
        cosines.append(((o * true).sum(-1) / np.linalg.norm(o, axis=-1) / np.linalg.norm(true, axis=-1)).mean())
    assert np.mean(cosines) == pytest.approx(0.9986, abs=0.002)


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_favor_does_not_underflow(d, causal):
    """With unit-normal inputs e^(Wx − x·x/2) of plain float32 is nothing but zeros."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 1, 48, 1, d)).astype(np.float32)
    w = linattn.random_projection(4 * d, d)
    plain = np.exp((q @ w.T - (q * q).sum(-1, keepdims=True) / 2).astype(np.float32))
    plain_keys = np.exp((k @ w.T - (k * k).sum(-1, keepdims=True) / 2).astype(np.float32))
    denominator = np.einsum("bihm,bjhm->bij", plain, plain_keys, dtype=np.float32)
    assert denominator.min() < 1e-20
    phi = fm.favor(w, scale=1.0)
    options = dict(feature_map=phi, causal=causal, eps=1e-30)
    o = linattn.attention(q, k, v, **options)
    ref = linattn.reference.attention(q, k, v, **options)
    assert np.isfinite(o).all() and np.abs(o).max() > 0.1
    error = np.abs(o - ref).max() / np.abs(ref).max()
    assert error < 2e-4, error


def test_denominators_with_signs_divide_rounding():
    """A sum of weights near 0 makes the layer ill-conditioned: f32 is a few times as far
    off as inputs moved by half a unit in the last place."""
    unit, T = 2.0**-24, 19
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, k, v = rng.standard_normal((3, 1, T, 2, 16)).astype(np.float32)
        options = dict(causal=True, feature_map=fm.random_fourier(linattn.random_projection(16, 16)))
        ref = linattn.reference.attention(q, k, v, **options)
        sums = linattn.reference.attention(q, k, np.ones_like(v), **options, normalize=False)
        tokens = np.arange(1, T + 1)[None, :, None, None]
        bound = unit * (np.cumsum(abs(v), axis=1) + tokens * abs(ref)) / abs(sums + 1e-6)
        assert (abs(linattn.attention(q, k, v, **options) - ref) <= 10 * bound).all()
        moved = [x * (1 + unit * rng.choice([-1, 1], x.shape)) for x in (q, k, v)]
        assert (abs(linattn.reference.attention(*moved, **options) - ref) >= bound / 4).any()
        plain = linattn.attention(q, k, v, **options, normalize=False)
        assert_agrees(plain, linattn.reference.attention(q, k, v, **options, normalize=False))
