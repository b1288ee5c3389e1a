#!/usr/bin/env python3
"""Prints docs/generated/Rules.md: the update rules, and which schedule refuses which scan.

Needs the built package in its path. `tools/docs.sh` keeps the page up to date.
"""

from linattn import _linattn

_SCHEDULES = {
    "vectors": "CPU, any schedule of vectors",
    "state_tile": "form `state_tile`: blocks of the state in registers",
    "chunk": "form `chunk`: products of chunks of tokens",
    "segments": "form `segments`: segments of the sequence in parallel",
    "chunk_tasks": "`linattn-expand-form=tasks`: tasks of the ops of a chunk",
    "token_kernel": "GPU, token by token",
    "chunk_kernel": "GPU, chunks on tensor cores",
    "split_kernel": "GPU, chunks of segments in parallel",
}


def _names(clauses):
    return ", ".join(f"`{name}`" for name in clauses)


def _table(head, rows):
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def main():
    print("# Update rules\n")
    print("Sd = Diag(e^decay) S Diag(e^value_decay), and X is Sd, or S with `transition(before)`.\n")
    _table(
        ("rule", "S_t", "takes", "needs"),
        [
            (
                f"`{rule['name']}`", f"`{rule['formula']}`", _names(rule["takes"]),
                (" and " if rule["needs_all"] else " or ").join(f"`{name}`" for name in rule["needs"]),
            )
            for rule in _linattn.rules.list()
        ],
    )  # fmt: skip
    print("\n## Refusals\n")
    print("Loops over scalars, token by token, run every scan. Each other schedule refuses a scan with a")
    print("property of its table, for the first reason that applies. Sizes are checked by the schedules themselves.")
    refusals = _linattn.rules.refusals()
    for schedule in dict.fromkeys(name for name, _, _ in refusals):
        print(f"\n### {_SCHEDULES[schedule]}\n")
        _table(
            ("a scan with", "is refused, since"),
            [(" or ".join(traits), reason) for name, traits, reason in refusals if name == schedule],
        )


if __name__ == "__main__":
    main()
