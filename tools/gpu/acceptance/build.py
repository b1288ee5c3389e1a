"""Compiles everything that is checked and timed into one folder, without a GPU.

    python3 -m acceptance.build FOLDER --bin BUILD/bin --runner FOLDER [--chip sm_90] [--quick]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

from .cases import kernels, module_text


def _compile(options, kernel, folder):
    """(bundle, schedule) or a message."""
    target = pathlib.Path(folder) / (kernel.name + ".lab")
    command = [str(pathlib.Path(options.bin) / "linattn-compile"), "-", "--target=nvvm", f"--chip={options.chip}", "--explain", "-o", str(target)]
    if options.cubin:
        command.append("--cubin")
    done = subprocess.run(command, input=module_text(kernel), text=True, capture_output=True)
    if done.returncode:
        return None, done.stderr.strip()
    chosen = [line.split("select-schedule: ")[1] for line in done.stdout.splitlines() if line.startswith("passed: select-schedule")]
    return target, "; ".join(chosen) or "plain loops"


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
    options = parser.parse_args()
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    chosen, entries, failures = kernels(options.quick), [], []
    archive = folder / "bundles.zip"
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundles:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for kernel, (path, text) in zip(chosen, pool.map(lambda kernel: _compile(options, kernel, scratch), chosen)):
                if path is None:
                    failures.append(f"{kernel.name}: {text}")
                    continue
                bundles.write(path, kernel.name + ".lab")
                path.unlink()
                entries.append({"name": kernel.name, "kernel": dataclasses.asdict(kernel), "schedule": text})
    description = {"commit": _commit(), "chips": options.chip, "cubin": options.cubin, "quick": options.quick, "kernels": entries}
    (folder / "package.json").write_text(json.dumps(description, indent=1) + "\n")
    for source in (pathlib.Path(__file__).parent, pathlib.Path(options.runner)):
        target = folder / source.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(entries)} kernels in {folder}, {size / 2**20:.1f} MiB")
    for failure in failures:
        print("failed:", failure, file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
