"""Shows what linattn does, checks it, and measures it on this machine."""

from __future__ import annotations

import argparse
import pathlib
import sys

import crossover
import decode
import delta_chunk
import document
import example
import lives
import passes
import scaling
from report import Report

_ROOT = pathlib.Path(__file__).resolve().parents[2]

FULL = {
    "tokens": 512,
    "lengths": [512 << i for i in range(9)],  # 512 … 131072
    "seconds": 8.0,  # a point that would take longer is predicted
    "crossover": [8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512],
    "heads": 32,
    "crossover_seconds": 0.6,
    "positions": [100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10000],
    "decode_seconds": 0.3,
}
QUICK = {
    "tokens": 128,
    "lengths": [256, 1024],
    "seconds": 0.5,
    "crossover": [8, 16, 32, 64, 128, 256],
    "heads": 8,
    "crossover_seconds": 0.05,
    "positions": [100, 200, 500],
    "decode_seconds": 0.02,
}


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="tools/demo.sh", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short texts; for tests")
    parser.add_argument("--text", metavar="FILE", help="the document to measure on (default: this project's own)")
    parser.add_argument(
        "--output", metavar="DIR", type=pathlib.Path, default=_ROOT / "demo-output", help="where pictures and IR go"
    )
    options = parser.parse_args(arguments)
    if options.text is not None and not pathlib.Path(options.text).is_file():
        parser.error(f"--text: expected a file, but got {options.text}")
    return options


def main(arguments=None):
    options = parse_arguments(arguments)
    sizes = QUICK if options.quick else FULL
    text, source = document.load(options.text, sizes["lengths"][-1])
    lengths = [n for n in sizes["lengths"] if n <= len(text)]
    if len(lengths) < 2:
        print(f"{source}: expected at least {sizes['lengths'][1]} bytes, but got {len(text)}", file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    report = Report()
    example.run(report)
    lives.run(report, sizes["tokens"])
    passes.run(report, options.output)
    delta_chunk.run(report, options.output)
    scaling.run(report, text, source, lengths, sizes["seconds"], options.output)
    crossover.run(report, sizes["crossover"], sizes["heads"], sizes["crossover_seconds"], options.output)
    decode.run(report, text, sizes["positions"], sizes["decode_seconds"], options.output)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
