"""Compare other transports with reknit's variants on random paths, and write study/results/transports.md.

    python study/transports/run.py           build three programs, simulate, write the page: most of an hour
    python study/transports/run.py --test    build and test only, and try the edits of `seam.py`: ten minutes

The programs have the published crates, and quinn-proto as changed by `seam.py sender` and `seam.py both`. If the
environment variable REKNIT_TRANSPORTS has the path of the first, they are taken as they are: the others lie beside it,
with the suffixes `-sender` and `-both`.

The paths are those of `reknit matrix --seed 101,...,120 --paths 10`, on which nothing was developed.
"""

import argparse
import datetime
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import seam

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "study/transports"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target/transports")
COMMAND = Path(os.environ.get("REKNIT_TRANSPORTS") or TARGET / "release/reknit-transports")
PAGE = ROOT / "study/results/transports.md"
SEEDS = ",".join(str(seed) for seed in range(101, 121))
TRANSPORTS = ["quinn", "quinn-patient", "noq", "smoltcp"]
VARIANTS = ["linux", "bbr1", "reknit", "reknit-bbr"]
RECOVERY = "quinn-recovery"
# Rows of the changed quinn, by the suffix of the program.
CHANGED = {f"{RECOVERY}, published receiver": "-sender", RECOVERY: "-both"}
ROWS = [*TRANSPORTS, *CHANGED, *VARIANTS]
# What the goodput is a share of.
REFERENCE = "oracle"
# The causes of reordering, as the descriptions of the paths name them, with their short names.
SHORT = {"burst-loss": "bursts of loss", "iid": "late packets"}


@dataclass
class Runs:
    """The runs of one transport on some paths."""

    goodputs: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    by_cause: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    unreported: set[str] = field(default_factory=set)

    def add(self, cause: str, goodput: float, possible: float, run: dict[str, Any]) -> None:
        """Add a run."""
        share = min(1.0, goodput / possible)
        self.goodputs.append(goodput)
        self.shares.append(share)
        self.by_cause.setdefault(cause, []).append(share)
        self.unreported.update(run.get("unreported", []))
        numbers = {
            "sent": run["segments_sent"],
            "retransmitted": run["retransmissions"]["total"],
            "spurious": run["spurious_retransmissions"],
            "cuts": run["window_cuts"]["total"],
            "false": run["false_window_cuts"],
            "undone": run["undos"],
        }
        for name, number in numbers.items():
            self.counts[name] = self.counts.get(name, 0) + number


def cargo(*arguments: str) -> None:
    """Run cargo in the workspace of the transports."""
    subprocess.run(["cargo", *arguments], cwd=CRATE, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)}, check=True)


def build() -> None:
    """Build the programs, unless the environment says that they are built; the published crates last."""
    if "REKNIT_TRANSPORTS" not in os.environ:
        for suffix in CHANGED.values():
            seam.build(suffix.removeprefix("-"), TARGET)
        cargo("build", "--release")


def command(*arguments: str, program: str = "") -> str:
    """Return what a program prints; ``program`` is its suffix."""
    return subprocess.run([f"{COMMAND}{program}", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def commit() -> str:
    """Return the commit from which the programs were built."""
    return re.sub(r".*commit (\w{8}).*", r"\1", command("--version").strip())


def measure(folder: Path, options: argparse.Namespace, *, in_order: bool) -> dict[str, Runs]:
    """Run every transport on the paths in a folder. A share of more than 1 counts as 1."""
    how = ["--path", f"{folder}/*.toml", "--seeds", "1", "--duration", f"{options.duration} s", "--no-oracle", "--json"]
    how += ["--in-order"] if in_order else []

    def compare(names: list[str], program: str) -> list[dict[str, Any]]:
        result = json.loads(command("compare", *how, "--variants", ",".join(names), program=program))
        return result.get("paths", [result])

    paths = compare([*TRANSPORTS, *VARIANTS, REFERENCE], "")
    changed = {row: compare([RECOVERY], program) for row, program in CHANGED.items()}
    found: dict[str, Runs] = {}
    for i, path in enumerate(paths):
        cause = re.sub(r".*: | \(without.*", "", path["description"])
        runs = {row["variant"]: row["runs"][0] for row in path["variants"]}
        runs |= {row: others[i]["variants"][0]["runs"][0] for row, others in changed.items()}
        possible = runs[REFERENCE]["goodput_mbit_s"]
        for name, run in runs.items():
            found.setdefault(name, Runs()).add(cause, run["goodput_mbit_s"], possible, run)
    return found


def of_in_order(measured: dict[str, dict[str, Runs]], row: str) -> str:
    """Format the goodput of a kind of quinn on lossless paths, as a share of published quinn's in order."""
    goodputs, in_order = measured["lossless"][row].goodputs, measured["lossless in order"]["quinn"].goodputs
    return percent(statistics.mean(min(1.0, one / most) for one, most in zip(goodputs, in_order, strict=True)))


def percent(share: float) -> str:
    """Format a share."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def ratio(counts: dict[str, int], part: str, whole: str) -> str:
    """Format one count as a share of another."""
    return percent(counts[part] / counts[whole]) if counts[whole] else "0"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def ranking(measured: dict[str, dict[str, Runs]]) -> str:
    """Return the first table: the best on lossless paths comes first."""
    names = sorted(ROWS, key=lambda name: -statistics.mean(measured["lossless"][name].shares))
    bold = {True: "**{}**", False: "{}"}
    columns = ["lossless", "lossless in order", "lossy", "lossy in order"]
    rows = [
        [f"`{name}`"]
        + [
            bold[column == "lossless"].format(percent(statistics.mean(measured[column][name].shares)))
            for column in columns
        ]
        for name in names
    ]
    return table(["", "reordered", "the same in order", "reordered, with loss", "the same in order"], rows)


def by_cause(runs: dict[str, Runs]) -> str:
    """Return the shares by cause of reordering."""
    causes = sorted({cause for one in runs.values() for cause in one.by_cause})
    rows = [[f"`{name}`"] + [percent(statistics.mean(runs[name].by_cause[cause])) for cause in causes] for name in ROWS]
    return table(["", *[SHORT.get(cause, cause) for cause in causes]], rows)


def costs(runs: dict[str, Runs], options: argparse.Namespace) -> str:
    """Return what reordering makes each of them do."""
    rows = []
    for name in ROWS:
        one = runs[name]
        minutes = len(one.shares) * options.duration / 60
        cuts = [f"{one.counts['cuts'] / minutes:.1f}", ratio(one.counts, "false", "cuts")]
        undone = ratio(one.counts, "undone", "cuts")
        unknown = "window_cuts" in one.unreported
        rows.append(
            [
                f"`{name}`",
                ratio(one.counts, "retransmitted", "sent"),
                ratio(one.counts, "spurious", "retransmitted"),
                *(["-", "-", "-"] if unknown else [*cuts, undone]),
            ]
        )
    return table(["", "retransmitted", "of these spurious", "reductions per minute", "of these false", "undone"], rows)


def page(measured: dict[str, dict[str, Runs]], options: argparse.Namespace) -> str:
    """Return the page."""
    lossless, lossy = (len(measured[kind][REFERENCE].shares) for kind in ("lossless", "lossy"))
    how = shlex.join(["python", "study/transports/run.py", *sys.argv[1:]])
    today = datetime.datetime.now(tz=datetime.UTC).date()
    programs = {**dict.fromkeys(TRANSPORTS, ""), RECOVERY: CHANGED[RECOVERY]}
    described = {name: command("variants", name, program=program) for name, program in programs.items()}
    abouts = "".join(f"* `{name}`: {' '.join(about.split())}.\n" for name, about in described.items())
    text = (CRATE / "page.md").read_text()
    values = {
        "GENERATED": f"*Generated by `{how}` at commit `{commit()}`.*",
        "RANKING": ranking(measured),
        "CAUSES": by_cause(measured["lossless"]),
        "COSTS": costs(measured["lossless"], options),
        "LOSSLESS": str(lossless),
        "LOSSY": str(lossy),
        "DURATION": str(options.duration),
        "DATE": str(today),
        "ABOUT": abouts,
        "PUBLISHED": of_in_order(measured, "quinn"),
        **{name: of_in_order(measured, row) for name, row in zip(("SENDER", "BOTH"), CHANGED, strict=True)},
        "LIVE": (CRATE / "live.md").read_text(),
    }
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value.strip())
    return text


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", action="store_true", help="build and test only")
    parser.add_argument("--paths", type=int, default=10, help="paths for each of the 20 seeds (default: 10)")
    parser.add_argument("--duration", type=int, default=30, help="seconds of each run (default: 30)")
    options = parser.parse_args()
    if options.test:
        cargo("test", "--release")
        with tempfile.TemporaryDirectory() as name:
            for ends in seam.ENDS:
                seam.make(Path(name) / ends, ends)
        return
    build()
    measured: dict[str, dict[str, Runs]] = {}
    with tempfile.TemporaryDirectory() as name:
        for kind in ("lossless", "lossy"):
            folder = Path(name) / kind
            command("matrix", "--seed", SEEDS, "--paths", str(options.paths), f"--{kind}", "--write", str(folder))
            measured[kind] = measure(folder, options, in_order=False)
            measured[f"{kind} in order"] = measure(folder, options, in_order=True)
    PAGE.write_text(page(measured, options))


if __name__ == "__main__":
    main()
