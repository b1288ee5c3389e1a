"""Peers: other libraries' functions for the same computation, if they are installed.

Each peer gets the inputs of a case as its own arrays, made outside of the timing,
and returns a function of no argument whose result, [B, H, T, D], converts to NumPy,
or None if it has no form of that case.
"""

from __future__ import annotations

import importlib
import warnings

import numpy as np

__all__ = ["PEERS", "available", "head_major", "jax_chunks", "scale_of", "torch_chunk"]

CHUNK = 64
_ADDITIVE = ("linear", "retnet", "scalar-decay", "gate")


def scale_of(arrays):
    return arrays["q"].shape[-1] ** -0.5


def head_major(arrays, convert):
    """q, k, v, decay, beta as [B, H, T, ...], decay per token at least."""
    out = {name: convert(np.ascontiguousarray(np.swapaxes(x, 1, 2)))
           for name, x in arrays.items() if x.ndim > 1}  # fmt: skip
    if "decay" in arrays and arrays["decay"].ndim == 1:
        B, T = arrays["q"].shape[:2]
        out["decay"] = convert(np.ascontiguousarray(np.broadcast_to(arrays["decay"][None, :, None], (B, len(arrays["decay"]), T))))
    return out


# ----------------------------------------------------------------------------
# PyTorch
# ----------------------------------------------------------------------------


def torch_chunk(torch, case, x, scale, compiled=False):
    """The chunk form in plain PyTorch, scores masked by differences of cumulative
    decays; a decay per channel as (q e^c)(k e^-c)ᵀ, which is fast, and overflows for
    stronger gates than those of the cases. One chunk is one function, which may be compiled: the loop over them is Python's,
    as unrolled it would take minutes to compile. Where gradients are recorded, chunks
    are joined at the end instead of written into one output, which would copy the
    output's gradient once per chunk."""
    q, k, v = (x[name] for name in "qkv")
    B, H, T, D = q.shape
    decay = x.get("decay")
    C = min(CHUNK, T)
    lower = torch.ones(C, C, dtype=torch.bool).tril()

    def plain(q, k, v, state):
        n = q.shape[2]
        scores = (q @ k.transpose(-1, -2)).masked_fill(~lower[:n, :n], 0)
        return scores @ v + q @ state, state + k.transpose(-1, -2) @ v

    def scalar(q, k, v, state, decay):
        n = q.shape[2]
        c = decay.cumsum(-1)
        ratio = (c[..., :, None] - c[..., None, :]).masked_fill(~lower[:n, :n], -torch.inf).exp()
        out = ((q @ k.transpose(-1, -2)) * ratio) @ v + (q * c[..., None].exp()) @ state
        last = c[..., -1:]
        kept = (k * (last - c)[..., None].exp()).transpose(-1, -2)
        return out, state * last[..., None].exp() + kept @ v

    def channel(q, k, v, state, decay):
        n = q.shape[2]
        c = decay.cumsum(-2)
        q = q * c.exp()
        scores = (q @ (k * (-c).exp()).transpose(-1, -2)).masked_fill(~lower[:n, :n], 0)
        out = scores @ v + q @ state
        last = c[..., -1:, :]
        kept = (k * (last - c).exp()).transpose(-1, -2)
        return out, state * last.transpose(-1, -2).exp() + kept @ v

    step = plain if decay is None else scalar if decay.dim() == 3 else channel
    step = torch.compile(step) if compiled else step

    def call():
        state = q.new_zeros(B, H, D, v.shape[-1])
        out = None if torch.is_grad_enabled() else torch.empty_like(v)
        chunks = []
        for begin in range(0, T, C):
            part = slice(begin, begin + C)
            gates = () if decay is None else (decay[:, :, part],)
            chunk, state = step(q[:, :, part] * scale, k[:, :, part], v[:, :, part], state, *gates)
            if out is None:
                chunks.append(chunk)
            else:
                out[:, :, part] = chunk
        return torch.cat(chunks, 2) if out is None else out

    return call


def torch_eager(case, arrays, threads):
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    x = head_major(arrays, torch.from_numpy)
    if case in _ADDITIVE:
        call = torch_chunk(torch, case, x, scale_of(arrays))
    elif case == "softmax":
        call = lambda: torch.nn.functional.scaled_dot_product_attention(  # noqa: E731
            x["q"], x["k"], x["v"], is_causal=True
        )
    elif case == "noncausal":
        call = lambda: x["q"] @ (x["k"].transpose(-1, -2) @ x["v"])  # noqa: E731
    else:
        return None
    return torch.no_grad()(call)


def torch_compile(case, arrays, threads):
    # A single call of a library gains nothing.
    if case not in _ADDITIVE:
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    x = head_major(arrays, torch.from_numpy)
    return torch.no_grad()(torch_chunk(torch, case, x, scale_of(arrays), compiled=True))


def transformers_chunk(case, arrays, threads):
    """The fallback of transformers for gated delta rules, where its fast kernels
    cannot run."""
    if case not in ("delta", "gated-delta"):
        return None
    torch = importlib.import_module("torch")
    module = importlib.import_module("transformers.models.qwen3_next.modeling_qwen3_next")
    torch.set_num_threads(threads)
    x = {name: torch.from_numpy(array) for name, array in arrays.items()}
    decay = x.get("decay", torch.zeros_like(x["beta"]))
    call = lambda: module.torch_chunk_gated_delta_rule(  # noqa: E731
        x["q"], x["k"], x["v"], g=decay, beta=x["beta"], chunk_size=CHUNK
    )[0].transpose(1, 2)
    return torch.no_grad()(call)


# ----------------------------------------------------------------------------
# JAX
# ----------------------------------------------------------------------------


def jax_scan(case, arrays, threads):
    """`jax.jit` of `lax.scan` over tokens."""
    if case not in (*_ADDITIVE, "delta", "gated-delta", "kda"):
        return None
    jax = importlib.import_module("jax")
    jnp, lax = jax.numpy, jax.lax
    scale = scale_of(arrays)
    x = {name: jnp.asarray(np.moveaxis(a, 2, 0)) for name, a in head_major(arrays, np.asarray).items()}
    names = [name for name in ("q", "k", "v", "decay", "beta") if name in x]

    def step(state, token):
        t = dict(zip(names, token))
        if "decay" in t:
            gate = jnp.exp(t["decay"])
            state = state * (gate[..., None] if gate.ndim == 3 else gate[..., None, None])
        v = t["v"]
        if "beta" in t:
            v = t["beta"][..., None] * (v - jnp.einsum("bhkv,bhk->bhv", state, t["k"]))
        state = state + t["k"][..., None] * v[..., None, :]
        return state, jnp.einsum("bhkv,bhk->bhv", state, t["q"]) * scale

    @jax.jit
    def run(*tokens):
        B, H, D = tokens[0].shape[1:]
        return lax.scan(step, jnp.zeros((B, H, D, D), tokens[0].dtype), tokens)[1]

    tokens = [x[name] for name in names]
    return lambda: run(*tokens).block_until_ready().transpose(1, 2, 0, 3)


def jax_chunk(case, arrays, threads):
    """`jax.jit` of `lax.scan` over chunks, additive rules."""
    if case not in _ADDITIVE or arrays["q"].shape[1] % CHUNK:
        return None
    jax = importlib.import_module("jax")
    run, tokens = jax_chunks(case, arrays)
    run = jax.jit(run)

    def call():
        out = run(*tokens).block_until_ready()
        B, T, H, D = arrays["v"].shape
        return jax.numpy.moveaxis(out, 0, 2).reshape(B, H, T, D)

    return call


def jax_chunks(case, arrays, wrap=lambda body: body):
    """A function of tokens `[T / CHUNK, B, H, CHUNK, …]` that scans over chunks, and the
    tokens; `wrap` may change the body of the scan."""
    jax = importlib.import_module("jax")
    jnp, lax = jax.numpy, jax.lax
    scale = scale_of(arrays)

    def chunks(a):
        B, H, T = a.shape[:3]
        return jnp.asarray(np.moveaxis(a.reshape(B, H, T // CHUNK, CHUNK, *a.shape[3:]), 2, 0))

    x = head_major(arrays, np.asarray)
    if "decay" not in x:
        x["decay"] = np.zeros(x["q"].shape[:3], np.float32)
    tokens = [chunks(x[name]) for name in ("q", "k", "v", "decay")]
    lower = np.tril(np.ones((CHUNK, CHUNK), bool))

    def scalar(state, chunk):
        q, k, v, g = chunk
        c = jnp.cumsum(g, -1)
        ratio = jnp.exp(jnp.where(lower, c[..., :, None] - c[..., None, :], -jnp.inf))
        out = ((q @ jnp.swapaxes(k, -1, -2)) * ratio) @ v + (q * jnp.exp(c)[..., None]) @ state
        last = c[..., -1:]
        state = state * jnp.exp(last)[..., None] + jnp.swapaxes(k * jnp.exp(last - c)[..., None], -1, -2) @ v
        return state, out * scale

    def channel(state, chunk):
        q, k, v, g = chunk
        c = jnp.cumsum(g, -2)
        q = q * jnp.exp(c)
        scores = jnp.where(lower, q @ jnp.swapaxes(k * jnp.exp(-c), -1, -2), 0)
        out = scores @ v + q @ state
        last = c[..., -1:, :]
        state = state * jnp.swapaxes(jnp.exp(last), -1, -2) + jnp.swapaxes(k * jnp.exp(last - c), -1, -2) @ v
        return state, out * scale

    def run(*tokens):
        B, H, _, D = tokens[0].shape[1:]
        body = wrap(channel if case == "gate" else scalar)
        return lax.scan(body, jnp.zeros((B, H, D, D), tokens[0].dtype), tokens)[1]

    return run, tokens


# ----------------------------------------------------------------------------
# ONNX Runtime
# ----------------------------------------------------------------------------


def onnxruntime(case, arrays, threads, domain="com.microsoft", register=None):
    """The contributed op com.microsoft::LinearAttention, or the op of another domain."""
    rule = {"linear": "linear", "retnet": "gated", "scalar-decay": "gated", "gate": "gated",
            "delta": "delta", "gated-delta": "gated_delta", "kda": "gated_delta"}.get(case)  # fmt: skip
    if rule is None:
        return None
    ort = importlib.import_module("onnxruntime")
    onnx = importlib.import_module("onnx")
    B, T, H, D = arrays["q"].shape
    feeds = {"query": arrays["q"].reshape(B, T, H * D), "key": arrays["k"].reshape(B, T, H * D),
             "value": arrays["v"].reshape(B, T, H * D)}  # fmt: skip
    if "decay" in arrays:
        decay = arrays["decay"]
        if decay.ndim == 1:
            decay = np.broadcast_to(decay, (B, T, H))
        feeds["decay"] = np.ascontiguousarray(decay.reshape(B, T, -1))
    if "beta" in arrays:
        feeds["beta"] = arrays["beta"]
    inputs = ["query", "key", "value", "", feeds.get("decay") is not None and "decay" or "",
              feeds.get("beta") is not None and "beta" or ""]  # fmt: skip
    while not inputs[-1]:
        inputs.pop()
    node = onnx.helper.make_node(
        "LinearAttention", inputs, ["output", "state"], domain=domain,
        q_num_heads=H, kv_num_heads=H, update_rule=rule, scale=scale_of(arrays),
    )  # fmt: skip
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node], "g", [onnx.helper.make_tensor_value_info(n, kind, a.shape) for n, a in feeds.items()],
        [onnx.helper.make_tensor_value_info("output", kind, (B, T, H * D))],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 21 if domain else 27)]
    if domain:
        opsets.append(onnx.helper.make_opsetid(domain, 1))
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if register is not None:
        register(options)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(["output"], feeds)[0].reshape(B, T, H, D).swapaxes(1, 2)


def onnxruntime_body(case, arrays, threads):
    """The op of opset 27, for which ONNX Runtime has no kernel: it runs the function's body."""
    return onnxruntime(case, arrays, threads, domain="")


def onnxruntime_linattn(case, arrays, threads):
    """The op of opset 27 on our library."""
    from ..onnxruntime import register

    return onnxruntime(case, arrays, threads, domain="", register=register)


PEERS = {
    "torch": torch_eager,
    "torch.compile": torch_compile,
    "transformers": transformers_chunk,
    "jax-scan": jax_scan,
    "jax-chunk": jax_chunk,
    "onnxruntime": onnxruntime,
    "onnxruntime-body": onnxruntime_body,
    "onnxruntime-linattn": onnxruntime_linattn,
}


def available(known, case, arrays, threads, names=None):
    """name -> call for those of the `known` peers that are installed and have the case.

    A peer that cannot run says so as a warning and is left out.
    """
    calls = {}
    if next(iter(arrays.values())).dtype != np.float32:
        return calls  # f32 is where all of them meet
    for name in known if names is None else names:
        if name not in known:
            continue
        try:
            call = known[name](case, arrays, threads)
            if call is not None:
                call()
                calls[name] = call
        except ModuleNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001: a peer's failure is not ours
            warnings.warn(f"{name} cannot run {case}: {type(error).__name__}: {str(error)[:200]}", stacklevel=2)
    return calls
