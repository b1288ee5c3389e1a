"""Sequences on several processes: gloo processes on this machine, 2, 3 and 4 of them."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import distributed_worker as worker  # noqa: E402
import linattn  # noqa: E402
from linattn.distributed import SequenceParallel, _slots  # noqa: E402
from linattn.distributed._calls import bind  # noqa: E402

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


def test_outputs_in_place(ranks):
    """With `out=`, in the caller's tensor, of any strides."""
    found = entries(ranks, ["kept"])
    # Two ranks in both layouts.
    assert len(found) == 7 * 4 and all(value for _, value in found), found


def test_states_go_ahead_of_outputs(ranks):
    """For each rank behind, a panel; none where tokens read the state, as those of kda do."""
    assert [ranks[rank]["ahead"].tolist() for rank in range(3)] == [[2, 0, 0], [1, 1, 0], [0, 2, 0]]


B, T, H, K, V = 2, 37, 4, 8, 32
SUMS = {
    "gla": lambda draw: (linattn.gla, {"g": draw(B, T, H, K, sign=-1)}),
    "reverse": lambda draw: (linattn.gla, {"g": draw(B, T, H, K, sign=-1), "reverse": True}),
    "bonus": lambda draw: (linattn.rwkv6, {"w": draw(B, T, H, K, sign=-1), "u": draw(H, K)}),
    "normalized": lambda draw: (linattn.linear_attention, {}),
    "masked": lambda draw: (linattn.scan, {"decay": draw(B, T, H, sign=-1), "mask": draw(B, T) > 0}),
    "values": lambda draw: (linattn.scan, {"value_decay": draw(B, T, H, V, sign=-1), "scale": 0.5}),
    "running maximum": lambda draw: (linattn.scan, {"normalize": True, "feature_map": "exp"}),
}


@pytest.mark.parametrize("case", SUMS)
def test_a_state_without_outputs_has_the_same_bits(case):
    generator = torch.Generator().manual_seed(3)

    def draw(*shape, sign=0):
        x = torch.randn(*shape, generator=generator)
        return sign * x.abs() if sign else x

    q, k, v = draw(B, T, H, K), draw(B, T, H, K), draw(B, T, H, V)
    function, options = SUMS[case](draw)
    for form in ("token", "state-tile", "auto"):
        call = bind(function, (q, k, v), {**options, "form": form})
        initial = None
        for _ in range(2):  # from zeros, and from where that has ended
            _, expected = call.run(call.operands, initial, None)
            got = call.run_state(call.operands, initial, None)
            assert len(got) == len(expected)
            for mine, theirs in zip(got, expected):
                assert torch.equal(mine, theirs) if form != "auto" else torch.allclose(mine, theirs, rtol=1e-5, atol=1e-5)
            initial = [part.clone() for part in expected]


def test_a_state_without_outputs_beside_the_oracle():
    generator = np.random.default_rng(4)
    q, k = (generator.standard_normal((1, T, H, K), np.float32) for _ in range(2))
    v, g = generator.standard_normal((1, T, H, V), np.float32), -generator.random((1, T, H, K), np.float32)
    oracle = np.zeros((H, K, V))
    for t in range(T):
        oracle = np.exp(np.float64(g[0, t]))[..., None] * oracle + np.float64(k[0, t])[..., None] * v[0, t, :, None]
    (state,) = bind(linattn.gla, tuple(map(torch.from_numpy, (q, k, v, g))), {}).run_state(
        {name: torch.from_numpy(x) for name, x in zip(("q", "k", "v", "g"), (q, k, v, g))}, None, None
    )  # fmt: skip
    assert np.abs(state[0].numpy() - oracle).max() < 1e-5


def test_a_state_that_tokens_read_has_outputs():
    q = torch.randn(1, 5, 2, 8)
    gates = {"decay": -torch.rand(1, 5, 2), "beta": torch.rand(1, 5, 2)}
    for function, options in (
        (linattn.scan, {**gates, "update": "delta"}),
        (linattn.kda, {"g": -torch.rand(1, 5, 2, 8), "beta": gates["beta"]}),
    ):
        call = bind(function, (q, q, q), options)
        for _ in range(2):  # the second time without compiling
            with pytest.raises(linattn.UnsupportedError, match="state"):
                call.run_state(call.operands, None, None)
        assert call.run(call.operands, None, None)[0].shape == q.shape


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
    "out of dtype": "TypeError: out: expected dtype float32, but got float64",
    "out of device": "ValueError: out: expected a tensor on cpu, that of the operands, but got meta",
    "out of gradients": "UnsupportedError: out: expected None where gradients are recorded, but got a tensor",
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
    [
        ("lengths", "k: expected the sequence length of q, 14, but got 13"),
        ("heads", "expected "),
        ("out", "out: expected shape (2, 14, 8, 32), the tokens of this rank, but got (2, 13, 8, 32)"),
    ],
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
