"""`enable`, `disable`, `enabled` and `status`."""

from __future__ import annotations

import contextlib
import sys
import threading

from ._report import Status

__all__ = ["disable", "enable", "enabled", "status"]

_lock = threading.RLock()


def enable():
    """Puts linattn's functions in the place of those of transformers.

    In the models that are imported, those of existing objects included, and in all
    that will be. Calling it again looks once more at what is imported by now, which
    also finds modules that were loaded from a file without the import system.

    Raises:
      ImportError: PyTorch or transformers is missing.
    """
    with _lock:
        _patches().install()


def disable():
    """Puts back exactly what was there. Functions that other code has put over
    linattn's since stay; linattn's below them pass every call on."""
    with _lock:
        if _loaded():
            _patches().remove()


@contextlib.contextmanager
def enabled():
    """`enable` inside of a ``with`` block; after it everything is as it was before."""
    with _lock:
        before = _loaded() and _patches().active
        enable()
    try:
        yield
    finally:
        if not before:
            disable()


def status():
    """A `Status`: for every function of every imported model where it runs, and why not
    in linattn where it does not, with counts of its calls since `enable`."""
    with _lock:
        if not _loaded():
            module = sys.modules.get("transformers")
            return Status(False, getattr(module, "__version__", None), ())
        return _patches().describe()


def _loaded():
    return f"{__package__}._patch" in sys.modules


def _patches():
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"linattn.transformers: expected PyTorch and transformers to be installed, but got: {error}"
        ) from error
    from . import _patch

    return _patch.patches
