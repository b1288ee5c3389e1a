"""How functions of transformers are replaced, which calls linattn takes, and what is said."""

import importlib
import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import linattn.transformers as lt  # noqa: E402
from linattn import UnsupportedError  # noqa: E402
from transformers.models.mamba import modeling_mamba  # noqa: E402
from transformers.models.qwen3_5 import modeling_qwen3_5 as modeling  # noqa: E402
from transformers_models import make_model, make_tokens  # noqa: E402

NAME = "torch_chunk_gated_delta_rule"


@pytest.fixture(autouse=True)
def switched_off():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    yield
    torch.set_num_threads(threads)
    lt.disable()


def operands(**options):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 20, 2, 16, generator=generator) for _ in range(3))
    g, beta = -torch.rand(1, 20, 2, generator=generator), torch.rand(1, 20, 2, generator=generator)
    return (q, k, v, g, beta), {"use_qk_l2norm_in_kernel": True, **options}


def entry(target=NAME, model="qwen3_5"):
    found = [entry for entry in lt.status()[model] if entry.target == target]
    assert len(found) == 1, found
    return found[0]


# ----------------------------------------------------------------------------
# Replaced functions
# ----------------------------------------------------------------------------


def test_disable_restores_the_originals():
    places = [modeling, modeling_mamba, modeling.Qwen3_5RMSNormGated]
    before = [dict(vars(place)) for place in places]
    lt.enable()
    assert getattr(modeling, NAME) is not before[0][NAME]
    assert inspect.signature(getattr(modeling, NAME)) == inspect.signature(before[0][NAME])
    lt.enable()  # again changes nothing
    lt.disable()
    for place, names in zip(places, before):
        assert dict(vars(place)) == names
    assert not any(type(finder).__module__.startswith("linattn") for finder in sys.meta_path)
    lt.disable()


def test_blocks_nest():
    assert not lt.status().enabled
    with lt.enabled():
        with lt.enabled():
            assert lt.status().enabled
        assert lt.status().enabled
    assert not lt.status().enabled
    lt.enable()
    with pytest.raises(RuntimeError), lt.enabled():
        raise RuntimeError
    assert lt.status().enabled


def test_others_may_replace_a_function_too():
    original = getattr(modeling, NAME)
    lt.enable()
    ours = getattr(modeling, NAME)

    def theirs(*args, **kwargs):
        return ours(*args, **kwargs)

    try:
        setattr(modeling, NAME, theirs)
        assert not entry().replaced and "something else" in entry().reason
        lt.disable()
        assert getattr(modeling, NAME) is theirs
        args, options = operands()
        # The function that they have kept calls the original.
        assert torch.equal(theirs(*args, **options)[0], original(*args, **options)[0])
    finally:
        setattr(modeling, NAME, original)


MODULE = """
from transformers.integrations import use_kernel_func_from_hub_with_fallback
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule, l2norm
import torch, torch.nn.functional as F
from torch import nn
ACT2FN = {"silu": F.silu}

def own():
    return torch_chunk_gated_delta_rule
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Imports a module from outside of transformers."""

    def load(text):
        name = "modeling_mine"
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield load
    sys.modules.pop("modeling_mine", None)


def decorated(function, kernel, **changes):
    """The source of a function of transformers, as another module may have it."""
    text = inspect.getsource(inspect.unwrap(function))
    text = text[text.index("def ") :]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return f'\n\n@use_kernel_func_from_hub_with_fallback("{kernel}", "fla")\n{text}'


@pytest.mark.parametrize("first", [True, False])
def test_a_module_outside_of_transformers(module, first):
    text = MODULE + decorated(modeling.torch_recurrent_gated_delta_rule, "fused_recurrent_gated_delta_rule")
    if first:
        lt.enable()
    mine = module(text)
    if not first:
        lt.enable()
    (args, options) = operands()
    spec = mine.__spec__
    assert type(spec.loader).__module__.startswith(("importlib", "_frozen_importlib"))
    expected = inspect.unwrap(mine.torch_recurrent_gated_delta_rule)(*args, **options)[0]
    torch.testing.assert_close(mine.torch_recurrent_gated_delta_rule(*args, **options)[0], expected, rtol=1e-5, atol=1e-5)
    assert entry("torch_recurrent_gated_delta_rule", "mine").taken == 1
    # Names that it took from another module follow.
    assert mine.own() is getattr(modeling, NAME)
    lt.disable()
    assert not hasattr(mine.own(), "__linattn_hook__")
    assert not hasattr(mine.torch_recurrent_gated_delta_rule, "__linattn_hook__")


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("use_qk_l2norm_in_kernel: bool = False", "use_qk_l2norm_in_kernel: bool = True", "parameters"),
        ("decay[:, :, i].exp()", "(2 * decay[:, :, i]).exp()", "body"),
    ],
)
def test_an_unknown_function_stays(module, old, new, why):
    function = decorated(modeling.torch_recurrent_gated_delta_rule, "fused_recurrent_gated_delta_rule", **{old: new})
    lt.enable()
    with pytest.warns(UserWarning, match=f"modeling_mine.torch_recurrent_gated_delta_rule runs in PyTorch as before: its {why}"):
        mine = module(MODULE + function)
    assert not hasattr(mine.torch_recurrent_gated_delta_rule, "__linattn_hook__")
    found = entry("torch_recurrent_gated_delta_rule", "mine")
    assert not found.replaced and why in found.reason


def test_another_release(monkeypatch, module):
    """Is named once; what it has in common with the known one runs in linattn, undecorated too."""
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "5.240.0")
    text = decorated(modeling.torch_recurrent_gated_delta_rule, "fused_recurrent_gated_delta_rule")
    text = text[text.index("def ") :]
    with pytest.warns(UserWarning, match="expected transformers 5.23, but got 5.240.0"):
        lt.enable()
    assert lt.status().version == "5.240.0"
    assert hasattr(module(MODULE + text).torch_recurrent_gated_delta_rule, "__linattn_hook__")


def test_comments_and_annotations_keep_a_function(module, recwarn):
    text = decorated(
        modeling.torch_recurrent_gated_delta_rule, "fused_recurrent_gated_delta_rule",
        **{"query: torch.Tensor,": "query,  # [B, T, H, K]\n", "initial_dtype = query.dtype": "# kept\n    initial_dtype = query.dtype"},
    )  # fmt: skip
    lt.enable()
    assert hasattr(module(MODULE + text).torch_recurrent_gated_delta_rule, "__linattn_hook__")
    assert not [x for x in recwarn if "linattn" in str(x.message)]


def test_an_import_alone_changes_nothing():
    code = """
        import sys
        import linattn
        assert "torch" not in sys.modules and "linattn.transformers" not in sys.modules
        import linattn.transformers as lt
        assert "torch" not in sys.modules
        assert not lt.status().enabled and len(lt.status()) == 0
        lt.disable()
        sys.modules["torch"] = None
        try:
            lt.enable()
        except ImportError as error:
            assert "expected PyTorch and transformers" in str(error)
        else:
            raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


# ----------------------------------------------------------------------------
# Which calls
# ----------------------------------------------------------------------------


def test_calls_that_are_taken_are_counted():
    args, options = operands()
    with torch.no_grad(), lt.enabled():
        getattr(modeling, NAME)(*args, **options)
        assert entry().taken == 1 and not entry().passed
        assert "torch_chunk_gated_delta_rule" in str(lt.status()) and "linattn" in str(lt.status())
        assert lt.status().taken == 1
    # The counts stay until the next enable.
    assert entry().taken == 1 and entry().reason == "disabled"
    with lt.enabled():
        assert entry().taken == 0
    with pytest.raises(KeyError, match="model: expected one of .*qwen3_5.*, but got 'llama'"):
        lt.status()["llama"]


def test_gradients_are_recorded():
    args, options = operands()
    args[0].requires_grad_()
    expected = getattr(modeling, NAME)(*args, **options)[0]
    (gradient,) = torch.autograd.grad(expected.sum(), [args[0]])
    with lt.enabled():
        found = getattr(modeling, NAME)(*args, **options)[0]
        with torch.no_grad():
            quiet = getattr(modeling, NAME)(*args, **options)[0]
        with torch.inference_mode():
            getattr(modeling, NAME)(*args, **options)
        assert entry().taken == 3 and not entry().passed
    assert torch.equal(found, quiet) and found.requires_grad and not quiet.requires_grad
    torch.testing.assert_close(torch.autograd.grad(found.sum(), [args[0]])[0], gradient)


def test_calls_without_a_gradient_go_on(monkeypatch):
    from linattn._torch import _gradient

    def refuse(*arguments):
        raise UnsupportedError("none of this")

    monkeypatch.setattr(_gradient, "compile", refuse)
    args, options = operands()
    args[0].requires_grad_()
    expected = getattr(modeling, NAME)(*args, **options)[0]
    with lt.enabled():
        assert torch.equal(getattr(modeling, NAME)(*args, **options)[0], expected)
        assert entry().passed == {"none of this": 1} and entry().taken == 0
        with torch.no_grad():
            getattr(modeling, NAME)(*args, **options)
        assert entry().taken == 1


def test_steps_go_on_where_gradients_are_recorded():
    """They write the state of a cache in place."""
    name = "mamba_selective_state_update"
    state, x, B = torch.zeros(1, 8, 4), torch.randn(1, 8), torch.randn(1, 4)
    arguments = (x.requires_grad_(), torch.ones(1, 8), -torch.ones(8, 4), B, B)
    with lt.enabled():
        if not hasattr(modeling_mamba, name):
            pytest.skip("another name")
        getattr(modeling_mamba, name)(state, *arguments)
        assert entry(name, "mamba").passed == {"gradients are recorded": 1}


def test_other_devices_and_kinds_of_tensors():
    args, options = operands()
    meta = tuple(x.to("meta") for x in args)

    class Mine(torch.Tensor):
        pass

    with torch.no_grad(), lt.enabled():
        function = getattr(modeling, NAME)
        assert function(*meta, **options)[0].device.type == "meta"
        assert entry().passed == {"tensors on meta": 1}
        function(args[0].as_subclass(Mine), *args[1:], **options)
        assert "a tensor is a Mine" in entry().passed
        norm = modeling.Qwen3_5RMSNormGated(16)
        torch.testing.assert_close(torch.vmap(norm)(args[0], args[1]), norm(args[0], args[1]))
        assert entry("Qwen3_5RMSNormGated.forward").passed == {"a transform of torch.func is active": 1}
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False):
            function(*args, **options)
        with torch.autograd.forward_ad.dual_level():
            function(*args, **options)
        assert "forward gradients are recorded" in entry().passed
        assert len(entry().passed) == 4 and entry().taken == 0


def test_tracing_sees_existing_operands():
    args, options = operands()

    def run(*args):
        return getattr(modeling, NAME)(*args, **options)[0]

    with torch.no_grad():
        expected = run(*args)
        with lt.enabled():
            compiled = torch.compile(run, backend="eager", fullgraph=True)
            assert torch.equal(compiled(*args), expected)
            torch.jit.trace(run, args, check_trace=False)
            assert entry().taken == 0

            class Module(torch.nn.Module):
                def forward(self, *args):
                    return run(*args)

            program = torch.export.export(Module(), args)
            torch.testing.assert_close(program.module()(*args), expected, rtol=1e-5, atol=1e-5)
        assert entry().taken == 0


def test_packed_sequences():
    args, options = operands()
    offsets = torch.tensor([0, 7, 8, 20])
    alone = [inspect.unwrap(getattr(modeling, NAME))(*(x[:, b:e] for x in args), **options)[0] for b, e in zip(offsets, offsets[1:])]
    with torch.no_grad():
        for packing in ({"cu_seqlens": offsets.int()}, {"seq_idx": torch.tensor([[0] * 7 + [1] + [2] * 12])}):
            with pytest.raises(ValueError, match="packed sequences"):
                getattr(modeling, NAME)(*args, **options, **packing)
            with lt.enabled():
                found, states = getattr(modeling, NAME)(*args, **options, **packing, output_final_state=True)
            torch.testing.assert_close(found, torch.cat(alone, 1), rtol=1e-5, atol=1e-5)
            assert states.shape[0] == 3


def test_the_initial_state_becomes_the_final_one():
    args, options = operands(output_final_state=True)
    state = torch.zeros(1, 2, 16, 16)
    with torch.no_grad(), lt.enabled():
        expected = getattr(modeling, NAME)(*args, **options)[1]
        found = getattr(modeling, NAME)(*args, **options, initial_state=state)[1]
        assert found is state and torch.equal(state, expected)
        # Not where it is not returned.
        getattr(modeling, NAME)(*args, initial_state=state)
        assert torch.equal(state, expected)
        half = state.to(torch.bfloat16)
        assert getattr(modeling, NAME)(*args, **options, initial_state=half)[1].dtype is torch.float32


@pytest.mark.parametrize(
    "change, message",
    [
        ({1: torch.zeros(1, 19, 2, 16)}, "k: expected the sequence length of q, 20, but got 19"),
        ({4: torch.zeros(1, 20, 3)}, "beta"),
        ({"initial_state": torch.zeros(2, 2, 16, 16)}, "initial_state|state|S"),
        ({"seq_idx": torch.zeros(1, 19, dtype=torch.int32)}, r"seq_idx: expected shape \(1, 20\), but got \(1, 19\)"),
        ({"seq_idx": torch.zeros(1, 20)}, "seq_idx: expected integers, but got torch.float32"),
        ({"seq_idx": [0]}, "seq_idx: expected a tensor or None, but got list"),
    ],
)
def test_bad_input_is_named(change, message):
    args, options = operands()
    args = tuple(change.get(i, x) for i, x in enumerate(args))
    options.update({key: value for key, value in change.items() if isinstance(key, str)})
    with torch.no_grad(), lt.enabled(), pytest.raises((ValueError, TypeError), match=message):
        getattr(modeling, NAME)(*args, **options)


def test_bad_input_of_a_step():
    function = modeling_mamba.mamba_selective_state_update
    state, x, dt, A, B = torch.zeros(1, 8, 4), torch.zeros(1, 8), torch.zeros(1, 8), -torch.ones(8, 4), torch.zeros(1, 4)
    with torch.no_grad(), lt.enabled():
        function = modeling_mamba.mamba_selective_state_update
        with pytest.raises(ValueError, match=r"hidden_states: expected shape \(B, D\) or \(B, H, P\), but got \(1, 8, 1, 1\)"):
            function(state, x[..., None, None], dt, A, B, B)
        with pytest.raises(TypeError, match="state: expected a tensor, but got NoneType"):
            function(None, x, dt, A, B, B)
        with pytest.raises(ValueError, match="A"):
            function(state, x, dt, -torch.ones(7, 4), B, B)


def test_numbers_do_not_depend_on_threads():
    args, options = operands()
    with torch.no_grad(), lt.enabled():
        one = getattr(modeling, NAME)(*args, **options)[0]
        torch.set_num_threads(2)
        np.testing.assert_array_equal(getattr(modeling, NAME)(*args, **options)[0].numpy(), one.numpy())


def test_memory_of_a_call():
    """Beside inputs, outputs and states a call needs little; what it replaces keeps a
    decay for every pair of tokens of a chunk and every channel, 134 MB here."""
    code = """
        import re, torch
        import linattn.transformers as lt
        from transformers.models.kimi_linear import modeling_kimi_linear as modeling
        torch.set_num_threads(1)

        def peak():
            return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

        q, k, v, g = (torch.rand(1, 2048, 4, 64) for _ in range(4))
        beta = torch.rand(1, 2048, 4)
        with torch.no_grad(), lt.enabled():
            def run():
                return modeling.chunk_kimi_delta_attention(q, k, v, -g, beta, output_final_state=True, use_qk_l2norm_in_kernel=True)
            run()  # compiles
            open("/proc/self/clear_refs", "w").write("5")
            before = peak()
            o, state = run()
            grown = peak() - before
        results = o.nbytes + state.nbytes + g.nbytes  # and the negated gates
        assert grown <= results + (4 << 20), (grown, results)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.mark.parametrize("name", ["mamba", "mamba2", "nemotron_h", "zamba2"])
def test_whole_mixers_in_training(recwarn, name):
    """Layers in training mode ask for their whole mixer; without gradients it is linattn's."""
    with torch.no_grad():
        tokens, _ = make_tokens()
        expected = make_model(name).train()
        expected = expected(tokens, use_cache=False).logits
        with lt.enabled():
            model = make_model(name).train()
            found = model(tokens, use_cache=False).logits
            assert [e for e in lt.status() if e.taken and ("inner_fn" in str(e) or "split_conv1d" in str(e))]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert not [x for x in recwarn if "linattn" in str(x.message)]


def test_a_whole_mixer_that_is_refused():
    """Falcon-Mamba's norms have no weights, and those that it passes on do not fit."""
    with torch.no_grad():
        tokens, _ = make_tokens()
        expected = make_model("falcon_mamba").train()(tokens, use_cache=False).logits
        with lt.enabled():
            found = make_model("falcon_mamba").train()(tokens, use_cache=False).logits
            refused = entry("mamba_inner_fn", "falcon_mamba")
            assert not refused.taken and "a norm of" in str(refused.passed)
            assert entry("mamba_selective_scan", "falcon_mamba").taken
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_whole_mixers_that_record_gradients():
    """They go to PyTorch's, which return None, and the layer goes on with its parts."""
    from transformers.models.mamba2 import modeling_mamba2

    with lt.enabled():
        model = make_model("mamba2").train()
        tokens, _ = make_tokens()
        model(tokens, use_cache=False).logits.sum().backward()
        found = entry("mamba2_split_conv1d_scan_combined", "mamba2")
        assert found.replaced and not found.taken and found.passed
        assert modeling_mamba2.mamba2_split_conv1d_scan_combined(*[None] * 7, unknown=1) is None
