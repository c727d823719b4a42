#!/usr/bin/env python3
"""Compares simulated `linux` with the live kernel over the same paths: medians of goodput for each path.

    sudo benches/fidelity.py live PATH.toml... --out live.jsonl     # 15 s each, in real time
    benches/fidelity.py simulate PATH.toml... --out simulated.jsonl
    benches/fidelity.py table live.jsonl simulated.jsonl            # the table of docs/fidelity.md

Each line of the files is one transfer: path, variant, seed, goodput in Mbit/s, retransmissions, timeouts.
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
WITHIN = 0.15


def run(command: list[str]) -> dict:
    """Return what the command prints as JSON."""
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def transfer(path: str, variant: str, seed: int, duration: str) -> dict:
    """Run one transfer between live kernels. One that the machine has disturbed is repeated."""
    command = [str(REKNIT), "testbed", "--path", path, "--variants", variant, "--to", "kernel:cubic"]
    for _ in range(5):
        result = run(["chrt", "-f", "10", *command, "--duration", duration, "--seed", str(seed), "--json"])
        one = result["transfers"][0]
        if not one["doubt"]:
            break
    return {
        "path": Path(path).stem,
        "variant": variant,
        "seed": seed,
        "goodput_mbit_s": one["goodput_mbit_s"],
        "retransmissions": one["retransmissions"],
        "timeouts": one["timeouts"],
        "doubt": one["doubt"],
    }


def live(paths: list[str], variant: str, seeds: int, duration: str, jobs: int) -> Iterator[dict]:
    """Run transfers between live kernels, `jobs` of them at the same time."""
    pairs = [(path, seed) for seed in range(1, seeds + 1) for path in paths]
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda pair: transfer(pair[0], variant, pair[1], duration), pairs)


def simulate(paths: list[str], variant: str, seeds: int, duration: str) -> Iterator[dict]:
    """Simulate the same transfers."""
    for path in paths:
        command = [str(REKNIT), "compare", "--path", path, "--variants", variant, "--seeds", str(seeds)]
        result = run([*command, "--duration", duration, "--json"])
        for one in result["variants"][0]["runs"]:
            yield {
                "path": Path(path).stem,
                "variant": variant,
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


def table(live_file: str, simulated_file: str, kernel: str, variant: str) -> None:
    """Print the table in Markdown."""
    there, here = read(live_file, kernel), read(simulated_file, variant)
    print("| path | live, Mbit/s | simulated, Mbit/s | simulated / live | retransmissions, live / simulated |")
    print("|---|---|---|---|---|")
    close = 0
    for path in sorted(there):
        if path not in here:
            continue
        ratio = median(here[path], "goodput_mbit_s") / median(there[path], "goodput_mbit_s")
        close += abs(ratio - 1) <= WITHIN
        repairs = f"{median(there[path], 'retransmissions'):.0f} / {median(here[path], 'retransmissions'):.0f}"
        mark = "" if abs(ratio - 1) <= WITHIN else " *"
        print(f"| {path} | {spread(there[path])} | {spread(here[path])} | {ratio:.2f}{mark} | {repairs} |")
    print(f"\n{close} of {len(there)} medians within {WITHIN:.0%}.")


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["live", "simulate", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--kernel", default="kernel:cubic")
    parser.add_argument("--variant", default="linux")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--duration", default="15s")
    parser.add_argument("--jobs", type=int, default=1, help="live transfers at the same time")
    parser.add_argument("--out", type=Path, help="output file of live and simulate")
    args = parser.parse_args()
    if args.what == "table":
        if len(args.files) != 2:
            parser.error("table takes two files: live.jsonl and simulated.jsonl")
        table(*args.files, args.kernel, args.variant)
        return
    if args.out is None:
        parser.error(f"{args.what} needs --out")
    if args.what == "live":
        runs = live(args.files, args.kernel, args.seeds, args.duration, args.jobs)
    else:
        runs = simulate(args.files, args.variant, args.seeds, args.duration)
    with args.out.open("w") as out:
        for one in runs:
            out.write(json.dumps(one) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
