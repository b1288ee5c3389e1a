"""A short run of test/Fuzz/fuzz.py: the same inputs every time, unless the environment gives it hours.

LINATTN_FUZZ_SECONDS is how long for each target, LINATTN_TEST_SEED (conftest.py) the seed. LINATTN_STEPS
is how many steps of a pool, 10000000 for those of a day.
"""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import SEED

import linattn

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(linattn._linattn.__file__).resolve().parents[2]
COUNTS = {"modules": 60, "npy": 12, "bundles": 300, "states": 150, "api": 16, "onnx": 20}


@pytest.mark.skipif(not (BUILD / "bin/linattn-run").exists(), reason="the package is not in its build")
@pytest.mark.parametrize("target", COUNTS)
def test_fuzz(target, tmp_path):
    seconds = os.environ.get("LINATTN_FUZZ_SECONDS")
    amount = ["--seconds", seconds] if seconds else ["--count", str(COUNTS[target])]
    packages = os.pathsep.join([str(BUILD / "python"), str(ROOT / "python"), *(path for path in sys.path if path)])
    environment = {**os.environ, "LINATTN_BUILD": str(BUILD), "LINATTN_CACHE": "off", "PYTHONPATH": packages}
    # Files of a finding outlive the test.
    findings = [] if seconds else ["--findings", str(tmp_path)]
    command = [sys.executable, ROOT / "test/Fuzz/fuzz.py", target, "--seed", str(SEED), *amount, *findings]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    left = [path.read_bytes() for path in tmp_path.iterdir()] if done.returncode else []
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-3000:]}\n{left}"


def test_a_pool_that_sequences_join_and_leave():
    steps = os.environ.get("LINATTN_STEPS", "20000")
    packages = os.pathsep.join([str(BUILD / "python"), str(ROOT / "python"), *(path for path in sys.path if path)])
    command = [sys.executable, ROOT / "test/Fuzz/pool.py", "--steps", steps, "--seed", str(SEED)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": packages}, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-3000:]}"
    assert done.stdout.count("sequences with the bits that they have alone") == 4
