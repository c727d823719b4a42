"""Comparisons, single runs, and the lists of variants and paths."""

from __future__ import annotations

import os
import warnings as _warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from reknit import _frames, _native

if TYPE_CHECKING:
    import polars

    from reknit._frames import Schema

Time = str | float | timedelta
"""A span: text with a unit such as ``"60 s"`` or ``"250ms"``, or a number of seconds."""
Settings = Mapping[str, object] | Sequence[str]
"""Values of the path or of the TCP, as ``{"forward.bottleneck.rate": "2 Mbit/s"}`` or ``["tcp.min_rto=200ms"]``."""
File = str | os.PathLike[str]

COMPLETIONS: Schema = {
    "completed": "int",
    "failed": "int",
    "mean_ms": "float",
    "p50_ms": "float",
    "p90_ms": "float",
    "p99_ms": "float",
    "each_mbit_s": "float",
}
RUN: Schema = {
    "goodput_mbit_s": "float",
    "delivered_packets": "int",
    "segments_sent": "int",
    "retransmissions": "int",
    "retransmissions_fast_retransmit": "int",
    "retransmissions_timeout": "int",
    "retransmissions_probe": "int",
    "retransmissions_rescue": "int",
    "spurious_retransmissions": "int",
    "window_cuts": "int",
    "window_cuts_fast_retransmit": "int",
    "window_cuts_timeout": "int",
    "window_cuts_probe": "int",
    "window_cuts_ecn": "int",
    "false_window_cuts": "int",
    "undos": "int",
    "timeouts": "int",
    "lost_packets": "int",
    "wait_p50_ms": "float",
    "wait_p99_ms": "float",
    "jain": "float",
    **{f"transactions_{name}": kind for name, kind in COMPLETIONS.items()},
}
_SUMMARY: Schema = {
    "variant": "str",
    "runs": "int",
    "goodput_mbit_s": "float",
    "goodput_ci95_mbit_s": "float",
    "of_in_order": "float",
    "fell_back": "list",
}
_SERIES: Schema = {
    "flow": "int",
    "time_s": "float",
    "phase": "str",
    "cwnd_bytes": "int",
    "ssthresh_bytes": "int",
    "dup_thresh_segments": "int",
    "srtt_ms": "float",
    "rto_ms": "float",
    "flight_size_bytes": "int",
    "pipe_bytes": "int",
    "snd_wnd_bytes": "int",
    "acknowledged_bytes": "int",
    "delivered_bytes": "int",
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
    "direction": "str",
    "packets": "int",
    "size_bytes": "int",
    "gap_ms": "float",
    "delay_p50_ms": "float",
    "delay_p90_ms": "float",
    "delay_p99_ms": "float",
    "delay_max_ms": "float",
    "lost": "int",
    "duplicated": "int",
    "reordered": "int",
    "reordered_ratio": "float",
    "extent_p50": "int",
    "extent_p99": "int",
    "extent_max": "int",
    **{f"n_reordered_{n}": "int" for n in _N},
}


@dataclass(frozen=True)
class Comparison:
    """Variants side by side on one path.

    Attributes
    ----------
    summary : polars.DataFrame
        A row for each variant, in the order asked for: ``goodput_mbit_s``, the mean over the seeds in Mbit/s;
        ``goodput_ci95_mbit_s``, half the width of its 95 % confidence interval (Student's t; null for one seed);
        ``of_in_order``, the mean as a share of ``in_order_mbit_s``; ``fell_back``, what the variant did without
        because the two ends did not agree on it.
    runs : polars.DataFrame
        A row for each run, with all its counts. Columns end in their unit; what has no unit is a count.
    path, description : str
        The path's name and what it is.
    in_order_mbit_s : float
        Goodput of ``sack`` on the path without whatever reorders, Mbit/s.
    document : dict
        What ``reknit compare --json`` prints.
    """

    summary: polars.DataFrame
    runs: polars.DataFrame
    path: str
    description: str
    in_order_mbit_s: float
    document: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        """Title and summary."""
        return f"{self.path}: {self.description}; in order {self.in_order_mbit_s:.2f} Mbit/s\n{self.summary}"


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes
    ----------
    totals : dict
        The same numbers as in a row of ``Comparison.runs``.
    series : polars.DataFrame
        The senders' variables every ``sample_every``: ``time_s`` in seconds, windows in octets (``cwnd_bytes``,
        ``ssthresh_bytes``, ``flight_size_bytes``, ``pipe_bytes``, ``snd_wnd_bytes``), ``dup_thresh_segments``,
        ``srtt_ms`` and ``rto_ms``, ``phase`` (open, disorder, recovery, loss), octets of the stream that were
        ``acknowledged_bytes`` and that arrived in order, ``delivered_bytes``. Empty without ``sample_every``.
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
    path: str
    description: str
    variant: str
    seed: int
    duration_s: float
    fell_back: list[str]


def compare(
    path: File,
    variants: str | Iterable[str] | None = None,
    *,
    seeds: int = 5,
    duration: Time = "60s",
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool = False,
    flows: int = 1,
    variant_files: File | Iterable[File] = (),
) -> Comparison:
    """Compare variants on a path, in simulation, on all processors.

    Each variant runs once for each seed; all variants meet the same packets' fates.

    Parameters
    ----------
    path : str or path-like
        A built-in path (`paths` lists them) or a TOML file.
    variants : str or iterable of str, optional
        Their names (`variants` lists them). By default all, or those that ``variant_files`` start from.
    seeds : int
        Runs of each variant, with the seeds 1, 2, 3, ...
    duration : str, float or timedelta
        Length of each run in its own time: text with a unit, or seconds.
    loss : str or float, optional
        Lose each data packet with this probability: from 0 to 1, or text such as ``"1 %"``.
    set : mapping or sequence of str, optional
        Values of the path or of the TCP to change: ``{"forward.bottleneck.rate": "2 Mbit/s"}``.
    in_order : bool
        Take everything off the path that changes the order of packets.
    flows : int
        Connections that share the path, all of the same variant, opened 100 ms apart.
    variant_files : path-like or iterable of them
        Variants of your own (docs/variants.md).

    Returns
    -------
    Comparison
        A table of the variants and one of the runs.

    Raises
    ------
    Error
        If the question is wrong, in the words of the command.
    """
    where, who = place(path, loss, set, in_order, flows), request(variants, variant_files, duration)
    document, warnings = _native.compare(where, who, seeds)
    _warn(warnings)
    share = document["in_order_mbit_s"]
    rows = document["variants"]
    summary = [
        {
            "variant": row["variant"],
            "runs": len(row["runs"]),
            "goodput_mbit_s": row["goodput_mbit_s"]["mean"],
            "goodput_ci95_mbit_s": row["goodput_mbit_s"]["ci95"],
            "of_in_order": row["of_in_order"],
            "fell_back": row["fell_back"],
        }
        for row in rows
    ]
    runs = [
        {
            "variant": row["variant"],
            "seed": run["seed"],
            "of_in_order": run["goodput_mbit_s"] / share if share else 0.0,
            **flat(run),
        }
        for row in rows
        for run in row["runs"]
    ]
    return Comparison(
        summary=_frames.from_rows(summary, _SUMMARY),
        runs=_frames.from_rows(runs, {"variant": "str", "seed": "int", "of_in_order": "float", **RUN}),
        path=document["path"],
        description=document["description"],
        in_order_mbit_s=share,
        document=document,
    )


def simulate(
    path: File,
    variant: str,
    *,
    seed: int = 1,
    duration: Time = "60s",
    sample_every: Time | None = None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool = False,
    flows: int = 1,
    variant_files: File | Iterable[File] = (),
) -> Run:
    """Run one variant once, and look inside.

    Parameters
    ----------
    path : str or path-like
        A built-in path or a TOML file.
    variant : str
        The variant's name.
    seed : int
        Seed of every random decision: the same seed gives the same run, everywhere.
    duration : str, float or timedelta
        Length of the run in its own time: text with a unit, or seconds.
    sample_every : str, float or timedelta, optional
        Interval of the time series; without one there is no series.
    loss, set, in_order, flows, variant_files
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
    where, who = place(path, loss, set, in_order, flows), request([variant], variant_files, duration)
    found = _native.simulate(where, who, seed, None if sample_every is None else time(sample_every))
    _warn(found["warnings"])
    return Run(
        totals=flat(found["run"]),
        series=_frames.frame(found["series"], _SERIES),
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


def path(name: File, *, set: Settings | None = None, seed: int = 1) -> polars.DataFrame:
    """Send a train of packets through a path, and report in the terms of RFC 4737.

    Parameters
    ----------
    name : str or path-like
        A built-in path or a TOML file.
    set : mapping or sequence of str, optional
        Values of the path to change.
    seed : int
        Seed of the path's random decisions.

    Returns
    -------
    polars.DataFrame
        A row for each ``direction``: ``packets`` sent of ``size_bytes`` octets, one each ``gap_ms``; one-way delays in
        ms (``delay_p50_ms`` to ``delay_max_ms``); packets ``lost``, ``duplicated`` and ``reordered`` (RFC 4737 section
        3.3), their ratio; reordering extents in packets (section 4.2; null if nothing was reordered);
        ``n_reordered_3``: packets that three later ones have overtaken at once (section 5).

    Raises
    ------
    Error
        If there is no such path.
    """
    reports = _native.path(os.fspath(name), assignments(set), seed)
    for report in reports:
        report.update({f"n_reordered_{n}": count for n, count in zip(_N, report["n_reordered"], strict=True)})
    return _frames.from_rows(reports, _PATH)


def place(path: File, loss: str | float | None, set: Settings | None, in_order: bool, flows: int) -> _native.Place:
    """Where, as the native part takes it."""
    return {
        "path": os.fspath(path),
        "scenario": None,
        "set": assignments(set),
        "loss": None if loss is None else str(loss),
        "in_order": in_order,
        "flows": flows,
    }


def request(variants: str | Iterable[str] | None, files: File | Iterable[File], duration: Time) -> _native.Request:
    """Who and for how long, as the native part takes it."""
    names = variants.split(",") if isinstance(variants, str) else list(variants or ())
    many = [files] if isinstance(files, str | os.PathLike) else list(files)
    return {"variants": names, "variant_files": many, "duration": time(duration)}


def time(span: Time) -> str:
    """Write a span as text with a unit."""
    if isinstance(span, str):
        return span
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + " s"


def assignments(settings: Settings | None) -> list[str]:
    """``KEY=VALUE`` for each."""
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        return [f"{key}={_text(value)}" for key, value in settings.items()]
    return [settings] if isinstance(settings, str) else list(settings)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def flat(run: dict[str, Any]) -> dict[str, Any]:
    """Put a run's counts side by side, without its seed."""
    row: dict[str, Any] = {f"transactions_{name}": None for name in COMPLETIONS}
    for name, value in run.items():
        if name == "transactions":
            row.update({f"transactions_{key}": count for key, count in (value or {}).items()})
        elif isinstance(value, dict):
            row[name] = value["total"]
            row.update({f"{name}_{cause}": count for cause, count in value.items() if cause != "total"})
        elif name not in ("seed", "groups"):
            row[name] = value
    return row


def _warn(lines: list[str]) -> None:
    for line in lines:
        _warnings.warn(line, stacklevel=3)
