"""Comparisons, single runs, and the lists of variants and paths."""

from __future__ import annotations

import warnings as _warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reknit import _frames, _native, _show
from reknit._columns import COMPLETIONS, COUNTS, GROUP, MEASURED, PATH, SERIES
from reknit._scenario import File, Settings, Table, Time, assignments, named, run_args, setup_args, time, whole

if TYPE_CHECKING:
    import polars

    from reknit._frames import Schema

RUN: Schema = {**COUNTS, **MEASURED}
"""A single run, which is also measured; those of a comparison are only counted."""
ROW: Schema = {**RUN, "groups": GROUP}
"""What a sweep has of each run."""
_SUMMARY: Schema = {
    "variant": "str",
    "runs": "int",
    "goodput_mbit_s": "float",
    "goodput_ci95_mbit_s": "float",
    "goodput_min_mbit_s": "float",
    "goodput_max_mbit_s": "float",
    "two_groups": "bool",
    "of_in_order": "float",
    "fell_back": "list",
}
_VARIANTS: Schema = {
    "name": "str",
    "summary": "str",
    "family": "str",
    "source": "str",
    "side": "str",
    "peer_needs": "str",
    "status": "str",
    "aliases": "list",
    "without_peer": "list",
}
_PATHS: Schema = {"name": "str", "description": "str", "source": "str"}
_N = (1, 2, 3, 5, 10, 20)
_PATH: Schema = {
    **PATH,
    **{f"extent_at_least_{n}": "int" for n in _N},
    **{f"n_reordered_{n}": "int" for n in _N},
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """Variants side by side on one path.

    Attributes
    ----------
    summary : polars.DataFrame
        A row for each variant, in the order asked for: ``goodput_mbit_s``, the mean over the seeds in Mbit/s;
        ``goodput_ci95_mbit_s``, half the width of its 95 % confidence interval (Student's t; null for one seed);
        ``goodput_min_mbit_s`` and ``goodput_max_mbit_s``; ``two_groups``, whether the runs fall into two groups, so
        that the mean describes none of them (docs/json.md has the rule);
        ``of_in_order``, the mean as a share of ``in_order_mbit_s``; ``fell_back``, what the variant did without
        because the two ends did not agree on it.
    runs : polars.DataFrame
        A row for each run, with all its counts (docs/json.md). Columns end in their unit; what has no unit is a count.
    groups : polars.DataFrame
        A row for each run and set of flows of the scenario, or part of a mix: ``group``, its name; ``group_variant``,
        if it has one of its own; ``flows``, how many; their ``goodput_mbit_s``, Mbit/s, Jain's index, and their
        transactions (null if they have none): how many ``completed`` and ``failed``, completion times in ms.
    path, description : str
        The path's name and what it is.
    in_order_mbit_s : float
        Goodput of ``sack`` on the path without whatever reorders, Mbit/s.
    document : dict
        What ``reknit compare --json`` prints.
    """

    summary: polars.DataFrame
    runs: polars.DataFrame
    groups: polars.DataFrame
    path: str
    description: str
    in_order_mbit_s: float
    document: dict[str, Any]

    def __repr__(self) -> str:
        """Title, and a line for each variant."""
        return _show.text(*_show.comparison(self))

    def _repr_html_(self) -> str:
        """Show the same in a notebook."""
        return _show.html(*_show.comparison(self))


@dataclass(frozen=True, repr=False)
class Run:
    """One run.

    Attributes
    ----------
    totals : dict
        The same numbers as in a row of ``Comparison.runs``, and what takes a look at every event: means over time, true
        round-trip times, bursts, what became of each transmission (docs/json.md has them all).
    series : polars.DataFrame
        The senders' variables every ``sample_every``: ``time_s`` in seconds, windows in bytes (``cwnd_bytes``,
        ``ssthresh_bytes``, ``flight_size_bytes``, ``pipe_bytes``, ``snd_wnd_bytes``), ``dup_thresh_segments``,
        ``reordering_coverage`` (the share of reordering that it is to cover; null if it steers by none), ``srtt_ms``
        and ``rto_ms``, ``phase`` (open, disorder, recovery, loss), bytes of the stream that were
        ``acknowledged_bytes`` and that arrived in order, ``delivered_bytes``, and ``spurious_retransmissions`` so far.
        Empty without ``sample_every``.
    groups : polars.DataFrame
        A row for each set of flows, as in `Comparison`.
    path, description, variant : str
        What was run on what.
    seed : int
        The seed.
    duration_s : float
        Length of the run in its own time, seconds.
    fell_back : list of str
        What the variant did without because the two ends did not agree on it.
    """

    totals: dict[str, Any]
    series: polars.DataFrame
    groups: polars.DataFrame
    path: str
    description: str
    variant: str
    seed: int
    duration_s: float
    fell_back: list[str]

    def __repr__(self) -> str:
        """Title, and the totals that are looked at first."""
        return _show.text(*_show.run(self))

    def _repr_html_(self) -> str:
        """Show the same in a notebook."""
        return _show.html(*_show.run(self))


def compare(
    path: File | Table | None = None,
    variants: str | Table | Iterable[str | Table] | None = None,
    *,
    scenario: File | Table | None = None,
    seeds: int | None = None,
    duration: Time | None = None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool | None = None,
    phases: str | None = None,
    flows: int | None = None,
    variant_files: File | Iterable[File] = (),
) -> Comparison:
    """Compare variants on a path, in simulation, on all processors.

    Each variant runs once for each seed; for a given seed every variant sees the same losses and delays. Arguments
    override the scenario.

    Parameters
    ----------
    path : str, path-like or mapping, optional
        A built-in path (`paths` lists them), a TOML file, or what would stand in one (docs/paths.md).
    variants : str, mapping or iterable of them, optional
        Names (`variants` lists them), or what would stand in a file (docs/variants.md). By default all, or those that
        ``variant_files`` start from.
    scenario : path-like or mapping, optional
        Who shares the path and does what there: a TOML file, or what would stand in one (docs/scenarios.md). By default
        one bulk transfer.
    seeds : int, optional
        Runs of each variant, with the seeds 1, 2, 3, ...; by default 5.
    duration : str, float or timedelta, optional
        Length of each run in its own time: text with a unit, or seconds; by default 60 s.
    loss : str or float, optional
        Lose each data packet with this probability: from 0 to 1, or text such as ``"1 %"``.
    set : mapping or sequence of str, optional
        Values of the path or of the TCP to change: ``{"forward.bottleneck.rate": "2 Mbit/s"}``.
    in_order : bool, optional
        Take everything off the path that changes the order of packets.
    phases : str, optional
        ``"drawn"``: each seed also draws when flows start, which of the paths taken in turn comes first, and how far a
        periodic fault has come. ``"fixed"``: all of that is at its beginning, with every seed. By default drawn.
    flows : int, optional
        Bulk transfers that share the path, all of the same variant, opened 100 ms apart, instead of the scenario's
        flows.
    variant_files : path-like or iterable of them
        Files with variants of your own (docs/variants.md).

    Returns
    -------
    Comparison
        A table of the variants, one of the runs, one of the sets of flows.

    Raises
    ------
    Error
        If the question is wrong, in the words of the command.
    """
    where = setup_args(path, loss, set, in_order, phases, flows, scenario)
    asked = None if seeds is None else whole("seeds", seeds)
    document, warnings = _native.compare(where, run_args(variants, variant_files, duration), asked)
    _warn(warnings)
    share = document["in_order_mbit_s"]
    rows = document["variants"]
    summary = [
        {
            "variant": row["variant"],
            "runs": len(row["runs"]),
            "goodput_mbit_s": row["goodput_mbit_s"]["mean"],
            "goodput_ci95_mbit_s": row["goodput_mbit_s"]["ci95"],
            "goodput_min_mbit_s": row["goodput_mbit_s"]["min"],
            "goodput_max_mbit_s": row["goodput_mbit_s"]["max"],
            "two_groups": row["goodput_mbit_s"]["two_groups"] is not None,
            "of_in_order": row["of_in_order"],
            "fell_back": row["fell_back"],
        }
        for row in rows
    ]
    runs = [
        {
            "variant": row["variant"],
            "seed": run["seed"],
            "of_in_order": run["goodput_mbit_s"] / share if share else None,
            **flat(run),
        }
        for row in rows
        for run in row["runs"]
    ]
    groups = [
        {"variant": row["variant"], "seed": run["seed"], **group}
        for row in rows
        for run in row["runs"]
        for group in _groups(run)
    ]
    return Comparison(
        summary=_frames.from_rows(summary, _SUMMARY),
        runs=_frames.from_rows(runs, {"variant": "str", "seed": "int", "of_in_order": "float", **COUNTS}),
        groups=_frames.from_rows(groups, {"variant": "str", "seed": "int", **GROUP}),
        path=document["path"],
        description=document["description"],
        in_order_mbit_s=share,
        document=document,
    )


def simulate(
    path: File | Table | None = None,
    variant: str | Table | None = None,
    *,
    scenario: File | Table | None = None,
    seed: int = 1,
    duration: Time | None = None,
    sample_every: Time | None = None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool | None = None,
    phases: str | None = None,
    flows: int | None = None,
    variant_files: File | Iterable[File] = (),
) -> Run:
    """Run one variant once, and look inside.

    Parameters
    ----------
    path : str, path-like or mapping, optional
        A built-in path, a TOML file, or what would stand in one.
    variant : str or mapping, optional
        The variant's name, or what would stand in its file; by default the only one that the scenario names.
    seed : int
        Seed of every random decision: the same seed gives the same run, everywhere.
    duration : str, float or timedelta, optional
        Length of the run in its own time: text with a unit, or seconds; by default 60 s.
    sample_every : str, float or timedelta, optional
        Interval of the time series; without one there is no series.
    scenario, loss, set, in_order, phases, flows, variant_files
        As for `compare`.

    Returns
    -------
    Run
        Totals and time series.

    Raises
    ------
    Error
        If the question is wrong.
    """
    where = setup_args(path, loss, set, in_order, phases, flows, scenario)
    who = run_args(None if variant is None else [variant], variant_files, duration, "variant")
    interval = None if sample_every is None else time("sample_every", sample_every)
    found = _native.simulate(where, who, whole("seed", seed), interval)
    _warn(found["warnings"])
    return Run(
        totals=flat(found["run"]),
        series=_frames.frame(found["series"], SERIES),
        groups=_frames.from_rows(_groups(found["run"]), GROUP),
        path=found["path"],
        description=found["description"],
        variant=found["variant"],
        seed=seed,
        duration_s=found["duration_s"],
        fell_back=found["fell_back"],
    )


def variants() -> polars.DataFrame:
    """List the variants.

    Returns
    -------
    polars.DataFrame
        A row for each: ``name``, ``summary``, ``family`` (what it does about reordering), ``source``, ``side`` (which
        end it changes), ``peer_needs``, ``status`` (how far it follows its source), ``aliases``, ``without_peer`` (what
        happens if the other end lacks what it needs).
    """
    return _frames.from_rows(_native.variants()["variants"], _VARIANTS)


def paths() -> polars.DataFrame:
    """List the built-in paths.

    Returns
    -------
    polars.DataFrame
        A row for each: ``name``, ``description``, ``source``.
    """
    return _frames.from_rows(_native.paths(), _PATHS)


def path(name: File | Table, *, set: Settings | None = None, seed: int = 1) -> polars.DataFrame:
    """Send a train of packets through a path, and report in the terms of RFC 4737.

    Parameters
    ----------
    name : str, path-like or mapping
        A built-in path, a TOML file, or what would stand in one.
    set : mapping or sequence of str, optional
        Values of the path to change.
    seed : int
        Seed of the path's random decisions.

    Returns
    -------
    polars.DataFrame
        A row for each ``direction``: ``packets`` sent of ``size_bytes`` bytes, one each ``gap_ms``; one-way delays in
        ms (``delay_p50_ms`` to ``delay_max_ms``); packets ``lost``, ``duplicated`` and ``reordered`` (RFC 4737 section
        3.3), their ratio; reordering extents in packets (section 4.2; null if nothing was reordered);
        ``extent_at_least_3``: packets that at least three later ones overtook, which can trigger a false fast
        retransmit; ``n_reordered_3``: packets that arrived directly after three later ones (section 5).

    Raises
    ------
    Error
        If there is no such path.
    """
    reports = _native.path(named("name", name), assignments(set), whole("seed", seed))
    for report in reports:
        for measure in ("extent_at_least", "n_reordered"):
            report.update({f"{measure}_{n}": count for n, count in zip(_N, report[measure], strict=True)})
    return _frames.from_rows(reports, _PATH)


def row(run: dict[str, Any]) -> dict[str, Any]:
    """Make the row of a run in a sweep: its counts, and those of its sets of flows in one column."""
    return {**flat(run), "groups": _groups(run)}


def flat(run: dict[str, Any]) -> dict[str, Any]:
    """Put a run's counts side by side, without its seed and its groups."""
    row: dict[str, Any] = _transactions(run)
    for name, value in run.items():
        if name == "measured":
            row.update(value or {})
        elif isinstance(value, dict) and name != "transactions":
            row[name] = value["total"]
            row.update({f"{name}_{cause}": count for cause, count in value.items() if cause != "total"})
        elif name not in ("seed", "groups", "transactions"):
            row[name] = value
    return row


def _transactions(what: dict[str, Any]) -> dict[str, Any]:
    counts = what["transactions"] or {}
    return {f"transactions_{name}": counts.get(name) for name in COMPLETIONS}


def _groups(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"group_variant": group.pop("variant"), **group, **_transactions(group)} for group in map(dict, run["groups"])
    ]


def _warn(lines: list[str]) -> None:
    for line in lines:
        _warnings.warn(line, stacklevel=3)
