"""Sequences on several processes: gloo processes on this machine, 2, 3 and 4 of them."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import distributed_worker as worker  # noqa: E402
from linattn.distributed import SequenceParallel, _slots  # noqa: E402

# Both sums are right to the rounding of float32; their order differs.
ROUNDING = 2e-6


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """The notes of four processes; the first one dies at the end, on purpose."""
    folder, count = tmp_path_factory.mktemp("ranks"), 4
    started = [
        subprocess.Popen(
            [sys.executable, pathlib.Path(worker.__file__), str(rank), str(count), folder],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=600)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [7, 0, 0, 0], "\n".join(said)
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(count)]


def entries(results, cases):
    """Name and value of what the ranks have noted for cases of these names."""
    return [(name, value) for result in results for name, value in result.items() if name.split()[0] in cases]


def test_bits_do_not_depend_on_processes(ranks):
    found = [
        (name, value)
        for name, value in entries(ranks, worker.CASES)
        if name.split()[1] in ("token", "state-tile")
    ]
    # Groups of 2 in both layouts, of 3 and of 4: 2 + 2 + 3 + 4 ranks.
    assert len(found) == 7 * 11
    assert all(found[1] for found in found), found


def test_gradients_and_states(ranks):
    found = [
        (name, value)
        for name, value in entries(ranks, worker.CASES)
        if name.split()[1] in ("contiguous", "zigzag")
    ]
    assert {name.rsplit(" ", 1)[0] for name, _ in found} == {
        f"{case} {layout}"
        for case in ("linear", "gla-reverse", "kda")
        for layout in ("contiguous", "contiguous packed", "zigzag", "zigzag packed")
    }
    assert all(error < ROUNDING for _, error in found), found


@pytest.mark.parametrize("case", ["plain", "packed", "dilated"])
def test_short_convolution(ranks, case):
    found = entries(ranks, [case])
    assert len(found) == 5 * (1 if case == "packed" else 4)  # gradients of packed sequences have no kernel
    for name, value in found:
        assert value if name.endswith("same") else value < ROUNDING, name


@pytest.mark.parametrize(("case", "noted"), [("causal", 9), ("full", 5), ("softmax-packed", 9)])
def test_softmax(ranks, case, noted):
    found = entries(ranks, [case])
    assert len(found) == noted * 4
    assert all(error < ROUNDING for _, error in found), found


def test_families(ranks):
    found = entries(ranks, ["family"])
    assert len(found) == 6
    assert all(error < ROUNDING for _, error in found), found


def test_traffic(ranks):
    numbers = worker.B * worker.H * (worker.K * worker.V + worker.K)
    assert ranks[0]["forward"].tolist() == [numbers, 2]  # the first rank sends its state
    assert ranks[1]["forward"].tolist() == [0, 0]
    assert ranks[0]["backward"].tolist() == [numbers, 2]
    assert ranks[1]["backward"].tolist() == [numbers, 2]  # and the second its gradient


EXPECTED = {
    "shapes": "expected the same call on every rank, but got v [2, T, 4, 32] float32 on rank 0 and "
    "v [2, T, 4, 16] float32 on rank 1",
    "functions": "got function retnet on rank 0 and function linear_attention on rank 1",
    "gradients": "got gradients not recorded on rank 0 and gradients recorded on rank 1",
    "offsets": f"cu_seqlens: expected to end at {worker.T}, the tokens of all ranks, but got {worker.T + 1}",
    "in place": "UnsupportedError: inplace: expected it only on one process",
    "function": "TypeError: function: expected linattn.scan or a named family of linattn, but got add",
    "array": "TypeError: q: expected a tensor of PyTorch, but got ndarray",
    "panels": "ValueError: panels: expected one of 1, 2, 4 for gla, but got 3",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_errors(ranks, name):
    assert EXPECTED[name] in str(ranks[0][name])
    assert str(ranks[0][name]) == str(ranks[1][name])


@pytest.mark.parametrize(
    ("name", "message"),
    [("lengths", "k: expected the sequence length of q, 14, but got 13"), ("heads", "expected ")],
)
def test_errors_of_one_rank(ranks, name, message):
    assert message in str(ranks[1][name]) and str(ranks[1][name]).startswith("ValueError")
    assert str(ranks[0][name]).startswith("PeerError: retnet: rank 1 refused its arguments: ValueError: ")
    assert message in str(ranks[0][name])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("failure", "rank 0 failed before it could send: the state of panel 0"),
        ("silence", "rank 1 lost its group while waiting for rank 0: the state of panel 0"),
        ("death", "rank 1 lost its group while waiting for rank 0: the state of panel 0"),
    ],
)
def test_faults_of_another_rank(ranks, fault, message):
    assert str(ranks[1][fault]).startswith(f"PeerError: {message}")


def test_own_failure(ranks):
    assert str(ranks[0]["failure"]) == "MemoryError: expected by the test"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
def test_pieces(layout, reverse):
    """Every token is in one piece, in the row of its sequence, and states cross where it goes on."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        ranks = int(rng.integers(1, 5))
        lengths = [int(x) for x in rng.integers(1, 9, ranks)]
        lengths = lengths if layout == "contiguous" else [2 * lengths[0]] * ranks
        total = sum(lengths)
        offsets = (0, *sorted(int(x) for x in rng.integers(0, total + 1, int(rng.integers(0, 6)))), total)
        slots = _slots.slots_of(layout, lengths, reverse)
        pieces = _slots.cut(slots, offsets, 1, reverse)
        seen, rows = {}, []
        for slot, piece in zip(slots, pieces):
            assert piece.offsets[0] == 0 and piece.offsets[-1] == slot.length
            for row, begin, end in zip(piece.rows, piece.offsets, piece.offsets[1:]):
                seen.update((slot.start + token, row) for token in range(begin, end))
            rows += [row for index, row in enumerate(piece.rows) if index not in piece.enters]
        expected = {token: row for row, ends in enumerate(zip(offsets, offsets[1:])) for token in range(*ends)}
        assert seen == expected
        # Each sequence begins once, empty ones as well.
        assert sorted(rows) == list(range(len(offsets) - 1))
        for first, second in zip(pieces, pieces[1:]):
            assert [first.rows[row] for row in first.leaves] == [second.rows[row] for row in second.enters]
        assert not pieces[0].enters and not pieces[-1].leaves


def test_without_a_group():
    with pytest.raises(ValueError, match="group: expected an initialized process group"):
        SequenceParallel()


@pytest.mark.parametrize(
    ("option", "error"),
    [({"layout": "striped"}, ValueError), ({"panels": 1.5}, TypeError), ({"timeout": "1"}, TypeError)],
)
def test_options(option, error):
    with pytest.raises(error, match=next(iter(option))):
        SequenceParallel(**option)
