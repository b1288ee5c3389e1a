"""The steps: checks, public calls, times, sanitizer."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

import linattn_runner

from . import checks, peers, pipes, smoke, timing
from .cases import DECODE, LONG, SMALL, STANDARD, TIMED_RULES, Kernel, Shape, timed
from .results import RESTART, Results

__all__ = ["Worker"]

SANITIZED = ("linear_bf16_h2_d64_carry", "simple_gla_bf16_h2_d64_carry", "gated_delta_bf16_h2_d64_carry",
             "kda_bf16_h2_d64_carry", "elu_f32_h2_d64_carry", "linear_bf16_h2_d128_step")  # fmt: skip
QUICK_SHAPES = (("standard", Shape(2, 128, 8, 64)), ("decode", Shape(4, 1, 8, 64)))
# The share of the time for checks, and seconds reserved for the sanitizer.
CHECKS_SHARE, SANITIZER_SECONDS = 0.5, 100


class Package:
    """The package of the other machine: a description and the bundles."""

    def __init__(self, path, description):
        self.bundles = zipfile.ZipFile(pathlib.Path(path) / "bundles.zip")
        self.kernels = [Kernel(**entry["kernel"]) for entry in description["kernels"]]
        self.quick = description["quick"]
        self.loaded = {}

    def load(self, kernel):
        if kernel not in self.loaded:
            self.loaded[kernel] = linattn_runner.load(self.bundles.read(kernel.name + ".lab"))
            self.loaded[kernel].prepare()
        return self.loaded[kernel]


class Worker:
    def __init__(self, options):
        self.options, self.out = options, Results(options)
        self.package = Package(options.package, self.out.description)
        self.device = None

    # ------------------------------------------------------------------------
    # Steps
    # ------------------------------------------------------------------------

    def run(self):
        if self.out.path.exists():
            self.out.load()
        self.data = self.out.data
        self._note("start")
        if self.options.dry_run:
            from .device import DryDevice as Device
        else:
            from .device import CudaDevice as Device
        try:
            self.device = Device()
        except (ImportError, RuntimeError) as error:
            self.data["broken"].append(f"start: {type(error).__name__}: {error}")
            self.out.save(self._spent())
            print(f"start: {error}", flush=True)
            return 1
        self.data["machine"] = self.device.info
        self.say(f"{self.device.info}")
        for step, limit, work in self._steps():
            if step in self.data["done"]:
                continue
            if self.left() < limit and not self.options.dry_run:
                self.data["skipped"].append(f"{step}: out of time")
                continue
            self._do(step, work)
        self.out.save(self._spent())
        return 0 if self.out.is_good() else 1

    def _do(self, step, work):
        self._note(step)
        problem = None
        try:
            work()
        except (ImportError, NotImplementedError) as error:
            problem = str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001: one step that fails hides no other
            problem = f"{type(error).__name__}: {error}".strip().split("\n")[0]
        if problem is not None:
            self._fail(step, problem)
        self.data["done"].append(step)
        self.out.save(self._spent())
        if problem is not None and not self.device.is_alive():
            self.say(f"{step}: the context is broken")
            # Exits without destructors: they would call a driver that no longer answers.
            os._exit(RESTART)

    def _fail(self, step, problem):
        kind, _, name = step.partition(":")
        self.say(f"{step}: {problem}")
        if kind == "check":
            self.data["checks"].append({"kernel": name, "ok": False, "problem": problem})
        elif kind == "peer":
            peer = name.partition(":")[0]
            if [peer, problem] not in self.data["missing"]:
                self.data["missing"].append([peer, problem])
        else:
            self.data["broken"].append(f"{step}: {problem}")

    def _note(self, step):
        # A separate file, because it is written before every step and read five times a second.
        temporary = self.out.folder / "step.new"
        temporary.write_text(step)
        temporary.replace(self.out.folder / "step")

    def _spent(self):
        return time.monotonic() - self.options.begin

    def left(self):
        return self.options.seconds - self._spent()

    def say(self, text):
        print(f"[{self._spent():6.1f} s] {text}", flush=True)

    def _steps(self):
        """(name, seconds that must be left, work), what matters most first."""
        for_others = (1 - CHECKS_SHARE) * self.options.seconds
        for kernel in self.package.kernels:
            if not self.options.kernels or kernel.name in self.options.kernels:
                yield f"check:{kernel.name}", for_others, lambda kernel=kernel: self.check(kernel)
        if self.options.only_checks:
            return
        if not self.options.dry_run:
            yield from self._calls(for_others)
        shapes = [(group, rule, shape) for group, rule, shape in self._shapes() if timed(rule, shape) in self.package.kernels]
        yield "ceilings", SANITIZER_SECONDS, self.ceilings
        for pipe in pipes.PIPES:
            if pipe.runs_on(self.out.description["chips"]):
                yield f"pipe:{pipe.name}", SANITIZER_SECONDS, lambda pipe=pipe: self.measure(pipe)
        yield "launch", SANITIZER_SECONDS, self.launches
        for group, rule, shape in shapes:
            yield f"time:{rule} {shape}", SANITIZER_SECONDS, lambda it=(group, rule, shape): self.time(*it)
        for rule in TIMED_RULES:
            for shape in LONG:
                if timed(rule, shape) in self.package.kernels:
                    yield f"check:{rule} {shape}", SANITIZER_SECONDS, lambda it=(rule, shape): self.check_long(*it)
        for name in peers.NAMES:
            for group, rule, shape in shapes:
                yield f"peer:{name}:{rule} {shape}", SANITIZER_SECONDS, lambda it=(group, rule, shape, name): self.time(*it)
        for tool in ("memcheck", "racecheck"):
            yield f"sanitize:{tool}", 25, lambda tool=tool: self.sanitize(tool)

    def _calls(self, seconds):
        if importlib.util.find_spec("linattn") is None:
            reason = ["public calls", "linattn cannot be imported: the package has kernels alone"]
            self.data["missing"] += [] if reason in self.data["missing"] else [reason]
            return
        device = smoke.Device()
        for name in smoke.CASES:
            yield f"call:{name}", seconds, lambda name=name: self.call(name, device)

    def _shapes(self):
        groups = (("standard", STANDARD), ("decode", DECODE), ("small", SMALL))
        every = QUICK_SHAPES if self.package.quick else [(group, shape) for group, shapes in groups for shape in shapes]
        return [(group, rule, shape) for group, shape in every for rule in TIMED_RULES]

    # ------------------------------------------------------------------------
    # Work
    # ------------------------------------------------------------------------

    def check(self, kernel, batch=2, tokens=203):
        """One kernel against float64."""
        if self.device.is_dry:  # The calls of the driver are the same.
            tokens = min(tokens, 9)
        name = kernel.name if batch == 2 else f"{kernel.rule} B{batch} T{tokens} H{kernel.heads} D{kernel.size}"
        record = {"kernel": name, "rule": kernel.rule, "dtype": kernel.dtype, "size": kernel.size, "form": kernel.form}
        record |= checks.check(self.device, kernel, self.package.load(kernel), batch, tokens)
        self.data["checks"].append(record)
        if not record["ok"]:
            self.say(f"FAILED {record}")
        elif len(self.data["checks"]) % 50 == 0:
            self.say(f"{sum(it['ok'] for it in self.data['checks'])} of {len(self.data['checks'])} kernels agree with float64")

    def call(self, name, device):
        """A public function against the oracle in float64."""
        record = smoke.run(name, device)
        self.data["calls"].append(record)
        if not record["ok"]:
            self.say(f"FAILED {record}")

    def check_long(self, rule, shape):
        self.check(timed(rule, shape), shape.batch, shape.tokens)

    def ceilings(self):
        self.data["ceilings"] = timing.ceilings(self.device)
        self.say(f"ceilings: {self.data['ceilings']}")

    def measure(self, pipe):
        self.data["pipes"].append(pipes.measure(self.device, pipe, self.out.description["model"]))

    def launches(self):
        shape = QUICK_SHAPES[-1][1] if self.package.quick else DECODE[-1]
        self.data["launch_us"] = timing.launch_cost(self.device, self.package.load, shape)

    def time(self, group, rule, shape, peer=None):
        limits = self.data["ceilings"]
        try:
            if peer is None:
                record = timing.time_ours(self.device, self.package.load, rule, shape, limits)
            else:
                record = timing.time_peer(self.device, peer, rule, shape, limits)
        finally:
            self.device.release()
        self.data["times"].append(record | {"group": group})
        if record["ms"] is not None:
            self.say(f"{rule} {shape}: {record['implementation']} {record['ms']:.4g} ms")

    def sanitize(self, tool):
        """compute-sanitizer over a few kernels, in a process of its own."""
        program = shutil.which("compute-sanitizer")
        if not program:
            if ["compute-sanitizer", "not in PATH"] not in self.data["missing"]:
                self.data["missing"].append(["compute-sanitizer", "not in PATH"])
            return
        names = {kernel.name for kernel in self.package.kernels}
        command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "acceptance",
                   self.options.package, "--worker", "--only-checks", "--out", str((self.out.folder / tool).resolve()), "--seconds", "120",
                   *sum((["--kernel", name] for name in SANITIZED if name in names), [])]  # fmt: skip
        if self.options.dry_run:
            command.append("--dry-run")
        shutil.rmtree(self.out.folder / tool, ignore_errors=True)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=min(90, max(20, self.left() - 5)))
            output, status = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            output, status = "", "timeout"
        lines = [line.strip("= ") for line in output.splitlines() if "ERROR SUMMARY" in line or "RACECHECK SUMMARY" in line]
        self.data["sanitizer"].append({"tool": tool, "status": status, "summary": (lines or output.splitlines()[-1:] or [""])[-1]})
        self.say(f"compute-sanitizer {tool}: exit code {status}")
