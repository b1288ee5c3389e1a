"""Assembles every module of a file of PTX.

assemble.py PTXAS CHIP FILE

All at once, under names of their own: most of the time of a small kernel is the start of ptxas. Where
that fails, one by one, to say how many fail.
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


def assemble(*sources):
    return subprocess.run([ptxas, f"-arch={chip}", *sources, "-o", os.devnull], capture_output=True, text=True)


with tempfile.TemporaryDirectory() as folder:
    sources = []
    for number, module in enumerate(modules):
        sources.append(pathlib.Path(folder, f"{number}.ptx"))
        for name in set(re.findall(r"\.(?:entry|func) (\w+)", module)):
            module = re.sub(rf"\b{name}\b", f"{name}_{number}", module)
        sources[-1].write_text(module)
    failures = 0
    if sources and assemble(*sources).returncode:
        for source in sources:
            result = assemble(source)
            failures += result.returncode != 0
            print(result.stderr, end="")
print(f"{len(modules)} kernels, {failures} failures")
