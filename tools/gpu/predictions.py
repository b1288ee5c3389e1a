#!/usr/bin/env python3
"""Predicted times of kernels from their machine code: docs/generated/Predictions.md.

    python3 tools/gpu/predictions.py LINATTN_OPT LINATTN_TRANSLATE PTXAS > docs/generated/Predictions.md

Kernels of 128 sequences and heads, 4096 tokens of bf16, `math=fast`, compiled for sm_90a and an H200.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test" / "GPU" / "Inputs"))
from check_ptxas import RULES, scan  # noqa: E402
from machine_code import instructions  # noqa: E402
from schedulers import Machine, simulate, simulate_once  # noqa: E402

MACHINE = Machine()
SEQUENCES, HEADS, TOKENS = 8, 16, 4096
STATES = SEQUENCES * HEADS
PIPELINE = f"chip=sm_90a math=fast bandwidth={MACHINE.bandwidth / 1e9:.0f} sms={MACHINE.multiprocessors}"
# Name, rule, options, and the shares of the bandwidth that D = 64 and D = 128 are to reach, if any.
TARGETS = [
    ("additive", "chunk", "", (70, 75)),
    ("additive, `scan-mma=wgmma`", "chunk", "scan-mma=wgmma", (70, 75)),
    ("additive, `scan-mma=wgmma`, strict", "chunk", "scan-mma=wgmma math=strict", (None, None)),
    ("decay per token", "decay", "", (60, 65)),
    ("decay per token, `scan-mma=wgmma`", "decay", "scan-mma=wgmma", (60, 65)),
    ("decay per token, `scan-mma=wgmma`, strict", "decay", "scan-mma=wgmma math=strict", (None, None)),
    ("decay per channel (GLA)", "gla", "", (50, 50)),
    ("gated delta rule", "gdn", "", (35, 35)),
    ("KDA", "kda", "", (25, 25)),
    ("Gated DeltaNet 2: KDA with erase and write gates", "kdagates", "", (None, None)),
    ("RWKV-7", "rwkv7", "", (None,)),
]
DECODED = (STATES, 32 * STATES)
DECODE_TARGET = 90


class Kernel:
    """One launch: its plan, registers and machine code."""

    def __init__(self, name, threads, shared, registers, code):
        self.name, self.threads, self.shared, self.registers, self.code = name, threads, shared, registers, code

    @property
    def resident(self):
        """Blocks that one multiprocessor holds: registers go in units of 8 to a thread, shared memory has 1 KB more a block."""
        by_registers = MACHINE.registers // (-(-self.registers // 8) * 8 * self.threads)
        return max(1, min(by_registers, MACHINE.shared // (self.shared + 1024), 2048 // self.threads, 32))


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr}")
    return done


def compile_scan(tools, rule, size, tokens, sequences=SEQUENCES, options=""):
    """The kernels of a scan, and its schedule as {option: number, or name}."""
    opt, translate, ptxas = tools
    clauses, gates = RULES[rule]
    shape = f"{sequences}x{HEADS}x"
    source = scan("f", "bf16", size, str(tokens), clauses, gates).replace("tensor<2x4x", f"tensor<{shape}")
    compiled = run([opt, f"--linattn-lower-to-nvvm-pipeline={PIPELINE} {options}", "--mlir-print-ir-after=linattn-select-schedule"], source)
    written = re.search(r"linattn.schedule = #linattn.schedule<(.*?)>", compiled.stderr).group(1)
    schedule = {key: int(value) if value.isdigit() else value for key, value in re.findall(r"(\w+) = (\w+)", written)}
    launches = re.findall(r"linattn.launch @(\w+)::.*?block = (\d+), shared = (\d+)", compiled.stdout)
    plans = {name: (int(block), int(shared)) for name, block, shared in launches}
    ptx = run([translate, "--gpu-binary-to-assembly"], compiled.stdout).stdout
    kernels = []
    for module in re.split(r"(?m)^(?=\.version )", ptx):
        name = re.search(r"\.entry (\w+)\(", module)
        if name is None:
            continue
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            said = run([ptxas, "-arch=sm_90a", "-v", "-", "-o", file.name], module).stderr
            code = instructions(file.read())
        registers = int(re.search(r"Used (\d+) registers", said).group(1))
        kernels.append(Kernel(name.group(1), *plans[name.group(1)], registers, code))
    return kernels, schedule


def roles_of(kernel, schedule):
    """Warps of a block by what they do: those of the state, and those of outputs or scores where these are others."""
    warps = kernel.threads // 32
    if schedule["mma"] == "wgmma":
        return (warps - 4, 4)
    ahead = warps - schedule["value_slice"] // 16 if schedule.get("stages", 1) > 2 else 0
    return (warps - ahead, ahead) if ahead else (warps,)


def trips_of(kernel, schedule, rule, size):
    """How often inner loops run: a block of 16 tokens at a time through the state; before it, by columns, the shares of channels that a
    warp has, and within them three levels of decays."""
    blocks = schedule["chunk"] // 16
    by_rows = rule in ("chunk", "decay")
    roles = roles_of(kernel, schedule)
    steps = -(-size // 32) * 2
    sharers = min(roles[-1] // blocks, steps)

    def trips(number, loops, role):
        first, last = loops[number]
        nested = any(a < first and last < b for a, b in loops)
        if nested:
            return 3
        of_state = role == 0 if len(roles) > 1 else number == len(loops) - 1
        return blocks if by_rows or of_state and not kernel.name.endswith("increments") else -(-steps // sharers)

    return trips


def seconds_of(kernel, schedule, rule, size, parts):
    """Time of a launch of chunks, and what it is made of."""
    blocks = STATES * -(-size // schedule["value_slice"]) * parts
    sharing = min(kernel.resident, -(-blocks // MACHINE.multiprocessors))
    trips = trips_of(kernel, schedule, rule, size)
    found = simulate(kernel.code, trips, MACHINE, roles_of(kernel, schedule), sharing)
    chunks = -(-TOKENS // (schedule["chunk"] * schedule.get("split", 1)))
    waves = -(-blocks // (MACHINE.multiprocessors * sharing))
    step = found["cycles"] / MACHINE.clock
    # With one stage the next chunk is fetched when this one is done.
    step = max(step, MACHINE.memory_latency) if schedule.get("stages", 1) >= 2 else step + MACHINE.memory_latency
    # The first chunk and the state arrive before, the state leaves after.
    around = 2 * MACHINE.memory_latency
    return waves * (chunks * step + around), found | {"blocks": blocks, "sharing": sharing, "waves": waves, "chunks": chunks, "step": step}


def least_bytes(rule, size):
    """Queries, keys, values, outputs, gates and two states, each once."""
    tokens = STATES * TOKENS
    gates = {"chunk": 0, "decay": 4, "gla": 4 * size, "gdn": 8, "kda": 4 * size + 4, "kdagates": 12 * size, "rwkv7": 8 * size}[rule]
    return tokens * (4 * 2 * size + gates) + 2 * STATES * 4 * size * size


def predict(tools, rule, size, options):
    """Rows of the launches of a rule, its time and its least bytes."""
    kernels, schedule = compile_scan(tools, rule, size, TOKENS, options=options)
    split, total, rows = schedule.get("split", 1), 0, []
    least = least_bytes(rule, size)
    for kernel in kernels:
        if kernel.name.endswith("_states"):
            # Reads and writes the states of all segments.
            total += MACHINE.launch + 2 * split * STATES * 4 * size * size / MACHINE.bandwidth + MACHINE.memory_latency
            continue
        first = kernel.name.endswith("_increments")
        seconds, found = seconds_of(kernel, schedule, rule, size, split - 1 if first else split)
        moved = least * (0.5 if first else 1)
        total += MACHINE.launch + max(moved / MACHINE.bandwidth, seconds)
        rows.append((kernel, found))
    return schedule, rows, total, least


def decode(tools, size, states):
    """Time and bytes of one token for so many states."""
    (kernel,), schedule = compile_scan(tools, "chunk", size, 1, states // HEADS)
    blocks = states * -(-size // schedule["value_slice"])
    sharing = min(kernel.resident, -(-blocks // MACHINE.multiprocessors))
    cycles = simulate_once(kernel.code, MACHINE, kernel.threads // 32, sharing)
    waves = blocks / (MACHINE.multiprocessors * sharing)
    moved = states * (8 * size * size + 8 * size)
    return kernel, sharing, cycles, MACHINE.launch + max(moved / MACHINE.bandwidth, max(1, waves) * cycles / MACHINE.clock), moved


PARTS = ("issue", "tensor", "special", "integer", "shared")


def table(tools):
    print("| rule | D | chunk, warps, columns, segments | blocks of a multiprocessor | instructions, products of a warp | issue | tensor | special, pack | integer | shared | cycles of a chunk | waves · chunks | predicted | bytes once | of the bandwidth | aim |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, rule, options, aims in TARGETS:
        for size, aim in zip((64, 128), aims):
            schedule, rows, seconds, least = predict(tools, rule, size, options)
            share = 100 * least / MACHINE.bandwidth / seconds
            for kernel, found in rows:
                is_last = kernel is rows[-1][0]
                kept = found["kept"]
                cells = [
                    name + ("" if is_last else ", increments"), size,
                    f"{schedule['chunk']}, {schedule['warps']}, {schedule['value_slice']}, {schedule.get('split', 1)}",
                    f"{found['sharing']} of {found['blocks']}", "; ".join(f"{size}, {products}" for size, products in found["sizes"]),
                    *(f"{kept.get(part, 0):.0f}" for part in PARTS), f"{found['cycles']:.0f}", f"{found['waves']} · {found['chunks']}",
                    f"{1e6 * seconds:.0f} µs" if is_last else "", f"{least / 1e6:.0f} MB" if is_last else "",
                    f"{share:.0f} %" if is_last else "",
                    f"{aim} %: {'met' if share >= aim else 'missed'}" if is_last and aim else "",
                ]  # fmt: skip
                print("| " + " | ".join(map(str, cells)) + " |")


def decode_table(tools):
    print("| D | states | blocks of a multiprocessor | registers | cycles of a block | predicted | bytes | of the bandwidth | aim |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size in (64, 128):
        for states in DECODED:
            kernel, sharing, cycles, seconds, moved = decode(tools, size, states)
            share = 100 * moved / MACHINE.bandwidth / seconds
            verdict = "met" if share >= DECODE_TARGET else "missed"
            print(f"| {size} | {states} | {sharing} | {kernel.registers} | {cycles:.0f} | {1e6 * seconds:.1f} µs | {moved / 1e6:.1f} MB | {share:.0f} % | {DECODE_TARGET} %: {verdict} |")


def main():
    tools = sys.argv[1:4]
    version = re.search(r"release [\d.]+", run([tools[2], "--version"], "").stdout).group()
    print(f"""# Predicted times

Made by `tools/gpu/predictions.py` from machine code, as `ptxas` of `{version}` writes it for sm_90a. Nothing here was measured on a GPU. {STATES} sequences and heads, {TOKENS} tokens
of bf16, gates of f32, `math=fast`, one H200: {MACHINE.multiprocessors} multiprocessors at {MACHINE.clock / 1e9:g} GHz, {MACHINE.bandwidth / 1e12:g} TB/s.

```
predicted = {1e6 * MACHINE.launch:g} µs for each launch + max(bytes / bandwidth, waves · (chunks · step + {2e6 * MACHINE.memory_latency:g} µs))
waves     = ⌈blocks / ({MACHINE.multiprocessors} · blocks of a multiprocessor)⌉          chunks = ⌈{TOKENS} / (chunk · segments)⌉
step      = max(cycles of a chunk / clock, {1e6 * MACHINE.memory_latency:g} µs, in which the next chunk arrives)
share     = bytes once / bandwidth / predicted
```

*Cycles of a chunk* are counted by running the loop's instructions: the warps of the resident blocks issue in order from four schedulers, with the
stall cycles and scoreboards that `ptxas` wrote into each instruction. A pipe takes a warp's instruction every so many cycles of a scheduler: products m16n8k16
{MACHINE.tensor:g} (62 % of 989 TFLOP/s), special functions {MACHINE.special:g}, packed conversions {MACHINE.pack:g}, integers and comparisons {MACHINE.half_rate:g}, the rest 1; the shared memory of a
multiprocessor moves 128 bytes a cycle. A product takes {MACHINE.tensor_latency} cycles, a matrix from shared memory 33, a number 29, a shuffle 25, a special function 23. The columns from *issue*
to *shared* are the cycles that each would need alone: cycles beyond the largest are latency, and waiting at barriers. Branches past work that some warps or chunks do without are not taken, so that
the counts are upper bounds.

## Chunks
""")
    table(tools)
    print("\n## Decoding\n\nOne token. A block loads its part of the state, and stores it; the cycles include the way to memory and back.\n")
    decode_table(tools)
    print(f"""
## What would refute this

- A chunk that takes other cycles than here by more than a quarter: `clock64` around the loop, one block on a multiprocessor. Then a rate or a latency above is wrong; the acceptance script measures each (`tools/gpu/acceptance/pipes.py`).
- A kernel whose time does not grow with `cycles of a chunk` from rule to rule at one D: then something else limits it, such as instructions that the caches do not hold (loops have up to 50 KB of them).
- A copy of a large buffer below {MACHINE.bandwidth / 1e12:g} TB/s lowers what all shares are of, and raises the shares of kernels that memory does not limit.
- A launch above {1e6 * MACHINE.launch:g} µs, which only decoding of few states would show.""")


if __name__ == "__main__":
    main()
