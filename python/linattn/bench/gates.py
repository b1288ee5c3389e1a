"""Rules under closed gates: e⁻²⁰ per token or channel leaves subnormal numbers of a
state, which must not cost more than others.

Gates of a head are as Qwen3-Next begins with them, −A softplus(x) with A up to 16;
those of a channel lie anywhere between −20 and 0. The open gates beside them are a
hundredth of it.
"""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np

from .work import DTYPES

__all__ = ["CASES"]

OPEN = 0.01


class _Inputs:
    """Arrays of one case, [B, T, H, D] but for gates of less."""

    def __init__(self, sizes, open):
        self.sizes, self.rng = sizes, np.random.default_rng(sizes.seed)
        self.dtype = DTYPES[sizes.dtype]
        self.token = (sizes.batch, sizes.t, sizes.heads, sizes.d)
        self.row = (sizes.batch, sizes.t, sizes.heads * sizes.d)
        self.factor = np.float32(OPEN if open else 1)

    def tokens(self, *shape):
        return self.rng.standard_normal(shape or self.token).astype(self.dtype)

    def keys(self):
        x = self.rng.standard_normal(self.token)
        return (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)).astype(self.dtype)

    def beta(self, *last):
        return (1 / (1 + np.exp(-self.rng.standard_normal(self.token[:3] + last)))).astype(np.float32)

    def step(self):
        """softplus(x) of a token and a head, at most 1.3."""
        x = self.rng.standard_normal(self.token[:3])
        return np.minimum(np.log1p(np.exp(x / 2)), 1.3).astype(np.float32)

    def rate(self):
        """A of a head."""
        return np.linspace(1, 16, self.sizes.heads, dtype=np.float32)

    def per_token(self):
        return -self.rate() * self.step() * self.factor

    def per_channel(self, *shape):
        return (-20 * self.rng.random(shape or self.token)).astype(np.float32) * self.factor

    def per_head(self):
        return -20 * self.rate() / 16 * self.factor


def _family(name, operands):
    """A case of a family: `operands` makes its arrays, by position or by name.

    A case has a call, its oracle, and the number of bytes that the call moves.
    """

    def build(sizes, open):
        import linattn

        made = operands(_Inputs(sizes, open))
        arrays, named = made if isinstance(made, tuple) else (made, {})
        function = getattr(linattn, name)
        takes_form = "form" in inspect.signature(function).parameters
        return (
            lambda threads, form: function(
                *arrays, **named, num_threads=threads, **({"form": form} if takes_form else {})
            ),
            lambda: getattr(linattn.reference, name)(*arrays, **named),
            float(sum(array.nbytes for array in [*arrays, *named.values()])),
        )

    return build


def _step(operands):
    """One token, over and over: what is left of the state shrinks from step to step."""

    def build(sizes, open):
        import linattn

        arrays, named = operands(_Inputs(dataclasses.replace(sizes, t=1), open))
        like = np.zeros(0, arrays[0].dtype)
        state = linattn.State.zeros(sizes.batch, sizes.heads, sizes.d, sizes.d, like=like)
        return (
            lambda threads, form: state.step(*arrays, **named, num_threads=threads, form=form),
            lambda: linattn.reference.scan(*arrays, **named),
            2.0 * state.S.nbytes,
        )

    return build


def _qkv(x):
    return [x.tokens(), x.keys(), x.tokens()]


def _mamba(x):
    b, t, d = x.row
    rate = np.tile(np.arange(1, 17, dtype=np.float32), (d, 1))
    states = [x.tokens(b, 16, t) for _ in range(2)]
    delta = (1.3 * x.rng.random((b, d, t))).astype(np.float32) * x.factor
    return [x.tokens(b, d, t), delta.astype(x.dtype), -rate, *states]


def _rwkv4(x):
    width = x.row[-1]
    return [x.per_channel(width), x.tokens(width).astype(np.float32), x.tokens(*x.row), x.tokens(*x.row)]


def _mlstm(x):
    forget = 20 * x.rng.random(x.token[:3]) * (1 if x.factor == OPEN else -1)
    return [*_qkv(x), x.rng.standard_normal(x.token[:3]).astype(np.float32), forget.astype(np.float32)]


def _dplr(x):
    q, k, v = _qkv(x)
    return q, k, v, -k, k / x.dtype(2)


def _comba(x):
    q, k, v = _qkv(x)
    return [q, k, v, k, x.per_token(), x.beta()]


def _rwkv7(x):
    q, k, v, a, b = _dplr(x)
    return [q, x.per_channel(), k, v, a, b]


def _levels(x):
    return x.rng.random(x.token[:3] + (x.sizes.t.bit_length() + 1,)).astype(np.float32)


CASES = {
    "gates-retnet": _family("simple_gla", lambda x: (_qkv(x), {"g_gamma": x.per_head()})),
    "gates-simple-gla": _family("simple_gla", lambda x: [*_qkv(x), x.per_token()]),
    "gates-mamba2": _family("mamba2", lambda x: [x.tokens(), x.step(), -x.rate() * x.factor, x.keys(), x.keys()]),
    "gates-gla": _family("gla", lambda x: [*_qkv(x), x.per_channel()]),
    "gates-rfa": _family("rfa", lambda x: ([*map(np.abs, _qkv(x)), x.per_token()])),
    "gates-hgrn": _family("hgrn", lambda x: [x.tokens(*x.row), x.per_channel(*x.row)]),
    "gates-hgrn2": _family("hgrn2", lambda x: [x.tokens(), x.tokens(), x.per_channel()]),
    "gates-rwkv4": _family("rwkv4", _rwkv4),
    "gates-rwkv5": _family("rwkv5", lambda x: [*_qkv(x), x.per_channel(*x.token[2:]), x.beta()[0, 0, :, None] * np.ones(x.sizes.d, np.float32)]),
    "gates-rwkv6": _family("rwkv6", lambda x: [*_qkv(x), x.per_channel(), x.per_channel(*x.token[2:])]),
    "gates-rwkv7": _family("rwkv7", _rwkv7),
    "gates-mlstm": _family("mlstm", _mlstm),
    "gates-gated-delta": _family("gated_delta_rule", lambda x: [*_qkv(x), x.per_token(), x.beta()]),
    "gates-kda": _family("kda", lambda x: [*_qkv(x), x.per_channel(), x.beta()]),
    "gates-gdn2": _family("gdn2", lambda x: [*_qkv(x), x.per_channel(), x.beta(x.sizes.d), x.beta(x.sizes.d)]),
    "gates-comba": _family("comba", _comba),
    "gates-dplr": _family("dplr", lambda x: [*_dplr(x), x.per_channel()]),
    "gates-gated-oja": _family("gated_oja", lambda x: [x.tokens(), x.tokens(), x.keys(), x.per_channel(), x.beta()]),
    "gates-gsa": _family("gsa", lambda x: [*_qkv(x), x.tokens(), x.per_channel()]),
    "gates-log-linear": _family("log_linear", lambda x: [*_qkv(x), x.per_token(), _levels(x)]),
    "gates-selective-scan": _family("selective_scan", _mamba),
    "gates-step-head": _step(lambda x: (_qkv(x), {"decay": x.per_head()})),
    "gates-step-token": _step(lambda x: (_qkv(x), {"decay": x.per_token()})),
    "gates-step-channel": _step(lambda x: (_qkv(x), {"decay": x.per_channel()})),
    "gates-step-delta": _step(lambda x: (_qkv(x), {"decay": x.per_token(), "beta": x.beta(), "update": "delta"})),
    "gates-step-kda": _step(lambda x: (_qkv(x), {"decay": x.per_channel(), "beta": x.beta(), "update": "delta"})),
}  # fmt: skip
