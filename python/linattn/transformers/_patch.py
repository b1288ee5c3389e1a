"""Puts hooks in the place of functions, and puts back what was there."""

from __future__ import annotations

import importlib.abc
import sys
import types
import warnings

from . import _known
from ._adapters import NO_ADAPTER, find_adapter
from ._guard import Hook
from ._report import Entry, Status

__all__ = ["patches"]


class Patches:
    """The replaced functions, and those that stay.

    A function that several modules share has one hook. Hooks outlive `remove`, so that a
    function that other code has kept goes on to work: it calls what was there before.
    """

    def __init__(self):
        self.active = False
        self.hooks = {}  # (kernel, original) -> Hook
        self.places = {}  # (owner, attribute) -> (Target, Hook)
        self.refused = {}  # (owner, attribute) -> (Target, function, why)
        self.finder = _Finder(self)
        self.warned = None

    def install(self):
        version = _version()
        if version is not None and version != self.warned and not f"{version}.".startswith(f"{_known.VERSIONS}."):
            self.warned = version
            warnings.warn(
                f"linattn.transformers: expected transformers {_known.VERSIONS}, but got {version}: functions that "
                "differ run in PyTorch as before; linattn.transformers.status() says which",
                stacklevel=4,
            )
        if not self.active:
            self.places.clear()
            self.refused.clear()
            for hook in self.hooks.values():
                hook.taken, hook.passed = 0, {}
        self.active = True
        for hook in self.hooks.values():
            hook.active = True
        if self.finder not in sys.meta_path:
            sys.meta_path.insert(0, self.finder)
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType):
                self.sweep(module)

    def remove(self):
        self.active = False
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        for target, hook in self.places.values():
            # Others may have put something over it.
            if target.value is hook.function:
                setattr(target.owner, target.attribute, hook.original)
        for hook in self.hooks.values():
            hook.active = False

    def sweep(self, module):
        """Replaces what a module has."""
        for target in _known.find_targets(module):
            function = target.value
            if hasattr(function, "__linattn_hook__"):
                # Its own, or taken over from another module by an import.
                self.places.setdefault((target.owner, target.attribute), (target, function.__linattn_hook__))
                continue
            hook, why = self._find_hook(target.kernel, function)
            if hook is None:
                self._refuse(target, function, why)
                continue
            setattr(target.owner, target.attribute, hook.function)
            self.places[target.owner, target.attribute] = (target, hook)

    def _find_hook(self, kernel, function):
        key = (kernel, function)
        if key not in self.hooks:
            why = _known.refuse(kernel, function)
            adapter = None if why else find_adapter(kernel, function)
            if adapter is None:
                return None, why or NO_ADAPTER
            self.hooks[key] = Hook(kernel, function, adapter)
        hook = self.hooks[key]
        hook.active = True
        return hook, None

    def _refuse(self, target, function, why):
        key = (target.owner, target.attribute)
        known = self.refused.get(key)
        self.refused[key] = (target, function, why)
        expected = why == NO_ADAPTER
        if not expected and (known is None or known[1] is not function):
            warnings.warn(
                f"linattn.transformers: {target.module}.{target.title} runs in PyTorch as before: {why}. "
                f"linattn knows transformers {_known.VERSIONS}, and this is {_version()}",
                stacklevel=3,
            )

    def describe(self):
        entries = []
        for target, hook in self.places.values():
            replaced = target.value is hook.function
            why = None
            if not replaced:
                why = "something else was put in its place" if self.active else "disabled"
            entries.append(
                Entry(target.module, target.title, target.kernel, replaced, why, hook.taken, dict(hook.passed))
            )
        for target, _, why in self.refused.values():
            entries.append(Entry(target.module, target.title, target.kernel, False, why, 0, {}))
        entries.sort(key=lambda entry: (entry.module, entry.target))
        return Status(self.active, _version(), entries)


def _version():
    return getattr(sys.modules.get("transformers"), "__version__", None)


class _Finder(importlib.abc.MetaPathFinder):
    """Sweeps modules ``modeling_…`` once they are imported; others find them."""

    def __init__(self, patches):
        self.patches = patches

    def find_spec(self, name, path=None, target=None):
        if not name.rpartition(".")[2].startswith("modeling_"):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self.patches)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """The loader of a module, which is swept after its own code has run."""

    def __init__(self, loader, patches):
        self.loader, self.patches = loader, patches

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        # The module sees, and keeps, the loader that it has without linattn.
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        if self.patches.active:
            self.patches.sweep(module)


patches = Patches()
