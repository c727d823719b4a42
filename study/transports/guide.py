"""Measure what docs/guide/quic.md says about quinn; write study/results/quic.md, and the table of the guide.

    python study/transports/guide.py                       build three programs, simulate, write the page: ten minutes
    python study/transports/guide.py --duration 10 --seeds 1

The programs have the published crate, and those of `seam.py sender` and `seam.py both`. If REKNIT_TRANSPORTS has the
path of the first, they are taken as they are: the others lie beside it, with the suffixes `-sender` and `-both`.
"""

import argparse
import datetime
import json
import shlex
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from run import CRATE, ROOT, build, command, commit, percent, table

PAGE = ROOT / "study/results/quic.md"
GUIDE = ROOT / "docs/guide/quic.md"
PATHS = [
    "two-paths-50ms",
    "two-paths-200ms",
    "random-delay",
    "wireless-arq",
    "rr-tcp",
    "satellite-arq",
    "sdwan-50ms",
    "displaced",
    "leo",
    "striping",
]


@dataclass(frozen=True)
class Column:
    """A sender and a receiver: the program, and the transport in it."""

    head: str
    program: str
    transport: str


PUBLISHED = Column("published", "", "quinn")
PATIENT = Column("patient", "", "quinn-patient")
SENDER = Column("recovery, published receiver", "-sender", "quinn-recovery")
RECOVERY = Column("recovery, both ends", "-both", "quinn-recovery")
COLUMNS = [
    PUBLISHED,
    Column("noq", "", "noq"),
    PATIENT,
    Column("published, changed receiver", "-both", "quinn"),
    SENDER,
    RECOVERY,
]
# Those in the table of the guide.
SHOWN = [PUBLISHED, PATIENT, SENDER, RECOVERY]
# The first two of four flows are of the transport, the other two of quinn.
BESIDE = [Column("published", "-both", "quinn"), Column("recovery", "-both", "quinn-recovery-beside")]
# Flows beside others run so many times as long.
LONGER = 4
WAITS = ["wait_p50_ms", "wait_p99_ms"]
LIMITS = {"quinn-recovery-1": "1", "quinn-recovery-2": "2", "quinn-recovery-4": "4", "quinn-recovery": "16"}
FAIR = """duration = "{duration} s"
seeds = {seeds}
variants = ["{transport}"]
[[flows]]
name = "changed"
count = 2
interval = "100 ms"
workload = "bulk"
[[flows]]
name = "published"
count = 2
start = "50 ms"
interval = "100 ms"
workload = "bulk"
[path]
description = "10 Mbit/s, 40 packets of queue, 25 ms"
[[path.forward]]
kind = "link"
name = "bottleneck"
rate = "10 Mbit/s"
delay = "12 ms"
queue = "40 packets"
[[path.reverse]]
kind = "link"
rate = "10 Mbit/s"
delay = "12 ms"
"""
REORDERS = """[[path.forward]]
kind = "multipath"
name = "paths"
choice = "round-robin"
paths = [{ delay = "0 ms" }, { delay = "30 ms" }]
"""


def compare(column: Column, options: argparse.Namespace, *arguments: str) -> list[dict]:
    """Return the runs of a transport."""
    how = ["--duration", f"{options.duration} s", "--seeds", str(options.seeds), "--no-oracle", "--json"]
    found = command("compare", *arguments, "--variants", column.transport, *how, program=column.program)
    return json.loads(found)["variants"][0]["runs"]


def mean(runs: list[dict], key: str = "goodput_mbit_s") -> float:
    """Return the mean of a number over runs."""
    return statistics.mean(run[key] for run in runs)


def shown(number: float) -> str:
    """Format a number with two digits."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def span(runs: list[dict]) -> str:
    """Format the mean of the goodputs, and their range if it is more than a tenth of the mean."""
    rates = [run["goodput_mbit_s"] for run in runs]
    middle = statistics.mean(rates)
    wide = max(rates) - min(rates) > middle / 10
    return f"{shown(middle)} ({shown(min(rates))}-{shown(max(rates))})" if wide else shown(middle)


def share(rates: list[float], possible: list[float]) -> str:
    """Format the mean of shares, each of at most 1."""
    return f"{100 * statistics.mean(min(1.0, a / b) for a, b in zip(rates, possible, strict=True)):.0f} %"


def goodput_table(runs: dict[Column, list[list[dict]]], possible: list[float], columns: list[Column]) -> str:
    """Return a table of goodputs, with the means of their shares of what is possible."""
    rows = [
        [f"`{path}`", shown(possible[i]), *[span(runs[column][i]) for column in columns]]
        for i, path in enumerate(PATHS)
    ]
    shares = [share([mean(one) for one in runs[column]], possible) for column in columns]
    return table(["path", "in order", *[column.head for column in columns]], [*rows, ["mean", "100 %", *shares]])


def lost(runs: list[dict]) -> str:
    """Format the share of packets that are lost, and that of the run with most if it is more than twice as high."""
    shares = [run["lost_packets"] / run["segments_sent"] for run in runs]
    middle, most = statistics.mean(shares), max(shares)
    return f"{percent(middle)} (up to {percent(most)})" if most > 2 * middle else percent(middle)


def reductions(runs: list[dict], options: argparse.Namespace) -> str:
    """Format how often the window is reduced in a minute."""
    return shown(statistics.mean(run["window_cuts"]["total"] for run in runs) * 60 / options.duration)


def cost_table(runs: dict[str, list[list[dict]]], options: argparse.Namespace) -> str:
    """Return a table of what is lost in queues, and of reductions."""
    rows = [
        [f"`{path}`", *(lost(one[i]) for one in runs.values()), *(reductions(one[i], options) for one in runs.values())]
        for i, path in enumerate(PATHS)
    ]
    heads = [f"{what}, {name}" for what in ("lost", "reductions") for name in runs]
    return table(["path", *heads], rows)


def goodputs(options: argparse.Namespace) -> dict[str, str]:
    """Return the tables of goodput, with the reordering and without it, that of the guide, and what is lost."""
    in_order, reordered = (
        {column: [compare(column, options, "--path", path, *flags) for path in PATHS] for column in COLUMNS}
        for flags in (["--in-order"], [])
    )
    possible = [mean(one) for one in in_order[PUBLISHED]]
    costs = {
        "published in order": in_order[PUBLISHED],
        "published": reordered[PUBLISHED],
        "recovery": reordered[RECOVERY],
    }
    return {
        "REORDERED": goodput_table(reordered, possible, COLUMNS),
        "IN_ORDER": goodput_table(in_order, possible, COLUMNS),
        "SHOWN": goodput_table(reordered, possible, SHOWN),
        "COSTS": cost_table(costs, options),
    }


def losses(options: argparse.Namespace) -> str:
    """Return the table of a path without reordering that loses packets."""
    rows = []
    for loss in ("0 %", "0.1 %", "1 %"):
        for column in (PUBLISHED, PATIENT, RECOVERY):
            runs = compare(column, options, "--path", "two-paths-50ms", "--in-order", "--loss", loss)
            waits = [shown(mean(runs, key)) if runs[0].get(key) is not None else "-" for key in WAITS]
            rows.append([loss, column.head, shown(mean(runs)), *waits])
    return table(["loss", "", "Mbit/s", *(f"wait p{key[6:8]}, ms" for key in WAITS)], rows)


def fairness(options: argparse.Namespace) -> str:
    """Return the table of flows that share a bottleneck. They need some time until they share it evenly."""
    options = argparse.Namespace(duration=LONGER * options.duration, seeds=options.seeds)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for path, stages in (("in order", ""), ("every other packet 30 ms late", REORDERS)):
            for column in BESIDE:
                file = Path(name) / "fair.toml"
                values = {"duration": options.duration, "seeds": options.seeds, "transport": column.transport}
                file.write_text(FAIR.format(**values) + stages)
                runs = compare(column, options, "--scenario", str(file))
                rates = [statistics.mean(run["groups"][i]["goodput_mbit_s"] for run in runs) for i in (0, 1)]
                rows.append([path, column.head, *map(shown, rates), f"{mean(runs, 'jain'):.3f}"])
    return table(["path", "two flows", "they, Mbit/s", "two published, Mbit/s", "Jain's index"], rows)


def limits(options: argparse.Namespace) -> str:
    """Return the table of limits of the wait."""
    rows = []
    for path in PATHS:
        found = [compare(Column("", "-both", one), options, "--path", path, "--loss", "0.1 %") for one in LIMITS]
        waits = [shown(mean(runs, "wait_p99_ms")) if runs[0].get("wait_p99_ms") is not None else "-" for runs in found]
        rows.append([f"`{path}`", *(f"{shown(mean(runs))}, {wait}" for runs, wait in zip(found, waits, strict=True))])
    return table(["path", *LIMITS.values()], rows)


def with_table(text: str, new: str) -> str:
    """Return the guide with another table."""
    start, end = "<!-- written by `study/transports/guide.py` -->\n", "<!-- end -->"
    before, rest = text.split(start)
    return before + start + new + end + rest.split(end, 1)[1]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=int, default=30, help="seconds of each run (default: 30)")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default: 10)")
    options = parser.parse_args()
    build()
    how = shlex.join(["python", "study/transports/guide.py", *sys.argv[1:]])
    tables = goodputs(options)
    values = {
        "GENERATED": f"*Generated by `{how}` at commit `{commit()}`.*",
        **tables,
        "LOSSES": losses(options),
        "FAIRNESS": fairness(options),
        "LIMITS": limits(options),
        "DURATION": str(options.duration),
        "LONGER": str(LONGER * options.duration),
        "SEEDS": str(options.seeds),
        "DATE": str(datetime.datetime.now(tz=datetime.UTC).date()),
    }
    text = (CRATE / "guide.md").read_text()
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value.strip())
    PAGE.write_text(text)
    GUIDE.write_text(with_table(GUIDE.read_text(), tables["SHOWN"]))


if __name__ == "__main__":
    main()
