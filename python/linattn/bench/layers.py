"""Layers of real models, as transformers runs them and with linattn in their place.

Both take turns on the same input, in one process. A layer has random weights, the
sizes of a released model and no cache; the decoding model four layers and caches of
its own for each side.
"""

from __future__ import annotations

import collections
import contextlib
import statistics
import time
from dataclasses import dataclass
from typing import Callable
from unittest import mock

__all__ = ["LAYERS", "missing", "run", "table"]


@dataclass(frozen=True)
class Layer:
    """A case.

    Attributes:
      build: () -> module; called with a seed set.
      width, tokens: the extents of its input.
      what: for people.
      decodes: whether calls are single tokens of a model with a cache.
    """

    build: Callable
    width: int
    tokens: int
    what: str
    decodes: bool = False


def _qwen3_next(**small):
    from transformers import Qwen3NextConfig
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

    return Qwen3NextGatedDeltaNet(Qwen3NextConfig(**small), 0)


def _mamba2():
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    return Mamba2Mixer(
        Mamba2Config(hidden_size=2560, num_heads=80, head_dim=64, state_size=128, n_groups=1, num_hidden_layers=1), 0
    )


def _mamba():
    from transformers import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer

    return MambaMixer(
        MambaConfig(hidden_size=2560, intermediate_size=5120, state_size=16, time_step_rank=160, num_hidden_layers=1), 0
    )


def _kimi_linear():
    import torch
    from transformers import KimiLinearConfig
    from transformers.models.kimi_linear.modeling_kimi_linear import KimiLinearDeltaAttention

    layer = KimiLinearDeltaAttention(KimiLinearConfig(), 0)
    # The layer leaves both to the model's initialization.
    torch.nn.init.uniform_(layer.forget_gate.A_log, 0.0, 2.77)
    torch.nn.init.uniform_(layer.forget_gate.dt_bias, -6.0, -2.0)
    return layer


def _qwen3_5(**options):
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    sizes = dict(
        vocab_size=1024, hidden_size=1024, intermediate_size=3584, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=2, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=16,
        linear_key_head_dim=128, linear_value_head_dim=128, eos_token_id=None,
    )  # fmt: skip
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**{**sizes, **options}))


LAYERS = {
    "layer-qwen3-next": Layer(_qwen3_next, 2048, 1024, "Qwen3-Next gated delta net, 16/32 heads × 128"),
    "layer-mamba2": Layer(_mamba2, 2560, 1024, "Mamba-2 2.7B mixer, 80 heads × 64, state 128"),
    "layer-mamba": Layer(_mamba, 2560, 512, "Mamba-1 2.8B mixer, 5120 channels × 16"),
    "layer-kimi-linear": Layer(_kimi_linear, 2304, 512, "Kimi-Linear KDA layer, 32 heads × 128"),
    "layer-decode": Layer(_qwen3_5, 1024, 16, "4 layers of a Qwen3.5 of width 1024, one token each", True),
}


def missing():
    """Why layers cannot be measured here; None if they can."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        return f"expected PyTorch and transformers to be installed for layers, but got: {error}"
    return None


def run(name, dtype="bf16", threads=1, repetitions=15, batch=1, clock=time.perf_counter):
    """The records of one case, untouched first.

    Beside the times a record of linattn has ``ratio``, the quotient of the medians, and
    ``parts``: milliseconds in the recurrence, the convolution, the norm, the linear layers
    and all else, from calls of their own that are timed inside. With `time.thread_time` for
    a clock, the time that a busy machine gives to others is not counted; one thread only.
    """
    import torch
    import transformers

    from .. import set_num_threads
    from .. import transformers as hooks

    case = LAYERS[name]
    transformers.logging.set_verbosity_error()
    own = torch.get_num_threads()
    torch.set_num_threads(threads)
    set_num_threads(threads)
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            module = case.build().eval().to({"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}[dtype])
            make = _make_steps if case.decodes else _make_calls
            untouched, enabled, error = make(case, module, batch)
            seconds = {"transformers": [], "linattn": []}
            for turn in range(repetitions + 1):
                for side, call in (("transformers", untouched), ("linattn", enabled)):
                    with hooks.enabled() if side == "linattn" else contextlib.nullcontext():
                        start = clock()
                        call()
                        if turn:  # the first one compiles, and allocates
                            seconds[side].append(clock() - start)
            with hooks.enabled():
                parts = _parts(enabled, clock)
    finally:
        torch.set_num_threads(own)
        set_num_threads(None)
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    common = {"case": name, "t": 1 if case.decodes else case.tokens, "batch": batch, "threads": threads, "dtype": dtype}
    return [
        {
            **common, "implementation": side, "ms": 1e3 * medians[side], "ms_min": 1e3 * min(values),
            "ms_max": 1e3 * max(values), "ratio": medians["transformers"] / medians[side],
            "max_rel_error": error if side == "linattn" else None, "parts": parts if side == "linattn" else None,
        }
        for side, values in seconds.items()
    ]  # fmt: skip


def _relative(found, expected):
    return float((found.float() - expected.float()).abs().max() / expected.float().abs().max())


def _make_calls(case, layer, batch):
    """Two calls that do the same, and how much their results differ."""
    import torch

    from .. import transformers as hooks

    x = torch.randn(batch, case.tokens, case.width).to(next(layer.parameters()).dtype)
    expected = layer(x)
    with hooks.enabled():
        error = _relative(layer(x), expected)
    return lambda: layer(x), lambda: layer(x), error


def _make_steps(case, model, batch):
    """Steps of one token; each side goes on with its own cache."""
    import torch

    from .. import transformers as hooks

    tokens = torch.randint(0, model.config.vocab_size, (batch, case.tokens + 1))
    # The same on both sides: the most likely token may depend on rounding.
    tokens, token = tokens[:, :-1], tokens[:, -1:]

    def make():
        out = model(tokens, use_cache=True)
        first = model(token, past_key_values=out.past_key_values).logits
        return lambda: model(token, past_key_values=out.past_key_values), first

    untouched, expected = make()
    with hooks.enabled():
        enabled, found = make()
    return untouched, enabled, _relative(found, expected)


_PARTS = {
    "RMSNormGated": "norm", "causal_conv1d_fn": "convolution", "causal_conv1d_update": "convolution",
}  # fmt: skip


def _parts(call, clock, repetitions=5):
    """Milliseconds by what a call spends them on, medians."""
    import torch

    from ..transformers._patch import patches

    spent = collections.defaultdict(float)

    def timed(part, function):
        def run(*args, **kwargs):
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += clock() - start

        return run

    turns = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.nn.Linear, "forward", timed("linear", torch.nn.Linear.forward)))
        for hook in patches.hooks.values():
            if hook.name == "Linear":
                continue  # inside of what is timed above
            stack.callback(setattr, hook, "adapter", hook.adapter)
            hook.adapter = timed(_PARTS.get(hook.name, "recurrence"), hook.adapter)
        for _ in range(repetitions):
            spent.clear()
            start = clock()
            call()
            total = clock() - start
            turns.append({**spent, "other": total - sum(spent.values())})
    names = ("recurrence", "convolution", "norm", "linear", "other")
    return {name: 1e3 * statistics.median(turn.get(name, 0.0) for turn in turns) for name in names}


def table(records):
    """The records of linattn as lines of Markdown."""
    untouched = {(r["case"], r["dtype"], r["threads"], r["batch"]): r for r in records if r["implementation"] == "transformers"}
    names = ("recurrence", "convolution", "norm", "linear", "other")
    rows = [["case", "t", "batch", "threads", "dtype", "untouched ms", "linattn ms", "ratio", *(f"{name} ms" for name in names), "max_rel_error"]]
    for r in records:
        if r["implementation"] != "linattn":
            continue
        before = untouched[r["case"], r["dtype"], r["threads"], r["batch"]]
        rows.append([
            r["case"], str(r["t"]), str(r["batch"]), str(r["threads"]), r["dtype"], f"{before['ms']:.3g}", f"{r['ms']:.3g}",
            f"{r['ratio']:.2f}x", *(f"{r['parts'][name]:.3g}" for name in names), f"{r['max_rel_error']:.1e}",
        ])  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])
