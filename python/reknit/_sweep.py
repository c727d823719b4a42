"""Sweeps: a grid of runs on many processors or machines, which can be stopped and resumed."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

from reknit import _compare, _frames, _native
from reknit._scenario import File, Table, arguments, convert, file_names, listed, named, whole, wrong
from reknit._store import Store
from reknit._workers import Executor, run_all

if TYPE_CHECKING:
    import polars

    from reknit._frames import Schema
    from reknit._types import Sweep

Values = Iterable[Any] | Mapping[str, Any]
"""The values of an axis, or a mapping from their names in the results to the values."""


@dataclass(frozen=True)
class Progress:
    """The progress of a sweep.

    Attributes
    ----------
    done, total : int
        Finished points, including those of earlier sweeps in the store, and all points.
    seconds_left : float or None
        Estimated remaining time, seconds; None until a point is finished.
    """

    done: int
    total: int
    seconds_left: float | None

    def __str__(self) -> str:
        """Format as one line."""
        left = "" if self.seconds_left is None else f", {_span(self.seconds_left)} left"
        return f"{self.done} of {self.total} points{left}"


def sweep(
    scenario: File | Table,
    axes: Mapping[str, Values] | None = None,
    seeds: int | Iterable[int] | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    *,
    variant_files: File | Iterable[File] = (),
    progress: bool | Callable[[Progress], object] | None = None,
) -> polars.DataFrame:
    """Run a grid of scenarios, each with each seed.

    For a given seed, every variant sees the same losses and delays, so compare variants seed by seed. The command
    ``reknit sweep`` does the same with a file.

    Parameters
    ----------
    scenario : path-like or mapping
        What all points have in common: a TOML file with or without ``[axes]``, or a mapping with its keys
        (docs/reference/scenarios.md). Additional keys: ``variant``, and any value of the path or TCP option
        by its key, such as ``"forward.bottleneck.rate"`` or ``"tcp.min_rto"``.
    axes : mapping of str to iterable or mapping, optional
        The values of each key that varies; the last one varies fastest. A key belongs to the scenario (``"loss"``,
        ``"flows.0.count"``) or to the path (``"forward.bottleneck.rate"``), or is ``"variant"``. Values can have names
        for the table: ``{"path": {"dsl": {...}, "lte": "lte.toml"}}``. If neither the scenario nor the axes have
        ``"variant"``, the scenario's ``variants`` are an axis.
    seeds : int or iterable of int, optional
        The number of seeds (1, 2, 3, ...), or a list of them; by default that of the scenario, or else 5.
    executor : Executor, optional
        Runs the points: a `concurrent.futures` executor or a ``dask.distributed.Client``. By default one process per
        processor; a script then needs ``if __name__ == "__main__":``.
    store : path-like, optional
        A folder that stores each run when it finishes, in Parquet files, under a digest of the point including its
        files. Runs that are already stored are not repeated, so a sweep that was stopped resumes where it left off, and
        a larger grid runs only the new points.
    variant_files : path-like or iterable of them
        TOML files with your own variants (docs/reference/variants.md).
    progress : bool or callable, optional
        True prints a line to standard error; a callable gets a `Progress` after each point. By default a line is
        printed if standard error is a terminal.

    Returns
    -------
    polars.DataFrame
        A row for each point and seed, in the order of the grid: the axes, ``seed``, the counts of a run as in
        ``Run.totals``, and ``groups``, a list with the counts of each set of flows as in ``Run.groups``; then the
        numbers that algorithms show, null for variants that do not show them.

    Raises
    ------
    Error
        If any point is invalid; nothing runs in that case.
    KeyboardInterrupt
        On Ctrl-C; finished runs are in the store.
    """
    if executor is not None and not hasattr(executor, "submit"):
        raise wrong("executor", executor, "give a concurrent.futures executor or a dask Client")
    with arguments():
        grid = _grid(scenario, {} if axes is None else axes, seeds, variant_files)
    for line in grid["warnings"]:
        warnings.warn(line, stacklevel=2)
    points = dict(grid["points"])
    with nullcontext() if store is None else closing(Store(store)) as kept:
        rows = {} if kept is None else kept.load(points)
        known, began, tell = len(rows), time.monotonic(), _teller(progress)
        for key, run in run_all({key: text for key, text in points.items() if key not in rows}, executor):
            rows[key] = _compare.row(run) if kept is None else kept.add(key, points[key], run)
            pace = (time.monotonic() - began) / (len(rows) - known)
            tell(Progress(len(rows), len(points), pace * (len(points) - len(rows))))
    return _table(grid, rows)


def _grid(
    scenario: File | Table,
    axes: Mapping[str, Values],
    seeds: int | Iterable[int] | None,
    variant_files: File | Iterable[File],
) -> Sweep:
    if not isinstance(axes, Mapping):
        raise wrong("axes", axes, "give a mapping of keys to lists of values")
    varied = [(str(key), *_axis(str(key), values)) for key, values in axes.items()]
    return _native.grid(named("scenario", scenario), varied, _seeds(seeds), file_names("variant_files", variant_files))


def _seeds(seeds: int | Iterable[int] | None) -> int | list[int] | None:
    if seeds is None:
        return None
    if isinstance(seeds, Iterable):
        return [whole("seeds", seed) for seed in listed("seeds", seeds)]
    return whole("seeds", seeds)


def _axis(key: str, values: Values) -> tuple[list[Any], list[Any]]:
    """Return the names of the values in the table, and the values."""
    if isinstance(values, str):
        raise _native.Error(f"axes.{key}: must be a list of at least one value")
    if isinstance(values, Mapping):
        return list(values), [convert(key, value) for value in values.values()]
    many = listed(f"axes.{key}", values)
    return [_label(i, value) for i, value in enumerate(many)], [convert(key, value) for value in many]


def _label(i: int, value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return value.get("name", f"#{i}")
    return f"#{i}" if isinstance(value, list | tuple) else convert("", value)


def _table(grid: Sweep, rows: Mapping[str, dict[str, Any]]) -> polars.DataFrame:
    columns: dict[str, list[Any]] = {}
    schema: Schema = {}
    names = [axis for axis, _ in grid["axes"]]
    places = [place for place in product(*(labels for _, labels in grid["axes"])) for _ in grid["seeds"]]
    for i, name in enumerate(names):
        schema[name], columns[name] = _column([place[i] for place in places])
    schema["seed"] = "int"
    columns["seed"] = grid["seeds"] * (len(places) // len(grid["seeds"]))
    found = [rows[key] for key, _ in grid["points"]]
    for name, kind in _compare.ROW.items():
        if name != "shown":
            schema[name], columns[name] = kind, [row[name] for row in found]
    shown = [{number["name"]: number["value"] for number in row["shown"]} for row in found]
    for name, kind in _frames.shown(name for numbers in shown for name in numbers).items():
        schema[name], columns[name] = kind, [numbers.get(name) for numbers in shown]
    return _frames.frame(columns, schema)


def _column(values: list[Any]) -> tuple[_frames.Kind, list[Any]]:
    """Make a column of one type: numbers if all values are, else text."""
    if all(isinstance(value, bool) for value in values):
        return "bool", values
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return "str", [str(value) for value in values]
    return ("int" if all(isinstance(value, int) for value in values) else "float"), values


def _teller(progress: bool | Callable[[Progress], object] | None) -> Callable[[Progress], object]:
    if callable(progress):
        return progress
    if progress or (progress is None and sys.stderr.isatty()):
        return _line
    return lambda _: None


def _line(progress: Progress) -> None:
    end = "\n" if progress.done == progress.total else ""
    print(f"\r\x1b[K{progress}", end=end, file=sys.stderr, flush=True)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
