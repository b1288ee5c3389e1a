"""One long sequence on several processes: what it takes, and that the bits are the same.

    python examples/sequence_parallel.py --processes=2 --tokens=65536

Every process has one thread. Processes and the single process take turns; times are the
least of the repetitions, the median ratio is that of their medians. CPU time is what a process computes, without its waits: on a machine
whose cores are busy it shows what the ratio would be. With --keep outputs go to memory that all repetitions share; without it, as with
gradients, each gets pages that the system clears first.
"""

import argparse
import json
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

import linattn
from linattn.distributed import SequenceParallel

FAMILIES = {
    "linear": (linattn.linear_attention, ()),
    "gla": (linattn.gla, ("g",)),
    "gated-delta": (linattn.gated_delta_rule, ("g", "beta")),
    "kda": (linattn.kda, ("g", "beta")),
}


def arrays_of(family, tokens, heads, size):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, tokens, heads, size, generator=generator) for _ in range(3))
    shape = (1, tokens, heads) if family == "gated-delta" else (1, tokens, heads, size)
    g = torch.nn.functional.logsigmoid(torch.randn(shape, generator=generator)) / 16
    beta = torch.rand(1, tokens, heads, generator=generator)
    gates = {"g": g, "beta": beta}
    return [q, torch.nn.functional.normalize(k, dim=-1), v, *(gates[name] for name in FAMILIES[family][1])]


def seconds(action):
    """Time, CPU time, and the result."""
    start, computing = time.perf_counter(), time.process_time()
    result = action()
    return time.perf_counter() - start, time.process_time() - computing, result


def measure(rank, path, options):
    linattn.set_num_threads(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=options.processes)
    function = FAMILIES[options.family][0]
    whole = arrays_of(options.family, options.tokens, options.heads, options.size)
    parallel = SequenceParallel(layout=options.layout, panels=options.panels)
    mine = [parallel.split(x) for x in whole]
    if options.backward:
        whole, mine = ([x.requires_grad_() for x in arrays] for arrays in (whole, mine))
    kept = {id(arrays): torch.zeros_like(arrays[2]) if options.keep else None for arrays in (whole, mine)}

    def call(run, arrays):
        o = run(function, *arrays, form=options.form, out=kept[id(arrays)])
        if options.backward:
            o.sum().backward()
            for x in arrays:
                x.grad = None
        return o.detach()

    def alone(function, *arrays, **options):
        return function(*arrays, **options)

    times, same = {name: [] for name in ("one", "all", "CPU of one", "CPU of a rank")}, True
    for turn in range(options.repeats + 1):  # the first one compiles
        expected = torch.empty_like(whole[2])
        if rank == 0:
            time_one, cpu_one, expected = seconds(lambda: call(alone, whole))
        dist.barrier()
        sent = parallel.sent
        time_all, cpu_rank, o = seconds(lambda: (call(parallel, mine), dist.barrier())[0])
        sent = parallel.sent - sent
        dist.broadcast(expected, 0)
        same = same and torch.equal(o, parallel.split(expected))
        most = torch.tensor([cpu_rank], dtype=torch.float64)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        if turn and rank == 0:
            for values, value in zip(times.values(), (time_one, time_all, cpu_one, most.item())):
                values.append(value)
    if rank == 0:
        best = {name: min(values) for name, values in times.items()}
        median = {name: statistics.median(values) for name, values in times.items()}
        record = {
            "family": options.family, "form": options.form, "backward": options.backward, "layout": options.layout,
            "processes": options.processes, "outputs kept": options.keep, "tokens": options.tokens, "heads": options.heads, "size": options.size,
            "seconds of one": best["one"], "seconds of all": best["all"], "ratio": best["one"] / best["all"],
            "median ratio": median["one"] / median["all"],
            "CPU seconds of one": best["CPU of one"], "CPU seconds of a rank": best["CPU of a rank"],
            "numbers sent by rank 0": sent, "messages": parallel.messages // (options.repeats + 1),
            "same bits": same,
        }  # fmt: skip
        print(json.dumps(record))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--family", choices=FAMILIES, default="gla")
    parser.add_argument("--form", default="auto", help="token and state-tile give the bits of one process")
    parser.add_argument("--layout", choices=["contiguous", "zigzag"], default="contiguous")
    parser.add_argument("--tokens", type=int, default=65536)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--panels", type=int)
    parser.add_argument("--backward", action="store_true", help="with gradients")
    parser.add_argument("--keep", action="store_true", help="outputs in memory that is kept")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(measure, (f"{folder}/group", options), nprocs=options.processes)


if __name__ == "__main__":
    main()
