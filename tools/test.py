#!/usr/bin/env python3
"""Run all tests of the crates and of the Python package. The last line is: N passed, N failed."""

import re
import subprocess
import sys

CARGO = re.compile(r"^test result: .* (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<ignored>\d+) ignored")
PYTEST = re.compile(r"(?P<count>\d+) (?P<what>passed|failed|error|errors|skipped)\b")
PYTEST_END = re.compile(r"^(=+ )?\d+ (passed|failed|error|errors|skipped)\b.* in [\d.]+s")


def count(line: str) -> tuple[int, int, int]:
    """Return the numbers of passed, failed and ignored tests in the line, or zeros."""
    if found := CARGO.match(line):
        return int(found["passed"]), int(found["failed"]), int(found["ignored"])
    if not PYTEST_END.match(line):
        return 0, 0, 0
    told = {found["what"].removesuffix("s"): int(found["count"]) for found in PYTEST.finditer(line)}
    return told.get("passed", 0), told.get("failed", 0) + told.get("error", 0), told.get("skipped", 0)


def run(command: list[str]) -> tuple[tuple[int, int, int], bool]:
    """Run a command and print its output. Return the counts, and whether it ended with an error but no failed test."""
    passed = failed = ignored = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            more = count(line)
            passed, failed, ignored = passed + more[0], failed + more[1], ignored + more[2]
    return (passed, failed, ignored), process.returncode != 0 and failed == 0


def main() -> int:
    """Run both and add up the results."""
    cargo = sys.argv[1] if len(sys.argv) > 1 else "cargo"
    crates, crates_broke = run([cargo, "test", "--workspace", "--locked", "--no-fail-fast"])
    package, package_broke = run([sys.executable, "tools/python.py", "--test"])
    passed, failed, ignored = (a + b for a, b in zip(crates, package, strict=True))
    broken = crates_broke or package_broke
    if broken:
        print("some tests could not be run")
    note = f", {ignored} ignored" if ignored else ""
    print(f"\n{passed} passed, {failed} failed{note}")
    return 1 if failed or broken or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
