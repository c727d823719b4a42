#!/usr/bin/env python3
"""Measures what it costs to judge only the last reduction, and prints the tables of study/results/undo.md.

    make build && study/benches/undo.py

Each variant runs as published, and with `open = 8`: the last eight reductions can be undone, each by its own DSACKs.
Simulated; takes about three minutes on two processors.
"""

import statistics
import tempfile
from pathlib import Path

from fidelity import REKNIT, run

VARIANTS = ["dsack-r", "dsack-ss", "rr-taes", "rack"]
OPEN = '[[spurious_detectors]]\nalgorithm = "dsack"\nopen = 8\n'
PATH = ["--path", "two-paths-50ms", "--duration", "15 s", "--seeds", "10", "--no-oracle"]
MATRIX = ["--seed", "1,2", "--paths", "24", "--duration", "15 s", "--seeds", "2"]


def measure(*arguments: str) -> dict:
    """Return the results of a command of reknit."""
    return run([str(REKNIT), *arguments, "--json", "--quiet"])


def own(variant: str) -> str:
    """Return the name of the variant with more open reductions."""
    return f"{variant}-open"


def files(folder: Path) -> list[str]:
    """Write the variant files, and return the options that name them."""
    options = []
    for variant in VARIANTS:
        file = folder / f"{variant}.toml"
        file.write_text(f'name = "{own(variant)}"\nbase = "{variant}"\n{OPEN}')
        options += ["--variant-file", str(file)]
    return options


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    for row in [head, ["---"] * len(head), *rows]:
        print(f"| {' | '.join(row)} |")
    print()


def one_path(names: str, more: list[str]) -> None:
    """Compare on one path: goodput, reductions, and how many of them were undone."""
    runs = {row["variant"]: row["runs"] for row in measure("compare", *PATH, "--variants", names, *more)["variants"]}
    rows = []
    for variant in VARIANTS:
        cells = []
        for name in (variant, own(variant)):
            goodput = [one["goodput_mbit_s"] for one in runs[name]]
            cuts = statistics.mean(one["window_cuts"]["total"] for one in runs[name])
            undos = statistics.mean(one["undos"] for one in runs[name])
            cells += [f"{statistics.mean(goodput):.2f} ({min(goodput):.2f} to {max(goodput):.2f})"]
            cells += [f"{cuts:.0f} ({undos:.0f})"]
        rows.append([f"`{variant}`", *cells])
    print("`two-paths-50ms`, 15 s, 10 seeds: goodput in Mbit/s (and its range), reductions (undone):\n")
    table(["variant", "only the last one (`open = 1`)", "", "`open = 8`", ""], rows)


def matrix(names: str, more: list[str]) -> None:
    """Compare on random paths: the share of the in-order goodput."""
    result = measure("matrix", *MATRIX, "--variants", names, *more)
    lossy = {path["path"]: path["lossy"] for path in result["paths"]}
    rows = []
    for variant in VARIANTS:
        cells = []
        for kind in (False, True):
            by_path: dict[str, dict[str, list[float]]] = {variant: {}, own(variant): {}}
            for one in result["runs"]:
                if one["variant"] in by_path and lossy[one["path"]] == kind:
                    by_path[one["variant"]].setdefault(one["path"], []).append(one["of_in_order"])
            shares = {name: [statistics.mean(runs) for runs in paths.values()] for name, paths in by_path.items()}
            before, after = shares[variant], shares[own(variant)]
            better = sum(b > a * 1.02 for a, b in zip(before, after, strict=True))
            worse = sum(b < a * 0.98 for a, b in zip(before, after, strict=True))
            cells += [f"{statistics.mean(before):.1%}", f"{statistics.mean(after):.1%}", f"{better} / {worse}"]
        rows.append([f"`{variant}`", *cells])
    counts = [sum(kind == value for value in lossy.values()) for kind in (False, True)]
    print(f"Random paths, {counts[0]} that lose no packets and {counts[1]} that do, 15 s, 2 seeds: mean share of the")
    print("in-order goodput, and on how many paths `open = 8` is more than 2 % better / worse:\n")
    head = ["variant", "lossless, the last one", "`open = 8`", "better / worse"]
    table([*head, "lossy, the last one", "`open = 8`", "better / worse"], rows)


def main() -> None:
    """Print both tables."""
    names = ",".join([*VARIANTS, *map(own, VARIANTS)])
    with tempfile.TemporaryDirectory() as folder:
        more = files(Path(folder))
        one_path(names, more)
        matrix(names, more)


if __name__ == "__main__":
    main()
