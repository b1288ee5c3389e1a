"""Machine code and the schedulers that run it: tools/gpu/machine_code.py, schedulers.py."""

import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
from machine_code import BRANCH, EXIT, Instruction, _instruction, instructions, loops  # noqa: E402
from schedulers import Machine, simulate, simulate_once  # noqa: E402

PRODUCT, ADD, LOAD, BARRIER, INTEGER = 0x03C, 0x021, 0x184, 0x11D, 0x010
WGMMA, WARPGROUP = 0x1F0, 0x1C5


def make(*kinds):
    """Instructions as (code, {field: value})."""
    fields = {"form": 1, "stall": 1, "sets": (), "waits": 0, "result": 255, "operands": (), "width": 1, "target": None}
    return [Instruction(at=at, code=code, **fields | given) for at, (code, given) in enumerate(kinds)]


def loop(*body):
    """A loop of these, and the exit."""
    return make(*body, (BRANCH, {"target": 0}), (EXIT, {}))


def cycles(body, warps=1, blocks=1):
    return simulate(loop(*body), lambda number, loops, role: 1, Machine(), (warps,), blocks)["cycles"]


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
    alone = simulate(found, lambda number, loops, role: 1, Machine(), (1,), 1)
    both = simulate(found, lambda number, loops, role: 1, Machine(), (8,), 1)
    assert alone["sizes"] == both["sizes"] == [(22, 0)]
    assert both["kept"]["issue"] == 2 * 22
    assert alone["cycles"] <= both["cycles"] <= 2 * alone["cycles"]


def test_inner_loops_run_as_often_as_said():
    found = make((BARRIER, {}), (ADD, {}), (BRANCH, {"target": 1}), (BRANCH, {"target": 0}), (EXIT, {}))
    assert loops(found) == [(0, 3), (1, 2)]
    once, thrice = (simulate(found, lambda number, loops, role, n=n: n, Machine(), (1,), 1)["sizes"] for n in (1, 3))
    assert (once, thrice) == ([(4, 0)], [(8, 0)])


def test_products_of_warpgroups_go_on_beside_their_warps():
    machine = Machine()
    product = (WGMMA, {"form": 6, "columns": 128})
    last = (WGMMA, {"form": 6, "columns": 128, "ends_group": True})
    wait, most = (WARPGROUP, {"pending": 0}), (WARPGROUP, {"pending": 1})
    # One after the other in the pipe, from the wait on as long as the last one takes.
    taken = cycles([(BARRIER, {}), *[product] * 7, last, wait], warps=4)
    pipe = 8 * 128 * machine.warpgroup_column
    assert pipe + machine.tensor_latency <= taken < pipe + machine.tensor_latency + 80
    # What the warp does before it waits takes no time of its own.
    busy = [(ADD, {})] * 300
    assert cycles([(BARRIER, {}), *[product] * 7, last, *busy, wait], warps=4) <= taken + 5
    assert cycles([(BARRIER, {}), *[product] * 7, last, wait, *busy], warps=4) >= taken + 290
    # A wait that leaves the last group pending is for those before it.
    early = cycles([(BARRIER, {}), last, *[product] * 6, last, most, *busy, wait], warps=4)
    assert early <= taken + 5
    # Operands in shared memory are read once for four warps: of 8 columns that takes longer than the product.
    narrow = (WGMMA, {"form": 4, "columns": 8, "ends_group": True})
    assert cycles([(BARRIER, {}), *[narrow] * 32, wait], warps=4) >= 32 * (8 + 64) * 32 / 128


def test_roles_have_loops_of_their_own():
    each = [(BARRIER, {})], [(BARRIER, {}), (BARRIER, {"threads": 128, "number": 1}), *[(ADD, {})] * 100]
    first, second = (make(*body, (BRANCH, {"target": 0})) for body in each)
    for one in second:
        one.at += len(first)
        one.target = None if one.target is None else len(first)
    end = make((EXIT, {}))[0]
    end.at = len(first) + len(second)
    found = simulate([*first, *second, end], lambda number, loops, role: 1, Machine(), (8, 4), 1)
    assert found["sizes"] == [(2, 0), (103, 0)]
    assert found["kept"]["issue"] == 2 * 2 + 103
    # All wait for the slower ones; those meet among themselves, too.
    assert 100 < found["cycles"] < 200


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


def test_barriers_and_products_of_warpgroups_are_read():
    """Words that ptxas wrote: bar.sync 0; bar.sync 1, 128; one with its number in a register; wgmma of 128 columns, the last of a group, with
    rows in registers; a wait that leaves one group."""
    words = [(0x7B1D, 0xFEC0000010000), (0x42000000007B1D, 0xFEC0000010000), (0x2002E0000751D, 0x9E20000010000),
             (0x41E0000444187DF0, 0xFE60008001818), (0x8000000079C5, 0xFE40000010100)]  # fmt: skip
    block, some, numbered, product, wait = (_instruction(0, low, high) for low, high in words)
    assert [(one.code, one.number, one.threads) for one in (block, some, numbered)] == [(BARRIER, 0, 0), (BARRIER, 1, 128), (BARRIER, None, 128)]
    assert (product.code, product.columns, product.ends_group, product.form) == (WGMMA, 128, True, 6)
    assert (wait.code, wait.pending) == (WARPGROUP, 1)
