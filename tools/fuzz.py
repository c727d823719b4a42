#!/usr/bin/env python3
"""Run the fuzzers: python3 tools/fuzz.py [TARGET...] [--minutes N]; `make fuzz` runs all of them.

Needs nightly Rust and cargo-fuzz (`cargo install cargo-fuzz`). Each target runs for the given time, begins with the
inputs in fuzz/seeds, and keeps new ones in fuzz/corpus. A defect ends the target, and the input is in fuzz/artifacts.
CONTRIBUTING.md says what to do then.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
TARGET = re.compile(r'Target \{ name: "(\w+)".*?also: (?:None|Some\("(.*?)"\))')
TARGETS = dict(TARGET.findall((ROOT / "crates/fuzz/src/lib.rs").read_text()))
LONGEST = {"captures": 20_000, "packets": 2_000}
TEXTS = {"paths", "variants", "scenarios", "scripts"}


def number(pattern: str, text: str) -> int:
    """Return the number after the last match of `pattern`, or 0."""
    found = re.findall(rf"{pattern}\D*(\d+)", text)
    return int(found[-1]) if found else 0


def fuzz(name: str, minutes: float) -> bool:
    """Run a target and print its counts. Return false if it found a defect."""
    corpus = FUZZ / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    also = [str(ROOT / TARGETS[name])] if TARGETS[name] else []
    # No unsafe code of reknit takes part, so a sanitizer would find nothing.
    command = ["cargo", "+nightly", "fuzz", "run", "--sanitizer", "none", "--fuzz-dir", str(FUZZ), name]
    command += [str(corpus), str(FUZZ / "seeds" / name), *also, "--", f"-max_total_time={int(minutes * 60)}"]
    command += [f"-max_len={LONGEST.get(name, 4000)}", "-timeout=20", "-rss_limit_mb=1500", "-malloc_limit_mb=500"]
    command += ["-print_final_stats=1", *([f"-dict={FUZZ / 'words.dict'}"] if name in TEXTS else [])]
    process = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    log = process.stderr
    counts = f"{number('executed_units:', log):,} inputs, {number('exec_per_sec:', log):,} per second"
    counts += f", coverage {number(' cov:', log):,}"
    if segments := number("segments so far:", log):
        counts += f", {segments:,} segments"
    print(f"{name:10} {counts}", flush=True)
    if process.returncode:
        print(log[-3000:], file=sys.stderr)
    return process.returncode == 0


def main() -> int:
    """Run the targets that the arguments name, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=10, help="minutes for each target (10)")
    args = parser.parse_args()
    if unknown := set(args.targets) - set(TARGETS):
        parser.error(f"unknown target {', '.join(sorted(unknown))}; allowed are {', '.join(TARGETS)}")
    results = [fuzz(name, args.minutes) for name in args.targets or TARGETS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
