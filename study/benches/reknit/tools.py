"""Runs the command, and prints tables and goals."""

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "study"))

from reknit_study._generated import generated as generated  # noqa: E402 - the study need not be installed

REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release/reknit"
REPORT = ",".join(str(seed) for seed in range(101, 121))
DEVELOPMENT = ",".join(str(seed) for seed in range(1, 13))
PATHS = ["--paths", "10"]

LINKS = """[[forward]]
kind = "link"
name = "bottleneck"
rate = "{rate}"
delay = "{delay}"
queue = "{queue} packets"
{more}
[[reverse]]
kind = "link"
rate = "{rate}"
delay = "{delay}"
queue = "1000 packets"
[tcp]
min_rto = "200 ms"
receive_buffer = "16 MiB"
ack_delay = "40 ms"
rtt_samples = "per-ack"
"""


# `linux` brings the receiver of Linux, which acknowledges each segment at first. Beside it, others send to the same.
TO_LINUX = """name = "{variant}-to-linux"
base = "{variant}"
[ack_policy]
algorithm = "linux-acks"
"""


def links(rate: str, delay: str, queue: int, more: str = "") -> str:
    """Return a path that does not reorder; `more` are further settings of its bottleneck."""
    return LINKS.format(rate=rate, delay=delay, queue=queue, more=more)


@dataclass
class Goal:
    """A goal, and what was measured."""

    what: str
    asked: str
    measured: str
    holds: bool


GOALS: list[Goal] = []


def goal(what: str, asked: str, measured: str, *, holds: bool) -> None:
    """Note a goal for the table of goals."""
    GOALS.append(Goal(what, asked, measured, holds))


def run(*arguments: str) -> str:
    """Return what the command prints."""
    quiet = [] if arguments[0] in ("simulate", "variants") else ["--quiet"]
    return subprocess.run([str(REKNIT), *arguments, *quiet], check=True, capture_output=True, text=True).stdout


def compare(*arguments: str) -> list[dict[str, Any]]:
    """Run `reknit compare` and return its results by variant."""
    variants: list[dict[str, Any]] = json.loads(run("compare", *arguments, "--no-oracle", "--json"))["variants"]
    return variants


def beside_linux(folder: Path, variants: list[str], *arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Compare `linux` with variants that send to the same receiver. Return the runs by variant."""
    files = []
    for variant in variants:
        file = folder / f"{variant}-to-linux.toml"
        file.write_text(TO_LINUX.format(variant=variant))
        files += ["--variant-file", str(file)]
    results = compare(*arguments, "--variants", "linux", *files)
    return {one["variant"].removesuffix("-to-linux"): one["runs"] for one in results}


Shares = dict[tuple[str, bool], dict[str, float]]


def matrix(*arguments: str, seeds: int = 2) -> dict[str, Shares]:
    """Run `reknit matrix`. Return `of_oracle` and `of_in_order` of each variant by path, lossless and lossy apart."""
    result = json.loads(run("matrix", *arguments, "--duration", "30 s", "--seeds", str(seeds), "--json"))
    lossy = {path["path"]: path["lossy"] for path in result["paths"]}
    shares: dict[str, Shares] = {}
    for of in ("of_oracle", "of_in_order"):
        runs: dict[tuple[str, bool], dict[str, list[float]]] = {}
        for one in result["runs"]:
            by_path = runs.setdefault((one["variant"], lossy[one["path"]]), {})
            by_path.setdefault(one["path"], []).append(one[of])
        shares[of] = {key: {path: statistics.mean(v) for path, v in value.items()} for key, value in runs.items()}
    return shares


def percent(share: float) -> str:
    """Format a share."""
    return f"{100 * share:.1f} %"


def capped(shares: list[float]) -> float:
    """Mean of shares, each at most 1."""
    return statistics.mean(min(1.0, share) for share in shares)


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    for row in [head, ["---"] * len(head), *rows]:
        print(f"| {' | '.join(row)} |")
    print()
