#!/usr/bin/env python3
"""Compare reknit with ns-2.35 on the RR-TCP base topology: packets delivered.

Needs ns-2 (Debian: apt install ns2). Builds reknit. Prints a Markdown table and writes
it to study/results/ns2.md. Equal seeds do not give equal losses, because the two programs use different generators.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
from reknit_study._generated import generated

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release" / "reknit"
VARIANTS = ["reno", "newreno", "sack"]
LOSSES = [0, 0.001, 0.005, 0.01, 0.02, 0.05]
SECONDS = 1000
PATH = [
    "--path",
    "rr-tcp",
    "--set",
    "forward.delays.probability=0",
    "--set",
    "forward.bottleneck.rate=3.9 Mbit/s",
    "--set",
    "reverse.bottleneck.rate=3.9 Mbit/s",
]


def run_ns2(variant: str, loss: float, seed: int) -> int:
    """Return the packets delivered by ns-2."""
    command = ["ns", str(HERE / "base.tcl"), variant, str(loss), str(seed), str(SECONDS)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(output.split()[0])


def run_reknit(variants: list[str], loss: float, seeds: int) -> dict[str, list[int]]:
    """Return the packets delivered by reknit, for each variant and seed."""
    command = [str(REKNIT), "compare", *PATH, "--loss", str(loss), "--variants", ",".join(variants)]
    command += ["--duration", f"{SECONDS} s", "--seeds", str(seeds), "--json", "--quiet"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {row["variant"]: [run["delivered_packets"] for run in row["runs"]] for row in document["variants"]}


def delivered(seeds: int) -> list[str]:
    """Make the table of packets delivered."""
    lines = [
        "| variant | loss | ns-2.35 | reknit | ratio |",
        "|---|---|---|---|---|",
    ]
    for variant in VARIANTS:
        for loss in LOSSES:
            ours = statistics.mean(run_reknit([variant], loss, seeds)[variant])
            theirs = statistics.mean(run_ns2(variant, loss, seed) for seed in range(1, seeds + 1))
            lines.append(f"| {variant} | {loss:.1%} | {theirs:,.0f} | {ours:,.0f} | {ours / theirs:.3f} |")
    return lines


def main() -> int:
    """Run all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cargo", nargs="?", default="cargo")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    if shutil.which("ns") is None:
        print("ns-2 is not installed (Debian: apt install ns2); nothing to compare with")
        return 0
    build = [arguments.cargo, "build", "--release", "--locked", "-p", "reknit"]
    subprocess.run(build, check=True, cwd=ROOT)
    version = subprocess.run(
        ["ns"], input="puts [ns-version]", capture_output=True, text=True, check=False
    ).stdout.strip()
    lines = [
        "# reknit and ns-2 on the RR-TCP base topology",
        "",
        generated("study/benches/ns2/compare.py"),
        "",
        "1000-byte packets, window 50, 3.9 Mbit/s over 50 ms, access links of 10 Mbit/s and",
        f"1 ms, minimum RTO 1 s, an ACK for each packet, {SECONDS} s. Packets delivered, means of {arguments.seeds}",
        f"seeds; ns-2 {version}.",
        "",
        *delivered(arguments.seeds),
    ]
    text = "\n".join(lines) + "\n"
    (ROOT / "study/results/ns2.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
