"""Calls through PyTorch's dispatcher: compiled, exported, batched, under autocast."""

import subprocess
import sys

import numpy as np
import pytest
import test_families

import linattn
from linattn import fla

torch = pytest.importorskip("torch")
import linattn.torch as linattn_torch  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402

from linattn._graph import _calls, _layouts  # noqa: E402

B, T, H, D = 2, 6, 2, 8


def draw(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


@pytest.fixture
def tokens():
    return draw(B, T, H, D), draw(B, T, H, D + 1)[..., :D], draw(B, T, H, 5), -draw(B, T, H).abs(), draw(B, H, D, 5)


def name_of(function, *arguments, **options):
    """The name of the plan that a call of a function runs."""
    _calls._calls.clear()
    function(arguments[0].clone().requires_grad_(), *arguments[1:], **options)
    (name,) = _calls._calls
    return name


def same(found, expected):
    found, expected = ((x,) if isinstance(x, torch.Tensor) else x for x in (found, expected))
    return len(found) == len(expected) and all(torch.equal(x, y) for x, y in zip(found, expected))


# ----------------------------------------------------------------------------
# The operators
# ----------------------------------------------------------------------------


def operator_calls():
    q, k, v, g, S = draw(B, T, H, D), draw(B, T, H, D), draw(B, T, H, 5), -draw(B, T, H).abs(), draw(B, H, D, 5)
    scan = name_of(linattn.scan, q, k, v, decay=g)
    stateful = name_of(linattn.simple_gla, q, k, v, g, initial_state=S, output_final_state=True)
    packed = name_of(linattn.gla, q[:1], k[:1], v[:1], g[:1, ..., None].expand(1, T, H, D).contiguous(), cu_seqlens=torch.tensor([0, 2, T]))
    mapped = name_of(linattn.attention, q, k, v, causal=True)
    conv = name_of(linattn.causal_conv1d, q[:, :, 0], draw(D, 4))
    offsets = torch.tensor([0, 2, T])
    return {
        "scan": (scan, [q, k, v, g], []),
        "state": (stateful, [q, k, v, g], [S]),
        "packed": (packed, [q[:1], k[:1], v[:1], g[:1, ..., None].expand(1, T, H, D).contiguous(), offsets], []),
        "mapped": (mapped, [q, k, v], []),
        "conv": (conv, [q[:, :, 0].contiguous(), draw(D, 4)], []),
    }


@pytest.mark.parametrize("case", ["scan", "state", "packed", "mapped", "conv"])
def test_run_is_a_good_operator(case):
    name, operands, state = operator_calls()[case]
    torch.library.opcheck(linattn_torch.run, (name, operands, state))


def test_run_in_place_is_a_good_operator():
    name, operands, state = operator_calls()["state"]
    torch.library.opcheck(linattn_torch.run_, (name, operands, [state[0].clone()]))
    expected = linattn_torch.run(name, operands, state)
    o = linattn_torch.run_(name, operands, state)
    assert same([o, *state], expected)


def test_operators_compute_as_functions_do(tokens):
    q, k, v, g, S = tokens
    expected = linattn.simple_gla(q, k, v, g, initial_state=S, output_final_state=True)
    recorded = linattn.simple_gla(q.clone().requires_grad_(), k, v, g, initial_state=S, output_final_state=True)
    assert all(x.requires_grad for x in recorded) and same([x.detach() for x in recorded], expected)
    with torch.no_grad():
        quiet = linattn.simple_gla(torch.nn.Parameter(q), k, v, g, initial_state=S, output_final_state=True)
    assert not quiet[0].requires_grad and same(quiet, expected)
    recorded = fla.chunk_simple_gla(q.clone().requires_grad_(), k, v, g, initial_state=S, output_final_state=True)
    assert same([x.detach() for x in recorded], expected)


def test_a_call_is_known_by_its_name(tokens):
    """As another process knows it that loads a graph."""
    q, k, v, g, S = tokens
    name = name_of(linattn.simple_gla, q, k, v, g, initial_state=S, output_final_state=True)
    _calls._calls.clear()
    assert same(linattn_torch.run(name, [q, k, v, g], [S]), linattn.simple_gla(q, k, v, g, initial_state=S, output_final_state=True))
    name = name_of(linattn.scan, q, k, v, decay=g, scale=np.float32(0.5))
    _calls._calls.clear()
    assert same(linattn_torch.run(name, [q, k, v, g], []), linattn.scan(q, k, v, decay=g, scale=0.5))
    own = name_of(linattn.attention, q, k, v, feature_map=lambda x: x * x)
    _calls._calls.clear()
    for unknown in (own, "[]", '["nothing"]', "{"):
        with pytest.raises(ValueError, match="call: expected the name of a call, but got"):
            linattn_torch.run(unknown, [q, k, v], [])


# The layouts of families are read twice, from arrays and from shapes.
FAMILIES = ["gla", "mamba2", "rwkv7", "mlstm", "gated_delta_rule", "gated_deltaproduct", "gsa", "hgrn", "kda", "retnet"]


@pytest.mark.parametrize("name", FAMILIES)
def test_shapes_without_elements_are_those_with(name):
    function, make = test_families.CASES[name]
    operands = make(test_families.Draw(np.float32))
    operands = {key: torch.from_numpy(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x for key, x in operands.items()}
    expected = getattr(linattn, function)(**operands)
    with FakeTensorMode() as mode:
        fake = {key: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for key, x in operands.items()}
        found = getattr(linattn, function)(**fake)
    assert found.shape == expected.shape and found.dtype == expected.dtype and found.stride() == expected.stride()


def test_layouts_follow_the_words():
    (layout,) = _layouts.parse("N H V K -> N H K V")
    x = draw(2, 3, 4, 5)
    assert layout.to_logical(x, {}).shape == (2, 3, 5, 4)
    whole, one = _layouts.parse("H*K | H K")
    assert whole.to_logical(draw(6), {"H": 2, "K": 3}).shape == (2, 3) and one.user == ["H", "K"]
    (layout,) = _layouts.parse("B T H K")
    assert layout.drop({"H"}).to_logical(draw(2, 3, 4), {}).shape == (2, 1, 3, 4)


# ----------------------------------------------------------------------------
# Compiled and exported functions
# ----------------------------------------------------------------------------


def compiled(function, *arguments):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")(*arguments)


def with_state(q, S):
    o, state = linattn.scan(q, q, q, initial_state=linattn.State(S), return_state=True)
    return o, state.S


FUNCTIONS = {
    "scan": lambda q, S: linattn.scan(q, q, q),
    "attention": lambda q, S: linattn.attention(q, q, q, feature_map=linattn.feature_maps.taylor()),
    "family": lambda q, S: linattn.retnet(q, q, q, initial_state=S, output_final_state=True),
    "fla": lambda q, S: fla.chunk_retention(q, q, q, initial_state=S, output_final_state=True),
    "state": with_state,
    "conv": lambda q, S: linattn.causal_conv1d(q[:, :, 0], S[0, 0, :, :4], activation="silu"),
    "norm": lambda q, S: linattn.rms_norm_gated(q, q, S[0, 0, 0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_whole(name):
    q, S = draw(B, T, H, D), draw(B, H, D, D)
    assert same(compiled(FUNCTIONS[name], q, S), FUNCTIONS[name](q, S))


def test_only_a_compiled_function_imports_dynamo():
    code = (
        "import sys, linattn.torch, torch; q = torch.ones(1, 4, 1, 8, requires_grad=True)\n"
        "linattn.retnet(q, q, q).sum().backward(); print('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_dynamo_may_be_imported_first():
    from torch._dynamo import trace_rules

    trace_rules._nonstrict_trace_callable_ids.remove(id(linattn.retnet))
    linattn_torch._traced._register_functions()
    assert trace_rules.is_nonstrict_trace_callable(linattn.retnet)


def test_compiled_in_place():
    q, first, second = draw(B, T, H, D), draw(B, H, D, D), draw(B, H, D, D)
    step = lambda q, S: linattn.retnet(q, q, q, initial_state=S, output_final_state=True, inplace=True)  # noqa: E731
    assert same(compiled(step, q, first), step(q, second)) and torch.equal(first, second)


class Layer(torch.nn.Module):
    def forward(self, q, g):
        return linattn.simple_gla(q, q, q, g)


def test_exported_with_any_length(tmp_path):
    length = torch.export.Dim("length", min=2, max=64)
    program = torch.export.export(Layer(), (draw(B, T, H, D), -draw(B, T, H).abs()), dynamic_shapes=({1: length},) * 2)
    assert "linattn.run.default" in str(program.graph)
    torch.export.save(program, tmp_path / "layer.pt2")
    q, g = draw(B, 2 * T + 1, H, D), -draw(B, 2 * T + 1, H).abs()
    assert torch.equal(torch.export.load(tmp_path / "layer.pt2").module()(q, g), Layer()(q, g))


# ----------------------------------------------------------------------------
# Batches, autocast
# ----------------------------------------------------------------------------


def test_batches(tokens):
    q, k, v, g, S = tokens
    many = draw(3, B, T, H, D)

    def call(q, g, S):
        return linattn.simple_gla(q, k, v, g, initial_state=S, output_final_state=True)

    def expected(queries, decays, states):
        return [torch.stack(x) for x in zip(*map(call, queries, decays, states))]

    assert same(torch.func.vmap(call, (0, None, None))(many, g, S), expected(many, [g] * 3, [S] * 3))
    states = draw(B, 3, H, D, 5)
    assert same(torch.func.vmap(call, (0, None, 1))(many, g, states), expected(many, [g] * 3, states.unbind(1)))
    decays = -draw(3, H).abs()
    heads = lambda g: linattn.scan(q, k, v, decay=g)  # noqa: E731
    assert same(torch.func.vmap(heads)(decays), torch.stack([heads(g) for g in decays]))
    one = lambda q: linattn.scan(q, q, q)  # noqa: E731
    assert same(torch.func.vmap(one)(q[:, :, 0]), torch.stack([one(x) for x in q[:, :, 0]]))


def test_autocast_lets_dtypes_agree(tokens):
    q, k, v, g, _ = tokens
    mixed = (q.bfloat16(), k, v)
    with pytest.raises(TypeError, match="k: expected the dtype of q, bfloat16, but got float32"):
        linattn.scan(*mixed, decay=g)
    expected = linattn.scan(*(x.bfloat16() for x in mixed), decay=g)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linattn.scan(*mixed, decay=g), expected)
        assert linattn.scan(mixed[0].requires_grad_(), k, v, decay=g).dtype is torch.bfloat16
        assert torch.equal(linattn.scan(q, k, v, decay=g), linattn_torch.run(name_of(linattn.scan, q, k, v, decay=g), [q, k, v, g], [])[0])


# ----------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------


def test_refusals(tokens):
    q, k, v, g, S = tokens
    needs = q.clone().requires_grad_()
    with pytest.raises(linattn.UnsupportedError, match="inplace: expected False where gradients are recorded"):
        linattn.simple_gla(needs, k, v, g, initial_state=S, inplace=True)
    with pytest.raises(linattn.UnsupportedError, match="out: expected None where gradients are recorded"):
        linattn.scan(needs, k, v, out=torch.empty(B, T, H, 5))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, q)
        with pytest.raises(ValueError, match="q: expected no gradients to be recorded forward"):
            linattn.scan(dual, k, v)
    o, _, states = linattn.scan(needs, k, v, reverse=True, states_every=2, return_state=True)
    assert torch.equal(states, linattn.scan(q, k, v, reverse=True, states_every=2, return_state=True)[2])
    with pytest.raises(linattn.UnsupportedError, match="has no gradient yet for snapshots of a reversed scan"):
        states.sum().backward()


def test_linattn_itself_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; import linattn; print(sorted(x for x in sys.modules if 'torch' in x))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['torch']"
