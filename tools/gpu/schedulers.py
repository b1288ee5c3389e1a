"""How many cycles a multiprocessor spends on a chunk: warps that issue machine code in order, from four schedulers.

Each instruction waits for the stall cycles and scoreboards that ptxas wrote into it, for results of tensor cores, for its pipe and, at a
barrier, for the other warps of its block. Copies from memory have arrived: how long they take is counted by bytes.
"""

import dataclasses

from machine_code import BRANCH, EXIT, PIPES, loops

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


def _pipe(one):
    """The pipe and how long it is kept, as a field of Machine."""
    if one.code in PIPES["tensor"]:
        return "tensor", "tensor"
    if one.code in PIPES["special"]:
        return "special", "special"
    if one.code in PIPES["pack"]:
        return "special", "pack"
    if one.code in FLOAT:
        return None, None
    return ("integer", "half_rate") if one.code not in SHARED | PIPES["lanes"] | PIPES["barrier"] else (None, None)


def trace(found, trips, chunks):
    """Instructions in the order of execution of `chunks` iterations of the outermost loop that has a product or a barrier, and the
    places where iterations end. Branches out of the loop and past code that some chunks need are not taken."""
    every = loops(found)
    first, last = next(loop for loop in every if any(x.code in PIPES["tensor"] | PIPES["barrier"] for x in found[loop[0] : loop[1]]))
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
            if done[one.at] < trips(inner.index((one.target, one.at)), inner):
                at = one.target
            else:
                done[one.at] = 0


class Warp:
    def __init__(self, number, block):
        self.number, self.block = number, block
        self.at, self.ready, self.boards, self.products, self.last = 0, 0, [0] * 6, {}, -1
        self.ends, self.copied = [], 0


class Simulation:
    def __init__(self, code, ends, machine, warps, blocks):
        self.code, self.ends, self.machine = code, set(ends), machine
        self.warps = [Warp(w, b) for b in range(blocks) for w in range(warps)]
        self.schedulers = [self.warps[i::4] for i in range(4)]
        self.free = [{"tensor": 0, "special": 0, "integer": 0} for _ in range(4)]
        self.memory = 0
        self.per_block, self.arrived = warps, {}
        self.latencies = dict(machine.latencies)
        self.pipes = [_pipe(one) for one in code]
        # Cycles of a load from memory, where these are counted here.
        self.from_memory = 0

    def waits_until(self, warp, one):
        until = warp.ready
        for board in range(6):
            if one.waits >> board & 1:
                until = max(until, warp.boards[board])
        if one.code == WAIT:
            until = max(until, warp.copied)
        if warp.products:
            tensor = one.code in PIPES["tensor"]
            for i, register in enumerate(one.operands):
                for r in range(register, register + ((4, 2, 4)[i] if tensor else 1)):
                    until = max(until, warp.products.get(r, 0))
        return until

    def issue(self, scheduler, warp, now):
        one, machine, free = self.code[warp.at], self.machine, self.free[scheduler]
        pipe, kept = self.pipes[warp.at]
        begin, end = now, now + self.latencies.get(one.code, machine.other_latency)
        if one.code in LOADS:
            end += self.from_memory
            warp.copied = end
        if pipe:
            free[pipe] = max(free[pipe], now) + getattr(machine, kept)
        if one.code in SHARED | PIPES["lanes"]:
            begin = max(now, self.memory)
            self.memory = begin + machine.shared_words * (4 if one.code == 0x1AE else one.width)
            end += begin - now
        if one.code in PIPES["tensor"]:
            for r in range(one.result, one.result + 4):
                warp.products[r] = now + machine.tensor_latency
        for board in one.sets:
            warp.boards[board] = max(warp.boards[board], end)
        warp.ready = now + max(1, one.stall)
        if one.code == BRANCH and warp.at + 1 < len(self.code) and self.code[warp.at + 1].at != one.at + 1:
            warp.ready += machine.jump
        warp.at += 1
        warp.last = now
        if warp.at in self.ends:
            warp.ends.append(now)
            warp.products = {r: t for r, t in warp.products.items() if t > now}
        if one.code in PIPES["barrier"]:
            self.arrive(warp, now)

    def arrive(self, warp, now):
        here = self.arrived.setdefault(warp.block, [])
        here.append(warp)
        warp.ready = float("inf")
        if len(here) == self.per_block:
            for other in here:
                other.ready = now + self.latencies[0x11D]
            self.arrived[warp.block] = []

    def run(self):
        now, left = 0, len(self.warps)
        while left:
            soonest = float("inf")
            for scheduler, warps in enumerate(self.schedulers):
                chosen = None
                for warp in warps:
                    if warp.at == len(self.code):
                        continue
                    until = self.waits_until(warp, self.code[warp.at])
                    pipe, _ = self.pipes[warp.at]
                    if pipe:
                        until = max(until, self.free[scheduler][pipe])
                    # Accesses of shared memory wait in a queue.
                    if self.code[warp.at].code in SHARED:
                        until = max(until, self.memory - 32)
                    if until > now:
                        soonest = min(soonest, until)
                    elif chosen is None or warp.last < chosen.last:
                        chosen = warp
                if chosen:
                    self.issue(scheduler, chosen, now)
                    left -= chosen.at == len(self.code)
                    soonest = now + 1
            now = max(now + 1, -(-soonest // 1) if soonest != float("inf") else now + 1)
        return [max(warp.ends[i] for warp in self.warps) for i in range(len(self.ends))]


def simulate(found, trips, machine, warps, blocks):
    """Of a chunk of all `blocks` of a multiprocessor, in the steady state: cycles; instructions of a warp; cycles that the busiest
    scheduler's issue and pipes are kept."""
    code, ends = trace(found, trips, chunks=4)
    simulation = Simulation(code, ends, machine, warps, blocks)
    times = simulation.run()
    body = code[ends[2] : ends[3]]
    each = warps * blocks / 4
    kept = {"issue": len(body) * each}
    for one in body:
        pipe, field = _pipe(one)
        if pipe:
            kept[pipe] = kept.get(pipe, 0) + getattr(machine, field) * each
        if one.code in SHARED | PIPES["lanes"]:
            kept["shared"] = kept.get("shared", 0) + machine.shared_words * (4 if one.code == 0x1AE else one.width) * each * 4
    products = sum(one.code in PIPES["tensor"] for one in body)
    return {"cycles": (times[3] - times[1]) / 2, "instructions": len(body), "products": products, "kept": kept}


def simulate_once(found, machine, warps, blocks):
    """Cycles of `blocks` of a multiprocessor from their first instruction to their last, every loop run once."""
    end = max(one.at for one in found if one.code == EXIT)
    simulation = Simulation(found[: end + 1], [end + 1], machine, warps, blocks)
    simulation.from_memory = machine.memory_latency * machine.clock
    return simulation.run()[0]
