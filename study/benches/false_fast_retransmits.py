#!/usr/bin/env python3
"""Which measure of reordering predicts false fast retransmits? Prints a Markdown table with a row for each path.

usage: study/benches/false_fast_retransmits.py [FILE.toml ...]

Measures all built-in paths, and the paths in the files. Needs the command: make build.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REKNIT = Path(os.environ.get("CARGO_TARGET_DIR") or "target") / "release" / "reknit"
VARIANTS = ("newreno", "sack")


def reknit(*arguments: str) -> list | dict:
    """Run the command and return what it prints as JSON."""
    done = subprocess.run([REKNIT, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def row(path: str) -> str:
    """Measure one path, and the false fast retransmits of two variants on it."""
    forward = reknit("paths", path)[0]
    arrived = forward["packets"] - forward["lost"]
    shares = [100 * forward[field][2] / arrived for field in ("extent_at_least", "n_reordered")]
    options = ("--variants", ",".join(VARIANTS), "--duration", "30s", "--seeds", "2")
    rates = []
    for variant in reknit("compare", "--path", path, *options)["variants"]:
        runs = variant["runs"]
        segments = sum(run["segments_sent"] for run in runs)
        rates.append(1000 * sum(run["false_fast_retransmits"] for run in runs) / max(segments, 1))
    cells = [f"{value:.2f}" for value in (*shares, *rates)]
    return f"| {Path(path).stem} | {' | '.join(cells)} |"


def main() -> int:
    """Print the table."""
    paths = [listed["name"] for listed in reknit("paths")] + sys.argv[1:]
    print("| path | extent >= 3, % | 3-reordered, % | newreno | sack |\n|---|---|---|---|---|")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(row, paths):
            print(line)
    print("\nThe last two columns are false fast retransmits per 1000 segments sent.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
