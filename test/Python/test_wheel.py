"""The wheels: their size, what they need of a system, and the package without a build beside it."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import linattn

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(linattn._linattn.__file__).resolve().parents[2]
pytest.importorskip("auditwheel")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    if not (BUILD / "build.ninja").exists():
        pytest.skip("the package is not in a build folder of Ninja")
    folder = tmp_path_factory.mktemp("dist")
    run("ninja", "-C", BUILD, "_linattn_static", "linattn_runner")
    search = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    run(sys.executable, ROOT / "tools/wheel/make.py", "--build", BUILD, folder, env={**os.environ, "PATH": search})
    return {path.name.split("-")[0]: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """A function that runs Python with the wheels and without this build's package."""
    target = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, *wheels.values())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINATTN_")}
    environment |= {"PYTHONPATH": str(target), "LINATTN_CACHE_DIR": str(target / "cache")}
    return lambda *words: run(sys.executable, *words, env=environment, cwd=target)


def test_sizes_and_platforms(wheels):
    assert wheels.keys() == {"linattn", "linattn_runner"}
    assert wheels["linattn"].stat().st_size < 45e6
    assert wheels["linattn_runner"].stat().st_size < 1e6
    assert wheels["linattn_runner"].name.endswith("-py3-none-manylinux_2_34_x86_64.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheels["linattn"].name == f"linattn-{linattn.__version__}-{python}-{python}-manylinux_2_34_x86_64.whl"


def test_all_sources_and_the_licence_are_inside(wheels):
    names = set(zipfile.ZipFile(wheels["linattn"]).namelist())
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python/linattn").rglob("*.py")}
    assert sources <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any("test" in name or "__pycache__" in name for name in names)


def test_no_library_of_llvm_is_loaded(installed):
    out = installed("-c", """
import numpy as np, linattn
q = np.random.default_rng(0).random((1, 40, 2, 16), np.float32)
g = -q
assert np.abs(linattn.gla(q, q, q, g)[0] - linattn.reference.scan(q, q, q, decay=g, scale=0.25)).max() < 1e-4
print(linattn.__file__)
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}))
""")  # fmt: skip
    package, libraries = out.splitlines()
    assert "installed" in package
    names = [pathlib.Path(path).name for path in libraries.split()]
    assert not [name for name in names if "LLVM" in name or "MLIR" in name]


def test_examples_of_the_paper_pass_with_the_wheel(installed):
    out = installed("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", ROOT / "test/Python/test_worked_examples.py")
    assert " passed" in out and "failed" not in out


def test_commands_and_the_doctor(installed):
    assert "linattn works here" in installed("-m", "linattn", "doctor")


def test_the_runner_runs_on_threads_of_its_own(installed):
    """The bundle is compiled for this machine; the wheel launches it."""
    out = installed("-c", f"""
import numpy as np, linattn_runner
kernel = linattn_runner.load({str(BUILD / "test/Unit/Bundles/attention_cpu.lab")!r})
q = np.ones((2, 8, 33, 64), np.float32)
assert np.isfinite(kernel(q, q, q)).all()
print(*{{line.split()[-1] for line in open("/proc/self/maps") if "pthreadpool" in line}})
""")  # fmt: skip
    assert "installed" in out and out.strip().endswith("linattn_runner/libpthreadpool.so.0")
