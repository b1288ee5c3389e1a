"""How many cycles a multiprocessor spends on a chunk: warps that issue machine code in order, from four schedulers.

Each instruction waits for the stall cycles and scoreboards that ptxas wrote into it, for results of tensor cores, for its pipe and, at a
barrier, for the other warps of its block or warpgroup. Products of warpgroups run one after the other while their warps go on. Copies from memory
have arrived: how long they take is counted by bytes.
"""

import dataclasses

from machine_code import BRANCH, EXIT, PIPES, WARPGROUP_PRODUCT, loops

__all__ = ["Machine", "simulate", "simulate_once"]


@dataclasses.dataclass
class Machine:
    """An H200; by scheduler, of which a multiprocessor has four, unless said otherwise."""

    multiprocessors: int = 132
    clock: float = 1.755e9
    bandwidth: float = 4.8e12
    registers: int = 65536
    shared: int = 227 * 1024
    launch: float = 3e-6
    # From a copy's start to its data.
    memory_latency: float = 0.8e-6
    # Cycles that an instruction of a warp keeps its pipe: lanes over the results of a cycle. Of m16n8k16 62 % of 989 TFLOP/s.
    tensor: float = 6.5
    # Of a column of a warpgroup's product, at all of it; it reads its operands in shared memory once, a quarter for each warp.
    warpgroup_column: float = 0.48
    special: float = 8
    pack: float = 2
    half_rate: float = 2
    # Of the multiprocessor's shared memory: 128 bytes a cycle.
    shared_words: float = 1
    # Cycles until a result is there.
    tensor_latency: int = 33
    latencies: tuple = ((0x03B, 33), (0x184, 29), (0x188, 20), (0x189, 25), (0x108, 23), (0x104, 23), (0x11D, 20))
    other_latency: int = 15
    jump: int = 10


LOADS, WAIT = {0x181, 0x1AE}, 0x11A  # LDG, LDGSTS; DEPBAR
SHARED = {0x03B, 0x184, 0x188, 0x1AE}
FLOAT = PIPES["float"]
# The form of a product of a warpgroup whose operands are all in shared memory.
FROM_SHARED = 4


def _pipe(one):
    """The pipe and how long it is kept, as a field of Machine."""
    if one.code in PIPES["tensor"]:
        return "tensor", "warpgroup_column" if one.code == WARPGROUP_PRODUCT else "tensor"
    if one.code in PIPES["special"]:
        return "special", "special"
    if one.code in PIPES["pack"]:
        return "special", "pack"
    if one.code in FLOAT:
        return None, None
    return ("integer", "half_rate") if one.code not in SHARED | PIPES["lanes"] | PIPES["barrier"] else (None, None)


def _kept(one, machine):
    """How long an instruction keeps its pipe, and shared memory."""
    pipe, field = _pipe(one)
    kept = getattr(machine, field) * (one.columns or 1) if pipe else 0
    words = 0
    if one.code == WARPGROUP_PRODUCT:
        # 32 bytes of each column, and of 64 rows unless these are in registers.
        words = (one.columns + (64 if one.form == FROM_SHARED else 0)) * 32 / 128 / 4
    elif one.code in SHARED | PIPES["lanes"]:
        words = 4 if one.code == 0x1AE else one.width
    return pipe, kept, machine.shared_words * words


def trace(found, trips, chunks, role=0):
    """Instructions in the order of execution of `chunks` iterations of an outermost loop that has a product or a barrier, the first or
    that of another role, and the places where iterations end. Branches out of the loop and past code that some chunks need are not taken."""
    every = loops(found)
    busy = [loop for loop in every if any(x.code in PIPES["tensor"] | PIPES["barrier"] for x in found[loop[0] : loop[1]])]
    first, last = [loop for loop in busy if not any(a < loop[0] and loop[1] < b for a, b in busy)][role]
    inner = [loop for loop in every if first <= loop[0] and loop[1] <= last and loop != (first, last)]
    done, ends, out = {}, [], []
    at = first
    while True:
        one = found[at]
        out.append(one)
        at += 1
        if one.at == last:
            ends.append(len(out))
            if len(ends) == chunks:
                return out, ends
            at = first
        elif one.code == BRANCH and (one.target, one.at) in inner:
            done[one.at] = done.get(one.at, 0) + 1
            if done[one.at] < trips(inner.index((one.target, one.at)), inner, role):
                at = one.target
            else:
                done[one.at] = 0


class Warp:
    def __init__(self, number, block, code, ends):
        self.number, self.block, self.code, self.stops = number, block, code, set(ends)
        self.at, self.ready, self.boards, self.products, self.last = 0, 0, [0] * 6, {}, -1
        self.ends, self.copied = [], 0
        # Of a warpgroup's products: when those of each group are done, the last group being the one that goes on.
        self.groups = [0]


class Simulation:
    def __init__(self, roles, machine, blocks):
        """`roles`: code, the places where iterations end, and the number of warps that run it, in the order of a block's warps."""
        self.machine = machine
        every = [(code, ends) for code, ends, warps in roles for _ in range(warps)]
        self.warps = [Warp(w, b, *every[w]) for b in range(blocks) for w in range(len(every))]
        self.schedulers = [self.warps[i::4] for i in range(4)]
        self.free = [{"tensor": 0, "special": 0, "integer": 0} for _ in range(4)]
        self.memory = 0
        self.per_block, self.arrived = len(every), {}
        self.latencies = dict(machine.latencies)
        self.kept = {id(one): _kept(one, machine) for code, _, _ in roles for one in code}
        # Cycles of a load from memory, where these are counted here.
        self.from_memory = 0

    def waits_until(self, warp, one):
        until = warp.ready
        for board in range(6):
            if one.waits >> board & 1:
                until = max(until, warp.boards[board])
        if one.code == WAIT:
            until = max(until, warp.copied)
        if one.pending is not None:
            until = max([until, *warp.groups[: -1 - one.pending]])
        if warp.products and one.code != WARPGROUP_PRODUCT:
            tensor = one.code in PIPES["tensor"]
            for i, register in enumerate(one.operands):
                for r in range(register, register + ((4, 2, 4)[i] if tensor else 1)):
                    until = max(until, warp.products.get(r, 0))
        return until

    def issue(self, scheduler, warp, now):
        one, machine, free = warp.code[warp.at], self.machine, self.free[scheduler]
        pipe, kept, words = self.kept[id(one)]
        begin, end = now, now + self.latencies.get(one.code, machine.other_latency)
        if one.code in LOADS:
            end += self.from_memory
            warp.copied = end
        if pipe:
            free[pipe] = max(free[pipe], now) + kept
        if words:
            begin = max(now, self.memory)
            self.memory = begin + words
            end += begin - now
        if one.code == WARPGROUP_PRODUCT:
            warp.groups[-1] = max(free[pipe], self.memory) + machine.tensor_latency
            if one.ends_group:
                warp.groups.append(0)
        elif one.code in PIPES["tensor"]:
            for r in range(one.result, one.result + 4):
                warp.products[r] = now + machine.tensor_latency
        for board in one.sets:
            warp.boards[board] = max(warp.boards[board], end)
        warp.ready = now + max(1, one.stall)
        if one.code == BRANCH and warp.at + 1 < len(warp.code) and warp.code[warp.at + 1].at != one.at + 1:
            warp.ready += machine.jump
        warp.at += 1
        warp.last = now
        if warp.at in warp.stops:
            warp.ends.append(now)
            warp.products = {r: t for r, t in warp.products.items() if t > now}
        if one.code in PIPES["barrier"]:
            self.arrive(warp, now, one)

    def arrive(self, warp, now, barrier):
        """At the barrier of the block, of some warps, or, where its number is in a register, of a warpgroup."""
        key = warp.block, ("warpgroup", warp.number // 4) if barrier.number is None else barrier.number
        here = self.arrived.setdefault(key, [])
        here.append(warp)
        warp.ready = float("inf")
        if len(here) == (barrier.threads // 32 or self.per_block):
            for other in here:
                other.ready = now + self.latencies[0x11D]
            self.arrived[key] = []

    def run(self):
        now, left = 0, len(self.warps)
        while left:
            soonest = float("inf")
            for scheduler, warps in enumerate(self.schedulers):
                chosen = None
                for warp in warps:
                    if warp.at == len(warp.code):
                        continue
                    one = warp.code[warp.at]
                    until = self.waits_until(warp, one)
                    pipe = self.kept[id(one)][0]
                    # Products of a warpgroup wait in a queue, and so do accesses of shared memory.
                    if pipe and one.code != WARPGROUP_PRODUCT:
                        until = max(until, self.free[scheduler][pipe])
                    if one.code in SHARED:
                        until = max(until, self.memory - 32)
                    if until > now:
                        soonest = min(soonest, until)
                    elif chosen is None or warp.last < chosen.last:
                        chosen = warp
                if chosen:
                    self.issue(scheduler, chosen, now)
                    left -= chosen.at == len(chosen.code)
                    soonest = now + 1
            now = max(now + 1, -(-soonest // 1) if soonest != float("inf") else now + 1)
        return [max(warp.ends[i] for warp in self.warps) for i in range(len(self.warps[0].stops))]


def simulate(found, trips, machine, warps, blocks):
    """Of a chunk of all `blocks` of a multiprocessor, in the steady state: cycles; instructions and products of a warp of each role;
    cycles that the busiest scheduler's issue and pipes are kept. `warps`: of a block, for each role."""
    roles = [(*trace(found, trips, chunks=4, role=role), count) for role, count in enumerate(warps)]
    times = Simulation(roles, machine, blocks).run()
    kept, sizes = {"issue": 0, "shared": 0}, []
    for code, ends, count in roles:
        body, each = code[ends[2] : ends[3]], count * blocks / 4
        kept["issue"] += len(body) * each
        for one in body:
            pipe, cycles, words = _kept(one, machine)
            if pipe:
                kept[pipe] = kept.get(pipe, 0) + cycles * each
            kept["shared"] += words * each * 4
        sizes.append((len(body), sum(one.code in PIPES["tensor"] for one in body)))
    return {"cycles": (times[3] - times[1]) / 2, "sizes": sizes, "kept": kept}


def simulate_once(found, machine, warps, blocks):
    """Cycles of `blocks` of a multiprocessor from their first instruction to their last, every loop run once."""
    end = max(one.at for one in found if one.code == EXIT)
    simulation = Simulation([(found[: end + 1], [end + 1], warps)], machine, blocks)
    simulation.from_memory = machine.memory_latency * machine.clock
    return simulation.run()[0]
