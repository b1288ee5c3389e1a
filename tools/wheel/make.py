"""Packs what the build holds into wheels and lets auditwheel check and tag them.

Metadata come from the project's pyproject.toml files. A wheel's platform is the oldest
manylinux whose libraries have every symbol that is used; libraries beyond those of the
platform (pthreadpool) are taken along.
"""

from __future__ import annotations

import argparse
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib

import pyproject_metadata

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLATFORM = "manylinux_2_34"
# Files of the package that its users read or import.
SOURCES = ("*.py", "*.pyi", "py.typed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="CMake's build folder")
    parser.add_argument("--machine", choices=["x86_64", "aarch64"], default="x86_64", help="aarch64: the runner alone")
    parser.add_argument("folder", type=pathlib.Path, help="where the wheels go")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    wheels = aarch64_wheels(options.build / "aarch64") if options.machine == "aarch64" else x86_wheels(options.build)
    for project, name, libraries, kernels, tag in wheels:
        path = make(project, ROOT / "python" / name, libraries, kernels, tag, options)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def x86_wheels(build):
    """Project, package, libraries, bundles and tag of each."""
    library = build / "lib"
    kernels = sorted((build / "python/linattn_runner/kernels").iterdir())
    modules = (build / "wheel/modules.txt").read_text().split()
    return [
        *((ROOT, "linattn", [build / "wheel" / module], (), tag_of(module)) for module in modules),
        (ROOT / "python/linattn_runner", "linattn_runner",
         [library / "liblinattn_runner.so", pool_of(build)], kernels, "py3-none"),
        (ROOT / "python/linattn_onnxruntime", "linattn_onnxruntime",
         [library / "liblinattn_onnxruntime.so"], (), "py3-none"),
    ]  # fmt: skip


def aarch64_wheels(cross):
    """The same of what tools/wheel/aarch64.sh has compiled."""
    libraries = [cross / "liblinattn_runner.so", cross / "sysroot/usr/lib/aarch64-linux-gnu/libpthreadpool.so.0"]
    kernels = sorted((cross / "kernels").iterdir())
    return [(ROOT / "python/linattn_runner", "linattn_runner", libraries, kernels, "py3-none")]


def tag_of(module):
    """The Pythons that can load a module of this file name."""
    if ".abi3." in module:
        return "cp312-abi3"
    python = "cp" + module.split("-")[1]
    return f"{python}-{python}"


def pool_of(build):
    """The library of threads, by the name under which the runner opens it."""
    cache = (build / "CMakeCache.txt").read_text().splitlines()
    (path,) = (line.partition("=")[2] for line in cache if line.startswith("PTHREADPOOL_LIBRARY:"))
    return pathlib.Path(path).with_name("libpthreadpool.so.0")


def make(project, package, libraries, kernels, tag, options):
    """The path of the wheel of a package with its shared libraries and bundles."""
    with tempfile.TemporaryDirectory() as scratch:
        stage, packed = (pathlib.Path(scratch) / name for name in ("stage", "packed"))
        packed.mkdir()
        for pattern in SOURCES:
            for source in package.rglob(pattern):
                copy(source, stage / package.name / source.relative_to(package))
        for library in libraries:
            copy(library, stage / package.name / library.name)
            run("llvm-strip-22", "--strip-unneeded", stage / package.name / library.name)
        for kernel in kernels:
            copy(kernel, stage / package.name / "kernels" / kernel.name)
        if len(libraries) > 1:  # the first opens the others, which lie beside it
            run("patchelf", "--set-rpath", "$ORIGIN", stage / package.name / libraries[0].name)
        write_metadata(project, stage, f"{tag}-linux_{options.machine}")
        run("wheel", "pack", stage, "--dest-dir", packed)
        (wheel,) = packed.iterdir()
        repaired = pathlib.Path(scratch) / "repaired"
        # Of another machine auditwheel knows the platforms only as a result.
        plat = f"{PLATFORM}_{options.machine}" if options.machine == platform.machine() else "auto"
        run("auditwheel", "repair", wheel, "--plat", plat, "--wheel-dir", repaired)
        (wheel,) = repaired.iterdir()
        return pathlib.Path(shutil.copy(wheel, options.folder))


def write_metadata(project, stage, tag):
    table = tomllib.loads((project / "pyproject.toml").read_text())
    metadata = pyproject_metadata.StandardMetadata.from_pyproject(table, project)
    folder = stage / f"{metadata.name.replace('-', '_')}-{metadata.version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(str(metadata.as_rfc822()))
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: linattn\nRoot-Is-Purelib: false\nTag: {tag}\n")
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
