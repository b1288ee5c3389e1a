"""Gradients of every function that has them, through PyTorch."""

import os
import pathlib
import random

import numpy as np
import pytest
from test_families import CASES, Draw
from conftest import SEED

import linattn
from linattn import fla

torch = pytest.importorskip("torch")
import linattn.torch as linattn_torch  # noqa: E402
from linattn._graph import _calls  # noqa: E402

# Families whose gradients are looked at each time; the others by a seeded sample, or all of
# them with LINATTN_TEST_GRADIENTS=all.
ALWAYS = ["kda-bound", "mamba2-all"]
SIZES = {"T": 5, "B": 1, "HQ": 2, "HK": 1, "HV": 2, "K": 4, "V": 3}


def sample():
    others = sorted(set(CASES) - set(ALWAYS))
    if os.environ.get("LINATTN_TEST_GRADIENTS") == "all":
        return ALWAYS + others
    return ALWAYS + random.Random(SEED).sample(others, 1)


def draw(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64).to(dtype)


def tensors_of(case):
    """The function of a case, its operands that can have gradients, and the others."""
    name, make = CASES[case]
    operands = make(Draw(np.float64, **SIZES))
    tensors = {key: torch.from_numpy(np.array(x)) for key, x in operands.items() if isinstance(x, np.ndarray)}
    rest = {key: x for key, x in operands.items() if key not in tensors}
    return getattr(linattn, name), tensors, rest


def leaves(*tensors):
    return [x.detach().clone().requires_grad_() for x in tensors]


@pytest.mark.parametrize("case", sample())
def test_families(case):
    function, tensors, rest = tensors_of(case)
    arguments = leaves(*tensors.values())

    def call(*arrays):
        return function(**dict(zip(tensors, arrays)), **rest)

    with torch.no_grad():
        quiet = call(*arguments)
    assert torch.equal(call(*arguments), quiet)
    assert torch.autograd.gradcheck(call, arguments, fast_mode=True, atol=1e-6, rtol=1e-5)


# Half of what the tests of flash-linear-attention allow of the root mean square, by family and operand; where that
# is less than what the rounding of a gradient alone takes, that.
HALF = {"delta": 4e-3, "gate": 1e-2, "decay": 2.5e-3, "plain": 5e-4}
DELTA = {"delta_rule", "gated_delta_rule", "kda", "gdn2", "ttt_linear", "comba", "iplr", "dplr", "rwkv7", "gated_deltaproduct", "gated_oja", "gsa"}
ROUNDING = {torch.float16: 2.5e-4, torch.bfloat16: 2e-3}
GATES = {"g", "gk", "gv", "beta", "b", "w", "eta", "i", "f", "dt", "dt_bias", "A", "A_log"}


def bound_of(family, operand, dtype):
    if family in DELTA:
        return HALF["gate" if operand in GATES else "delta"]
    half = HALF["plain" if family == "linear_attention" else "decay"]
    return max(half, 1.25 * ROUNDING[dtype])


@pytest.mark.sampled(45)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("case", sorted(CASES))
def test_16_bits(case, dtype):
    """Tokens of 16 bits beside the same numbers in f64."""
    name, make = CASES[case]
    sizes = {**SIZES, "T": 40, "K": 16, "V": 16}
    types = {key: x.dtype for key, x in make(Draw(np.float16, **sizes)).items() if isinstance(x, np.ndarray)}
    drawn = make(Draw(np.float64, **sizes))
    narrow = {key: torch.from_numpy(drawn[key].copy()).to(dtype if kind == np.float16 else torch.float32) for key, kind in types.items()}
    rest = {key: x for key, x in drawn.items() if key not in types}

    def call(*arrays):
        return getattr(linattn, name)(**dict(zip(narrow, arrays)), **rest)

    with torch.no_grad():
        weights = torch.randn_like(call(*narrow.values()).double()).to(dtype)
    found = gradients(call, narrow.values(), [weights])
    expected = gradients(call, [x.double() for x in narrow.values()], [weights.double()])
    for key, x, y in zip(narrow, found, expected, strict=True):
        error = (x.double() - y).square().mean().sqrt() / y.square().mean().sqrt().clamp(min=1e-30)
        assert error <= bound_of(name, key, dtype), f"{key}: {error}"


def operands(dtype=torch.float64, T=6, B=2):
    q, k, v = draw(B, T, 4, 8, dtype=dtype), draw(B, T, 2, 8, dtype=dtype, seed=1), draw(B, T, 4, 5, dtype=dtype)
    k = k / k.norm(dim=-1, keepdim=True)
    g, beta = -draw(B, T, 4).abs(), draw(B, T, 4).sigmoid()
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    return q, k, v, g.to(wide), beta.to(wide), draw(B, 4, 8, 5, dtype=wide)


def gated(q, k, v, g, beta, S):
    return linattn.gated_delta_rule(q, k, v, g, beta, initial_state=S, output_final_state=True)


def gradients(function, arrays, weights=None):
    arrays = leaves(*arrays)
    results = function(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    weights = weights or [draw(*x.shape, dtype=x.dtype, seed=7) for x in results]
    return torch.autograd.grad([(x * w).sum() for x, w in zip(results, weights)], arrays)


def assert_close(found, expected, tolerance=1e-11):
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape and (x - y).abs().max() <= tolerance * y.abs().max().clamp(min=1e-30)


def token_by_token(q, k, v, g, beta, S):
    """The gated delta rule by its formula."""
    q, k, v = (x.repeat_interleave(4 // x.shape[2], 2) for x in (q, k, v))
    outputs = []
    for t in range(q.shape[1]):
        S = S * g[:, t, :, None, None].exp()
        error = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhkv,bhk->bhv", S, k[:, t]))
        S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], error)
        outputs.append(torch.einsum("bhkv,bhk->bhv", S, q[:, t]) * q.shape[-1] ** -0.5)
    return torch.stack(outputs, 1), S


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-11), (torch.float32, 1e-5), (torch.bfloat16, 8e-3)])
def test_every_operand_against_the_formula(dtype, tolerance):
    arrays = operands(dtype, T=70)
    expected = gradients(token_by_token, [x.double() for x in arrays], [draw(2, 70, 4, 5, seed=7), draw(2, 4, 8, 5, seed=7)])
    found = gradients(gated, arrays, [draw(2, 70, 4, 5, seed=7).to(dtype), draw(2, 4, 8, 5, seed=7).to(arrays[-1].dtype)])
    assert [x.dtype for x in found] == [x.dtype for x in arrays]
    assert_close([x.double() for x in found], expected, tolerance)


def test_gates_that_are_shut():
    """A sigmoid whose e^-x would overflow has the derivative 0, not NaN."""
    q, k, v = (draw(1, 6, 2, 4, dtype=torch.float32, seed=seed).requires_grad_() for seed in range(3))
    g, beta = torch.zeros(1, 6, 2, 4), torch.zeros(1, 6, 2)
    g[0, ::2], beta[0, 1::2] = -200.0, -200.0
    g.requires_grad_()
    beta.requires_grad_()
    A_log = torch.zeros(2, requires_grad=True)
    options = {"use_gate_in_kernel": True, "lower_bound": -5.0, "use_beta_sigmoid_in_kernel": True}
    linattn.kda(q, k, v, g, beta, A_log=A_log, **options).square().sum().backward()
    for tensor in (q, k, v, g, beta, A_log):
        assert tensor.grad.isfinite().all()
    assert not g.grad[0, ::2].any() and not beta.grad[0, 1::2].any()
    assert g.grad[0, 3:4].any() and beta.grad[0, ::2].any()


def test_only_active_operands():
    arrays = operands()
    expected = gradients(gated, arrays)
    for index in range(len(arrays)):
        given = [x.clone().requires_grad_(i == index) for i, x in enumerate(arrays)]
        o, S = gated(*given)
        (found,) = torch.autograd.grad([(o * draw(*o.shape, seed=7)).sum(), (S * draw(*S.shape, seed=7)).sum()], [given[index]])
        assert_close([found], [expected[index]])
    q, *rest = leaves(*arrays)
    state_alone = torch.autograd.grad(gated(q, *rest)[1].sum(), [q, rest[0]])
    assert not state_alone[0].any() and state_alone[1].any()


def test_expanded_operands():
    q, k, v, g, beta, S = operands()
    narrow = leaves(q[:1], g[..., :1])
    o = linattn.simple_gla(narrow[0].expand(2, *q.shape[1:]), k, v, narrow[1].expand_as(g))
    whole = leaves(q[:1].expand(2, *q.shape[1:]), g[..., :1].expand_as(g))
    expected = torch.autograd.grad(linattn.simple_gla(whole[0], k, v, whole[1]).sum(), whole)
    found = torch.autograd.grad(o.sum(), narrow)
    assert_close(found, [expected[0].sum(0, keepdim=True), expected[1].sum(-1, keepdim=True)])
    q, k, v = leaves(q[0, :, 0], k[0, :, 0], v[0, :, 0])  # one head of one sequence
    assert torch.autograd.gradcheck(lambda *x: linattn.scan(*x), (q, k, v), fast_mode=True)


def test_packed_and_split():
    q, k, v, g, beta, _ = operands(B=1, T=9)
    S = draw(2, 4, 8, 5)

    def packed(q, k, v, g, beta, S):
        return linattn.gated_delta_rule(q, k, v, g, beta, initial_state=S, output_final_state=True, cu_seqlens=[0, 4, 9])

    def apart(q, k, v, g, beta, S):
        parts = [gated(*(x[:, begin:end] for x in (q, k, v, g, beta)), S[n : n + 1]) for n, (begin, end) in enumerate([(0, 4), (4, 9)])]
        return tuple(torch.cat(x, 1 - i) for i, x in enumerate(zip(*parts)))

    assert_close(gradients(packed, (q, k, v, g, beta, S)), gradients(apart, (q, k, v, g, beta, S)))

    def chained(q, k, v, g, beta, S):
        state, outputs = linattn.State(S), []
        for t in (slice(0, 1), slice(1, 5), slice(5, 9)):
            outputs.append(state.step(q[:, t], k[:, t], v[:, t], decay=g[:, t], beta=beta[:, t], update="delta"))
        return torch.cat(outputs, 1), state.S

    assert_close(gradients(chained, (q, k, v, g, beta, S[:1])), gradients(gated, (q, k, v, g, beta, S[:1])))


def test_flash_linear_attention():
    q, k, v, g, beta, S = operands()
    q, k = k, k.flip(1)
    call = lambda *x: fla.chunk_gated_delta_rule(*x[:5], initial_state=x[5], output_final_state=True)  # noqa: E731
    assert_close(gradients(call, (q, k, v, g, beta, S)), gradients(gated, (q, k, v, g, beta, S)))
    call(q, k, v, g, beta, S)  # which the next call repeats
    assert_close(gradients(call, (q, k, v, g, beta, S)), gradients(gated, (q, k, v, g, beta, S)))


# ----------------------------------------------------------------------------
# PyTorch's own ways to a gradient
# ----------------------------------------------------------------------------


def test_functions_of_functions():
    q, k, v, g, beta, S = operands()
    loss = lambda q, g: (linattn.simple_gla(q, k, v, g) ** 2).sum()  # noqa: E731
    expected = gradients(loss, (q, g), [torch.ones(())])
    assert_close(torch.func.grad(loss, (0, 1))(q, g), expected)
    many = torch.stack([q, 2 * q, -q])
    found = torch.func.vmap(torch.func.grad(loss, (0, 1)), (0, None))(many, g)
    apart = [torch.func.grad(loss, (0, 1))(x, g) for x in many]
    assert_close(found, [torch.stack(x) for x in zip(*apart)])
    _, pull = torch.func.vjp(lambda q: linattn.simple_gla(q, k, v, g), q)
    assert_close(pull(draw(2, 6, 4, 5)), gradients(lambda q: linattn.simple_gla(q, k, v, g), (q,), [draw(2, 6, 4, 5)]))
    heads = -draw(4).abs()
    decays = lambda g: (linattn.scan(q, k, v, decay=g) ** 2).sum()  # noqa: E731
    found = torch.func.vmap(torch.func.grad(decays))(torch.stack([heads, heads / 2]))
    assert_close([found], [torch.stack([torch.func.grad(decays)(heads), torch.func.grad(decays)(heads / 2)])])


def test_compiled_training():
    q, k, v, g, beta, S = operands(torch.float32)
    torch._dynamo.reset()
    whole = torch.compile(gated, fullgraph=True, backend="aot_eager")
    found = gradients(whole, (q, k, v, g, beta, S))
    assert all(torch.equal(x, y) for x, y in zip(found, gradients(gated, (q, k, v, g, beta, S))))


def test_backward_is_a_good_operator():
    q, k, v, g, beta, S = operands(torch.float32)
    _calls._calls.clear()
    gated(q.clone().requires_grad_(), k, v, g, beta, S)
    (name,) = _calls._calls
    cotangents = [draw(2, 6, 4, 5, dtype=torch.float32), torch.ones_like(S)]
    arguments = (name, [q, k, v, g, beta], [S], cotangents, [True, True], [True, False, True, True, True, True])
    torch.library.opcheck(linattn_torch.run_backward, arguments)
    torch.library.opcheck(linattn_torch.run, (name, [x.requires_grad_() for x in (q, k, v, g, beta)], [S.requires_grad_()]))


def test_checkpointed():
    arrays = operands()
    found = gradients(lambda *x: torch.utils.checkpoint.checkpoint(gated, *x, use_reentrant=False), arrays)
    assert all(torch.equal(x, y) for x, y in zip(found, gradients(gated, arrays)))


# ----------------------------------------------------------------------------
# Refusals
# ----------------------------------------------------------------------------


def test_no_second_derivative():
    (q,) = leaves(draw(1, 4, 2, 8))
    (first,) = torch.autograd.grad((linattn.retnet(q, q, q) ** 2).sum(), [q], create_graph=True)
    with pytest.raises(linattn.UnsupportedError, match="retnet: expected one derivative, but got a second one"):
        first.sum().backward()


def test_calls_without_a_gradient_are_refused():
    q, k, v, beta = draw(1, 4, 2, 8), draw(1, 4, 2, 8, seed=1), draw(1, 4, 2, 5), draw(1, 4, 2).sigmoid()
    arguments = leaves(q, k, v)
    o = linattn.scan(*arguments, decay=-draw(1, 4, 2, 8).abs(), beta=beta, update="oja")
    with pytest.raises(linattn.UnsupportedError, match="scan: expected a call that has the gradient of q, k, v, but got one without: .*oja"):
        o.sum().backward()
    assert all(x.grad is None for x in arguments)


# ----------------------------------------------------------------------------
# The examples
# ----------------------------------------------------------------------------


@pytest.fixture
def examples(monkeypatch):
    """Modules of the examples can be imported."""
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))


@pytest.mark.parametrize("mixer", ["hybrid"])
def test_the_example_trains_as_plain_pytorch(mixer, tmp_path, examples):
    import train

    options = ["--steps=4", "--batch=2", "--tokens=128", "--width=32", "--layers=4", f"--mixer={mixer}"]
    curves = train.main([*options, f"--plot={tmp_path / 'loss.png'}"])
    ours, theirs = (torch.tensor(losses) for losses, _ in curves.values())
    assert ((ours - theirs).abs() <= 1e-4 * theirs).all() and ours[-1] < ours[0]
    assert (tmp_path / "loss.png").stat().st_size > 1000


def test_the_tasks_ask_for_what_the_sequence_holds(examples):
    import recall

    tokens, expected, vocabulary = recall.copy(5, 3, torch.Generator().manual_seed(0))
    assert tokens.shape == (3, 11) and tokens.max() < vocabulary
    for x, y in zip(tokens.tolist(), expected.tolist()):
        assert len(set(x[:5])) == 5 and x[5] == vocabulary - 1
        assert y == [recall.IGNORED] * 5 + x[:5] + [recall.IGNORED]
    tokens, expected, vocabulary = recall.recall(5, 3, torch.Generator().manual_seed(0))
    assert tokens.shape == (3, 30) and tokens.max() < vocabulary
    for x, y in zip(tokens.tolist(), expected.tolist()):
        written = dict(zip(x[:20:2], x[1:20:2]))  # the second value of a key replaces the first
        assert len(written) == 5 and sorted(x[20::2]) == sorted(written)
        assert [(x[i], y[i]) for i in range(30) if y[i] != recall.IGNORED] == [(key, written[key]) for key in x[20::2]]


def test_the_recall_example_trains(tmp_path, examples, capsys):
    import recall

    options = ["--items=2", "--steps=60", "--batch=16", "--width=32", "--tasks=recall"]
    curves = recall.main([*options, "--rules=decay,gated-delta", f"--plot={tmp_path / 'recall.png'}"])
    assert (tmp_path / "recall.png").stat().st_size > 1000
    for right in curves["recall"].values():
        assert len(right) == 60 and sum(right[-10:]) > 2 * sum(right[:10])
    with pytest.raises(SystemExit):
        recall.main(["--rules=linear,lstm"])
    assert "expected some of linear, decay, delta, gated-delta, but got lstm" in capsys.readouterr().err
