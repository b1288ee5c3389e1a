"""tools/gpu/acceptance.sh without a GPU: the whole of it but the times."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import linattn

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.path.abspath(linattn.__file__)).parents[2]
DRIVER = BUILD / "test" / "FakeDriver" / "liblinattn_fake_cuda.so"

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the package is not in its build")


@pytest.fixture
def acceptance(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "gpu"))
    return lambda name: importlib.import_module(f"acceptance.{name}")


def test_dry_run(tmp_path):
    environment = os.environ | {"PYTHON": sys.executable, "LINATTN_CUDA_DRIVER": str(DRIVER)}
    command = [ROOT / "tools" / "gpu" / "acceptance.sh", "--quick", "--dry-run", "--no-cubin",
               "--package", tmp_path / "package", "--report", tmp_path / "report"]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "package" / "results" / "results.json").read_text())
    assert results["dry_run"] and len(results["checks"]) == 5 and all(record["ok"] for record in results["checks"])
    assert {record["form"] for record in results["checks"]} == {"carry", "step"}
    times = [record for record in results["times"] if record["implementation"] == "linattn"]
    assert [record["group"] for record in times] == ["standard", "decode"]
    # No figure that nobody measured.
    assert all(record["ms"] is None for record in results["times"]) and results["launch_us"] is None
    assert results["skipped"] == []
    missing = dict(results["missing"])
    assert "FLA" in missing or "FLA" in {record["implementation"] for record in results["times"]}
    text = (tmp_path / "report" / "README.md").read_text()
    assert "A dry run" in text and "5 of 5 kernels agree with float64" in text


def test_wrong_results_are_found(acceptance, monkeypatch):
    checks, device, cases = acceptance("checks"), acceptance("device"), acceptance("cases")
    dry = device.DryDevice()

    monkeypatch.setattr(checks.runner, "bind", lambda kernel, views, allocate: lambda stream: None)
    kernel = cases.Kernel("gated_delta", "bf16", 2, 16, "carry")
    assert checks.check(dry, kernel, None, tokens=9)["ok"]
    right = dry.fill
    dry.fill = lambda arrays, values: right(arrays, [values[0] * 1.02, *values[1:]])
    assert not checks.check(dry, kernel, None, tokens=9)["ok"]
    dry.fill = lambda arrays, values: right(arrays[:1], values[:1])  # a state that nobody wrote
    record = checks.check(dry, kernel, None, tokens=9)
    assert not record["ok"] and record["state_error"] == float("inf")
    calls = iter(range(9))
    dry.fill = lambda arrays, values: right(arrays, [value * (1 + 1e-7 * next(calls)) for value in values])
    assert not checks.check(dry, kernel, None, tokens=9)["same_bits"]


def test_the_reference_is_that_of_the_project(acceptance):
    checks, reference, cases, device = (acceptance(name) for name in ("checks", "reference", "cases", "device"))
    dry = device.DryDevice()
    for rule in cases.RULES.values():
        arrays = checks.make_arrays(dry, rule, "f32", 2, 13, 3, 8)
        state = checks.make_state(dry, rule, 2, 3, 8)
        wide = {name: array.astype(np.float64) for name, array in arrays.items()}
        scale = 1.0 if rule.name == "rwkv7" else 8**-0.5
        out, S, _ = reference.scan(np, rule, wide, (state[0], state[1] if rule.normalize else None), scale, cases.EPS)
        options = {"g": "decay", "beta": "beta", "bonus": "bonus", "a": "a", "b": "b"}
        gates = {options[name]: arrays[name] for name, _ in rule.gates}
        want, final = linattn.reference.scan(
            *(arrays[name] for name in "qkv"), **gates, scale=scale, normalize=rule.normalize,
            update="delta" if rule.is_delta else "dplr" if "a" in arrays else "add",
            readout="exclusive" if "bonus" in arrays else "inclusive",
            feature_map="elu" if rule.feature_map else None, eps=cases.EPS if rule.normalize else None,
            initial_state=linattn.State(*state), return_state=True,
        )  # fmt: skip
        np.testing.assert_allclose(out, want, rtol=1e-9, atol=1e-9, err_msg=rule.name)
        np.testing.assert_allclose(S, final.S, rtol=1e-9, atol=1e-9, err_msg=rule.name)


def test_every_function_parses(acceptance):
    cases = acceptance("cases")
    seen = set()
    for kernel in cases.kernels():
        kind = (kernel.rule, kernel.form)
        if kind not in seen:
            seen.add(kind)
            text = cases.module_text(kernel)
            assert linattn.compile(text).entry == kernel.name
    assert len(seen) == 26
