"""The page of a report: one file of HTML that loads nothing."""

from __future__ import annotations

import base64
import html
import json
import pathlib
import re

import numpy as np

from .. import __version__

__all__ = ["write"]

# Headings, and which pictures are below each; a layer's name may follow that of a picture.
_SECTIONS = (
    ("Weights", "How much of each token's value is in each output.", ("weights", "entropy", "rank")),
    ("State", "All that a recurrent layer knows of its past.", ("state",)),
    ("Quality", "Estimates of softmax, and reading back from a state.", ("features", "copy", "recall")),
    ("Cost", "Memory and time of a model, and the rate of its calls.", ("memory", "time", "roofline")),
)
_FORM = re.compile(r"passed: select-form: ([^:]+)")


def write(report):
    """The page as text."""
    body = "".join(_section(report, *section) for section in _SECTIONS)
    left_out = "".join(f"<li><b>{_text(name)}</b>: {_text(why)}</li>" for name, why in report.left_out.items())
    if left_out:
        body += f'<section id="left-out"><h2>Left out</h2><ul>{left_out}</ul></section>'
    page = _resource("page.html")
    parts = {
        "TITLE": _text(report.title), "FACTS": _text(" · ".join(report.facts)), "VERSION": _text(__version__),
        "STYLE": _resource("page.css"), "LAYERS": _layers(report), "BODY": body, "SCRIPT": _resource("page.js"),
        "PALETTE": _palette(),
    }  # fmt: skip
    return re.sub("|".join(f"@{name}@" for name in parts), lambda found: parts[found[0][1:-1]], page)


def _resource(name):
    return pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8")


def _text(text):
    return html.escape(str(text))


def _section(report, heading, text, names):
    pictures = [figure for name, figure in report.figures.items() if name.split(".")[0] in names]
    if not pictures:
        return ""
    cards = "".join(_card(report, figure) for figure in pictures)
    return f'<section><h2>{heading}</h2><p>{text}</p><div class="cards">{cards}</div></section>'


def _card(report, figure):
    states = report.states.get(figure.name)
    stepper = "" if states is None else _stepper(states)
    return (
        f'<figure data-name="{_text(figure.name)}"><h3>{_text(figure.title)}</h3>{stepper}'
        f'<div class="picture"{" hidden" if stepper else ""}>{figure.inline}</div>'
        f'<figcaption>{_text(figure.caption)} <button type="button" class="save">SVG</button></figcaption></figure>'
    )


def _stepper(states):
    """A slider over states, of bytes: 127 is the largest number of all."""
    top = float(np.abs(states).max()) or 1.0
    numbers = np.round(127 * states / top).astype(np.int8)
    data = {
        "shape": states.shape, "top": top, "norms": [round(float(x), 6) for x in np.linalg.norm(states, axis=(1, 2))],
        "numbers": base64.b64encode(numbers.tobytes()).decode(),
    }  # fmt: skip
    return (
        '<div class="stepper"><canvas role="img" aria-label="the state"></canvas>'
        '<p class="axes">rows: key features, columns: value features</p>'
        f'<label>after token <output>1</output><input type="range" min="1" max="{len(states)}" value="{len(states)}"></label>'
        f'<p class="norm"></p><script type="application/json">{json.dumps(data)}</script></div>'
    )


def _palette():
    """256 colours from blue over white to red."""
    import matplotlib

    colors = matplotlib.colormaps["RdBu_r"](np.linspace(0, 1, 256))[:, :3]
    return base64.b64encode(np.round(255 * colors).astype(np.uint8).tobytes()).decode()


def _layers(report):
    rows = []
    for call in report.calls:
        remarks = call.explain()
        form = next((found[1] for line in remarks if (found := _FORM.search(line))), remarks[0])
        heads, _, K, V = call.sizes
        rows.append(
            f"<details><summary><b>{_text(call.title)}</b> <code>{_text(call.name)}</code> "
            f"<span>{heads} heads, {K}×{V}: {_text(form)}</span></summary>"
            f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in remarks)}</ul></details>"
        )
    return "".join(rows)
