"""Sweeps: a grid of runs, on many processors or machines, that can be stopped and gone on with."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reknit import _compare, _frames, _native

if TYPE_CHECKING:
    import polars

    from reknit._frames import Schema

_KEYS = ("variant", "path", "duration", "loss", "in_order", "flows", "variant_files")
_DEFAULTS: dict[str, Any] = {"duration": "60s", "loss": None, "in_order": False, "flows": 1, "variant_files": ()}
# So many points are in the executor's hands at once: enough for any cluster, few enough to stop soon.
_IN_FLIGHT = 1024

Point = dict[str, Any]


class Future(Protocol):
    """What `Executor.submit` returns."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object:
        """Call ``fn`` with the future when it is done."""

    def result(self) -> Any:  # noqa: ANN401
        """Return what the call returned."""

    def cancel(self) -> object:
        """Give it up if it has not begun."""


class Executor(Protocol):
    """Whatever has ``submit`` as in `concurrent.futures`; ``dask.distributed.Client`` has it too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:  # noqa: ANN401
        """Call ``fn`` elsewhere."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    done, total : int
        Points that are finished, of all; those that an earlier sweep finished count.
    seconds_left : float or None
        At the pace so far, seconds; None before the first is finished.
    """

    done: int
    total: int
    seconds_left: float | None

    def __str__(self) -> str:
        """One line."""
        left = "" if self.seconds_left is None else f", {_span(self.seconds_left)} left"
        return f"{self.done} of {self.total} points{left}"


def sweep(
    scenario: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 5,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    *,
    progress: bool | Callable[[Progress], object] | None = None,
) -> polars.DataFrame:
    """Run a grid of scenarios, each with each seed.

    The same seed is the same fate of the same packets whatever the variant: compare variants within a seed.

    Parameters
    ----------
    scenario : mapping
        What all points have in common: ``variant``, ``path``, ``duration``, ``loss``, ``in_order``, ``flows``,
        ``variant_files`` as for `simulate`, and any value of the path or of the TCP by its key, such as
        ``"forward.bottleneck.rate"`` or ``"tcp.min_rto"``.
    axes : mapping of str to sequence
        The values of each key that varies; the last varies fastest.
    seeds : int or iterable of int
        How many (1, 2, 3, ...), or which.
    executor : Executor, optional
        Where the runs go: a `concurrent.futures` executor or a ``dask.distributed.Client``. By default a process for
        each processor; a script then needs ``if __name__ == "__main__":``.
    store : path-like, optional
        A folder that keeps each finished point as a Parquet file named by the digest of what the point is, its files
        included. What is there is not run again, so a sweep that was stopped goes on where it was, and a larger grid
        runs only what is new.
    progress : bool or callable, optional
        True: a line on standard error; a callable gets a `Progress` after each point. By default a line on a terminal.

    Returns
    -------
    polars.DataFrame
        A row for each point and seed, in the order of the grid: the axes, ``seed``, and the counts of a run as in
        ``Comparison.runs``.

    Raises
    ------
    Error
        If any point is wrong: before anything is run.
    KeyboardInterrupt
        On Ctrl-C; what was finished is in the store.
    """
    points = _grid(scenario, axes, seeds)
    folder = None if store is None else Path(store)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    _frames.backend()
    schema: Schema = {"point": "str", **_compare.RUN}
    files = {i: folder / f"{digest(point)}.parquet" for i, point in enumerate(points)} if folder else {}
    rows: dict[int, dict[str, Any]] = {i: _frames.read_parquet(file) for i, file in files.items() if file.exists()}
    tell = _teller(progress)
    left = {i: point for i, point in enumerate(points) if i not in rows}
    known, began = len(rows), time.monotonic()
    for i, run in _run_all(left, executor):
        rows[i] = {"point": canonical(points[i]), **run}
        if i in files:
            _frames.write_parquet(rows[i], schema, files[i])
        pace = (time.monotonic() - began) / (len(rows) - known)
        tell(Progress(len(rows), len(points), pace * (len(points) - len(rows))))
    return _table(points, rows, list(axes))


def canonical(point: Point) -> str:
    """Write the one text that stands for a point."""
    return json.dumps(point["identity"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(point: Point) -> str:
    """Name a point's part: SHA-256 of its canonical JSON."""
    return hashlib.sha256(canonical(point).encode()).hexdigest()


def run_point(place: _native.Place, request: _native.Request, seed: int) -> dict[str, Any]:
    """Run one point; this is what an executor calls."""
    return _compare.flat(_native.simulate(place, request, seed, None)["run"])


def _grid(scenario: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], seeds: int | Iterable[int]) -> list[Point]:
    for key in {**scenario, **axes}:
        if key not in _KEYS and "." not in key and key != "drop_notices":
            allowed = ", ".join(_KEYS)
            raise _native.Error(f"{key}: unknown key; allowed are {allowed} and keys of the path such as tcp.min_rto")
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise _native.Error("seeds: there must be one at least")
    for axis, values in axes.items():
        if isinstance(values, str) or not values:
            raise _native.Error(f"{axis}: an axis is a list of values, one at least")
    points = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        point = _look_up({**_DEFAULTS, **scenario, **chosen})
        for seed in numbers:
            identity = {**point["identity"], "seed": seed}
            points.append({**point, "identity": identity, "chosen": chosen, "seed": seed})
    return points


def _look_up(keys: dict[str, Any]) -> Point:
    """Check a point; files go into its identity by what is in them."""
    for needed in ("path", "variant"):
        if needed not in keys:
            raise _native.Error(f"{needed}: missing in the scenario and in the axes")
    settings = {key: value for key, value in keys.items() if key not in _KEYS}
    place = _compare.place(keys["path"], keys["loss"], settings, keys["in_order"], keys["flows"])
    request = _compare.request([keys["variant"]], keys["variant_files"], keys["duration"])
    duration, loss = _native.check(place, request)
    identity = {
        "reknit": _native.__version__,
        "path": place["path"],
        "path_file": _content(place["path"]),
        "set": sorted(place["set"]),
        "loss": loss,
        "in_order": place["in_order"],
        "flows": place["flows"],
        "variant": keys["variant"],
        "variant_files": [_content(file) for file in request["variant_files"]],
        "duration": duration,
    }
    return {"identity": identity, "place": place, "request": request}


def _content(file: str | os.PathLike[str]) -> str | None:
    path = Path(file)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _run_all(points: dict[int, Point], executor: Executor | None) -> Iterable[tuple[int, dict[str, Any]]]:
    """Yield the points' runs as they are finished."""
    if not points:
        return
    own = _processes(len(points)) if executor is None else None
    target: Executor = executor if own is None else own  # type: ignore[assignment]
    done: queue.SimpleQueue[tuple[int, Future]] = queue.SimpleQueue()
    running: dict[int, Future] = {}
    waiting = iter(points.items())

    def submit(i: int, point: Point) -> None:
        future = running[i] = target.submit(run_point, point["place"], point["request"], point["seed"])
        future.add_done_callback(lambda finished: done.put((i, finished)))

    with nullcontext() if own is None else own:
        try:
            for i, point in itertools.islice(waiting, _IN_FLIGHT):
                submit(i, point)
            while running:
                i, future = done.get()
                del running[i]
                yield i, future.result()
                for more in itertools.islice(waiting, 1):
                    submit(*more)
        except BaseException:
            for future in running.values():
                future.cancel()
            if own is not None:
                own.shutdown(wait=False, cancel_futures=True)
            raise


def _processes(points: int) -> ProcessPoolExecutor:
    # Fresh processes: a fork would inherit other threads' locks.
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(min(processors, points), mp_context=fresh, initializer=_begin_worker)


def _begin_worker() -> None:
    """End at once with Ctrl-C, and with the process that wants the results."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _table(points: list[Point], rows: dict[int, dict[str, Any]], axes: list[str]) -> polars.DataFrame:
    columns: dict[str, list[Any]] = {}
    schema: Schema = {}
    for axis in axes:
        values = [point["chosen"][axis] for point in points]
        schema[axis], columns[axis] = _column(values)
    schema["seed"], columns["seed"] = "int", [point["seed"] for point in points]
    for name, kind in _compare.RUN.items():
        schema[name], columns[name] = kind, [rows[i][name] for i in range(len(points))]
    return _frames.frame(columns, schema)


def _column(values: list[Any]) -> tuple[_frames.Kind, list[Any]]:
    """Make an axis a column of one type: what is not all numbers is text."""
    given = [value for value in values if value is not None]
    if len(given) == len(values) and all(isinstance(value, bool) for value in given):
        return "bool", values
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in given):
        return "str", [None if value is None else str(value) for value in values]
    return ("int" if all(isinstance(value, int) for value in given) else "float"), values


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
