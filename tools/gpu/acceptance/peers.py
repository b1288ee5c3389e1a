"""Peers: the same computation on the same tensors, [B, T, H, D].

`find` raises ImportError or NotImplementedError where a peer has nothing for a rule:
what is missing, and why, is said, never left out in silence.
"""

import importlib

__all__ = ["NAMES", "find"]

NAMES = ("softmax (SDPA)", "PyTorch, chunks", "FLA")
CHUNK = 64

# Functions of flash-linear-attention: module, prefill, decoding; the gates they take.
_FLA = {
    "linear": ("linear_attn", "chunk_linear_attn", "fused_recurrent_linear_attn", {}),
    "simple_gla": ("simple_gla", "chunk_simple_gla", "fused_recurrent_simple_gla", {"g": "g"}),
    "gla": ("gla", "chunk_gla", "fused_recurrent_gla", {"g": ("g", "gk")}),
    "delta": ("delta_rule", "chunk_delta_rule", "fused_recurrent_delta_rule", {"beta": "beta"}),
    "gated_delta": ("gated_delta_rule", "chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule", {"g": "g", "beta": "beta"}),
    "kda": ("kda", "chunk_kda", "fused_recurrent_kda", {"g": "g", "beta": "beta"}),
}  # fmt: skip


def find(name, rule, decodes):
    """A function (arrays, state) -> call, of no argument; with a state the call decodes one
    token. Looks at no array: what is missing is known before any is made."""
    return dict(zip(NAMES, (_softmax, _chunks, _fla)))[name](rule, decodes)


def _softmax(rule, decodes):
    """Quadratic attention of the same size: for all but softmax another function, what would be replaced."""
    from torch.nn.functional import scaled_dot_product_attention

    if decodes:
        raise NotImplementedError("softmax decodes over a cache, whose length the figure would depend on")

    def make(arrays, state):
        q, k, v = (arrays[name].transpose(1, 2) for name in "qkv")
        causal = not rule.attention or "causal" in rule.attention
        return lambda: scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    return make


def _fla(rule, decodes):
    if rule.name not in _FLA:
        raise NotImplementedError("not among the functions that are compared")
    folder, prefill, decode, gates = _FLA[rule.name]
    function = getattr(importlib.import_module(f"fla.ops.{folder}"), decode if decodes else prefill)

    def make(arrays, state):
        options = {"scale": arrays["q"].shape[-1] ** -0.5}
        if rule.name == "linear":
            options["normalize"] = False
        for ours, theirs in gates.items():
            options[theirs[decodes] if isinstance(theirs, tuple) else theirs] = arrays[ours]
        if decodes:
            options |= {"initial_state": state, "output_final_state": True}
        q, k, v = (arrays[name] for name in "qkv")
        return lambda: function(q, k, v, **options)[0]

    return make


# ----------------------------------------------------------------------------
# Chunks in plain PyTorch: products in the tokens' type, states in float32
# ----------------------------------------------------------------------------


def _chunks(rule, decodes):
    import torch

    if decodes:
        return lambda arrays, state: lambda: _step(torch, rule, arrays, state)
    if rule.name not in ("linear", "retention", "simple_gla", "delta", "gated_delta"):
        raise NotImplementedError("no stable form of decays per channel in plain operators")
    call = _delta_chunks if rule.is_delta else _additive_chunks
    return lambda arrays, state: torch.no_grad()(lambda: call(torch, arrays))


def _step(torch, rule, arrays, state):
    """One token, in place, in plain operators."""
    q, k, v = (arrays[name][:, 0].float() for name in "qkv")
    if "g" in arrays:
        g = arrays["g"][:, 0].exp()
        state.mul_(g[..., None, None] if g.ndim == 2 else g[..., None])
    if rule.is_delta:
        v = arrays["beta"][:, 0][..., None] * (v - (k[..., None, :] @ state)[..., 0, :])
    state.add_(k[..., None] * v[..., None, :])
    out = (q[..., None, :] @ state) * q.shape[-1] ** -0.5
    return out.swapaxes(1, 2).to(arrays["q"].dtype)


def _split(x):
    """[B, T, H, …] as [B, H, chunks, CHUNK, …]; T is a multiple of CHUNK."""
    x = x.transpose(1, 2)
    return x.reshape(*x.shape[:2], x.shape[2] // CHUNK, CHUNK, *x.shape[3:])


def _join(x):
    return x.flatten(2, 3).transpose(1, 2)


def _masks(torch, c, lower):
    """e^(c_i − c_j) below the diagonal, or ones."""
    return (c[..., :, None] - c[..., None, :]).masked_fill(~lower, -torch.inf).exp()


def _states(torch, writes, last):
    """The state before each chunk."""
    if last is None:
        return writes.cumsum(2) - writes
    states, state = torch.empty_like(writes), torch.zeros_like(writes[:, :, 0])
    kept = last.exp()[..., None, None]
    for i in range(writes.shape[2]):
        states[:, :, i] = state
        state = torch.addcmul(writes[:, :, i], state, kept[:, :, i])
    return states


def _additive_chunks(torch, arrays):
    q, k, v = (_split(arrays[name]) for name in "qkv")
    q = q * q.shape[-1] ** -0.5
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    scores = q @ k.transpose(-1, -2)
    if "g" not in arrays:
        before = _states(torch, (k.transpose(-1, -2) @ v).float(), None).to(q.dtype)
        return _join(scores.masked_fill(~lower, 0) @ v + q @ before)
    g = arrays["g"]
    g = g.expand(*arrays["q"].shape[:3]) if g.ndim == 1 else g
    c = _split(g).cumsum(-1)
    kept = (k * (c[..., -1:] - c).exp()[..., None]).to(q.dtype)
    before = _states(torch, (kept.transpose(-1, -2) @ v).float(), c[..., -1]).to(q.dtype)
    scores = scores * _masks(torch, c, lower).to(q.dtype)
    return _join(scores @ v + (q * c.exp()[..., None]).to(q.dtype) @ before)


def _delta_chunks(torch, arrays):
    """The UT transform; the triangle is solved in float32."""
    q, k, v, beta = (_split(arrays[name]) for name in ("q", "k", "v", "beta"))
    q = q * q.shape[-1] ** -0.5
    dtype, eye = q.dtype, torch.eye(CHUNK, device=q.device)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    c = _split(arrays["g"]).cumsum(-1) if "g" in arrays else torch.zeros_like(beta)
    mask = _masks(torch, c, lower)
    triangle = eye + ((k @ k.transpose(-1, -2)).float() * mask * beta[..., None]).tril(-1)
    written = beta[..., None] * torch.cat([v.float(), k.float() * c.exp()[..., None]], -1)
    solved = torch.linalg.solve_triangular(triangle, written, upper=False, unitriangular=True)
    values, keys = solved[..., : v.shape[-1]], solved[..., v.shape[-1] :].to(dtype)
    scores = ((q @ k.transpose(-1, -2)).float() * mask).to(dtype)
    reads = (q * c.exp()[..., None]).to(dtype)
    kept = (k * (c[..., -1:] - c).exp()[..., None]).to(dtype).transpose(-1, -2)
    last = c[..., -1].exp()[..., None, None]
    state, out = values.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1]), torch.empty_like(v)
    for i in range(k.shape[2]):
        before = state.to(dtype)
        new = (values[:, :, i] - (keys[:, :, i] @ before).float()).to(dtype)
        out[:, :, i] = reads[:, :, i] @ before + scores[:, :, i] @ new
        state = state * last[:, :, i] + (kept[:, :, i] @ new).float()
    return _join(out)
