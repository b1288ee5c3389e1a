"""States that a call updates in place: the bits of a call that does not, the caller's own
arrays, and what is refused."""

import itertools

import numpy as np
import pytest

import linattn
import test_beyond
import test_families
import test_fla
from conftest import Foreign, assert_agrees, runs_or_refuses
from linattn import _linattn, fla, reference
from linattn._core import _arrays

pytestmark = pytest.mark.sampled(2)

torch = pytest.importorskip("torch")


def split(state):
    """The arrays of a state."""
    if isinstance(state, linattn.State):
        return state._parts()
    return state if isinstance(state, tuple) else (state,)


def join(parts):
    return parts[0] if len(parts) == 1 else tuple(parts)


@pytest.fixture
def no_copies(monkeypatch):
    """Fails where a state is made and copied after all."""

    def refuse(target, source):
        raise AssertionError("expected no copy")

    monkeypatch.setattr(_arrays, "assign", refuse)


def check_family(name, operands, initial="initial_state", final="output_final_state"):
    """The same bits in the same objects as what a call makes anew."""
    function = getattr(linattn, name)
    _, state = function(**operands, **{final: True})
    parts = [np.array(part) for part in split(state)]
    given = join([part.copy() for part in parts])
    o, ends = function(**operands, **{initial: given, final: True})
    assert all(np.array_equal(part, mine) for part, mine in zip(parts, split(given))), "not in place"
    mine, same = function(**operands, **{initial: given, final: True, "inplace": True})
    assert same is given
    assert np.array_equal(o, mine)
    for end, part in zip(split(ends), split(given), strict=True):
        assert np.array_equal(end, part)
    # The state changes whether it is returned or not.
    given = join([part.copy() for part in parts])
    assert np.array_equal(o, function(**operands, **{initial: given, "inplace": True}))
    for end, part in zip(split(ends), split(given), strict=True):
        assert np.array_equal(end, part)


@pytest.mark.parametrize("case", test_families.CASES)
def test_families_in_place(case, request):
    name, make = test_families.CASES[case]
    if name not in ("abc", "lightnet"):  # whose z is read while it is written
        request.getfixturevalue("no_copies")
    names = {"initial": "initial_states", "final": "return_final_states"} if name == "mamba2" else {}
    check_family(name, make(test_families.Draw()), **names)


@pytest.mark.parametrize("case", ["selective_scan", "rwkv4", "log_linear", "lru", "momentum_delta_rule"])
def test_others_in_place(case, request):
    if case == "selective_scan":  # others put vectors side by side first, or count
        request.getfixturevalue("no_copies")
    operands = test_beyond.cut(case, test_beyond.CASES[case](np.random.default_rng(0), np.float32), 0, 9)
    names = {"final": "return_last_state"} if case == "selective_scan" else {}
    check_family(case, operands, **names)


@pytest.mark.parametrize("case, name", test_fla.ALL, ids=test_fla.IDS)
def test_fla_in_place(rng, case, name, no_copies):
    """Several calls: all but the first go by what the first one was."""
    if not test_fla.takes(name, "initial_state"):
        pytest.skip("no state")
    calls = [case.draw(rng) for _ in range(2)]
    mine = case.draw_state(rng, test_fla.B)
    theirs = join([part.copy() for part in split(mine)])
    for operands in calls:
        expected, theirs = case.call(name, operands, initial_state=theirs, output_final_state=True)
        o, same = case.call(name, operands, initial_state=mine, output_final_state=True, inplace=True)
        assert same is mine
        assert np.array_equal(o, expected)
        assert all(np.array_equal(*pair) for pair in zip(split(mine), split(theirs), strict=True))
    assert case.call(name, operands, initial_state=mine, output_final_state=False, inplace=True)[1] is None
    if test_fla.takes(name, "state_v_first"):
        swapped = np.ascontiguousarray(theirs.swapaxes(2, 3))
        _, theirs = case.call(name, operands, initial_state=theirs, output_final_state=True)
        same = case.call(
            name, operands, initial_state=swapped, output_final_state=True, state_v_first=True, inplace=True
        )[1]
        assert same is swapped
        test_fla.check(swapped.swapaxes(2, 3), theirs)


def test_fla_tuple_in_place(rng):
    """z of FLA's linear attention has a dimension more."""
    q, k, v = (abs(rng.standard_normal((2, 5, 3, 8))).astype(np.float32) for _ in range(3))
    S, z = (abs(rng.standard_normal(shape)).astype(np.float32) for shape in ((2, 3, 8, 8), (2, 1, 3, 8)))
    expected, ends = fla.fused_recurrent_linear_attn(
        q, k, v, initial_state=(S.copy(), z.copy()), output_final_state=True, normalize=True
    )
    given = (S, z)
    o, same = fla.fused_recurrent_linear_attn(
        q, k, v, initial_state=given, output_final_state=True, normalize=True, inplace=True
    )
    assert same is given and np.array_equal(o, expected)
    assert np.array_equal(S, ends[0]) and np.array_equal(z, ends[1])


# ----------------------------------------------------------------------------
# scan
# ----------------------------------------------------------------------------

RULES = {
    "add": lambda g: {},
    "normalize": lambda g: {"normalize": True, "feature_map": "elu"},
    "exp": lambda g: {"normalize": True, "feature_map": "exp"},
    "decay": lambda g: {"decay": -g(2, 19, 3)},
    "delta": lambda g: {"update": "delta", "beta": g(2, 19, 3), "decay": -g(2, 19, 3, 16)},
    "reverse": lambda g: {"reverse": True, "decay": -g(2, 19, 3)},
}
FORMS = ["token", "state-tile", "chunk:8", "segments:8", "auto"]


@pytest.mark.parametrize("rule, form", [*itertools.product(RULES, FORMS)])
def test_scan_in_place(rng, qkv, rule, form):
    options = {**RULES[rule](lambda *shape: rng.random(shape).astype(np.float32)), "form": form}
    result = runs_or_refuses(lambda: linattn.scan(*qkv, return_state=True, **options), form, options)
    if result is None:
        return
    _, state = result
    bare = state.z is None
    expected, ends = linattn.scan(*qkv, initial_state=state, return_state=True, **options)
    mine = state.copy()
    parts = mine._parts()
    o, same = linattn.scan(*qkv, initial_state=mine.S if bare else mine, return_state=True, inplace=True, **options)
    assert isinstance(same, linattn.State) and (bare or same is mine)
    assert np.array_equal(o, expected)
    for end, part, final in zip(ends._parts(), parts, same._parts(), strict=True):
        assert part is final and np.array_equal(end, part)
    oracle = state.copy()
    first, _ = reference.scan(*qkv, initial_state=oracle, return_state=True, inplace=True, **options)
    assert_agrees(o, first)
    assert_agrees(mine.S, oracle.S)


def test_packed_and_strided(rng, no_copies):
    """Sequences of one row, some of them empty, whose states are a slice of more."""
    q, k, v = (rng.standard_normal((1, 12, 2, 8)).astype(np.float32) for _ in range(3))
    g = -rng.random((1, 12, 2)).astype(np.float32)
    pool = rng.standard_normal((7, 2, 8, 16)).astype(np.float32)
    before, offsets = pool.copy(), [0, 5, 5, 12]
    mine = pool[1:7:2, :, :, 4:12]
    expected, ends = linattn.scan(q, k, v, decay=g, initial_state=mine, return_state=True, cu_seqlens=offsets)
    o = linattn.scan(q, k, v, decay=g, initial_state=mine, cu_seqlens=offsets, inplace=True)
    assert np.array_equal(o, expected) and np.array_equal(mine, ends.S)
    before[1:7:2, :, :, 4:12] = ends.S
    assert np.array_equal(pool, before)


def test_no_tokens(no_copies):
    q = np.zeros((2, 0, 3, 8), np.float32)
    S = np.ones((2, 3, 8, 8), np.float32)
    o, state = linattn.scan(q, q, q, initial_state=S, return_state=True, inplace=True)
    assert state.S is S and (S == 1).all() and o.shape == q.shape


@pytest.mark.parametrize("update, known", [("add", True), ("add", False), ("delta", True), ("delta", False)])
def test_initial_state_of_open_length(rng, update, known):
    """One kernel for no tokens, one, few and many: the first one reads the caller's state, which stays as it was."""
    heads = "2" if known else "?"
    tokens, gate, state = f"tensor<1x{heads}x?x16xf32>", f"tensor<1x{heads}x?xf32>", f"tensor<1x{heads}x16x16xf32>"
    clause, types = (" beta(%b) update(delta)", f"{gate}, ") if update == "delta" else ("", "")
    kernel = linattn.compile(f"""
      func.func @f(%q: {tokens}, %b: {gate}, %o: {tokens}, %s: {state}) -> ({tokens}, {state}) {{
        %r:2 = linattn.scan %q, %q, %q{clause} into(%o) init(%s)
          : ({tokens}, {tokens}, {tokens}, {types}{tokens}, {state}) -> ({tokens}, {state})
        return %r#0, %r#1 : {tokens}, {state}
      }}""")
    S = rng.standard_normal((1, 2, 16, 16)).astype(np.float32)
    for T in (0, 1, 2, 3, 7, 40):
        q, b = (rng.standard_normal(shape).astype(np.float32) / 4 for shape in ((1, 2, T, 16), (1, 2, T)))
        before = S.copy()
        o, ends = kernel(q, b, np.empty_like(q), S)
        assert np.array_equal(S, before)
        x, beta = q.swapaxes(1, 2), b.swapaxes(1, 2)
        gates = {"update": "delta", "beta": beta} if update == "delta" else {}
        mine, final = reference.scan(x, x, x, initial_state=S, return_state=True, scale=1.0, **gates)
        assert_agrees(o, mine.swapaxes(1, 2), "float32", 1.0)
        assert_agrees(ends, final.S, "float32", 1.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_torch(dtype, no_copies):
    """Tensors, with norm and gates in the kernel, prefill and decoding."""
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype)
    wide = torch.float64 if dtype == "float64" else torch.float32

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    B, H, D = 2, 4, 16
    A_log, dt_bias = normal(H).to(wide), normal(H).to(wide)
    S = normal(B, H, D, D).to(wide)
    S[0, 0, 0, 0] = 1.0
    mine, theirs, address = S.clone(), S.clone(), None
    options = dict(
        use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias, output_final_state=True,
    )  # fmt: skip
    for tokens in (9, 1, 1, 1, 2):
        q, k, v = (normal(B, tokens, H, D).to(kind) for _ in range(3))
        g, beta = normal(B, tokens, H).to(wide), normal(B, tokens, H).sigmoid().to(wide)
        operands = (q, k, v)
        expected, ends = reference.gated_delta_rule(*operands, g, beta, initial_state=theirs, **options)
        theirs = ends
        o, same = fla.fused_recurrent_gated_delta_rule(
            *operands, g, beta=beta, initial_state=mine, inplace=True, **options
        )
        assert same is mine and mine.data_ptr() == (address or mine.data_ptr())
        address = mine.data_ptr()
        assert type(o) is torch.Tensor and o.dtype == kind
        assert_agrees(o.double().numpy(), expected.numpy(), dtype)
        assert_agrees(mine.double().numpy(), ends.numpy(), dtype)


def test_repeat(rng):
    """Only what differs in its arrays goes by the last call."""
    q, k, v = (rng.standard_normal((1, 1, 2, 8)).astype(np.float32) for _ in range(3))
    g = -rng.random((1, 1, 2)).astype(np.float32)
    S = rng.standard_normal((1, 2, 8, 8)).astype(np.float32)
    function = fla.fused_recurrent_simple_gla

    def both(*args, **options):
        expected = linattn.simple_gla(*args, output_final_state=True, initial_state=S, **options)
        for _ in range(2):
            o, state = function(*args, output_final_state=True, initial_state=S, **options)
            assert np.array_equal(o, expected[0]) and np.array_equal(state, expected[1])

    both(q, k, v, g)
    both(q, k, v, g, scale=0.5)
    both(q, k, v, g, scale=float("0.25"))
    both(q, k, v)
    both(q, q, v, g)
    assert function(q, k, v, g)[1] is None and function(q, k, v, g)[1] is None
    both(q, k, v, g)
    for options, error in (({"scale": "0.5"}, TypeError), ({"output_final_state": 2}, TypeError)):
        for _ in range(2):
            with pytest.raises(error, match=f"{next(iter(options))}: expected"):
                function(q, k, v, g, **options)
    with pytest.raises(TypeError, match="initial_state: expected dtype float32"):
        function(q, k, v, g, initial_state=S.astype(np.float64), output_final_state=True)
    both(q, k, v, g)


def test_repeat_keeps_no_arrays():
    import gc
    import weakref

    q = torch.zeros(1, 1, 2, 8)
    S = torch.zeros(1, 2, 8, 8)
    for _ in range(2):
        fla.fused_recurrent_simple_gla(q, q.clone(), q.clone(), initial_state=S, output_final_state=True, inplace=True)
    kept = [weakref.ref(q), weakref.ref(S)]
    del q, S
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


# ----------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------


def test_errors(qkv):
    q, k, v = qkv
    shape = (2, 3, 16, 24)
    S = np.zeros(shape, np.float32)
    frozen = S.copy()
    frozen.flags.writeable = False
    cases = [
        (None, ValueError, "initial_state: expected a state to update with inplace=True, but got None"),
        (frozen, ValueError, "initial_state: expected a writable array to update in place, but got a read-only one"),
        (linattn.State(frozen), ValueError, r"initial_state\.S: expected a writable array"),
        (S.astype(np.float64), TypeError, "initial_state: expected dtype float32, but got float64"),
        (S.astype(np.float16), TypeError, "initial_state: expected dtype float32, but got float16"),
        (S[:, :2], ValueError, r"initial_state: expected shape \(2, 3, 16, 24\), but got \(2, 2, 16, 24\)"),
        (np.broadcast_to(S[:1], shape), ValueError, "initial_state: expected a writable array"),
        (torch.zeros(1, 3, 16, 24).expand(*shape), ValueError, "initial_state: expected an array whose elements have places of their own .* stride of 0"),
        (np.lib.stride_tricks.as_strided(S, shape, (1152 * 4, 384 * 4, 4, 4)), ValueError, "initial_state: expected strides that give every element its own place"),
        ("no", TypeError, "initial_state: expected an array"),
    ]  # fmt: skip
    for state, kind, message in cases:
        with pytest.raises(kind, match=message):
            linattn.scan(q, k, v, initial_state=state, return_state=True, inplace=True)
        if not isinstance(state, linattn.State):
            with pytest.raises(kind, match=message):
                linattn.retnet(q, k, v, initial_state=state, output_final_state=True, inplace=True)
            with pytest.raises(kind, match=message):
                fla.chunk_retention(q, k, v, initial_state=state, output_final_state=True, inplace=True)
    with pytest.raises(TypeError, match="inplace: expected True or False, but got 'yes'"):
        linattn.scan(q, k, v, initial_state=S, inplace="yes")
    with pytest.raises(TypeError, match="inplace: expected True or False"):
        linattn.retnet(q, k, v, initial_state=S, inplace=2)
    with pytest.raises(ValueError, match="initial_states: expected a state to update"):
        linattn.mamba2(v, k[..., 0], -k[0, 0, :, 0], q[:, :, :1], k[:, :, :1], inplace=True)


def test_overlap():
    memory = np.zeros(4096, np.float32)
    S = memory[:2048].reshape(2, 4, 16, 16)
    q, k, v = (memory[a : a + 128].reshape(2, 1, 4, 16) for a in (2000, 2500, 3000))
    with pytest.raises(ValueError, match="initial_state: expected a buffer of its own, but it overlaps q"):
        linattn.scan(q, k, v, initial_state=S, inplace=True)
    with pytest.raises(ValueError, match="out: expected a buffer of its own, but it overlaps initial_state"):
        linattn.scan(k, k.copy(), v, initial_state=S, inplace=True, out=q)
    with pytest.raises(ValueError, match=r"initial_state\[0\]: expected a buffer of its own, but it overlaps initial_state\[1\]"):
        z = memory[:128].reshape(2, 4, 16)
        linattn.linear_attention(k, k.copy(), v, initial_state=(S, z), inplace=True)
    assert (memory == 0).all()


def test_jax():
    jax = pytest.importorskip("jax")
    q = np.ones((1, 1, 2, 8), np.float32)
    with pytest.raises(ValueError, match="initial_state: expected an array that can be updated in place, but got jax"):
        linattn.scan(q, q.copy(), q.copy(), initial_state=jax.numpy.zeros((1, 2, 8, 8)), inplace=True)


def test_foreign(no_copies):
    """Whatever has DLPack and can be written."""
    q = np.ones((1, 1, 2, 8), np.float32)
    S = np.zeros((1, 2, 8, 8), np.float32)
    linattn.scan(q, q.copy(), q.copy(), scale=1.0, initial_state=Foreign(S), inplace=True)
    assert (S == 1).all()


def test_subclass_of_tensor():
    """The functions of tensors know nothing of what a subclass holds."""
    assert isinstance(_linattn.Repeat(), _linattn.Repeat)
    q = torch.randn(1, 2, 2, 8)
    parameter = torch.nn.Parameter(q.clone(), requires_grad=False)
    assert torch.equal(linattn.scan(parameter, q, q), linattn.scan(q, q, q))
    assert linattn.scan(torch.nn.Parameter(q.clone()), q, q).requires_grad
    with pytest.raises(TypeError, match="q: expected elements of type"):
        linattn.scan(q.to(torch.complex64), q, q)
