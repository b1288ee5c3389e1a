"""Machine code of NVIDIA GPUs from Volta on, as far as it is the same in all of them: opcodes, control bits, loops.

An instruction has 16 bytes: the opcode in the low 9 bits, then how its operands are given; registers in bits 16 (result), 24, 32, 64; in the
upper half stall cycles, the scoreboards that it sets when its result is there or its operands are read, and those it waits for.
"""

import dataclasses
import struct

__all__ = ["PIPES", "SLOW_CONVERSION", "LOCAL", "Instruction", "count", "instructions", "loops"]

# Instructions by the low 9 bits of their code: the others are forms of operands.
PIPES = {
    "tensor": {0x03C, 0x1F0},  # HMMA, HGMMA
    "special": {0x104, 0x108},  # F2F, MUFU
    "pack": {0x03E},  # F2FP: two floats to a pair of 16 bits
    "float": {0x020, 0x021, 0x023},  # FMUL, FADD, FFMA
    "lanes": {0x189},  # SHFL
    "shared": {0x03B, 0x184, 0x188},  # LDSM, LDS, STS
    "global": {0x181, 0x186, 0x1AE},  # LDG, STG, LDGSTS
    "barrier": {0x11D},  # BAR
}
SLOW_CONVERSION = 0x104  # F2F
LOCAL = {0x183, 0x187}  # LDL, STL
NOTHING, BRANCH, EXIT = 0x118, 0x147, 0x14D  # NOP, behind the end; BRA; EXIT
# HGMMA; WARPGROUP, of which bit 47 of the lower half says that it waits for products.
WARPGROUP_PRODUCT, WARPGROUP = 0x1F0, 0x1C5
BARRIER, IN_REGISTER = 0x11D, 2
NO_SCOREBOARD, NO_REGISTER = 7, 255


@dataclasses.dataclass
class Instruction:
    at: int  # In instructions.
    code: int
    form: int
    stall: int
    sets: tuple  # Scoreboards.
    waits: int  # A mask of scoreboards.
    result: int
    operands: tuple  # Registers; of constants and immediates none.
    width: int  # Of what goes to or from memory: 4-byte words of a thread.
    target: int | None  # Of a branch.
    columns: int | None = None  # Of a product of a warpgroup.
    ends_group: bool = False  # The last product of a group that a wait counts.
    pending: int | None = None  # Of a wait for products of a warpgroup: the groups that may go on.
    threads: int = 0  # Of a barrier; 0: all.
    number: int | None = 0  # Of a barrier; None: in a register.


def _instruction(at, low, high):
    code, form = low & 0x1FF, low >> 9 & 7
    control = high >> 41
    # Of LDSM the number of matrices, of other accesses of memory the type.
    width = 1 << (high >> 8 & 3) if code == 0x03B else {5: 2, 6: 4}.get(high >> 9 & 7, 1)
    b = [low >> 32 & 0xFF] if form == 1 else []
    target = None
    if code == BRANCH:
        offset = ((low >> 34 | (high & 0x3FFFF) << 30) << 8 | low >> 16 & 0xFF) << 2
        offset -= (offset >> 57) << 58
        target = at + 1 + offset // 16
    product = code == WARPGROUP_PRODUCT
    return Instruction(
        at, code, form, control & 15, tuple({control >> 5 & 7, control >> 8 & 7} - {NO_SCOREBOARD}), control >> 11 & 63,
        low >> 16 & 0xFF, tuple(r for r in (low >> 24 & 0xFF, *b, high & 0xFF) if r != NO_REGISTER), width, target,
        8 * ((low >> 53 & 31) + 1) if product else None, product and high >> 12 & 7 != NO_SCOREBOARD,
        high >> 8 & 7 if code == WARPGROUP and low >> 47 & 1 else None,
        low >> 42 & 0xFFF if code == BARRIER else 0, low >> 54 & 15 if code == BARRIER and form != IN_REGISTER else None,
    )  # fmt: skip


def instructions(cubin):
    """Those of the one kernel in a cubin, in order."""
    (offset,) = struct.unpack_from("<Q", cubin, 40)
    _, number, _ = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, offset + 64 * i) for i in range(number)]
    # Executable: the kernel's section.
    (text,) = [cubin[at : at + size] for _, kind, flags, _, at, size in sections if kind == 1 and flags & 4]
    return [_instruction(at // 16, *struct.unpack_from("<QQ", text, at)) for at in range(0, len(text), 16)]


def count(found):
    """How many instructions run in each pipe, and all."""
    codes = [one.code for one in found if one.code != NOTHING]
    return [sum(code in kinds for code in codes) for kinds in PIPES.values()] + [len(codes)]


def loops(found):
    """(first, last) of all loops, the enclosing ones first. Ways out of line, of warps that diverge, lie behind the code that they
    come back to, behind the exit."""
    end = min(one.at for one in found if one.code == EXIT and one.at > max(x.at for x in found if x.code in PIPES["tensor"] | {0x11D}))
    back = [(one.target, one.at) for one in found if one.target is not None and one.target < one.at < end]
    return sorted(back, key=lambda it: (it[0], -it[1]))
