"""``report``: a page of pictures of a model."""

from __future__ import annotations

import importlib.util
import pathlib
import runpy

__all__ = ["hybrid", "register"]


def register(commands):
    parser = commands.add_parser("report", help="draw what a model does: weights, states, memory, time, forms")
    parser.add_argument(
        "model", nargs="?", metavar="FILE.py:NAME",
        help="a module of PyTorch, or a function without arguments that makes one; or the folder of a model of "
        "transformers (default: four small layers of different kinds)",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("report.html"), metavar="PATH", help="the page (default: report.html)")
    parser.add_argument("--figures", type=pathlib.Path, metavar="FOLDER", help="write each picture there, too")
    parser.add_argument("--format", choices=("svg", "png", "pdf"), default="svg", help="of the pictures (default: svg)")
    parser.set_defaults(run=_run)


def hybrid(size=128, heads=2):
    """A random model of bytes with four layers of different kinds, which ``report`` shows where it
    is given no other."""
    import torch

    from ..torch import nn

    class Residual(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.norm, self.layer = torch.nn.RMSNorm(size), layer

        def forward(self, x):
            return x + self.layer(self.norm(x))

    torch.manual_seed(0)
    kinds = (nn.LinearAttention, nn.GatedDeltaNet, nn.GatedLinearAttention, nn.MultiHeadAttention)
    layers = [Residual(kind(size, heads)) for kind in kinds]
    return torch.nn.Sequential(torch.nn.Embedding(256, size), *layers, torch.nn.Linear(size, 256))


def _run(options):
    from .. import report

    model, title = _load(options.model)
    page = report(model, title=title)
    page.save(options.output)
    print(f"{options.output}: {len(page.figures)} pictures, {options.output.stat().st_size / 1e6:.1f} MB")
    for name, why in page.left_out.items():
        print(f"left out: {name}: {why}")
    if options.figures:
        options.figures.mkdir(parents=True, exist_ok=True)
        for name, figure in page.figures.items():
            figure.save(options.figures / f"{name.replace(' ', '-')}.{options.format}")
    return 0


def _load(name):
    """(the model, its title)"""
    if importlib.util.find_spec("torch") is None:
        raise ImportError("report: expected PyTorch, but it is not installed")
    if name is None:
        return hybrid(), "Four layers"
    if pathlib.Path(name).is_dir():
        return _load_transformers(name), pathlib.Path(name).resolve().name
    path, _, attribute = name.rpartition(":")
    if not path or not attribute.isidentifier():
        raise ValueError(f"model: expected FILE.py:NAME or a folder, but got {name}")
    found = runpy.run_path(path).get(attribute)
    if found is None:
        raise ValueError(f"model: expected {attribute} in {path}, but found none")
    return (found if hasattr(found, "named_modules") else found()), attribute


def _load_transformers(folder):
    import transformers

    from .. import transformers as adapters

    adapters.enable()
    return transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
