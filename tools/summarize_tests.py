"""Sums the results of test steps and prints `N passed, N failed[, N skipped]`.

Reads a file of lines `name <tab> exit code <tab> result`, where result is a
JUnit XML file (lit, pytest), a GoogleTest JSON file, `check` for a step that is
one test by itself, or `-` for a step that only counts when it fails. A step
that fails without a failed test to show for it died: that is a failure too.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

PYTEST_FOUND_NO_TESTS = 5
NOT_SELECTED = "Test not selected"


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def fail(self, name):
        self.failed += 1
        self.failures.append(name)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


def read_junit(path):
    count = Count()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        outcome = {child.tag: child.get("message", "") for child in case}
        if "failure" in outcome or "error" in outcome:
            count.fail(f"{case.get('classname')} :: {case.get('name')}")
        elif "skipped" in outcome:
            # Tests that a filter left out are not skipped, just not meant.
            count.skipped += not outcome["skipped"].startswith(NOT_SELECTED)
        else:
            count.passed += 1
    return count


def read_gtest(path):
    count = Count()
    for suite in json.loads(Path(path).read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                count.fail(f"{suite['name']}.{case['name']}")
            elif case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN":
                count.skipped += case.get("result") == "SKIPPED"
            else:
                count.passed += 1
    return count


def read_step(name, exit_code, result):
    if result == "check":
        count = Count(passed=int(exit_code == 0))
    elif result == "-":
        count = Count()
    else:
        try:
            reader = read_gtest if result.endswith(".json") else read_junit
            count = reader(result)
        except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
            count = Count()
            count.fail(f"{name}: no readable results ({error})")
    nothing_to_run = result.endswith("python.xml") and exit_code == PYTEST_FOUND_NO_TESTS
    if exit_code != 0 and count.failed == 0 and not nothing_to_run:
        count.fail(f"{name}: exit code {exit_code}")
    return count


def main(steps):
    total = Count()
    for line in Path(steps).read_text().splitlines():
        name, exit_code, result = line.split("\t")
        total.add(read_step(name, int(exit_code), result))
    if total.passed + total.failed + total.skipped == 0:
        total.fail("no test ran")
    if total.failures:
        print("\nFailed:")
        for failure in total.failures:
            print(f"  {failure}")
    line = f"{total.passed} passed, {total.failed} failed"
    print(line + (f", {total.skipped} skipped" if total.skipped else ""))
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
