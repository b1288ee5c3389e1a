"""Times: ours and the peers', on the same shapes, each call on buffers that the caches
no longer hold."""

import math

from . import checks, peers, runner
from .cases import RULES, timed

__all__ = ["ceilings", "launch_cost", "time_ours", "time_peer"]

MAX_SETS = 64
# No more of the free memory than this.
SHARE = 0.4


def ceilings(device):
    """This device's rates of copies and products, measured in this run."""
    if device.is_dry:
        return {"copy_gbytes_per_s": None, "gemm_tflops": None}
    torch = device.torch
    count = min(1 << 30, int(device.free_bytes() * SHARE / 4))
    source = torch.randint(0, 255, (count,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    seconds, *_ = device.measure([lambda: target.copy_(source)], 0.3)
    del source, target
    size = 8192
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    product, *_ = device.measure([lambda: torch.matmul(a, b, out=c)], 0.5)
    return {"copy_gbytes_per_s": 2e-9 * count / seconds, "gemm_tflops": 2e-12 * size**3 / product}


def _work(rule, shape):
    """Bytes that have to be moved, and products that the recurrence or the weights stand for. Gates are
    float32, tokens bf16; a step reads and writes its state."""
    tokens = shape.batch * shape.tokens * shape.heads
    gates = sum(shape.size if "D" in layout else 1 for _, layout in rule.gates)
    moved = tokens * (4 * shape.size * 2 + gates * 4)
    if shape.tokens == 1:
        moved += 2 * 4 * shape.states * shape.size**2
    products = 4 * tokens * shape.size**2
    if "softmax" in rule.attention:
        products = 4 * tokens * shape.tokens * shape.size // (2 if "causal" in rule.attention else 1)
    return moved, products


def _make_sets(device, rule, shape):
    moved, _ = _work(rule, shape)
    fit = max(1, int(device.free_bytes() * SHARE / max(moved, 1)))
    if device.is_dry:
        fit = 1
    count = min(MAX_SETS, fit, max(2, math.ceil(4 * device.l2_bytes / moved)))
    step = shape.tokens == 1
    sets = []
    for _ in range(count):
        arrays = checks.make_arrays(device, rule, "bf16", shape.batch, shape.tokens, shape.heads, shape.size)
        state = checks.make_state(device, rule, shape.batch, shape.heads, shape.size)[0] if step else None
        sets.append((arrays, state))
    return sets


def _bind(device, rule, loaded, arrays, state, keep):
    views = checks.make_views(device, rule, "bf16", arrays)
    out = device.full(tuple(arrays["v"].shape), 0.0, "bf16")
    keep.append(out)
    views += [device.view(state, "f32")] if state is not None else []
    views.append(device.view(checks.logical(out), "bf16"))
    views += [device.view(state, "f32")] if state is not None else []
    launch = runner.bind(loaded, views, lambda size: device.allocate(size, keep))
    return lambda: launch(device.stream())


def _record(shape, rule, name, times, moved, products, limits):
    seconds, least, most, captured = times
    record = {
        "rule": rule.name, "implementation": name, "batch": shape.batch, "tokens": shape.tokens,
        "heads": shape.heads, "size": shape.size, "ms": None, "ms_min": None, "ms_max": None, "captured": captured,
        "gbytes_per_s": None, "share_of_copy": None, "tflops": None, "share_of_gemm": None,
    }  # fmt: skip
    if seconds:
        record |= {
            "ms": 1e3 * seconds, "ms_min": 1e3 * least, "ms_max": 1e3 * most,
            "gbytes_per_s": 1e-9 * moved / seconds, "tflops": 1e-12 * products / seconds,
        }  # fmt: skip
        if limits:  # what was measured before
            record["share_of_copy"] = record["gbytes_per_s"] / limits["copy_gbytes_per_s"]
            record["share_of_gemm"] = record["tflops"] / limits["gemm_tflops"]
    return record


def time_ours(device, load, rule_name, shape, limits):
    """The record of our kernel on one shape."""
    rule = RULES[rule_name]
    loaded = load(timed(rule_name, shape))
    sets, keep = _make_sets(device, rule, shape), []
    calls = [_bind(device, rule, loaded, arrays, state, keep) for arrays, state in sets]
    return _record(shape, rule, "linattn", device.measure(calls), *_work(rule, shape), limits)


def time_peer(device, name, rule_name, shape, limits):
    """The record of a peer on one shape; raises where it has none."""
    rule = RULES[rule_name]
    make = peers.find(name, rule, decodes=shape.tokens == 1)
    calls = [make(arrays, state) for arrays, state in _make_sets(device, rule, shape)]
    # Another function: neither its bytes nor its products are those of the recurrence.
    work = (0, 0) if name.startswith("softmax") else _work(rule, shape)
    return _record(shape, rule, name, device.measure(calls), *work, limits)


def launch_cost(device, load, shape):
    """Host time of one launch from Python, by `linattn_runner.Kernel.launch`."""
    rule, keep = RULES["linear"], []
    arrays, state = _make_sets(device, rule, shape)[0]
    kernel = load(timed("linear", shape))
    if device.is_dry:
        call = _bind(device, rule, kernel, arrays, state, keep)
    else:
        tensors = [checks.logical(arrays[name]) for name in "qkv"] + [state]
        tensors += [checks.logical(arrays["v"].clone()), state]
        call = lambda: kernel.launch(*tensors)  # noqa: E731
    seconds = device.host_seconds(call)
    return None if seconds is None else 1e6 * seconds
