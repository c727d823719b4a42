#!/usr/bin/env python3
"""Run all tests of the crates and of the Python package. The last line is: N passed, N failed, or with ", N skipped".

A test that needs something that this machine does not have is skipped and listed at the end; with CI set, it fails.
`--bare` runs only the tests that start programs, with a PATH on which there are no programs but `sh` and a few that
every machine has. None may fail, and for each program some test must say that it needs it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

CARGO = re.compile(r"^test result: .* (?P<passed>\d+) passed; (?P<failed>\d+) failed; ")
IGNORED = re.compile(r"^test (?P<name>.*) \.\.\. ignored")
PYTEST = re.compile(r"(?P<count>\d+) (?P<what>passed|failed|error|errors)\b")
PYTEST_END = re.compile(r"^(=+ )?\d+ (passed|failed|error|errors|skipped)\b.* in [\d.]+s")

# Without these, nothing runs.
EVERYWHERE = ("cat", "chmod", "cp", "env", "grep", "id", "mkfifo", "mknod", "sh", "sleep", "true")
# What tests ask for.
PROGRAMS = {"cc", "chromium", "curl", "dig", "ip", "iperf3", "mount", "nft", "ping"}
PROGRAMS |= {"python3", "rustc", "setpriv", "setsid", "tshark", "unshare"}
# These transfers with the kernel start no program, and take minutes.
LONG = ("every_variant_against_the_kernel", "_100_mb", "_per_cent", "two_paths_50_ms_apart", "the_kernel_differs_only")
# A test with one of these starts programs other than reknit.
STARTS_PROGRAMS = re.compile(
    r"\bmachine::|\bin_namespace\b|Command::new\((?!env!\(\"CARGO_BIN_EXE)|\bopen_(page|url)\b"
)


@dataclass
class Result:
    """Tests that passed or failed, and for each skipped one what it needs."""

    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)
    is_broken: bool = False

    def add(self, line: str) -> None:
        """Count the tests in a line of the output, if it has any."""
        if found := CARGO.match(line):
            self.passed += int(found["passed"])
            self.failed += int(found["failed"])
        elif found := IGNORED.match(line):
            self.skipped.append(f"{found['name']}: ignored")
        elif PYTEST_END.match(line):
            counts = {found["what"].removesuffix("s"): int(found["count"]) for found in PYTEST.finditer(line)}
            self.passed += counts.get("passed", 0)
            self.failed += counts.get("failed", 0) + counts.get("error", 0)


def run(command: list[str], *, skips_pass: bool, **environment: str) -> Result:
    """Run tests and print their output. With `skips_pass`, the harness counts skipped tests as passed."""
    result = Result()
    with tempfile.NamedTemporaryFile("r", prefix="skipped-tests-") as file:
        variables = {**os.environ, "SKIPPED_TESTS": file.name, **environment}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables
        ) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                result.add(line)
        # A test may note it several times.
        noted = sorted(set(file.read().splitlines()))
    if skips_pass:
        result.passed -= len({note.partition(": ")[0] for note in noted})
    result.skipped += noted
    result.is_broken = process.returncode != 0 and result.failed == 0
    return result


def run_all(cargo: str) -> list[Result]:
    """Run everything."""
    crates = run([cargo, "test", "--workspace", "--locked", "--no-fail-fast"], skips_pass=True)
    package = run([sys.executable, "tools/python.py", "--test"], skips_pass=False)
    return [crates, package]


def run_bare(cargo: str, folder: Path) -> list[Result]:
    """Run the tests that start programs, with this folder as their PATH."""
    for name in EVERYWHERE:
        program = shutil.which(name)
        assert program, f"this machine has no {name}"
        (folder / name).symlink_to(program)
    env = shutil.which("env")
    starting = [file for file in Path().glob("crates/*/tests/*.rs") if STARTS_PROGRAMS.search(file.read_text())]
    # Cargo and the compiler keep their PATH.
    command = [cargo, "test", "--locked", "--no-fail-fast", "--workspace"]
    command += ["--config", f'target."cfg(unix)".runner = ["{env}", "PATH={folder}"]']
    command += [word for name in sorted({file.stem for file in starting}) for word in ("--test", name)]
    command += ["--", *(word for name in LONG for word in ("--skip", name))]
    crates = run(command, skips_pass=True)
    tests = [file for place in ("python/tests", "tests", "study/tests") for file in Path(place).glob("test_*.py")]
    pages = [str(file) for file in tests if STARTS_PROGRAMS.search(file.read_text())]
    python = [sys.executable, "tools/python.py", "--test", "--path", str(folder), *pages]
    return [crates, run(python, skips_pass=False)]


def unnamed(skipped: list[str]) -> list[str]:
    """Return the programs that no skipped test has named."""
    named = {word for note in skipped for word in re.split(r"\W+", note)}
    # Without its packages, no test of the Python package has run.
    return [name for name in sorted(PROGRAMS) if name not in named and not (name == "chromium" and "packages" in named)]


def main() -> int:
    """Run the tests and add up the results."""
    is_bare = "--bare" in sys.argv[1:]
    cargo = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "cargo")
    if is_bare:
        with tempfile.TemporaryDirectory() as folder:
            results = run_bare(cargo, Path(folder))
    else:
        results = run_all(cargo)
    passed, failed = sum(result.passed for result in results), sum(result.failed for result in results)
    skipped = [note for result in results for note in result.skipped]
    broken = any(result.is_broken for result in results)
    if broken:
        print("some tests could not be run")
    print("\n" + "".join(f"skipped: {note}\n" for note in skipped), end="")
    unasked = unnamed(skipped) if is_bare else []
    if unasked:
        print(f"no test says that it needs {', '.join(unasked)}")
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed or broken or unasked or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
