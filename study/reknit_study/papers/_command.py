"""The command ``reknit papers``."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from reknit._workers import Executor
    from reknit_study.papers._frame import Experiment, Tier
    from reknit_study.papers._lab import Lab

NEEDED = ("polars", "matplotlib", "jinja2", "scipy")
OK, FAILED, USAGE = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str
        The arguments after ``papers``.

    Returns
    -------
    int
        0 for success, 1 for failure or Ctrl-C, 2 for wrong usage.
    """
    try:
        asked = _parser().parse_intermixed_args(list(arguments))
    except SystemExit:  # after the help
        return OK
    except _WrongError as wrong:
        print(f"error: {wrong} (see `reknit papers --help`)", file=sys.stderr)
        return USAGE
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"reknit papers needs {', '.join(missing)}: pip install {' '.join(missing)}", file=sys.stderr)
        return FAILED
    try:
        if asked.what[:1] == ["list"]:
            return _list(asked.what[1:])
        if asked.what[:1] in (["stability"], ["lengths"]):
            return _compare(asked)
        return _run(asked)
    except _WrongError as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print(f"\nstopped; finished runs are in {asked.store}; run the same command again to resume", file=sys.stderr)
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED


class _WrongError(Exception):
    """Wrong usage."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Let `main` print one line."""
        raise _WrongError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="reknit papers",
        description="Rerun the experiments of five papers on reordering, check their claims, and write a report.",
        epilog="examples: reknit papers --quick; reknit papers rr-tcp R4 --full; reknit papers list",
    )
    parser.add_argument(
        "what",
        nargs="*",
        metavar="PAPER [EXPERIMENT ...]",
        help="a paper, and some of its experiments [default: all papers, with fewer seeds and points]; 'list' "
        "lists them and what they cost; 'stability' checks whether outcomes depend on the seeds, with four sets of "
        "them; 'lengths' checks whether outcomes depend on the length of runs, with a third and twice of theirs",
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--quick", action="store_true", help="a few short experiments of each paper, in minutes")
    tier.add_argument(
        "--full", action="store_true", help="durations, seeds and points as published; 'list' shows the cost"
    )
    parser.add_argument(
        "--store",
        type=Path,
        default=Path("out/papers"),
        metavar="DIR",
        help="save finished runs here [default: %(default)s]",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/papers.html"), metavar="FILE", help="the report [default: %(default)s]"
    )
    parser.add_argument(
        "--summary", type=Path, metavar="DIR", help="also write a summary in Markdown and a few figures here"
    )
    parser.add_argument(
        "--full-for",
        type=_names,
        default=[],
        metavar="LIST",
        help="run these papers and experiments (separated by commas) as with --full, and the others as usual",
    )
    parser.add_argument(
        "--more-seeds",
        type=_names,
        metavar="LIST",
        help="add seeds where an outcome depends on them: only for these papers and experiments (separated by "
        "commas), or 'none' [default: all]",
    )
    parser.add_argument(
        "--first-seed", type=int, default=1, metavar="N", help="seeds are N, N + 1, ... [default: %(default)s]"
    )
    return parser


def _names(text: str) -> list[str]:
    """Split a list of papers and experiments."""
    return [name for name in text.split(",") if name not in ("", "none")]


def _tier(asked: argparse.Namespace) -> Tier:
    from reknit_study.papers._frame import DEFAULT, FULL, QUICK

    return QUICK if asked.quick else FULL if asked.full else DEFAULT


def _run(asked: argparse.Namespace) -> int:
    from reknit_study.papers import _overview, _report, _scores, _stability, _summary

    tier = _tier(asked)
    if asked.first_seed < 1:
        raise _WrongError(f"--first-seed {asked.first_seed}: must be at least 1")
    chosen = [experiment.id for experiment in _chosen(asked.what, tier)]
    _check_names(asked)
    _check_files(asked)
    many = f"{len(chosen)} experiment{'s' if len(chosen) > 1 else ''}"
    print(f"rerunning {many}; finished runs are kept in {asked.store}", file=sys.stderr)
    began = time.monotonic()
    with _lab(asked, tier, asked.full_for) as lab:
        verdicts = _stability.decided(lab, chosen)
        results = lab.run(chosen)
        _tell("overview")
        overview = None if asked.what else _overview.overview(lab)
        shown = _report.write(asked.out, lab, results, verdicts, overview)
        if asked.summary is not None:
            reduced = _stability.decided(_lab(asked, tier, (), lab.executor), chosen) if asked.full_for else []
            _summary.write(asked.summary, lab, results, shown, overview, reduced)
    _tell(f"{many} in {time.monotonic() - began:.0f} s", last=True)
    print(_scores.summary(shown))
    print(f"report: {asked.out}")
    return OK


def _lab(asked: argparse.Namespace, tier: Tier, full_for: Sequence[str], executor: Executor | None = None) -> Lab:
    from reknit_study.papers import papers
    from reknit_study.papers._lab import Lab

    return Lab(
        papers().values(),
        tier,
        asked.store,
        executor,
        _tell,
        first_seed=asked.first_seed,
        more_seeds=asked.more_seeds,
        full_for=full_for,
        asked=asked.what,
    )


def _check_names(asked: argparse.Namespace) -> None:
    """Raise `_WrongError` if a list of papers and experiments has an unknown name."""
    from reknit_study.papers import experiments, papers

    for option, names in (("--more-seeds", asked.more_seeds), ("--full-for", asked.full_for)):
        if unknown := set(names or ()) - {*papers(), *experiments()}:
            raise _WrongError(f"{option} {min(unknown)}: no such paper or experiment (see `reknit papers list`)")


def _check_files(asked: argparse.Namespace) -> None:
    """Raise `OSError` if the report or the summary cannot be written; a run may take hours before it tries."""
    for folder in (asked.out.parent, *([asked.summary] if asked.summary else [])):
        if folder.exists() and not folder.is_dir():
            raise _os_error(errno.ENOTDIR, folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise _os_error(errno.EACCES, folder)
    if asked.out.is_dir():
        raise _os_error(errno.EISDIR, asked.out)


def _os_error(number: int, file: Path) -> OSError:
    return OSError(number, os.strerror(number), str(file))


def _compare(asked: argparse.Namespace) -> int:
    """Judge with four sets of seeds, or with three lengths; 1 if an outcome depends on them and is not undecided."""
    from reknit_study.papers import _stability

    sets, on = {
        "stability": (_stability.SEEDS, "the choice of seeds"),
        "lengths": (_stability.LENGTHS, "the length of runs"),
    }[asked.what[0]]
    tier = _tier(asked)
    chosen = _chosen(asked.what[1:], tier)
    _check_names(asked)
    ids = [experiment.id for experiment in chosen]
    lines, unstable = _stability.compare(sets, tier, ids, asked.store, _tell, asked.more_seeds)
    _tell("", last=True)
    print("\n".join([*lines, *unstable]))
    depend = "outcome depends" if len(unstable) == 1 else "outcomes depend"
    print(f"{len(unstable)} {depend} on {on} without being called undecided")
    return FAILED if unstable else OK


def _chosen(what: Sequence[str], tier: Tier) -> list[Experiment]:
    """Find the requested experiments."""
    from reknit_study.papers import MODULES, experiments, papers

    if not what:
        return [e for e in experiments().values() if e.quick or tier.name != "quick"]
    if what[0] not in MODULES:
        raise _WrongError(f"{what[0]}: no such paper; allowed are {', '.join(MODULES)}")
    there = papers()[what[0]].experiments
    for id in what[1:]:
        if id not in there:
            raise _WrongError(f"{id}: no such experiment of {what[0]}; allowed are {', '.join(there) or 'none yet'}")
    return [there[id] for id in what[1:]] or list(there.values())


def _list(what: Sequence[str]) -> int:
    """Print each experiment, what the paper reports, and the cost at each tier."""
    from reknit_study.papers import MODULES, _costs, papers
    from reknit_study.papers._frame import TIERS

    for name in what:
        if name not in MODULES:
            raise _WrongError(f"{name}: no such paper; allowed are {', '.join(MODULES)}")
    per_s = _costs.speed()
    everything = list(papers().values())
    total, most = dict.fromkeys(TIERS, 0.0), 0.0
    for paper in everything:
        if what and paper.name not in what:
            continue
        print(f"{paper.name}: {paper.title} ({paper.source})")
        for experiment in paper.experiments.values():
            packets = _costs.packets(experiment, everything)
            total = {tier: total[tier] + (count or 0) for tier, count in packets.items()}
            most += _costs.packets_with_more_seeds(experiment, everything)
            costs = ", ".join(f"{tier} {_costs.cost(count, per_s)}" for tier, count in packets.items())
            print(f"  {experiment.id:8} {experiment.figure}: {experiment.title}")
            print(f"           reports: {experiment.reports}")
            print(f"           cost: {costs}")
    sums = ", ".join(f"{tier} {_costs.cost(count, per_s)}" for tier, count in total.items())
    print(f"\ntotal: {sums}; at {per_s:,.0f} packets/s on each of {_costs.PROCESSORS} processors, as just measured")
    print(f"with the seeds that are added where outcomes depend on them: default up to {_costs.cost(most, per_s)}")
    return OK


def _tell(line: str, *, last: bool = False) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        print(line, file=sys.stderr, flush=True)
