"""A hook of MkDocs: pages that are made of the sources, and links that leave docs/.

The start page is README.md, the reference the docstrings of the package. A link to a file
outside of docs/ becomes the file's path: the site has no copy of the sources.
"""

import ast
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
# Parts of the reference: heading, module, names.
MODULES = (
    ("Functions", "linattn", ("attention", "scan", "State", "StatePool", "bidirectional", "causal_conv1d", "compile", "explain", "deadline", "convert", "report", "Report", "random_projection", "UnsupportedError")),
    ("Feature maps", "linattn.feature_maps", None),
    ("Costs", "linattn.costs", None),
    ("Layers", "linattn.torch.nn", None),
    ("Layers of JAX", "linattn.jax.nn", None),
    ("PyTorch", "linattn.torch", ("convert", "distill")),
    ("transformers", "linattn.transformers", ("enable", "disable", "enabled", "status")),
)  # fmt: skip


def on_files(files, config):
    start = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=start))
    files.append(File.generated(config, "api.md", content=reference()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to sources as their paths; those to pages as they are. Markdown in details is Markdown."""
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def replace(match):
        text, target, anchor = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        if page.file.src_uri == "index.md" and (ROOT / target).exists():
            path = ROOT / target
        else:
            path = (folder / target).resolve()
        if path.is_relative_to(ROOT / "docs") or not path.exists():
            return match[0]
        return f"{text} (`{path.relative_to(ROOT)}`)"

    return LINK.sub(replace, markdown).replace("<details>", '<details markdown="1">')


def on_page_content(html, page, config, files):
    """Docstrings introduce formulas by two colons, which Markdown does not know."""
    return html.replace("::</p>", ":</p>")


def reference():
    """The reference: a directive of mkdocstrings for each public name."""
    lines = ["# Reference", "", "The named families are [a page of their own](generated/Families.md).", ""]
    for heading, module, names in MODULES:
        lines += [f"## {heading}", ""]
        if module == "linattn.feature_maps":
            lines += ["The other maps of whole tokens in [the compiler's table](generated/LinAttnDialect.md) have "
                      "functions that are made of it.", ""]  # fmt: skip
        for name in names or public(module):
            lines += [f"::: {module}.{name}", ""]
    return "\n".join(lines)


def public(module):
    """The names in `__all__` of a module, as its source has them."""
    base = ROOT / "python" / module.replace(".", "/")
    source = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "__all__":
            return ast.literal_eval(statement.value)
    raise ValueError(f"{source}: expected __all__, but found none")
