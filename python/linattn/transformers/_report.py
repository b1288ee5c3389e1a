"""The result of `status`."""

from __future__ import annotations

import dataclasses

__all__ = ["Entry", "Status"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """One function or method of one module of transformers.

    Attributes:
      module: where it is, ``transformers.models.mamba2.modeling_mamba2``.
      target: its name there, ``mamba2_chunk_scan`` or ``MambaRMSNormGated.forward``.
      kernel: what it computes, by the name that transformers gives it.
      replaced: whether linattn stands in its place.
      reason: why not, or None.
      taken: how many calls ran in linattn.
      passed: how many calls went to the function that was there before, by reason.
    """

    module: str
    target: str
    kernel: str
    replaced: bool
    reason: str | None
    taken: int
    passed: dict

    @property
    def model(self):
        return self.module.rpartition(".")[2].removeprefix("modeling_")


class Status:
    """The entries of all modules that are imported; printing it gives a table.

    Attributes:
      enabled: whether `enable` is in force.
      version: of transformers, None if it is not imported.
      entries: one `Entry` for each function, in the order of their modules. The calls of
        a function are counted for all modules that share it.
    """

    def __init__(self, enabled, version, entries):
        self.enabled, self.version, self.entries = enabled, version, tuple(entries)

    def __iter__(self):
        return iter(self.entries)

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, model):
        """The entries of a model: ``status()["qwen3_next"]``."""
        found = tuple(entry for entry in self.entries if model in (entry.model, entry.module))
        if not found:
            known = ", ".join(sorted({entry.model for entry in self.entries})) or "none"
            raise KeyError(f"model: expected one of {known}, but got {model!r}")
        return found

    @property
    def taken(self):
        return sum(entry.taken for entry in self.entries)

    def __repr__(self):
        return f"<Status: {'enabled' if self.enabled else 'disabled'}, {len(self)} functions, {self.taken} calls taken>"

    def __str__(self):
        version = f"transformers {self.version}" if self.version else "transformers is not imported"
        lines = [f"linattn.transformers is {'enabled' if self.enabled else 'disabled'}, {version}"]
        rows = [("model", "function", "runs in", "taken", "passed on")]
        for entry in self.entries:
            passed = "; ".join(f"{count}: {why}" for why, count in sorted(entry.passed.items()))
            where = "linattn" if entry.replaced else f"PyTorch ({entry.reason})"
            rows.append((entry.model, entry.target, where, str(entry.taken), passed or "0"))
        if len(rows) == 1:
            lines.append("no model with a recurrence is imported")
            return "\n".join(lines)
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths)]
            lines.append("  ".join([*cells, row[4]]).rstrip())
        return "\n".join(lines)
