#!/usr/bin/env python3
"""Compares simulated with live transfers over the same paths: medians of goodput for each path.

    sudo benches/fidelity.py live PATH.toml... --out live.jsonl     # 15 s each, in real time
    benches/fidelity.py simulate PATH.toml... --out simulated.jsonl
    benches/fidelity.py table live.jsonl simulated.jsonl            # the tables of docs/fidelity.md

Without --engine, the kernel transfers live, and `linux` in simulation. With --engine, reknit with --variant at both
ends transfers live and in simulation.

Each line of the files is one transfer: path, variant, seed, goodput in Mbit/s, retransmissions, timeouts; if live, also
why the result is in doubt (null if it is not).
"""

import argparse
import json
import os
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release/reknit"
# Which difference of the medians counts as close: a model of another program, and the same program twice.
WITHIN_KERNEL = 0.15
WITHIN_ENGINE = 0.05
# How often a live transfer is tried if the machine disturbs it.
ATTEMPTS = 5


def run(command: list[str]) -> dict:
    """Return what the command prints as JSON."""
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def priority(realtime: bool) -> list[str]:
    """Return the beginning of a command with real-time priority, which a busy machine needs."""
    return ["chrt", "-f", "10"] if realtime else []


def live(paths: list[str], args: argparse.Namespace) -> Iterator[dict]:
    """Run live transfers, as many at a time as there are jobs. Those that the machine has disturbed are repeated."""
    sender, to = (args.variant, "same") if args.engine else (args.kernel, "kernel:cubic")

    def transfer(which: tuple[int, str]) -> dict:
        seed, path = which
        command = [str(REKNIT), "testbed", "--path", path, "--variants", sender, "--to", to]
        command += ["--duration", args.duration, "--seed", str(seed), "--json"]
        for _ in range(ATTEMPTS):
            one = run([*priority(args.realtime), *command])["transfers"][0]
            if not one["doubt"]:
                break
        measures = ["goodput_mbit_s", "retransmissions", "timeouts", "doubt"]
        return {"path": Path(path).stem, "variant": sender, "seed": seed} | {key: one[key] for key in measures}

    with ThreadPoolExecutor(args.jobs) as threads:
        yield from threads.map(transfer, [(seed, path) for seed in seeds(args) for path in paths])


def seeds(args: argparse.Namespace) -> range:
    """Return the seeds of the transfers."""
    return range(args.first_seed, args.first_seed + args.seeds)


def simulate(paths: list[str], args: argparse.Namespace) -> Iterator[dict]:
    """Simulate the same transfers."""
    for path in paths:
        command = [str(REKNIT), "compare", "--path", path, "--variants", args.variant, "--seeds", str(args.seeds)]
        result = run([*command, "--duration", args.duration, "--no-oracle", "--json"])
        for one in result["variants"][0]["runs"]:
            yield {
                "path": Path(path).stem,
                "variant": args.variant,
                "seed": one["seed"],
                "goodput_mbit_s": one["goodput_mbit_s"],
                "retransmissions": one["retransmissions"]["total"],
                "timeouts": one["timeouts"],
            }


def read(file: str, variant: str) -> dict[str, list[dict]]:
    """Read the transfers of a variant, by path."""
    runs = defaultdict(list)
    for line in Path(file).read_text().splitlines():
        one = json.loads(line)
        if one["variant"] == variant and "goodput_mbit_s" in one:
            runs[one["path"]].append(one)
    return runs


def spread(runs: list[dict]) -> str:
    """Format median and range."""
    rates = [one["goodput_mbit_s"] for one in runs]
    return f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"


def median(runs: list[dict], key: str) -> float:
    """Return the median of one of the measures."""
    return statistics.median(one[key] for one in runs)


def table(live_file: str, simulated_file: str, args: argparse.Namespace) -> None:
    """Print the table in Markdown."""
    there = read(live_file, args.variant if args.engine else args.kernel)
    here = read(simulated_file, args.variant)
    within = WITHIN_ENGINE if args.engine else WITHIN_KERNEL
    print("| path | live, Mbit/s | simulated, Mbit/s | simulated / live | retransmissions, live / simulated |")
    print("|---|---|---|---|---|")
    close = 0
    for path in sorted(there):
        if path not in here:
            continue
        ratio = median(here[path], "goodput_mbit_s") / median(there[path], "goodput_mbit_s")
        close += abs(ratio - 1) <= within
        repairs = f"{median(there[path], 'retransmissions'):.0f} / {median(here[path], 'retransmissions'):.0f}"
        mark = "" if abs(ratio - 1) <= within else " *"
        print(f"| {path} | {spread(there[path])} | {spread(here[path])} | {ratio:.2f}{mark} | {repairs} |")
    doubtful = sum(one.get("doubt") is not None for runs in there.values() for one in runs)
    print(f"\n{close} of {len(there)} medians within {within:.0%}; {doubtful} live transfers in doubt.")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["live", "simulate", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--kernel", default="kernel:cubic")
    parser.add_argument("--variant", default="linux")
    parser.add_argument("--engine", action="store_true", help="compare --variant with itself")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1, help="of the live transfers")
    parser.add_argument("--jobs", type=int, default=1, help="live transfers at a time")
    parser.add_argument("--duration", default="15s")
    parser.add_argument("--realtime", action="store_true", help="real-time priority, on a busy machine")
    parser.add_argument("--out", type=Path, help="output file of live and simulate")
    args = parser.parse_args()
    if args.what == "table":
        if len(args.files) != 2:
            parser.error("table takes two files: live.jsonl and simulated.jsonl")
        table(*args.files, args)
        return
    if args.out is None:
        parser.error(f"{args.what} needs --out")
    measure = live if args.what == "live" else simulate
    with args.out.open("w") as out:
        for one in measure(args.files, args):
            out.write(json.dumps(one) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
