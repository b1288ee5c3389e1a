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
    monkeypatch.setenv("LINATTN_CUDA_DRIVER", str(DRIVER))
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "gpu"))
    return lambda name: importlib.import_module(f"acceptance.{name}")


def test_dry_run(tmp_path):
    environment = os.environ | {"PYTHON": sys.executable, "LINATTN_CUDA_DRIVER": str(DRIVER)}
    command = [ROOT / "tools" / "gpu" / "acceptance.sh", "--quick", "--dry-run", "--no-cubin",
               "--package", tmp_path / "package", "--report", tmp_path / "report"]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "package" / "results" / "results.json").read_text())
    assert results["dry_run"] and len(results["checks"]) == 6 and all(record["ok"] for record in results["checks"])
    assert {record["form"] for record in results["checks"]} == {"carry", "step", "prefill"}
    times = [record for record in results["times"] if record["implementation"] == "linattn"]
    assert [record["group"] for record in times] == ["standard", "decode"]
    # Only measured figures.
    assert all(record["ms"] is None for record in results["times"]) and results["launch_us"] is None
    assert results["skipped"] == []
    assert results["broken"] == []
    missing = dict(results["missing"])
    assert "FLA" in missing or "FLA" in {record["implementation"] for record in results["times"]}
    # Every instruction of the chip was launched, with the number that predictions take.
    assert len(results["pipes"]) == 8 and all(record["cycles"] is None and record["model"][0] for record in results["pipes"])
    text = (tmp_path / "report" / "README.md").read_text()
    assert "| `ldmatrix.x4` | – | 16 | – | 33 |" in text and "Published by others" in text
    assert "A dry run" in text and "6 of 6 kernels agree with float64" in text


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acceptance") / "package"
    command = [ROOT / "tools" / "gpu" / "acceptance.sh", "--build-only", "--quick", "--no-cubin", "--package", folder]
    done = subprocess.run(command, env=os.environ | {"PYTHON": sys.executable}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run_package(package, out, *options, **environment):
    environment = os.environ | {"LINATTN_CUDA_DRIVER": str(DRIVER), "PYTHONPATH": str(package)} | environment
    command = [sys.executable, "-m", "acceptance", package, "--dry-run", "--out", out, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.returncode, json.loads((out / "results.json").read_text()), (out / "results.md").read_text()


def test_a_build_goes_on_where_it_was(package, acceptance):
    cache = package.with_name(package.name + ".cache")
    before = {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert len(before) == 12
    next(cache.glob("*.json")).unlink()  # As an interrupted build leaves it.
    command = [ROOT / "tools" / "gpu" / "acceptance.sh", "--build-only", "--quick", "--no-cubin", "--package", package]
    done = subprocess.run(command, env=os.environ | {"PYTHON": sys.executable}, capture_output=True, text=True)
    assert done.returncode == 0 and "6 kernels in" in done.stdout
    after = {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert before.keys() == after.keys() and sum(before[name] != after[name] for name in before) == 2


def test_a_kernel_that_hangs_costs_itself(package, tmp_path):
    code, results, text = run_package(package, tmp_path, "--step-seconds", "3", FAKE_CUDA_HANG="elu_f32")
    assert code == 1
    bad = [record for record in results["checks"] if not record["ok"]]
    assert [record["kernel"] for record in bad] == ["elu_f32_h2_d16_carry"] and "did not end within 3 s" in bad[0]["problem"]
    assert len(results["checks"]) == 6 and len(results["times"]) >= 2
    assert "check:elu_f32_h2_d16_carry: did not end within 3 s" in text


def test_a_broken_context_costs_one_kernel(package, tmp_path):
    code, results, _ = run_package(package, tmp_path, FAKE_CUDA_POISON="gated_delta_f32")
    assert code == 1 and len(results["checks"]) == 6 and len(results["times"]) >= 2
    bad = [record for record in results["checks"] if not record["ok"]]
    assert [record["kernel"] for record in bad] == ["gated_delta_f32_h2_d16_carry"]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in bad[0]["problem"]


def test_a_machine_without_a_gpu(package, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(package), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-m", "acceptance", package, "--out", tmp_path], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["broken"]) == 1 and results["broken"][0].startswith("start: ")
    assert "start: " in (tmp_path / "results.md").read_text()


def test_wrong_results_are_found(acceptance, monkeypatch):
    checks, device, cases = acceptance("checks"), acceptance("device"), acceptance("cases")
    dry = device.DryDevice()

    monkeypatch.setattr(checks.runner, "bind", lambda kernel, views, allocate: lambda stream: None)
    kernel = cases.Kernel("gated_delta", "bf16", 2, 16, "carry")
    assert checks.check(dry, kernel, None, tokens=9)["ok"]
    right = dry.fill
    dry.fill = lambda arrays, values: right(arrays, [values[0] * 1.02, *values[1:]])
    assert not checks.check(dry, kernel, None, tokens=9)["ok"]
    dry.fill = lambda arrays, values: right(arrays[:1], values[:1])  # a state that was not written
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
        if rule.attention:
            out = reference.attention(np, rule, wide, scale, cases.EPS)
            options = {"feature_map": "elu", "eps": cases.EPS} if rule.feature_map else {"weights": "softmax"}
            expected = linattn.reference.attention(
                *(arrays[name] for name in "qkv"), scale=scale, causal="causal" in rule.attention, **options
            )
            np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9, err_msg=rule.name)
            continue
        out, S, _ = reference.scan(np, rule, wide, (state[0], state[1] if rule.normalize else None), scale, cases.EPS)
        options = {"g": "decay", "gv": "value_decay", "beta": "beta", "bonus": "bonus", "a": "a", "b": "b"}
        gates = {options[name]: arrays[name] for name, _ in rule.gates}
        expected, final = linattn.reference.scan(
            *(arrays[name] for name in "qkv"), **gates, scale=scale, normalize=rule.normalize,
            update="delta" if rule.is_delta else "dplr" if "a" in arrays else "add",
            readout="exclusive" if "bonus" in arrays else "inclusive",
            feature_map="elu" if rule.feature_map else None, eps=cases.EPS if rule.normalize else None,
            initial_state=linattn.State(*state), return_state=True,
        )  # fmt: skip
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9, err_msg=rule.name)
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
    assert len(seen) == 31


def test_products_of_warpgroups_are_for_one_chip(acceptance):
    cases = acceptance("cases")
    everywhere = cases.kernels()
    there = set(cases.kernels(chips="sm_80,sm_90a")) - set(everywhere)
    assert not any(cases.RULES[kernel.rule].options for kernel in everywhere)
    maps = {kernel for kernel in there if kernel.rule.endswith("_tma")}
    assert {kernel.rule for kernel in maps} == {"softmax_tma", "softmax_all_tma"}
    assert {kernel.size for kernel in maps} == {16, 32, 64, 96, 128, 192, 256}
    scans = there - maps
    assert {kernel.rule for kernel in scans} == {"linear_wgmma", "simple_gla_wgmma"}
    assert {kernel.size for kernel in scans} == {16, 32, 60, 64, 96, 128}
    for kernels in (maps, scans):
        assert any(kernel.heads > cases.CHECKED_HEADS for kernel in kernels)  # those that are timed
    # Beside each stands the kernel that is chosen otherwise.
    assert all(cases.Kernel(kernel.rule.rpartition("_")[0], *list(vars(kernel).values())[1:]) in everywhere for kernel in there)
