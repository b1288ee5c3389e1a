"""The bfloat16 tests of other files with every kernel in tiles of a matrix unit, emulated: in a process of
their own, since plans of calls are kept as they were made."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
FILES = [
    "test_agreement.py", "test_inplace.py", "test_kda_layer.py", "test_norms.py", "test_operand_layouts.py",
    "test_same_bits.py", "test_sequences.py", "test_transformers.py", "test_transformers_linear.py",
]  # fmt: skip


def test_in_tiles():
    environment = {**os.environ, "LINATTN_MATRIX_UNIT": "emulated", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "bfloat16"]
    done = subprocess.run(command + [HERE / name for name in FILES], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
