"""The results so far, in a file that two processes write in turn."""

import json
import pathlib

__all__ = ["RESTART", "Results"]

# Exit code of a worker with a broken context. Its findings are written, and another process can
# continue.
RESTART = 75


class Results:
    def __init__(self, options):
        package = pathlib.Path(options.package)
        self.description = json.loads((package / "package.json").read_text())
        self.folder = pathlib.Path(options.out or package / "results")
        self.folder.mkdir(parents=True, exist_ok=True)
        schedules = {entry["name"]: entry["schedule"] for entry in self.description["kernels"]}
        self.data = {
            "dry_run": options.dry_run, "machine": {},
            "compiled": {key: self.description[key] for key in ("commit", "chips", "cubin")},
            "schedules": schedules, "checks": [], "calls": [], "sanitizer": [], "ceilings": None, "pipes": [], "times": [],
            "missing": [["kernel " + name, why] for name, why in self.description.get("failures", [])],
            "launch_us": None, "skipped": [], "broken": [], "done": [], "running": None,
        }  # fmt: skip

    @property
    def path(self):
        return self.folder / "results.json"

    def load(self):
        self.data = json.loads(self.path.read_text())

    def save(self, seconds):
        self.data["seconds"] = seconds
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(self.data, indent=1) + "\n")
        temporary.replace(self.path)

    def give_up(self, step, why):
        """A step that ended its process."""
        kind, _, name = step.partition(":")
        self.data["done"].append(step)
        self.data["broken"].append(f"{step}: {why}")
        if kind == "check":
            self.data["checks"].append({"kernel": name, "ok": False, "problem": why})
        elif kind == "call":
            self.data["calls"].append({"case": name, "ok": False, "problem": why})

    def is_good(self):
        data = self.data
        bad = [record for record in data["checks"] if not record["ok"]]
        bad += [record for record in data["calls"] if not record["ok"]]
        bad += [record for record in data["sanitizer"] if record["status"] != 0]
        return bool(data["checks"]) and not bad and not data["broken"]
