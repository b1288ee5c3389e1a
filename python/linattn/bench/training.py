"""Forward and backward pass together: all gradients of a recurrence, by PyTorch's autograd.

Ours and the peers' take the gradients of q, k, v and of every gate from one cotangent of
the output, and return that of q, ``[B, T, H, D]`` (peers: ``[B, H, T, D]``), for the
comparison. The forward pass alone takes turns beside them.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np

from . import peers

__all__ = ["FORWARD", "PEERS", "case"]

# The cases whose gradients are measured, "train-" before their names.
FORWARD = ("linear", "scalar-decay", "gate", "gated-delta", "kda")

# The oracle keeps the states of so many tokens at once.
_KEPT = 64


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

        def run(threads, form):
            before = linattn.get_num_threads()
            linattn.set_num_threads(threads)  # of the backward pass, too
            try:
                o = linattn.scan(q, k, v, form=form, **options)
                return torch.autograd.grad(o, list(tensors.values()), do)[0].float().numpy()
            finally:
                linattn.set_num_threads(before)

        # Backward is counted as twice the forward pass, as the field does.
        return replace(
            forward, case=name, run=run, reference=lambda: _oracle(torch, arrays), arrays=arrays,
            flops=3 * forward.flops, bytes=3 * forward.bytes,
            beside={"forward alone": lambda threads: forward.run(threads, "auto")}, portion={"forward alone": 1 / 3},
        )  # fmt: skip

    return build


def _torch():
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ModuleNotFoundError(f"training: expected PyTorch to be installed, but got: {error}") from error


def _tensor(torch, array):
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _oracle(torch, arrays):
    """The gradient of q in float64, token by token."""
    x = {name: torch.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    do, q = x.pop("do"), x["q"].requires_grad_()
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
        return torch.stack(out, 1) * D**-0.5, state

    state, outs = q.new_zeros(B, H, D, x["v"].shape[-1]), []
    for begin in range(0, T, _KEPT):
        columns = [column[:, begin : begin + _KEPT] for column in x.values()]
        out, state = torch.utils.checkpoint.checkpoint(tokens, state, *columns, use_reentrant=False)
        outs.append(out)
    return torch.autograd.grad(torch.cat(outs, 1), q, do)[0].numpy()


# ----------------------------------------------------------------------------
# Peers
# ----------------------------------------------------------------------------


def _forward_of(case):
    return case.removeprefix("train-")


def _autograd(torch, call, tensors, do):
    def run():
        return torch.autograd.grad(call(), tensors, do)[0]

    return run


def torch_eager(case, arrays, threads):
    """The chunks of `peers.torch_chunk` under autograd."""
    if "beta" in arrays:
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    x = peers.head_major(arrays, torch.from_numpy)
    do = x.pop("do")
    for tensor in x.values():
        tensor.requires_grad_()
    call = peers.torch_chunk(torch, _forward_of(case), x, peers.scale_of(arrays))
    return _autograd(torch, call, list(x.values()), do)


def transformers_chunk(case, arrays, threads):
    """The fallback of transformers for gated delta rules under autograd."""
    if case != "train-gated-delta":
        return None
    torch = importlib.import_module("torch")
    module = importlib.import_module("transformers.models.qwen3_next.modeling_qwen3_next")
    torch.set_num_threads(threads)
    x = {name: torch.from_numpy(array).requires_grad_(name != "do") for name, array in arrays.items()}
    do = x.pop("do")

    def call():
        return module.torch_chunk_gated_delta_rule(
            x["q"], x["k"], x["v"], g=x["decay"], beta=x["beta"], chunk_size=peers.CHUNK
        )[0]

    run = _autograd(torch, call, list(x.values()), do)
    return lambda: run().transpose(1, 2)


def jax_chunk(case, arrays, threads):
    """`jax.vjp` of the scan over chunks, whose insides are computed again (remat)."""
    if "beta" in arrays or arrays["q"].shape[1] % peers.CHUNK:
        return None
    jax = importlib.import_module("jax")
    arrays = dict(arrays)
    do = arrays.pop("do")
    run, tokens = peers.jax_chunks(_forward_of(case), arrays, wrap=jax.checkpoint)
    B, T, H, D = do.shape
    cotangent = jax.numpy.asarray(np.moveaxis(np.swapaxes(do, 1, 2).reshape(B, H, T // peers.CHUNK, peers.CHUNK, D), 2, 0))
    wanted = tokens if "decay" in arrays else tokens[:3]

    @jax.jit
    def gradients(wanted, rest, cotangent):
        return jax.vjp(lambda *wanted: run(*wanted, *rest), *wanted)[1](cotangent)

    def call():
        dq = gradients(wanted, tokens[len(wanted) :], cotangent)[0].block_until_ready()
        return jax.numpy.moveaxis(dq, 0, 2).reshape(B, H, T, D)

    return call


PEERS = {"torch": torch_eager, "transformers": transformers_chunk, "jax-chunk": jax_chunk}
