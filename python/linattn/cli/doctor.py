"""``doctor``: checks that this installation compiles, computes right numbers and finds what it uses."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import warnings

import numpy as np

from .. import _linattn, reference
from .._recurrence._scan import scan
from . import info

__all__ = ["VARIABLES", "register"]

# The variables of the environment that a process reads.
VARIABLES = (
    "LINATTN_CACHE", "LINATTN_CACHE_DIR", "LINATTN_CACHE_SIZE", "LINATTN_COMPILE_SECONDS", "LINATTN_CPU",
    "LINATTN_CUDA_DRIVER", "LINATTN_MATH", "LINATTN_MATRIX_UNIT", "LINATTN_NUM_THREADS", "LINATTN_OPTIMIZATION",
    "LINATTN_PTXAS",
)  # fmt: skip
TOLERANCE = 3e-6


class _Warning(Exception):
    """A check that found something slow or odd, which is not wrong."""


class _Skipped(Exception):
    """A check of something that is not installed."""


def register(commands):
    parser = commands.add_parser("doctor", help="check the installation: kernels, cache, settings, libraries, GPU")
    parser.set_defaults(run=_run)


def _run(options):
    failures = 0
    for title, check in _CHECKS.items():
        try:
            mark, text = "ok", check()
        except _Skipped as reason:
            mark, text = "-", reason
        except _Warning as problem:
            mark, text = "warn", problem
        except Exception as error:  # the other checks go on
            mark, text, failures = "FAIL", error, failures + 1
        print(f"{mark:5}{title:14}{text}", flush=True)
    print(f"{failures} of {len(_CHECKS)} checks failed" if failures else "linattn works here")
    return 1 if failures else 0


def _check_settings():
    known = info.settings()
    for name in known:
        if name not in VARIABLES:
            near = difflib.get_close_matches(name, VARIABLES, 1)
            raise _Warning(f"{name} is set, but linattn does not read it" + (f"; {near[0]} it does" if near else ""))
    threads, usable = _linattn.get_num_threads(), len(os.sched_getaffinity(0))
    if threads > usable:
        raise _Warning(f"{threads} threads on {usable} CPUs take longer than {usable}; see LINATTN_NUM_THREADS")
    return ", ".join(known) or "defaults"


def _check_vectors():
    bits, _ = _linattn.vector_unit()
    if bits < 256:
        raise _Warning(f"vectors of {bits} bits; kernels are measured on AVX-512 and AVX2")
    return f"{_linattn.fma_kind()}, {bits} bits"


def _check_kernel():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 2, 100, 3, 16)).astype(np.float32)
    decay = -rng.random((2, 100, 3)).astype(np.float32)
    expected = reference.scan(q, k, v, decay=decay)
    error = np.abs(scan(q, k, v, decay=decay) - expected).max() / np.abs(expected).max()
    if not error <= TOLERANCE:
        raise ValueError(f"expected a scan within {TOLERANCE} of the float64 oracle, but its error is {error:.1e}")
    return f"a scan is within {error:.1e} of the float64 oracle"


def _check_cache():
    cache = _linattn.disk_cache()
    if cache["problem"]:
        raise _Warning(f"compiled code is not kept: {cache['problem']}")
    if not cache["directory"]:
        raise _Warning("LINATTN_CACHE switches it off: every process compiles its kernels again")
    if not os.access(cache["directory"], os.W_OK):
        raise _Warning(f"{cache['directory']} cannot be written")
    return cache["directory"]


def _tokens():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, 20, 2, 16)).astype(np.float32) for _ in range(3)]


def _check_torch():
    torch, arrays = _import("torch"), _tokens()
    result = scan(*map(torch.from_numpy, arrays))
    if not isinstance(result, torch.Tensor) or not np.array_equal(result.numpy(), scan(*arrays)):
        raise ValueError("expected tensors to give the bits that NumPy arrays give")
    found = f"{torch.__version__}: tensors give the bits of NumPy arrays"
    if _linattn.get_num_threads() > 1 and os.environ.get("OMP_WAIT_POLICY", "").lower() != "passive":
        found += "; its threads spin after each operation, OMP_WAIT_POLICY=passive lends their cores to linattn"
    return found


def _check_jax():
    jax, arrays = _import("jax"), _tokens()
    with jax.default_device(jax.devices("cpu")[0]):
        if not np.array_equal(jax.jit(lambda q, k, v: scan(q, k, v))(*arrays), scan(*arrays)):
            raise ValueError("expected compiled functions to give the bits that NumPy arrays give")
    return f"{jax.__version__}: compiled functions give the bits of NumPy arrays"


def _check_transformers():
    version = _import("transformers").__version__
    from ..transformers._known import VERSIONS

    if version.rpartition(".")[0] != VERSIONS:
        raise _Warning(
            f"{version}: functions were compared with those of {VERSIONS}; linattn.transformers.status() says which run here"
        )
    return f"{version}: the release whose functions are known"


def _check_gpu():
    driver = info.driver_of()
    if driver is None:
        raise _Skipped("no CUDA driver; kernels run on the CPU")
    return f"driver {driver}, ptxas {info.ptxas_of() or 'not found: the driver assembles'}"


def _import(name):
    if importlib.util.find_spec(name) is None:
        raise _Skipped("not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


_CHECKS = {
    "settings": _check_settings,
    "vectors": _check_vectors,
    "kernels": _check_kernel,
    "cache": _check_cache,
    "PyTorch": _check_torch,
    "JAX": _check_jax,
    "transformers": _check_transformers,
    "GPU": _check_gpu,
}
