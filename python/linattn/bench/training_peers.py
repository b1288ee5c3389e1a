"""The peers of the cases of `training`: their forward passes under automatic differentiation."""

from __future__ import annotations

import importlib

import numpy as np

from . import peers

__all__ = ["PEERS"]


def _forward_of(case):
    return case.removeprefix("train-")


def _autograd(torch, call, tensors, do):
    def run():
        return torch.autograd.grad(call(), tensors, do)[0]

    return run


def _recorded(arrays, threads):
    """PyTorch, the arrays as [B, H, T, D] tensors that record gradients, and the cotangent."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    x = peers.head_major(arrays, torch.from_numpy)
    do = x.pop("do")
    for tensor in x.values():
        tensor.requires_grad_()
    return torch, x, do


def torch_eager(case, arrays, threads):
    """The chunks of `peers.torch_chunk` under autograd."""
    if "beta" in arrays or "q" not in arrays:
        return None
    torch, x, do = _recorded(arrays, threads)
    call = peers.torch_chunk(torch, _forward_of(case), x, peers.scale_of(arrays))
    return _autograd(torch, call, list(x.values()), do)


def _available_bytes():
    with open("/proc/meminfo") as file:
        fields = dict(line.split(":") for line in file)
    return 1024 * int(fields["MemAvailable"].split()[0])


def transformers(case, arrays, threads):
    """The functions of transformers' models without fast kernels, under autograd."""
    if case not in _TRANSFORMERS:
        return None
    torch = importlib.import_module("torch")
    place, function, call = _TRANSFORMERS[case]
    module = importlib.import_module(f"transformers.models.{place}")
    torch.set_num_threads(threads)
    x = {name: torch.from_numpy(array).requires_grad_(name != "do") for name, array in arrays.items()}
    do = x.pop("do")
    if case == "train-kda":
        # Its decays between the tokens of a chunk are one array with all features, of which autograd keeps several.
        B, T, H, D = do.shape
        needed = 8 * 4 * B * T * H * D * peers.CHUNK
        if needed > _available_bytes():
            raise MemoryError(f"about {needed >> 30} GiB are needed")
    function = getattr(module, function)
    run = _autograd(torch, lambda: call(function, x), list(x.values()), do)
    return lambda: run().transpose(1, 2)


def _call_delta(function, x):
    return function(x["q"], x["k"], x["v"], g=x["decay"], beta=x["beta"], chunk_size=peers.CHUNK)[0]


# case -> module, function, how it is called
_TRANSFORMERS = {
    "train-gated-delta": ("qwen3_next.modeling_qwen3_next", "torch_chunk_gated_delta_rule", _call_delta),
    "train-kda": ("kimi_linear.modeling_kimi_linear", "chunk_kimi_delta_attention", _call_delta),
    "train-mamba1": ("mamba.modeling_mamba", "mamba_selective_scan", lambda function, x: function(*x.values())),
    "train-mamba2": (
        "mamba2.modeling_mamba2", "mamba2_chunk_scan", lambda function, x: function(*x.values(), chunk_size=256),
    ),
}  # fmt: skip


def torch_delta(case, arrays, threads):
    """The chunks of a delta rule in plain PyTorch: the triangular system of a chunk is
    solved at once. Decays per channel as (a e^c)(k e^-c)ᵀ, as in `peers.torch_chunk`."""
    if "beta" not in arrays:
        return None
    torch, x, do = _recorded(arrays, threads)
    B, H, T, D = do.shape
    C, scale = peers.CHUNK, peers.scale_of(arrays)
    if T % C:
        return None
    lower = torch.ones(C, C, dtype=torch.bool).tril()

    def call():
        q, k, v, decay, beta = (x[name].reshape(B, H, T // C, C, *x[name].shape[3:]) for name in ("q", "k", "v", "decay", "beta"))
        beta = beta[..., None]
        c = decay.cumsum(3)
        if c.dim() == 4:
            ratio = (c[..., :, None] - c[..., None, :]).masked_fill(~lower, -torch.inf).exp()
            c = c[..., None]
            keys, queries = (k @ k.transpose(-1, -2)) * ratio, (q @ k.transpose(-1, -2)) * ratio
        else:
            small = (k * (-c).exp()).transpose(-1, -2)
            keys, queries = (k * c.exp()) @ small, (q * c.exp()) @ small
        system = torch.eye(C) + (beta * keys).tril(-1)
        solved = torch.linalg.solve_triangular(system, beta * torch.cat([v, k * c.exp()], -1), upper=False, unitriangular=True)
        u, w = solved[..., : v.shape[-1]], solved[..., v.shape[-1] :]
        queries, reads = queries.tril() * scale, q * c.exp() * scale
        last = c[..., -1:, :]
        kept, state, outs = (k * (last - c).exp()).transpose(-1, -2), q.new_zeros(B, H, D, v.shape[-1]), []
        forget = last.exp().transpose(-1, -2)
        for i in range(T // C):
            new = u[:, :, i] - w[:, :, i] @ state
            outs.append(reads[:, :, i] @ state + queries[:, :, i] @ new)
            state = state * forget[:, :, i] + kept[:, :, i] @ new
        return torch.cat(outs, 2)

    return _autograd(torch, call, list(x.values()), do)


def jax_chunk(case, arrays, threads):
    """`jax.vjp` of the scan over chunks, whose insides are computed again (remat)."""
    if "beta" in arrays or "q" not in arrays or arrays["q"].shape[1] % peers.CHUNK:
        return None
    jax = importlib.import_module("jax")
    arrays = dict(arrays)
    do = arrays.pop("do")
    run, tokens = peers.jax_chunks(_forward_of(case), arrays, wrap=jax.checkpoint)
    B, T, H, D = do.shape
    cotangent = jax.numpy.asarray(np.moveaxis(np.swapaxes(do, 1, 2).reshape(B, H, T // peers.CHUNK, peers.CHUNK, D), 2, 0))
    differentiated = tokens if "decay" in arrays else tokens[:3]

    @jax.jit
    def gradients(differentiated, rest, cotangent):
        return jax.vjp(lambda *differentiated: run(*differentiated, *rest), *differentiated)[1](cotangent)

    def call():
        dq = gradients(differentiated, tokens[len(differentiated) :], cotangent)[0].block_until_ready()
        return jax.numpy.moveaxis(dq, 0, 2).reshape(B, H, T, D)

    return call


PEERS = {"torch": torch_eager, "torch-delta": torch_delta, "transformers": transformers, "jax-chunk": jax_chunk}
