"""The modules of the package, and the folders of the compiler, depend on each other in one direction."""

import ast
import graphlib
import pathlib
import re

SOURCES = pathlib.Path(__file__).resolve().parents[2]
ROOT = SOURCES / "python"


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


def find_includes():
    """(file, included) for the quoted includes of the C++ libraries and of their TableGen files."""
    for folder in ("lib", "include/linattn"):
        for path in (SOURCES / folder).rglob("*"):
            if path.suffix in (".h", ".cpp", ".td"):
                for included in re.findall(r'^ *#? *include "([^"]+)"', path.read_text(), re.M):
                    yield path, included


def test_no_circle_of_folders():
    graph = {}
    for path, included in find_includes():
        if path.name == "InitAll.h":  # registers what all folders have
            continue
        folder = path.relative_to(SOURCES).parts[-2]
        found = re.match(r"linattn/(\w+)/", included)
        graph.setdefault(folder, set())
        if found and found[1] != folder:
            graph[folder].add(found[1])
    assert len(graph) >= 20
    order = list(graphlib.TopologicalSorter(graph).static_order())  # or a CycleError with the circle
    assert order.index("Support") < order.index("Dialect") < order.index("Session")


def test_private_headers_stay_in_their_folder():
    for path, included in find_includes():
        assert ".." not in included, (path, included)
        if not included.startswith(("linattn/", "linattn-c/", "mlir/", "mlir-c/", "llvm/", "llvm-c/")):
            assert (path.parent / included).exists(), (path, included)
