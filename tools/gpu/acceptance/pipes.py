"""Microbenchmarks of instructions: throughput and latency, by the clock of the multiprocessor.

`tools/gpu/schedulers.py` predicts kernels from such numbers; these measure them. One block runs on each multiprocessor. Its 16 warps, of 8
independent chains each, keep a pipe busy (*cycles*: of a scheduler, for an instruction of a warp); one warp with one chain waits for
every result (*latency*).
"""

import ctypes
import dataclasses
import os
import statistics

__all__ = ["PIPES", "Pipe", "measure", "text"]

ROUNDS, UNROLL = 500, 8
WARPS, CHAINS = 16, 8


@dataclasses.dataclass(frozen=True)
class Pipe:
    """An instruction on the registers {r}0, {r}1 … of a chain: `step`, with {r}. `start` is a chain's first value, a register."""

    name: str
    step: str
    registers: int = 1
    kind: str = "b32"
    start: str = "%t"
    # Instructions of a chain that go on together, and what ends them.
    group: int = 1
    begin: str = ""
    end: str = ""
    chip: str = "sm_80"
    has_latency: bool = True

    @property
    def entry(self):
        return "pipe_" + "".join(c if c.isalnum() else "_" for c in self.name)

    def runs_on(self, chips):
        return self.chip == "sm_80" or self.chip in chips


def _listed(count):
    return "{{" + ", ".join(f"{{r}}{i}" for i in range(count)) + "}}"


PIPES = (
    Pipe("mma.sync m16n8k16, bf16", f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {_listed(4)}, {{{{%t, %t, %t, %t}}}}, {{{{%t, %t}}}}, {_listed(4)};",
         registers=4, kind="f32", start="%zero"),
    Pipe("wgmma m64n64k16, bf16", f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {_listed(32)}, %matrix, %matrix, %yes, 1, 1, 0, 0;",
         registers=32, kind="f32", start="%zero", group=16, begin="wgmma.fence.sync.aligned;",
         end="wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;", chip="sm_90a", has_latency=False),
    Pipe("cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %r, {r}0, %zero; mov.b32 {r}0, %r;", kind="f32", start="%zero", has_latency=False),
    Pipe("ex2.approx.f32", "ex2.approx.ftz.f32 {r}0, {r}0;", kind="f32", start="%zero"),
    Pipe("fma.rn.f32", "fma.rn.f32 {r}0, {r}0, {r}0, %zero;", kind="f32", start="%zero", has_latency=False),
    Pipe("lop3.b32", "lop3.b32 {r}0, {r}0, %t, %rows, 0x6a;", has_latency=False),
    # Memory holds the addresses that its reader reads next.
    Pipe("ldmatrix.x4", f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {_listed(4)}, [{{r}}0];", registers=4, start="%rows"),
    Pipe("ld.shared.b32", "ld.shared.b32 {r}0, [{r}0];", start="%words"),
    Pipe("shfl.sync.bfly", "shfl.sync.bfly.b32 {r}0, {r}0, 1, 31, 0xffffffff;"),
)  # fmt: skip

# Shared memory: 128 words that hold the addresses of the rows of four matrices, 32 again and again; 1024 that hold their own.
FRAME = """\
.version 8.0
.target {chip}
.address_size 64

.visible .entry {entry}(.param .u64 out, .param .u32 rounds)
{{
  .shared .align 1024 .b8 memory[4608];
  .reg .pred %p, %yes;
  .reg .b16 %half;
  .reg .b32 %n, %t, %r, %rows, %words, %memory, %sink;
  .reg .f32 %zero;
  .reg .b64 %out, %began, %ended, %matrix;
{declared}
  ld.param.u64 %out, [out];
  ld.param.u32 %n, [rounds];
  setp.eq.u32 %yes, %n, %n;
  mov.f32 %zero, 0f00000000;
  mov.u32 %memory, memory;
  // A matrix of 8 × 8 blocks of 128 bytes, side by side, 256 bytes from one row of blocks to the next.
  shr.u32 %r, %memory, 4;
  cvt.u64.u32 %matrix, %r;
  or.b64 %matrix, %matrix, 0x100000080000;
  mov.u32 %t, %tid.x;
$fill:
  and.b32 %r, %t, 31;
  mad.lo.u32 %rows, %r, 16, %memory;
  mad.lo.u32 %words, %t, 4, %memory;
  setp.lt.u32 %p, %t, 128;
  @%p st.shared.b32 [%words], %rows;
  @!%p st.shared.b32 [%words], %words;
  mov.u32 %r, %ntid.x;
  add.u32 %t, %t, %r;
  setp.lt.u32 %p, %t, 1152;
  @%p bra $fill;
  bar.sync 0;
  mov.u32 %t, %tid.x;
  and.b32 %r, %t, 31;
  mad.lo.u32 %rows, %r, 16, %memory;
  mad.lo.u32 %words, %r, 4, %memory;
  add.u32 %words, %words, 512;
{started}
  mov.u64 %began, %clock64;
$round:
  .pragma "nounroll";
{steps}
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra $round;
  mov.u64 %ended, %clock64;
  sub.u64 %ended, %ended, %began;
  mov.u32 %sink, 0;
{used}
  mov.u32 %r, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mad.lo.u32 %r, %r, %n, %t;
  mad.wide.u32 %out, %r, 16, %out;
  st.global.u64 [%out], %ended;
  st.global.u32 [%out+8], %sink;
  ret;
}}
"""


def instructions_of_round(pipe, chains):
    return UNROLL * pipe.group * chains


def text(pipe, chains):
    """PTX of a kernel: u64 of cycles, and 8 bytes that keep the results in use, for each thread."""
    names = [f"%c{chain}_" for chain in range(chains)]
    registers = [f"{name}{i}" for name in names for i in range(pipe.registers)]
    move = "mov.f32" if pipe.kind == "f32" else "mov.b32"
    group = [pipe.step.format(r=name) for name in names for _ in range(pipe.group)]
    used = [line for register in registers for line in (f"mov.b32 %r, {register};", "xor.b32 %sink, %sink, %r;")]
    lines = {
        "declared": [f".reg .{pipe.kind} {', '.join(registers)};"],
        "started": [f"{move} {register}, {pipe.start};" for register in registers],
        "steps": [line for line in [pipe.begin, *group, pipe.end] if line] * UNROLL,
        "used": used,
    }
    joined = {key: "\n".join("  " + line for line in value) for key, value in lines.items()}
    return FRAME.format(chip=pipe.chip, entry=pipe.entry, **joined)


class Driver:
    """The functions of the CUDA driver that a kernel without a bundle takes, in the context that PyTorch uses."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("LINATTN_CUDA_DRIVER") or "libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed with {status}")

    def __enter__(self):
        self.call("cuCtxPushCurrent_v2", self.context)
        return self

    def __exit__(self, *_):
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def load(self, ptx, entry):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx.encode()), 0, None, None)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def launch(self, function, blocks, threads, stream, out, rounds):
        values = ctypes.c_uint64(out), ctypes.c_uint32(rounds)
        pointers = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, ctypes.c_void_p(stream), pointers, None)


def _median_cycles(device, pipe, chains, warps):
    """Cycles of a warp's loop, the median of all warps; None in a dry run."""
    blocks, threads, keep = device.info.get("multiprocessors", 1), 32 * warps, []
    out = device.allocate(16 * blocks * threads, keep)
    with Driver() as driver:
        function = driver.load(text(pipe, chains), pipe.entry)
        for _ in range(2):  # The first fills the caches of instructions.
            driver.launch(function, blocks, threads, getattr(device.stream(), "value", device.stream()), out, ROUNDS)
    device.synchronize()
    if device.is_dry:
        return None
    return statistics.median(keep[0].view(device.torch.int64)[::2].tolist())


def measure(device, pipe, model):
    """A record: cycles of a scheduler for an instruction of a warp, those until its result is there, and the same of the `model`."""
    record = {"pipe": pipe.name, "cycles": None, "latency": None, "model": model.get(pipe.name, [None, None])}
    # Of a warpgroup's products four warps have one, a quarter on each scheduler: one chain has registers enough.
    chains = 1 if pipe.group > 1 else CHAINS
    cycles = _median_cycles(device, pipe, chains, WARPS)
    if cycles is not None:
        record["cycles"] = cycles / ROUNDS / instructions_of_round(pipe, chains) / (WARPS / 4)
    if pipe.has_latency:
        cycles = _median_cycles(device, pipe, 1, 1)
        if cycles is not None:
            record["latency"] = cycles / ROUNDS / instructions_of_round(pipe, 1)
    return record
