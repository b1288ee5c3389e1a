"""The recurrence of `linattn.scan` in PyTorch, in float64 and token by token, so that autograd gives
every gradient; and the MLIR of the same call."""

import torch

from linattn._recurrence import _function, _text

GATE_RANKS = {"value_decay": 4, "a": 4, "b": 4, "erase": 4, "write": 4, "bonus": 2, "input_gate": 3}
INDICES = {"mask": ("i1", torch.bool), "cu_seqlens": ("i64", torch.int64)}

FEATURE_MAPS = {
    "identity": lambda x: x,
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x) ** 2,
    "elu1": lambda x: torch.where(x > 0, x + 1, torch.exp(torch.clamp(x, max=0))),
    "exp": torch.exp,
    "softmax_kernel": lambda x: torch.exp(x - x.amax(-1, keepdim=True)),
}


def repeat_heads(x, heads):
    return x.repeat_interleave(heads // x.shape[1], dim=1)


def normalized(num, den, eps=None, floor=None, abs_floor=None, maximum=None):
    if floor is not None:
        return num / den.clamp(min=floor)
    if abs_floor is not None and maximum is not None:
        den = torch.maximum(den.abs(), abs_floor * torch.exp(-maximum))
    elif abs_floor is not None:
        den = torch.where(den.abs() > abs_floor, den.abs(), torch.full_like(den, abs_floor))
    return num / (den + (eps or 0.0))


def scan(q, k, v, S, z=None, m=None, *, scale=1.0, update="add", readout="inclusive", transition="before", reverse=False,
         feature_map="identity", normalize=None, cu_seqlens=None, mask=None, every=None, **gates):  # fmt: skip
    """o, S, and z and m where they are given, then their snapshots; operands are [B, H, T, D] as in the op."""
    if cu_seqlens is not None:
        return _packed(q, k, v, S, z, m, cu_seqlens, mask, gates, scale=scale, update=update, readout=readout,
                       transition=transition, reverse=reverse, feature_map=feature_map, normalize=normalize)  # fmt: skip
    is_stabilized = m is not None and "input_gate" not in gates
    phi = FEATURE_MAPS[feature_map]
    phi_q, phi_k = (FEATURE_MAPS["softmax_kernel"], lambda x: x) if is_stabilized else (phi, phi)
    H, Ho = max(k.shape[1], v.shape[1]), max(q.shape[1], k.shape[1], v.shape[1])
    q, k, v = repeat_heads(phi_q(q), Ho), repeat_heads(phi_k(k), H), repeat_heads(v, H)
    T, states = q.shape[2], S
    outputs, kept = [None] * T, []
    for t in reversed(range(T)) if reverse else range(T):
        x = _Token(gates, t, k, v)
        keep = None if mask is None else mask[:, t]
        rescaling = None
        if m is not None:
            m, rescaling = x.raise_maximum(m, keep, is_stabilized)
        decayed = x.decayed(states, rescaling)
        new = _write(x, states, decayed, update, transition, keep)
        zs = None if z is None else x.decayed(z[..., None], rescaling)[..., 0]
        if z is not None:
            zs = zs + (x.k if keep is None else torch.where(keep[:, None, None], x.k, torch.zeros_like(x.k)))
        group = Ho // H
        read = (new if readout == "inclusive" else states).repeat_interleave(group, dim=1)
        o = scale * torch.einsum("bhkv,bhk->bhv", read, q[:, :, t])
        if readout == "exclusive" and "bonus" in gates:
            own = torch.einsum("bhk,hk,bhk->bh", q[:, :, t], repeat_bonus(gates["bonus"], group),
                               x.k.repeat_interleave(group, dim=1))  # fmt: skip
            if keep is not None:
                own = torch.where(keep[:, None], own, torch.zeros_like(own))
            o = o + scale * own[..., None] * x.v.repeat_interleave(group, dim=1)
        if z is not None:
            den = scale * torch.einsum("bhk,bhk->bh", zs.repeat_interleave(group, dim=1), q[:, :, t])
            maximum = None if m is None else m.repeat_interleave(group, dim=1)[..., None]
            o = normalized(o, den[..., None], maximum=maximum, **normalize)
        outputs[t], states, z = o, new, zs
        if every and (t + 1) % every == 0:
            kept.append([part for part in (states, z, m) if part is not None])
    results = [torch.stack(outputs, 2), *(part for part in (states, z, m) if part is not None)]
    return (*results, *(torch.stack(part, 1) for part in zip(*kept)))


def repeat_bonus(bonus, group):
    return bonus.repeat_interleave(group, dim=0)


class _Token:
    """The operands of one token, [B, H, D]."""

    def __init__(self, gates, t, k, v):
        self.k, self.v = k[:, :, t], v[:, :, t]
        for name, gate in gates.items():
            setattr(self, name, gate if gate.dim() < 3 else gate[:, :, t])
        self.names = set(gates)

    def raise_maximum(self, before, keep, is_stabilized):
        """The next running maximum, and the factor of the past where that is not the decay's matter."""
        if is_stabilized:
            most = self.k.amax(-1)
            most = most if keep is None else torch.where(keep[:, None], most, torch.full_like(most, -torch.inf))
            after = torch.maximum(before, most)
            # A masked key may be larger than the maximum; nothing is written.
            self.k = torch.exp((self.k - after[..., None]).clamp(max=0))
            return after, torch.exp(before - after)
        faded = before + (self.decay if "decay" in self.names else 0.0)
        opened = self.input_gate
        opened = opened if keep is None else torch.where(keep[:, None], opened, torch.full_like(opened, -torch.inf))
        after = torch.maximum(faded, opened)
        self.k = self.k * torch.exp((opened - after).clamp(max=0))[..., None]
        self.names.discard("decay")
        return after, torch.exp(faded - after)

    def decayed(self, S, rescaling=None):
        if rescaling is not None:
            S = S * rescaling[..., None, None]
        if "decay" in self.names:
            g = self.decay
            g = g[None, :, None] if g.dim() == 1 else g[..., None] if g.dim() == 2 else g
            S = torch.exp(g)[..., None] * S
        if "value_decay" in self.names:
            S = S * torch.exp(self.value_decay)[:, :, None]
        return S


def _write(x, before, decayed, update, transition, keep):
    k, v = x.k, x.v
    if update == "add":
        written = torch.einsum("bhk,bhv->bhkv", k, v)
    elif update == "delta":
        erased = k * x.erase if "erase" in x.names else k
        value = v * x.write if "write" in x.names else v
        error = value - torch.einsum("bhkv,bhk->bhv", decayed, erased)
        beta = x.beta if "beta" in x.names else torch.ones_like(k[..., 0])
        error = error * (beta[..., None] if beta.dim() == 2 else beta)
        written = torch.einsum("bhk,bhv->bhkv", k, error)
    elif update == "oja":
        error = k - torch.einsum("bhkv,bhv->bhk", decayed, v)
        written = torch.einsum("bhk,bhv->bhkv", error, x.beta[..., None] * v)
    else:
        r = torch.einsum("bhkv,bhk->bhv", before if transition == "before" else decayed, x.a)
        written = torch.einsum("bhk,bhv->bhkv", x.b, r) + torch.einsum("bhk,bhv->bhkv", k, v)
    if keep is not None:
        written = torch.where(keep[:, None, None, None], written, torch.zeros_like(written))
    return decayed + written


def _packed(q, k, v, S, z, m, offsets, mask, gates, **options):
    parts = []
    for n, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist())):
        cut = {name: x[:, :, begin:end] if x.dim() > 2 else x for name, x in gates.items()}
        zn, mn = (None if x is None else x[n : n + 1] for x in (z, m))
        if begin == end:
            empty = v.new_zeros(1, max(x.shape[1] for x in (q, k, v)), 0, v.shape[3])
            parts.append((empty, *(x for x in (S[n : n + 1], zn, mn) if x is not None)))
            continue
        tokens = (x[:, :, begin:end] for x in (q, k, v))
        keep = None if mask is None else mask[:, begin:end]
        parts.append(scan(*tokens, S[n : n + 1], zn, mn, mask=keep, **options, **cut))
    o, *states = zip(*parts)
    return torch.cat(o, 2), *(torch.cat(part, 0) for part in states)


def text_of(operands, dtype, *, scale=1.0, update="add", readout="inclusive", transition="before", reverse=False,
            feature_map="identity", normalize=None, config=None, every=None):  # fmt: skip
    """The module of the call; `operands` maps names to arrays in the op's order, S, z and m last."""
    gates = [name for name in operands if name not in ("q", "k", "v", "S", "z", "m")]
    denominator = tuple((normalize or {}).get(name) for name in ("eps", "floor", "abs_floor", "clamp"))
    options = _function.Options(
        kind=feature_map, normalize=normalize is not None, denominator=denominator, eps=denominator[0], scale=scale,
        config=config, update=update, readout=readout, transition=transition, reverse=reverse, has_state=True,
        returns_state=True, gates=tuple(gates), every=every,
    )  # fmt: skip
    heads = [operands[name].shape[1] for name in "qkv"]
    sizes = _function.Sizes(dtype, operands["k"].shape[3], operands["v"].shape[3], None, None, *heads)
    extra = [(operands[name].ndim, INDICES[name][0] if name in INDICES else gate_type(dtype)) for name in gates]
    return _text.scan_text(options, sizes, extra)


def gate_type(dtype):
    return "f64" if dtype == "f64" else "f32"
