"""Packs what the build holds into wheels and lets auditwheel check and tag them.

Metadata come from the project's pyproject.toml files. A wheel's platform is the oldest
manylinux whose libraries have every symbol that is used; libraries beyond those of the
platform (pthreadpool) are taken along.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib

import pyproject_metadata

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLATFORM = "manylinux_2_34_x86_64"
# Files of the package that its users read or import.
SOURCES = ("*.py", "*.pyi", "py.typed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="CMake's build folder")
    parser.add_argument("folder", type=pathlib.Path, help="where the wheels go")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    runner = options.build / "lib/liblinattn_runner.so"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    module = f"_linattn{sysconfig.get_config_var('EXT_SUFFIX')}"
    wheels = (
        (ROOT, "linattn", [options.build / "wheel" / module], f"{python}-{python}"),
        (ROOT / "python/linattn_runner", "linattn_runner", [runner, pool_of(options.build)], "py3-none"),
    )
    for project, name, libraries, tag in wheels:
        path = make(project, ROOT / "python" / name, libraries, tag, options.folder)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def pool_of(build):
    """The library of threads, by the name under which the runner opens it."""
    cache = (build / "CMakeCache.txt").read_text().splitlines()
    (path,) = (line.partition("=")[2] for line in cache if line.startswith("PTHREADPOOL_LIBRARY:"))
    return pathlib.Path(path).with_name("libpthreadpool.so.0")


def make(project, package, libraries, tag, folder):
    """The path of the wheel of a package with its shared libraries."""
    with tempfile.TemporaryDirectory() as scratch:
        stage, packed = (pathlib.Path(scratch) / name for name in ("stage", "packed"))
        packed.mkdir()
        for pattern in SOURCES:
            for source in package.rglob(pattern):
                copy(source, stage / package.name / source.relative_to(package))
        for library in libraries:
            copy(library, stage / package.name / library.name)
        if len(libraries) > 1:  # the first opens the others, which lie beside it
            run("patchelf", "--set-rpath", "$ORIGIN", stage / package.name / libraries[0].name)
        write_metadata(project, stage, tag)
        run("wheel", "pack", stage, "--dest-dir", packed)
        (wheel,) = packed.iterdir()
        repaired = pathlib.Path(scratch) / "repaired"
        run("auditwheel", "repair", wheel, "--plat", PLATFORM, "--wheel-dir", repaired)
        (wheel,) = repaired.iterdir()
        return pathlib.Path(shutil.copy(wheel, folder))


def write_metadata(project, stage, tag):
    table = tomllib.loads((project / "pyproject.toml").read_text())
    metadata = pyproject_metadata.StandardMetadata.from_pyproject(table, project)
    folder = stage / f"{metadata.name.replace('-', '_')}-{metadata.version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(str(metadata.as_rfc822()))
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: linattn\nRoot-Is-Purelib: false\nTag: {tag}-linux_x86_64\n")
    scripts = "".join(f"{name} = {target}\n" for name, target in metadata.scripts.items())
    if scripts:
        (folder / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    copy(ROOT / "LICENSE", folder / "licenses/LICENSE")


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if ".so" in target.name else 0o644)


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
