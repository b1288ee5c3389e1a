"""The modules of the package import each other in one direction."""

import ast
import graphlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2] / "python"


def find_modules():
    """Path by dotted name; of a package its `__init__`."""
    paths = {path.relative_to(ROOT).with_suffix("").parts: path for path in ROOT.glob("linattn/**/*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for parts, path in paths.items()}


def find_imports(name, path, modules):
    """The modules that a module imports by a relative import, in functions, too."""
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        source = ".".join([*package[: len(package) + 1 - node.level], *filter(None, [node.module])])
        for alias in node.names:
            found = f"{source}.{alias.name}"
            yield found if found in modules else source


def test_no_circle():
    modules = find_modules()
    assert len(modules) > 100
    # The package itself has every public name, and is there before any function runs.
    graph = {
        name: {found for found in find_imports(name, path, modules) if found not in ("linattn", name)}
        for name, path in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # which raises a CycleError with the circle
