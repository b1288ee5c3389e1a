#!/usr/bin/env python3
"""Runs the lessons in docs/tutorial, Markdown pages whose Python blocks belong together.

A block of text behind a Python block is what that one prints. Without options pages are
checked: numbers may differ by 2 %, or 1 in the last digit shown. --update writes what was
printed into the pages instead, --notebooks FOLDER writes the pages as notebooks, by jupytext
(python/requirements-site.txt).
"""

import argparse
import contextlib
import io
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs/tutorial"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.M | re.S)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def pages():
    return sorted(FOLDER.glob("[0-9]*.md"))


def run(page):
    """(the page's text with what its blocks print, where that differs from what it shows)"""
    text, namespace, differences = page.read_text(), {"__name__": page.stem}, []

    def replace(match):
        line = text.count("\n", 0, match.start()) + 1
        # Messages then have the lines of the page.
        code = compile("\n" * line + match["code"], str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102
        printed = "\n".join(row.rstrip() for row in printed.getvalue().splitlines()) + "\n"
        if not agrees(printed, match["output"] or "\n"):
            differences.append(f"{page.name}:{line}: expected\n{match['output'] or ''}but got\n{printed}")
        shown = f"\n```text\n{printed}```\n" if printed.strip() else ""
        return f"```python\n{match['code']}```\n{shown}"

    return BLOCK.sub(replace, text), differences


def agrees(printed, shown):
    """The same words, and numbers that are close."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", shown).split():
        return False
    for found, expected in zip(NUMBER.findall(printed), NUMBER.findall(shown)):
        digits = len(expected.partition(".")[2]) if "e" not in expected else 12
        if abs(float(found) - float(expected)) > max(0.02 * abs(float(expected)), 1.01 * 10.0**-digits * (digits > 0)):
            return False
    return True


def notebook(page):
    """The page as the text of a notebook: outputs are left to be made, solutions are cells."""
    import jupytext

    text = BLOCK.sub(lambda match: f"```python\n{match['code']}```\n", page.read_text())
    text = re.sub(r"<details><summary>(.*?)</summary>", r"**\1**", text).replace("</details>\n", "")
    return jupytext.writes(jupytext.reads(text, "md"), "ipynb")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write what was printed into the pages")
    parser.add_argument("--notebooks", metavar="FOLDER", type=pathlib.Path, help="write the pages as notebooks")
    parser.add_argument("pages", nargs="*", type=pathlib.Path, help="all unless given")
    options = parser.parse_args()
    failures = []
    for page in options.pages or pages():
        if options.notebooks:
            options.notebooks.mkdir(parents=True, exist_ok=True)
            (options.notebooks / f"{page.stem}.ipynb").write_text(notebook(page))
            continue
        text, differences = run(page)
        if options.update:
            page.write_text(text)
        else:
            failures += differences
    print("\n".join(failures), end="")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
