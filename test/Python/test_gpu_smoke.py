"""Public calls in the emulator against the oracle: tools/gpu/acceptance/smoke.py."""

import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
from acceptance import smoke  # noqa: E402


@pytest.mark.parametrize("case", smoke.CASES)
def test_public_calls_in_the_emulator(case):
    record = smoke.run(case, smoke.Emulator())
    assert record["ok"], record


def test_there_are_enough_of_them():
    assert len(smoke.CASES) >= 40


def test_wrong_results_are_found(monkeypatch):
    """An error in any result, of another shape, and what is not finite."""
    right = smoke.Oracle().call
    for wrong in (lambda x: x * 1.01, lambda x: x[:, :-1], lambda x: x * np.nan):
        monkeypatch.setattr(smoke.Emulator, "call", lambda self, name, wrong=wrong, **operands: [*right(name, **operands)[:-1], wrong(right(name, **operands)[-1])])
        record = smoke.run("scan", smoke.Emulator())
        assert not record["ok"] and record["error"] > record["bound"]
    monkeypatch.setattr(smoke.Emulator, "call", lambda self, name, **operands: 1 / 0)
    assert smoke.run("scan", smoke.Emulator())["problem"] == "ZeroDivisionError: division by zero"
