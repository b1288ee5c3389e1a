"""Arrays of a GPU: where calls go and what is launched, on a driver that runs no kernel."""

import ctypes
import os
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

import linattn
from linattn import _linattn

BUILD = pathlib.Path(os.path.abspath(linattn.__file__)).parents[2]
DRIVER = BUILD / "test" / "FakeDriver" / "liblinattn_fake_cuda.so"

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the package is not in its build")


class Device:
    """A NumPy array that says that it is on a GPU; kernels do not run, so that its memory
    may be the host's."""

    def __init__(self, array, ordinal=0):
        self.array, self.ordinal, self.streams = array, ordinal, []
        self.dtype, self.shape = array.dtype, array.shape

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return 2, self.ordinal

    @property
    def address(self):
        return self.array.ctypes.data


class Interface:
    """The same by CUDA's own interface, with a stream."""

    def __init__(self, array, stream=None, **changes):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        data = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ctypes.data, False), "version": 3}
        self.__cuda_array_interface__ = data | {"stream": stream, "strides": array.strides} | changes


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL(str(DRIVER))
        for name in ("fakeCudaCalls", "fakeCudaComplaints"):
            getattr(self.cuda, name).restype = ctypes.c_char_p

    def reset(self):
        self.cuda.fakeCudaReset()

    def calls(self, name=""):
        assert self.cuda.fakeCudaComplaints() == b""
        return [line for line in self.cuda.fakeCudaCalls().decode().splitlines() if line.startswith(name)]

    def launches(self):
        return self.calls("cuLaunchKernel")


@pytest.fixture(scope="module", autouse=True)
def chosen():
    # PTX, whose parameters the driver checks; the driver is opened once for a process.
    os.environ |= {"LINATTN_CUDA_DRIVER": str(DRIVER), "LINATTN_PTXAS": ""}


@pytest.fixture
def driver():
    fake = Driver()
    fake.reset()
    return fake


@pytest.fixture
def arrays(rng):
    return [rng.standard_normal((2, 70, 4, 64)).astype(np.float16) for _ in range(3)]


def test_arrays_of_a_gpu_are_worked_on_there(driver, arrays):
    q, k, v = map(Device, arrays)
    out = linattn.scan(q, k, v)
    assert out.__dlpack_device__() == (2, 0)
    (launch,) = driver.launches()
    assert launch.startswith("cuLaunchKernel scan_scan grid 8 1 1 block 128 1 1 ") and " stream 0 " in launch
    for operand in (q, k, v):
        assert f" {operand.address:x} " in launch
        assert operand.streams == [1]  # the default stream, as DLPack numbers it
    # Memory of our own is given away only when it is ready.
    assert driver.calls("cuStreamSynchronize")
    driver.reset()
    linattn.scan(*arrays)
    assert driver.calls() == []


ATTENTION = [("softmax", False, ["quadratic"]), ("softmax", True, ["quadratic"]),
             ("linear", False, ["state", "read"]), ("linear", True, ["scan"])]  # fmt: skip


@pytest.mark.parametrize("weights, causal, kernels", ATTENTION)
def test_attention_takes_kernels_alone(driver, arrays, weights, causal, kernels):
    linattn.attention(*map(Device, arrays), weights=weights, causal=causal)
    launches = [line.split()[1] for line in driver.launches()]
    assert launches[-len(kernels) :] == [f"attention_{name}" for name in kernels]
    # Beside them there may be fills of a normalizer, before a scan.
    assert len(launches) == len(kernels) or weights == "linear" and causal


@pytest.mark.parametrize("weights, causal, kernels", ATTENTION)
def test_attention_in_the_emulator(rng, weights, causal, kernels):
    q, k, v = (rng.standard_normal((2, 40, 2, 32)).astype(np.float16) for _ in range(3))
    out = linattn.attention(q, k, v, weights=weights, causal=causal, target="nvvm-emulated")
    expected = linattn.reference.attention(q, k, v, weights=weights, causal=causal)
    assert np.abs(out - expected).max() <= 1e-3 * np.abs(expected).max()


def test_the_second_call_loads_nothing(driver, arrays):
    q, k, v = map(Device, arrays)
    linattn.scan(q, k, v)
    driver.reset()
    linattn.scan(q, k, v)
    assert len(driver.launches()) == 1 and driver.calls("cuModuleLoadDataEx") == []


def test_gates_have_any_strides(driver, arrays, rng):
    # [B, T, H] as kernels see it, [B, H, T], has H between two tokens.
    decay = Device(-rng.random((2, 70, 4)).astype(np.float32))
    beta = Device(rng.random((2, 70, 4)).astype(np.float32))
    tokens = list(map(Device, arrays))
    linattn.scan(*tokens, decay=decay)
    linattn.scan(*tokens, decay=decay, beta=beta, update="delta")
    for launch in driver.launches():
        assert f" {decay.address:x} " in launch


def test_strided_gates_in_the_emulator(rng):
    q, k, v = (rng.standard_normal((2, 20, 4, 16)).astype(np.float32) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    gates = {"decay": -rng.random((2, 20, 4)).astype(np.float32), "beta": rng.random((2, 20, 4)).astype(np.float32)}
    out = linattn.scan(q, k, v, update="delta", target="nvvm-emulated", **gates)
    expected = linattn.reference.scan(q, k, v, update="delta", **gates)
    assert np.abs(out - expected).max() <= 5e-6 * np.abs(expected).max()


def test_cuda_array_interface_and_its_stream(driver, arrays):
    q, k, v = (Interface(array, stream=0x77) for array in arrays)
    linattn.scan(q, k, v)
    (launch,) = driver.launches()
    assert " stream 77 " in launch
    with pytest.raises(TypeError, match="q: expected elements of type .* but got <c8"):
        linattn.scan(Interface(arrays[0], typestr="<c8"), k, v)


@pytest.fixture
def torch(monkeypatch):
    """As much of PyTorch as calls need."""
    module = types.ModuleType("torch")

    class Tensor(Device):
        __module__ = "torch"
        requires_grad = False
        device = "cuda:0"

        def new_empty(self, shape, dtype):
            return Tensor(np.full(shape, 7, dtype))

        def to(self, device):
            assert device == self.device
            return self

        def cpu(self):
            return self.array.copy()

        def __getitem__(self, index):
            return Tensor(self.array[index.array if isinstance(index, Tensor) else index])

        def __setitem__(self, index, value):
            assert not isinstance(index, np.ndarray)  # which PyTorch would have to copy
            value = value.array if isinstance(value, Tensor) else value
            self.array[index.array if isinstance(index, Tensor) else index] = value

    module.Tensor = Tensor
    module.from_dlpack = Tensor
    for name in ("float16", "float32", "int8", "int32", "int64"):
        setattr(module, name, name)
    stream = types.SimpleNamespace(cuda_stream=0xABC)
    module.cuda = types.SimpleNamespace(current_stream=lambda device: stream)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_torch_allocates_and_names_the_stream(driver, arrays, torch):
    q, k, v = map(torch.Tensor, arrays)
    out, state = linattn.scan(q, k, v, return_state=True)
    assert type(out) is torch.Tensor and type(state.S) is torch.Tensor
    launches = driver.launches()
    assert all(" stream abc " in launch for launch in launches)
    assert f" {out.address:x} " in launches[-1] and f" {state.S.address:x} " in launches[-1]
    assert q.streams == [0xABC]
    # Nothing waits, nothing is allocated but by PyTorch: such a call can be captured.
    assert driver.calls("cuMemAlloc") == driver.calls("cuStreamSynchronize") == []


def test_lists_of_offsets_go_where_the_tokens_are(driver, arrays, torch):
    q, k, v = (torch.Tensor(array[:1]) for array in arrays)
    out = linattn.scan(q, k, v, cu_seqlens=[0, 30, 70])
    assert type(out) is torch.Tensor
    assert " grid 8 1 1 " in driver.launches()[-1]


def test_decoding_updates_the_state_in_place(driver, rng, torch):
    q, k, v = (torch.Tensor(rng.standard_normal((3, 1, 2, 64)).astype(np.float16)) for _ in range(3))
    state = linattn.State.zeros(3, 2, 64, 64, like=q)
    address = state.S.address
    for _ in range(2):
        state.step(q, k, v)
    assert state.S.address == address
    assert len(driver.launches()) == 2


def test_a_pool_is_where_its_tokens_are(driver, rng, torch):
    q, k, v = (torch.Tensor(rng.standard_normal((2, 1, 2, 64)).astype(np.float16)) for _ in range(3))
    pool = linattn.StatePool(5, 2, 64, 64, like=q)
    assert type(pool.states.S) is torch.Tensor and pool.states.S.shape == (5, 2, 64, 64)
    memory = pool.states.S.address
    rows = pool.allocate(3)
    pool.states.S.array[...] = rng.standard_normal((5, 2, 64, 64))
    indices = torch.Tensor(rows[:2].astype(np.int32))
    out = pool.step(q, k, v, rows[:2])
    assert type(out) is torch.Tensor
    pool.step(q, k, v, indices)
    driver.reset()
    pool.step(q, k, v, indices)
    # One kernel, on the pool itself and the rows that were given; a graph can capture it.
    (launch,) = driver.launches()
    assert launch.count(f" {memory:x}") == 1 and f" {indices.address:x} " in launch + " "
    assert pool.states.S.address == memory
    assert driver.calls("cuMem") == driver.calls("cuStreamSynchronize") == driver.calls("cuModule") == []
    # Rows go in and out.
    state = pool.read(rows[1:])
    assert type(state.S) is torch.Tensor and (state.S.array == pool.states.S.array[rows[1:]]).all()
    pool.write(rows[:2], state)
    assert (pool.states.S.array[rows[0]] == state.S.array[0]).all()
    pool.write(rows[:1], linattn.State(np.ones((1, 2, 64, 64), np.float32)))
    assert (pool.states.S.array[rows[0]] == 1).all()
    pool.free(torch.Tensor(rows[:1]))
    assert pool.available == 3 and pool.allocate(1)[0] == rows[0]
    assert (pool.states.S.array[rows[0]] == 0).all()
    driver.reset()
    for bad, message in (([0, 5], "from -1 to 4, but got 5"), ([1, 1], "every row once, but got 1 twice"), ([-2, 0], "but got -2")):
        with pytest.raises(ValueError, match=message):
            pool.step(q, k, v, bad)
    with pytest.raises(ValueError, match="got 3, which is free"):
        pool.read([3])
    assert driver.launches() == []
    with pytest.raises(TypeError, match="like: expected an array of PyTorch or CuPy on the GPU, but got Device"):
        linattn.StatePool(5, 2, 64, 64, like=Device(q.array))


@pytest.mark.parametrize("update", ["add", "delta"])
def test_pools_in_the_emulator(rng, update):
    q, k, v = (rng.standard_normal((3, 1, 2, 32)).astype(np.float32) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    gates = {"decay": -rng.random((3, 1, 2)).astype(np.float32)}
    if update == "delta":
        gates["beta"] = rng.random((3, 1, 2)).astype(np.float32)
    results = []
    for target in ("cpu", "nvvm-emulated"):
        pool = linattn.StatePool(6, 2, 32, 32)
        pool.allocate(6)
        pool.states.S[...] = np.random.default_rng(3).standard_normal((6, 2, 32, 32))
        outs = [pool.step(q, k, v, [4, -1, 2], update=update, target=target, **gates) for _ in range(2)]
        results.append([*outs, pool.states.S])
    for got, expected in zip(*results):
        assert np.abs(got - expected).max() <= 5e-6 * np.abs(expected).max()


def test_named_families(driver, rng, torch):
    q, k, v = (torch.Tensor(rng.standard_normal((1, 70, 2, 64)).astype(np.float16)) for _ in range(3))
    g = torch.Tensor(-rng.random((1, 70, 2)).astype(np.float32))
    out, _ = linattn.fla.chunk_simple_gla(q, k, v, g)
    assert type(out) is torch.Tensor and driver.launches()


def test_compiled_functions_take_arrays_of_the_gpu(driver):
    text = """
func.func @add(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %r = linalg.add ins(%x, %y : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}"""
    add = linattn.compile(text, target="nvvm")
    x = np.ones((5, 8), np.float32)
    add(Device(x), Device(x))
    assert len(driver.launches()) == 1
    with pytest.raises(ValueError, match="'add': expected arrays in the memory of a GPU, .* but got arrays in the memory of the CPU"):
        add(x, x)
    with pytest.raises(ValueError, match="argument 1 .*: expected shape .*x8, but got 5x9"):
        add(Device(x), Device(np.ones((5, 9), np.float32)))


def test_arrays_that_are_elsewhere(driver, arrays):
    q, k, v = map(Device, arrays)
    with pytest.raises(ValueError, match="k: expected an array where the first one is, GPU 0, but got one in the memory of the CPU"):
        linattn.scan(q, arrays[1], v)
    with pytest.raises(ValueError, match="target='nvvm', but got arrays in the memory of the CPU"):
        linattn.scan(*arrays, target="nvvm")
    with pytest.raises(ValueError, match="target='cpu', but got arrays in the memory of a GPU"):
        linattn.scan(q, k, v, target="cpu")
    with pytest.raises(ValueError, match="k: expected an array where the first one is, GPU 0, but got one in GPU 1"):
        linattn.scan(q, Device(arrays[1], 1), v)
    with pytest.raises(TypeError, match="out: expected dtype float16, but got float32"):
        linattn.scan(q, k, v, out=Device(np.empty((2, 70, 4, 64), np.float32)))
    assert driver.launches() == []


def test_arrays_of_another_gpu_than_the_current_one(driver, arrays):
    out = linattn.scan(*(Device(array, 1) for array in arrays))
    assert out.__dlpack_device__() == (2, 1)
    calls = [line.split()[0] for line in driver.calls()]
    # Its context is current for the launch, and no longer than the call.
    assert calls.index("cuCtxPushCurrent") < calls.index("cuLaunchKernel") < calls.index("cuCtxPopCurrent")
    assert calls.count("cuCtxPushCurrent") == calls.count("cuCtxPopCurrent")
    # So it is where the call fails.
    driver.reset()
    driver.cuda.fakeCudaFail(b"cuLaunchKernel", 700, 0)
    with pytest.raises(ValueError, match="700"):
        linattn.scan(*(Device(array, 1) for array in arrays))
    calls = [line.split()[0] for line in driver.calls()]
    assert calls.count("cuCtxPushCurrent") == calls.count("cuCtxPopCurrent") > 0


def zeros(*shape):
    return Device(np.zeros(shape, np.float16))


@pytest.mark.parametrize("update", ["add", "delta"])
@pytest.mark.parametrize("batch, tokens, segments", [(1, 8192, True), (8, 8192, False), (1, 300, False)])
def test_sizes_of_the_call_choose_the_schedule(driver, batch, tokens, segments, update):
    """Of one compiled function: few heads and many tokens go in segments, as in a module of these sizes."""
    q = zeros(batch, tokens, 16, 64)
    gates = {"beta": zeros(batch, tokens, 16)} if update == "delta" else {}
    call = lambda: linattn.scan(q, q, q, update=update, **gates)  # noqa: E731
    call()
    launches = [line.split()[1] for line in driver.launches()]
    assert launches == (["scan_scan_increments", "scan_scan_states"] if segments else []) + ["scan_scan"]
    (remark,) = [line for line in linattn.explain(call).splitlines() if "select-schedule" in line]
    assert (f"{8 if update == 'add' else 16} segments" in remark) == segments and "on 132 multiprocessors" in remark
    assert f"chosen for {batch} sequences, {tokens if tokens > 300 else 256} tokens" in remark


OPTIONS_OF_SEGMENTS = {
    "plain": {},
    "normalized": {"normalize": True, "feature_map": "elu"},
    "packed": {"cu_seqlens": [0, 2000, 4100]},
    "delta": {"update": "delta", "beta": np.full((1, 4100, 1), 0.5, np.float32)},
}


@pytest.mark.parametrize("options", OPTIONS_OF_SEGMENTS.values(), ids=OPTIONS_OF_SEGMENTS)
def test_segments_of_python_calls_in_the_emulator(rng, options):
    T = 4100 if options else 2100
    q, k, v = (rng.standard_normal((1, T, 1, 16)).astype(np.float16) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    call = lambda target: linattn.scan(q, k, v, **options, target=target)  # noqa: E731
    assert "segments:" in linattn.explain(lambda: call("nvvm-emulated"))
    got, expected = call("nvvm-emulated"), call("reference")
    assert np.abs(got - expected).max() <= 1e-3 * np.abs(expected).max()


PROGRAM = """
import sys
import numpy as np, linattn
class Device:
    dtype, shape = np.dtype('f2'), (1, int(sys.argv[2]), 1, 8)
    def __dlpack__(self, **_): return np.ones(self.shape, np.float16).__dlpack__()
    def __dlpack_device__(self): return 2, 0
x = Device()
call = {"softmax": lambda: linattn.attention(x, x, x, weights='softmax'), "scan": lambda: linattn.scan(x, x, x)}[sys.argv[1]]
print(linattn.explain(call))
call()
"""


def run(call="softmax", tokens=4, **environment):
    environment = os.environ | {"PYTHONPATH": str(BUILD / "python"), "LINATTN_CACHE": "off"} | environment
    done = subprocess.run([sys.executable, "-c", PROGRAM, call, str(tokens)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_code_is_for_the_device():
    # Of 9.0 that is sm_90a, whose warpgroups multiply.
    assert ", wgmma" in run()
    assert "wgmma is code for the chip sm_90a" in run(LINATTN_CHIP="sm_90")


def test_warpgroups_multiply_scans_by_choice():
    assert "mma_sync: scan-mma=wgmma selects warpgroups" in run("scan", 4096)
    assert "8 warps, 32 columns of the state: products of matrices, chunk by chunk, wgmma" in run("scan", 4096, LINATTN_SCAN_MMA="wgmma")


def test_an_old_ptxas_leaves_ptx_to_the_driver(tmp_path):
    old = tmp_path / "ptxas"
    old.write_text("#!/bin/sh\necho 'ptxas fatal : unknown chip' >&2\nexit 255\n")
    old.chmod(0o755)
    said = run(LINATTN_PTXAS=str(old))
    assert "PTX of 'attention_quadratic" in said and "unknown chip" in said


def test_errors_of_the_driver_are_reported(driver, arrays):
    q, k, v = map(Device, arrays)
    linattn.scan(q, k, v)
    driver.cuda.fakeCudaFail(b"cuLaunchKernel", 700, 0)
    with pytest.raises(ValueError, match=r"cuLaunchKernel: .*\(700\)"):
        linattn.scan(q, k, v)


def test_code_is_kept_on_disk(driver, arrays, tmp_path, monkeypatch):
    monkeypatch.setenv("LINATTN_CACHE_DIR", str(tmp_path))
    text = "func.func @f(%x: tensor<7xf32>) -> tensor<7xf32> {\n %e = tensor.empty() : tensor<7xf32>\n" \
        "%r = linalg.exp ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>\n return %r : tensor<7xf32> }"  # fmt: skip
    before = _linattn.cache_stats()
    linattn.compile(text, target="nvvm")
    _linattn.clear_cache()
    kernel = linattn.compile(text, target="nvvm")
    after = _linattn.cache_stats()
    assert after["misses"] == before["misses"] + 1 and after["disk_hits"] == before["disk_hits"] + 1
    kernel(Device(np.ones(7, np.float32)))
    assert len(driver.launches()) == 1
    # Another chip is other code.
    driver.cuda.fakeCudaSetDevice(8, 0, 163 * 1024)
    linattn.compile(text, target="nvvm")
    assert _linattn.cache_stats()["misses"] == before["misses"] + 2


def test_without_a_driver_the_error_says_so():
    program = (
        "import numpy as np, linattn\n"
        "class Device:\n"
        "    dtype, shape = np.dtype('f4'), (1, 4, 1, 8)\n"
        "    def __dlpack__(self, **_): return np.ones((1, 4, 1, 8), np.float32).__dlpack__()\n"
        "    def __dlpack_device__(self): return 2, 0\n"
        "try: linattn.scan(Device(), Device(), Device())\n"
        "except ValueError as error: print(error)\n"
    )
    environment = os.environ | {"LINATTN_CUDA_DRIVER": "/nowhere/libcuda.so"}
    environment["PYTHONPATH"] = str(BUILD / "python")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "/nowhere/libcuda.so" in done.stdout, done
