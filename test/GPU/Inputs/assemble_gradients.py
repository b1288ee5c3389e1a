"""Assembles the kernels of gradients: additive and delta rules of 64 features, for sm_80 and sm_90.

    assemble_gradients.py LINATTN_OPT LINATTN_TRANSLATE PTXAS

Prints a line for each; what fails, with what was said. LINATTN_MATRIX=all takes every chip
for every rule, otherwise each rule has one.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from check_ptxas import scan

RULES = {
    "additive": {},
    "scalar_decay": {"clauses": "decay(%g0)", "gates": ["2x4xT"]},
    "gate": {"clauses": "decay(%g0)", "gates": ["2x4xTxD"]},
    "delta": {"clauses": "beta(%g0) update(delta)", "gates": ["2x4xT"]},
    "gated_delta": {"clauses": "decay(%g0) beta(%g1) update(delta)", "gates": ["2x4xT", "2x4xT"]},
    "kda": {"clauses": "decay(%g0) beta(%g1) update(delta)", "gates": ["2x4xTxD", "2x4xT"]},
}
CHIPS = ["sm_80", "sm_90"]


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {command}\n{done.stderr}")
    return done.stdout


def main():
    opt, translate, ptxas = sys.argv[1:]
    whole = os.environ.get("LINATTN_MATRIX") == "all"
    assemble = pathlib.Path(__file__).with_name("assemble.py")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernels.ptx")
        for number, (rule, options) in enumerate(RULES.items()):
            source = scan(rule, "f32", 64, "?", **options)
            for chip in CHIPS if whole else [CHIPS[number % len(CHIPS)]]:
                passes = [f"--linattn-differentiate=function={rule} isolate", "--symbol-dce", "--canonicalize", "--cse"]
                device = run([opt, *passes, f"--linattn-lower-to-nvvm-pipeline=chip={chip}"], source)
                path.write_text(run([translate, "--gpu-binary-to-assembly"], device))
                print(f"{rule} {chip}: {run([sys.executable, assemble, ptxas, chip, path], None).strip()}", flush=True)


if __name__ == "__main__":
    main()
