"""The installed C++ library: another project finds it, builds against it, and runs."""

import os
import pathlib
import shutil
import subprocess

import pytest

import linattn

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(linattn._linattn.__file__).resolve().parents[2]
PROGRAMS = ("linattn-compile", "linattn-lsp-server", "linattn-opt", "linattn-run", "linattn-translate")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("the package is not in a build folder of CMake")
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", path)
    return path


@pytest.fixture(scope="module")
def project(prefix, tmp_path_factory):
    """examples/standalone, copied away from the sources and built against the prefix."""
    source, build = (tmp_path_factory.mktemp("standalone") / name for name in ("source", "build"))
    shutil.copytree(ROOT / "examples/standalone", source)
    cache = (BUILD / "CMakeCache.txt").read_text().splitlines()
    compilers = [line.split("=")[1] for name in ("C", "CXX") for line in cache if line.startswith(f"CMAKE_{name}_COMPILER:")]
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compilers[0]}", f"-DCMAKE_CXX_COMPILER={compilers[1]}")  # fmt: skip
    run("cmake", "--build", build)
    return build


def test_the_prefix_holds_programs_headers_and_the_plugin(prefix):
    assert {path.name for path in (prefix / "bin").iterdir()} == set(PROGRAMS)
    header = (prefix / "include/linattn/Version.h").read_text()
    assert f'#define LINATTN_VERSION "{linattn.__version__}"' in header
    for name in ("linattn-c/Dialect.h", "linattn-c/Runner.h", "linattn/Dialect/LinAttnOps.td", "linattn/Dialect/LinAttnOps.h.inc"):
        assert (prefix / "include" / name).exists()
    assert (prefix / "lib/libLinAttnPlugin.so").exists()
    assert not list(prefix.rglob("*.py"))


def test_installed_programs_run(prefix):
    out = run(prefix / "bin/linattn-opt", "--linattn-causal-to-scan", ROOT / "examples/layer.mlir").stdout
    assert "linattn.scan" in out


def test_installed_headers_stand_alone(prefix):
    """No installed header names a file that is not installed."""
    include = prefix / "include"
    for header in include.rglob("*.h"):
        for line in header.read_text().splitlines():
            if line.startswith('#include "linattn'):
                assert (include / line.split('"')[1]).exists(), f"{header}: {line}"


def test_another_project_has_a_pass_of_its_own(project):
    done = run(project / "standalone-opt", "--linattn-causal-to-scan", "--report-state", ROOT / "examples/layer.mlir")
    assert "remark: carries 262144 bytes" in done.stderr  # 2 · 8 · 64 · 64 numbers of f32


def test_another_project_compiles_and_runs(project, tmp_path):
    done = run(project / "standalone-run", env={**os.environ, "LINATTN_CACHE_DIR": str(tmp_path)})
    assert done.stdout == f"linattn {linattn.__version__}: 1 10 42 120\n"


def test_the_dialect_from_c(project):
    lines = run(project / "standalone-c").stdout.splitlines()
    assert lines[:4] == [
        "#linattn.feature_map<elu1> is a map: 1, has the kind elu1",
        "#linattn.normalize<eps = 5.000000e-01 : f64>",
        "#linattn.config<form = chunk, chunk = 16> has the form chunk",
        "unknown kinds are null: 1, unknown forms: 1",
    ]
    assert any("linattn.scan" in line for line in lines[4:])


def test_another_version_is_refused(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.25)
project(newer LANGUAGES C CXX)
find_package(LinAttn 99.0 REQUIRED CONFIG)
""")
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode != 0
    assert 'requested version "99.0"' in done.stderr
