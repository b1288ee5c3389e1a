"""The wheels: their size, what they need of a system, and the package without a build beside it."""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
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
def made(tmp_path_factory):
    if not (BUILD / "build.ninja").exists():
        pytest.skip("the package is not in a build folder of Ninja")
    folder = tmp_path_factory.mktemp("dist")
    targets = ("linattn_wheel_modules", "linattn_runner", "linattn_runner_kernels", "linattn_onnxruntime")
    run("ninja", "-C", BUILD, *targets)
    search = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    run(sys.executable, ROOT / "tools/wheel/make.py", "--build", BUILD, folder, env={**os.environ, "PATH": search})
    own = f"-cp{sys.version_info.major}{sys.version_info.minor}-"
    every = {path.name.split("-")[0]: path for path in folder.iterdir() if own in path.name or "-py3-" in path.name}
    # Of other Pythons, where the build has some.
    return every, [path for path in folder.iterdir() if path not in every.values()]


@pytest.fixture(scope="module")
def wheels(made):
    return made[0]


def install(target, wheels):
    """A function that runs Python with the wheels and without this build's package."""
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, *wheels)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINATTN_")}
    environment |= {"PYTHONPATH": str(target), "LINATTN_CACHE_DIR": str(target / "cache")}
    return lambda *words: run(sys.executable, *words, env=environment, cwd=target)


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    return install(tmp_path_factory.mktemp("installed"), wheels.values())


def test_sizes_and_platforms(wheels):
    assert wheels.keys() == {"linattn", "linattn_runner", "linattn_onnxruntime"}
    assert wheels["linattn"].stat().st_size < 45e6
    assert wheels["linattn_runner"].stat().st_size < 1e6
    assert wheels["linattn_onnxruntime"].stat().st_size < 2e6
    for name in ("linattn_runner", "linattn_onnxruntime"):
        assert wheels[name].name.endswith("-py3-none-manylinux_2_34_x86_64.whl")
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


def test_the_runner_has_common_bundles(wheels, tmp_path):
    """Alone, where neither linattn nor LLVM is."""
    start = install(tmp_path, [wheels["linattn_runner"]])
    out = start("-c", """
import numpy as np, linattn_runner
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((1, 50, 2, 64), np.float32) for _ in range(3))
k /= np.linalg.norm(k, axis=-1, keepdims=True)
g, beta = -rng.random((1, 50, 2), np.float32), rng.random((1, 50, 2), np.float32)
o = linattn_runner.scan(q, k, v, decay=g, beta=beta, update="delta")
S, expected = np.zeros((2, 64, 64)), np.zeros((50, 2, 64))
for t in range(50):
    for h in range(2):
        S[h] *= np.exp(np.float64(g[0, t, h]))
        S[h] += np.outer(beta[0, t, h] * k[0, t, h], v[0, t, h] - k[0, t, h] @ S[h])
        expected[t, h] = q[0, t, h] @ S[h] / 8
assert np.abs(o[0] - expected).max() < 1e-4
print(len(linattn_runner.kernels()), linattn_runner.__file__)
try:
    import linattn
except ModuleNotFoundError:
    print("alone")
""")  # fmt: skip
    assert out.startswith("12 ") and str(tmp_path) in out and out.endswith("alone\n")


def test_onnxruntime_by_its_wheel(installed, wheels, tmp_path):
    pytest.importorskip("onnxruntime")
    program = """
import sys, numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper
sys.path.insert(0, ".")
import linattn_onnxruntime
node = helper.make_node("LinearAttention", list("qkv"), ["o", "s"], q_num_heads=2, kv_num_heads=2, update_rule="linear")
infos = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * r) for n, r in zip(names, ranks)]
         for names, ranks in (("qkv", (3, 3, 3)), ("os", (3, 4)))]
model = helper.make_model(helper.make_graph([node], "g", *infos), opset_imports=[helper.make_opsetid("", 27)], ir_version=10)
options = onnxruntime.SessionOptions()
linattn_onnxruntime.register(options)
session = onnxruntime.InferenceSession(model.SerializeToString(), options)
x = np.random.default_rng(0).standard_normal((1, 9, 32), np.float32)
o, _ = session.run(None, dict.fromkeys("qkv", x))
h = x.reshape(9, 2, 16).astype(float)
expected = np.stack([np.tril(h[:, i] @ h[:, i].T) @ h[:, i] / 4 for i in range(2)], 1).reshape(9, 32)
assert np.abs(o[0] - expected).max() < 1e-4
print(*{line.split()[-1] for line in open("/proc/self/maps") if "liblinattn" in line})
"""
    start = install(tmp_path, [wheels["linattn_onnxruntime"]])
    assert start("-c", program).strip() == str(tmp_path / "linattn_onnxruntime/liblinattn_onnxruntime.so")
    assert "'linattn_onnxruntime'" in installed("-c", "import linattn.onnxruntime as it; print(repr(it.register.__module__))")
    alone = install(tmp_path / "alone", [wheels["linattn"]])
    assert "pip install linattn-onnxruntime" in alone("-c", """
try:
    import linattn.onnxruntime
except ImportError as error:
    print(error)
""")  # fmt: skip


def test_the_source_distribution_builds_alone(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("the sources are not a checkout")
    pytest.importorskip("scikit_build_core")
    run(sys.executable, "-c", f"from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})", cwd=ROOT)
    (path,) = tmp_path.iterdir()
    names = {name.partition("/")[2] for name in tarfile.open(path).getnames()}
    tracked = {name for name in run("git", "ls-files", cwd=ROOT).split() if (ROOT / name).is_file()}
    left_out = {name for name in tracked if name.startswith((".ci/", "docs/", "test/"))}
    assert tracked - left_out <= names
    assert not left_out & names


def test_cibuildwheel_builds_what_there_is():
    """Its table names targets, packages and a component of this build, and Pythons that the package takes."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    configuration = table["tool"]["cibuildwheel"]
    settings = configuration["config-settings"]
    for target in settings["build.targets"].split(";"):
        run("ninja", "-C", BUILD, "-t", "query", target)
    assert (ROOT / settings["wheel.packages"] / "__init__.py").exists()
    installed = (BUILD / "python/cmake_install.cmake").read_text()
    assert f'CMAKE_INSTALL_COMPONENT STREQUAL "{settings["install.components"]}"' in installed
    pythons = re.match(r">=3\.(\d+)$", table["project"]["requires-python"])
    for machine in ("x86_64", "aarch64"):
        names = [f"cp3{minor}-{system}_{machine}" for minor in range(8, 16) for system in ("manylinux", "musllinux")]
        chosen = [name for name in names if any(fnmatch.fnmatch(name, choice) for choice in configuration["build"])]
        assert chosen == [f"cp3{minor}-manylinux_{machine}" for minor in range(int(pythons[1]), 16)]
    assert configuration["test-command"] == "python -m linattn doctor"


# Minutes, and packages from the network.
whole = pytest.mark.skipif(os.environ.get("LINATTN_WHEELS") != "all", reason="LINATTN_WHEELS=all builds everything")


@whole
def test_the_source_distribution_builds(tmp_path):
    """By pip alone, in a folder with nothing but the sources: an hour where ccache has nothing."""
    run(sys.executable, "-c", f"from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})", cwd=ROOT)
    (path,) = tmp_path.glob("*.tar.gz")
    run("tar", "-xf", path, "-C", tmp_path)
    sources = tmp_path / path.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"CCACHE_BASEDIR": str(sources), "CCACHE_NOHASHDIR": "1"}
    pip = [tmp_path / "venv/bin/python", "-m", "pip"]
    run("nice", *pip, "wheel", "--no-deps", "--wheel-dir", tmp_path / "dist", sources, env=environment)
    (wheel,) = (tmp_path / "dist").iterdir()
    run(*pip, "install", "--quiet", wheel, env=environment)
    done = run(tmp_path / "venv/bin/python", "-m", "linattn", "doctor", env=environment, cwd=tmp_path)
    assert "linattn works here" in done


@whole
def test_a_root_with_nothing_but_libc_and_python(wheels, tmp_path):
    """pip installs the wheel; README's example and three models of transformers run."""
    pytest.importorskip("transformers")
    (tmp_path / "tests").mkdir()
    here = pathlib.Path(__file__)
    for path in (ROOT / "README.md", here.with_name("clean_worker.py"), here.with_name("transformers_models.py")):
        (tmp_path / "tests" / path.name).write_bytes(path.read_bytes())
    out = run(ROOT / "tools/wheel/clean.sh", tmp_path, wheels["linattn"], "--", "/tests/clean_worker.py")
    system, *results = [line.split() for line in out.splitlines() if not line.startswith("==>")]
    assert system == ["/packages/linattn/__init__.py", "python3.11"]
    assert {name for name, _ in results} == {"readme", "qwen3_next", "kimi_linear", "mamba2"}
    assert all(float(error) < 1e-5 for _, error in results), results


@whole
def test_the_runner_for_aarch64(tmp_path):
    """In qemu's user mode, by a Python for that machine."""
    run(ROOT / "tools/wheel/aarch64.sh", tmp_path)
    run(ROOT / "tools/wheel/aarch64.sh", "--python")
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.endswith("-py3-none-manylinux_2_34_aarch64.whl") and wheel.stat().st_size < 1e6
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    python = BUILD / "aarch64/python"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path / 'site'}:{python / 'site'}"}
    out = run(
        "qemu-aarch64", "-L", python, "-E", "LD_LIBRARY_PATH=/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu",
        python / "usr/bin/python3.11", pathlib.Path(__file__).with_name("runner_worker.py"), env=environment,
    )  # fmt: skip
    assert out.split() == ["aarch64", "12", "libpthreadpool.so.0"]


def test_modules_of_other_pythons_need_no_other_libraries(made):
    """Their tags; auditwheel has looked at what they load."""
    if not made[1]:
        pytest.skip("this build makes modules for its own Python alone")
    for path in made[1]:
        tag = path.name.split("-", 2)[2]
        assert tag.startswith(("cp310-cp310-", "cp311-cp311-", "cp312-abi3-")) and tag.endswith("manylinux_2_34_x86_64.whl")
        (module,) = (name for name in zipfile.ZipFile(path).namelist() if name.startswith("linattn/_linattn.") and name.endswith(".so"))
        assert (".abi3." in module) == ("abi3" in tag)
