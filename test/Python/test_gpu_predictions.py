"""Machine code and the schedulers that run it: tools/gpu/machine_code.py, schedulers.py."""

import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
from machine_code import BRANCH, EXIT, Instruction, instructions, loops  # noqa: E402
from schedulers import Machine, simulate, simulate_once  # noqa: E402

PRODUCT, ADD, LOAD, BARRIER, INTEGER = 0x03C, 0x021, 0x184, 0x11D, 0x010


def make(*kinds):
    """Instructions as (code, {field: value})."""
    fields = {"form": 1, "stall": 1, "sets": (), "waits": 0, "result": 255, "operands": (), "width": 1, "target": None}
    return [Instruction(at=at, code=code, **fields | given) for at, (code, given) in enumerate(kinds)]


def loop(*body):
    """A loop of these, and the exit."""
    return make(*body, (BRANCH, {"target": 0}), (EXIT, {}))


def cycles(body, warps=1, blocks=1):
    return simulate(loop(*body), lambda number, loops: 1, Machine(), warps, blocks)["cycles"]


def test_products_that_wait_for_one_another():
    chain = [(PRODUCT, {"result": 8, "operands": (0, 4, 8)})] * 4
    apart = [(PRODUCT, {"result": 8 + 4 * i, "operands": (0, 4, 8 + 4 * i)}) for i in range(4)]
    machine = Machine()
    assert abs(cycles(chain) - 4 * machine.tensor_latency) <= machine.jump + 1
    # Sums of their own wait for the pipe alone, unless the loop comes back to the first one sooner.
    assert machine.tensor_latency <= cycles(apart) < 2 * machine.tensor_latency
    # Warps of four schedulers have pipes of their own; two of one scheduler share its pipe.
    many = [(PRODUCT, {"result": 8 + 4 * i, "operands": (0, 4, 8 + 4 * i)}) for i in range(16)]
    assert cycles(many, warps=4) == cycles(many)
    assert 1.8 < cycles(many, warps=8) / cycles(many) < 2.2


def test_stalls_scoreboards_and_shared_memory():
    waiting = cycles([(BARRIER, {}), (LOAD, {"sets": (0,)}), (ADD, {"waits": 1})])
    assert waiting - cycles([(BARRIER, {}), (LOAD, {"sets": (0,)}), (ADD, {})]) >= 25  # the load's 29, less what was issued
    assert cycles([(BARRIER, {})] + [(ADD, {"stall": 6})] * 10) - cycles([(BARRIER, {})] + [(ADD, {})] * 10) == 50
    # 16 bytes of 32 lanes are four cycles of the one shared memory.
    wide = cycles([(BARRIER, {})] + [(LOAD, {"width": 4})] * 64, warps=8)
    assert 64 * 8 * 4 <= wide < 1.1 * 64 * 8 * 4
    # Integers go at half the rate.
    assert cycles([(BARRIER, {})] + [(INTEGER, {})] * 100) > 1.8 * cycles([(BARRIER, {})] + [(ADD, {})] * 100) - 60


def test_barriers_wait_for_all_warps_of_a_block():
    found = loop((BARRIER, {}), *[(ADD, {})] * 20)
    alone = simulate(found, lambda number, loops: 1, Machine(), 1, 1)
    both = simulate(found, lambda number, loops: 1, Machine(), 8, 1)
    assert alone["instructions"] == both["instructions"] == 22
    assert both["kept"]["issue"] == 2 * 22
    assert alone["cycles"] <= both["cycles"] <= 2 * alone["cycles"]


def test_inner_loops_run_as_often_as_said():
    found = make((BARRIER, {}), (ADD, {}), (BRANCH, {"target": 1}), (BRANCH, {"target": 0}), (EXIT, {}))
    assert loops(found) == [(0, 3), (1, 2)]
    once, thrice = (simulate(found, lambda number, loops, n=n: n, Machine(), 1, 1)["instructions"] for n in (1, 3))
    assert (once, thrice) == (4, 8)


def test_memory_once():
    found = make((0x181, {"sets": (0,)}), (ADD, {"waits": 1}), (EXIT, {}))
    machine = Machine()
    assert simulate_once(found, machine, 1, 1) >= machine.memory_latency * machine.clock


def test_machine_code_is_read():
    """A cubin with one executable section: a product, a branch back to it, the exit."""
    def encode(code, low=0, high=0, stall=3, write=7, read=7, waits=0):
        control = stall | write << 5 | read << 8 | waits << 11
        return struct.pack("<QQ", code | 1 << 9 | low, high | control << 41)

    back = -2 * 16 >> 2  # From behind the branch, in words of 4 bytes.
    jump = (back & 0xFF) << 16 | (back >> 8 & (1 << 30) - 1) << 34
    text = encode(PRODUCT, 8 << 16 | 4 << 24 | 6 << 32, 8, write=2, waits=5) + encode(BRANCH, jump, back >> 38 & 0x3FFFF) + encode(EXIT)
    header = bytearray(64)
    struct.pack_into("<Q", header, 40, 64)
    struct.pack_into("<HHH", header, 58, 64, 1, 0)
    section = bytearray(64)
    struct.pack_into("<IIQQQQ", section, 0, 0, 1, 6, 0, 128, len(text))
    product, branch, end = instructions(bytes(header) + bytes(section) + text)
    assert (product.code, product.result, product.operands, product.stall, product.sets, product.waits) == (PRODUCT, 8, (4, 6, 8), 3, (2,), 5)
    assert branch.target == 0 and end.code == EXIT
