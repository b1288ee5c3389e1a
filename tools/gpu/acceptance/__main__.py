"""Checks and times a package of compiled kernels on this machine.

    python3 -m acceptance PACKAGE [--out DIR] [--seconds N] [--dry-run] [--only-checks]

Needs Python, PyTorch and a GPU of NVIDIA; the package has all else. The work is done
step by step in a process of its own. Results are written after every step; a step
that hangs or crashes is recorded, and the next process goes on behind it.
"""

import argparse
import sys
import time

from . import supervise


def main():
    parser = argparse.ArgumentParser(prog="acceptance", description=__doc__.split("\n\n")[0])
    parser.add_argument("package", help="the folder that acceptance.sh --build-only made")
    parser.add_argument("--out", help="where to write results.json and results.md (default: PACKAGE/results)")
    parser.add_argument("--seconds", type=float, default=500, help="to be done in (default: 500)")
    parser.add_argument("--step-seconds", type=float, default=45, help="that a step may take before it is given up (default: 45)")
    parser.add_argument("--dry-run", action="store_true", help="host memory and this machine's driver; nothing is timed")
    parser.add_argument("--only-checks", action="store_true", help="no times")
    parser.add_argument("--kernel", action="append", dest="kernels", default=[], help="check this one, again for more")
    parser.add_argument("--worker", action="store_true", help="do the steps in this very process")
    parser.add_argument("--begin", type=float, default=time.monotonic(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.worker:
        return supervise.run(options, sys.argv[1:])
    from .worker import Worker

    return Worker(options).run()


if __name__ == "__main__":
    sys.exit(main())
