"""The pictures of a report, by matplotlib: SVG inside of the page, SVG, PNG or PDF as files."""

from __future__ import annotations

import functools
import io
import pathlib
import re
import textwrap

import numpy as np

from . import _measures

__all__ = ["Figure"]

# Colours that the page replaces by those of its theme.
INK, MUTED, LINE = "#1b1f25", "#5c6673", "#d7dce2"
# Okabe and Ito's, which colour-blind readers can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_THEME = {INK: "currentColor", MUTED: "var(--muted)", LINE: "var(--line)", COLORS[0].lower(): "var(--blue)"}
WIDTH = 4.2  # inches: at the width of a phone, type has its own size

_STYLE = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.labelsize": 9, "axes.titlesize": 9, "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5, "legend.fontsize": 8.5, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": LINE,
    "grid.linewidth": 0.6, "lines.linewidth": 1.8, "lines.markersize": 4, "legend.frameon": False,
    "legend.labelcolor": INK, "svg.fonttype": "none", "image.interpolation": "nearest",
}  # fmt: skip


class Figure:
    """One picture of a report.

    Attributes:
      name: its key in `Report.figures`.
      title: its message, a sentence.
      caption: how to read it and how it was made.
    """

    def __init__(self, name, title, caption, draw, height=3.0):
        self.name, self.title, self.caption = name, title, caption
        self._draw, self._height = draw, height

    def save(self, path, dpi=200):
        """Writes the picture with its title; the ending of `path` says how: .svg, .png or .pdf.

        Raises:
          ValueError: another ending.
        """
        path = pathlib.Path(path)
        if path.suffix not in (".svg", ".png", ".pdf"):
            raise ValueError(f"path: expected an ending of .svg, .png or .pdf, but got {path.name}")
        lines = textwrap.wrap(self.title, 54)
        self._write(path, path.suffix[1:], lines, dpi=dpi, facecolor="white")

    def _write(self, target, kind, lines=(), **options):
        import matplotlib
        from matplotlib.figure import Figure as Canvas

        date = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
        with matplotlib.rc_context({**_STYLE, "svg.hashsalt": self.name}):
            above = 0.2 * len(lines)
            canvas = part = Canvas(figsize=(WIDTH, self._height + above), layout="constrained")
            if lines:
                head, part = canvas.subfigures(2, 1, height_ratios=(above, self._height))
                head.text(0.01, 0.5, "\n".join(lines), ha="left", va="center", fontsize=9.5, weight="bold")
            self._draw(part)
            canvas.savefig(target, format=kind, metadata={date: None} if date else None, **options)

    @functools.cached_property
    def inline(self):
        """The SVG element for a page: with its theme's colours, and names that no other has."""
        text = io.StringIO()
        self._write(text, "svg", transparent=True)
        svg = text.getvalue()
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
        name = re.sub(r"\W", "-", self.name)
        svg = re.sub(r'\bid="', f'id="{name}-', svg)
        svg = re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg)
        # Without a fill, text is black.
        svg = re.sub(r'<text style="(?![^"]*fill:)', f'<text style="fill: {INK}; ', svg)
        for color, themed in _THEME.items():
            svg = svg.replace(color, themed)
        svg = svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
        svg = re.sub(r'<svg([^>]*?) width="[^"]*"', r"<svg\1", svg, count=1)
        svg = re.sub(r'<svg([^>]*?) height="[^"]*"', r"<svg\1", svg, count=1)
        return svg.replace("<svg", f'<svg role="img" aria-label="{_escape(self.title)}"', 1)


def _escape(text):
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


# ----------------------------------------------------------------------------
# Axes
# ----------------------------------------------------------------------------


def count(value):
    """Tokens and numbers as people write them: 512, 4k, 1M."""
    for unit, size in (("M", 1 << 20), ("k", 1 << 10)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:g}"


def amount(value, unit):
    """Three digits with a decimal prefix: 1.07 GB."""
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def times_as_many(value):
    """A ratio with two digits: 1.4, 34,000."""
    digits = 1 - int(np.floor(np.log10(max(value, 1e-30))))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def _log_counts(axis, values):
    axis.set_major_locator(_locator("FixedLocator", values))
    axis.set_major_formatter(lambda value, _: count(value))
    axis.set_minor_locator(_locator("NullLocator"))


def _amounts(axis, unit):
    axis.set_major_locator(_locator("LogLocator", numticks=7))
    axis.set_major_formatter(lambda value, _: amount(value, unit))
    axis.set_minor_locator(_locator("NullLocator"))


def _locator(name, *arguments, **options):
    from matplotlib import ticker

    return getattr(ticker, name)(*arguments, **options)


def _legend(canvas, axes):
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        columns = 2 if max(map(len, labels)) < 24 else 1
        canvas.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.6, columnspacing=1.2)


# ----------------------------------------------------------------------------
# The pictures
# ----------------------------------------------------------------------------


def _matrix(canvas, axes, matrix, title, shrink=0.9):
    signed = matrix.min() < -1e-6 * np.abs(matrix).max()
    top = np.quantile(np.abs(matrix[np.tril_indices(len(matrix))]), 0.995) or 1.0
    limits = {"cmap": "RdBu_r", "vmin": -top, "vmax": top} if signed else {"cmap": "viridis", "vmin": 0, "vmax": top}
    image = axes.imshow(matrix, **limits)
    axes.grid(False)
    axes.set_title(title, loc="left")
    axes.set_xlabel("key token")
    bar = canvas.colorbar(image, ax=axes, location="bottom", shrink=shrink, aspect=22, pad=0.02)
    bar.set_label("weight")
    bar.outline.set_visible(False)
    bar.locator = _locator("MaxNLocator", 3)
    bar.update_ticks()


def weights(name, call, matrix, softmax):
    if call.is_softmax:
        return _softmax_weights(name, call, matrix)
    bits = [_measures.entropy(w[None])[0].mean() for w in (matrix, softmax)]
    mine, others = (round(2**number) for number in bits)
    wide = "as many tokens as" if mine == others else f"{'more' if mine > others else 'fewer'} tokens than"
    title = f"{call.title}: a token looks at {wide} softmax would ({mine} beside {others})"

    def draw(canvas):
        left, right = canvas.subplots(1, 2, sharey=True)
        _matrix(canvas, left, matrix, call.name)
        _matrix(canvas, right, softmax, "softmax")
        left.set_ylabel("query token")

    caption = (
        f"Head 0. Left: the matrix that {call.name} multiplies values by, found by giving it the identity as values. "
        "Right: softmax(QKᵀ/√D) of the same queries and keys. The numbers in the title are 2 to the mean entropy of a row. "
        "Colours end at the 99.5th percentile; weights with signs are red and blue."
    )
    return Figure(name, title, caption, draw, height=2.95)


def _softmax_weights(name, call, matrix):
    tokens = 2 ** _measures.entropy(matrix[None])[0].mean()

    def draw(canvas):
        axes = canvas.subplots()
        _matrix(canvas, axes, matrix, "softmax", shrink=0.42)
        axes.set_ylabel("query token")

    caption = "Head 0. The number in the title is 2 to the mean entropy of a row. Colours end at the 99.5th percentile."
    return Figure(name, f"{call.title}: a token looks at {tokens:.0f} tokens", caption, draw, height=2.95)


def entropies(layers):
    """`layers`: (label, bits of every token, bits of softmax's)."""
    means = [bits.mean() for _, bits, _ in layers]
    wide, narrow = (layers[pick(means)][0] for pick in (np.argmax, np.argmin))
    title = f"{wide} looks at the most tokens, {narrow} at the fewest" if len(layers) > 1 else f"{wide}: {means[0]:.1f} bits in a row of weights"

    def draw(canvas):
        axes = canvas.subplots()
        T = max(len(bits) for _, bits, _ in layers)
        axes.plot(np.log2(np.arange(1, T + 1)), color=MUTED, linestyle=":", linewidth=1.2, label="all tokens alike")
        for (label, bits, softmax), color in zip(layers, COLORS * len(layers)):
            axes.plot(bits, color=color, label=label)
            if softmax is not None:
                axes.plot(softmax, color=color, linestyle="--", linewidth=0.9, alpha=0.8)
        axes.set_xlabel("query token")
        axes.set_ylabel("entropy of its weights (bits)")
        axes.set_ylim(bottom=0)
        _legend(canvas, axes)

    caption = (
        "Mean over heads of the entropy of a query's weights, taken as shares of |weight|. Dashed: softmax of the same queries "
        "and keys. Dotted: the most there can be, log₂ of the tokens so far."
    )
    return Figure("entropy", title, caption, draw, height=2.8 + 0.17 * len(layers))


def ranks(layers):
    """`layers`: (label, rank, softmax's rank or None, size of a key or None)."""
    lowest = min(layers, key=lambda layer: layer[1])
    title = f"The weights of {lowest[0]} have the lowest effective rank, {lowest[1]:.0f}"
    if len(layers) == 1:
        beside = "" if lowest[2] is None else f", that of softmax {lowest[2]:.0f}"
        title = f"{lowest[0]}: its weights have the effective rank {lowest[1]:.0f}{beside}"

    def draw(canvas):
        axes = canvas.subplots()
        places = np.arange(len(layers))[::-1]
        axes.barh(places + 0.19, [layer[1] for layer in layers], 0.36, color=COLORS[0], label="its weights")
        beside = [(place, layer[2]) for place, layer in zip(places, layers) if layer[2] is not None]
        if beside:
            axes.barh([p - 0.19 for p, _ in beside], [r for _, r in beside], 0.36, color=COLORS[5], label="softmax of its queries and keys")
        bounds = [(place, layer[3]) for place, layer in zip(places, layers) if layer[3] is not None]
        if bounds:
            axes.scatter([size for _, size in bounds], [place for place, _ in bounds], marker="|", s=260, color=INK, zorder=3, label="size of a key")
        axes.set_yticks(places, [layer[0].replace(" · ", "\n") for layer in layers])
        axes.set_ylim(-0.5, len(layers) - 0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel("effective rank")
        _legend(canvas, axes)

    caption = (
        "exp of the entropy of the singular values, mean over heads (Roy and Vetterli, 2007). Without a mask, weights of a state of "
        "K×V have at most the rank K; causal masks and decays raise it."
    )
    return Figure("rank", title, caption, draw, height=1.3 + 0.45 * len(layers))


def state(name, call, states):
    norms = np.linalg.norm(states, axis=(1, 2))
    grows = norms[-1] / max(norms[: max(1, len(norms) // 4)].max(), 1e-30)
    title = f"{call.title}: its state {'still grows' if grows > 1.5 else 'has settled'} after {len(states)} tokens"

    def draw(canvas):
        picks = np.unique(np.linspace(0, len(states) - 1, 4).astype(int))
        top = np.abs(states).max() or 1.0
        panels = np.atleast_1d(canvas.subplots(1, len(picks), sharey=True))
        for axes, t in zip(panels, picks):
            image = axes.imshow(states[t], cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto")
            axes.set_title(f"token {t + 1}", loc="left")
            axes.grid(False)
        panels[0].set_ylabel("key feature")
        canvas.supxlabel("value feature", fontsize=9, color=INK)
        bar = canvas.colorbar(image, ax=list(panels), shrink=0.9, aspect=18)
        bar.outline.set_visible(False)

    caption = f"The state of head 0, {states.shape[1]}×{states.shape[2]} numbers after any number of tokens. Move the slider to step."
    return Figure(name, title, caption, draw, height=2.3)


def features(errors, call):
    features = np.array(_measures.FEATURES)
    mean = errors["orthogonal"].mean(1)
    slope = -np.polyfit(np.log(features), np.log(np.maximum(mean, 1e-30)), 1)[0]
    title = f"Four times the random features make {4**slope:.1f} times less error"

    def draw(canvas):
        axes = canvas.subplots()
        for (kind, values), color in zip(errors.items(), (COLORS[1], COLORS[0])):
            low, high = np.quantile(values, (0.1, 0.9), axis=1)
            axes.fill_between(features, low, high, color=color, alpha=0.2, linewidth=0)
            axes.plot(features, values.mean(1), marker="o", color=color, label={"iid": "independent rows"}.get(kind, "orthogonal rows"))
        axes.set_xscale("log")
        axes.set_yscale("log")
        _log_counts(axes.xaxis, features)
        axes.yaxis.set_major_locator(_locator("LogLocator", subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(_locator("NullFormatter"))
        axes.set_xlabel("random features m of a head")
        axes.set_ylabel("error beside softmax (relative)")
        _legend(canvas, axes)

    draws = next(iter(errors.values())).shape[1]
    caption = (
        f"FAVOR+ on the queries, keys and values of {call.title}, head 0: ‖o − o of softmax‖ / ‖o of softmax‖. "
        f"Lines are means of {draws} draws of the features, bands hold 80 % of them. An unbiased estimate falls as 1/√m."
    )
    return Figure("features", title, caption, draw)


def curves(name, title, caption, xlabel, lines, ylabel="read rightly (share)"):
    """`lines`: {label: (x, y)} or {label: (x, y, low, high)}."""

    def draw(canvas):
        axes = canvas.subplots()
        for i, (label, (x, y, *band)) in enumerate(lines.items()):
            axes.plot(x, y, marker="os^Dvp"[i % 6], color=COLORS[i % 6], label=label, clip_on=False, zorder=3)
            if band:
                axes.fill_between(x, *band, color=COLORS[i % 6], alpha=0.2, linewidth=0)
        axes.set_xscale("log")
        _log_counts(axes.xaxis, sorted({value for x, *_ in lines.values() for value in x}))
        axes.set_ylim(0, 1)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        _legend(canvas, axes)

    return Figure(name, title, caption, draw)


def _ends(axes, x, series):
    for y, color, *style in series:
        axes.plot(x, y, color=color, linestyle=style[0] if style else "-", label=style[1])


def memory(growth, dtype):
    n = np.array(_measures.CONTEXTS)
    states, cache = growth.states[-1], growth.cache
    crossing = n[np.argmax(growth.all_softmax > growth.states)] if states and (growth.all_softmax > growth.states).any() else None
    saving = growth.all_softmax[-1] / max(growth.memory[-1], 1)
    if not states:
        title = f"The cache takes {amount(growth.memory[-1], 'B')} at {count(n[-1])} tokens"
    else:
        title = f"At {count(n[-1])} tokens, memory is {times_as_many(saving)} times less than with softmax in each layer"

    def draw(canvas):
        axes = canvas.subplots()
        _ends(axes, n, [(growth.all_softmax, COLORS[1], "--", "softmax in each layer: keys and values")])
        if cache.any():
            axes.plot(n, cache, color=COLORS[5], label="this model: keys and values")
        if states:
            axes.plot(n, growth.states, color=COLORS[2], label="this model: states")
            axes.plot(n, growth.memory, color=COLORS[0], linewidth=2.6, alpha=0.6, label="this model: all")
        axes.set_xscale("log")
        axes.set_yscale("log")
        _log_counts(axes.xaxis, n[::2])
        _amounts(axes.yaxis, "B")
        axes.set_xlabel("context (tokens)")
        axes.set_ylabel("memory of one sequence (bytes)")
        _legend(canvas, axes)

    caption = f"Of one sequence. Keys and values in {dtype}, states in float32."
    if crossing:
        caption += f" States take more than keys and values would in each layer below about {count(crossing)} tokens."
    return Figure("memory", title, caption, draw, height=3.4)


def times(growth, parameters, peak, measured):
    n = np.array(_measures.CONTEXTS)
    ratio = growth.all_softmax_flops[-1] / growth.flops[-1]
    title = f"At {count(n[-1])} tokens, a prefill takes {times_as_many(ratio)} times fewer operations than with softmax in each layer"
    if ratio < 1.05:
        title = f"A prefill of {count(n[-1])} tokens takes {amount(growth.flops[-1], 'FLOP')}"
    mixing = growth.all_softmax_flops - 2 * parameters * n
    half = n[np.argmax(mixing > 2 * parameters * n)] if parameters and (mixing > 2 * parameters * n).any() else None

    def draw(canvas):
        axes = canvas.subplots()
        _ends(axes, n, [(growth.all_softmax_flops / peak / 1e9, COLORS[1], "--", "softmax in each layer, at the peak"),
                        (growth.flops / peak / 1e9, COLORS[0], "-", "this model, at the peak")])  # fmt: skip
        if measured:
            axes.plot(*zip(*measured), "o", color=INK, label="this model, measured here")
        axes.set_xscale("log")
        axes.set_yscale("log")
        _log_counts(axes.xaxis, [*[t for t, _ in measured[:1] if t < n[0]], *n[::2]])
        axes.yaxis.set_major_locator(_locator("FixedLocator", [1e-6, 1e-4, 1e-2, 1, 60, 3600, 86400]))
        axes.yaxis.set_major_formatter(lambda value, _: _seconds(value))
        axes.yaxis.set_minor_locator(_locator("NullLocator"))
        axes.set_xlabel("prompt (tokens)")
        axes.set_ylabel("time of a prefill")
        _legend(canvas, axes)

    caption = (
        f"Lines: operations by linattn.costs and two per parameter ({count_parameters(parameters)}) and token, at the {peak:.0f} GFLOP/s "
        "that a loop of multiply-adds reaches on one thread here, below which no time on one thread can be. Points: the whole model, least of repeated calls."
    )
    if half:
        caption += f" Softmax in each layer would take more operations than all projections from about {count(half)} tokens on."
    return Figure("time", title, caption, draw, height=3.4)


def count_parameters(parameters):
    return amount(parameters, "").strip() + (" parameters" if parameters < 1000 else "")


def _seconds(value):
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:
            return f"{value / size:.2g} {unit}" if value / size < 100 else f"{value / size:.0f} {unit}"
    return f"{value / 1e-9:.3g} ns"


def roofline(ceilings, points):
    peak, copy = ceilings
    best = max(points, key=lambda point: point[2] / min(peak, copy * point[1]))
    share = best[2] / min(peak, copy * best[1])
    title = f"{best[0].title} comes closest to this machine's ceiling: {100 * share:.0f} %"
    if share > 1:
        title = f"{best[0].title} is {times_as_many(share)} times above the ceiling of memory: its operands lie in a cache"

    def draw(canvas):
        axes = canvas.subplots()
        xs = [peak / copy, *(point[1] for point in points)]
        ends = [min(xs) / 2, max(xs) * 3]
        roof = [ends[0], peak / copy, ends[1]]
        axes.plot(roof, [min(peak, copy * x) for x in roof], color=INK, linewidth=1.2)
        axes.text(ends[1], peak * 1.06, f"multiply-adds: {peak:.0f} GFLOP/s", ha="right", va="bottom", fontsize=8.5, color=INK)
        for (call, x, y), color, marker in zip(points, COLORS * len(points), "os^Dvp" * len(points)):
            axes.scatter([x], [y], color=color, marker=marker, s=42, zorder=3, label=call.title)
        axes.set_xscale("log")
        axes.set_yscale("log")
        # No marker lies on an edge.
        axes.set_ylim(0.7 * min(copy * ends[0], *(point[2] for point in points)), peak * 2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(_locator("LogLocator", subs=(1, 2, 5)))
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_minor_formatter(_locator("NullFormatter"))
        axes.set_xlabel("useful operations per byte of operands (FLOP/B)")
        axes.set_ylabel("GFLOP/s")
        _legend(canvas, axes)

    caption = (
        f"One thread. Line: the multiply-adds of a loop, and a copy of 64 MiB at {copy:.0f} GB/s. Points: each call of linattn with the "
        "report's own tokens, by the operations of the recurrence or of softmax; gates, norms and the packing of rows are not counted."
    )
    return Figure("roofline", title, caption, draw, height=3.2)
