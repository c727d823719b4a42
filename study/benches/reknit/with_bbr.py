#!/usr/bin/env python3
"""Measures `reknit-bbr`: random paths, how it shares a queue with other senders, and receivers that lie.

    make build && python study/benches/reknit/with_bbr.py > study/results/reknit-bbr.md

The random paths are those of seeds 103 and 104, on which this variant was not developed; four paths of seeds 101 and
102 are those on which it was slower than `bbr1`. All of it is simulated, and takes five minutes on two processors.
"""

import json
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

from sharing import BOTTLENECKS, goodput

from tools import compare, generated, links, run, table

SEEDS, PATHS = "103,104", 40
BASES = ["linux", "bbr1", "reknit", "rack", "sack"]
SLOWER = ["101-36", "102-29", "102-37", "102-39"]
LIES = ["dsack", "dsack-all", "timestamps", "dsack-and-timestamps", "sack-ahead", "sack-random", "divide", "stretch"]

# The same detector with version 3 of BBR.
VERSION_3 = 'name = "reknit-bbr3"\nbase = "reknit"\n[congestion_control]\nalgorithm = "bbr"\n'

FLOWS = """path = "path.toml"
duration = "120 s"
seeds = 4
[[flows]]
name = "first"
count = {count}
workload = "bulk"
[[flows]]
name = "second"
count = {count}
workload = "bulk"
variant = "{second}"
"""


def mean(ratios: list[float]) -> str:
    """Return the geometric mean."""
    return f"{math.exp(statistics.mean(map(math.log, ratios))):.2f}"


def random_paths(folder: Path) -> None:
    """Compare the goodputs on random paths."""
    file = folder / "version-3.toml"
    file.write_text(VERSION_3)
    arguments = ["--seed", SEEDS, "--paths", str(PATHS), "--duration", "30 s", "--seeds", "2", "--json"]
    variants = ["--variants", ",".join(["reknit-bbr", *BASES, "oracle-bbr1"]), "--variant-file", str(file)]
    result = json.loads(run("matrix", *arguments, *variants))
    runs: dict[str, dict[str, list[float]]] = {}
    for one in result["runs"]:
        runs.setdefault(one["variant"], {}).setdefault(one["path"], []).append(one["goodput_mbit_s"])
    of = {name: {path: statistics.mean(each) for path, each in paths.items()} for name, paths in runs.items()}
    lossy = [path["path"] for path in result["paths"] if path["lossy"]]
    rows = []
    for base in [*BASES, "oracle-bbr1", "reknit-bbr3"]:
        ratios = {path: of["reknit-bbr"][path] / of[base][path] for path in of[base]}
        worst = min(ratios, key=lambda path: ratios[path])
        slower = sum(ratio < 0.97 for ratio in ratios.values())
        kinds = [[ratio for path, ratio in ratios.items() if (path in lossy) == kind] for kind in (False, True)]
        cells = [mean(list(ratios.values())), *map(mean, kinds), f"{ratios[worst]:.2f} ({worst})", str(slower)]
        rows.append([f"`{base}`", *cells])
    count = len(of["linux"])
    print(f"## Random paths\n\nGoodput of `reknit-bbr` / that of another variant on {count} random paths of")
    seeds = SEEDS.replace(",", " and ")
    print(f"seeds {seeds}, {len(lossy)} of which lose packets at random or in bursts: geometric means of runs of 30 s.")
    print("`reknit-bbr3` is the same detector with version 3 of BBR.\n")
    head = ["compared with", "all paths", "lossless", "lossy", "worst path", "paths below 0.97"]
    table(head, rows)


def slower_paths(folder: Path) -> None:
    """Run the paths on which `reknit-bbr` was slower than `bbr1` with more seeds."""
    run("matrix", "--seed", "101,102", "--paths", str(PATHS), "--write", str(folder))
    rows = []
    for path in SLOWER:
        file = folder / f"{path}.toml"
        arguments = ["--variants", "bbr1,reknit-bbr,oracle-bbr1", "--duration", "30 s", "--seeds", "20"]
        of = {one["variant"]: one["runs"] for one in compare("--path", str(file), *arguments)}
        what = file.read_text().splitlines()[0].split('"')[1].removeprefix("random path ")
        rows.append([what, *(interval(of[name]) for name in ("bbr1", "reknit-bbr", "oracle-bbr1"))])
    print("Four paths of seeds 101 and 102 on which it was slower than `bbr1` in one run: goodput in Mbit/s, means of")
    print("20 runs of 30 s with 95 % intervals.\n")
    table(["path", "`bbr1`", "`reknit-bbr`", "`oracle-bbr1`"], rows)


def interval(runs: list[dict[str, Any]]) -> str:
    """Format a mean and its 95 % interval."""
    values = [float(one["goodput_mbit_s"]) for one in runs]
    return f"{statistics.mean(values):.2f} ± {2.09 * statistics.stdev(values) / math.sqrt(len(values)):.2f}"


def share(folder: Path, bottleneck: tuple[int, int, int, int], second: str) -> list[str]:
    """Goodput of `bbr1` and of `reknit-bbr` beside `second`, as a multiple of the fair share."""
    rate, delay, queue, count = bottleneck
    (folder / "path.toml").write_text(links(f"{rate} Mbit/s", f"{delay} ms", queue))
    (folder / "flows.toml").write_text(FLOWS.format(count=count, second=second))
    results = compare("--scenario", str(folder / "flows.toml"), "--variants", "bbr1,reknit-bbr")
    return [
        f"{statistics.mean(2 * goodput(one, 'first') / one['goodput_mbit_s'] for one in result['runs']):.2f}"
        for result in results
    ]


def sharing(folder: Path) -> None:
    """Share a queue with other senders, without reordering."""
    rows = []
    for bottleneck in BOTTLENECKS:
        rate, delay, queue, count = bottleneck
        cells = [" / ".join(share(folder, bottleneck, second)) for second in ("linux", "bbr1", "sack")]
        rows.append([f"{rate} Mbit/s, {2 * delay} ms, {queue} packets, {count} + {count} flows", *cells])
    print("## Sharing a queue\n\nGoodput of flows of `bbr1` / of `reknit-bbr` beside as many flows of another variant,")
    print("as a multiple of their fair share; 2 is everything. Nothing is reordered.\n")
    table(["bottleneck", "beside `linux`", "beside `bbr1`", "beside `sack`"], rows)


def receivers() -> None:
    """Compare what liars gain."""
    names = ["bbr1", "reknit", "reknit-bbr"]
    arguments = ["--variants", ",".join(names), "--lies", ",".join(LIES), "--json"]
    attacks = json.loads(run("attacks", *arguments))["attacks"]
    of = {(one["variant"], one["lie"]): one for one in attacks}
    cells = {key: f"{one['gain']:.2f} ({one['rival']:.2f})" for key, one in of.items()}
    rows = [[f"`{lie}`", *(cells[name, lie] for name in names)] for lie in LIES]
    print("## Receivers that lie\n\nThe gain of a liar: its goodput relative to its goodput when it is honest; in")
    print("brackets, the same for an honest receiver beside it ([the lies](../../docs/design/security.md)).\n")
    table(["lie", *(f"`{name}`" for name in names)], rows)


def main() -> None:
    """Print all tables."""
    print(f"# Measurements of `reknit-bbr`\n\n{generated('python study/benches/reknit/with_bbr.py')}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        random_paths(folder)
        slower_paths(folder)
        sharing(folder)
    receivers()


if __name__ == "__main__":
    main()
