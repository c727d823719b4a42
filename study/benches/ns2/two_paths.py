#!/usr/bin/env python3
"""Compare reknit with ns-2.35 under reordering: packets take two paths in turn, in both directions.

Needs ns-2 (Debian: apt install ns2). Builds reknit. Prints a Markdown table and writes it to
study/results/ns2-two-paths.md. Takes about ten minutes on two processors.

With packets in turn, a transfer depends on which path each packet happens to take, and on which of two packets arrives
first where they meet. Without the jitter of both programs' first links, that is often at exactly the same time, and
which is first depends on how a program adds up times. So each row is a mean over many runs, each with another jitter,
another distance within 10 % of the nominal one, another on the way back, another first path, and another starting time.
"""

import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
from reknit_study._generated import generated

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release" / "reknit"
LONGER = [5, 10, 20, 40, 80, 160]
# The farther, the more the runs differ.
RUNS = {5: 8, 10: 16, 20: 32, 40: 64, 80: 128, 160: 192}
SECONDS = 100
# For each variant of ns-2, variants of reknit: the first is built like it, others are for comparison.
VARIANTS = {"reno": ["reno"], "newreno": ["newreno-ns2", "newreno"], "sack": ["sack-ns2", "sack"]}
# What ns-2 does differently: it halves whole segments. With SACK, only ACKs that do not advance SND.UNA start recovery,
# or let new data be sent before it.
FILES = {
    "newreno-ns2": """name = "newreno-ns2"
base = "newreno"
[loss_response]
whole_segments = true
""",
    "sack-ns2": """name = "sack-ns2"
base = "sack"
[loss_detector]
start = "repeated-acks"
[limited_transmit]
algorithm = "repeated-acks"
[loss_response]
whole_segments = true
""",
}
HEAD = """# reknit and ns-2 under reordering

{generated}

The RR-TCP base topology, but with two paths of 3.9 Mbit/s, which packets
take in turn in both directions: 50 ms, and longer. 1000-byte packets, window 50, minimum RTO 1 s, an ACK per packet,
{seconds} s. In both programs the delay of the first link varies by up to 100 µs. Packets delivered: mean with its
standard error, and median, of 8 (5 ms) to 192 runs (160 ms).
[Why they differ](fidelity-engine.md#reknit-and-ns-2-under-reordering).

| longer by | ns-2.35 | reknit | mean of ns-2.35 | mean of reknit | ratio | medians | ratio | retransmissions |
|---|---|---|---|---|---|---|---|---|
"""
DIRECTION = """
[[{name}]]
kind = "link"
rate = "10 Mbit/s"
delay = "1 ms"
queue = "50 packets"

[[{name}]]
kind = "flutter"
interval = "constant(50 ms)"
delay = "uniform(0 us, 100 us)"

[[{name}]]
kind = "multipath"
choice = "round-robin"
paths = [
    {{ rate = "3.9 Mbit/s", delay = "50 ms", queue = "50 packets" }},
    {{ rate = "3.9 Mbit/s", delay = "{delay} ms", queue = "50 packets" }},
]

[[{name}]]
kind = "link"
rate = "10 Mbit/s"
delay = "1 ms"
queue = "50 packets"
"""
TCP = """
[tcp]
mss = 960                    # 1000 bytes on the wire
initial_window = 2
max_window = 50
max_burst = "none"
timestamps = false
receive_buffer = "60000 B"   # more than the window, and small enough for a field without scaling, as ns-2 has none
ack_every = 1
byte_counting = false
decrease_of = "cwnd"
initial_rto = "6 s"
min_rto = "1 s"
rto_tick = "100 ms"
retransmit = "any-hole"      # of those without SACK, none has more than one hole
"""

# Packets delivered, and retransmitted.
Run = tuple[int, int]


def distances(longer: int) -> list[tuple[float, float]]:
    """Return how much longer the second path is in each run, there and back."""
    numbers = random.Random(longer)
    return [(longer * numbers.uniform(0.9, 1.1), longer * numbers.uniform(0.9, 1.1)) for _ in range(RUNS[longer])]


def run_ns2(variant: str, number: int, there: float, back: float) -> Run:
    """Run ns-2."""
    how = [f"{number % 16 / 160:.3f}", str(SECONDS), str(number % 2), str(number // 2 % 2), str(number + 1)]
    command = ["ns", str(HERE / "two_paths.tcl"), variant, f"{there:.4f}", f"{back:.4f}", *how]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    delivered, _, retransmitted, _ = (int(word) for word in output.split())
    return delivered, retransmitted


def trace(variant: str, longer: int, seed: int) -> list[str]:
    """Return the lines of ns-2's trace of a transfer."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "trace"
        where = [f"{longer:.4f}", f"{longer * 1.037:.4f}", "0", str(SECONDS), "0", "0", str(seed)]
        command = ["ns", str(HERE / "two_paths.tcl"), variant, *where, str(file)]
        subprocess.run(command, capture_output=True, check=True)
        return file.read_text().splitlines()


def windows_of_one(longer: int) -> tuple[int, int]:
    """Count fast retransmits in ns-2's traces of eight NewReno transfers, and those that leave a window of one segment.

    RFC 5681 (3.2, equation 4) leaves two segments at least.
    """
    total = ones = 0
    for seed in range(8):
        third = False
        for line in trace("newreno", longer, seed):
            *_, name, value = line.split()
            if name == "cwnd_" and third:
                total += 1
                ones += float(value) < 2
            third = (name, value) == ("dupacks_", "3")
    return total, ones


def lost_by_rfc6675(longer: int) -> tuple[int, int]:
    """Read ns-2's trace of a transfer with SACK: how many segments RFC 6675 calls lost, and how many ns-2 resends.

    The first missing segment is lost when three segments above it are known to have arrived (IsLost).
    """
    arrived: set[int] = set()
    known: set[int] = set()
    reported: dict[str, set[int]] = {}
    acked = highest = -1
    lost, resent = set(), set()
    for line in trace("sack", longer, 1):
        if line[0] not in "+-rd":
            continue  # a variable of the sender
        what, _, begin, end, kind, _, _, _, _, _, number, packet = line.split()
        sequence = int(number)
        if (what, end, kind) == ("r", "5", "tcp"):
            arrived.add(sequence)
        elif (what, begin, kind) == ("+", "5", "ack"):
            arrived = {segment for segment in arrived if segment > sequence}
            reported[packet] = set(arrived)
        elif (what, end, kind) == ("r", "0", "ack"):
            acked = max(acked, sequence)
            known = {segment for segment in known | reported.pop(packet) if segment > acked}
            if len(known) >= 3:
                lost.add(acked + 1)
        elif (what, begin, kind) == ("+", "0", "tcp"):
            if sequence <= highest:
                resent.add(sequence)
            highest = max(highest, sequence)
    return len(lost), len(resent & lost)


def run_reknit(variant: str, number: int, there: float, back: float) -> Run:
    """Run reknit; the seed draws the first paths and the start."""
    with tempfile.TemporaryDirectory() as name:
        path, own = Path(name) / "two-paths.toml", Path(name) / "own.toml"
        delays = {"forward": 50 + there, "reverse": 50 + back}
        directions = [DIRECTION.format(name=name, delay=f"{delay:.4f}") for name, delay in delays.items()]
        path.write_text("".join(directions) + TCP)
        own.write_text(FILES.get(variant, ""))
        command = [str(REKNIT), "simulate", "--path", str(path), "--variant", variant, "--seed", str(number + 1)]
        command += ["--variant-file", str(own)] if variant in FILES else []
        command += ["--duration", f"{SECONDS} s", "--json"]
        run = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["run"]
    return run["delivered_packets"], run["retransmissions"]["total"]


def all_runs(program: Callable[..., Run], variant: str, longer: int) -> list[Run]:
    """Run a program as often as this distance asks for."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        runs = [(number, *at) for number, at in enumerate(distances(longer))]
        return list(threads.map(lambda run: program(variant, *run), runs))


def row(longer: int, theirs: str, ns2: list[Run], ours: str, reknit: list[Run]) -> str:
    """Make a row of the table."""
    delivered = [[run[0] for run in runs] for runs in (ns2, reknit)]
    means = [statistics.mean(counts) for counts in delivered]
    errors = [statistics.stdev(counts) / len(counts) ** 0.5 for counts in delivered]
    medians = [statistics.median(counts) for counts in delivered]
    repairs = [statistics.mean(run[1] for run in runs) for runs in (ns2, reknit)]
    cells = [f"{longer} ms", theirs, f"`{ours}`"]
    cells += [f"{mean:,.0f} ± {error:,.0f}" for mean, error in zip(means, errors, strict=True)]
    cells += [f"{means[1] / means[0]:.2f}", f"{medians[0]:,.0f} / {medians[1]:,.0f}"]
    cells += [f"{medians[1] / medians[0]:.2f}", f"{repairs[0]:.0f} / {repairs[1]:.0f}"]
    return f"| {' | '.join(cells)} |"


def counted(about: str, head: list[str], count: Callable[[int], tuple[int, int]]) -> list[str]:
    """Make a table of two counts for each distance."""
    rows = ["", about, "", f"| longer by | {' | '.join(head)} |", "|---|---|---|"]
    for longer in LONGER:
        first, second = count(longer)
        rows.append(f"| {longer} ms | {first:,} | {second:,} |")
    return rows


def table() -> str:
    """Run everything, and make the page."""
    rows = []
    for theirs, longer in itertools.product(VARIANTS, LONGER):
        ns2 = all_runs(run_ns2, theirs, longer)
        for ours in VARIANTS[theirs]:
            rows.append(row(longer, theirs, ns2, ours, all_runs(run_reknit, ours, longer)))
            print(rows[-1], file=sys.stderr, flush=True)
    rows += counted(
        "In ns-2's trace of one transfer with SACK: segments that are lost by RFC 6675, because three above them are\n"
        "known to have arrived (`IsLost`), and how many of them ns-2 retransmits.",
        ["lost by RFC 6675", "retransmitted by ns-2"],
        lost_by_rfc6675,
    )
    rows += counted(
        "In ns-2's traces of eight transfers with NewReno: fast retransmits, and those that leave a window of one\n"
        "segment. RFC 5681 leaves two segments at least.",
        ["fast retransmits", "window of one segment"],
        windows_of_one,
    )
    return HEAD.format(seconds=SECONDS, generated=generated("study/benches/ns2/two_paths.py")) + "\n".join(rows) + "\n"


def main() -> int:
    """Make the table."""
    if shutil.which("ns") is None:
        print("ns-2 is not installed (Debian: apt install ns2); nothing to compare with")
        return 0
    cargo = sys.argv[1] if len(sys.argv) > 1 else "cargo"
    subprocess.run([cargo, "build", "--release", "--locked", "-p", "reknit"], check=True, cwd=ROOT)
    text = table()
    (ROOT / "study/results/ns2-two-paths.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
