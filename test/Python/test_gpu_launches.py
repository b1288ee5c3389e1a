"""Threads that public functions launch, and the route without kernels of its own, in the emulator."""

import os
import pathlib
import re
import sys

import numpy as np
import pytest

import linattn
from linattn import feature_maps as maps

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
import launches  # noqa: E402

DRIVER = launches.find_driver()
pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the package is not in its build")


@pytest.fixture(scope="module")
def recorder():
    launches.use_driver(DRIVER)
    return launches.Recorder(DRIVER)


SHOWN = (ROOT / "docs" / "generated" / "Launches.md").read_text().splitlines()


# By default `tools/docs.sh --check` calls all of them, and the table that it compares is checked below.
@pytest.mark.skipif(os.environ.get("LINATTN_MATRIX") != "all", reason="tools/docs.sh --check makes the table")
@pytest.mark.parametrize("dtypes", launches.DTYPES, ids="-".join)
def test_no_call_is_a_toy(recorder, dtypes):
    """Every kernel has a warp, the widest of a call as many threads as there is work; and the table says so."""
    slow, stale = [], []
    for function, options, call, work in launches.calls(*dtypes):
        recorded = recorder.record(call)
        most = max((blocks * threads for _, blocks, threads in recorded), default=0)
        if most < min(work, launches.ENOUGH) or any(threads < launches.WARP for _, _, threads in recorded):
            slow.append((function, options, work, recorded))
        row = launches.describe(function, options, dtypes, work, recorded)
        stale += [] if row in SHOWN else [row]
    assert not slow
    assert not stale, "docs/generated/Launches.md is out of date: run tools/docs.sh"


def test_every_public_function_is_there():
    shown = {function.partition(".")[0] for function, *_ in launches.calls()}
    elsewhere = set().union(*launches.ELSEWHERE.values())
    assert shown | elsewhere == set(linattn.__all__)
    assert shown & elsewhere == {"State", "StatePool"}
    # The table has a row for each of them in every dtype, and each row has the threads.
    rows = [line for line in SHOWN if line.startswith("| `")]
    calls = {(function, options) for function, options, *_ in launches.calls()}
    found = {tuple(cell.strip(" `") for cell in row.split("|")[1:4]) for row in rows}
    assert found == {(*call, ", ".join(dtypes)) for call in calls for dtypes in launches.DTYPES}
    for row in rows:
        work, kernels = int(row.split("|")[4]), re.findall(r"` (\d+) × (\d+)", row)
        assert max(int(blocks) * int(threads) for blocks, threads in kernels) >= min(work, launches.ENOUGH), row
        assert min(int(threads) for _, threads in kernels) >= launches.WARP, row


def test_blocks_are_launched(recorder):
    """The mask is NumPy's; where its blocks start is put where q is, here by hand."""
    q, numbers = launches.Device(np.zeros((2, 64, 4, 16), np.float32)), launches.Device(np.zeros(5, np.int64))
    plan = linattn._recurrence._plans.find(("grouped", "blocks", (), 16, True, None, None, None, None))
    recorded = recorder.record(lambda: plan((q, q, q, numbers, numbers), None, None, False, None))
    # Gathered keys and values of 80 tokens, then a thread for every query and head.
    assert [blocks * threads for _, blocks, threads in recorded] == [2 * 4 * 80 * 16] * 2 + [2 * 4 * 64]


def test_gradients_of_blocks_are_launched(recorder):
    """A thread for every query and head, and one for every key that is put side by side."""
    q, numbers = launches.Device(np.zeros((2, 4, 64, 16), np.float32)), launches.Device(np.zeros(5, np.int64))
    key = ("grouped", "blocks", (), 16, True, None, None, None, None)
    recorded = recorder.record(lambda: launches._differentiate(key, "float32", (q, q, q, numbers, numbers), q))
    assert max(blocks * threads for _, blocks, threads in recorded) >= 2 * 4 * 64
    assert min(threads for _, _, threads in recorded) >= launches.WARP


def test_elements_stay_on_the_gpu(recorder):
    """Seeds, lengths and offsets are read by kernels; nothing is copied to the host."""
    q, counts = launches.Device(np.zeros((1, 64, 2, 16), np.float32)), launches.Device(np.zeros(1, np.int32))
    for options in ({"dropout": 0.1, "seed": counts}, {"cache_seqlens": counts}):
        recorder.record(lambda options=options: linattn.attention(q, q, q, weights="softmax", **options))
        calls = recorder.cuda.fakeCudaCalls().decode()
        assert "cuLaunchKernel" in calls and "DtoH" not in calls, calls


def draw(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


# Sizes that no warp divides: 40 and 72 elements, 7 channels, 5 tokens.
EMULATED = {
    "rms": lambda r: (linattn.output_norm, [draw(r, 2, 5, 3, 40)], {"weight": draw(r, 40), "gate": draw(r, 2, 5, 3, 40)}),
    "layer": lambda r: (linattn.output_norm, [draw(r, 2, 5, 3, 72)], {"kind": "layer", "bias": draw(r, 72)}),
    "layer-f64": lambda r: (linattn.output_norm, [draw(r, 2, 5, 3, 40, dtype=np.float64)], {"kind": "layer"}),
    "conv-tokens": lambda r: (linattn.causal_conv1d, [draw(r, 2, 7, 11).swapaxes(1, 2), draw(r, 7, 4), draw(r, 7)], {"activation": "silu"}),
    "conv-channels": lambda r: (linattn.causal_conv1d, [draw(r, 2, 11, 7), draw(r, 7, 4)], {}),
    "selective_scan": lambda r: (
        linattn.selective_scan,
        [draw(r, 2, 7, 5), draw(r, 2, 7, 5), -abs(draw(r, 7, 16)), draw(r, 2, 16, 5), draw(r, 2, 16, 5)],
        {"z": draw(r, 2, 7, 5), "delta_softplus": True},
    ),
    "mlstm": lambda r: (linattn.mlstm, [draw(r, 2, 5, 2, 8) for _ in range(3)] + [draw(r, 2, 5, 2) for _ in range(2)], {}),
    "exp": lambda r: (linattn.attention, [draw(r, 2, 5, 2, 8) for _ in range(3)], {"causal": True, "feature_map": "exp"}),
    "f64": lambda r: (linattn.attention, [draw(r, 2, 5, 2, 8, dtype=np.float64) for _ in range(3)], {"causal": True}),
    "not-causal-f64": lambda r: (linattn.attention, [draw(r, 2, 5, 2, 8, dtype=np.float64) for _ in range(3)], {}),
    "region": lambda r: (linattn.attention, [draw(r, 2, 5, 2, 8) for _ in range(3)], {"causal": True, "feature_map": lambda x: x * x + 1}),
    **{
        name: lambda r, phi=phi: (linattn.attention, [draw(r, 1, 5, 2, 8) for _ in range(3)], {"causal": True, "feature_map": phi(r), "normalize": False})
        for name, phi in {
            "softmax": lambda r: maps.softmax(), "l2norm": lambda r: maps.l2norm(), "dpfp": lambda r: maps.dpfp(),
            "favor": lambda r: maps.favor(draw(r, 6, 8)), "hedgehog": lambda r: maps.hedgehog(draw(r, 8, 8)),
            "taylor": lambda r: maps.taylor(),
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("case", EMULATED)
def test_the_plain_route_in_the_emulator(case):
    """No races, and the numbers of plain loops."""
    function, operands, options = EMULATED[case](np.random.default_rng(0))
    got, expected = (function(*operands, **options, target=target) for target in ("nvvm-emulated", "reference"))
    tolerance = 1e-12 if expected.dtype == np.float64 else 2e-6
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()


def test_lanes_give_the_same_bits_beside_any_others():
    """A row's sum does not depend on the other rows, of which the blocks' sizes are made."""
    x = draw(np.random.default_rng(0), 1, 1200, 1, 33)
    whole = linattn.output_norm(x, target="nvvm-emulated")
    assert (linattn.output_norm(x[:, :3], target="nvvm-emulated") == whole[:, :3]).all()
