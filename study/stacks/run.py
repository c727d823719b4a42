"""Compare reknit-net with smoltcp and netstack-smoltcp, live, and write study/results/stacks.md. Needs root.

make build && sudo python study/stacks/run.py            a quarter of an hour
sudo python study/stacks/run.py --rounds 1 --seconds 5   to try it
"""

import argparse
import datetime
import functools
import itertools
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "study"))

from reknit_study._generated import generated  # noqa: E402 - the study need not be installed

CRATE = ROOT / "study/stacks"
TARGET = ROOT / "target/stacks"
PROGRAM = TARGET / "release/reknit-stacks"
REKNIT = ROOT / "target/release/reknit"
PAGE = ROOT / "study/results/stacks.md"
# Names of columns, and the programs with their arguments.
STACKS = {
    "reknit-net": f"{PROGRAM} reknit",
    "reknit-net, offload": f"{PROGRAM} reknit-offload",
    "smoltcp": f"{PROGRAM} smoltcp",
    "netstack-smoltcp": f"{PROGRAM} netstack",
    "netstack-smoltcp, offload": f"{PROGRAM} netstack-offload",
    "netstack-smoltcp with CUBIC": f"{PROGRAM}-cubic netstack",
}
# Names of rows, and options of `reknit emulate`. With none, nothing is between the ends.
PATHS: dict[str, list[str]] = {
    "the device alone": [],
    "`clean`, 1 % loss": ["clean", "--loss", "1 %"],
    "`two-paths-50ms`": ["two-paths-50ms"],
    "`two-paths-200ms`": ["two-paths-200ms"],
    "`random-delay`": ["random-delay"],
}
REORDERING = list(PATHS)[2:]
# Does the stack send (true) or receive?
DIRECTIONS = {"sends": True, "receives": False}
# Seconds without a path: the processor limits the rate.
SHORT = 3
# The stack does not read what curl asks for, and answers as HTTP 0.9 does: with data.
CURL = ["curl", "--silent", "--http0.9", "--output", "/dev/null", "--write-out", "%{size_download}", "10.88.0.2"]
UPLOAD = ["--upload-file", "/dev/zero", "--header", "Expect:"]

# For a direction, path and stack: Mbit/s, and Mbit per second of processor time, of all runs.
Results = dict[tuple[str, str, str], list[tuple[float, float]]]


def build() -> None:
    """Build the program with a congestion control for netstack-smoltcp, then with that crate as it is."""
    for features, suffix in (["--features", "netstack-cubic"], "-cubic"), ([], ""):
        command = ["cargo", "build", "--release", "--locked", "--target-dir", str(TARGET), *features]
        subprocess.run(command, cwd=CRATE, check=True)
        if suffix:
            shutil.copy(PROGRAM, f"{PROGRAM}{suffix}")


def measure(stack: str, direction: str, path: list[str], seconds: int, seed: int) -> tuple[float, float]:
    """Transfer once; return Mbit/s, and Mbit per second of the stack's processor time."""
    sends = DIRECTIONS[direction]
    curl = shlex.join([*CURL, "--max-time", str(seconds), *([] if sends else UPLOAD)])
    curl = f"{curl}; sleep 1"  # the stack's time begins later
    with tempfile.NamedTemporaryFile("r") as printed:
        serve = f"{stack} {direction} {seconds} > {printed.name}"
        command = ["unshare", "--net", "sh", "-c", f"{serve} & sleep 0.5; {curl}"]
        if path:
            command = [str(REKNIT), "emulate", "--quiet", "--outside", "none", "--seed", str(seed)]
            command += ["--down" if sends else "--up", *path]
            command += ["--server", f"sysctl -qw net.ipv4.ip_forward=1; {serve}", "--", "sh", "-c", curl]
        downloaded = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
        handled, used = map(int, printed.read().split())
    size = (int(downloaded) if sends else handled) * 8 / 1e6
    return size / seconds, size / (used / 1e6)


def table(results: Results, direction: str, number: int) -> str:
    """Return a table of medians: of goodput (0), or of what a second of processor time carries (1)."""
    rows = [["path", *STACKS], ["---", *["--:"] * len(STACKS)]]
    for path in PATHS:
        cells = [statistics.median(run[number] for run in results[direction, path, stack]) for stack in STACKS]
        rows.append([path, *(f"{cell:,.0f}" if cell >= 10 else f"{cell:.2f}" for cell in cells)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def ratios(results: Results, number: int, ours: str, others: list[str], paths: list[str]) -> str:
    """Return the smallest and the largest ratio of one stack's downloads to those of others."""

    def median(path: str, stack: str) -> float:
        return statistics.median(run[number] for run in results["sends", path, stack])

    found = [median(path, ours) / median(path, stack) for path in paths for stack in others]
    return " to ".join(f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" for ratio in (min(found), max(found)))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="transfers of each, with seeds of their own (default: 3)")
    parser.add_argument("--seconds", type=int, default=10, help="seconds of each over a path (default: 10)")
    options = parser.parse_args()
    build()
    results: Results = {}
    for (path, arguments), direction, (name, stack) in itertools.product(PATHS.items(), DIRECTIONS, STACKS.items()):
        one = functools.partial(measure, stack, direction, arguments, options.seconds if arguments else SHORT)
        # Over a path, the transfers run at the same time: they hardly need the processor.
        with ThreadPoolExecutor(options.rounds if arguments else 1) as pool:
            results[direction, path, name] = list(pool.map(one, range(1, options.rounds + 1)))
        print(
            path,
            direction,
            name,
            *(f"{rate:.2f} {per:.0f}," for rate, per in results[direction, path, name]),
            flush=True,
        )
    lock = re.findall(r'"((?:netstack-)?smoltcp)"\nversion = "(.*)"', (CRATE / "Cargo.lock").read_text())
    values = {
        "GENERATED": generated(shlex.join(["python", "study/stacks/run.py", *sys.argv[1:]])),
        "SMOLTCP": ratios(results, 0, "reknit-net", ["smoltcp"], REORDERING),
        "CUBIC": ratios(results, 0, "reknit-net", ["netstack-smoltcp with CUBIC"], REORDERING),
        "NETSTACK": ratios(results, 0, "reknit-net", ["netstack-smoltcp"], REORDERING),
        "SEGMENTS": ratios(results, 1, "reknit-net", ["smoltcp", "netstack-smoltcp"], ["the device alone"]),
        "OFFLOAD": ratios(results, 1, "reknit-net, offload", ["smoltcp", "netstack-smoltcp"], ["the device alone"]),
        **{f"{direction}-{number}": table(results, direction, number) for direction in DIRECTIONS for number in (0, 1)},
        "ROUNDS": str(options.rounds),
        "SECONDS": str(options.seconds),
        "SHORT": str(SHORT),
        "CONTROL": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(),
        "VERSIONS": ", ".join(f"{name} {version}" for name, version in lock),
        "MACHINE": f"{os.cpu_count()} processors, Linux {os.uname().release}",
        "DATE": str(datetime.datetime.now(tz=datetime.UTC).date()),
    }
    text = (CRATE / "page.md").read_text()
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value.strip())
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
