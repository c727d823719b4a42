#!/usr/bin/env python3
"""What does a shield in front of the receiver change? Simulated transfers with it and without it.

    make build && target/venv/bin/python study/benches/shield.py > study/results/shield.md    # about 3 minutes

`study/benches/shield_live.py` measures it live.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fidelity import REKNIT

from reknit_study._generated import generated

VARIANTS = ["sack", "linux", "bbr1", "rack"]
BUILT_IN = [
    "two-paths-50ms",
    "two-paths-200ms",
    "wireless-arq",
    "leo",
    "sdwan-50ms",
    "striping",
    "random-delay",
    "displaced",
    "satellite-arq",
    "manet",
    "survey",
    "mptcp-2x",
    "clean",
    "lossy",
    "bursty-loss",
]
EQUALISED = ["sack", "linux", "bbr1"]
# The transfer that is measured begins after a short one over the same branches.
SECOND = """
[[flows]]
name = "first"
workload = { kind = "transfer", size = "100 kB" }

[[flows]]
name = "second"
workload = "bulk"
start = "5 s"
"""
EXPLAINED = """\
A trial that is in vain costs time: to hold packets makes the round trip as long as that of the latest ones, and
a sender that copes by itself is slower until the trial ends. Most of those were flows that already used what their
path carries. So a flow that was never 1.25 times as fast for a fifth of a second must suffer in ten seconds
instead of three before its trial.

## Branches that are made equal

`--shield equalise`: goodput in Mbit/s over 30 s, and its ratio to that of a path whose branches all have the longer
delay. Different delays without a shield; with the difference given; learned from a transfer of 100 kB that came before;
and learned by the flow itself, whose first round trips are reordered."""
# Less than this is worse.
WORSE = 0.97


def compare(variants: Sequence[str], args: argparse.Namespace, *options: str) -> dict[str, dict]:
    """Simulate each variant. Return its results."""
    command = [str(REKNIT), "compare", "--variants", ",".join(variants), "--seeds", str(args.seeds)]
    command += ["--no-oracle", "--quiet", "--json", *options]
    document = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {row["variant"]: row for row in document["variants"]}


def goodputs(path: str, args: argparse.Namespace, *options: str) -> dict[str, float]:
    """Simulate each variant on a path. Return their goodputs in Mbit/s."""
    rows = compare(VARIANTS, args, "--path", path, "--duration", args.duration, *options)
    return {variant: row["goodput_mbit_s"]["mean"] for variant, row in rows.items()}


def ratios(path: str, args: argparse.Namespace) -> tuple[str, dict[str, float]]:
    """Compare a path with a shield and without. Return a row of a table, and the ratios."""
    without, shielded = goodputs(path, args), goodputs(path, args, "--shield", "resequence")
    ratio = {variant: shielded[variant] / without[variant] for variant in VARIANTS}
    cells = [f"{without[variant]:.2f} → {shielded[variant]:.2f} ({ratio[variant]:.2f})" for variant in VARIANTS]
    return f"| `{Path(path).stem}` | {' | '.join(cells)} |", ratio


def random_paths(folder: Path, args: argparse.Namespace) -> list[str]:
    """Write the random paths to files. Return those that are not too fast."""
    command = [str(REKNIT), "matrix", "--seed", args.matrix, "--paths", str(args.paths), "--write", str(folder)]
    subprocess.run(command, check=True, capture_output=True)

    def rate(file: Path) -> float:
        line = next(line for line in file.read_text().splitlines() if line.startswith("rate = "))
        return float(line.split('"')[1].split()[0])

    slow = [str(file) for file in sorted(folder.glob("*.toml")) if rate(file) <= args.fastest]
    return slow[: args.count]


def table(paths: list[str], args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Print a table. Return the ratios."""
    print(f"| path | {' | '.join(f'`{variant}`' for variant in VARIANTS)} |")
    print(f"|---|{'---|' * len(VARIANTS)}")
    found = {}
    for path in paths:
        row, found[Path(path).stem] = ratios(path, args)
        print(row, flush=True)
    return found


def summary(found: dict[str, dict[str, float]]) -> None:
    """Print on how many paths each variant became faster, and on which slower."""
    for variant in VARIANTS:
        faster = sum(ratio[variant] > 1 / WORSE for ratio in found.values())
        slower = {path: ratio[variant] for path, ratio in found.items() if ratio[variant] < WORSE}
        listed = ", ".join(f"`{path}` ({ratio:.2f})" for path, ratio in slower.items())
        print(f"- `{variant}`: faster on {faster} of {len(found)}, below {WORSE} on {len(slower)}", end="")
        print(f": {listed}" if listed else "")


def equalised(path: str, slow: str, difference: str, folder: Path, args: argparse.Namespace) -> list[str]:
    """Compare branches with one delay with branches that a shield makes equal. Return rows of a table."""
    scenario = folder / "second.toml"
    scenario.write_text(SECOND)
    shield = 'forward.+={ kind = "shield", mode = "equalise", difference = "%s" }'
    settings = {
        "same": ["--set", f"forward.paths.paths.0.delay={slow}"],
        "given": ["--set", shield % difference],
        "learned": ["--shield", "equalise"],
        "without": [],
    }

    def of_second(row: dict) -> float:
        values = [run["groups"][1]["goodput_mbit_s"] for run in row["runs"]]
        return sum(values) / len(values)

    found = {}
    for name, options in settings.items():
        rows = compare(EQUALISED, args, "--path", path, "--scenario", str(scenario), "--duration", "35s", *options)
        found[name] = {variant: of_second(row) for variant, row in rows.items()}
    first = compare(EQUALISED, args, "--path", path, "--duration", "30s", *settings["learned"])
    found["first"] = {variant: row["goodput_mbit_s"]["mean"] for variant, row in first.items()}

    def cell(name: str, variant: str) -> str:
        return f"{found[name][variant]:.2f} ({found[name][variant] / found['same'][variant]:.2f})"

    columns = ["without", "given", "learned", "first"]
    return [
        f"| `{path}` | `{variant}` | {found['same'][variant]:.2f} | {' | '.join(cell(c, variant) for c in columns)} |"
        for variant in EQUALISED
    ]


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", default="60s")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--matrix", default="51,52,53,54,55", help="seeds of the random paths")
    parser.add_argument("--paths", type=int, default=40, help="paths of each of these seeds")
    parser.add_argument("--fastest", type=float, default=10, help="leave out random paths above this rate in Mbit/s")
    parser.add_argument("--count", type=int, default=80, help="take so many of the others")
    args = parser.parse_args()
    print(f"# A shield in front of the receiver\n\n{generated('study/benches/shield.py')}\n")
    print(f"Goodput in Mbit/s without and with `--shield resequence`, and the ratio. Simulated, {args.duration},")
    print(f"{args.seeds} seed(s) for each. The parameters were chosen on random paths of the seeds 11, 12, 21, 22 and")
    print("61 to 70.\n")
    print("## Built-in paths\n")
    table(BUILT_IN, args)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = random_paths(folder, args)
        print(
            f"\n## {len(paths)} random paths\n\nThe first of the seeds {args.matrix} ({args.paths} each) with", end=" "
        )
        print(f"at most {args.fastest:g} Mbit/s. Nobody had looked at them before.\n")
        found = table(paths, args)
        print()
        summary(found)
        print(f"\n{EXPLAINED}\n")
        print("| path | sender | one delay | different | difference given | learned | learned, the first flow |")
        print("|---|---|---|---|---|---|---|")
        for path, slow, difference in [("two-paths-200ms", "250 ms", "200 ms"), ("sdwan-50ms", "75 ms", "55 ms")]:
            print("\n".join(equalised(path, slow, difference, folder, args)), flush=True)


if __name__ == "__main__":
    main()
