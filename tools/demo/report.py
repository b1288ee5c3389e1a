"""Output of the demo: headings, tables and counted checks."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

# A pipe has no width; this one holds the widest table.
_PIPE_WIDTH = 110


class Report:
    """Collects checks and pictures; prints through one console."""

    def __init__(self):
        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
        self.console = Console(width=width, highlight=False)
        self.checks = 0
        self.failures = []
        self.pictures = []

    def section(self, title):
        self.console.print()
        self.console.print(Rule(Text(title, style="bold"), align="left"))

    def say(self, text=""):
        self.console.print(Text(text))

    def note(self, text):
        self.console.print(Text(text, style="dim"))

    def code(self, text):
        """Text that must not be wrapped."""
        self.console.print(Text(text), soft_wrap=True)

    def table(self, title, columns, rows):
        """Columns are headings; one that starts with "<" is left-aligned."""
        table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
        for heading in columns:
            left = heading.startswith("<")
            table.add_column(heading.removeprefix("<"), justify="left" if left else "right")
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
        self.console.print(table)

    def check(self, what, holds, detail=""):
        """Counts a check; prints it if it fails."""
        self.checks += 1
        if not holds:
            self.failures.append(what)
            self.console.print(Text(f"FAILED: {what}{': ' + detail if detail else ''}", style="bold red"))
        return bool(holds)

    def picture(self, path, finding):
        self.pictures.append((path, finding))

    def finish(self):
        """The last lines; returns the exit code."""
        self.section("Results")
        for path, finding in self.pictures:
            self.code(f"{path}: {finding}")
        if self.failures:
            self.code(f"demo: {len(self.failures)} of {self.checks} checks failed: {'; '.join(self.failures)}")
            return 1
        self.code(f"demo: all {self.checks} checks passed")
        return 0


def cell(text, good):
    """A table cell that shows whether it is what was expected."""
    return Text(text, style="green" if good else "bold red")


def milliseconds(ms):
    """Three digits, in the unit that reads best."""
    if ms < 0.9995:
        return f"{ms * 1e3:.3g} µs"
    if ms < 999.5:
        return f"{ms:.3g} ms"
    return f"{ms / 1e3:.3g} s" if ms < 999.5e3 else f"{ms / 1e3:,.0f} s"


def size(count):
    """Bytes with three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 999.5 else f"{count:.3g} {unit}"
        count /= 1000
