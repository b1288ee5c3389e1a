"""Assembles the kernels of a scan and of attention for every head size and checks what ptxas says.

    check_ptxas.py LINATTN_OPT LINATTN_TRANSLATE PTXAS CHIP [SIZES [NAME [OPTIONS]]] [--budget=FILE [--update]]

For kernels, element types and head sizes: no spills up to D = 128, registers
and shared memory within what the chip gives the block, no local memory and no
function of libdevice in the PTX, products of warpgroups that stay asynchronous, and
no conversion of one number to 16 bits, which is slow, in the machine code.
Prints one line per kernel. With NAME: only functions whose names begin as that regular expression says.
OPTIONS: more of the pipeline's.
LINATTN_PTXAS=all: all kernels in all sizes, which takes minutes.

The budget is a table of kernels: registers, bytes of shared memory, and instructions by the pipe
that they run in. No kernel may take 3 % more than it has there, as the same ptxas counts; --update
writes what they take.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "gpu"))
from machine_code import LOCAL, PIPES, SLOW_CONVERSION, count, instructions  # noqa: E402

SIZES = [16, 32, 60, 64, 96, 128, 192, 256]
NO_SPILLS_UP_TO = 128
REGISTERS = 65536
SHARED = {"sm_80": 163 * 1024}
HOPPER_SHARED = 227 * 1024


COLUMNS = ["registers", "shared memory", *PIPES, "all"]
TOLERANCE = 1.03


class Budget:
    """The table in a file; rows of other chips and kernels stay as they are."""

    def __init__(self, path, ptxas, update):
        self.path, self.update, self.rows = path, update, {}
        told = subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout
        self.version = re.search(r"release ([\d.]+)", told).group(1)
        self.known = self.version
        if os.path.exists(path):
            lines = open(path).read().splitlines()
            self.known = lines[0].rpartition(" ")[2]
            self.rows = {line.split()[0]: [int(x) for x in line.split()[1:]] for line in lines[2:]}

    def check(self, key, counts):
        """The counts that have grown."""
        if self.update:
            self.rows[key] = counts
            return []
        if self.version != self.known:
            return []
        if key not in self.rows:
            return ["no budget"]
        return [
            f"{name}: {got} instead of {had}"
            for name, got, had in zip(COLUMNS, counts, self.rows[key])
            if got > TOLERANCE * had
        ]

    def close(self):
        if self.update:
            lines = [f"# As counted by ptxas {self.version}", "# chip:kernel " + ", ".join(COLUMNS)]
            lines += [" ".join([key, *map(str, row)]) for key, row in sorted(self.rows.items())]
            open(self.path, "w").write("\n".join(lines) + "\n")


def scan(name, dtype, size, tokens, clauses="", gates=(), attributes="", z=False):
    """A function with one scan; `gates` are the shapes of its extra operands %g0, …, `attributes` text of them, comma-separated."""
    t = f"tensor<2x4x{tokens}x{size}x{dtype}>"
    s = f"tensor<2x4x{size}x{size}xf32>"
    arguments = f"%q: {t}, %k: {t}, %v: {t}"
    types = f"{t}, {t}, {t}"
    for number, gate in enumerate(gates):
        g = "tensor<" + gate.replace("D", str(size)).replace("T", tokens).replace("E", dtype)
        g += ">" if gate in (MASK, VECTOR) else "xf32>"
        arguments += f", %g{number}: {g}"
        types += f", {g}"
    results, normalizer = f"{t}, {s}", ""
    if z:
        results += f", tensor<2x4x{size}xf32>"
        arguments += f", %z: tensor<2x4x{size}xf32>"
        normalizer = "normalizer(%z)"
        attributes += ", " * bool(attributes) + (
            "normalize = #linattn.normalize<eps = 1.0e-6>, feature_map = #linattn.feature_map<elu1>"
        )
    if attributes:
        attributes = f"{{{attributes}}} "
    empty = "%e = tensor.empty() : " + t
    if tokens == "?":
        empty = (
            f"%c2 = arith.constant 2 : index %t = tensor.dim %q, %c2 : {t} "
            f"%e = tensor.empty(%t) : {t}"
        )
    count = 3 if z else 2
    values = ", ".join(f"%o#{i}" for i in range(count))
    return (
        f"func.func @{name}({arguments}, %s: {s}) -> ({results}) {{ {empty} "
        f"%o:{count} = linattn.scan %q, %k, %v {clauses} into(%e) init(%s) {normalizer} {attributes}"
        f": ({types}, {results}) -> ({results}) return {values} : {results} }}\n"
    )


def attention(name, dtype, size, attributes):
    """A function with one attention: its own kernel, or those of a state and of a read."""
    t = f"tensor<2x4x?x{size}x{dtype}>"
    return (
        f"func.func @{name}(%q: {t}, %k: {t}, %v: {t}) -> {t} {{ %o = linattn.attention %q, %k, %v "
        f"{attributes} : ({t}, {t}, {t}) -> {t} return %o : {t} }}\n"
    )


SOFTMAX = "weights(softmax) {causal, scale = 0.125}"
ELU = "{feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}"
TOKEN = "2x4xT"
CHANNEL = "2x4xTxD"
# Of the tokens' element type.
VECTOR = "2x4xTxDxE"
MASK = "2xTxi1"
# The rules of scans: clauses, their operands.
RULES = {
    "chunk": ("", ()),
    "decay": ("decay(%g0)", (TOKEN,)),
    "gla": ("decay(%g0)", (CHANNEL,)),
    "delta": ("beta(%g0) update(delta)", (TOKEN,)),
    "gdn": ("decay(%g0) beta(%g1) update(delta)", (TOKEN, TOKEN)),
    "kda": ("decay(%g0) beta(%g1) update(delta)", (CHANNEL, TOKEN)),
    "gates": ("beta(%g0) erase(%g1) write(%g2) update(delta)", (TOKEN, CHANNEL, CHANNEL)),
    "kdagates": ("decay(%g0) erase(%g1) write(%g2) update(delta)", (CHANNEL, CHANNEL, CHANNEL)),
    "dplr": ("a(%g0) b(%g1) update(dplr)", (CHANNEL, CHANNEL)),
    "iplr": ("a(%g0) b(%g1) update(dplr)", (VECTOR, VECTOR)),
    "rwkv7": ("decay(%g0) a(%g1) b(%g2) update(dplr) transition(before)", (CHANNEL, VECTOR, VECTOR)),
    "mask": ("mask(%g0)", (MASK,)),
    "maskedkda": ("decay(%g0) beta(%g1) mask(%g2) update(delta)", (CHANNEL, TOKEN, MASK)),
    "columns": ("value_decay(%g0)", (CHANNEL,)),
    "exclusivecolumns": ("value_decay(%g0) readout(exclusive)", (CHANNEL,)),
    "bonus": ("decay(%g0) bonus(%g1) readout(exclusive)", (CHANNEL, "4xD")),
}
# Every size of some, few of the others, which differ from them in little.
ALL_SIZES = ["chunk_bf16", "chunk_f32", "decay_bf16", "gla_bf16", "gdn_bf16", "kda_bf16"]
FEW_SIZES = [
    *("chunk_f16", "decay_f16", "decay_f32", "gla_f32", "delta_bf16", "gdn_f16"),
    *("gdn_f32", "kda_f16", "kda_f32", "dplr_f32", "bonus_bf16", "bonus_f32"),
    *("mask_bf16", "mask_f32", "maskedkda_bf16", "gates_bf16", "iplr_bf16"),
    *("columns_bf16", "columns_f32", "exclusivecolumns_f32"),
]
# The head sizes of models with given vectors, and of gates of keys and values.
TWO_SIZES = ["kdagates_bf16", "rwkv7_bf16"]
FEW = SIZES if os.environ.get("LINATTN_PTXAS") == "all" else (60, 128)
# In segments: three kernels each.
SEGMENTS = ["chunk_bf16", "decay_bf16", "gla_bf16", "decay_f32", "gdn_bf16", "kda_bf16"]


def in_segments(name, size):
    by_rows = name in ("chunk_bf16", "decay_bf16")
    warps = 8 if size == 128 else 4
    return (
        "linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, "
        f"chunk = {64 if by_rows else 16}, warps = {warps}, stages = 2, "
        f"value_slice = {16 * warps}, split = 4>"
    )


def programs(sizes, name):
    """Those of `every_program` whose functions' names begin so."""
    for text in every_program(sizes):
        if re.match(f"func.func @{name}", text):
            yield text


def every_program(sizes):
    for size in sizes:
        few, two = FEW_SIZES if size in FEW else [], TWO_SIZES if size in (64, 128) else []
        for name in ALL_SIZES + few + two:
            rule, dtype = name.split("_")
            yield scan(f"{name}_{size}", dtype, size, "?", *RULES[rule])
        yield scan(f"step_bf16_{size}", "bf16", size, "1")
        if size in (60, 128):
            for name in SEGMENTS:
                rule, dtype = name.split("_")
                schedule = in_segments(name, size)
                yield scan(f"{rule}segments_{dtype}_{size}", dtype, size, "?", *RULES[rule], schedule)
            schedule = in_segments("normalized_bf16", size)
            yield scan(f"normalizedsegments_bf16_{size}", "bf16", size, "?", attributes=schedule, z=True)
        if size in FEW:
            yield scan(f"step_f32_{size}", "f32", size, "1")
            yield scan(f"normalized_bf16_{size}", "bf16", size, "?", z=True)
        yield attention(f"softmax_bf16_{size}", "bf16", size, SOFTMAX)
        yield attention(f"softmax_f32_{size}", "f32", size, SOFTMAX)
        yield attention(f"linear_bf16_{size}", "bf16", size, ELU)
        if size in FEW:
            yield attention(f"softmax_f16_{size}", "f16", size, SOFTMAX)
            yield attention(f"linear_f16_{size}", "f16", size, "")
            yield attention(f"linear_f32_{size}", "f32", size, ELU)


def check(ptx, plans, ptxas, chip, options, budget):
    """Messages about one kernel, and its line."""
    name = re.search(r"\.entry (\w+)\(", ptx).group(1)
    block, shared = plans[name]
    size = int(name.split("_")[2])
    with tempfile.NamedTemporaryFile(suffix=".cubin") as code:
        command = [ptxas, f"-arch={chip}", "-v", "-", "-o", code.name]
        result = subprocess.run(command, input=ptx, text=True, capture_output=True)
        if result.returncode:
            return [f"{name}: {result.stderr}"], name
        found = instructions(code.read())
        codes = [one.code for one in found]
    registers = int(re.search(r"Used (\d+) registers", result.stderr).group(1))
    spills = int(re.search(r"(\d+) bytes spill stores", result.stderr).group(1))
    line = f"{name}: {registers} registers, {spills} bytes spilled, {shared} bytes shared"
    wrong = []
    if spills and size <= NO_SPILLS_UP_TO:
        wrong.append("spills")
    if registers * block > REGISTERS:
        wrong.append(f"too many registers for {block} threads")
    # ptxas waits for each product where it cannot tell who uses the registers.
    if "wgmma" in result.stderr:
        wrong.append(f"ptxas: {result.stderr}")
    by_warpgroups = "quadratic" in name and "_f32_" not in name or "scan-mma=wgmma" in options
    if chip == "sm_90a" and ("wgmma" in ptx) != by_warpgroups:
        wrong.append("wgmma where there should be none, or none")
    if "copy=tma" in options and ("cp.async.bulk.tensor" not in ptx or "cp.async.c" in ptx):
        wrong.append("other copies than by tensor maps")
    if shared > SHARED.get(chip, HOPPER_SHARED):
        wrong.append("too much shared memory")
    for text in ("__nv_", ".local"):
        if text in ptx and (text != ".local" or size <= NO_SPILLS_UP_TO):
            wrong.append(f"{text} in the PTX")
    if SLOW_CONVERSION in codes and size <= NO_SPILLS_UP_TO:
        wrong.append(f"{codes.count(SLOW_CONVERSION)} slow conversions (F2F)")
    if LOCAL & set(codes) and size <= NO_SPILLS_UP_TO:
        wrong.append("local memory")
    if budget:
        wrong += budget.check(f"{chip}:{name}", [registers, shared, *count(found)])
    return [f"{line}: {', '.join(wrong)}"] if wrong else [], line


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    opt, translate, ptxas, chip = arguments[:4]
    sizes = [int(size) for size in arguments[4].split(",")] if arguments[4:] else SIZES
    name = arguments[5] if arguments[5:] else ""
    options = arguments[6:]
    files = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--budget=")]
    budget = Budget(files[0], ptxas, "--update" in sys.argv) if files else None
    pipeline = f"--linattn-lower-to-nvvm-pipeline={' '.join([f'chip={chip}'] + options)}"
    compiled = subprocess.run(
        [opt, pipeline],
        input="".join(programs(sizes, name)),
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    plans = {}
    for kernel, block, shared in re.findall(
        r"linattn.launch @(\w+)::.*?block = (\d+), shared = (\d+)", compiled
    ):
        plans[kernel] = (int(block), int(shared))
    text = subprocess.run(
        [translate, "--gpu-binary-to-assembly"],
        input=compiled,
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    # Beside them there are kernels that copy normalizers.
    parts = re.split(r"(?m)^(?=\.version)", text)
    kernels = [part for part in parts if re.search(r"_(scan\w*|quadratic|state|read)\(", part)]
    failures = []
    for ptx in kernels:
        wrong, line = check(ptx, plans, ptxas, chip, options, budget)
        failures += wrong
        print(line)
    if budget:
        budget.close()
    print(f"{len(kernels)} kernels, {len(failures)} failures")
    for failure in failures:
        print("failure:", failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
