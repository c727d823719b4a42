"""Comparisons, single runs, and the lists of variants and paths."""

from __future__ import annotations

import os
import warnings as _warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reknit import _frames, _native, _show
from reknit._columns import COMPLETIONS, COUNTS, GROUP, MEASURED, PATH, PATHS, SERIES, VARIANTS
from reknit._scenario import (
    ONE_OR_MORE,
    File,
    Settings,
    Table,
    Time,
    arguments,
    assignments,
    flag,
    listed,
    named,
    run_args,
    setup_args,
    time,
    whole,
)

if TYPE_CHECKING:
    import polars

    from reknit._frames import Schema

RUN: Schema = {**COUNTS, **MEASURED}
"""Columns of a single run. Runs of a comparison lack those of `MEASURED`."""
SHOWN: Schema = {"name": "str", "value": "float"}
"""Columns of the numbers that a run's algorithms show."""
ROW: Schema = {**RUN, "groups": GROUP, "shown": SHOWN}
"""Columns of a stored run."""
_SUMMARY: Schema = {
    "path": "str",
    "variant": "str",
    "runs": "int",
    "goodput_mbit_s": "float",
    "goodput_ci95_mbit_s": "float",
    "goodput_min_mbit_s": "float",
    "goodput_max_mbit_s": "float",
    "two_groups": "bool",
    "of_in_order": "float",
    "oracle_mbit_s": "float",
    "of_oracle": "float",
    "fell_back": "list",
}
_RUN_KEY: Schema = {"path": "str", "variant": "str", "seed": "int"}
_SHARES: Schema = {"of_in_order": "float", "of_oracle": "float"}
_N = (1, 2, 3, 5, 10, 20)
_PATH: Schema = {
    **PATH,
    **{f"extent_at_least_{n}": "int" for n in _N},
    **{f"n_reordered_{n}": "int" for n in _N},
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """The results of several variants on one path or on several.

    Attributes
    ----------
    summary : polars.DataFrame
        A row for each path and variant, in the order given: ``goodput_mbit_s``, the mean over the seeds in Mbit/s;
        ``goodput_ci95_mbit_s``, half the width of its 95 % confidence interval (Student's t; null for one seed);
        ``goodput_min_mbit_s`` and ``goodput_max_mbit_s``; ``two_groups``, whether the runs fall into two groups, so
        that the mean describes none of them (see docs/reference/json.md); ``of_in_order``, the mean as a share of
        the path's ``in_order_mbit_s``; ``oracle_mbit_s``, the goodput of the oracle with the same growth, and
        ``of_oracle``, the mean as a share of it (null if the oracle did not run); ``fell_back``, the options that the
        variant did without because the other end does not support them; a column for each number that algorithms show.
    runs : polars.DataFrame
        A row for each run, all counts (docs/reference/json.md). Column names end in their unit; columns without a unit
        are counts. Numbers that a variant's algorithms show have columns with the names of their seams, such as
        ``dup_thresh.fa_ratio``; they are null for other variants.
    groups : polars.DataFrame
        A row for each run and set of flows of the scenario, or part of a mix: ``group``, its name; ``group_variant``,
        the variant that it sets, if any; ``flows``, the number of flows; their ``goodput_mbit_s``, Mbit/s; Jain's
        index; and their transactions (null if they have none): how many ``completed`` and ``failed``, and
        completion times in ms.
    paths : polars.DataFrame
        A row for each ``path``: its ``description``, and ``in_order_mbit_s``, the goodput of ``sack`` without
        reordering.
    document : dict
        What ``reknit compare --json`` prints.
    """

    summary: polars.DataFrame
    runs: polars.DataFrame
    groups: polars.DataFrame
    paths: polars.DataFrame
    document: dict[str, Any]

    @property
    def path(self) -> str:
        """The path's name, if there is only one path."""
        return str(self._of_path("path"))

    @property
    def description(self) -> str:
        """The path's description, if there is only one path."""
        return str(self._of_path("description"))

    @property
    def in_order_mbit_s(self) -> float:
        """Goodput of ``sack`` on the path without reordering, Mbit/s, if there is only one path."""
        return float(self._of_path("in_order_mbit_s"))

    def _of_path(self, column: str) -> Any:  # noqa: ANN401
        if self.paths.height != 1:
            raise _native.Error(f"{column}: {self.paths.height} paths were compared; `paths` has a row for each")
        return self.paths[column][0]

    def __repr__(self) -> str:
        """Return a title and a line for each variant, for each path."""
        return "\n\n".join(_show.text(*shown) for shown in _show.comparisons(self))

    def _repr_html_(self) -> str:
        """Show the same in a notebook."""
        return "".join(_show.html(*shown) for shown in _show.comparisons(self))


@dataclass(frozen=True, repr=False)
class Run:
    """The result of a single run.

    Attributes
    ----------
    totals : dict
        The numbers of a row of ``Comparison.runs``, and those that are measured after every event: means over time,
        true round-trip times, bursts, the outcome of each retransmission (docs/reference/json.md has the full list).
    series : polars.DataFrame
        The senders' variables every ``sample_every``: ``time_s`` in seconds, windows in bytes (``cwnd_bytes``,
        ``ssthresh_bytes``, ``flight_size_bytes``, ``pipe_bytes``, ``snd_wnd_bytes``), ``dup_thresh_segments``,
        ``srtt_ms`` and ``rto_ms``, ``phase`` (open, disorder, recovery, loss), and so far
        ``acknowledged_bytes``, ``delivered_bytes`` (data that arrived in order) and ``spurious_retransmissions``; and
        the numbers that the variant's algorithms show, such as ``dup_thresh.fa_ratio``. Empty without
        ``sample_every``.
    groups : polars.DataFrame
        A row for each set of flows, as in `Comparison`.
    path, description, variant : str
        The path, its description, and the variant.
    seed : int
        The seed.
    duration_s : float
        Length of the run in simulated time, seconds.
    fell_back : list of str
        The options that the variant did without because the other end does not support them.
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
        """Return a title and the most important totals."""
        return _show.text(*_show.run(self))

    def _repr_html_(self) -> str:
        """Show the same in a notebook."""
        return _show.html(*_show.run(self))


def compare(
    path: File | Table | Sequence[File | Table] | None = None,
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
    oracle: bool = True,
) -> Comparison:
    """Compare variants on one path or on several, in simulation, on all processors.

    Each variant runs once for each seed. For a given seed, every variant sees the same losses and delays. Arguments
    override the scenario.

    Parameters
    ----------
    path : str, path-like or mapping, or a list of them, optional
        A built-in path (`paths` lists them), a TOML file, or a mapping with the keys of one (docs/reference/paths.md).
        ``*`` and ``?`` in a name stand for other characters: ``["two-paths-*", "clean"]``.
    variants : str, mapping or iterable of them, optional
        Names (`variants` lists them), patterns (``rr-*``), families (``family:undo``), or mappings with the keys of a
        variant file (docs/reference/variants.md). By default all, or those of ``variant_files`` and their bases.
    scenario : path-like or mapping, optional
        The flows and their traffic: a TOML file, or a mapping with its keys (docs/reference/scenarios.md). By
        default one bulk transfer.
    seeds : int, optional
        Runs of each variant, with the seeds 1, 2, 3, ...; by default 5.
    duration : str, float or timedelta, optional
        Length of each run in simulated time: text with a unit, or seconds; by default 60 s.
    loss : str or float, optional
        Lose each data packet with this probability: from 0 to 1, or text such as ``"1 %"``.
    set : mapping or sequence of str, optional
        Values of the path, or TCP options, to change: ``{"forward.bottleneck.rate": "2 Mbit/s"}``.
    in_order : bool, optional
        Remove all reordering from the path.
    phases : str, optional
        ``"drawn"``: each seed also draws when flows start, which of the paths taken in turn comes first, and where in
        its period a periodic fault starts. ``"fixed"``: these are the same for every seed. By default drawn.
    flows : int, optional
        Number of bulk transfers that share the path, all of the same variant, starting 100 ms apart, instead of the
        scenario's flows.
    variant_files : path-like or iterable of them
        TOML files with your own variants (docs/reference/variants.md).
    oracle : bool
        Also run the oracle, a sender that knows each loss and whose window grows in the same way; it takes the time of
        one or two more variants. It never runs if several flows share the path.

    Returns
    -------
    Comparison
        Tables of the variants, of the runs, of the sets of flows, and of the paths.

    Raises
    ------
    Error
        If an argument is invalid.
    """
    with arguments():
        where = setup_args(None, loss, set, in_order, phases, flows, scenario)
        asked = None if seeds is None else whole("seeds", seeds)
        who = run_args(variants, variant_files, duration)
        several = _paths(path)
        document, warnings = _native.compare(where, several, who, asked, flag("oracle", oracle))
    _warn(warnings)
    found = document["paths"]
    names = [one["path"] for one in found]
    if len(found) == 1:
        return comparison(found, names, found[0])
    # Paths that are described here have no name of their own.
    names = [name if isinstance(several[i], str) else f"path[{i}]" for i, name in enumerate(names)]
    return comparison(found, names, document)


def _paths(path: File | Table | Sequence[File | Table] | None) -> list[str | dict[str, Any]]:
    """List the paths, with names that are patterns replaced by what they match, each path once."""
    if path is None:
        return []
    found: list[str | dict[str, Any]] = []
    for one in [path] if isinstance(path, str | os.PathLike | Mapping) else listed("path", path, ONE_OR_MORE):
        for expanded in _native.expand_paths([one]) if isinstance(one, str) else [named("path", one)]:
            if expanded not in found:
                found.append(expanded)
    return found


def comparison(found: list[dict[str, Any]], names: list[str], document: dict[str, Any]) -> Comparison:
    """Make the tables of some comparisons, whose paths have these names."""
    rows = [(name, one, row) for name, one in zip(names, found, strict=True) for row in one["variants"]]
    summary = [
        {
            "path": name,
            "variant": row["variant"],
            "runs": len(row["runs"]),
            "goodput_mbit_s": row["goodput_mbit_s"]["mean"],
            "goodput_ci95_mbit_s": row["goodput_mbit_s"]["ci95"],
            "goodput_min_mbit_s": row["goodput_mbit_s"]["min"],
            "goodput_max_mbit_s": row["goodput_mbit_s"]["max"],
            "two_groups": row["goodput_mbit_s"]["two_groups"] is not None,
            "of_in_order": row["of_in_order"],
            "oracle_mbit_s": row["oracle_mbit_s"],
            "of_oracle": row["of_oracle"],
            "fell_back": row["fell_back"],
            **row["shown"],
        }
        for name, _, row in rows
    ]
    runs = [
        {
            "path": name,
            "variant": row["variant"],
            "seed": run["seed"],
            "of_in_order": _share(run, one["in_order_mbit_s"]),
            "of_oracle": _share(run, row["oracle_mbit_s"]),
            **flat(run),
        }
        for name, one, row in rows
        for run in row["runs"]
    ]
    groups = [
        {"path": name, "variant": row["variant"], "seed": run["seed"], **group}
        for name, _, row in rows
        for run in row["runs"]
        for group in _groups(run)
    ]
    paths = [{**one, "path": name} for name, one in zip(names, found, strict=True)]
    return Comparison(
        summary=_frames.with_shown(summary, _SUMMARY),
        runs=_frames.with_shown(runs, {**_RUN_KEY, **_SHARES, **COUNTS}),
        groups=_frames.with_shown(groups, {**_RUN_KEY, **GROUP}),
        paths=_frames.from_rows(paths, {"path": "str", "description": "str", "in_order_mbit_s": "float"}),
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
    """Run one variant once, with time series.

    Parameters
    ----------
    path : str, path-like or mapping, optional
        A built-in path, a TOML file, or a mapping with the keys of such a file.
    variant : str or mapping, optional
        The variant's name, or a mapping with the keys of a variant file; by default that of the scenario, if it has
        only one.
    seed : int
        Seed of all random decisions. The same seed gives the same run on every machine.
    duration : str, float or timedelta, optional
        Length of the run in simulated time: text with a unit, or seconds; by default 60 s.
    sample_every : str, float or timedelta, optional
        Interval of the time series; without it there is no series.
    scenario, loss, set, in_order, phases, flows, variant_files
        As for `compare`.

    Returns
    -------
    Run
        Totals and time series.

    Raises
    ------
    Error
        If an argument is invalid.
    """
    with arguments():
        where = setup_args(path, loss, set, in_order, phases, flows, scenario)
        who = run_args(None if variant is None else [variant], variant_files, duration, "variant")
        interval = None if sample_every is None else time("sample_every", sample_every)
        found = _native.simulate(where, who, whole("seed", seed), interval)
    _warn(found["warnings"])
    return Run(
        totals=flat(found["run"]),
        series=_frames.frame(found["series"], {**SERIES, **_frames.shown(found["series"])}),
        groups=_frames.with_shown(_groups(found["run"]), GROUP),
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
        end it changes), ``peer_needs``, ``status`` (how faithfully it follows its source), ``aliases``,
        ``without_peer`` (what happens if the other end does not support what it needs).
    """
    return _frames.from_rows(_native.variants()["variants"], VARIANTS)


def paths() -> polars.DataFrame:
    """List the built-in paths.

    Returns
    -------
    polars.DataFrame
        A row for each: ``name``, ``description``, ``source``.
    """
    return _frames.from_rows(_native.paths(), PATHS)


def path(name: File | Table, *, set: Settings | None = None, seed: int = 1) -> polars.DataFrame:
    """Send a train of packets through a path, and report in the terms of RFC 4737.

    Parameters
    ----------
    name : str, path-like or mapping
        A built-in path, a TOML file, or a mapping with the keys of such a file.
    set : mapping or sequence of str, optional
        Values of the path to change.
    seed : int
        Seed of the path's random decisions.

    Returns
    -------
    polars.DataFrame
        A row for each ``direction``: ``packets`` sent of ``size_bytes`` bytes, one every ``gap_ms``; one-way delays in
        ms (``delay_p50_ms`` to ``delay_max_ms``); packets ``lost``, ``duplicated`` and ``reordered`` (RFC 4737 section
        3.3), and the ratio of reordered packets; reordering extents in packets (section 4.2; null if nothing was
        reordered); ``extent_at_least_3``: packets at least three places late, which can trigger a false fast
        retransmit; ``n_reordered_3``: packets for which the three arrivals just before were all sent later
        (section 5).

    Raises
    ------
    Error
        If the path does not exist or is invalid.
    """
    with arguments():
        reports = _native.path(named("name", name), assignments(set), whole("seed", seed))
    for report in reports:
        for measure in ("extent_at_least", "n_reordered"):
            report.update({f"{measure}_{n}": count for n, count in zip(_N, report[measure], strict=True)})
    return _frames.from_rows(reports, _PATH)


def _share(run: dict[str, Any], reference: float | None) -> float | None:
    goodput: float = run["goodput_mbit_s"]
    return goodput / reference if reference else None


def row(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run as it is stored: the counts of its sets of flows in one column, what algorithms show in another."""
    numbers = flat(run)
    shown = [{"name": name, "value": numbers.pop(name)} for name in _frames.shown(numbers)]
    return {**numbers, "groups": _groups(run), "shown": shown}


def flat(run: dict[str, Any]) -> dict[str, Any]:
    """Flatten a run's counts into one mapping, without its seed and its groups."""
    row: dict[str, Any] = _transactions(run)
    for name, value in run.items():
        if name == "measured":
            row.update(_measured(value or {}))
        elif name == "shown":
            row.update(value)
        elif isinstance(value, dict) and name != "transactions":
            row[name] = value["total"]
            row.update({f"{name}_{cause}": count for cause, count in value.items() if cause != "total"})
        elif name not in ("seed", "groups", "transactions"):
            row[name] = value
    return row


def _measured(measured: dict[str, Any]) -> dict[str, Any]:
    row = {name: value for name, value in measured.items() if name != "shown"}
    for name, statistics in measured.get("shown", {}).items():
        row.update({f"{name}_{statistic}": value for statistic, value in statistics.items()})
    return row


def _transactions(what: dict[str, Any]) -> dict[str, Any]:
    counts = what["transactions"] or {}
    return {f"transactions_{name}": counts.get(name) for name in COMPLETIONS}


def _groups(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"group_variant": group.pop("variant"), **group, **group["shown"], **_transactions(group)}
        for group in map(dict, run["groups"])
    ]


def _warn(lines: list[str]) -> None:
    for line in lines:
        _warnings.warn(line, stacklevel=3)
