"""Assembles every module of a file of PTX.

assemble.py PTXAS CHIP FILE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ptxas, chip, path = sys.argv[1:]
modules = re.split(r"(?m)^(?=\.version )", pathlib.Path(path).read_text())
modules = [module for module in modules if ".entry" in module]
failures = 0
with tempfile.TemporaryDirectory() as folder:
    for module in modules:
        source = pathlib.Path(folder, "kernel.ptx")
        source.write_text(module)
        command = [ptxas, f"-arch={chip}", source, "-o", os.devnull]
        result = subprocess.run(command, capture_output=True, text=True)
        failures += result.returncode != 0
        print(result.stderr, end="")
print(f"{len(modules)} kernels, {failures} failures")
