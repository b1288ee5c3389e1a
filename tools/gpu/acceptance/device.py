"""Where arrays live and kernels run: a GPU through PyTorch, or, for a dry run, host
memory that the launches of a fake driver are given."""

import ctypes
import math
import statistics
import subprocess
import time

from linattn_runner._library import Error, check, library

__all__ = ["CudaDevice", "DryDevice"]


class CudaDevice:
    """PyTorch's current device."""

    is_dry = False

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError(f"expected PyTorch {torch.__version__} to see a GPU, but it sees none")
        self.torch = self.xp = torch
        self.dtypes = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
        self.generator = torch.Generator("cuda").manual_seed(1)
        properties = torch.cuda.get_device_properties(0)
        self.l2_bytes = getattr(properties, "L2_cache_size", 64 << 20)
        self.info = {
            "device": properties.name, "multiprocessors": properties.multi_processor_count,
            "l2_bytes": self.l2_bytes, "capability": "%d.%d" % torch.cuda.get_device_capability(0),
            "pytorch": torch.__version__, "cuda": torch.version.cuda, **_query_machine(),
        }  # fmt: skip

    def free_bytes(self):
        return self.torch.cuda.mem_get_info()[0]

    def normal(self, shape, dtype="f32"):
        return self.torch.randn(shape, device="cuda", generator=self.generator).to(self.dtypes[dtype])

    def uniform(self, shape):
        return self.torch.rand(shape, device="cuda", generator=self.generator)

    def cast(self, array, dtype):
        return array.to(self.dtypes[dtype])

    def full(self, shape, value, dtype):
        return self.torch.full(shape, value, device="cuda", dtype=self.dtypes[dtype])

    def copy(self, array):
        return array.clone()

    def unit(self, array):
        return array / (array * array).sum(-1)[..., None] ** 0.5

    def is_alive(self):
        """False once a kernel has broken the context: nothing works in this process any more."""
        try:
            self.torch.cuda.synchronize()
            return self.torch.ones(1, device="cuda").item() == 1
        except RuntimeError:
            return False

    def view(self, array, dtype):
        return array.data_ptr(), tuple(array.shape), tuple(array.stride()), dtype

    def allocate(self, size, keep):
        keep.append(self.torch.empty(size, dtype=self.torch.uint8, device="cuda"))
        return keep[-1].data_ptr()

    def maximum(self, array):
        return array.abs().max().item()

    def equal(self, a, b):
        # Bits, so that NaN equals itself and −0 is not 0.
        bits = {2: self.torch.int16, 4: self.torch.int32, 8: self.torch.int64}[a.element_size()]
        return bool(self.torch.equal(a.view(bits), b.view(bits)))

    def stream(self):
        return self.torch.cuda.current_stream().cuda_stream

    def synchronize(self):
        self.torch.cuda.synchronize()

    def fill(self, arrays, values):
        """Nothing: the kernel has written its results."""

    def measure(self, calls, seconds=0.15):
        """Median, least and most seconds of a call, and whether it was replayed from graphs:
        they hold all `calls`, one after the other, each on buffers of its own. Calls that
        cannot be captured are launched one by one."""
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                for call in calls:
                    call()
            stream.synchronize()
            begin = time.perf_counter()
            for call in calls:
                call()
            stream.synchronize()
            once = time.perf_counter() - begin
        # A graph of a millisecond hides the cost of its launch.
        rounds = max(1, min(200 // len(calls), int(1e-3 / max(once, 1e-6))))

        def every():
            for _ in range(rounds):
                for call in calls:
                    call()

        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                every()
            replay, captured = graph.replay, True
        except Exception:  # noqa: BLE001: some of the peers wait or allocate
            torch.cuda.synchronize()
            replay, captured = every, False
        times, spent = [], 0.0
        replay()
        torch.cuda.synchronize()
        while len(times) < 5 or (spent < seconds and len(times) < 50):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            replay()
            last.record()
            last.synchronize()
            elapsed = first.elapsed_time(last) * 1e-3
            spent += elapsed
            times.append(elapsed / rounds / len(calls))
        return statistics.median(times), min(times), max(times), captured

    def release(self):
        """Gives back what the last calls held."""
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()

    def host_seconds(self, call, count=1000):
        """Host time of a call that does not wait for the device."""
        call()
        self.synchronize()
        best = []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(count):
                call()
            best.append((time.perf_counter() - begin) / count)
            self.synchronize()
        return statistics.median(best)


def _query_machine():
    """Fields of nvidia-smi; empty where it is not installed."""
    names = ("driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem", "memory.total")
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(names), "--format=csv,noheader", "--id=0"],
                              capture_output=True, text=True, timeout=20)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = done.stdout.strip().split(", ")
    return dict(zip(names, values)) if done.returncode == 0 and len(values) == len(names) else {}


class DryDevice:
    """Host memory. Kernels do not run: results are filled in with what was expected of
    them, and nothing is timed. Arrays beyond `LARGE` are addresses alone: zeros that
    that no kernel touches."""

    LARGE = 1 << 24

    is_dry = True
    l2_bytes = 1 << 20
    info = {"device": "none: a dry run"}

    def __init__(self):
        import ml_dtypes
        import numpy

        self.xp = numpy
        self.dtypes = {"bf16": ml_dtypes.bfloat16, "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}
        self.generator = numpy.random.default_rng(1)

    def free_bytes(self):
        return 1 << 28

    def _aligned(self, array):
        """As the allocations of a device are."""
        copy = self._zeros(array.shape, array.dtype)
        copy[...] = array
        return copy

    def _zeros(self, shape, dtype):
        size = math.prod(shape) * self.xp.dtype(dtype).itemsize
        memory = self.xp.zeros(size + 256, self.xp.uint8)
        start = -memory.ctypes.data % 256
        return memory[start : start + size].view(dtype).reshape(shape)

    def normal(self, shape, dtype="f32"):
        if math.prod(shape) > self.LARGE:
            return self._zeros(shape, self.dtypes[dtype])
        return self._aligned(self.generator.standard_normal(shape).astype(self.dtypes[dtype]))

    def uniform(self, shape):
        if math.prod(shape) > self.LARGE:
            return self._zeros(shape, self.xp.float32)
        return self._aligned(self.generator.random(shape, self.xp.float32))

    def unit(self, array):
        return array if array.size > self.LARGE else array / (array * array).sum(-1)[..., None] ** 0.5

    def cast(self, array, dtype):
        if array.size > self.LARGE:
            return self._zeros(array.shape, self.dtypes[dtype])
        return self._aligned(array.astype(self.dtypes[dtype]))

    def full(self, shape, value, dtype):
        if math.prod(shape) > self.LARGE:
            return self._zeros(shape, self.dtypes[dtype])
        return self._aligned(self.xp.full(shape, value, self.dtypes[dtype]))

    def copy(self, array):
        return self._aligned(array)

    def view(self, array, dtype):
        steps = tuple(step // array.itemsize for step in array.strides)
        return array.ctypes.data, array.shape, steps, dtype

    def allocate(self, size, keep):
        keep.append(self._zeros((size,), self.xp.uint8))
        return keep[-1].ctypes.data

    def maximum(self, array):
        return float(self.xp.abs(array).max())

    def equal(self, a, b):
        return a.tobytes() == b.tobytes()

    def stream(self):
        return ctypes.c_void_p(0x5712EA)

    def synchronize(self):
        check(library.linattn_stream_synchronize(self.stream()))

    def is_alive(self):
        try:
            return self.synchronize() is None
        except Error:
            return False

    def fill(self, arrays, values):
        for array, value in zip(arrays, values):
            array[...] = value.astype(array.dtype)

    def measure(self, calls, seconds=0.0):
        for call in calls:
            call()
        return None, None, None, None

    def release(self):
        pass

    def host_seconds(self, call, count=1):
        call()
        return None
