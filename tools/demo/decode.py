"""One token at a time: a state of fixed size beside a growing cache of keys."""

from __future__ import annotations

import time

import numpy as np

import document
import linattn
import plots
from lives import difference
from report import milliseconds, size

HEADS, D = 8, 64
TOLERANCE = 1e-4


def run(report, text, positions, seconds, output):
    positions = [t for t in positions if t < len(text)]
    report.section("Decoding: the time that one more token takes")
    report.note(
        f"{HEADS} heads of {D} features, one thread; the median of calls at each position\n"
        "reading the cache: NumPy's maximum of its keys and values, which any softmax must read"
    )
    q, k, v = document.embed(text[: positions[-1] + 1], HEADS, D)
    linear = _Linear(q, k, v)
    softmax = _Softmax(q, k, v)
    times = {"causal": {}, "softmax": {}, "reading": {}}
    for t in positions:
        linear.advance_to(t)
        times["causal"][t] = _median_ms(lambda: linear.decode(t), seconds)
        times["softmax"][t] = _median_ms(lambda: softmax.decode(t), seconds)
        times["reading"][t] = _median_ms(lambda: softmax.read(t), seconds / 2)
    _check(report, linear, softmax, positions)
    state = 4 * HEADS * (D * D + D)
    rows = [
        [f"{t:,}", milliseconds(times["causal"][t]), milliseconds(times["softmax"][t]),
         milliseconds(times["reading"][t]), size(state), size(8 * HEADS * D * (t + 1))]
        for t in positions
    ]  # fmt: skip
    report.say()
    report.table(
        "Time per token, and what is kept between tokens",
        ["position", "linear", "softmax", "reading the cache", "state", "keys and values"],
        rows,
    )
    last = positions[-1]
    ratio, floor = (times[name][last] / times["causal"][last] for name in ("softmax", "reading"))
    finding = (
        f"at position {last:,} a token of softmax takes {ratio:,.0f} times as long as one of linear "
        f"attention; reading its cache alone takes {floor:,.0f} times as long"
    )
    picture = output / "decode.png"
    plots.decode(picture, times, finding, f"Time of one token, {HEADS} heads of {D} features, one thread")
    report.picture(picture, finding)


class _Linear:
    """A state that every token updates in place."""

    options = {"feature_map": "elu", "scale": 1.0, "num_threads": 1}

    def __init__(self, q, k, v):
        self.tokens = (q, k, v)
        self.state = linattn.State.zeros(1, HEADS, D, D, normalize=True)
        self.kept, self.position = self.state, 0
        self.out = np.empty_like(v[:, :1])

    def advance_to(self, t):
        """Reads the document up to token t, t excluded."""
        self.state = self.kept.copy()  # without what measuring wrote
        part = [x[:, self.position : t] for x in self.tokens]
        self.state.step(*part, **self.options)
        self.kept = self.state.copy()
        self.position = t

    def decode(self, t):
        q, k, v = self.tokens
        now = slice(t, t + 1)
        return self.state.step(q[:, now], k[:, now], v[:, now], out=self.out, **self.options)

    def decode_once(self, t):
        """The output of token t alone, with any measurements in between."""
        self.state = self.kept.copy()
        return self.decode(t).copy()


class _Softmax:
    """Keys and values of all tokens so far, of which a call sees slices."""

    def __init__(self, q, k, v):
        # Head by head, as a cache for decoding is laid out; no call copies it.
        self.q = q
        self.k, self.v = (
            np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (k, v)
        )
        self.out = np.empty_like(v[:, :1])

    def decode(self, t):
        return linattn.attention(
            self.q[:, t : t + 1], self.k[:, : t + 1], self.v[:, : t + 1], weights="softmax",
            out=self.out, num_threads=1,
        )  # fmt: skip

    def read(self, t):
        """Nothing but the memory traffic of `decode`."""
        return max(float(x[:, : t + 1].max()) for x in (self.k, self.v))


def _median_ms(call, seconds):
    call()
    elapsed, until = [], time.perf_counter() + seconds
    while len(elapsed) < 5 or (time.perf_counter() < until and len(elapsed) < 2000):
        started = time.perf_counter()
        call()
        elapsed.append((time.perf_counter() - started) * 1e3)
    return float(np.median(elapsed))


def _check(report, linear, softmax, positions):
    """The last position again, against the oracle over the whole document."""
    t = positions[-1]
    q, k, v = (x[:, : t + 1] for x in linear.tokens)
    exact = linattn.reference.attention(q[:, -1:], k, v)
    error = difference(linear.decode_once(t), exact)
    report.check(f"linear decoding of token {t:,}", error <= TOLERANCE, f"differs by {error:.1e}")
    exact = linattn.reference.attention(q[:, -1:], k, v, weights="softmax")
    error = difference(softmax.decode(t), exact)
    report.check(f"softmax decoding of token {t:,}", error <= TOLERANCE, f"differs by {error:.1e}")
