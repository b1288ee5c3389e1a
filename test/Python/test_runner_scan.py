"""linattn_runner.scan: the bundles of the package against the reference, and on processors that this machine is not."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import linattn_runner

linattn = pytest.importorskip("linattn")
if not linattn_runner.kernels():
    pytestmark = pytest.mark.skip(reason="this build has no bundles of the runner")

RULES = ("linear", "gated", "gated_channel", "delta", "gated_delta", "gated_delta_channel")


def make(rng, rule, shape, dtype=np.float32):
    B, T, H, heads, K, V = shape
    q, k, v = (rng.standard_normal((B, T, *tail)).astype(dtype) for tail in ((H, K), (heads, K), (heads, V)))
    k = (k / np.linalg.norm(k.astype(np.float32), axis=-1, keepdims=True)).astype(dtype)
    gates = {}
    if rule.startswith("gated"):
        decay = -rng.random((B, T, heads, K) if rule.endswith("channel") else (B, T, heads)).astype(np.float32)
        gates["decay"] = decay
    if "delta" in rule:
        gates |= {"beta": rng.random((B, T, heads), np.float32), "update": "delta"}
    return (q, k, v), gates, rng.standard_normal((B, heads, K, V)).astype(np.float32)


def expected(tokens, gates, **options):
    tokens = [np.asarray(x, np.float64) for x in tokens]
    return linattn.reference.scan(*tokens, **gates, **options)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(2, 37, 4, 2, 64, 64), (1, 1, 2, 2, 128, 128), (1, 130, 1, 1, 48, 20)])
def test_every_bundle(rng, rule, shape, dtype):
    import ml_dtypes

    kind = np.float32 if dtype == "float32" else ml_dtypes.bfloat16
    tokens, gates, state = make(rng, rule, shape, kind)
    o, final = linattn_runner.scan(*tokens, **gates, initial_state=state, return_state=True)
    exact, exact_final = expected(tokens, gates, initial_state=state, return_state=True)[:2]
    bound = 2e-5 if dtype == "float32" else 2e-2
    assert o.dtype == kind and final.dtype == np.float32
    assert np.abs(o.astype(np.float64) - exact).max() < bound * max(1, np.abs(exact).max())
    assert np.abs(final - exact_final.S).max() < bound * max(1, np.abs(exact_final.S).max())


def test_states_and_scales(rng):
    tokens, gates, state = make(rng, "gated_delta", (2, 9, 2, 2, 64, 32))
    whole, end = linattn_runner.scan(*tokens, **gates, scale=0.3, return_state=True)
    assert np.abs(whole - expected(tokens, gates, scale=0.3)).max() < 2e-5
    running = np.zeros_like(state)
    for t in range(9):
        part = {name: x[:, t : t + 1] if name != "update" else x for name, x in gates.items()}
        o, same = linattn_runner.scan(
            *(x[:, t : t + 1] for x in tokens), **part, scale=0.3, initial_state=running, inplace=True, return_state=True
        )
        assert same is running
        assert np.abs(o[:, 0] - whole[:, t]).max() < 2e-5
    assert np.abs(running - end).max() < 2e-5


def test_views_and_torch(rng):
    torch = pytest.importorskip("torch")
    tokens, gates, _ = make(rng, "gated", (1, 20, 2, 2, 16, 16))
    turned = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in tokens]
    plain = linattn_runner.scan(*tokens, **gates)
    np.testing.assert_array_equal(linattn_runner.scan(*turned, **gates), plain)
    tensors = [torch.from_numpy(x) for x in turned]
    o = linattn_runner.scan(*tensors, decay=torch.from_numpy(gates["decay"]))
    np.testing.assert_array_equal(o.numpy(), plain)
    with pytest.raises(ValueError, match="q: expected a tensor without gradients"):
        linattn_runner.scan(tensors[0].requires_grad_(), *tensors[1:])
    with torch.no_grad():
        linattn_runner.scan(*tensors)


def test_errors(rng):
    (q, k, v), gates, state = make(rng, "gated_delta", (1, 5, 4, 2, 8, 8))
    scan = linattn_runner.scan
    for call, message in (
        (lambda: scan(q[0], k, v), "q: expected 4 dimensions, but got 3"),
        (lambda: scan(q, k[..., :4], v), r"k: expected \[1, 5, 2, 8\], but got \[1, 5, 2, 4\]"),
        (lambda: scan(q, k, v[:, :4]), r"v: expected \[1, 5, 2, 8\], but got \[1, 4, 2, 8\]"),
        (lambda: scan(q[:, :, :3], k, v), "q: expected a multiple of the 2 heads of k and v, but got 3"),
        (lambda: scan(q, k, v, update="oja"), "update: expected 'add' or 'delta', but got 'oja'"),
        (lambda: scan(q, k, v, update="delta"), "beta: expected it with update='delta'"),
        (lambda: scan(q, k, v, beta=gates["beta"]), "beta: expected none with update='add'"),
        (lambda: scan(q, k, v, decay=gates["decay"][:, :3]), r"decay: expected \[1, 5, 2\], but got \[1, 3, 2\]"),
        (lambda: scan(q, k, v, initial_state=state[:, :1]), r"initial_state: expected \[1, 2, 8, 8\]"),
        (lambda: scan(q, k, v, inplace=True), "inplace: expected an initial state, but got none"),
        (lambda: scan(q, k, v, scale=float("nan")), "scale: expected a finite number, but got nan"),
        (lambda: linattn_runner.kernel("wkv"), "name: expected one of delta_bf16xf32, .*, but got 'wkv'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="q: expected float32 or bfloat16, but got f64"):
        scan(*(x.astype(np.float64) for x in (q, k, v)))
    with pytest.raises(TypeError, match="initial_state: expected float32, but got f64"):
        scan(q, k, v, initial_state=state.astype(np.float64))
    with pytest.raises(linattn_runner.Error, match="argument 4 .*expected elements of f32|argument 4 .*f32"):
        scan(q, k, v, decay=gates["decay"].astype(np.float64))


PROGRAM = """
import ctypes, sys
import linattn_runner

class Array:  # NumPy itself takes seconds to start in an emulator
    __array_interface__ = None

    def __init__(self, shape, numbers):
        self.shape, self.memory = shape, (ctypes.c_float * len(numbers))(*numbers)
        self.dtype = type("dtype", (), {"name": "float32"})
        self.__array_interface__ = {"data": (ctypes.addressof(self.memory), False), "shape": shape, "typestr": "<f4"}

kernel = linattn_runner.kernel("linear_f32")
numbers = [(i * 37 % 64) / 64 - 0.5 for i in range(3 * 40 * 16)]
q, k, v = (Array((1, 40, 1, 16), numbers[i * 640 : i * 640 + 640]) for i in range(3))
state, o = Array((1, 1, 16, 16), [0.0] * 256), Array((1, 40, 1, 16), [0.0] * 640)
kernel.launch(q, k, v, state, 128**-0.5, o, state)
print(*o.memory)
"""


@pytest.fixture
def on():
    """A function that runs a program of Python on another processor."""
    if not shutil.which("qemu-x86_64"):
        pytest.skip("qemu-x86_64 is missing")
    folder = str(pathlib.Path(linattn_runner.__file__).parents[1])

    def run(cpu, program):
        environment = {**os.environ, "PYTHONPATH": folder, "LINATTN_NUM_THREADS": "1"}
        python = os.path.realpath(sys.executable)
        return subprocess.run(["qemu-x86_64", "-cpu", cpu, python, "-S", "-c", program], env=environment, capture_output=True, text=True)

    return run


def test_a_processor_with_avx2(on):
    """The code for x86-64-v3 runs where the one for x86-64-v4 could not."""
    done = on("Haswell", PROGRAM)
    assert done.returncode == 0, done.stderr
    numbers = np.array([(i * 37 % 64) / 64 - 0.5 for i in range(3 * 640)]).reshape(3, 1, 40, 1, 16)
    exact = linattn.reference.scan(*numbers, scale=128**-0.5)
    assert np.abs(np.array(done.stdout.split(), float) - exact.ravel()).max() < 1e-5


def test_a_processor_without_avx2(on):
    done = on("Nehalem", PROGRAM)
    assert done.returncode == 1
    assert "expected a CPU for x86-64-v3, x86-64-v4, but got x86-64-v2" in done.stderr
