#!/usr/bin/env python3
"""Run `reknit analyze` over public captures, and check what it says against the list of them.

    study/benches/public_captures.py CAPTURES --reknit target/release/reknit

CAPTURES is a folder with the files of study/results/public-captures.txt, under any names: they are recognised by their
digests. The list has the packets and TCP connections that Wireshark counts in each.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).parents[1] / "results" / "public-captures.txt"
VERDICTS = ["lost", "reordered", "duplicated", "spurious", "discarded", "cannot_tell"]


@dataclass
class Capture:
    """A line of the list."""

    name: str
    packets: int
    connections: int


def read_list() -> dict[str, Capture]:
    """Return the captures of the list by their digests."""
    captures = {}
    repository = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("repository "):
            repository = line.split()[1]
        elif line and not line.startswith("#"):
            digest, packets, connections, path = line.split(" ", 3)
            captures[digest] = Capture(f"{repository} {path}", int(packets), int(connections))
    return captures


def analyze(reknit: Path, file: Path, limit: float) -> tuple[str, dict, float]:
    """Run `reknit analyze --json`; return how it ended, the document, and the seconds it took."""
    begin = time.monotonic()
    try:
        run = subprocess.run([reknit, "analyze", "--json", file], capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return "no end within the limit", {}, limit
    took = time.monotonic() - begin
    if run.returncode == 0:
        return "answer", json.loads(run.stdout), took
    if run.returncode == 1 and run.stderr.startswith(b"error: "):
        return "error: " + run.stderr.decode(errors="replace").split(": ", 2)[-1].strip(), {}, took
    return f"exit status {run.returncode}", {}, took


def worst(document: dict) -> str:
    """Say which kind of headline the document has."""
    directions = document["directions"]
    if not directions:
        return "no connection carried data"
    first = directions[0]
    counts = {name: first["verdicts"][name] for name in VERDICTS}
    if first["incidents"]:
        return "incident: " + first["incidents"][0]["what"]
    if sum(counts.values()) == 0:
        return "nothing happened"
    committed = sum(counts.values()) - counts["cannot_tell"]
    return "verdicts" if committed else "events without a verdict"


def main() -> None:
    """Print the numbers of the page, then one line for each capture that differs from the list."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("captures", type=Path, help="a folder")
    parser.add_argument("--reknit", type=Path, default=Path("target/release/reknit"))
    parser.add_argument("--limit", type=float, default=60, help="seconds for each capture")
    arguments = parser.parse_args()
    listed = read_list()
    endings: Counter[str] = Counter()
    headlines: Counter[str] = Counter()
    events: Counter[str] = Counter()
    times = []
    different = []
    for file in sorted(path for path in arguments.captures.rglob("*") if path.is_file()):
        capture = listed.pop(hashlib.sha256(file.read_bytes()).hexdigest(), None)
        if capture is None:
            continue
        ending, document, took = analyze(arguments.reknit, file, arguments.limit)
        endings[ending if len(ending) < 40 else "error"] += 1
        times.append(took)
        if ending != "answer":
            different.append(f"{capture.name}: {ending}")
            continue
        headlines[worst(document)] += 1
        for direction in document["directions"]:
            events.update({name: direction["verdicts"][name] for name in VERDICTS})
        if (document["packets"], document["streams"]) != (capture.packets, capture.connections):
            different.append(
                f"{capture.name}: {document['packets']} packets and {document['streams']} connections instead of "
                f"{capture.packets} and {capture.connections}"
            )
    if not times:
        sys.exit(f"error: {arguments.captures}: none of the captures of {LIST.name} is there")
    times.sort()
    total = sum(events.values())
    print(f"{len(times)} captures, {len(listed)} of the list not there; endings: {dict(endings)}")
    print(f"seconds: median {times[len(times) // 2]:.3f}, longest {times[-1]:.3f}, sum {sum(times):.1f}")
    print(f"headlines: {dict(headlines.most_common())}")
    print(f"events: {total}, {100 * (1 - events['cannot_tell'] / max(total, 1)):.1f} % with a verdict: {dict(events)}")
    print("\n".join(different))


if __name__ == "__main__":
    main()
