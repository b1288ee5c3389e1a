"""Shared by the Python tests: arrays, the oracle's tolerance, what messages say, a fake library."""

import hashlib
import os
import re

# Every core has a worker that compiles most of the time. Threads of OpenMP, and those of
# the kernels where there are no more than cores, would spin for the time between two calls.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LINATTN_NUM_THREADS", str((os.cpu_count() or 1) + 1))
# JAX's own operations run once for each shape: they take longer to optimise than to run.
XLA_FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ.setdefault("XLA_FLAGS", XLA_FLAGS)

import hypothesis.core  # noqa: E402
import numpy as np
import pytest
from hypothesis import settings

# Numbers of kernels are tested with the code that users run, by the tests marked `optimized`
# (with `optimized(3)`, by one of three), by GoogleTest and by lit. The others test the layers
# around kernels, and compile in half the time. A value of the caller's, or LINATTN_MATRIX=all,
# holds for all.
OPTIMIZATION = os.environ.get("LINATTN_OPTIMIZATION", "full" if os.environ.get("LINATTN_MATRIX") == "all" else "")

# Properties draw 25 examples by default. The seed is the same every time unless
# LINATTN_TEST_SEED says otherwise, `random` for instance; a report names it.
SEED = os.environ.get("LINATTN_TEST_SEED", "0")
SEED = int.from_bytes(os.urandom(4), "little") if SEED == "random" else int(SEED)
# Workers, and processes that tests start, draw the same.
os.environ["LINATTN_TEST_SEED"] = str(SEED)
EXAMPLES = int(os.environ.get("LINATTN_TEST_EXAMPLES", "25"))

# Kernels are compiled inside of examples; time says nothing about them.
settings.register_profile("linattn", deadline=None, database=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("linattn")
hypothesis.core.global_force_seed = SEED  # what --hypothesis-seed sets


def rank_of(point):
    """Orders the points of a matrix by chance, by another seed in another way."""
    text = f"{SEED} {point}" if SEED else str(point)
    return hashlib.sha256(text.encode()).digest()


def pytest_configure(config):
    config.addinivalue_line("markers", "sampled(of): the seed picks one of so many cases; LINATTN_MATRIX=all runs them all")
    config.addinivalue_line("markers", "optimized(of=1): the seed picks one of so many tests, whose kernels get all of LLVM's optimizations")


def is_optimized(item):
    marker = item.get_closest_marker("optimized")
    if marker is None:
        return False
    return int.from_bytes(rank_of(item.name)[:4], "big") % (marker.args or (1,))[0] == 0


def pytest_runtest_setup(item):
    """Before any fixture of the test compiles a kernel."""
    os.environ["LINATTN_OPTIMIZATION"] = OPTIMIZATION or ("full" if is_optimized(item) else "quick")


def pytest_collection_modifyitems(config, items):
    """Leaves out cases of tests that are marked as sampled."""
    if os.environ.get("LINATTN_MATRIX") == "all":
        return
    cases = {}
    for item in items:
        if item.get_closest_marker("sampled") and hasattr(item, "callspec"):
            cases.setdefault((item.path, item.originalname), []).append(item)
    left_out = set()
    for group in cases.values():
        kept = -(-len(group) // group[0].get_closest_marker("sampled").args[0])
        left_out.update(sorted(group, key=lambda item: rank_of(item.name))[kept:])
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))


def pytest_report_header(config):
    return f"seed of properties: LINATTN_TEST_SEED={SEED}, {EXAMPLES} examples each"


def pytest_terminal_summary(terminalreporter):
    if terminalreporter.stats.get("failed"):
        terminalreporter.line(f"seed of properties: LINATTN_TEST_SEED={SEED}")

# In messages: of generated modules, of bindings, of C++.
INTERNAL = re.compile(r"<(?!string)\w+>:|incompatible function|std::|bad_cast|nanobind|__\w+__\(")

# Why a scan cannot run in a form, by what is in its way.
REASONS = {
    ("state-tile", "rank-1"): "a rank-1 transition couples the rows of a state column",
    ("state-tile", "oja"): "a rank-1 transition couples the columns of a state row",
    ("chunk", "value decay"): "a decay per value column does not factor into products of chunks",
    ("chunk", "oja"): "its transition reads the rows of the state, chunks its columns",
    ("segments", "packed"): "its sequences are packed already and run in parallel",
    ("segments", "oja"): "its transition acts on the values' side of the state",
    ("segments", "input gate"): "the summary of a segment has no input gate",
    ("segments", "beta"): "a beta per value column gives every column a transition of its own",
}


def find_refusal(form, options):
    """The message that a scan with these keywords is refused with in this form; None if it runs."""
    kind = form.split(":")[0]
    obstacles = {
        "packed": options.get("cu_seqlens") is not None,
        "rank-1": options.get("update") in ("delta", "dplr"),
        "oja": options.get("update") == "oja",
        "value decay": options.get("value_decay") is not None,
        "input gate": options.get("input_gate") is not None,
        "beta": options.get("beta") is not None and options["beta"].ndim == 4,
    }
    reasons = (REASONS.get((kind, name)) for name, is_there in obstacles.items() if is_there)
    why = next(filter(None, reasons), None)
    return why and f"form: expected one that is legal here, but got {kind}: {why}"


def runs_or_refuses(call, form, options):
    """What `call` returns, or None where the form is not legal and `call` says exactly that."""
    refusal = find_refusal(form, options)
    if refusal is None:
        return call()
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        call()
    return None


# max|out − ref| / max|ref|, by dtype of the tokens. Of 16 bits it is what is left beyond half a
# unit in the last place of each number, by which the best rounding errs.
TOLERANCE = {"float64": 1e-12, "float32": 5e-6, "float16": 2.5e-3, "bfloat16": 5e-3}


# Below the smallest normal number nothing is relative any more.
SMALLEST = {"float16": 2.0**-14}
# Of a significand, behind the point.
FRACTION_BITS = {"float16": 10, "bfloat16": 7}


def rounding_of(x, dtype):
    """Half a unit in the last place of every number; 0 for dtypes of more than 16 bits."""
    if dtype not in FRACTION_BITS:
        return 0.0
    exponent = np.frexp(np.maximum(np.abs(x), SMALLEST.get(dtype, 0.0)))[1] - 1
    return np.ldexp(0.5, exponent - FRACTION_BITS[dtype])


def relative_error(out, ref, dtype=None, scale=0.0):
    out, ref = np.asarray(out, np.float64), np.asarray(ref, np.float64)
    assert out.shape == ref.shape
    if out.size == 0:
        return 0.0
    beyond = np.maximum(np.abs(out - ref) - rounding_of(out, dtype), 0.0)
    return beyond.max() / max(np.abs(ref).max(), scale, SMALLEST.get(dtype, 1e-30))


def assert_agrees(out, ref, dtype=None, scale=0.0):
    """Relative to the largest number of the reference, or to `scale` if that is larger."""
    dtype = dtype or str(np.asarray(out).dtype)
    error = relative_error(out, ref, dtype, scale)
    assert error <= TOLERANCE[dtype], error


@pytest.fixture(autouse=True)
def poisoned_heap():
    """Leaves NaN in freed memory, so that reads of unwritten memory show."""
    arrays = [np.full(size, np.nan) for size in (4, 16, 64, 256, 1024, 4096, 16000) for _ in range(8)]
    del arrays


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def qkv(rng):
    """q, k, v of shape [2, 19, 3, 16] and V = 24."""

    def make(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    return make(2, 19, 3, 16), make(2, 19, 3, 16), make(2, 19, 3, 24)


class Foreign:
    """The least that an array library must offer: a DLPack producer."""

    def __init__(self, array, device=(1, 0), versioned=True):
        self.array, self.device, self.versioned = array, device, versioned

    def __dlpack__(self, **kwargs):
        if kwargs and not self.versioned:
            raise TypeError("__dlpack__ takes no keyword arguments")
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.device
