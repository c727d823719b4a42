"""Flows of `reknit` beside flows of `linux` in one bottleneck, in order; and reordered flows beside others in order."""

import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

from tools import beside_linux, compare, goal, links, percent, table

FLOWS = """path = "path.toml"
duration = "120 s"
seeds = 6
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


def goodput(run: dict[str, Any], group: str) -> float:
    """Goodput of a group of flows."""
    return next(float(one["goodput_mbit_s"]) for one in run["groups"] if one["group"] == group)


def together(runs: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Flows of one variant beside as many of `linux`: share, Jain's index, drop rate."""
    share = statistics.mean(2 * goodput(one, "first") / one["goodput_mbit_s"] for one in runs)
    drops = statistics.mean(one["queue_drops"] / one["segments_sent"] for one in runs)
    return share, statistics.mean(one["jain"] for one in runs), drops


def measure(rate: int, delay: int, queue: int, count: int, red: str) -> tuple[float, float, float, float]:
    """Share, Jain's index, that of `linux` alone, and the drop rate relative to that of `linux` alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "path.toml").write_text(links(f"{rate} Mbit/s", f"{delay} ms", queue, red))
        (folder / "flows.toml").write_text(FLOWS.format(count=count))
        of = beside_linux(folder, ["reknit"], "--scenario", str(folder / "flows.toml"))
    share, jain, drops = together(of["reknit"])
    _, alone, of_linux = together(of["linux"])
    return share, jain, alone, drops / of_linux


# One of twenty segments of the first two flows is up to 100 ms late.
HALF = """path = "path.toml"
duration = "60 s"
seeds = 24
[[flows]]
name = "first"
count = 2
workload = "bulk"
[[flows]]
name = "second"
count = 2
workload = "bulk"
"""
SEGMENTS = 60_000


def late_segments() -> str:
    """Return a stage that delays segments of the first two flows."""
    draw = random.Random(1)
    late = [(flow, number) for flow in (0, 1) for number in range(1, SEGMENTS) if draw.random() < 0.05]
    rules = [f'{{ segment = {n}, flow = {f}, action = "delay", by = "{draw.randint(1, 100)} ms" }}' for f, n in late]
    return '[[forward]]\nkind = "script"\nrules = [' + ", ".join(rules) + "]\n"


def half() -> None:
    """Measure what flows in order lose if two others of four in the same bottleneck are reordered."""
    kept = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "flows.toml").write_text(HALF)
        for late in ("", late_segments()):
            (folder / "path.toml").write_text(links("20 Mbit/s", "25 ms", 80, late))
            runs = compare("--scenario", str(folder / "flows.toml"), "--variants", "reknit")[0]["runs"]
            kept[bool(late)] = [statistics.mean(goodput(one, g) for one in runs) for g in ("first", "second")]
    share = kept[True][1] / kept[False][1]
    print("Two flows in order beside two others: 20 Mbit/s, 50 ms, 80 packets; goodput in Mbit/s:\n")
    cells = [[f"{value:.2f}" for value in kept[late]] for late in (False, True)]
    table(["the others are", "they", "the two"], [["in order", *cells[0]], ["reordered", *cells[1]]])
    goal("flows in order beside reordered ones", "at least 95 % of before", percent(share), holds=share >= 0.95)


def sharing() -> None:
    """Measure drop-tail queues and RED."""
    rows, measured = [], []
    for rate, delay, queue, count in BOTTLENECKS:
        for kind in ("drop-tail", "RED"):
            red = f"red = {{ min = {queue / 4}, max = {3 * queue / 4} }}" if kind == "RED" else ""
            share, jain, alone, drops = measure(rate, delay, queue, count, red)
            measured.append((share, jain, drops))
            what = f"{rate} Mbit/s, {2 * delay} ms, {queue} packets, {kind}, {count} + {count} flows"
            rows.append([what, f"{share:.2f}", f"{jain:.3f}", f"{alone:.3f}", f"{drops:.2f}"])
    shares, jains, drops_of = (list(column) for column in zip(*measured, strict=True))
    print("## Sharing a queue with Linux\n\nAll flows send to the receiver of `linux`.\n")
    head = [
        "bottleneck",
        "goodput / fair share",
        "Jain's index",
        "of `linux` alone",
        "drop rate / that of `linux` alone",
    ]
    table(head, rows)
    fair = min(shares) >= 0.9 and max(shares) <= 1.1
    goal("share of a bottleneck", "0.9 to 1.1", f"{min(shares):.2f} to {max(shares):.2f}", holds=fair)
    goal("Jain's index", "at least 0.98", f"at least {min(jains):.3f}", holds=min(jains) >= 0.98)
    most = max(drops_of)
    goal("drop rate / that of `linux` alone", "at most 1.05", f"at most {most:.2f}", holds=most <= 1.05)
    half()
