"""linattn-bench: a program, run on sizes that take no time."""

import csv
import json
import os

import pytest
from conftest import rank_of

import linattn
from linattn import bench
from linattn.bench import cases, peers, report, timing

QUICK = ["--d=16", "--t=32", "--heads=2", "--repetitions=2", "--progress=off"]


def test_cases(tmp_path, capsys):
    """A third of the cases, drawn by the seed, and those that others are timed beside; all under LINATTN_MATRIX=all."""
    path = tmp_path / "records.json"
    beside = {"linear", "short", "conv", "conv-channels-first", *cases.GROUPS["gates"][:1]}
    third = sorted(cases.CASES, key=rank_of)[: len(cases.CASES) // 3]
    every = os.environ.get("LINATTN_MATRIX") == "all"
    names = [name for name in cases.CASES if every or name in beside or name in third]
    case = "all" if every else ",".join(names)
    assert bench.main([f"--case={case}", *QUICK, f"--json={path}"]) == 0
    records = json.loads(path.read_text())
    # Some cases are timed beside other ways to run them, or a copy of the same bytes.
    ours = [record for record in records if record["implementation"] == "linattn"]
    assert [record["case"] for record in ours] == names
    assert {record["implementation"] for record in records if record["case"] == "short"} > {"linattn", "quadratic"}
    copies = [record["case"] for record in records if record["implementation"] == "copy"]
    assert copies == ["conv", "conv-channels-first"]
    for record in ours:
        assert set(report.KEYS) == set(record)
        assert record["implementation"] == "linattn"
        assert record["ms"] > 0 and record["ms_min"] <= record["ms"] <= record["ms_max"]
        assert record["share"] == pytest.approx(record["gflops"] / record["fma_gflops"])
        # The figure belongs to a right result.
        assert record["max_rel_error"] < 5e-6, record["case"]
        # Closed gates have open ones beside them.
        assert (record["over_open"] is not None) == (record["case"] in cases.GROUPS["gates"])
        assert record["over_open"] is None or record["over_open"] > 0
    out = capsys.readouterr().out
    assert "| linear | linattn | 16 | 32 |" in out
    assert "conv f32 T=32 threads=1: " in out and " of a copy of the same bytes" in out


def test_flops_are_those_of_the_recurrence():
    work = cases.make("linear", cases.Sizes(d=16, t=32, heads=2, batch=3))
    assert work.flops == 4 * 3 * 32 * 2 * 16 * 16
    assert work.bytes == 4 * 3 * 32 * 2 * 16 * 4  # q, k, v and o once
    decode = cases.make("decode", cases.Sizes(d=16, t=32, heads=2))
    assert decode.sizes.t == 1 and decode.bytes == 2 * decode.footprint == 2 * 2 * 16 * 16 * 4


def test_grid_and_files(tmp_path):
    table, plots = tmp_path / "records.csv", tmp_path / "plots"
    options = ["--case=linear,softmax", "--d=8,16", "--t=16,32", "--heads=1", "--repetitions=1", "--progress=off"]
    bench.main([*options, "--no-compare", f"--csv={table}", f"--plots={plots}"])
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["case"], row["d"], row["t"]) for row in rows] == [
        (case, d, t) for case in ("linear", "softmax") for d in ("8", "16") for t in ("16", "32")
    ]
    assert all(row["max_rel_error"] == "" for row in rows)
    assert sorted(path.name for path in plots.iterdir()) == ["roofline.svg", "share.svg", "speedup.svg", "time.svg"]


def test_groups_and_their_plots(tmp_path):
    path = tmp_path / "records.json"
    options = ["--d=8", "--heads=1", "--t=16,32", "--repetitions=1", "--progress=off", "--no-compare"]
    bench.main(["--case=decoding,maps", *options, f"--json={path}", f"--plots={tmp_path}"])
    records = json.loads(path.read_text())
    assert len(records) == 2 * len(cases.GROUPS["decoding"] + cases.GROUPS["maps"])
    # A token of a recurrence costs the same everywhere; softmax reads all keys.
    assert {r["t"] for r in records if r["case"] == "decode"} == {1}
    assert {r["t"] for r in records if r["case"] == "decode-softmax"} == {16, 32}
    assert {path.name for path in tmp_path.glob("*.svg")} >= {"decode.svg", "maps.svg"}


def test_peers_take_turns_and_are_compared(monkeypatch):
    """A peer with a wrong result shows by its error, not by its time."""
    made = []

    def peer(case, arrays, threads):
        made.append((case, threads))
        return lambda: 2 * cases.make(case, cases.Sizes(16, 32, 2)).run(1, "auto").swapaxes(1, 2)

    monkeypatch.setitem(peers.PEERS, "twice", peer)
    records = bench.run("linear", cases.Sizes(16, 32, 2), peer_names=["twice"], repetitions=2)
    assert made == [("linear", 1)]
    assert [record["implementation"] for record in records] == ["linattn", "twice"]
    assert records[1]["max_rel_error"] == pytest.approx(1.0)


def test_missing_and_failing_peers():
    def missing(case, arrays, threads):
        raise ModuleNotFoundError("no such library")

    def failing(case, arrays, threads):
        raise RuntimeError("cannot")

    arrays = cases.make("linear", cases.Sizes(16, 32, 2)).arrays
    with pytest.warns(UserWarning, match="failing cannot run linear: RuntimeError: cannot"):
        assert peers.available({"missing": missing, "failing": failing}, "linear", arrays, 1) == {}


def test_a_noisy_series_is_run_again(monkeypatch):
    ceilings = iter([100, 50, 100, 100, 99, 100])
    monkeypatch.setattr(timing._linattn, "fma_gflops", lambda threads: next(ceilings))
    series = timing.measure({"a": lambda: None}, repetitions=1, threads=1)
    assert series.gflops == [100, 99, 100] and series.relative_range == pytest.approx(0.01)


def test_gradients_beside_the_fastest_other(tmp_path):
    """Ratios are those of the least times; the forward pass is not a peer."""
    times = {"linattn": (9, 6), "forward alone": (2.5, 2), "slow": (90, 80), "quick": (25, 24)}
    records = [
        dict.fromkeys(report.KEYS) | {
            "case": "train-linear", "implementation": name, "d": 64, "t": 4096, "threads": 1, "ms": ms, "ms_min": least, "gflops": 1, "fma_gflops": 2, "share": 0.5
        }
        for name, (ms, least) in times.items()
    ]  # fmt: skip
    assert report.training_table(records).splitlines()[2] == "| train-linear | 64 | 4096 | 1 | 2 | 6 | 2 | quick | 24 | 4 |"
    assert report.training_table(records[:2]).splitlines()[2].endswith("| 2 | – | – | – |")
    assert report.training_table([records[0] | {"case": "linear"}]) == ""
    assert "training.svg" in {path.name for path in report.plot(tmp_path, records)}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--case=linear,other"], "expected some of linear, retnet"),
        (["--d=0"], "expected positive integers with commas between them, but got 0"),
        (["--t=many"], "but got many"),
        (["--peers=nobody"], "expected some of torch"),
        (["--repetitions=0"], "expected a positive integer, but got 0"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        bench.main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err


def test_ceilings():
    """Caches are faster than memory, and both move bytes at all."""
    assert linattn._linattn.update_gbytes(1 << 14) > linattn._linattn.update_gbytes(1 << 28) > 0.1
    assert linattn._linattn.copy_gbytes(1 << 26) > 0.1
    assert linattn._linattn.fma_gflops() > 0.1


def test_calibrate(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench.calibrate, "LONG", [(16, 16, 1), (32, 16, 1)])
    monkeypatch.setattr(bench.calibrate, "SHORT", [(16, 4, 1)])
    path = tmp_path / "records.json"
    options = ["--calibrate", "--case=linear,delta", "--d=16,32", "--repetitions=1", "--progress=off"]
    assert bench.main([*options, f"--json={path}"]) == 0
    out = capsys.readouterr().out
    assert "/* StateTile */ {" in out and "| delta | 32 | 16 |" in out
    records = json.loads(path.read_text())
    assert {record["form"] for record in records} == set(bench.calibrate.FORMS)
    assert all(record["cost"] > 0 for record in records)
    # The same fit from the records.
    assert bench.main(["--calibrate", f"--records={path}", "--progress=off"]) == 0
    assert capsys.readouterr().out == out
    with pytest.raises(SystemExit):
        bench.main(["--calibrate", "--case=softmax"])


def test_calibration_finds_the_constants_it_was_given():
    truth = {"token": [1.5, 2, 3, 0, 4, 50, 0], "state-tile": [1, 5, 9, 0, 10, 0, 0], "chunk": [0.7, 10, 11, 5, 2, 60, 0]}
    records = [
        {"case": case, "d": d, "t": t, "batch": 1, "form": form}
        for case in ("linear", "gate", "delta", "dplr") for d, t, _ in bench.calibrate.LONG + bench.calibrate.SHORT
        for form in bench.calibrate._forms(case)
    ]  # fmt: skip
    for record in records:
        record["cost"] = bench.calibrate._fitted(truth, record)
    fitted = bench.calibrate.fit(records)
    for record in records:
        assert bench.calibrate._fitted(fitted, record) == pytest.approx(record["cost"], rel=1e-3)


def test_layers(monkeypatch, capsys, tmp_path):
    """A small layer, untouched and with linattn, by turns."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from linattn.bench import layers

    small = dict(
        hidden_size=64, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
    )  # fmt: skip
    model = dict(small, num_attention_heads=2, num_key_value_heads=1, head_dim=16, intermediate_size=32, vocab_size=32)
    known = {
        "layer-small": layers.Layer(lambda: layers._qwen3_next(**small), 64, 20, "small"),
        "layer-steps": layers.Layer(lambda: layers._qwen3_5(**model), 64, 6, "small steps", True),
    }
    monkeypatch.setattr(layers, "LAYERS", known)
    path = tmp_path / "layers.json"
    arguments = ["--case=layer-small,layer-steps", "--dtype=f32", "--repetitions=2", "--cpu-time", "--progress=off", f"--json={path}"]
    assert bench.main(arguments) == 0
    records = json.loads(path.read_text())
    assert [record["implementation"] for record in records] == ["transformers", "linattn"] * 2
    for record in records[1::2]:
        assert record["ratio"] > 0 and record["max_rel_error"] < 1e-4
        assert set(record["parts"]) == {"recurrence", "convolution", "norm", "linear", "other"}
        assert min(record["parts"].values()) >= 0 and record["parts"]["recurrence"] > 0 and record["parts"]["convolution"] > 0
    assert "| layer-small | 20 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        bench.main(["--case=layer-small,linear"])
    assert "expected layers alone, but got linear beside them" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench.main(["--case=layer-small", "--cpu-time", "--threads=2"])
    assert "expected it with --threads=1, but got [2]" in capsys.readouterr().err
