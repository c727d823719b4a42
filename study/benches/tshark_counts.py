#!/usr/bin/env python3
"""Compares `linux` with the live kernel as a network analyst sees them: by what tshark counts in captures.

    sudo study/benches/tshark_counts.py measure PATH.toml... --out counts.jsonl     # 15 s each, in real time
    study/benches/tshark_counts.py table counts.jsonl                        # the table of study/results/fidelity.md

Three pairs of sender and receiver transfer data over the same paths, live: two kernels, `linux` to a kernel, and a
kernel to `linux`. tshark counts retransmissions, spurious retransmissions and duplicate ACKs where the sender is.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fidelity import REKNIT, priority, run

KERNELS = ("kernel:cubic", "kernel:cubic")
PAIRS = [KERNELS, ("linux", "kernel:cubic"), ("kernel:cubic", "linux")]
COUNTS = ["retransmission", "spurious_retransmission", "duplicate_ack"]
WITHIN = 0.25
# tshark counts these per packet; differences of a few packets say nothing.
FEW = 5


def analyse(capture: Path) -> dict[str, int]:
    """Count what tshark's analysis of sequence numbers marks."""
    fields = [part for name in COUNTS for part in ("-e", f"tcp.analysis.{name}")]
    command = ["tshark", "-r", str(capture), "-Y", "tcp.analysis.flags", "-T", "fields", *fields]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    marked = [line.split("\t") for line in lines]
    return {name: sum(bool(fields[i]) for fields in marked) for i, name in enumerate(COUNTS)}


def largest_receive_buffer() -> int:
    """Return the kernel's, in bytes."""
    return int(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[2])


def transfer(path: str, pair: tuple[str, str], seed: int, args: argparse.Namespace) -> dict:
    """Run one transfer and count. A transfer that the machine has disturbed is repeated."""
    sender, receiver = pair
    for attempt in range(5):
        with tempfile.TemporaryDirectory() as directory:
            capture = Path(directory) / "sender.pcapng"
            command = [str(REKNIT), "testbed", "--path", path, "--variants", sender, "--to", receiver]
            # The unit of the window depends on the largest receive buffer.
            command += ["--set", f'tcp.receive_buffer="{largest_receive_buffer() >> 20} MiB"']
            command += ["--duration", args.duration, "--seed", str(seed), "--pcap-sender", str(capture), "--json"]
            result = run([*priority(args.realtime), *command])["transfers"][0]
            if result["doubt"] and attempt < 4:
                continue
            return {
                "path": Path(path).stem,
                "sender": sender,
                "receiver": receiver,
                "seed": seed,
                "goodput_mbit_s": result["goodput_mbit_s"],
                "doubt": result["doubt"],
                **analyse(capture),
            }
    raise AssertionError


def is_close(count: float, kernel: float) -> bool:
    """Return whether a count is within 25 % of the kernel's, or differs by a few packets only."""
    return abs(count - kernel) <= max(WITHIN * kernel, FEW)


def table(file: str) -> None:
    """Print the table in Markdown: medians, and a star where they differ."""
    runs = defaultdict(list)
    for line in Path(file).read_text().splitlines():
        one = json.loads(line)
        runs[one["path"], one["sender"], one["receiver"]].append(one)
    print("| path | sender and receiver | Mbit/s | retransmissions | spurious | duplicate ACKs |")
    print("|---|---|---|---|---|---|")
    for path in sorted({path for path, _, _ in runs}):
        medians = {pair: median_counts(runs[(path, *pair)]) for pair in PAIRS}
        for pair, counts in medians.items():
            cells = [f"{counts[name]:.0f}{mark(counts[name], medians[KERNELS][name])}" for name in COUNTS]
            print(f"| {path} | `{pair[0]}` to `{pair[1]}` | {counts['goodput_mbit_s']:.2f} | {' | '.join(cells)} |")


def median_counts(runs: list[dict]) -> dict[str, float]:
    """Return the median of each measure."""
    return {name: statistics.median(one[name] for one in runs) for name in ["goodput_mbit_s", *COUNTS]}


def mark(count: float, kernel: float) -> str:
    """Return a star for a count that differs from the kernel's."""
    return "" if is_close(count, kernel) else " *"


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--duration", default="15s")
    parser.add_argument("--realtime", action="store_true", help="real-time priority, on a busy machine")
    parser.add_argument("--jobs", type=int, default=1, help="transfers at the same time")
    parser.add_argument("--out", type=Path, help="output file of measure")
    args = parser.parse_args()
    if args.what == "table":
        table(args.files[0])
        return
    if args.out is None:
        parser.error("measure needs --out")
    jobs = [(path, pair, seed) for seed in range(1, args.seeds + 1) for path in args.files for pair in PAIRS]
    with args.out.open("w") as out, ThreadPoolExecutor(args.jobs) as pool:
        for one in pool.map(lambda job: transfer(*job, args), jobs):
            out.write(json.dumps(one) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
