"""linattn-bench: measures the kernels beside the machine's own ceilings.

Every figure is the median of repeated calls, taken in turn with those of the
peers that are installed and of an FMA loop, in one process and on the same
inputs. See `python -m linattn.bench --help`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

import numpy as np

from .. import _linattn
from . import calibrate, layers, peers, report, training_peers
from .cases import CASES, GROUPS, make
from .timing import measure
from .work import DTYPES, Sizes

__all__ = ["main", "run"]

# More tokens than this are not compared: the oracle walks them one by one.
COMPARED_TOKENS = 1024
COPY_BYTES = 256 << 20
# Those of gradients answer to cases of theirs alone.
_PEERS = {**peers.PEERS, **training_peers.PEERS}
_GROUPS = {**GROUPS, "layers": list(layers.LAYERS), "all": list({**CASES, **calibrate.CASES})}


def _names(known, groups=None):
    def parse(text):
        named = {"all": list(known), **(groups or {})}
        names = [name for part in text.split(",") for name in named.get(part, [part])]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}, but got {name}")
        return names

    return parse


def _numbers(text):
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"expected positive integers with commas between them, but got {text}")
    return numbers


def _parser():
    parser = argparse.ArgumentParser(prog="linattn-bench", description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1])
    parser.add_argument("--case", type=_names({**CASES, **calibrate.CASES, **layers.LAYERS}, _GROUPS), default=None, help=f"all, or some of {', '.join(CASES)}, {', '.join(layers.LAYERS)}, and the groups {', '.join([*GROUPS, 'layers'])} (default: linear)")
    parser.add_argument("--d", type=_numbers, default=None, help="head sizes (default: 64,128)")
    parser.add_argument("--t", type=_numbers, default=[4096], help="numbers of tokens (default: 4096)")
    parser.add_argument("--heads", type=_numbers, default=[8], help="numbers of heads (default: 8)")
    parser.add_argument("--batch", type=_numbers, default=[1], help="batch sizes (default: 1)")
    parser.add_argument("--threads", type=_numbers, default=[1], help="numbers of threads (default: 1)")
    parser.add_argument("--dtype", type=_names(DTYPES), default=["f32"], help=f"all, or some of {', '.join(DTYPES)} (layers: bf16 is what models have)")
    parser.add_argument("--form", default="auto", help="the form to request (default: auto)")
    parser.add_argument("--peers", default="none", help="all that are installed, none (default), or some of " + ", ".join(_PEERS))
    parser.add_argument("--repetitions", type=int, default=15, help="calls per figure, at least (default: 15)")
    parser.add_argument("--cpu-time", action="store_true", help="on one thread: CPU time instead of the wall's, for a machine that is busy")
    parser.add_argument("--no-compare", action="store_true", help="do not compare the results with the oracle")
    parser.add_argument("--json", metavar="FILE", help="write the records as JSON")
    parser.add_argument("--csv", metavar="FILE", help="write the records as CSV")
    parser.add_argument("--plots", metavar="FOLDER", help="write plots as SVG")
    parser.add_argument("--calibrate", action="store_true", help="fit the constants of the model that chooses forms; takes --case and --d, writes its records with --json")
    parser.add_argument("--records", metavar="FILES", default="", help="with --calibrate: fit records of earlier sweeps, files with commas between them")
    parser.add_argument("--progress", choices=("auto", "on", "off"), default="auto", help="progress on standard error (default: on a terminal)")
    return parser


def _peers_of(case):
    return training_peers.PEERS if case.startswith("train-") else peers.PEERS


def _error(out, ref):
    out, ref = np.asarray(out, np.float64), np.asarray(ref, np.float64)
    return float(np.abs(out - ref).max() / max(np.abs(ref).max(), 1e-30))


def _compare(case, sizes, threads, form):
    """max|out − ref| / max|ref| of ours, on no more tokens than the oracle can walk."""
    short = Sizes(sizes.d, min(sizes.t, COMPARED_TOKENS), sizes.heads, sizes.batch, sizes.dtype, sizes.seed)
    work = make(case, short)
    return _error(np.asarray(work.run(threads, form)).astype(np.float64), work.reference())


def run(case, sizes, threads=1, form="auto", peer_names=(), repetitions=15, compare=True, copy_gbytes=None, clock=time.perf_counter):
    """The records of one case, timed by `clock`: ours first, then the peers'.

    Peers are compared with ours on the very inputs that are timed.
    """
    work = make(case, sizes)
    others = peers.available(_peers_of(case), case, work.arrays, threads, peer_names) if peer_names else {}
    beside = {name: lambda call=call: call(threads) for name, call in work.beside.items()}
    calls = {"linattn": lambda: work.run(threads, form), **beside, **others}
    errors = {"linattn": _compare(case, sizes, threads, form) if compare else None}
    if compare and others:
        ours = np.asarray(work.run(threads, form), np.float64).swapaxes(1, 2)
        errors |= {name: _error(call(), ours) for name, call in others.items()}
    turns = dict(calls)
    if work.run_open:
        turns["open"] = lambda: work.run_open(threads, form)
    series = measure(turns, repetitions, threads, work.footprint, alike=work.run_open is not None, clock=clock)
    records = []
    for name in calls:
        seconds, portion = series.median(name), work.portion.get(name, 1.0)
        records.append({
            "case": case, "implementation": name, "d": sizes.d, "t": work.sizes.t, "heads": sizes.heads,
            "batch": sizes.batch, "threads": threads, "dtype": sizes.dtype,
            "form": form if name == "linattn" else None, "ms": 1e3 * seconds,
            "ms_min": 1e3 * min(series.seconds[name]), "ms_max": 1e3 * max(series.seconds[name]),
            "gflops": portion * work.flops / seconds / 1e9, "fma_gflops": series.ceiling,
            "fma_range": series.relative_range, "share": portion * work.flops / seconds / 1e9 / series.ceiling,
            "gbytes_per_s": portion * work.bytes / seconds / 1e9, "copy_gbytes_per_s": copy_gbytes,
            "update_gbytes_per_s": series.update,
            "update_share": work.bytes / seconds / 1e9 / series.update if series.update else None,
            "over_open": series.over(name, "open") if work.run_open else None,
            "max_rel_error": errors.get(name),
        })  # fmt: skip
    return records


def same_work(x, y):
    return all(x[key] == y[key] for key in ("case", "d", "t", "heads", "batch", "threads", "dtype"))


def _progress(mode):
    """Something to say where a run is: `advance(text)`, and how to end it."""
    if mode == "off" or mode == "auto" and not sys.stderr.isatty():
        return lambda text, done, total: None
    return lambda text, done, total: print(f"\r[{done}/{total}] {text:60}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _run_layers(options, show):
    """Layers have the sizes of their models."""
    if others := [case for case in options.case if case not in layers.LAYERS]:
        _parser().error(f"argument --case: expected layers alone, but got {', '.join(others)} beside them")
    if why := layers.missing():
        _parser().error(f"argument --case: {why}")
    clock = time.thread_time if options.cpu_time else time.perf_counter
    grid = list(itertools.product(options.case, options.dtype, options.threads, options.batch))
    records = []
    for done, (case, dtype, threads, batch) in enumerate(grid):
        show(f"{case} {dtype} B={batch} threads={threads}", done, len(grid))
        records += layers.run(case, dtype, threads, options.repetitions, batch, clock)
    show("done", len(grid), len(grid))
    print(f"medians of {options.repetitions} turns, the untouched layer and linattn's by turns, {'time of the thread' if options.cpu_time else 'wall time'}; parts from calls of their own")
    print(layers.table(records))
    if options.json:
        report.write_json(options.json, records)
    return 0


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        names = {"all": list(_PEERS), "none": []}.get(options.peers) or ([] if options.peers == "none" else _names(_PEERS)(options.peers))
    except argparse.ArgumentTypeError as error:
        _parser().error(f"argument --peers: {error}")
    if options.cpu_time and options.threads != [1]:
        _parser().error(f"argument --cpu-time: expected it with --threads=1, but got {options.threads}")
    if options.repetitions < 1:
        _parser().error(f"argument --repetitions: expected a positive integer, but got {options.repetitions}")
    show = _progress(options.progress)
    if options.calibrate:
        cases = options.case or list(calibrate.CASES)
        if unknown := [case for case in cases if case not in calibrate.CASES]:
            _parser().error(f"argument --calibrate: expected cases among {', '.join(calibrate.CASES)}, but got {', '.join(unknown)}")
        read = options.records.split(",") if options.records else []
        calibrate.calibrate(cases, options.d or [32, 64, 96, 128, 256], options.repetitions, show, read, options.json)
        return 0
    options.case, options.d = options.case or ["linear"], options.d or [64, 128]
    if any(case in layers.LAYERS for case in options.case):
        return _run_layers(options, show)
    grid = list(itertools.product(options.case, options.dtype, options.threads, options.batch, options.heads, options.d, options.t))
    copies = {threads: _linattn.copy_gbytes(COPY_BYTES, threads) for threads in set(options.threads)}
    records = []
    for done, (case, dtype, threads, batch, heads, d, t) in enumerate(grid):
        show(f"{case} {dtype} D={d} T={t} H={heads} B={batch} threads={threads}", done, len(grid))
        records += run(
            case, Sizes(d, t, heads, batch, dtype), threads, options.form, names, options.repetitions,
            not options.no_compare, copies[threads],
            # Of the whole process: libraries keep threads of their own.
            time.process_time if options.cpu_time else time.perf_counter,
        )  # fmt: skip
    show("done", len(grid), len(grid))
    print(f"FMA loop: {_linattn.fma_kind()}; medians of {options.repetitions} turns; flops counted 4·T·H·D² per sequence")
    print(report.table(records))
    if training_table := report.training_table(records):
        print(f"forward and backward pass, the least of the turns, {'CPU' if options.cpu_time else 'wall'} time")
        print(training_table)
    for ours in records:
        for copy in records:
            if copy["implementation"] == "copy" and ours["implementation"] == "linattn" and same_work(ours, copy):
                print(f"{ours['case']} {ours['dtype']} T={ours['t']} threads={ours['threads']}: {ours['ms_min'] / copy['ms_min']:.2f} of a copy of the same bytes (least times; medians {ours['ms'] / copy['ms']:.2f})")
    if options.json:
        report.write_json(options.json, records)
    if options.csv:
        report.write_csv(options.csv, records)
    if options.plots:
        for path in report.plot(options.plots, records):
            print(f"wrote {path}")
    return 0
