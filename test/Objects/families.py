"""Runs modules as objects of other processors: families.py LINATTN-COMPILE FOLDER TARGET[:BITS][,…] FILE.mlir…

BITS is the length of its vectors where that is open.

Each public function gets random operands, every open extent is 11, and the results are compared with those of
the reference on this machine. Objects are linked with bare.c, so no C library is needed; they run in QEMU or in
Node.js.
"""

import pathlib
import re
import subprocess
import sys

import ml_dtypes
import numpy as np

import linattn

OPEN = 11
INPUTS = pathlib.Path(__file__).parent / "Inputs"
TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "i1": np.bool_, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
TOLERANCE = {"f16": 3e-3, "bf16": 2e-2, "f32": 1e-5, "f64": 1e-12}

BARE = ["clang-22", "-std=c11", "-O1", "-ffreestanding", "-nostdlib"]
# Options to link with, and the command that runs a program.
MACHINES = {
    "aarch64-linux-gnu": (["-static", "-fuse-ld=lld"], ["qemu-aarch64"]),
    "riscv64-linux-gnu": (["-march=rv64gc", "-mabi=lp64d", "-static", "-fuse-ld=lld"], ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0"]),
    "wasm32": (["-msimd128", "-Wl,--no-entry,--export=check,--allow-undefined"], ["node", str(INPUTS / "run-wasm.cjs")]),
}  # fmt: skip


def signature(text):
    """The name of the only public function, and the types of its arguments and results."""
    text = re.sub(r"^//.*\n", "", text, flags=re.M)
    name, arguments, results = re.search(r"func\.func @(\w+)\((.*?)\) -> (.*?) (?:attributes|\{\n)", text, re.S).groups()
    types = [re.findall(r"tensor<((?:[\d?]+x)*)(\w+)>", part) for part in (arguments, results)]
    return name, *[[([int(n.replace("?", str(OPEN))) for n in sizes.split("x")[:-1]], kind) for sizes, kind in part] for part in types]


def make(rng, sizes, kind):
    if kind == "i1":
        return rng.random(sizes) < 0.7
    if kind.startswith("i"):
        return rng.integers(0, 2, sizes).astype(TYPES[kind])
    return (0.5 * rng.standard_normal(sizes)).astype(TYPES[kind])


def write_program(path, name, operands, results):
    """A program that calls the function and hands out its results."""
    lines = ["#include <stddef.h>", "#include <stdint.h>", f"void {name}__packed(void **operands);", "void emit(const void *bytes, size_t size);"]
    calls, fields = [], []
    for i, array in enumerate([*operands, *results]):
        raw = np.ascontiguousarray(array).tobytes() if i < len(operands) else b"\xff" * array.nbytes
        lines.append(f"static _Alignas(64) unsigned char data{i}[] = {{{','.join(map(str, raw)) or 0}}};")
        strides = [stride // array.itemsize for stride in np.ascontiguousarray(array).strides]
        numbers = [0, 0, 0, *array.shape, *strides]
        fields.append(f"  static int64_t fields{i}[] = {{{','.join(map(str, numbers))}}};")
        fields.append(f"  fields{i}[0] = fields{i}[1] = (int64_t)(intptr_t)data{i};")
        if i >= len(operands):
            calls.append(f"  emit(data{i}, {array.nbytes});")
    names = ", ".join(f"fields{i}" for i in range(len(operands) + len(results)))
    lines += ["int check(void) {", *fields, f"  void *operands[] = {{{names}}};", f"  {name}__packed(operands);", *calls, "  return 0;", "}"]
    path.write_text("\n".join(lines) + "\n")


def run(compiler, folder, target, source, name, operands, results):
    """The largest error of the results, relative to their largest number."""
    triple, _, bits = target.partition(":")
    options, runner = MACHINES[triple]
    work = folder / f"{source.stem}-{triple}{bits}"
    program, code, binary = (work.with_suffix(end) for end in (".c", ".o", ".bin"))
    write_program(program, name, operands, results)
    subprocess.run([compiler, source, f"--target={triple}", f"--vector-bits={bits or 0}", "--emit=obj", "-o", code], check=True)
    subprocess.run([*BARE, f"--target={triple}", *options, program, INPUTS / "bare.c", code, "-o", binary], check=True)
    out = subprocess.run([*runner, binary], check=True, stdout=subprocess.PIPE).stdout
    errors = []
    for expected in results:
        got = np.frombuffer(out[: expected.nbytes], expected.dtype).reshape(expected.shape).astype(np.float64)
        out = out[expected.nbytes :]
        expected = expected.astype(np.float64)
        errors.append(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-30))
    assert not out, "more came than the results have"
    return max(errors)


def main(compiler, folder, targets, *sources):
    folder, failed = pathlib.Path(folder), []
    folder.mkdir(parents=True, exist_ok=True)
    for source in map(pathlib.Path, sources):
        name, arguments, results = signature(source.read_text())
        rng = np.random.default_rng(0)
        operands = [make(rng, *kind) for kind in arguments]
        expected = linattn.compile(source, target="reference")(*operands)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for target in targets.split(","):
            try:
                error = run(compiler, folder, target, source, name, operands, expected)
            except subprocess.CalledProcessError:
                error = float("nan")
            print(f"{source.stem} {target} {error:.1e}", flush=True)
            # Not a number fails, too.
            if not error <= max(TOLERANCE[kind] for _, kind in results):
                failed.append(f"{source.stem} {target}")
    print("failed:", ", ".join(failed) or "none")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
