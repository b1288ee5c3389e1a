"""`report`: what a call or a model does, in pictures."""

from __future__ import annotations

import functools
import importlib.util
import pathlib

import numpy as np

from . import _calls, _figures, _measures, _page

__all__ = ["Report", "report"]

TOKENS = 128
# Layers with pictures of their own; the others are in the pictures of all layers.
_PICTURED, _COMPARED = 4, 12


class Report:
    """A page of pictures, and the pictures.

    Attributes:
      html: the page: one file, which loads nothing.
      figures: {name: `Figure`}: the pictures that the page shows, `figures["entropy"].save("entropy.svg")`.
      left_out: {name: why}: pictures that could not be made.
      calls: what was recorded.
    """

    def __init__(self, title, calls):
        self.title, self.calls = title, calls
        self.figures, self.left_out, self.states, self.facts = {}, {}, {}, []

    @functools.cached_property
    def html(self):
        return _page.write(self)

    def save(self, path):
        """Writes the page to a file."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self):
        return f"Report({self.title}: {', '.join(self.figures)})"

    def _draw(self, name, make):
        """Keeps the picture that `make()` returns, or the reason why there is none."""
        try:
            self.figures[name] = make()
        except (ValueError, TypeError, NotImplementedError) as error:
            self.left_out[name] = str(error)


def report(model_or_function, *args, curves=None, title=None, **kwargs):
    """A page of pictures of a call or of a model.

        >>> linattn.report(linattn.gla, q, k, v, g).save("gla.html")
        >>> page = linattn.report(model)              # a torch.nn.Module
        >>> page.figures["entropy"].save("entropy.svg")

    The call, or the model's forward pass, runs once while its recurrences and softmax attentions are
    recorded, then they run again on what was recorded. The page shows the implicit weights of each layer
    beside softmax's, their entropy and effective rank, the state token by token, the error of random
    features, copying and recall by the rule of update, memory and time against the context, each call's
    form with the compiler's reasons, and the roofline.

    Args:
      model_or_function: a function of linattn, a function that calls some, or a module of PyTorch: of
        `linattn.torch.nn`, or a model of transformers under `linattn.transformers.enable()`.
      *args, **kwargs: its arguments; arrays ``[B, T, H, D]``. A module without any gets 128
        random tokens. The first sequence of a batch is shown.
      curves: {"copy": lines, "recall": lines} to show instead of those that are computed; lines are
        {label: (x, y)} or {label: (x, y, low, high)}, x tokens, y shares between 0 and 1.
      title: the page's; the function's or the model's name unless given.

    Returns:
      A `Report`.

    Raises:
      TypeError: `model_or_function` cannot be called.
      ValueError: it makes no call that can be shown.
      ImportError: matplotlib is not installed.
    """
    if not callable(model_or_function):
        raise TypeError(f"model_or_function: expected a function or a module, but got {type(model_or_function).__name__}")
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("linattn.report: expected matplotlib, but it is not installed")
    curves = _check_curves(curves)
    model = model_or_function if hasattr(model_or_function, "named_modules") else None
    if model is not None and not args and not kwargs:
        args = _draw_tokens(model)

    function = _calls.watched(model_or_function)

    def run():
        return function()(*args, **kwargs)

    training = model is not None and model.training
    if training:
        model.eval()
    try:
        calls = _calls.record(run, [] if model is None else list(model.named_modules()))
        calls = [call for call in calls if call.has_tokens]
        if not calls:
            raise ValueError(
                "model_or_function: expected a call with queries, keys and values [B, T, H, D], but got none"
            )
        _calls.number_titles(calls)
        name = getattr(model_or_function, "__name__", type(model_or_function).__name__)
        made = Report(title or name, calls)
        _draw_weights(made)
        _draw_states(made)
        _draw_quality(made, curves)
        _draw_whole(made, model, args, kwargs)
    finally:
        if training:
            model.train()
    return made


def _check_curves(curves):
    curves = {} if curves is None else dict(curves)
    for name, lines in curves.items():
        if name not in ("copy", "recall"):
            raise ValueError(f'curves: expected "copy" and "recall", but got {name!r}')
        for label, line in lines.items():
            if len({len(part) for part in line}) != 1 or len(line) not in (2, 4):
                raise ValueError(f"curves: expected (x, y) or (x, y, low, high) of one length for {label}, but got another")
    return curves


def _draw_tokens(model):
    """Random tokens for a model that was given none: numbers of words, or vectors."""
    import torch

    generator = torch.Generator().manual_seed(0)
    words = next((m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)), None)
    if words is not None:
        return (torch.randint(words, (1, TOKENS), generator=generator),)
    size = next((m.hidden_size for m in model.modules() if isinstance(getattr(m, "hidden_size", None), int)), None)
    if size is None:
        raise ValueError("args: expected arguments for a model without an embedding and a hidden_size, but got none")
    like = next(model.parameters())
    return (torch.randn(1, TOKENS, size, generator=generator).to(like.dtype),)


# ----------------------------------------------------------------------------
# The sections of the page
# ----------------------------------------------------------------------------


def _kinds(calls, most):
    """The calls if they are few, else the first of each kind."""
    if len(calls) <= most:
        return list(calls)
    return list({(call.kind, call.name, call.arguments.get("weights")): call for call in reversed(calls)}.values())[::-1][:most]


def _name(picture, call):
    return f"{picture}.{call.layer}{call.suffix}" if call.layer else picture + call.suffix


def _draw_weights(made):
    entropies, ranks = [], []
    pictured = _kinds(made.calls, _PICTURED)
    for call in _kinds(made.calls, _COMPARED):
        name = _name("weights", call)
        try:
            matrix = call.weights()
        except (ValueError, TypeError) as error:
            made.left_out[name] = str(error)
            continue
        softmax = _measures.softmax_weights(call)
        beside = not call.is_softmax
        if call in pictured:
            made.figures[name] = _figures.weights(name, call, matrix[0], softmax[0])
        bits = _measures.entropy(matrix).mean(0)
        entropies.append((call.title, bits, _measures.entropy(softmax).mean(0) if beside else None))
        rank = _measures.effective_rank(matrix).mean()
        ranks.append((call.title, rank, _measures.effective_rank(softmax).mean() if beside else None, call.sizes[2] if beside else None))
    if ranks:
        made._draw("entropy", lambda: _figures.entropies(entropies[: len(_figures.COLORS)]))
        made._draw("rank", lambda: _figures.ranks(ranks))


def _draw_states(made):
    for call in _kinds(made.calls, _PICTURED):
        name = _name("state", call)
        if call.is_softmax:
            made.left_out[name] = "softmax keeps all keys and values instead of a state"
            continue

        def draw(call=call, name=name):
            made.states[name] = call.states()
            return _figures.state(name, call, made.states[name])

        made._draw(name, draw)


def _draw_quality(made, curves):
    first = made.calls[0]
    made._draw("features", lambda: _figures.features(_measures.feature_errors(first), first))
    size = min(first.sizes[2], 64)
    given = "Figures of the caller."
    computed = f"Computed for this page: random keys of {size} numbers, values of 16 symbols, no training. "

    def best(lines):
        return max(lines, key=lambda label: np.sum(lines[label][1]))

    def copying():
        lines = curves.get("copy") or _named(_measures.copying(size))
        caption = given if "copy" in curves else computed + "Each token has a key of its own; all are written, then all are read."
        return _figures.curves("copy", f"Copying a text: {best(lines)} is right most often", caption, "tokens to copy", lines)

    def recall():
        lines = curves.get("recall") or _named(_measures.overwriting(size))
        caption = given if "recall" in curves else computed + "Four names are assigned in turn, and each name's last value is read. No rule knows positions."
        return _figures.curves("recall", f"Recalling the last of many assignments: {best(lines)} is right most often", caption, "assignments", lines)

    made._draw("copy", copying)
    made._draw("recall", recall)


def _named(curves):
    return {_measures.RULES[rule]: line for rule, line in curves.items()}


def _draw_whole(made, model, args, kwargs):
    parameters, size, dtype = 0, 2, "bfloat16"
    if model is not None:
        held = list(model.parameters())
        parameters = sum(p.numel() for p in held)
        if held:
            size, dtype = held[0].element_size(), str(held[0].dtype).removeprefix("torch.")
        made.facts += [f"{len(made.calls)} attention calls", f"{_figures.count_parameters(parameters)} parameters" if parameters >= 1000 else f"{parameters} parameters"]
    heads, _, K, V = made.calls[0].sizes
    made.facts += [f"{made.calls[0].tokens} tokens", f"{heads} heads of {K}" if K == V else f"{heads} heads of {K}×{V}"]
    growth = _measures.grow(made.calls, parameters, size)
    made._draw("memory", lambda: _figures.memory(growth, dtype))
    made._draw("roofline", lambda: _draw_roofline(made.calls))
    peak = _measures.peak()
    made._draw("time", lambda: _figures.times(growth, parameters, peak, _measure(model, args, kwargs)))


def _draw_roofline(calls):
    ceilings, points = _measures.roofline(calls)
    if not points:
        raise ValueError("no call is linattn's")
    return _figures.roofline(ceilings, points[: len(_figures.COLORS)])


def _measure(model, args, kwargs):
    """[(tokens, seconds)] of the model on beginnings of its tokens."""
    if model is None or len(args) != 1 or kwargs or getattr(args[0], "ndim", 0) < 2:
        return []
    T = args[0].shape[1]
    lengths = sorted({max(1, T // part) for part in (4, 2, 1)})
    with _calls.no_gradients():
        return [(n, _measures.seconds_of(lambda n=n: model(args[0][:1, :n]))) for n in lengths]
