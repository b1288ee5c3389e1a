"""Checks and times a package of compiled kernels on the machine at hand.

    python3 -m acceptance PACKAGE [--out DIR] [--seconds N] [--dry-run] [--only-checks]

Needs Python, PyTorch and a GPU of NVIDIA; the package has all else. What was measured
is written after every step, so that whatever ends the run leaves what came before.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

import linattn_runner

from . import checks, report, timing
from .cases import DECODE, SMALL, STANDARD, TIMED_RULES, Kernel, Shape

SANITIZED = ("linear_bf16_h2_d64_carry", "simple_gla_bf16_h2_d64_carry", "gated_delta_bf16_h2_d64_carry",
             "kda_bf16_h2_d64_carry", "elu_f32_h2_d64_carry", "linear_bf16_h2_d128_step")  # fmt: skip


class Package:
    """What the other machine compiled: a description and the bundles."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.description = json.loads((self.path / "package.json").read_text())
        self.bundles = zipfile.ZipFile(self.path / "bundles.zip")
        self.loaded = {}

    @property
    def kernels(self):
        return [Kernel(**entry["kernel"]) for entry in self.description["kernels"]]

    def load(self, kernel):
        if kernel not in self.loaded:
            self.loaded[kernel] = linattn_runner.load(self.bundles.read(kernel.name + ".lab"))
            self.loaded[kernel].prepare()
        return self.loaded[kernel]


class Run:
    def __init__(self, options):
        self.options, self.begin = options, time.monotonic()
        self.package = Package(options.package)
        if options.dry_run:
            from .device import DryDevice as Device
        else:
            from .device import CudaDevice as Device
        self.device = Device()
        self.out = pathlib.Path(options.out or self.package.path / "results")
        self.out.mkdir(parents=True, exist_ok=True)
        schedules = {entry["name"]: entry["schedule"] for entry in self.package.description["kernels"]}
        self.results = {
            "dry_run": options.dry_run, "machine": self.device.info,
            "compiled": {key: self.package.description[key] for key in ("commit", "chips", "cubin")},
            "schedules": schedules, "checks": [], "sanitizer": [], "ceilings": None, "times": [],
            "missing": [], "launch_us": None, "skipped": [],
        }  # fmt: skip

    def left(self):
        return self.options.seconds - (time.monotonic() - self.begin)

    def save(self):
        self.results["seconds"] = time.monotonic() - self.begin
        temporary = self.out / "results.json.new"
        temporary.write_text(json.dumps(self.results, indent=1) + "\n")
        temporary.replace(self.out / "results.json")

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:6.1f} s] {text}", flush=True)

    def check(self):
        """Every kernel, or those that are asked for, against float64."""
        for kernel in self.package.kernels:
            if kernel.form == "prefill" or (self.options.kernels and kernel.name not in self.options.kernels):
                continue
            if self.left() < 0.45 * self.options.seconds:
                self.results["skipped"].append(f"check of {kernel.name}: out of time")
                continue
            record = {"kernel": kernel.name, "rule": kernel.rule, "dtype": kernel.dtype, "size": kernel.size, "form": kernel.form}
            try:
                record |= checks.check(self.device, kernel, self.package.load(kernel))
            except Exception as error:  # noqa: BLE001: one kernel that fails hides no other
                record |= {"ok": False, "problem": f"{type(error).__name__}: {error}"}
            self.results["checks"].append(record)
            if not record["ok"]:
                self.say(f"FAILED {record}")
        good = sum(record["ok"] for record in self.results["checks"])
        self.say(f"{good} of {len(self.results['checks'])} kernels agree with float64")
        self.save()

    def sanitize(self):
        """memcheck and racecheck over a few kernels, in processes of their own."""
        program = shutil.which("compute-sanitizer")
        if not program:
            self.results["missing"].append(["compute-sanitizer", "not in PATH"])
            return
        names = {kernel.name for kernel in self.package.kernels}
        for tool in ("memcheck", "racecheck"):
            limit = min(75, self.left() - 5)
            if limit < 20:
                self.results["skipped"].append(f"compute-sanitizer {tool}: out of time")
                continue
            command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "acceptance",
                       ".", "--only-checks", "--out", str((self.out / tool).resolve()), "--seconds", "60",
                       *sum((["--kernel", name] for name in SANITIZED if name in names), [])]  # fmt: skip
            if self.options.dry_run:
                command.append("--dry-run")
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=self.package.path)
                output, status = done.stdout + done.stderr, done.returncode
            except subprocess.TimeoutExpired:
                output, status = "", "timeout"
            lines = [line.strip("= ") for line in output.splitlines() if "ERROR SUMMARY" in line or "RACECHECK SUMMARY" in line]
            self.results["sanitizer"].append({"tool": tool, "status": status, "summary": (lines or output.splitlines()[-1:] or [""])[-1]})
            self.say(f"compute-sanitizer {tool}: exit code {status}")
        self.save()

    def time(self):
        self.results["ceilings"] = limits = timing.ceilings(self.device)
        self.say(f"ceilings: {limits}")
        compiled = set(self.package.kernels)
        for group, shapes in (("standard", STANDARD), ("decode", DECODE), ("small", SMALL)):
            for shape in shapes if not self.package.description["quick"] else QUICK_SHAPES.get(group, ()):
                for rule in TIMED_RULES:
                    if timing.timed(rule, shape) not in compiled:
                        continue
                    if self.left() < 15 and not self.options.dry_run:
                        self.results["skipped"].append(f"{rule} on {shape}: out of time")
                        continue
                    self.time_one(group, rule, shape, limits)
        self.save()

    def time_one(self, group, rule, shape, limits):
        # The peers of the last shapes go first when time is short.
        peers = self.left() > 40 or self.options.dry_run
        try:
            records, missing = timing.time_shape(self.device, self.package.load, rule, shape, limits, peers)
        except Exception as error:  # noqa: BLE001: one shape that fails hides no other
            self.results["skipped"].append(f"{rule} on {shape}: {type(error).__name__}: {error}")
            return
        if not peers:
            self.results["skipped"].append(f"peers of {rule} on {shape}: out of time")
        self.results["times"] += [record | {"group": group} for record in records]
        for entry in missing:
            if list(entry) not in self.results["missing"]:
                self.results["missing"].append(list(entry))
        shown = ", ".join(f"{r['implementation']} {r['ms']:.4g} ms" for r in records if r["ms"] is not None)
        self.say(f"{rule} {shape}: {shown}")
        self.save()

    def launches(self):
        shape = QUICK_SHAPES["decode"][0] if self.package.description["quick"] else DECODE[-1]
        self.results["launch_us"] = timing.launch_cost(self.device, self.package.load, shape)
        self.save()


QUICK_SHAPES = {"standard": (Shape(2, 128, 8, 64),), "decode": (Shape(4, 1, 8, 64),)}


def main():
    parser = argparse.ArgumentParser(prog="acceptance", description=__doc__.split("\n\n")[0])
    parser.add_argument("package", help="the folder that acceptance.sh --build-only made")
    parser.add_argument("--out", help="where to write results.json and results.md (default: PACKAGE/results)")
    parser.add_argument("--seconds", type=float, default=500, help="to be done in (default: 500)")
    parser.add_argument("--dry-run", action="store_true", help="host memory and the driver at hand; nothing is timed")
    parser.add_argument("--only-checks", action="store_true", help="no times")
    parser.add_argument("--kernel", action="append", dest="kernels", default=[], help="check this one, again for more")
    run = Run(parser.parse_args())
    run.say(f"{run.device.info}")
    run.check()
    if not run.options.only_checks:
        run.launches()
        run.time()
        run.sanitize()
    run.save()
    (run.out / "results.md").write_text(report.markdown(run.results))
    run.say(f"wrote {run.out}/results.json and results.md")
    bad = [record for record in run.results["checks"] if not record["ok"]]
    bad += [record for record in run.results["sanitizer"] if record["status"] != 0]
    return 1 if bad or not run.results["checks"] else 0


if __name__ == "__main__":
    sys.exit(main())
