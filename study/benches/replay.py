#!/usr/bin/env python3
"""Does `reknit replay` name the sender that does best live? Captures of the live kernel, replayed and measured.

    reknit matrix --seed 301 --paths 48 --write paths
    sudo study/benches/replay.py measure paths/*.toml --captures captures --out live.jsonl   # in real time
    study/benches/replay.py replay live.jsonl --captures captures --out replayed.jsonl
    study/benches/replay.py table live.jsonl replayed.jsonl                         # the table of docs/guide/replay.md

On each path, four senders transfer data to a kernel, live. The capture of the kernel's CUBIC is replayed with the
models of all four, and both rankings are compared. Paths faster than --rate are left out, so that the machine is not
what limits the transfers.
"""

import argparse
import json
import re
import statistics
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

from fidelity import ATTEMPTS, REKNIT, run

# Live senders, and the variants that stand for them in simulation.
SENDERS = {"kernel:cubic": "linux", "kernel:bbr": "bbr1", "reknit": "reknit", "pr": "pr"}
CAPTURED = "kernel:cubic"
# A sender counts as best if it is within this of the best: nobody would notice the difference.
EQUAL = 0.05
WITHIN = 0.15


def capture_of(args: argparse.Namespace, path: str, seed: int, at: str) -> Path:
    """Return the file of the capture of CUBIC on a path."""
    return args.captures / f"{path}-{seed}-{at}.pcapng"


def transfer(path: Path, sender: str, seed: int, args: argparse.Namespace) -> dict:
    """Run one live transfer. A transfer that the machine has disturbed is repeated."""
    command = [str(REKNIT), "testbed", "--path", str(path), "--variants", sender, "--to", "kernel:cubic"]
    command += ["--duration", args.duration, "--seed", str(seed), "--json"]
    if sender == CAPTURED and seed == 1:
        for at in ("sender", "receiver"):
            command += [f"--pcap-{at}", str(capture_of(args, path.stem, seed, at))]
    for _ in range(ATTEMPTS):
        one = run(["chrt", "-r", "5", *command])["transfers"][0]
        if not one["doubt"]:
            break
    measures = ["goodput_mbit_s", "retransmissions", "timeouts", "doubt"]
    return {"path": path.stem, "sender": sender, "seed": seed} | {key: one[key] for key in measures}


def rate(path: Path) -> float:
    """Return the lowest rate in a path file, Mbit/s."""
    return min(float(rate) for rate in re.findall(r'rate = "([0-9.]+) Mbit/s"', path.read_text()))


def measure(args: argparse.Namespace) -> None:
    """Run the live transfers, one path after the other for each job; results of earlier runs are kept."""
    args.captures.mkdir(exist_ok=True)
    known = args.out.read_text().splitlines() if args.out.exists() else []
    done = {(one["path"], one["sender"], one["seed"]) for one in map(json.loads, known)}
    paths = [path for path in map(Path, args.files) if rate(path) <= args.rate][: args.paths]
    jobs = [(path, sender, seed) for path in paths for seed in range(1, args.seeds + 1) for sender in SENDERS]
    jobs = [(path, sender, seed) for path, sender, seed in jobs if (path.stem, sender, seed) not in done]
    with args.out.open("a") as out, ThreadPoolExecutor(args.jobs) as threads:
        for one in threads.map(lambda job: transfer(*job, args), jobs):
            out.write(json.dumps(one) + "\n")
            out.flush()


def replay(args: argparse.Namespace) -> None:
    """Replay each capture with all variants."""
    live = [json.loads(line) for line in Path(args.files[0]).read_text().splitlines()]
    with args.out.open("w") as out:
        for path in sorted({one["path"] for one in live}):
            for at in args.at.split(","):
                capture = capture_of(args, path, 1, at)
                command = [str(REKNIT), "replay", str(capture), "--variants", ",".join(SENDERS.values())]
                command += ["--sender", SENDERS[CAPTURED], "--at", at, "--draws", str(args.draws), "--no-oracle"]
                finished = subprocess.run([*command, "--json"], capture_output=True, text=True)
                if finished.returncode != 0:
                    print(f"{path}, {at}: {finished.stderr.strip()}")
                    continue
                result = json.loads(finished.stdout)
                rows = result["comparison"]["variants"]
                goodput = {row["variant"]: row["goodput_mbit_s"]["mean"] for row in rows}
                one = {"path": path, "at": at, "check": result["check"], "goodput_mbit_s": goodput}
                out.write(json.dumps(one) + "\n")
                out.flush()


def tau(there: list[float], here: list[float]) -> float:
    """Return Kendall's tau-b: pairs that differ by less than EQUAL in both count as agreeing, in one as ties."""

    def order(a: float, b: float) -> int:
        return 0 if abs(a - b) <= EQUAL * max(a, b) else (1 if a > b else -1)

    pairs = list(combinations(range(len(there)), 2))
    signs = [(order(there[i], there[j]), order(here[i], here[j])) for i, j in pairs]
    agree = sum(1 if a == b else (0 if a * b == 0 else -1) for a, b in signs)
    return agree / len(pairs)


def table(args: argparse.Namespace) -> None:
    """Print the table in Markdown."""
    live: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in Path(args.files[0]).read_text().splitlines():
        one = json.loads(line)
        live[one["path"]][one["sender"]].append(one["goodput_mbit_s"])
    replays = [json.loads(line) for line in Path(args.files[1]).read_text().splitlines()]
    for at in sorted({one["at"] for one in replays}, reverse=True):
        print(f"Captured at the {at}:\n")
        # A path counts if all senders were measured on it.
        ranking([one for one in replays if one["at"] == at and live[one["path"]].keys() == SENDERS.keys()], live)


def ranking(replays: list[dict], live: dict[str, dict[str, list[float]]]) -> None:
    """Print the table of the captures made at one place."""
    names = " | ".join(f"`{sender}`, live / replay" for sender in SENDERS)
    print(f"| path | {names} | tau | best named |\n|---|{'---|' * len(SENDERS)}---|---|")
    taus, right, within = [], 0, 0
    for one in replays:
        there = [statistics.mean(live[one["path"]][sender]) for sender in SENDERS]
        here = [one["goodput_mbit_s"][variant] for variant in SENDERS.values()]
        taus.append(tau(there, here))
        is_right = there[here.index(max(here))] >= (1 - EQUAL) * max(there)
        right += is_right
        within += abs(one["check"]["replayed_mbit_s"]["mean"] / one["check"]["captured_mbit_s"] - 1) <= WITHIN
        cells = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in zip(there, here, strict=True))
        print(f"| {one['path']} | {cells} | {taus[-1]:.2f} | {'yes' if is_right else 'no'} |")
    count = len(replays)
    print(f"\nKendall's tau is {statistics.mean(taus):.2f} on average; the best is named on {right} of {count} paths;")
    print(f"the replay of the sender at work is within {WITHIN:.0%} of the capture on {within}.\n")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "replay", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--captures", type=Path, default=Path("captures"), help="directory of the captures")
    parser.add_argument("--paths", type=int, default=24)
    parser.add_argument("--rate", type=float, default=20.0, help="Mbit/s; faster paths are left out")
    parser.add_argument("--seeds", type=int, default=2, help="live transfers of each sender")
    parser.add_argument("--duration", default="10s")
    parser.add_argument("--jobs", type=int, default=1, help="live transfers at a time")
    parser.add_argument("--at", default="sender,receiver", help="where the captures were made")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path, help="output file of measure and replay")
    args = parser.parse_args()
    if args.what != "table" and args.out is None:
        parser.error(f"{args.what} needs --out")
    {"measure": measure, "replay": replay, "table": table}[args.what](args)


if __name__ == "__main__":
    main()
