"""The pictures."""

from __future__ import annotations

import textwrap

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

from forms import FORMS  # noqa: E402
from report import milliseconds, size  # noqa: E402

_INK = "#222222"
_PALE = "#8a8a8a"

plt.rcParams.update(
    {
        "font.size": 12,
        "axes.labelsize": 12,
        "axes.titlesize": 13,
        "axes.titlelocation": "left",
        "axes.edgecolor": _PALE,
        "axes.labelcolor": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": "#e6e6e6",
        "xtick.color": _INK,
        "ytick.color": _INK,
        "figure.dpi": 100,
        "savefig.dpi": 150,
        "lines.linewidth": 2,
        "lines.markersize": 5,
    }
)


def _tokens(n):
    return f"{n // 1024}k" if n >= 1024 and n % 1024 == 0 else f"{n:,}"


def _log_axes(axes, ticks, unit):
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(ticks, [_tokens(n) for n in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: unit(value)))
    axes.tick_params(length=0)


def _title(figure, text, width):
    figure.suptitle(
        "\n".join(textwrap.wrap(text[0].upper() + text[1:], width)), x=0.01, ha="left", weight="bold", fontsize=14
    )


def _label_ends(axes, labels):
    """Writes (x, y, text, color) right of the lines' ends, kept apart."""
    low, high = axes.get_ylim()
    to_axes = axes.transScale.transform
    bottom, top = to_axes((1, low))[1], to_axes((1, high))[1]
    places = []
    for x, y, text, color in sorted(labels, key=lambda label: label[1]):
        place = (to_axes((1, y))[1] - bottom) / (top - bottom)
        if places:
            place = max(place, places[-1] + 0.055 * (1 + text.count("\n")))
        places.append(place)
        axes.annotate(
            text, (1.015, place), xycoords="axes fraction", color=color, va="center", annotation_clip=False
        )


def scaling(path, points, lengths, finding, state_bytes):
    """Time and memory over the number of tokens; dashed is not measured."""
    figure, (time, memory) = plt.subplots(1, 2, figsize=(15, 6.5))
    ends = []
    for name, form in FORMS.items():
        measured = {n: p for n, p in points[name].items() if isinstance(p, dict)}
        if not measured:
            continue
        last = max(measured)
        end = measured[last]["ms"]
        time.plot(list(measured), [p["ms"] for p in measured.values()], "o-", color=form.color)
        if last < lengths[-1]:
            rest = [n for n in lengths if n >= last]
            predicted = [end * (n / last) ** form.growth for n in rest]
            time.plot(rest, predicted, "--", color=form.color, linewidth=1.2)
            end = predicted[-1]
        ends.append((lengths[-1], end, form.short, form.color))
    _log_axes(time, lengths[::2], milliseconds)
    time.set_xlabel("tokens")
    time.set_title("Time of one call (dashed: extrapolated, not measured)")
    _label_ends(time, ends)
    _memory(memory, points, lengths, state_bytes)
    _title(figure, finding, 100)
    figure.tight_layout(rect=(0, 0, 0.99, 0.98), w_pad=2)
    figure.savefig(path)
    plt.close(figure)


# Zero is drawn here: a logarithmic axis has none.
_LEAST = 4096


def _memory(axes, points, lengths, state_bytes):
    labels, formula = [], {"color": _INK, "linestyle": ":", "linewidth": 1.4}
    for name, form in FORMS.items():
        measured = {n: p["bytes"] for n, p in points[name].items() if isinstance(p, dict)}
        values = {n: max(value, _LEAST) for n, value in measured.items() if value is not None}
        if not values:
            continue
        axes.plot(list(values), list(values.values()), "o-", color=form.color)
        last = max(values)
        if name == "stored":
            axes.annotate(
                form.short, (last, values[last]), xytext=(10, -6), textcoords="offset points", color=form.color
            )
        else:
            labels.append((last, values[last], form.short, form.color))
    weights = [4 * n * n for n in lengths]
    axes.plot(lengths, weights, **formula)
    axes.plot(lengths, [state_bytes] * len(lengths), **formula)
    labels += [(lengths[-1], weights[-1], "4N² bytes:\nall weights", _INK)]
    labels += [(lengths[-1], state_bytes, "4(d² + d) bytes:\nthe state", _INK)]
    axes.set_ylim(_LEAST / 2, weights[-1] * 4)
    _log_axes(axes, lengths[::2], size)
    axes.set_yticks([10.0**e for e in range(4, 12) if 10.0**e < weights[-1] * 4])
    axes.set_xlabel("tokens")
    axes.set_title("Memory beside inputs and output (dotted: formulas)")
    _label_ends(axes, labels)


def crossover(path, times, lengths, measured, predicted, finding, subtitle):
    """The two orders around the length where they cost the same."""
    figure, axes = plt.subplots(figsize=(9, 6))
    series = {
        "quadratic": ("(φ(Q)φ(K)ᵀ)V", FORMS["stored"].color),
        "reassociated": ("φ(Q)(φ(K)ᵀV)", FORMS["noncausal"].color),
        "scan": ("causal scan", FORMS["causal"].color),
        "causal softmax": ("causal softmax", FORMS["softmax"].color),
    }
    for name, (_, color) in series.items():
        axes.plot(lengths, [times[name][n] for n in lengths], "o-", color=color)
    _log_axes(axes, [n for n in lengths if n & (n - 1) == 0], milliseconds)
    _label_ends(axes, [(lengths[-1], times[name][lengths[-1]], *label) for name, label in series.items()])
    marks = [("measured", measured, "-"), ("cost model", predicted, ":")]
    marks = sorted((mark for mark in marks if mark[1] is not None), key=lambda mark: mark[1])
    for (text, value, style), side in zip(marks, ("right", "left")):
        axes.axvline(value, color=_INK, linestyle=style, linewidth=1.2)
        axes.annotate(
            f" {text}: {value:.0f} ", (value, axes.get_ylim()[1]), ha=side, va="top", color=_INK
        )
    axes.set_xlabel("tokens")
    axes.set_title(subtitle)
    _title(figure, finding, 75)
    figure.tight_layout(rect=(0, 0, 0.97, 0.98))
    figure.savefig(path)
    plt.close(figure)


def decode(path, times, finding, subtitle):
    """The time of one more token over its position."""
    figure, axes = plt.subplots(figsize=(9.5, 6))
    ends = []
    for name, label, style in (
        ("causal", "linear: state", "o-"),
        ("softmax", "softmax: cache", "o-"),
        ("reading", "reading the cache", "--"),
    ):
        color = FORMS.get(name, FORMS["softmax"]).color
        positions = list(times[name])
        axes.plot(positions, list(times[name].values()), style, color=color, linewidth=2 if style == "o-" else 1.2)
        ends.append((positions[-1], times[name][positions[-1]], label, color))
    values = [value for series in times.values() for value in series.values()]
    axes.set_ylim(min(values) / 2, max(values) * 2)
    ticks = [t for t in (100, 200, 500, 1000, 2000, 5000, 10000) if positions[0] <= t <= positions[-1]]
    _log_axes(axes, ticks, milliseconds)
    axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
    _label_ends(axes, ends)
    axes.set_xlabel("position of the token")
    axes.set_title(subtitle)
    _title(figure, finding, 75)
    figure.tight_layout(rect=(0, 0, 0.99, 0.98))
    figure.savefig(path)
    plt.close(figure)
