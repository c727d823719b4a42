#!/usr/bin/env python3
"""What does a shield in front of the receiver change? Simulated transfers with it and without it.

study/benches/shield.py                       # random paths of up to 10 Mbit/s
study/benches/shield.py --fastest 100         # all: takes some hours
"""

import argparse
import json
import subprocess
import tempfile
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
# Less than this is worse.
WORSE = 0.97


def goodputs(path: str, args: argparse.Namespace, *options: str) -> dict[str, float]:
    """Simulate each variant on a path. Return their goodputs in Mbit/s."""
    command = [str(REKNIT), "compare", "--path", path, "--variants", ",".join(VARIANTS), "--seeds", str(args.seeds)]
    command += ["--duration", args.duration, "--no-oracle", "--quiet", "--json", *options]
    document = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {row["variant"]: row["goodput_mbit_s"]["mean"] for row in document["variants"]}


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

    return [str(file) for file in sorted(folder.glob("*.toml")) if rate(file) <= args.fastest]


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


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", default="60s")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--matrix", default="21,22", help="seeds of the random paths")
    parser.add_argument("--paths", type=int, default=40, help="paths of each of these seeds")
    parser.add_argument("--fastest", type=float, default=10, help="leave out random paths above this rate in Mbit/s")
    args = parser.parse_args()
    print(f"# A shield in front of the receiver\n\n{generated('study/benches/shield.py')}\n")
    print(f"Goodput in Mbit/s without and with `--shield resequence`, and the ratio. Simulated, {args.duration},")
    print(f"{args.seeds} seed(s) for each. The parameters were chosen on other random paths (seeds 11 and 12).\n")
    print("## Built-in paths\n")
    table(BUILT_IN, args)
    with tempfile.TemporaryDirectory() as folder:
        paths = random_paths(Path(folder), args)
        print(
            f"\n## {len(paths)} random paths\n\nThe first {args.paths} of each of the seeds {args.matrix} with", end=" "
        )
        print(f"at most {args.fastest:g} Mbit/s.\n")
        found = table(paths, args)
    print()
    summary(found)


if __name__ == "__main__":
    main()
