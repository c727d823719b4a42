#!/usr/bin/env python3
"""Does `reknit replay` name the sender that does best live? Captures of the live kernel, replayed and measured.

    reknit matrix --seed 301 --paths 48 --write paths
    sudo study/benches/replay.py measure paths/*.toml --captures captures --out live.jsonl   # in real time
    study/benches/replay.py replay live.jsonl --captures captures --out replayed.jsonl
    study/benches/replay.py table live.jsonl replayed.jsonl > study/results/replay.md

On each path, four senders transfer data to a kernel, live. The captures of the kernel's CUBIC and BBR are replayed with
the models of all four, and both rankings are compared. Paths faster than --rate are left out, so that the machine is
not what limits the transfers.
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
CAPTURED = ["kernel:cubic", "kernel:bbr"]
PLACES = ["sender", "receiver"]
# A sender counts as best if it is within this of the best: nobody would notice the difference.
EQUAL = 0.05


def capture_of(args: argparse.Namespace, path: str, sender: str, at: str) -> Path:
    """Return the file of the capture of a kernel on a path."""
    return args.captures / f"{path}-{sender.removeprefix('kernel:')}-{at}.pcapng"


def transfer(path: Path, sender: str, seed: int, args: argparse.Namespace) -> dict:
    """Run one live transfer. A transfer that the machine has disturbed is repeated."""
    command = [str(REKNIT), "testbed", "--path", str(path), "--variants", sender, "--to", "kernel:cubic"]
    command += ["--duration", args.duration, "--seed", str(seed), "--json"]
    if sender in CAPTURED and seed == 1:
        for at in PLACES:
            command += [f"--pcap-{at}", str(capture_of(args, path.stem, sender, at))]
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
    jobs = [
        (path, sender, at) for path in sorted({one["path"] for one in live}) for sender in CAPTURED for at in PLACES
    ]
    with args.out.open("w") as out:
        for path, sender, at in jobs:
            capture = capture_of(args, path, sender, at)
            command = [str(args.reknit), "replay", str(capture), "--variants", ",".join(SENDERS.values())]
            command += ["--at", at, "--draws", str(args.draws), "--no-oracle", "--anyway", "--json"]
            finished = subprocess.run(command, capture_output=True, text=True)
            if finished.returncode != 0:
                print(f"{path}, {sender}, {at}: {finished.stderr.strip()}")
                continue
            result = json.loads(finished.stdout)
            rows = result["comparison"]["variants"]
            goodput = {row["variant"]: row["goodput_mbit_s"]["mean"] for row in rows}
            one = {"path": path, "captured": sender, "at": at, "check": result["check"], "refused": result["refused"]}
            out.write(json.dumps(one | {"goodput_mbit_s": goodput}) + "\n")
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
    """Print the page in Markdown."""
    live: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in Path(args.files[0]).read_text().splitlines():
        one = json.loads(line)
        live[one["path"]][one["sender"]].append(one["goodput_mbit_s"])
    # A path counts if all senders were measured on it.
    replays = [json.loads(line) for line in Path(args.files[1]).read_text().splitlines()]
    replays = [one for one in replays if live[one["path"]].keys() == SENDERS.keys()]
    commit = subprocess.run(
        ["git", "describe", "--always", "--exclude", "*", "--dirty"], capture_output=True, text=True
    )
    senders = ", ".join(f"`{variant}`" for variant in SENDERS.values())
    paths = len({one["path"] for one in replays})
    print(f"""# How well a replay predicts

*Generated by `study/benches/replay.py table` at commit `{commit.stdout.strip()}`.*

On {paths} random paths of up to {args.rate:.0f} Mbit/s (`reknit matrix --seed 301 --paths 48 --write DIR`), four
senders transferred data to a Linux kernel, live, for {args.duration} with {args.seeds} seeds each. The captures of the
kernel's CUBIC and BBR with the first seed, at the sender and at the receiver, were replayed with the models of all
four senders ({senders}), {args.draws} draws each, also where `reknit replay` refuses to compare (`--anyway`).

*tau* is Kendall's, between the live ranking and the replayed one; senders within 5 % of each other count as equal. The
best sender is *named* if the replay's best is live within 5 % of the best. *Reproduced*: `reknit replay` says that the
replay reproduces the capture, and knows the rate of the bottleneck. *Sender*: of these, it took the model of the kernel
that was captured so many times.
{ceiling(live, {one["path"] for one in replays})}

| captured | at | captures | tau | named | reproduced | tau of these | named of these | sender |
|---|---|---|---|---|---|---|---|---|""")
    for sender in CAPTURED:
        for at in PLACES:
            some = [one for one in replays if (one["captured"], one["at"]) == (sender, at)]
            print(f"| `{sender}` | {at} | {summary(some, live)} |")
    print(f"| all | | {summary(replays, live)} |")
    for sender in CAPTURED:
        for at in PLACES:
            print(f"\n## Captured: `{sender}`, at the {at}\n\nGoodput in Mbit/s:\n")
            ranking([one for one in replays if (one["captured"], one["at"]) == (sender, at)], live)


def ceiling(live: dict, paths: set[str]) -> str:
    """Say how well the live transfers with one seed predict those with another; nothing without another."""
    taus = []
    for path in paths:
        seeds = [live[path][sender][:2] for sender in SENDERS]
        if all(len(two) == 2 for two in seeds):
            taus.append(tau([two[0] for two in seeds], [two[1] for two in seeds]))
    if not taus:
        return ""
    return f"""
The live transfers vary, too: between the rankings of the first two seeds, tau is {statistics.mean(taus):.2f}.
A replay of one transfer hardly predicts the others better than that transfer itself.
"""


def judged(one: dict, live: dict) -> tuple[list[float], list[float], float, bool]:
    """Return the live and the replayed goodput of all senders, tau, and whether the best one is named."""
    there = [statistics.mean(live[one["path"]][sender]) for sender in SENDERS]
    here = [one["goodput_mbit_s"][variant] for variant in SENDERS.values()]
    return there, here, tau(there, here), there[here.index(max(here))] >= (1 - EQUAL) * max(there)


def summary(replays: list[dict], live: dict) -> str:
    """Return the cells of some captures."""

    def of(some: list[dict]) -> tuple[str, str]:
        judgements = [judged(one, live) for one in some]
        mean = f"{statistics.mean(one[2] for one in judgements):.2f}" if some else "-"
        return mean, f"{sum(one[3] for one in judgements)} of {len(some)}"

    held = [one for one in replays if one["refused"] is None]
    right = sum(one["check"]["sender"] == SENDERS[one["captured"]] for one in held)
    cells = [str(len(replays)), *of(replays), str(len(held)), *of(held), f"{right} of {len(held)}"]
    return " | ".join(cells)


def ranking(replays: list[dict], live: dict) -> None:
    """Print the table of the captures of one sender at one place."""
    names = " | ".join(f"`{sender}`, live / replay" for sender in SENDERS)
    print(f"| path | {names} | tau | named | reproduced |\n|---|{'---|' * len(SENDERS)}---|---|---|")
    for one in replays:
        there, here, agreement, is_named = judged(one, live)
        cells = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in zip(there, here, strict=True))
        check = one["check"]
        why = ", ".join(check["differs"]).replace("_", " ")
        how = f"`{check['sender']}`" if one["refused"] is None else f"no: {why or 'rate not known'}"
        print(f"| {one['path']} | {cells} | {agreement:.2f} | {'yes' if is_named else 'no'} | {how} |")


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
    parser.add_argument("--reknit", type=Path, default=REKNIT, help="the command")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path, help="output file of measure and replay")
    args = parser.parse_args()
    if args.what != "table" and args.out is None:
        parser.error(f"{args.what} needs --out")
    {"measure": measure, "replay": replay, "table": table}[args.what](args)


if __name__ == "__main__":
    main()
