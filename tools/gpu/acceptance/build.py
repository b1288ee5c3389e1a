"""Compiles everything that is checked and timed into one folder, without a GPU.

    python3 -m acceptance.build FOLDER --bin BUILD/bin --runner FOLDER [--chip sm_90] [--quick]

A bundle that the same compiler made of the same function before is taken from the cache:
a build that was interrupted goes on where it was.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import zipfile

from schedulers import Machine

from .cases import RULES, kernels, module_text


class Compiler:
    """linattn-compile with its options, and what it made of which text."""

    def __init__(self, options):
        self.program = str(pathlib.Path(options.bin) / "linattn-compile")
        self.options = ["--target=nvvm", f"--chip={options.chip}", "--explain"] + ["--cubin"] * options.cubin
        self.limit, self.cache = options.limit, pathlib.Path(options.cache or options.folder.rstrip("/") + ".cache")
        self.cache.mkdir(parents=True, exist_ok=True)
        self.identity = hashlib.sha256(pathlib.Path(self.program).read_bytes())
        self.identity.update(" ".join(self.options).encode() + _ptxas_version())
        self.used, self.stopped = set(), threading.Event()

    def compile(self, kernel):
        """(bytes of the bundle, record) or (None, message)."""
        text = module_text(kernel)
        key = self.identity.copy()
        chosen = RULES[kernel.rule].options
        key.update(" ".join([text, *chosen]).encode())
        bundle = self.cache / (key.hexdigest()[:32] + ".lab")
        record = bundle.with_suffix(".json")
        self.used |= {bundle.name, record.name}
        if not record.exists():
            problem = "stopped" if self.stopped.is_set() else self._run(text, chosen, bundle, record)
            if problem:
                return None, problem
        return bundle.read_bytes(), json.loads(record.read_text())

    def _run(self, text, chosen, bundle, record):
        begin, unfinished = time.monotonic(), bundle.with_suffix(".new")
        try:
            done = subprocess.run([self.program, "-", *self.options, *chosen, "-o", str(unfinished)], input=text, text=True,
                                  capture_output=True, timeout=self.limit)  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"not compiled within {self.limit:.0f} s"
        if done.returncode:
            return done.stderr.strip() or f"exit code {done.returncode}"
        schedules = [line.split("select-schedule: ")[1] for line in done.stdout.splitlines() if line.startswith("passed: select-schedule")]
        unfinished.replace(bundle)
        # The record comes last: where it is, the bundle is whole.
        found = {"schedule": "; ".join(schedules) or "plain loops", "seconds": round(time.monotonic() - begin, 2)}
        unfinished.write_text(json.dumps(found))
        unfinished.replace(record)
        return None

    def forget_unused(self):
        for path in self.cache.iterdir():
            if path.name not in self.used:
                path.unlink()


def _model():
    """[cycles, latency] of the instructions in pipes.py, as predictions of kernels take them; None where they take none."""
    machine = Machine()
    latency = dict(machine.latencies)
    # Four schedulers share the memory of a multiprocessor.
    shared = 4 * machine.shared_words
    return {
        "mma.sync m16n8k16, bf16": [machine.tensor, machine.tensor_latency],
        "wgmma m64n64k16, bf16": [64 * machine.warpgroup_column, None],
        "cvt.rn.bf16x2.f32": [machine.pack, None],
        "ex2.approx.f32": [machine.special, latency[0x108]],
        "fma.rn.f32": [1, None],
        "lop3.b32": [machine.half_rate, None],
        "ldmatrix.x4": [4 * shared, latency[0x03B]],
        "ld.shared.b32": [shared, latency[0x184]],
        "shfl.sync.bfly": [shared, latency[0x189]],
    }


def _ptxas_version():
    program = shutil.which("ptxas")
    return subprocess.run([program, "--version"], capture_output=True).stdout if program else b""


def _commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent)
    return done.stdout.strip() if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(prog="acceptance.build", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--bin", required=True, help="where linattn-compile is")
    parser.add_argument("--runner", required=True, help="the folder of linattn_runner, its library within")
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--no-cubin", dest="cubin", action="store_false", help="PTX alone, which the driver compiles")
    parser.add_argument("--quick", action="store_true", help="a few small kernels, to try the script")
    parser.add_argument("--cache", help="bundles of earlier builds (default: FOLDER.cache)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations at a time (default: one per core)")
    parser.add_argument("--limit", type=float, default=600, help="seconds that one kernel may take (default: 600)")
    options = parser.parse_args()
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    chosen, entries, failures, compiler = kernels(options.quick, options.chip), [], [], Compiler(options)
    begin = time.monotonic()
    with zipfile.ZipFile(folder / "bundles.zip", "w", zipfile.ZIP_DEFLATED) as bundles:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            try:
                for kernel, (bundle, found) in zip(chosen, pool.map(compiler.compile, chosen)):
                    if bundle is None:
                        failures.append([kernel.name, found])
                        continue
                    bundles.writestr(kernel.name + ".lab", bundle)
                    entries.append({"name": kernel.name, "kernel": dataclasses.asdict(kernel), **found})
                    if len(entries) % 20 == 0:
                        print(f"[{time.monotonic() - begin:6.1f} s] {len(entries)} of {len(chosen)} kernels", flush=True)
            except BaseException:
                compiler.stopped.set()
                raise
    compiler.forget_unused()
    # Missing kernels are named where the package is run, too.
    description = {"model": _model(), "commit": _commit(), "chips": options.chip, "cubin": options.cubin, "quick": options.quick, "kernels": entries,
                   "failures": failures}  # fmt: skip
    (folder / "package.json").write_text(json.dumps(description, indent=1) + "\n")
    for source in (pathlib.Path(__file__).parent, pathlib.Path(options.runner)):
        target = folder / source.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns("__pycache__"), ignore_dangling_symlinks=True
        )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    spent = sum(entry["seconds"] for entry in entries)
    print(f"{len(entries)} kernels in {folder}, {size / 2**20:.1f} MiB; {spent:.0f} s of compiling, {time.monotonic() - begin:.0f} s now")
    for name, why in failures:
        print(f"failed: {name}: {why}", file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
