"""Watches the process that works: one kernel that hangs or breaks the context must not
cost the results of all others."""

import os
import signal
import subprocess
import sys
import time

from . import report
from .results import RESTART, Results

__all__ = ["run"]

# The first step loads PyTorch.
START_SECONDS = 150
MAX_RESTARTS = 12


def _end(process):
    """The worker, and the sanitizer if it has started one."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass  # It is gone, or the driver keeps it; its results are in the file.


def _watch(process, results, options):
    """Why the process ended: its exit code, or text."""
    step, spent, last = None, 0.0, time.monotonic()
    while True:
        try:
            return process.wait(0.2)
        except subprocess.TimeoutExpired:
            pass
        now, state = time.monotonic(), _peek(results)
        # A machine that was suspended did not let the step work, either.
        spent, last = spent + min(now - last, 1), now
        if state != step:
            step, spent = state, 0.0
        limit = START_SECONDS if step is None or step == "start" else options.step_seconds
        if step and step.startswith("sanitize:"):
            limit = max(limit, 100)
        if spent > limit:
            _end(process)
            return f"did not end within {limit:.0f} s"
        # The rest of the time is for the report.
        if now - options.begin > options.seconds + 15:
            _end(process)
            return "out of time"


def _peek(results):
    path = results.folder / "step"
    return path.read_text() if path.exists() else None


def run(options, arguments):
    results = Results(options)
    (results.folder / "step").unlink(missing_ok=True)
    results.save(0)
    for attempt in range(MAX_RESTARTS + 1):
        command = [sys.executable, "-m", "acceptance", *arguments, "--worker", "--begin", repr(options.begin)]
        process = subprocess.Popen(command, start_new_session=True)
        try:
            why = _watch(process, results, options)
        except BaseException:  # Such as Ctrl-C, which does not reach a session of its own.
            _end(process)
            raise
        results.load()
        if why in (0, 1):
            break
        step = _peek(results) or "start"
        if why != RESTART:
            why = why if isinstance(why, str) else f"the process ended with {why}"
            results.give_up(step, why)
            print(f"{step}: {why}", flush=True)
        results.save(time.monotonic() - options.begin)
        if step == "start" or why == "out of time" or time.monotonic() - options.begin > options.seconds - 20:
            break
        print("going on in another process", flush=True)
    else:
        results.data["skipped"].append(f"all that came after {MAX_RESTARTS} processes had to be given up")
    results.save(time.monotonic() - options.begin)
    (results.folder / "results.md").write_text(report.markdown(results.data))
    (results.folder / "step").unlink(missing_ok=True)
    print(f"wrote {results.path} and results.md", flush=True)
    return 0 if results.is_good() else 1
