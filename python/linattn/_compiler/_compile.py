"""`compile`: functions written in MLIR."""

from __future__ import annotations

import os
import pathlib

from .. import _linattn
from .._core._checks import check_choice, check_flag

__all__ = ["compile"]


def compile(text_or_path, entry=None, target=None, *, math=None, trusted=False, differentiate=None):
    """Compiles a function of tensors that is written in MLIR.

    Args:
      text_or_path: the text of a module; a `pathlib.Path`, or a string without
        newline or brace, is the path of a file with it.
      entry: the public function to compile; may be left out if there is one.
      target: "cpu" (or None), "nvvm" for a GPU of NVIDIA, whose arrays the kernel
        then takes, "reference" for plain loops, or "nvvm-emulated" for the kernels of
        a GPU, executed and checked on the CPU: for tests. A call in which the emulator
        finds something raises ValueError.
      math: "strict" (every operation as written, in its order) or "fast" (fused
        and reassociated; NaN and infinities keep their meaning; on a GPU products of
        float32 matrices take 16 bits of every number, sums stay in float32); None is
        what ``LINATTN_MATH`` in the environment names, else strict.
      trusted: whether the text is as good as code of your own. Other text is
        compiled in a child process, so that nothing in it can end this one, for at
        most ``LINATTN_COMPILE_SECONDS`` (120) of CPU time; functions of the process,
        the LLVM dialect and assembly are errors in it. Its kernel still is machine
        code: indices of ``tensor.extract`` or ``memref.load`` are not checked.

      differentiate: compile the vector-Jacobian product of the function instead.
        The kernel takes the function's arguments, then the cotangents of its
        floating-point results, and returns the cotangents of the operands with
        these indices; of all floating-point operands where the list is empty.

    Returns:
      A kernel. ``kernel(*arrays)`` runs it on arrays in the layout of the
      function's own signature and returns an array, or a tuple where the function
      has several results. ``kernel.mlir(stage)``, ``kernel.asm()`` and
      ``kernel.explain()`` show what became of it.

    Raises:
      ValueError: malformed text, with its line and column, or something that the
        compiler cannot do.
      OSError: a file that cannot be read.
    """
    for name, value in (("text_or_path", text_or_path), ("entry", entry)):
        if isinstance(value, str) and not _is_unicode(value):
            raise ValueError(f"{name}: expected Unicode text, but got one with lone surrogates")
    if entry is not None and not isinstance(entry, str):
        raise TypeError(f"entry: expected a string or None, but got {type(entry).__name__}")
    target = "cpu" if target is None else check_choice("target", target, ("cpu", "nvvm", "reference", "nvvm-emulated"))
    trusted = check_flag("trusted", trusted)
    math = "" if math is None else check_choice("math", math, ("strict", "fast"))
    differentiate = _check_operands(differentiate)
    if isinstance(text_or_path, str):
        is_path = not any(char in text_or_path for char in "\n{}")
    elif isinstance(text_or_path, os.PathLike):
        is_path = True
    else:
        raise TypeError(
            f"text_or_path: expected a string or a path, but got {type(text_or_path).__name__}"
        )
    if is_path:
        path = pathlib.Path(text_or_path)
        text, name = path.read_text(encoding="utf-8"), str(path)
    else:
        text, name = text_or_path, "<string>"
    return _linattn.compile(
        text, entry or "", name, target, math=math, trusted=trusted, differentiate=differentiate
    )


def _check_operands(differentiate):
    """Indices of operands as a list, or None."""
    if differentiate is None:
        return None
    if not isinstance(differentiate, (list, tuple)):
        raise TypeError(
            f"differentiate: expected a list of integers or None, but got {type(differentiate).__name__}"
        )
    for index in differentiate:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"differentiate: expected integers, but got {type(index).__name__}")
    return list(differentiate)


def _is_unicode(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
