"""``python -m linattn``: the package on the command line.

``info`` says what is installed and used, ``doctor`` checks it, ``explain`` and
``compile`` take a module or an ONNX model from a file, ``import`` writes the module of
a model, ``report`` draws what a model does, ``bench`` measures.
"""

from __future__ import annotations

import argparse
import sys

from . import doctor, files, info, report

__all__ = ["main"]


def main(arguments=None):
    """Runs one command and returns its exit status: 0, 1 if it failed, 2 if it was called wrongly."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["bench"]:  # has a parser of its own
        from .. import bench

        return bench.main(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ImportError, OSError, ValueError) as error:
        print(f"linattn: error: {error}", file=sys.stderr)
        return 1


def _parser():
    parser = argparse.ArgumentParser(prog="python -m linattn", description="A compiler for linear attention.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (info, doctor, files, report):
        module.register(commands)
    commands.add_parser("bench", help="measure kernels beside the machine's ceilings and other libraries")
    return parser
