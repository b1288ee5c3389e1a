"""Kernels against float64."""

from . import reference, runner
from .cases import EPS, RULES

__all__ = ["TOLERANCES", "check", "make_arrays"]

# Of max|out − reference| / max|reference|: tokens' rounding, and for gates what the
# approximate exponential of the device is worth.
TOLERANCES = {"bf16": 4e-3, "f16": 1e-3, "f32": 5e-6, "state": 5e-6}
_AXES = {"B": 0, "T": 1, "H": 2, "D": 3}


def make_arrays(device, rule, dtype, batch, tokens, heads, size):
    """q, k, v in [B, T, H, D] and the gates in the order of the function, [B, T, H, …]."""
    shape = (batch, tokens, heads, size)
    arrays = {name: device.normal(shape) for name in "qkv"}
    unit = device.unit
    if rule.is_delta or rule.name == "rwkv7":
        arrays["k"] = unit(arrays["k"])
    extents = dict(zip("BTHD", shape))
    for name, layout in rule.gates:
        dims = tuple(extents[dim] for dim in sorted(layout.split(), key=_AXES.get))
        arrays[name] = device.uniform(dims)
        if name in ("g", "gv"):
            arrays[name] = -0.2 * arrays[name]
        if name == "bonus":
            arrays[name] = arrays[name] - 0.5
        # RWKV-7: what is removed is what the key had.
        if name == "a":
            arrays[name] = -unit(device.normal(shape))
        if name == "b":
            arrays[name] = -0.5 * arrays["a"]
    return {name: device.cast(array, dtype if name in "qkv" else "f32") for name, array in arrays.items()}


def logical(array):
    """[B, T, H, …] as functions take it, [B, H, T, …]; without a copy."""
    return array.swapaxes(1, 2) if array.ndim > 2 else array


def make_views(device, rule, dtype, arrays):
    views = [device.view(logical(arrays[name]), dtype) for name in "qkv"]
    return views + [device.view(logical(arrays[name]), "f32") for name, _ in rule.gates]


def make_state(device, rule, batch, heads, size):
    state = [device.normal((batch, heads, size, size))]
    if rule.normalize:  # a sum of positive features
        state.append(device.uniform((batch, heads, size)) * 10 + 1)
        state[-1] = device.cast(state[-1], "f32")
    return state


def _error(device, got, expected):
    difference = device.maximum(device.cast(got, "f64") - expected) / max(device.maximum(expected), 1e-30)
    # A NaN compares false with everything.
    return difference if difference == difference else float("inf")


def _expect(device, rule, kernel, arrays, state):
    wide = {name: device.cast(array, "f64") for name, array in arrays.items()}
    S, *z = (device.cast(part, "f64") for part in state)
    scale = 1.0 if kernel.rule == "rwkv7" else kernel.size**-0.5
    if rule.attention:
        return [reference.attention(device.xp, rule, wide, scale, EPS)]
    out, S, z = reference.scan(device.xp, rule, wide, (S, z[0] if z else None), scale, EPS)
    return [out, S] + ([z] if rule.normalize else [])


def check(device, kernel, loaded, batch=2, tokens=203):
    """A record of how far the kernel's results are from float64, and whether a second
    launch gives the same bits. A step updates its state in place; a prefill starts from
    zeros and returns no state."""
    rule, in_place, carries = RULES[kernel.rule], kernel.form == "step", kernel.form != "prefill"
    tokens = 1 if in_place else tokens
    arrays = make_arrays(device, rule, kernel.dtype, batch, tokens, kernel.heads, kernel.size)
    initial = make_state(device, rule, batch, kernel.heads, kernel.size)
    if not carries:
        initial = [device.full(tuple(part.shape), 0.0, "f32") for part in initial]
    expected = _expect(device, rule, kernel, arrays, initial)
    initial = initial if carries else []
    runs = []
    for _ in range(2):
        state = [device.copy(part) for part in initial]
        nan = float("nan")  # what is not written shows
        out = device.full((batch, tokens, kernel.heads, kernel.size), nan, kernel.dtype)
        final = state if in_place else [device.full(tuple(part.shape), nan, "f32") for part in state]
        views = make_views(device, rule, kernel.dtype, arrays) + [device.view(part, "f32") for part in state]
        views += [device.view(logical(out), kernel.dtype)] + [device.view(part, "f32") for part in final]
        keep = []
        runner.bind(loaded, views, lambda size: device.allocate(size, keep))(device.stream())
        device.synchronize()
        device.fill([out, *final], expected)
        runs.append([out, *final])
    errors = [_error(device, got, exact) for got, exact in zip(runs[0], expected)]
    same = all(device.equal(a, b) for a, b in zip(*runs))
    limits = [TOLERANCES[kernel.dtype]] + [TOLERANCES["state"]] * len(initial)
    return {
        "batch": batch, "tokens": tokens, "output_error": errors[0], "state_error": max(errors[1:], default=None),
        "same_bits": same, "ok": same and all(error <= limit for error, limit in zip(errors, limits)),
    }  # fmt: skip
