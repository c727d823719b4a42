#!/usr/bin/env python3
"""Compares simulated with live transfers over the same paths: medians of goodput for each path.

    sudo study/benches/fidelity.py live PATH.toml... --out live.jsonl     # 15 s each, in real time
    study/benches/fidelity.py simulate PATH.toml... --out simulated.jsonl
    study/benches/fidelity.py table live.jsonl simulated.jsonl            # the tables of study/results/fidelity.md

Without --engine, the kernel transfers live, and `linux` in simulation. With --engine, reknit with --variant at both
ends transfers live and in simulation.

Each line of the files is one transfer: path, its cause of reordering, variant, seed, goodput in Mbit/s,
retransmissions, timeouts; if live, also why the result is in doubt (null if it is not).

The table compares transfers with the same seeds. Further simulations show how much chance decides: how often the
medians of two sets of simulations, each as many as there are live transfers, differ by more than the limit.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release/reknit"
# Which difference of the medians counts as close: a model of another program, and the same program twice.
WITHIN_KERNEL = 0.15
WITHIN_ENGINE = 0.05
# How often a live transfer is tried if the machine disturbs it.
ATTEMPTS = 5
# Pairs of sets of simulations that are drawn.
DRAWS = 2000
# A transfer is named by its seed; a file has one for each seed of a path.
Runs = dict[int, dict]


def run(command: list[str]) -> dict:
    """Return what the command prints as JSON."""
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def priority(realtime: bool) -> list[str]:
    """Return the beginning of a command with real-time priority, which a busy machine needs."""
    return ["chrt", "-f", "10"] if realtime else []


def about(path: str) -> dict:
    """Return the name of the path and its cause of reordering; `loss` means that packets are also lost at random."""
    text = Path(path).read_text()
    description = re.search(r'^description = ".*: (.*)"', text, re.MULTILINE)
    cause = description[1] if description else ""
    return {"path": Path(path).stem, "cause": f"{cause}, loss" if 'kind = "loss"' in text else cause}


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
        return about(path) | {"variant": sender, "seed": seed} | {key: one[key] for key in measures}

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
            yield about(path) | {
                "variant": args.variant,
                "seed": one["seed"],
                "goodput_mbit_s": one["goodput_mbit_s"],
                "retransmissions": one["retransmissions"]["total"],
                "timeouts": one["timeouts"],
            }


def read(file: str, variant: str) -> dict[str, Runs]:
    """Read the transfers of a variant, by path and seed."""
    runs: dict[str, Runs] = defaultdict(dict)
    for line in Path(file).read_text().splitlines():
        one = json.loads(line)
        if one["variant"] == variant:
            runs[one["path"]][one["seed"]] = one
    return runs


def spread(runs: list[dict]) -> str:
    """Format median and range."""
    rates = [one["goodput_mbit_s"] for one in runs]
    return f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"


def median(runs: list[dict], key: str) -> float:
    """Return the median of one of the measures."""
    return statistics.median(one[key] for one in runs)


def chance(runs: Runs, count: int, within: float) -> float:
    """Return how often the medians of two sets of `count` simulations differ by more than the limit."""
    rates = [one["goodput_mbit_s"] for one in runs.values()]
    draw = random.Random(0)
    drawn = [draw.sample(rates, 2 * count) for _ in range(DRAWS)]
    ratios = [statistics.median(sets[:count]) / statistics.median(sets[count:]) for sets in drawn]
    return statistics.mean(abs(ratio - 1) > within for ratio in ratios)


def table(live_file: str, simulated_file: str, args: argparse.Namespace) -> None:
    """Print the table in Markdown."""
    there = read(live_file, args.variant if args.engine else args.kernel)
    here = read(simulated_file, args.variant)
    within = WITHIN_ENGINE if args.engine else WITHIN_KERNEL
    print("| path | cause | seeds | live | simulated | simulated / live | chance | retransmissions, live / simulated |")
    print("|---|---|---|---|---|---|---|---|")
    close = 0
    for path, runs in sorted(there.items()):
        measured = [runs[seed] for seed in sorted(runs)]
        simulated = [here[path][seed] for seed in sorted(runs)]
        ratio = median(simulated, "goodput_mbit_s") / median(measured, "goodput_mbit_s")
        is_close = abs(ratio - 1) <= within
        close += is_close
        cells = [path, measured[0]["cause"], str(len(runs)), spread(measured), spread(simulated)]
        cells += [f"{ratio:.2f}{'' if is_close else ' *'}", f"{chance(here[path], len(runs), within):.0%}"]
        cells += [" / ".join(f"{median(side, 'retransmissions'):.0f}" for side in (measured, simulated))]
        print(f"| {' | '.join(cells)} |")
    doubtful = sum(one["doubt"] is not None for runs in there.values() for one in runs.values())
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
