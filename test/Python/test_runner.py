"""linattn_runner against the fake driver, and on the CPU. In processes of their own: the driver is chosen once."""

import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

BUILD = pathlib.Path(os.environ.get("LINATTN_BUILD", pathlib.Path(__file__).parents[2] / "build"))
BUNDLES = BUILD / "test/Unit/Bundles"
FAKE = BUILD / "test/FakeDriver/liblinattn_fake_cuda.so"

pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="the fake driver is not built")
os.environ.setdefault("LINATTN_CUDA_DRIVER", str(FAKE))

import linattn_runner  # noqa: E402


class DeviceArray:
    """Host memory that passes for a device's."""

    _strs = {"f32": "<f4", "bf16": "<V2", "i8": "|i1"}

    def __init__(self, shape, dtype="f32", strides=None):
        size = linattn_runner._library.SIZES[dtype]
        raw = np.zeros(int(np.prod(shape)) * size + 512, np.uint8)
        self.raw, start = raw, -raw.ctypes.data % 256
        self.address = raw.ctypes.data + start
        self.shape, self.dtype, self.strides = shape, dtype, strides
        self.interface = {
            "shape": shape,
            "typestr": self._strs[dtype],
            "data": (self.address, False),
            "strides": strides and tuple(s * size for s in strides),
            "version": 3,
        }


class CudaArray(DeviceArray):
    @property
    def __cuda_array_interface__(self):
        return self.interface


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLPackArray(DeviceArray):
    """The same by DLPack, which has bf16."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.streams = []
        strides = self.strides or linattn_runner._arrays._contiguous(self.shape)
        self.numbers = (ctypes.c_int64 * (2 * len(strides)))(*self.shape, *strides)
        start = ctypes.addressof(self.numbers)
        code, bits = {"f32": (2, 32), "bf16": (4, 16)}[self.dtype]
        rank = len(strides)
        tensor = DLTensor(self.address, 2, 0, rank, code, bits, 1, start, start + 8 * rank, 0)
        self.managed = DLManagedTensor(tensor, None, None)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.new = new

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.new(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.fixture
def fake():
    library = ctypes.CDLL(os.environ["LINATTN_CUDA_DRIVER"])
    library.fakeCudaCalls.restype = library.fakeCudaComplaints.restype = ctypes.c_char_p
    library.fakeCudaReset()
    library.fakeCudaSetContext(1)
    yield library
    assert library.fakeCudaComplaints() == b""
    library.fakeCudaReset()


def calls(fake):
    lines = fake.fakeCudaCalls().decode().splitlines()
    fake.fakeCudaReset()
    return lines


def load(name):
    return linattn_runner.load(BUNDLES / f"{name}.lab")


def layer_arrays(make, tokens=10):
    q, k, v, o = (make((2, 8, tokens, 64), "bf16") for _ in range(4))
    s, t = (make((2, 8, 64, 64), "f32") for _ in range(2))
    return q, k, v, s, o, t


def test_describes_itself():
    kernel = load("layer")
    assert kernel.target == "nvvm" and kernel.entry == "layer"
    assert [x.name for x in kernel.arguments] == ["q", "k", "v", "s"]
    assert kernel.arguments[1].shape == (2, 8, None, 64) and kernel.arguments[1].dtype == "bf16"
    assert [x.in_place_of for x in kernel.results] == [None, 3]
    assert kernel.manifest["variants"][0]["chip"] == "sm_80"
    assert repr(kernel.arguments[1]) == "<k: 2x8x?x64xbf16>"


def test_dlpack(fake):
    kernel = load("layer")
    *inputs, o, t = layer_arrays(DLPackArray)
    kernel.prepare()
    calls(fake)
    assert kernel(*inputs, out=(o, t), stream=0xABC) == (o, t)
    (call,) = calls(fake)
    addresses = [f"{x.address:x}" for x in (inputs[0], inputs[1], inputs[2], o, inputs[3], t)]
    words = call.split()
    assert words[words.index("stream") + 1] == "abc"
    assert [words[words.index("args") + i] for i in (2, 6, 10, 14, 18, 22)] == addresses
    # The producers made their data safe on the stream; DLPack calls the default one 1.
    assert inputs[0].streams == [0xABC]
    kernel.launch(*inputs, o, t)
    assert inputs[0].streams == [0xABC, 1]


def test_cuda_array_interface_and_workspace(fake):
    kernel = load("attention")
    arrays = [CudaArray((2, 8, 6, 64)) for _ in range(4)]
    size = kernel.workspace_size(*arrays)
    assert size == 2 * 8 * 64 * 64 * 4 + 2 * 8 * 64 * 4
    calls(fake)
    # The first launch of a stream gets memory, the next ones have it.
    kernel.launch(*arrays, stream=7)
    assert [call.split()[0] for call in calls(fake)] == ["cuMemAlloc", "cuLaunchKernel", "cuLaunchKernel"]
    kernel.launch(*arrays, stream=7)
    assert [call.split()[0] for call in calls(fake)] == ["cuLaunchKernel"] * 2
    # Or the caller has it.
    workspace = CudaArray((size,), "i8")
    kernel.launch(*arrays, stream=8, workspace=workspace)
    assert [call.split()[0] for call in calls(fake)] == ["cuLaunchKernel"] * 2
    del kernel
    assert [call.split()[0] for call in calls(fake)][:1] == ["cuMemFree"]


def test_a_device_without_memory(fake):
    kernel = load("attention")
    arrays = [CudaArray((2, 8, 6, 64)) for _ in range(4)]
    kernel.prepare()
    fake.fakeCudaFail(b"cuMemAlloc", 2, 0)
    with pytest.raises(MemoryError, match="CUDA_ERROR_OUT_OF_MEMORY") as caught:
        kernel.launch(*arrays, stream=7)
    assert isinstance(caught.value, linattn_runner.Error)
    kernel.launch(*arrays, stream=7)


def test_other_layouts_follow(fake):
    kernel = load("attention")
    plain = [CudaArray((2, 8, 6, 64)) for _ in range(4)]
    # [B, T, H, D] seen as [B, H, T, D].
    turned = [CudaArray((2, 8, 6, 64), strides=(6 * 8 * 64, 64, 8 * 64, 1)) for _ in range(4)]
    longer = [CudaArray((2, 8, 9, 64)) for _ in range(4)]
    seen = []
    for arrays in (plain, turned, longer, plain):
        kernel(*arrays[:3], out=arrays[3])
        words = calls(fake)[-1].split()
        start = words.index("args") + 1
        seen.append([int(word, 16) for word in words[start : start + 5]])
    assert seen[0] == seen[3] == [6, plain[0].address, 8 * 6 * 64, 6 * 64, 64]
    assert seen[1] == [6, turned[0].address, 6 * 8 * 64, 64, 8 * 64]
    assert seen[2] == [9, longer[0].address, 8 * 9 * 64, 9 * 64, 64]


def test_errors(fake):
    kernel = load("attention")
    q, k, v, o = (CudaArray((2, 8, 6, 64)) for _ in range(4))
    with pytest.raises(linattn_runner.Error, match=r"^argument 1 \(%k\): expected shape 2x8x\?x64, but got 2x4x6x64$"):
        kernel(q, CudaArray((2, 4, 6, 64)), v, out=o)
    with pytest.raises(linattn_runner.Error, match="same sequence length, but got 5 and 6"):
        kernel(q, CudaArray((2, 8, 5, 64)), v, out=o)
    with pytest.raises(ValueError, match="expected an array on a CUDA device"):
        kernel(q, np.zeros((2, 8, 6, 64), np.float32), v, out=o)
    with pytest.raises(TypeError, match="expected 4 arrays, but got 3"):
        kernel.launch(q, k, v)
    with pytest.raises(TypeError, match="expected out= for arrays of"):
        kernel(q, k, v)
    with pytest.raises(TypeError, match="expected an array with"):
        kernel(q, "k", v, out=o)
    with pytest.raises(TypeError, match="expected a stream"):
        kernel(q, k, v, out=o, stream="default")
    fake.fakeCudaFail(b"cuLaunchKernel", 701, 0)
    with pytest.raises(linattn_runner.Error, match=r"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES \(701\)"):
        kernel(q, k, v, out=o)
    with pytest.raises(linattn_runner.Error, match="damaged bundle"):
        linattn_runner.load((BUNDLES / "layer.lab").read_bytes()[:-1])
    with pytest.raises(linattn_runner.Error, match="cannot be read"):
        linattn_runner.load("/no/such.lab")


def test_threads(fake):
    kernel = load("attention")
    failures = []

    def work(stream):
        try:
            fake.fakeCudaSetContext(1)
            arrays = [CudaArray((2, 8, stream, 64)) for _ in range(4)]
            for _ in range(100):
                kernel(*arrays[:3], out=arrays[3], stream=stream)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures
    launches = [call for call in calls(fake) if call.startswith("cuLaunchKernel attention_scan")]
    assert len(launches) == 400
    # Every thread's tokens went to its stream.
    for call in launches:
        words = call.split()
        assert words[words.index("stream") + 1] == words[words.index("args") + 1]


def test_dlpack_layouts_are_followed(fake):
    """Only what a call has in common with the one before is taken from there."""
    kernel = load("attention")
    strides = (6 * 9 * 64, 6 * 64, 64, 1)
    wide = [DLPackArray((2, 9, 6, 64), strides=strides) for _ in range(4)]
    for array in wide:  # Eight of nine heads.
        array.shape, array.numbers[1] = (2, 8, 6, 64), 8
    small, large = ([DLPackArray((2, 8, tokens, 64)) for _ in range(4)] for tokens in (6, 70))
    dense = {}
    for name, arrays in (("small", small), ("large", large), ("wide", wide), ("small", small[::-1])):
        kernel(*arrays[:3], out=arrays[3])
        launches = [line for line in calls(fake) if line.startswith("cuLaunchKernel")]
        dense.setdefault(name, []).append(launches)
        assert f"{arrays[3].address:x}" in launches[-1] and f" {arrays[0].address:x} " in " ".join(launches)
    # The same launches on other addresses, and other ones for other layouts.
    shapes = [[line.split(" args")[0] for line in launches] for launches in dense["small"]]
    assert shapes[0] == shapes[1]
    assert dense["large"][0] != dense["small"][0] != dense["wide"][0]
    assert f" {6 * 9 * 64:x} " in " ".join(dense["wide"][0]) and f" {6 * 9 * 64:x} " not in " ".join(dense["small"][1])
    with pytest.raises(linattn_runner.Error, match="expected bf16|expected f32|expected elements"):
        kernel(small[0], DLPackArray((2, 8, 6, 64), "bf16"), small[2], out=small[3])
    host = DLPackArray((2, 8, 6, 64))
    host.managed.tensor.device_type = 1
    host.__class__ = type("HostArray", (DLPackArray,), {"__dlpack_device__": lambda self: (1, 0)})
    with pytest.raises(ValueError, match="expected an array on a CUDA device"):
        kernel(small[0], host, small[2], out=small[3])


class CheapDLPackArray(DLPackArray):
    """Gives capsules away as fast as a library in C does."""

    def __dlpack__(self, stream=None):
        if not hasattr(self, "capsule"):
            self.capsule = super().__dlpack__()
        return self.capsule


@pytest.mark.parametrize("kind", [CudaArray, CheapDLPackArray])
def test_calls_take_microseconds(fake, kind):
    """Ten where a call of Python's own takes 67 ns: what slows a machine slows both."""
    kernel = load("attention")
    arrays = [kind((2, 8, 6, 64)) for _ in range(4)]
    kernel(*arrays[:3], out=arrays[3])
    fake.fakeCudaRecord(0)
    times = {kernel.launch: [], (lambda q, k, v, o: None): []}
    for _ in range(100):
        for call, taken in times.items():
            start = time.thread_time()
            for _ in range(200):
                call(*arrays)
            taken.append(time.thread_time() - start)
    # A single short reading of the clock would decide a minimum.
    ours, pythons = map(statistics.median, times.values())
    assert ours <= 150 * pythons


def test_cpu():
    linattn = pytest.importorskip("linattn")
    kernel = load("attention_cpu")
    q, k, v = (np.random.default_rng(i).standard_normal((2, 33, 8, 64), np.float32) for i in range(3))
    turned = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    ref = linattn.reference.attention(q, k, v, causal=True, eps=1e-6)
    o = kernel(*turned)
    assert o.dtype == np.float32 and o.shape == (2, 8, 33, 64)
    np.testing.assert_allclose(o.transpose(0, 2, 1, 3), ref, atol=2e-5)
    out = np.empty_like(q).transpose(0, 2, 1, 3)
    assert kernel(*turned, out=out) is out
    np.testing.assert_array_equal(out, o)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="expected a writable array"):
        kernel(*turned, out=out)
    with pytest.raises(ValueError, match="expected an array in host memory"):
        kernel(CudaArray((2, 8, 33, 64)), *turned[1:])
    with pytest.raises(linattn_runner.Error, match="expected an innermost stride of 1"):
        kernel(turned[0][..., ::-1], *turned[1:])


def test_cpu_scalars_and_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, mask = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6).reshape(2, 3) % 2 == 1
    np.testing.assert_array_equal(load("scaled_cpu")(x, mask, 10.0), np.where(mask, 10 * x, x))
    q, k, v = (np.ones((2, 8, 5, 64), ml_dtypes.bfloat16) for _ in range(3))
    o, s = load("layer_cpu")(q, k, v, np.zeros((2, 8, 64, 64), np.float32))
    assert o.dtype == ml_dtypes.bfloat16 and (s == 5).all()


def test_needs_no_compiler():
    code = "import sys, linattn_runner; sys.exit('linattn' in sys.modules or 'numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_its_library():
    environment = dict(os.environ, LINATTN_RUNNER_LIBRARY="/no/such.so")
    result = subprocess.run(
        [sys.executable, "-c", "import linattn_runner"], env=environment, capture_output=True, text=True, check=False
    )
    assert "expected /no/such.so to be the library of linattn's runner" in result.stderr


@pytest.mark.skipif(not (BUILD / "bin/linattn-compile").exists(), reason="the compiler is not built")
def test_code_for_other_processors(tmp_path):
    """A bundle may have some; it is refused where there is no other."""

    def compile_for(chips):
        path = tmp_path / f"{chips}.lab"
        source = pathlib.Path(__file__).parents[1] / "Unit/Runner/Inputs/attention.mlir"
        command = [BUILD / "bin/linattn-compile", source, "--target=cpu", f"--chip={chips}", "-o", path]
        subprocess.run(command, check=True, capture_output=True)
        return path

    mixed = compile_for("aarch64,x86-64-v3")
    data, chips = mixed.read_bytes(), []
    # The machine of an ELF file: 183 is AArch64, 62 x86-64.
    at = data.find(b"\x7fELF")
    while at >= 0:
        chips.append(int.from_bytes(data[at + 18 : at + 20], "little"))
        at = data.find(b"\x7fELF", at + 1)
    assert chips == [183, 62]
    q = np.ones((2, 8, 5, 64), np.float32)
    assert np.isfinite(linattn_runner.load(mixed)(q, q, q)).all()
    with pytest.raises(linattn_runner.Error, match="expected a CPU for aarch64, but got x86-64-v"):
        linattn_runner.load(compile_for("aarch64"))
