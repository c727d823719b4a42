#!/usr/bin/env python3
"""Run all tests and close with one line: N passed, N failed."""

import re
import subprocess
import sys

RESULT = re.compile(r"^test result: .* (\d+) passed; (\d+) failed; (\d+) ignored")


def main() -> int:
    """Pass the output through and add up the results."""
    cargo = sys.argv[1] if len(sys.argv) > 1 else "cargo"
    command = [cargo, "test", "--workspace", "--locked", "--no-fail-fast"]
    passed = failed = ignored = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := RESULT.match(line):
                passed += int(found[1])
                failed += int(found[2])
                ignored += int(found[3])
    broken = process.returncode != 0 and failed == 0
    if broken:
        print("the tests could not be run to their end")
    note = f", {ignored} ignored" if ignored else ""
    print(f"\n{passed} passed, {failed} failed{note}")
    return 1 if failed or broken or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
