"""The cases: one entry for each, made for the sizes of a run.

Inputs follow the field's habits: q, v normal; keys of unit length for the delta
rules; gates the logarithm of a sigmoid over 16; beta a sigmoid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import gates, training
from .work import DTYPES, Sizes, Work

__all__ = ["CASES", "GROUPS", "Sizes", "Work", "make"]


def _log_sigmoid(x):
    return -np.logaddexp(0.0, -x)


def _unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def _tokens(sizes, rng, unit_keys):
    shape = (sizes.batch, sizes.t, sizes.heads, sizes.d)
    q, k, v = (rng.standard_normal(shape) for _ in range(3))
    if unit_keys:
        q, k = _unit(q), _unit(k)
    return [x.astype(DTYPES[sizes.dtype]) for x in (q, k, v)]


def _scan(case, decay=None, delta=False, dplr=False, **options):
    """A case of `linattn.scan`; `decay` is None, "H", "BTH" or "BTHD"."""

    def build(sizes):
        import linattn

        rng = np.random.default_rng(sizes.seed)
        q, k, v = _tokens(sizes, rng, delta or dplr)
        gates = {}
        if decay:
            extent = {"B": sizes.batch, "T": sizes.t, "H": sizes.heads, "D": sizes.d}
            shape = tuple(extent[axis] for axis in decay)
            gates["decay"] = (_log_sigmoid(rng.standard_normal(shape)) / 16).astype(np.float32)
        if delta:
            shape = (sizes.batch, sizes.t, sizes.heads)
            gates["beta"] = (1 / (1 + np.exp(-rng.standard_normal(shape)))).astype(np.float32)
        if dplr:
            gates["a"], gates["b"] = -k.astype(np.float32), k.astype(np.float32) / 2
        keywords = dict(options, **gates)
        if dplr:
            keywords["update"] = "dplr"
        if delta:
            keywords["update"] = "delta"
        return Work(
            case, sizes,
            lambda threads, form: linattn.scan(q, k, v, num_threads=threads, form=form, **keywords),
            lambda: linattn.reference.scan(q, k, v, **keywords),
            dict(q=q, k=k, v=v, **gates), _flops(sizes), _token_bytes(q, k, v, v, *gates.values()),
        )  # fmt: skip

    return build


def _attention(case, **options):
    def build(sizes):
        import linattn

        q, k, v = _tokens(sizes, np.random.default_rng(sizes.seed), False)
        return Work(
            case, sizes,
            lambda threads, form: linattn.attention(q, k, v, num_threads=threads, form=form, **options),
            lambda: linattn.reference.attention(q, k, v, **options),
            dict(q=q, k=k, v=v), _flops(sizes), _token_bytes(q, k, v, v),
        )  # fmt: skip

    return build


def _short(sizes):
    """Causal prompts, in the form that is chosen beside those that are not."""
    import linattn

    q, k, v = _tokens(sizes, np.random.default_rng(sizes.seed), False)
    options = dict(causal=True, feature_map="identity", normalize=False)
    run = lambda threads, form: linattn.attention(q, k, v, num_threads=threads, form=form, **options)  # noqa: E731
    return Work(
        "short", sizes, run, lambda: linattn.reference.attention(q, k, v, **options),
        dict(q=q, k=k, v=v), _flops(sizes), _token_bytes(q, k, v, v),
        beside={form: lambda threads, form=form: run(threads, form) for form in ("quadratic", "chunk:16", "state-tile")},
    )  # fmt: skip


def _short_many(sizes):
    """Many short sequences as a batch, packed, and their tokens as one sequence."""
    import linattn

    q, k, v = _tokens(sizes, np.random.default_rng(sizes.seed), False)
    out = np.empty_like(v)
    flat = [x.reshape(1, -1, *x.shape[2:]) for x in (q, k, v, out)]
    offsets = np.arange(0, sizes.batch * sizes.t + 1, sizes.t)

    def one_by(threads, **options):
        return linattn.scan(*flat[:3], out=flat[3], num_threads=threads, **options)

    return Work(
        "short-many", sizes,
        lambda threads, form: linattn.scan(q, k, v, out=out, num_threads=threads, form=form),
        lambda: linattn.reference.scan(q, k, v), dict(q=q, k=k, v=v), _flops(sizes), _token_bytes(q, k, v, v),
        beside={"packed": lambda threads: one_by(threads, cu_seqlens=offsets), "one sequence": one_by},
    )  # fmt: skip


def _decode(case, decay=None, delta=False):
    """One token: every step reads and writes the whole state."""

    def build(sizes):
        import linattn

        one = Sizes(sizes.d, 1, sizes.heads, sizes.batch, sizes.dtype, sizes.seed)
        rng = np.random.default_rng(sizes.seed)
        q, k, v = _tokens(one, rng, delta)
        keywords = {}
        if decay:
            shape = (sizes.batch, 1, sizes.heads, sizes.d)[: len(decay)]
            keywords["decay"] = np.full(shape, -0.01, np.float32)
        if delta:
            keywords |= dict(update="delta", beta=np.full((sizes.batch, 1, sizes.heads), 0.5, np.float32))
        like = np.zeros(0, DTYPES[sizes.dtype])
        state = linattn.State.zeros(sizes.batch, sizes.heads, sizes.d, sizes.d, like=like)
        footprint = state.S.nbytes
        return Work(
            case, one,
            lambda threads, form: state.step(q, k, v, num_threads=threads, form=form, **keywords),
            lambda: linattn.reference.scan(q, k, v, **keywords),
            dict(q=q, k=k, v=v), _flops(one), 2.0 * footprint, footprint,
        )  # fmt: skip

    return build


def _decode_softmax(sizes):
    """One query over a cache of T keys and values, all of which it reads; a head's
    lie side by side, as in caches of serving engines."""
    import linattn

    rng = np.random.default_rng(sizes.seed)
    q, k, v = _tokens(sizes, rng, False)
    q = np.ascontiguousarray(q[:, :1])
    k, v = (np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (k, v))
    return Work(
        "decode-softmax", sizes,
        lambda threads, form: linattn.attention(q, k, v, weights="softmax", num_threads=threads, form=form),
        lambda: linattn.reference.attention(q, k, v, weights="softmax"),
        dict(q=q, k=k, v=v), 4.0 * sizes.batch * sizes.t * sizes.heads * sizes.d, _token_bytes(k, v),
    )  # fmt: skip


def _mapped(case, make_map):
    """A scan under a feature map, which is made for the head size."""

    def build(sizes):
        return _scan(case, feature_map=make_map(sizes.d), scale=1.0)(sizes)

    return build


def _random_map(name, features):
    """Of `features` · d random features, the projection a constant of the case."""

    def make_map(d):
        import linattn

        return getattr(linattn.feature_maps, name)(linattn.random_projection(features * d, d))

    return make_map


def _gated(case, build):
    """Closed gates beside open ones."""

    def build_both(sizes):
        run, reference, moved = build(sizes, open=False)
        run_open, *_ = build(sizes, open=True)
        if case.startswith("gates-step"):
            sizes = replace(sizes, t=1)
        return Work(case, sizes, run, reference, flops=_flops(sizes), bytes=moved, run_open=run_open)

    return build_both


def _conv(case, channels_first):
    """The short convolution with silu, of heads · d channels and four weights, beside a copy
    of the same bytes."""

    def build(sizes):
        import linattn

        rng = np.random.default_rng(sizes.seed)
        channels, dtype = sizes.heads * sizes.d, DTYPES[sizes.dtype]
        x, out, copied = (np.zeros((sizes.batch, sizes.t, channels), dtype) for _ in range(3))
        x[...] = rng.standard_normal(x.shape)
        if channels_first:
            x, out = (np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2) for array in (x, out))
        w, b = (rng.standard_normal(shape).astype(dtype) for shape in ((channels, 4), (channels,)))
        whole, target = (array.reshape(-1, order="A").view(np.uint8) for array in (x if not channels_first else x.swapaxes(1, 2), copied))
        return Work(
            case, sizes,
            lambda threads, form: linattn.causal_conv1d(x, w, b, activation="silu", out=out, num_threads=threads),
            lambda: linattn.reference.causal_conv1d(x, w, b, activation="silu"),
            dict(x=x), 8.0 * x.size, _token_bytes(x, x), beside={"copy": lambda threads: np.copyto(target, whole)},
        )  # fmt: skip

    return build


def _flops(sizes):
    return 4.0 * sizes.batch * sizes.t * sizes.heads * sizes.d * sizes.d


def _token_bytes(*arrays):
    return float(sum(array.nbytes for array in arrays))


CASES = {
    "linear": _scan("linear"),
    "retnet": _scan("retnet", decay="H"),
    "scalar-decay": _scan("scalar-decay", decay="BTH"),
    "gate": _scan("gate", decay="BTHD"),
    "delta": _scan("delta", delta=True),
    "gated-delta": _scan("gated-delta", decay="BTH", delta=True),
    "kda": _scan("kda", decay="BTHD", delta=True),
    "dplr": _scan("dplr", decay="BTHD", dplr=True),
    "causal": _attention("causal", causal=True, feature_map="identity", normalize=False),
    "normalized": _scan("normalized", feature_map="elu", normalize=True),
    "exp": _scan("exp", feature_map="exp", normalize=True),
    "noncausal": _attention("noncausal", feature_map="identity", normalize=False),
    "short": _short,
    "short-many": _short_many,
    "softmax": _attention("softmax", causal=True, weights="softmax"),
    "conv": _conv("conv", False),
    "conv-channels-first": _conv("conv-channels-first", True),
    "decode-linear": _decode("decode-linear"),
    "decode": _decode("decode", "BTH"),
    "decode-gate": _decode("decode-gate", "BTHD"),
    "decode-delta": _decode("decode-delta", None, True),
    "decode-gated-delta": _decode("decode-gated-delta", "BTH", True),
    "decode-softmax": _decode_softmax,
    "map-identity": _mapped("map-identity", lambda d: "identity"),
    "map-relu": _mapped("map-relu", lambda d: "relu"),
    "map-elu": _mapped("map-elu", lambda d: "elu"),
    "map-exp": _mapped("map-exp", lambda d: "exp"),
    "map-favor": _mapped("map-favor", _random_map("favor", 1)),
    "map-favor-2d": _mapped("map-favor-2d", _random_map("favor", 2)),
    "map-fourier": _mapped("map-fourier", _random_map("random_fourier", 1)),
    **{name: _gated(name, build) for name, build in gates.CASES.items()},
}

CASES |= {f"train-{name}": training.case(f"train-{name}", CASES[name]) for name in training.FORWARD} | training.CASES

# Names that stand for several cases.
GROUPS = {
    "training": [name for name in CASES if name.startswith("train-")],
    "decoding": [name for name in CASES if name.startswith("decode")],
    "maps": [name for name in CASES if name.startswith("map-")],
    "gates": list(gates.CASES),
}


def make(case, sizes):
    """The work of a case at these sizes."""
    return CASES[case](sizes)
