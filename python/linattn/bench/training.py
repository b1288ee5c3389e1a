"""Forward and backward pass together: all gradients of a recurrence, by PyTorch's autograd.

Ours and the peers' take the gradients of the tokens and of every gate from one cotangent
of the output, and return that of q, ``[B, T, H, D]``, of x in Mamba-2 and of u,
``[B, C, T]``, in Mamba-1 (peers: dimensions 1 and 2 exchanged), for the comparison. The
forward pass alone takes turns beside them.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np

from .work import DTYPES, Work

__all__ = ["CASES", "FORWARD", "case"]

# The cases whose gradients are measured, "train-" before their names.
FORWARD = ("linear", "scalar-decay", "gate", "gated-delta", "kda")

# The oracle keeps the states of so many tokens at once.
_KEPT = 64
# States of a channel of Mamba-1.
_STATES = 16


def case(name, build_forward):
    """The case `name` of the gradients of what `build_forward` builds."""

    def build(sizes):
        torch = _torch()
        import linattn

        forward = build_forward(sizes)
        rng = np.random.default_rng(sizes.seed + 1)
        arrays = {**forward.arrays, "do": rng.standard_normal(forward.arrays["v"].shape).astype(forward.arrays["v"].dtype)}
        tensors = {key: _tensor(torch, array) for key, array in arrays.items()}
        do = tensors.pop("do")
        for tensor in tensors.values():
            tensor.requires_grad_()
        q, k, v, *_ = tensors.values()
        options = {key: tensors[key] for key in ("decay", "beta") if key in tensors}
        if "beta" in options:
            options["update"] = "delta"

        def call(threads, form):
            return linattn.scan(q, k, v, form=form, **options)

        # Backward is counted as twice the forward pass, as the field does.
        return replace(
            forward, case=name, run=_gradient(torch, call, list(tensors.values()), do),
            reference=lambda: _oracle(torch, arrays), arrays=arrays, flops=3 * forward.flops, bytes=3 * forward.bytes,
            beside={"forward alone": lambda threads: forward.run(threads, "auto")}, portion={"forward alone": 1 / 3},
        )  # fmt: skip

    return build


def _gradient(torch, call, tensors, do):
    """The function `Work.run`: the gradient of the first tensor, all others computed with it."""

    def run(threads, form):
        import linattn

        before = linattn.get_num_threads()
        linattn.set_num_threads(threads)  # of the backward pass, too
        try:
            return torch.autograd.grad(call(threads, form), tensors, do)[0].float().numpy()
        finally:
            linattn.set_num_threads(before)

    return run


def _state_space(name, make_arrays, function, oracle, flops):
    """The case `name` of a state space model, `function` of the arrays but the last one."""

    def build(sizes):
        torch = _torch()
        import linattn

        rng = np.random.default_rng(sizes.seed)
        arrays = {key: x.astype(DTYPES[sizes.dtype]) for key, x in make_arrays(sizes, rng).items()}
        tensors = {key: _tensor(torch, array) for key, array in arrays.items()}
        do = tensors.pop("do")

        def call(threads, form):
            return getattr(linattn, function)(*tensors.values(), num_threads=threads)

        def forward(threads):
            with torch.no_grad():
                call(threads, "auto")

        for tensor in tensors.values():
            tensor.requires_grad_()
        return Work(
            name, sizes, _gradient(torch, call, list(tensors.values()), do), lambda: oracle(torch, arrays), arrays,
            3 * flops(sizes), 3.0 * sum(array.nbytes for array in arrays.values()),
            beside={"forward alone": forward}, portion={"forward alone": 1 / 3},
        )  # fmt: skip

    return build


def _steps(rng, *shape):
    """Δ, small and positive."""
    return 0.1 * rng.random(shape)


def _mamba1_arrays(sizes, rng):
    B, T, C = sizes.batch, sizes.t, sizes.heads * sizes.d
    tokens = {"u": rng.standard_normal((B, C, T)), "delta": _steps(rng, B, C, T), "A": -0.5 - rng.random((C, _STATES))}
    projections = {key: rng.standard_normal((B, _STATES, T)) for key in "BC"}
    return {**tokens, **projections, "do": rng.standard_normal((B, C, T))}


def _mamba2_arrays(sizes, rng):
    B, T, H, D = sizes.batch, sizes.t, sizes.heads, sizes.d
    tokens = {"x": rng.standard_normal((B, T, H, D)), "dt": _steps(rng, B, T, H), "A": -0.5 - rng.random(H)}
    projections = {key: rng.standard_normal((B, T, 1, D)) for key in "BC"}
    return {**tokens, **projections, "do": rng.standard_normal((B, T, H, D))}


def _torch():
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ModuleNotFoundError(f"training: expected PyTorch to be installed, but got: {error}") from error


def _tensor(torch, array):
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _doubles(torch, arrays):
    x = {name: torch.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    return x, x.pop("do")


def _walk(torch, tokens, state, columns):
    """The outputs of `tokens(state, *columns)`, `[B, T, …]`, some tokens after the others."""
    outs = []
    for begin in range(0, columns[0].shape[1], _KEPT):
        some = [column[:, begin : begin + _KEPT] for column in columns]
        out, state = torch.utils.checkpoint.checkpoint(tokens, state, *some, use_reentrant=False)
        outs.append(out)
    return torch.cat(outs, 1)


def _oracle_mamba1(torch, arrays):
    """The gradient of u in float64, token by token."""
    x, do = _doubles(torch, arrays)
    u = x["u"].requires_grad_()

    def tokens(state, *columns):
        out = []
        for u, delta, b, c in zip(*(column.unbind(1) for column in columns)):
            decay = (delta[..., None] * x["A"]).exp()
            state = decay * state + (delta * u)[..., None] * b[:, None]
            out.append((state * c[:, None]).sum(-1))
        return torch.stack(out, 1), state

    columns = [tensor.transpose(1, 2) for tensor in (u, x["delta"], x["B"], x["C"])]
    out = _walk(torch, tokens, u.new_zeros(*u.shape[:2], _STATES), columns)
    return torch.autograd.grad(out.transpose(1, 2), u, do)[0].numpy()


def _oracle_mamba2(torch, arrays):
    """The gradient of x in float64, by the scan that Mamba-2 is."""
    x, do = _doubles(torch, arrays)
    tokens = x["x"].requires_grad_()
    heads = tokens.shape[2]
    scan = {"v": tokens * x["dt"][..., None], "decay": x["dt"] * x["A"],
            "q": x["C"].expand(-1, -1, heads, -1), "k": x["B"].expand(-1, -1, heads, -1)}  # fmt: skip
    return torch.autograd.grad(_scan_outputs(torch, scan, 1.0), tokens, do)[0].numpy()


def _oracle(torch, arrays):
    """The gradient of q in float64, token by token."""
    x, do = _doubles(torch, arrays)
    q = x["q"].requires_grad_()
    return torch.autograd.grad(_scan_outputs(torch, x, q.shape[-1] ** -0.5), q, do)[0].numpy()


def _scan_outputs(torch, x, scale):
    q = x["q"]
    B, T, H, D = q.shape

    def tokens(state, *columns):
        out = []
        for token in zip(*(column.unbind(1) for column in columns)):
            t = dict(zip(x, token))
            if "decay" in t:
                gate = t["decay"].exp()
                state = state * (gate[..., None] if gate.dim() == 3 else gate[..., None, None])
            v = t["v"]
            if "beta" in t:
                v = t["beta"][..., None] * (v - torch.einsum("bhkv,bhk->bhv", state, t["k"]))
            state = state + t["k"][..., None] * v[..., None, :]
            out.append(torch.einsum("bhkv,bhk->bhv", state, t["q"]))
        return torch.stack(out, 1) * scale, state

    return _walk(torch, tokens, q.new_zeros(B, H, D, x["v"].shape[-1]), list(x.values()))


CASES = {
    "train-mamba1": _state_space(
        "train-mamba1", _mamba1_arrays, "selective_scan", _oracle_mamba1,
        lambda sizes: 6.0 * sizes.batch * sizes.t * sizes.heads * sizes.d * _STATES,
    ),
    "train-mamba2": _state_space(
        "train-mamba2", _mamba2_arrays, "mamba2", _oracle_mamba2,
        lambda sizes: 4.0 * sizes.batch * sizes.t * sizes.heads * sizes.d * sizes.d,
    ),
}  # fmt: skip
