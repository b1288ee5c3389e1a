"""``explain FILE`` and ``compile FILE``: modules of MLIR, or ONNX models, from a file."""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import threading
import time

from .. import _linattn

__all__ = ["register"]

TARGETS = ("cpu", "nvvm", "reference", "nvvm-emulated")


def register(commands):
    explain = commands.add_parser("explain", help="say which form and kernel each op of FILE takes, and why")
    explain.set_defaults(run=_explain)
    emit = commands.add_parser("compile", help="compile FILE, keep its kernels in the cache, and show or write what became of it")
    emit.set_defaults(run=_compile)
    imported = commands.add_parser("import", help="write the module of MLIR that an ONNX model is")
    imported.set_defaults(run=_import)
    imported.add_argument("file", metavar="FILE.onnx")
    imported.add_argument("--entry", metavar="NAME", help="the name of its function (default: the graph's)")
    imported.add_argument("-o", "--output", type=pathlib.Path, metavar="PATH", help="write there instead of printing")
    emit.add_argument("--emit", default="summary", metavar="WHAT", help="summary (default), asm, llvm, stages, or the IR at a stage: one of those that --emit=stages names, or source")
    emit.add_argument("-o", "--output", type=pathlib.Path, metavar="PATH", help="write there instead of printing")
    for parser in (explain, emit):
        parser.add_argument("file", type=_open, metavar="FILE", help="a module of MLIR, or a model ending in .onnx; - is the standard input")
        parser.add_argument("--entry", metavar="NAME", help="the public function (default: all of them)")
        parser.add_argument("--target", choices=TARGETS, default="cpu")
        parser.add_argument("--math", choices=("strict", "fast"), help="default: LINATTN_MATH, else strict")
        parser.add_argument("--trusted", action="store_true", help="allow all that code of your own may do (docs/Trust.md)")


def _open(name):
    """The text of a module and the name that messages call it."""
    if name.endswith(".onnx"):
        return _Model(name)
    return argparse.FileType(encoding="utf-8")(name)


class _Model:
    """A model, which is read as the module that it is imported to."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def read(self):
        from .. import onnx

        return onnx.to_mlir(self.name)


def _kernels(options):
    """The kernels of the functions of a file, each with the seconds it took."""
    with options.file as file:
        text = file.read()
    name = options.file.name
    entries = [options.entry] if options.entry else _linattn.public_functions(text, name, trusted=options.trusted)
    if not entries:
        raise ValueError(f"{name}: expected a public function, but found none")
    for entry in entries:
        started = time.monotonic()
        with _progress(f"compiling {entry}"):
            kernel = _linattn.compile(
                text, entry, name, options.target, math=options.math or "", trusted=options.trusted
            )
        yield kernel, time.monotonic() - started


def _explain(options):
    for kernel, _ in _kernels(options):
        print(f"{kernel!r}\n{kernel.explain() or 'no remarks'}")
    return 0


def _import(options):
    from .. import onnx

    return _write(options, onnx.to_mlir(options.file, options.entry))


def _compile(options):
    pieces = [_emit(kernel, seconds, options.emit) for kernel, seconds in _kernels(options)]
    return _write(options, "\n".join(piece.rstrip("\n") for piece in pieces) + "\n")


def _write(options, text):
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0


def _emit(kernel, seconds, what):
    if what == "summary":
        return f"{kernel!r}: {seconds:.2f} s, {len(kernel.asm().splitlines())} lines of assembly"
    if what == "asm":
        return kernel.asm()
    if what == "llvm":
        return kernel.llvm_ir()
    if what == "stages":
        return "\n".join(kernel.stages())
    return kernel.mlir(None if what == "source" else what)


@contextlib.contextmanager
def _progress(label):
    """Shows on a terminal how long a step takes once it takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def show():
        started = time.monotonic()
        while not done.wait(1):
            print(f"\r{label}: {time.monotonic() - started:.0f} s", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print("\r\033[K", end="", file=sys.stderr, flush=True)
