#!/usr/bin/env python3
"""Compare the speed of reknit's simulator with that of ns-2 and ns-3, on the base topology of RR-TCP without loss.

Needs ns-2 and ns-3 (Debian: apt install ns2 libns3-dev g++); leaves out the one that is not installed. Builds
reknit with the profiles `release` and `dist`, and with `dist` and a profile of what users run, if llvm-profdata is
installed (tools/profiled.py). Prints a Markdown table and writes it to study/results/simulators.md.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "tools"))
import places
import profiled

from reknit_study._generated import generated

ROOT = Path(__file__).parents[2]
TARGET = ROOT / places.TARGET
# Simulated seconds. ns-3 simulates fewer, and its time is multiplied.
SECONDS, SECONDS_NS3 = 1000, 100
COMPARE = [
    *("compare", "--variants", "sack", "--path", "rr-tcp", "--set", "forward.delays.probability=0"),
    *("--set", "forward.bottleneck.rate=3.9 Mbit/s", "--set", "reverse.bottleneck.rate=3.9 Mbit/s"),
    *("--duration", f"{SECONDS} s", "--seeds", "1", "--no-oracle", "--json", "--quiet"),
]
# `compare` also runs the reference in order, which is the same simulation here.
RUNS = 2
HEAD = """# The speed of reknit, ns-2 and ns-3

{generated}

One transfer over the base topology of RR-TCP without loss, {seconds} s: about 463,000 packets of 1000 bytes over three
hops, window 50, an ACK for each packet. Processor time of one simulation in seconds, with the start of the program:
medians of {rounds} rounds in which the programs take turns. The ratio is the median of those of the rounds.

| program | time | {columns} |
|---|---|{rule}
"""


def processor(command: list[str]) -> float:
    """Return the processor time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(cargo: str, profile: str, folder: Path, flags: str = "") -> list[str]:
    """Build reknit, and return the command to time."""
    command = [cargo, "build", "--profile", profile, "--locked", "-p", "reknit", "--target-dir", str(folder)]
    rust = f"{os.environ.get('RUSTFLAGS', '')} {flags}".strip()
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "RUSTFLAGS": rust})
    return [str(folder / profile / "reknit"), *COMPARE]


def ours(cargo: str) -> dict[str, Callable[[], float]]:
    """Return what measures reknit, by how it is built."""
    builds = {"reknit, release": build(cargo, "release", TARGET), "reknit, `dist`": build(cargo, "dist", TARGET)}
    if counts := profiled.flags(cargo, "dist"):
        builds["reknit, `dist` with a profile (`make dist`)"] = build(cargo, "dist", TARGET / "simulators", counts)
    return {name: lambda command=command: processor(command) / RUNS for name, command in builds.items()}


def others() -> dict[str, Callable[[], float]]:
    """Return what measures the other programs that are installed."""
    benches, programs = Path(__file__).parent, {}
    if shutil.which("ns"):
        ns2 = ["ns", str(benches / "ns2/base.tcl"), "sack", "0", "1", str(SECONDS)]
        programs["ns-2.35"] = lambda: processor(ns2)
    if shutil.which("g++") and Path("/usr/include/ns3").exists():
        program = TARGET / "ns3-base"
        libraries = [f"-lns3-{name}" for name in ("applications", "internet", "network", "point-to-point", "core")]
        source = str(benches / "ns3/base.cc")
        subprocess.run(["g++", "-O2", "-std=c++17", source, "-o", str(program), *libraries], check=True)
        ns3 = [str(program), str(SECONDS_NS3)]
        programs["ns-3"] = lambda: processor(ns3) * SECONDS / SECONDS_NS3
    return programs


def main() -> int:
    """Build, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cargo", nargs="?", default="cargo")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    theirs = others()
    if not theirs:
        print("neither ns-2 nor ns-3 is installed (Debian: apt install ns2 libns3-dev g++); nothing to compare with")
        return 0
    programs = {**ours(arguments.cargo), **theirs}
    rounds = [{name: measure() for name, measure in programs.items()} for _ in range(arguments.rounds)]

    def median(of: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(map(of, rounds))

    rows = []
    for name in programs:
        ratios = [f"{median(lambda r, a=name, b=other: r[b] / r[a]):.1f}" for other in theirs]
        rows.append(f"| {name} | {median(lambda r, a=name: r[a]):.3f} | {' | '.join(ratios)} |")
    text = HEAD.format(
        generated=generated("study/benches/simulators.py"),
        seconds=SECONDS,
        rounds=arguments.rounds,
        columns=" | ".join(f"{other} takes this many times as long" for other in theirs),
        rule="---|" * len(theirs),
    )
    text += "\n".join(rows) + "\n"
    (ROOT / "study/results/simulators.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
