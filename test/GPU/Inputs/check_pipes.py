"""Assembles the microbenchmarks of instructions: each loop has its instruction as often as its time is divided by.

check_pipes.py PTXAS CHIP
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "gpu"))
from acceptance.pipes import CHAINS, PIPES, instructions_of_round, text  # noqa: E402
from machine_code import instructions, loops  # noqa: E402

# The low 9 bits of their code: HMMA, HGMMA, F2FP, MUFU, FFMA, LOP3, LDSM, LDS, SHFL.
CODES = [0x03C, 0x1F0, 0x03E, 0x108, 0x023, 0x012, 0x03B, 0x184, 0x189]


def check(ptxas, chip, pipe, code, chains):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        command = [ptxas, f"-arch={chip}", "-v", "-", "-o", file.name]
        result = subprocess.run(command, input=text(pipe, chains), text=True, capture_output=True)
        if result.returncode:
            return result.stderr
        found = instructions(file.read())
    if "wgmma.mma_async" in result.stderr:  # ptxas waits for each product.
        return result.stderr
    first, last = max(loops(found), key=lambda loop: loop[1] - loop[0])
    issued = sum(one.code == code for one in found[first : last + 1])
    expected = instructions_of_round(pipe, chains)
    # The loop itself may take one or two.
    return None if 0 <= issued - expected <= 2 else f"{issued} of {expected} instructions"


def main():
    ptxas, chip = sys.argv[1:]
    chosen = [(pipe, code) for pipe, code in zip(PIPES, CODES, strict=True) if pipe.runs_on(chip)]
    failures = 0
    for pipe, code in chosen:
        for chains in [1] if pipe.group > 1 else [1, CHAINS]:
            wrong = check(ptxas, chip, pipe, code, chains)
            failures += wrong is not None
            print(f"{pipe.name}, {chains} at once: {wrong or 'ok'}")
    print(f"{len(chosen)} instructions, {failures} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
