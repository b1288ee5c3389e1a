"""Assembles the kernels of a scan for every head size and checks what ptxas says.

    check_ptxas.py LINATTN_OPT LINATTN_TRANSLATE PTXAS CHIP

For each kernel, element type and head size: no spills up to D = 128, registers
and shared memory within what the chip gives the block, no local memory and no
function of libdevice in the PTX. Prints one line per kernel.
"""

import re
import subprocess
import sys

SIZES = [16, 32, 60, 64, 96, 128, 192, 256]
NO_SPILLS_UP_TO = 128
REGISTERS = 65536
SHARED = {"sm_80": 163 * 1024}
HOPPER_SHARED = 227 * 1024


def scan(name, dtype, size, tokens, clause="", gate=None):
    """A function with one scan; `gate` is the shape of its extra operand."""
    t = f"tensor<2x4x{tokens}x{size}x{dtype}>"
    s = f"tensor<2x4x{size}x{size}xf32>"
    arguments = f"%q: {t}, %k: {t}, %v: {t}"
    types = f"{t}, {t}, {t}"
    if gate:
        g = f"tensor<{gate}xf32>".replace("D", str(size)).replace("T", tokens)
        arguments += f", %g: {g}"
        types += f", {g}"
    empty = "%e = tensor.empty() : " + t
    if tokens == "?":
        empty = (
            f"%c2 = arith.constant 2 : index %t = tensor.dim %q, %c2 : {t} "
            f"%e = tensor.empty(%t) : {t}"
        )
    return (
        f"func.func @{name}({arguments}, %s: {s}) -> ({t}, {s}) {{ {empty} "
        f"%o:2 = linattn.scan %q, %k, %v {clause} into(%e) init(%s) "
        f": ({types}, {t}, {s}) -> ({t}, {s}) return %o#0, %o#1 : {t}, {s} }}\n"
    )


def programs():
    for size in SIZES:
        for dtype in ("bf16", "f16"):
            yield scan(f"chunk_{dtype}_{size}", dtype, size, "?")
            yield scan(
                f"decay_{dtype}_{size}", dtype, size, "?", "decay(%g)", "2x4xT"
            )
        for dtype in ("bf16", "f32"):
            yield scan(f"step_{dtype}_{size}", dtype, size, "1")
        yield scan(f"gla_f32_{size}", "f32", size, "?", "decay(%g)", "2x4xTxD")
        yield scan(
            f"delta_bf16_{size}", "bf16", size, "?", "beta(%g) update(delta)", "2x4xT"
        )


def check(ptx, plans, ptxas, chip):
    """Messages about one kernel, and its line."""
    name = re.search(r"\.entry (\w+)\(", ptx).group(1)
    block, shared = plans[name]
    size = int(name.split("_")[2])
    command = [ptxas, f"-arch={chip}", "-v", "-", "-o", "/dev/null"]
    result = subprocess.run(command, input=ptx, text=True, capture_output=True)
    if result.returncode:
        return [f"{name}: {result.stderr}"], name
    registers = int(re.search(r"Used (\d+) registers", result.stderr).group(1))
    spills = int(re.search(r"(\d+) bytes spill stores", result.stderr).group(1))
    line = f"{name}: {registers} registers, {spills} bytes spilled, {shared} bytes shared"
    wrong = []
    if spills and size <= NO_SPILLS_UP_TO:
        wrong.append("spills")
    if registers * block > REGISTERS:
        wrong.append(f"too many registers for {block} threads")
    if shared > SHARED.get(chip, HOPPER_SHARED):
        wrong.append("too much shared memory")
    for text in ("__nv_", ".local"):
        if text in ptx and (text != ".local" or size <= NO_SPILLS_UP_TO):
            wrong.append(f"{text} in the PTX")
    return [f"{line}: {', '.join(wrong)}"] if wrong else [], line


def main():
    opt, translate, ptxas, chip = sys.argv[1:]
    pipeline = f"--linattn-lower-to-nvvm-pipeline=chip={chip}"
    compiled = subprocess.run(
        [opt, pipeline],
        input="".join(programs()),
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
    kernels = [part for part in re.split(r"(?m)^(?=\.version)", text) if ".entry" in part]
    failures = []
    for ptx in kernels:
        wrong, line = check(ptx, plans, ptxas, chip)
        failures += wrong
        print(line)
    print(f"{len(kernels)} kernels, {len(failures)} failures")
    for failure in failures:
        print("failure:", failure)
    sys.exit(bool(failures))


main()
