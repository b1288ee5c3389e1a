"""Variables of the environment: an illegal setting gives a warning or an error."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

import pytest

TWO_KERNELS = """
import numpy as np, linattn
x = np.ones((1, 4, 1, 8), np.float32)
try:
    linattn.scan(x, x, x)
    linattn.scan(x, x, x, feature_map="elu")
    print("done")
except ValueError as error:
    print(error)
"""


REQUIREMENTS = [pathlib.Path(__file__).parents[2] / f"python/requirements-{name}.txt" for name in ("build", "dev")]
LINES = "".join(file.read_text() for file in REQUIREMENTS if file.exists())
PINNED = re.findall(r"^([\w.-]+)==(\S+)(?: *;.*)?$", LINES, re.MULTILINE)


@pytest.mark.parametrize("name, version", PINNED)
def test_packages_of_tests_are_there(name, version):
    """Tests skip what is not installed; none that is pinned may get lost that way."""
    assert importlib.metadata.version(name).split("+")[0] == version.split("+")[0]


def run(tmp_path, program=TWO_KERNELS, **variables):
    packages = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": packages, "LINATTN_CACHE_DIR": str(tmp_path / "cache"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("value", ["abc", "0", "-1", "2x", "1.5", " "])
def test_numbers_of_threads(tmp_path, value):
    expected = f"expected LINATTN_NUM_THREADS to be a positive number, but got '{value}'"
    assert run(tmp_path, LINATTN_NUM_THREADS=value) == (expected, "")


@pytest.mark.parametrize("value", ["", "1", "3", "99999999"])
def test_legal_numbers_of_threads(tmp_path, value):
    assert run(tmp_path, LINATTN_NUM_THREADS=value) == ("done", "")


def test_a_number_that_is_given_needs_none_of_the_environment(tmp_path):
    program = TWO_KERNELS.replace("x, x, x", "x, x, x, num_threads=1")
    assert run(tmp_path, program, LINATTN_NUM_THREADS="abc") == ("done", "")


@pytest.mark.parametrize("path, problem", [
    ("relative/cache", "expected the path of the cache to be absolute, but got 'relative/cache'"),
    ("/proc/nowhere/cache", "cannot create '/proc/nowhere/cache'"),
    ("{tmp_path}/file", "'{tmp_path}/file' is not a directory"),
])  # fmt: skip
def test_unusable_caches_are_reported_once(tmp_path, path, problem):
    (tmp_path / "file").write_text("")
    path, problem = (text.format(tmp_path=tmp_path) for text in (path, problem))
    out, warnings = run(tmp_path, LINATTN_CACHE_DIR=path)
    assert out == "done"
    assert warnings.startswith("linattn: warning: compiled code is not kept: " + problem)
    assert len(warnings.splitlines()) == 1
    assert not (tmp_path / "relative").exists()
    assert run(tmp_path, LINATTN_CACHE_DIR=path, LINATTN_CACHE="off") == ("done", "")


def test_sizes_of_the_cache(tmp_path):
    expected = "expected LINATTN_CACHE_SIZE to be a size such as 512M, but got 'large'"
    assert run(tmp_path, LINATTN_CACHE_SIZE="large") == (expected, "")
    assert run(tmp_path, LINATTN_CACHE_SIZE="1M") == ("done", "")
    assert len(list((tmp_path / "cache").iterdir())) == 2
