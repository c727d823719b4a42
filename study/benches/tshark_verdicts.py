#!/usr/bin/env python3
"""What tshark and tcptrace say about captures of which the truth is known, beside `reknit analyze`.

    cargo run --release -p reknit-study --bin truth -- --variant linux --variant sack --write captures
    study/benches/tshark_verdicts.py captures --out study/results/beside-tshark.md

Each capture has a table beside it: for each packet with data its segment, the number of its transmission, what happened
to it, and what `reknit analyze` says.
"""

import argparse
import csv
import re
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from reknit_study._generated import generated

# The more specific first: tshark adds `retransmission` to the others.
FLAGS = ["spurious_retransmission", "fast_retransmission", "out_of_order", "retransmission"]
HOLE = "lost_segment"
TITLES = {"sender": "At the sender", "middle": "Between the ends", "receiver": "At the receiver"}


HEAD = """# Beside tshark and tcptrace

GENERATED

What `tcp.analysis.*` of tshark VERSION, tcptrace and `reknit analyze` say about the same captures, compared with what
really happened ([truth.md](truth.md)): 24 simulated paths, with the senders `linux` and `sack`.

* *said* counts the packets with this verdict, *right* is the share of them to which it happened, and *found* the share
  of the packets to which it happened that have the verdict.
* tshark says `spurious_retransmission` (spurious), `retransmission` and `fast_retransmission` without
  `spurious_retransmission` (needed), and `out_of_order`. `lost_segment` (lost before) is at the first packet behind a
  gap, and right if a packet in it was lost; reknit's verdict is at the packet that replaces the lost one.
* tshark does not look for losses and reordering behind the point of capture: a capture at the sender shows neither.
  reknit infers both from the acknowledgments.
* reknit has no separate verdict for needed retransmissions: they are those that are not spurious.
"""


@dataclass
class Packet:
    """A packet with data: what happened to it, and what is said."""

    segment: int
    transmission: int
    happened: set[str]
    said: set[str]


@dataclass
class Score:
    """How often something happened, was said, and was said rightly."""

    happened: int = 0
    said: int = 0
    right: int = 0

    def add(self, happened: bool, said: bool) -> None:
        """Add a packet."""
        self.happened += happened
        self.said += said
        self.right += happened and said

    def cells(self) -> str:
        """Return the cells of a table: said, the share that is right, and the share of what happened that is found."""
        right = f"{100 * self.right / self.said:.1f} %" if self.said else ""
        found = f"{100 * self.right / self.happened:.1f} %" if self.happened else ""
        return f"{self.said} | {right} | {found}"


@dataclass
class Result:
    """The scores of the captures made at one place."""

    captures: int = 0
    scores: dict[tuple[str, str], Score] = field(default_factory=lambda: defaultdict(Score))
    counts: Counter = field(default_factory=Counter)

    def add(self, other: "Result") -> None:
        """Add another capture."""
        self.captures += 1
        self.counts.update(other.counts)
        for key, score in other.scores.items():
            mine = self.scores[key]
            mine.happened += score.happened
            mine.said += score.said
            mine.right += score.right


def packets(table: Path) -> dict[int, Packet]:
    """Return the packets with data by their frame."""
    with table.open() as file:
        rows = csv.DictReader(file)
        split = lambda text: set(text.split(";")) - {""}  # noqa: E731
        return {
            int(row["frame"]): Packet(
                int(row["segment"]), int(row["transmission"]), split(row["happened"]), split(row["said"])
            )
            for row in rows
        }


def marks(capture: Path) -> dict[int, set[str]]:
    """Return what tshark marks."""
    names = [*FLAGS, HOLE]
    fields = [part for name in names for part in ("-e", f"tcp.analysis.{name}")]
    command = ["tshark", "-r", str(capture), "-Y", "tcp.analysis.flags", "-T", "fields", "-e", "frame.number", *fields]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = (line.split("\t") for line in lines)
    return {int(row[0]): {name for name, value in zip(names, row[1:], strict=False) if value} for row in rows}


def tcptrace(capture: Path) -> Counter:
    """Return what tcptrace counts, both directions together."""
    text = subprocess.run(["tcptrace", "-l", "-n", str(capture)], check=True, capture_output=True, text=True).stdout
    counts: Counter = Counter()
    for name, label in {"rexmt data pkts": "retransmissions", "outoforder pkts": "out of order"}.items():
        for pair in re.findall(rf"{name}:\s*(\d+)\s+{name}:\s*(\d+)", text):
            counts[label] += sum(map(int, pair))
    return counts


def judge(capture: Path) -> Result:
    """Compare what both say about one capture with what happened."""
    data, marked = packets(capture.with_suffix(".csv")), marks(capture)
    result = Result(counts=tcptrace(capture))
    seen: set[int] = set()
    highest = -1
    # The first packet of each segment that passes: a segment whose first packet is a retransmission was lost before.
    first = {}
    for packet in data.values():
        first.setdefault(packet.segment, packet.transmission)
    for frame, packet in data.items():
        flags = marked.get(frame, set())
        verdict = next((name for name in FLAGS if name in flags), "")
        is_again = packet.transmission > 1
        late = "reordered" in packet.happened
        result.scores["tshark", "spurious"].add("spurious" in packet.happened, verdict == "spurious_retransmission")
        result.scores["reknit", "spurious"].add("spurious" in packet.happened, "spurious" in packet.said)
        result.scores["tshark", "out of order"].add(late, verdict == "out_of_order")
        result.scores["reknit", "out of order"].add(late, "reordered" in packet.said)
        result.scores["tshark", "needed"].add(
            is_again and "spurious" not in packet.happened, verdict in {"fast_retransmission", "retransmission"}
        )
        result.scores["tshark", "fast"].add(is_again, verdict == "fast_retransmission")
        # What happens after the point of capture only shows in the acknowledgments.
        for what in ("lost after", "reordered after"):
            result.scores["tshark", what].add(what in packet.happened, False)
            result.scores["reknit", what].add(what in packet.happened, what in packet.said)
        result.scores["reknit", "lost"].add("lost" in packet.happened, "lost" in packet.said)
        missing = [number for number in range(highest + 1, packet.segment) if number not in seen]
        is_lost = any(first.get(number, 2) > 1 for number in missing)
        result.scores["tshark", "lost"].add(is_lost, HOLE in flags)
        seen.add(packet.segment)
        highest = max(highest, packet.segment)
        result.counts["truth retransmissions"] += is_again
        result.counts["truth out of order"] += late
    return result


ROWS = {
    "sender": [
        ("spurious retransmission", "spurious"),
        ("retransmission that was needed", "needed"),
        ("out of order", "out of order"),
        ("lost behind the point of capture", "lost after"),
        ("out of order behind the point of capture", "reordered after"),
    ],
    "middle": [
        ("spurious retransmission", "spurious"),
        ("retransmission that was needed", "needed"),
        ("out of order", "out of order"),
        ("lost before", "lost"),
        ("lost behind the point of capture", "lost after"),
        ("out of order behind the point of capture", "reordered after"),
    ],
    "receiver": [
        ("spurious retransmission", "spurious"),
        ("retransmission that was needed", "needed"),
        ("out of order", "out of order"),
        ("lost before", "lost"),
    ],
}


def table(place: str, result: Result) -> str:
    """Return the table of one place in Markdown."""
    lines = [
        "| | happened | tshark: said | right | found | reknit: said | right | found |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title, key in ROWS[place]:
        score = result.scores["tshark", key]
        # A retransmission that was needed is, for reknit, one that it does not call spurious.
        mine = result.scores["reknit", key].cells() if ("reknit", key) in result.scores else " | | "
        lines.append(f"| {title} | {score.happened} | {score.cells()} | {mine} |")
    counts = result.counts
    lines.append(
        f"\ntcptrace counts {counts['retransmissions']} retransmissions of {counts['truth retransmissions']}, and "
        f"{counts['out of order']} packets out of order of {counts['truth out of order']}."
    )
    return "\n".join(lines)


def version(command: str) -> str:
    """Return the first line in which a program names its version."""
    finished = subprocess.run([command, "--version"], check=False, capture_output=True, text=True)
    found = re.search(r"(\d+\.\d+\.\d+)", finished.stdout + finished.stderr)
    return found[1] if found else "?"


def main() -> None:
    """Judge all captures of a directory and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    results: dict[str, Result] = {place: Result() for place in TITLES}
    captures = sorted(args.captures.glob("*.pcap"))
    with ThreadPoolExecutor(args.jobs) as threads:
        for capture, result in zip(captures, threads.map(judge, captures), strict=True):
            results[capture.stem.rsplit("-", 1)[1]].add(result)
    sections = [
        f"## {TITLES[place]}: {results[place].captures} captures\n\n{table(place, results[place])}" for place in TITLES
    ]
    head = HEAD.replace("VERSION", version("tshark"))
    head = head.replace("GENERATED", generated("study/benches/tshark_verdicts.py"))
    args.out.write_text(head + "\n" + "\n\n".join(sections) + "\n")


if __name__ == "__main__":
    main()
