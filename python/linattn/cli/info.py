"""``info``: version, CPU, targets, cache, settings, and the libraries that are installed beside linattn."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil

from .. import _linattn

__all__ = ["LIBRARIES", "collect", "driver_of", "ptxas_of", "register", "settings"]

# The use of each library, by the name under which it is installed.
LIBRARIES = {
    "numpy": "arrays and results",
    "torch": "tensors, without copies",
    "transformers": "models, by linattn.transformers",
    "jax": "arrays, without copies",
    "cupy": "arrays on a GPU, without copies",
    "ml_dtypes": "bfloat16 in NumPy",
    "matplotlib": "plots of bench and report",
    "onnxruntime": "models, by linattn.onnxruntime",
}


def register(commands):
    parser = commands.add_parser("info", help="version, CPU, targets, cache, settings and libraries")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def collect():
    """All that ``info`` prints, as a dict that JSON can hold."""
    bits, registers = _linattn.vector_unit()
    return {
        "version": _linattn.__version__,
        "package": str(pathlib.Path(__file__).parents[1]),
        "python": platform.python_version(),
        "cpu": {
            "model": _cpu_model(),
            "vectors": _linattn.fma_kind(),
            "vector_bits": bits,
            "vector_registers": registers,
            "usable": len(os.sched_getaffinity(0)),
            "threads": _linattn.get_num_threads(),
        },
        "gpu": {"driver": driver_of(), "ptxas": ptxas_of()},
        "cache": _linattn.disk_cache(),
        "settings": settings(),
        "libraries": {name: _version_of(name) for name in LIBRARIES},
    }


def settings():
    """The variables of the environment that linattn reads and that are set."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("LINATTN_")}


def driver_of():
    """The name of the CUDA driver, or None where it cannot be loaded."""
    name = os.environ.get("LINATTN_CUDA_DRIVER") or "libcuda.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return None
    return name


def ptxas_of():
    """The path of the assembler of PTX, or None where the driver assembles."""
    name = os.environ.get("LINATTN_PTXAS", "ptxas")
    return shutil.which(name) if name else None


def _cpu_model():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _version_of(library):
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _run(options):
    found = collect()
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    cpu, gpu, cache = found["cpu"], found["gpu"], found["cache"]
    usable = f"{cpu['usable']} CPU{'s' if cpu['usable'] > 1 else ''}, {cpu['threads']} thread{'s' if cpu['threads'] > 1 else ''}"
    print(f"linattn    {found['version']} in {found['package']}, Python {found['python']}")
    print(f"CPU        {cpu['model']}: {usable}, {cpu['vectors']} ({cpu['vector_registers']} registers of {cpu['vector_bits']} bits)")
    print(f"GPU        driver {gpu['driver'] or 'not found'}, ptxas {gpu['ptxas'] or 'not found'}")
    print(f"cache      {_describe(cache)}")
    print(f"settings   {' '.join(f'{name}={value}' for name, value in found['settings'].items()) or 'none: defaults'}")
    for index, (name, version) in enumerate(found["libraries"].items()):
        print(f"{'' if index else 'libraries':11}{name:13}{version or '-':11}{LIBRARIES[name]}")
    return 0


def _describe(cache):
    if not cache["directory"]:
        return f"off: {cache['problem'] or 'LINATTN_CACHE'}"
    used, bound = (f"{cache[name] / 2**20:.1f} MiB" for name in ("bytes", "max_bytes"))
    return f"{cache['directory']}: {cache['files']} kernels, {used} of {bound}"
