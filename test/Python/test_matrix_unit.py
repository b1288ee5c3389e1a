"""Calls of bfloat16 with every kernel in tiles of a matrix unit, emulated: in processes of their own, since plans
of calls are kept as they were made."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
FILES = [
    "test_agreement.py", "test_inplace.py", "test_kda_layer.py", "test_norms.py", "test_operand_layouts.py",
    "test_same_bits.py", "test_sequences.py", "test_transformers.py", "test_transformers_linear.py",
]  # fmt: skip


EXPLAIN = """
import sys, torch, linattn
def tokens(T):
    return [torch.zeros(1, T, 2, 64, dtype=torch.bfloat16)] * 3
def tell(call, T, **options):
    print(call.__name__, T, *options, linattn.explain(call, *tokens(T), **options), "", sep="\\n")
for T in (127, 128):
    tell(linattn.simple_gla, T)
for T in (63, 64):
    tell(linattn.simple_gla, T, output_final_state=True)
tell(linattn.attention, 200, feature_map="identity", normalize=False)
"""


def run_in_tiles(*arguments):
    environment = {**os.environ, "LINATTN_MATRIX_UNIT": "emulated", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_divides_by_tokens():
    """Few tokens from zeros have a kernel of vectors, many one without a side for few."""
    done = run_in_tiles("-c", EXPLAIN)
    assert done.returncode == 0, done.stderr
    few, many, few_to_state, many_to_state, all_keys = done.stdout.split("\n\n")[:5]
    chunks = "filled up with zeros from 32 on, and stays as it is for fewer behind them\n"
    assert "stays a scan: it has fewer than 128 tokens" in few
    assert "stays a scan: it has fewer than 64 tokens" in few_to_state
    assert chunks in many + "\n" and chunks in many_to_state + "\n"
    assert "fewer behind them, and for fewer than 64" in all_keys  # queries and keys may differ in number
    assert "stays a state" not in all_keys and "stays a read" not in all_keys


def test_in_tiles():
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "bfloat16"]
    done = run_in_tiles(*command, *(HERE / name for name in FILES))
    assert done.returncode == 0, done.stdout
