"""Flows of `reknit` beside flows of `linux` in one bottleneck, in order."""

import statistics
import tempfile
from pathlib import Path

from tools import compare, goal, links, table

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
# Rate in Mbit/s, one-way delay in ms, queue in packets, flows of each kind.
BOTTLENECKS = [
    (20, 25, 80, 2),
    (10, 50, 40, 2),
    (50, 50, 400, 2),
    (20, 25, 20, 2),
    (50, 10, 80, 5),
    (20, 50, 160, 1),
]


def together(folder: Path, variant: str) -> tuple[float, float, float]:
    """Flows of `variant` beside as many of `linux`: share, Jain's index, drop rate."""
    runs = compare("--scenario", str(folder / "flows.toml"), "--variants", variant)[0]["runs"]
    goodput = lambda one, group: next(g["goodput_mbit_s"] for g in one["groups"] if g["group"] == group)  # noqa: E731
    share = statistics.mean(2 * goodput(one, "first") / one["goodput_mbit_s"] for one in runs)
    drops = statistics.mean(one["queue_drops"] / one["segments_sent"] for one in runs)
    return share, statistics.mean(one["jain"] for one in runs), drops


def measure(rate: int, delay: int, queue: int, count: int, red: str) -> tuple[float, float, float]:
    """Share, Jain's index, and the drop rate relative to that of `linux` alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "path.toml").write_text(links(f"{rate} Mbit/s", f"{delay} ms", queue, red))
        (folder / "flows.toml").write_text(FLOWS.format(count=count))
        share, jain, drops = together(folder, "reknit")
        return share, jain, drops / together(folder, "linux")[2]


def sharing() -> None:
    """Measure drop-tail queues and RED."""
    rows, measured = [], []
    for rate, delay, queue, count in BOTTLENECKS:
        for kind in ("drop-tail", "RED"):
            red = f"red = {{ min = {queue / 4}, max = {3 * queue / 4} }}" if kind == "RED" else ""
            share, jain, drops = measure(rate, delay, queue, count, red)
            measured.append((share, jain, drops))
            what = f"{rate} Mbit/s, {2 * delay} ms, {queue} packets, {kind}, {count} + {count} flows"
            rows.append([what, f"{share:.2f}", f"{jain:.3f}", f"{drops:.2f}"])
    shares, jains, drops_of = (list(column) for column in zip(*measured, strict=True))
    print("## Sharing a queue with Linux\n")
    table(["bottleneck", "goodput / fair share", "Jain's index", "drop rate / that of `linux` alone"], rows)
    fair = min(shares) >= 0.9 and max(shares) <= 1.1
    goal("share of a bottleneck", "0.9 to 1.1", f"{min(shares):.2f} to {max(shares):.2f}", holds=fair)
    goal("Jain's index", "at least 0.98", f"at least {min(jains):.3f}", holds=min(jains) >= 0.98)
    most = max(drops_of)
    goal("drop rate / that of `linux` alone", "at most 1.05", f"at most {most:.2f}", holds=most <= 1.05)
