"""The ways to mix a document's tokens that the demo measures."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

import linattn


@dataclass(frozen=True)
class Form:
    title: str
    short: str
    color: str
    growth: int  # of time: N to this power
    causal: bool = False


FORMS = {
    "stored": Form("quadratic, non-causal, N×N stored", "N×N stored", "#6b6b6b", 2),
    "softmax": Form("softmax, causal, tiled", "softmax, causal", "#d55e00", 2, causal=True),
    "noncausal": Form("linear, non-causal: φ(Q)(φ(K)ᵀV)", "linear, non-causal", "#009e73", 1),
    "causal": Form("linear, causal: a scan", "linear, causal", "#0072b2", 1, causal=True),
}


def make(name, threads=1):
    """A function of q, k, v [1, T, 1, D] and out that runs a form."""
    if name == "stored":
        kernel = linattn.compile(pathlib.Path(__file__).with_name("scaling.mlir"))

        def run(q, k, v, out):
            kernel(q[0, :, 0], k[0, :, 0], v[0, :, 0], out=out[0, :, 0], num_threads=threads)
            return out

        return run
    options = _options(name)

    def run(q, k, v, out):
        return linattn.attention(q, k, v, out=out, num_threads=threads, **options)

    return run


def oracle(name, q, k, v):
    return linattn.reference.attention(q, k, v, **_options(name))


def _options(name):
    weights = "softmax" if name == "softmax" else "linear"
    return {"weights": weights, "causal": FORMS[name].causal}
