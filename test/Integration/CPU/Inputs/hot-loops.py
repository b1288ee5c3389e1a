"""Reads assembly and tells about its hot loops: the blocks that jump back to their own label
and multiply and add vectors. A line per loop, in order: how many fused multiply-adds, other
vector products and sums, calls, and accesses to the stack, which in such a loop are spills;
but for the one comparison that ends the loop, whose bound may be anywhere.
"""

import re
import sys

FUSED = re.compile(r"^(vfn?m(add|sub)\w*ps|fmla|fmls)\s")
APART = re.compile(r"^(v(mul|add|sub)ps|(fmul|fadd|fsub)\s+v)")
CALL = re.compile(r"^(callq?|blr?)\s")
# At a fixed place: arrays on the stack are accessed with an index.
STACK = re.compile(r"\(%r[sb]p\)|\[(sp|x29)(, #-?\d+)?\]")


def blocks(text):
    """The function, the label and the instructions of every block."""
    function, label, body = "", "", []
    for line in text.splitlines():
        line = line.split("#")[0].split("//")[0].strip()
        if match := re.fullmatch(r"([\w.$]+):", line):
            yield function, label, body
            label, body = match[1], []
            if not label.startswith(".L"):
                function = re.sub(r"_\d+$", "", label)
        elif line and not line.startswith("."):
            body.append(line)
    yield function, label, body


for function, label, body in blocks(sys.stdin.read()):
    ends = [i for i, x in enumerate(body) if re.search(rf"\s{re.escape(label)}$", x)]
    if not ends:
        continue
    body = body[: ends[-1] + 1]
    body = [x for x in body if not (x.startswith("cmp") and STACK.search(x))]
    fused, apart, calls, spills = (
        sum(bool(pattern.search(x)) for x in body) for pattern in (FUSED, APART, CALL, STACK)
    )
    if fused + apart >= 8:
        print(f"{function}: {fused} fused, {apart} apart, {calls} calls, {spills} spills")
