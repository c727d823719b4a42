#!/usr/bin/env python3
"""Measures `reknit` and writes the tables of docs/reknit: comparison, ablations, first seconds, fairness.

    make build && benches/reknit.py > docs/reknit/results.md

The comparison uses seeds 101 to 120 of the random paths, on which nothing was developed; the ablations, seeds 1 to 12.
All of it is simulated, and takes about 4 minutes on two processors.
"""

import csv
import io
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

REKNIT = Path(__file__).parents[1] / "target/release/reknit"
REPORT = ",".join(str(seed) for seed in range(101, 121))
DEVELOPMENT = "1,2,3,4,5,6,7,8,9,10,11,12"
PATHS = ["--paths", "10"]
COMPARED = ["reknit", "reknit-reno", "linux", "bbr", "bbr1", "pr", "rack", "rr-taes", "dsack-r", "sack"]

# Each changes one part of the algorithm.
ABLATIONS = {
    "`reknit`": "",
    "never reduces at once because of earlier outcomes": "[loss_detector]\nlearns_outcomes = false",
    "never reduces at once because many retransmissions are undecided": "[loss_detector]\nmax_undecided = 1000",
    "slow start goes on while retransmissions are undecided": "[loss_detector]\nholds_slow_start = false",
    "grows by cumulative ACKs": '[congestion_control]\nprogress = "acked"',
    "limited transmit of RFC 3042": '[limited_transmit]\nalgorithm = "rfc3042"',
    "without timestamps": "timestamps = false",
    "retransmissions carry the current timestamp": "[loss_detector]\nrepeats_timestamps = false",
}

LOSSES = ['kind = "loss"', 'kind = "outage"']


def run(*arguments: str) -> str:
    """Return what the command prints."""
    command = [str(REKNIT), *arguments, "--quiet"] if arguments[0] != "simulate" else [str(REKNIT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def matrix(*arguments: str) -> dict[tuple[str, bool], dict[str, float]]:
    """Run `reknit matrix`: for each variant, on lossless and lossy paths, the share of what is possible by path."""
    result = json.loads(run("matrix", *arguments, "--duration", "30 s", "--seeds", "2", "--json"))
    lossy = {path["path"]: path["lossy"] for path in result["paths"]}
    shares: dict[tuple[str, bool], dict[str, list[float]]] = {}
    for one in result["runs"]:
        by_path = shares.setdefault((one["variant"], lossy[one["path"]]), {})
        by_path.setdefault(one["path"], []).append(one["of_possible"])
    return {key: {path: statistics.mean(runs) for path, runs in value.items()} for key, value in shares.items()}


def percent(share: float) -> str:
    """Format a share."""
    return f"{100 * share:.1f} %"


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    for row in [head, ["---"] * len(head), *rows]:
        print(f"| {' | '.join(row)} |")
    print()


def lossless_row(name: str, shares: dict[str, float]) -> list[str]:
    """Capped mean, minimum, and how many paths reach 94 %."""
    values = list(shares.values())
    mean = statistics.mean(min(1.0, value) for value in values)
    good = sum(value >= 0.94 for value in values) / len(values)
    return [name, percent(mean), percent(min(values)), percent(good)]


def lossy_row(name: str, shares: dict[str, float]) -> list[str]:
    """Capped mean, mean, minimum and maximum."""
    values = list(shares.values())
    capped = statistics.mean(min(1.0, value) for value in values)
    return [name, percent(capped), percent(statistics.mean(values)), percent(min(values)), percent(max(values))]


def comparison() -> None:
    """Compare with other variants on the paths of the report."""
    shares = matrix("--seed", REPORT, *PATHS, "--variants", ",".join(COMPARED))
    names = [name for name in COMPARED if (name, False) in shares]
    count = {lossy: len(shares["reknit", lossy]) for lossy in (False, True)}
    print("## Comparison\n\nGoodput as a share of what is possible:\n")
    print(f"{count[False]} paths that lose packets only in queues:\n")
    head = ["variant", "mean, paths capped at 100 %", "minimum", "paths with at least 94 %"]
    table(head, [lossless_row(f"`{name}`", shares[name, False]) for name in names])
    print(f"{count[True]} paths that also lose packets at random:\n")
    head = ["variant", "mean, paths capped at 100 %", "mean", "minimum", "maximum"]
    table(head, [lossy_row(f"`{name}`", shares[name, True]) for name in names])


def ablations() -> None:
    """Change one part at a time."""
    print("## Ablations\n\nEach row changes one part of the algorithm:\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, change) in enumerate(ABLATIONS.items()):
            file = Path(folder) / f"v{number}.toml"
            file.write_text(f'name = "v{number}"\nbase = "reknit"\n{change}\n')
            shares = matrix("--seed", DEVELOPMENT, *PATHS, "--variants", "oracle", "--variant-file", str(file))
            lossless, lossy = (shares[f"v{number}", kind] for kind in (False, True))
            rows.append([*lossless_row(name, lossless)[:3], *lossy_row(name, lossy)[1:3]])
    head = ["", "lossless mean, capped", "lossless minimum", "lossy mean, capped", "lossy mean"]
    table(head, rows)


def received(path: Path, variant: str, since: float, until: float) -> float:
    """Bytes that have arrived between two times, in order or not."""
    arguments = ["--path", str(path), "--variant", variant, "--duration", f"{until} s", "--sample-every", "500 ms"]
    rows = list(csv.DictReader(io.StringIO(run("simulate", *arguments, "--csv"))))
    at = {float(row["time_s"]): float(row["delivered_bytes"]) for row in rows}
    return at[until] - at.get(since, 0.0)


def shares_received(paths: list[Path], since: float, until: float) -> Iterator[float]:
    """Yield what `reknit` delivers as a share of what `oracle` does."""
    for path in paths:
        yield received(path, "reknit", since, until) / max(1.0, received(path, "oracle", since, until))


def phases() -> None:
    """Measure the first seconds on lossless paths, and lossy paths after a warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        run("matrix", "--seed", REPORT, *PATHS, "--write", folder)
        files = sorted(Path(folder).glob("*.toml"))
        is_lossy: Callable[[Path], bool] = lambda file: any(kind in file.read_text() for kind in LOSSES)  # noqa: E731
        first = list(shares_received([file for file in files if not is_lossy(file)], 0.0, 5.0))
        later = list(shares_received([file for file in files if is_lossy(file)], 10.0, 30.0))
    capped = statistics.mean(min(1.0, share) for share in first)
    print("## The first seconds, and after them\n\nBytes received, as a share of what `oracle` receives:\n")
    least = percent(min(first))
    print(f"- Lossless paths, first 5 s: mean {percent(capped)} (paths capped at 100 %), minimum {least}.")
    over = sum(share > 1.3 for share in later)
    mean = percent(statistics.mean(later))
    print(f"- Lossy paths, 10 s to 30 s: mean {mean}; {over} of {len(later)} paths above 130 %.\n")


BOTTLENECK = """[[forward]]
kind = "link"
name = "bottleneck"
rate = "{rate} Mbit/s"
delay = "{delay} ms"
queue = "{queue} packets"
[[reverse]]
kind = "link"
rate = "{rate} Mbit/s"
delay = "{delay} ms"
queue = "1000 packets"
[tcp]
min_rto = "200 ms"
receive_buffer = "16 MiB"
ack_delay = "40 ms"
rtt_samples = "per-ack"
"""
FLOWS = """path = "path.toml"
duration = "120 s"
seeds = 3
[[flows]]
name = "first"
count = {count}
workload = "bulk"
[[flows]]
name = "second"
count = {count}
workload = "bulk"
variant = "linux"
"""
BOTTLENECKS = [(20, 25, 80, 2), (10, 50, 40, 2), (50, 50, 400, 2), (20, 25, 20, 2), (50, 10, 80, 5), (20, 50, 160, 1)]


def together(folder: Path, variant: str) -> tuple[float, float, float]:
    """Flows of `variant` beside as many of `linux`: share, Jain's index, drop rate."""
    runs = json.loads(run("compare", "--scenario", str(folder / "flows.toml"), "--variants", variant, "--json"))
    runs = runs["variants"][0]["runs"]
    goodput = lambda one, group: next(g["goodput_mbit_s"] for g in one["groups"] if g["group"] == group)  # noqa: E731
    share = statistics.mean(2 * goodput(one, "first") / one["goodput_mbit_s"] for one in runs)
    drops = statistics.mean(one["queue_drops"] / one["segments_sent"] for one in runs)
    return share, statistics.mean(one["jain"] for one in runs), drops


def fairness() -> None:
    """Measure flows beside `linux` in one drop-tail queue, in order."""
    print("## Sharing a queue with Linux\n")
    rows = []
    for rate, delay, queue, count in BOTTLENECKS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "path.toml").write_text(BOTTLENECK.format(rate=rate, delay=delay, queue=queue))
            (folder / "flows.toml").write_text(FLOWS.format(count=count))
            share, jain, drops = together(folder, "reknit")
            alone = together(folder, "linux")[2]
        what = f"{rate} Mbit/s, {2 * delay} ms, queue of {queue} packets, {count} + {count} flows"
        rows.append([what, f"{share:.2f}", f"{jain:.3f}", f"{drops / alone:.2f}"])
    table(["bottleneck", "goodput / fair share", "Jain's index", "drop rate / that of `linux` alone"], rows)


if __name__ == "__main__":
    print("<!-- Written by benches/reknit.py; do not edit. -->\n# Measurements of `reknit`\n")
    comparison()
    ablations()
    phases()
    fairness()
