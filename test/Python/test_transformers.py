"""Models of transformers with linattn's functions in the place of their own.

A few models run every check by default, all of them with LINATTN_MATRIX=all.
"""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import linattn  # noqa: E402
import linattn.transformers as lt  # noqa: E402
from transformers_models import MODELS, make_model, make_tokens  # noqa: E402

ALL = os.environ.get("LINATTN_MATRIX") == "all"
# One for each recurrence, with all checks.
SOME = ("qwen3_5", "kimi_linear", "mamba2", "mamba", "minimax", "rwkv", "xlstm", "recurrent_gemma")
# Models whose functions drop the state where several tokens follow a prompt, or that keep it
# in their layers.
CONTINUED = ("qwen3_next", "qwen3_5", "olmo_hybrid", "kimi_linear", "glm5_next", "mamba2", "falcon_h1", "zamba2")


def some(*names):
    return [*MODELS] if ALL else list(names)


@pytest.fixture(autouse=True, scope="module")
def quiet():
    """One thread for each process that tests, and no advice to install other libraries."""
    threads, own = torch.get_num_threads(), linattn.get_num_threads()
    torch.set_num_threads(1)
    linattn.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    yield
    torch.set_num_threads(threads)
    linattn.set_num_threads(own)


@pytest.fixture(autouse=True)
def switched_off():
    yield
    lt.disable()


def taken(name):
    return {entry.kernel: entry.taken for entry in lt.status()[name] if entry.taken}


def generate(model, tokens, mask, count, **options):
    return model.generate(
        tokens, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False, **options
    )


# ----------------------------------------------------------------------------
# Models
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_logits_and_greedy_tokens(name):
    model = make_model(name)
    tokens, mask = make_tokens()
    count = 64 if ALL or name in SOME else 8
    expected = model(tokens, attention_mask=mask).logits
    expected_tokens = generate(model, tokens, mask, count)
    with lt.enabled():
        found = model(tokens, attention_mask=mask).logits
        assert taken(name), "nothing ran in linattn"
        found_tokens = generate(model, tokens, mask, count)
        passed = [entry for entry in lt.status()[name] if entry.passed]
    assert not passed
    assert (found - expected).abs().max() <= 1e-4
    assert torch.equal(found_tokens, expected_tokens)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_logits_depend_on_every_function(name, monkeypatch):
    """Otherwise the comparison above could miss an error."""
    model = make_model(name)
    tokens, _ = make_tokens()
    with lt.enabled():
        expected = model(tokens).logits
        from linattn.transformers._patch import patches

        for kernel in taken(name):
            hooks = [hook for hook in patches.hooks.values() if hook.name == kernel]
            for hook in hooks:
                monkeypatch.setattr(hook, "adapter", _wrong(hook.adapter))
            assert (model(tokens).logits - expected).abs().max() > 1e-3, kernel
            monkeypatch.undo()


RECURRENCES = {"chunk_gated_delta_rule", "chunk_kda", "mamba_chunk_scan_combined", "rwkv_linear_attention", "rg_lru"}


@pytest.mark.parametrize("name", some("qwen3_5", "mamba2", "rwkv", "recurrent_gemma"))
def test_parameters_have_the_same_gradients(name):
    model = make_model(name).train()
    tokens, _ = make_tokens()

    def gradients():
        model.zero_grad()
        model(tokens, labels=tokens).loss.backward()
        return {key: x.grad for key, x in model.named_parameters() if x.grad is not None}

    expected = gradients()
    with lt.enabled():
        found = gradients()
        recurrence = [x for x in lt.status()[name] if x.kernel in RECURRENCES]
        assert not any(entry.passed for entry in recurrence) and (not recurrence or any(x.taken for x in recurrence))
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        assert (found[key] - gradient).norm() <= 1e-4 * gradient.norm(), key


def _wrong(adapter):
    def wrong(*args, **kwargs):
        result = adapter(*args, **kwargs)
        o, rest = (result[0], result[1:]) if isinstance(result, tuple) else (result, None)
        o = o + 0.25 * o.roll(1, -1)
        return o if rest is None else (o, *rest)

    return wrong


@pytest.mark.parametrize("name", [name for name in CONTINUED if ALL or name in SOME])
@torch.no_grad()
def test_several_tokens_continue_a_cache(name):
    model = make_model(name)
    tokens, _ = make_tokens(length=41)

    def run():
        cache, logits = None, []
        for begin, end in ((0, 23), (23, 24), (24, 33), (33, 41)):
            out = model(tokens[:, begin:end], use_cache=True, **_cache_argument(name, cache))
            cache = out.cache_params if name == "mamba2" else out.past_key_values
            logits.append(out.logits)
        return torch.cat(logits, 1)

    expected = run()
    with lt.enabled():
        found = run()
        assert not [entry for entry in lt.status()[name] if entry.passed]
    assert (found - expected).abs().max() <= 1e-4


def _cache_argument(name, cache):
    return {} if cache is None else {"cache_params" if name == "mamba2" else "past_key_values": cache}


@pytest.mark.parametrize("name", [name for name in some("qwen3_5", "mamba2") if name not in ("rwkv", "xlstm", "recurrent_gemma")])
@torch.no_grad()
def test_beams(name):
    model = make_model(name)
    tokens, mask = make_tokens(length=13)
    expected = generate(model, tokens, mask, 8, num_beams=3)
    with lt.enabled():
        assert torch.equal(generate(model, tokens, mask, 8, num_beams=3), expected)


@pytest.mark.parametrize("name", ["qwen3_5", *(["qwen3_next", "mamba2", "jamba"] if ALL else [])])
@torch.no_grad()
def test_static_caches(name):
    model = make_model(name)
    tokens, mask = make_tokens(length=13)
    # Compiling the step is transformers' own choice for such a cache.
    options = {"cache_implementation": "static", "disable_compile": True}
    expected = generate(model, tokens, mask, 8, **options)
    with lt.enabled():
        assert torch.equal(generate(model, tokens, mask, 8, **options), expected)
        assert any("fused_recurrent" in kernel or "update" in kernel for kernel in taken(name))


# Inkling 2 itself mixes dtypes, which PyTorch's products refuse.
@pytest.mark.parametrize("name", [name for name in some(*SOME[:4]) if name != "inkling2"])
@torch.no_grad()
def test_bfloat16(name):
    """As far from the model in float32 as the untouched model is."""
    model = make_model(name)
    tokens, mask = make_tokens()
    exact = model(tokens, attention_mask=mask).logits
    model.to(torch.bfloat16)
    untouched = model(tokens, attention_mask=mask).logits.float()
    with lt.enabled():
        found = model(tokens, attention_mask=mask).logits.float()
        assert taken(name)

    def error(logits):
        return (logits - exact).square().mean().sqrt()

    assert error(found) <= 1.25 * error(untouched) + 1e-3


@torch.no_grad()
def test_packed_sequences_are_kept_apart():
    model = make_model("qwen3_5")
    tokens, _ = make_tokens(rows=1, length=40)
    bounds = [0, 13, 14, 40]
    alone = [model(tokens[:, begin:end]).logits for begin, end in zip(bounds, bounds[1:])]
    positions = torch.cat([torch.arange(end - begin) for begin, end in zip(bounds, bounds[1:])])[None]
    packed = {
        "position_ids": positions, "cu_seq_lens_q": torch.tensor(bounds, dtype=torch.int32),
        "seq_idx": torch.bucketize(torch.arange(40), torch.tensor(bounds[1:]), right=True)[None].int(), "use_cache": False,
    }  # fmt: skip
    with pytest.raises(ValueError, match="packed sequences"):
        model(tokens, **packed)
    with lt.enabled():
        found = model(tokens, **packed).logits
    # The attention layers are not packed without their own library; they leave the first
    # sequence alone.
    assert (found[:, :13] - alone[0]).abs().max() <= 1e-4


@torch.no_grad()
def test_a_step_writes_into_the_cache():
    model = make_model("qwen3_5")
    tokens, _ = make_tokens()
    with lt.enabled():
        cache = model(tokens, use_cache=True).past_key_values
        state = cache.layers[0].recurrent_states[0]
        before, address = state.clone(), state.data_ptr()
        model(tokens[:, :1], past_key_values=cache)
        after = cache.layers[0].recurrent_states[0]
    assert after is state and after.data_ptr() == address and not torch.equal(before, after)
