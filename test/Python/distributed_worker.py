"""One of the processes of test_distributed.py: does its part, and writes down what came of it.

    python distributed_worker.py RANK RANKS FOLDER
"""

import datetime
import os
import pathlib
import random
import sys

import numpy as np
import test_families
import torch
import torch.distributed as dist

from conftest import SEED

import linattn
from linattn.distributed import PeerError, SequenceParallel, _softmax
from linattn.distributed._calls import Call, bind

B, T, H, K, V = 2, 28, 4, 8, 32
PACKED = [0, 3, 3, 9, 24, 28]


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def operands(batch=B):
    q, k, v = draw(batch, T, 2 * H, K), draw(batch, T, 1, K, seed=1), draw(batch, T, H, V, seed=2)
    return q, torch.nn.functional.normalize(k, dim=-1), v


def gates(batch=B):
    g = -torch.rand(batch, T, H, K, generator=torch.Generator().manual_seed(3))
    return {"g": g, "beta": torch.sigmoid(draw(batch, T, H))}


PATIENCE = datetime.timedelta(seconds=120)
FAULTS = ("failure", "silence", "death")

# Function, arguments with tokens, and options.
CASES = {
    "linear": (linattn.linear_attention, (), {}),
    "retention": (linattn.retnet, (), {}),
    "gla-reverse": (linattn.gla, ("g",), {"reverse": True}),
    "kda": (linattn.kda, ("g", "beta"), {}),
}


def call(parallel, case, arrays, **options):
    """The case on the tokens of all, or with `parallel` on those of this rank."""
    function, names, own = CASES[case]
    given = {**own, **options}
    if parallel is None:
        return function(*arrays[:3], **dict(zip(names, arrays[3:])), **given)
    return parallel(function, *arrays[:3], **dict(zip(names, arrays[3:])), **given)


def inputs(case, batch=B):
    return [*operands(batch), *(gates(batch)[name] for name in CASES[case][1])]


class Rank:
    """This process, its groups of 2, 3 and 4, and the results of single processes."""

    def __init__(self, rank, ranks, folder):
        self.rank, self.ranks, self.folder = rank, ranks, pathlib.Path(folder)
        dist.init_process_group(
            "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=ranks,
            timeout=PATIENCE,
        )  # fmt: skip
        self.results = {}
        made = {size: dist.new_group(list(range(size)), timeout=PATIENCE) for size in range(2, ranks + 1)}
        self.groups = {size: group for size, group in made.items() if rank < size}
        # A fault may break a group.
        self.broken = {fault: dist.new_group([0, 1], timeout=PATIENCE) for fault in FAULTS}

    def whole(self, compute):
        """The result of one process, rank 0, on every rank."""
        results = [None]
        if self.rank == 0:
            results = [compute()]
        dist.broadcast_object_list(results)
        return results[0]

    def note(self, name, value):
        self.results[name] = np.asarray(value)

    def save(self):
        np.savez(self.folder / f"{self.rank}.npz", **self.results)


def bits(rank):
    """The outputs of 2, 3 and 4 processes beside those of one."""
    wholes = {
        (case, form): rank.whole(lambda: call(None, case, inputs(case), form=form))
        for case in CASES for form in (("token",) if case == "kda" else ("token", "state-tile"))
    }  # fmt: skip
    for size, group in rank.groups.items():
        for layout in ("contiguous", "zigzag") if size == 2 else ("contiguous",):
            parallel = SequenceParallel(group, layout=layout)
            for (case, form), whole in wholes.items():
                parallel.panels = 1 if case == "retention" else 2 if size == 3 else None
                parts = [parallel.split(x) for x in inputs(case)]
                o = call(parallel, case, parts, form=form)
                rank.note(f"{case} {form} {layout} {size}", torch.equal(o, parallel.split(whole)))
                if size == 2:
                    # Rows that are not neighbours in memory.
                    out = torch.full((*o.shape[:-1], o.shape[-1] + 3), torch.nan)[..., :-3]
                    again = call(parallel, case, parts, form=form, out=out)
                    rank.note(f"kept {case} {form} {layout}", again is out and torch.equal(out, o))


def ahead(rank):
    """Counts the panels that each of three ranks hands on before it computes their outputs."""
    if 3 not in rank.groups:
        return
    counts, run_state = [], Call.run_state

    def count(self, *arguments):
        parts = run_state(self, *arguments)
        counts[-1] += 1
        return parts

    Call.run_state = count
    try:
        for case in ("linear", "gla-reverse", "kda"):
            parallel = SequenceParallel(rank.groups[3], panels=4)
            counts.append(0)
            call(parallel, case, [parallel.split(x) for x in inputs(case)])
    finally:
        Call.run_state = run_state
    rank.note("ahead", counts)


def gradients(rank):
    """Gradients and states, with an initial state and packed sequences."""
    for case in ("linear", "gla-reverse", "kda"):
        for packed in (False, True):
            batch = 1 if packed else B
            arrays, rows = inputs(case, batch), len(PACKED) - 1 if packed else B
            initial = [draw(rows, H, K, V).abs(), draw(rows, H, K).abs()][: 2 if case == "linear" else 1]
            weights = draw(batch, T, 2 * H, V, seed=5), draw(rows, H, K, V, seed=6)
            options = {"cu_seqlens": PACKED} if packed else {}
            whole = rank.whole(lambda: differentiate(None, case, arrays, initial, weights, options))
            for layout, group in (("contiguous", rank.groups.get(3)), ("zigzag", rank.groups.get(2))):
                if group is None:
                    continue
                parallel = SequenceParallel(group, layout=layout)
                got = differentiate(parallel, case, arrays, initial, weights, options)
                compare(rank, parallel, f"{case} {layout}{' packed' if packed else ''}", got, whole, len(arrays))


def differentiate(parallel, case, arrays, initial, weights, options):
    """Output, parts of the final state, gradients of the operands and of the initial state."""
    part = (lambda x: x) if parallel is None else parallel.split
    leaves = [part(x).clone().requires_grad_() for x in arrays]
    start = [x.clone().requires_grad_() for x in initial]
    o, state = call(
        parallel, case, leaves, output_final_state=True,
        initial_state=tuple(start) if len(start) > 1 else start[0], **options,
    )  # fmt: skip
    parts = [state.S, state.z] if hasattr(state, "S") else [state]
    ((o * part(weights[0])).sum() + (parts[0] * weights[1]).sum()).backward()
    return [x.detach() for x in (o, *parts, *(x.grad for x in leaves), *(x.grad for x in start))]


def compare(rank, parallel, name, got, whole, count):
    """Outputs and gradients of tokens by this rank's part; states and their gradients, whose
    rows each lie on one rank, by their sum over the ranks."""
    states = len(whole) - 1 - count
    split = [0, *range(1 + states // 2, 1 + states // 2 + count)]
    for index, (mine, all_of_it) in enumerate(zip(got, whole)):
        if index in split:
            expected = parallel.split(all_of_it)
        else:
            expected = all_of_it
            dist.all_reduce(mine, group=parallel.channel.group)
        rank.note(f"{name} {index}", ((mine - expected).abs().max() / all_of_it.abs().max()).item())


def traffic(rank):
    """Counts the numbers that a call sends, forward and backward."""
    parallel = SequenceParallel(rank.groups[2], panels=2)
    arrays = [parallel.split(x).requires_grad_() for x in inputs("linear")]
    o = call(parallel, "linear", arrays)
    rank.note("forward", (parallel.sent, parallel.messages))
    o.sum().backward()
    rank.note("backward", (parallel.sent, parallel.messages))


def convolution(rank):
    """The short convolution, and its gradients."""
    x, weight, bias = draw(1, T, 6), draw(6, 4), draw(6)
    cotangent = draw(1, T, 6, seed=7)
    for name, options in (("plain", {}), ("packed", {"cu_seqlens": PACKED}), ("dilated", {"dilation": 2})):
        def run(parallel):
            part = (lambda x: x) if parallel is None else parallel.split
            leaves = [part(x).clone().requires_grad_(), weight.clone().requires_grad_(), bias.clone().requires_grad_()]
            convolve = linattn.causal_conv1d if parallel is None else parallel.causal_conv1d
            if name == "packed":  # has no gradient on one process either
                with torch.no_grad():
                    return [convolve(*leaves, activation="silu", **options)]
            y = convolve(*leaves, activation="silu", **options)
            (y * part(cotangent)).sum().backward()
            return [y.detach(), *(leaf.grad for leaf in leaves)]

        whole = rank.whole(lambda: run(None))
        for layout, group in (("contiguous", rank.groups.get(3)), ("zigzag", rank.groups.get(2))):
            if group is None:
                continue
            parallel = SequenceParallel(group, layout=layout)
            y, *grads = run(parallel)
            rank.note(f"{name} {layout} same", torch.equal(y, parallel.split(whole[0])))
            for index, (mine, all_of_it) in enumerate(zip(grads, whole[1:])):
                expected = all_of_it if index else parallel.split(all_of_it)
                if index:
                    dist.all_reduce(mine, group=group)
                rank.note(f"{name} {layout} {index}", ((mine - expected).abs().max() / all_of_it.abs().max()).item())


def softmax(rank):
    """Softmax attention with shared key heads, and its gradients."""
    _softmax._ROWS = 4  # several tiles in a part
    arrays = [draw(1, T, 2 * H, K), draw(1, T, H, K, seed=1), draw(1, T, H, V, seed=2)]
    cotangent = draw(1, T, 2 * H, V, seed=5)
    for name, options in (("causal", {}), ("full", {"causal": False}), ("softmax-packed", {"cu_seqlens": PACKED})):
        whole = alone(*arrays, cotangent, **options)
        for size, layout in ((3, "contiguous"), (2, "zigzag"), (4, "contiguous")):
            if size not in rank.groups or (size, name) == (4, "full"):
                continue
            parallel = SequenceParallel(rank.groups[size], layout=layout)
            leaves = [parallel.split(x).requires_grad_() for x in arrays]
            o = parallel.softmax_attention(*leaves, **options)
            (o * parallel.split(cotangent)).sum().backward()
            for index, (mine, all_of_it) in enumerate(zip((o, *(x.grad for x in leaves)), whole)):
                error = (mine - parallel.split(all_of_it)).abs().max() / all_of_it.abs().max()
                rank.note(f"{name} {layout} {size} {index}", error.item())


def alone(q, k, v, cotangent, causal=True, cu_seqlens=(0, T)):
    """Softmax attention and its gradients in float64, by the formula."""
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    k, v = (x.repeat_interleave(2, 2) for x in leaves[1:])
    rows = torch.searchsorted(torch.tensor(cu_seqlens[1:]), torch.arange(T), right=True)
    mask = rows[:, None] == rows
    mask = mask.tril() if causal else mask
    scores = torch.einsum("bihd,bjhd->bhij", leaves[0], k) * K**-0.5
    o = torch.einsum("bhij,bjhd->bihd", scores.masked_fill(~mask, float("-inf")).softmax(-1), v)
    (o * cotangent).sum().backward()
    return [o.detach(), *(x.grad for x in leaves)]


def families(rank):
    """Some named families, by chance."""
    if 2 not in rank.groups:
        return
    parallel = SequenceParallel(rank.groups[2])
    for case in random.Random(SEED).sample(sorted(test_families.CASES), 2):
        name, make = test_families.CASES[case]
        function = getattr(linattn, name)
        drawn = make(test_families.Draw(np.float32, T=12, B=2, HQ=4, HK=2, HV=4, K=8, V=32))
        given = {key: torch.from_numpy(np.array(x)) if isinstance(x, np.ndarray) else x for key, x in drawn.items()}
        call = bind(function, (), dict(given))
        whole, own = function(**given), {}
        for key, x in given.items():
            place = call.time_axis(key) if key in call.operands else None
            own[key] = x if place is None else parallel.split(x, place[0])
        o = parallel(function, **own)
        whole, o = (x[0] if isinstance(x, tuple) else x for x in (whole, o))
        error = (o - parallel.split(whole, call.output_time())).abs().max() / whole.abs().max()
        rank.note(f"family {case}", error.item())
    # Its states start from minus infinity.
    arrays, options = [draw(1, T, H, K), draw(1, T, H, K, seed=1), draw(1, T, H, V)], {"cu_seqlens": PACKED}
    whole, o = linattn.lightnet(*arrays, **options), parallel(linattn.lightnet, *map(parallel.split, arrays), **options)
    rank.note("family packed", ((o - parallel.split(whole)).abs().max() / whole.abs().max()).item())


def errors(rank):
    """Notes the errors of calls that do not go together."""
    parallel = SequenceParallel(rank.groups[2])
    q, k, v = (parallel.split(x) for x in operands())

    def refused(name, *args, **kwargs):
        try:
            parallel(*args, **kwargs)
            rank.note(name, "nothing")
        except (ValueError, TypeError, NotImplementedError, PeerError) as error:
            rank.note(name, f"{type(error).__name__}: {error}")

    last = rank.rank == 1
    refused("shapes", linattn.retnet, q, k, v[..., :16] if last else v)
    refused("functions", linattn.linear_attention if last else linattn.retnet, q, k, v)
    refused("gradients", linattn.retnet, q.clone().requires_grad_() if last else q, k, v)
    refused("lengths", linattn.retnet, q, k[:, :-1] if last else k, v)
    refused("heads", linattn.retnet, q, k, v[:, :, :3] if last else v)
    refused("offsets", linattn.retnet, q[:1], k[:1], v[:1], cu_seqlens=[0, T + 1])
    refused("in place", linattn.retnet, q, k, v, inplace=True)
    out = parallel(linattn.retnet, q, k, v)
    refused("out", linattn.retnet, q, k, v, out=out[:, 1:] if last else out)
    refused("out of dtype", linattn.retnet, q, k, v, out=out.double())
    refused("out of device", linattn.retnet, q, k, v, out=out.to("meta"))
    refused("out of gradients", linattn.retnet, q.clone().requires_grad_(), k, v, out=out)
    refused("function", torch.add, q, k)
    refused("array", linattn.retnet, q.numpy(), k, v)
    parallel.panels = 3
    refused("panels", linattn.gla, q, k, v)


def failure(rank, q, k, v):
    """The kernel of the first rank fails in between; the second one hears of it at once."""
    parallel = SequenceParallel(rank.broken["failure"], timeout=60)
    run = Call.run

    def fail(self, operands, *others):
        if operands["q"].shape[1] > 1:
            raise MemoryError("expected by the test")
        return run(self, operands, *others)

    if rank.rank == 0:
        Call.run = fail
    try:
        parallel(linattn.retnet, q, k, v)
    finally:
        Call.run = run


def silence(rank, q, k, v):
    """The first rank does not answer in time."""
    parallel = SequenceParallel(rank.broken["silence"], timeout=0.5)
    if rank.rank == 0:
        parallel.channel.send = lambda *_: None
    parallel(linattn.retnet, q, k, v)


def death(rank, q, k, v):
    """The first rank dies before its state goes out."""
    parallel = SequenceParallel(rank.broken["death"], timeout=60)
    if rank.rank == 0:
        rank.save()
        parallel.channel.send = lambda *_: os._exit(7)
    parallel(linattn.retnet, q, k, v)


def faults(rank):
    """Notes the errors of the second rank when the first one has a fault."""
    pair = SequenceParallel(rank.groups[2])
    q, k, v = (pair.split(x) for x in operands())
    pair(linattn.retnet, q, k, v)  # compiled
    for fault in FAULTS:
        try:
            globals()[fault](rank, q, k, v)
        except (PeerError, MemoryError) as error:
            rank.note(fault, f"{type(error).__name__}: {error}")


def main(rank, ranks, folder):
    torch.set_num_threads(1)
    linattn.set_num_threads(1)
    rank = Rank(int(rank), int(ranks), folder)
    bits(rank)
    ahead(rank)
    gradients(rank)
    convolution(rank)
    softmax(rank)
    families(rank)
    if rank.rank < 2:
        traffic(rank)
        errors(rank)
        faults(rank)
    rank.save()


if __name__ == "__main__":
    main(*sys.argv[1:])
