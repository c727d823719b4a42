"""Running experiments: a tier, a store of results, worker processes, and the results so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

import reknit
from reknit import _workers
from reknit_study.papers import _metrics
from reknit_study.papers._frame import DEFAULT, FIXED, FULL, Paper, Point, Result, Tier, key
from reknit_study.papers._labels import Variant, canonical, variant

Scenario = Mapping[str, Any]
Split = Callable[[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]]
Curves = Sequence[str] | Mapping[str, Variant | Callable[[Any], Variant]]

MIN_DURATION_S = 10.0
"""Minimum duration of runs in reduced tiers, unless the paper's was shorter: slow start takes seconds on long paths."""


MAX_SEEDS = 1000
"""No experiment of a reduced tier gets more seeds than that, however undecided its claims are."""

TO_THE_END_S = 20_000
"""Transfers with this duration end by themselves."""


@dataclass(frozen=True)
class Extent:
    """How much of the paper's runs was run: duration in seconds (None: until a transfer ends), seeds and points.

    Each is a pair: here, and in the paper.
    """

    duration: tuple[float, float] | None
    seeds: tuple[int, int]
    points: tuple[int, int]

    @property
    def is_whole(self) -> bool:
        """Return whether nothing was left out."""
        return all(here >= there for here, there in (self.duration or (0, 0), self.seeds, self.points))


class Lab:
    """Runs experiments, each once.

    Parameters
    ----------
    papers : iterable of Paper
        The papers whose experiments and checks may run.
    tier : Tier
        How much of the papers' experiments to run.
    store : Path, optional
        Where finished points are saved.
    executor : Executor, optional
        Where runs are executed; by default in processes on this machine, as in `reknit.sweep`.
    told : callable, optional
        Called with a line of text for each step.
    more_seeds : collection of str, optional
        Papers and experiments that get more seeds where an outcome depends on the choice of seeds; None: all.
    full_for : collection of str
        Papers and experiments that run at the full tier, whatever the tier of the others.
    interpret : bool
        Whether `run` also runs other interpretations of the papers.
    asked : sequence of str
        The paper and its experiments that the command names; empty for all.
    times : float
        Lengthens the runs that have the paper's whole duration in every tier.

    Attributes
    ----------
    base : Tier
        The tier of all experiments that `full_for` does not name.
    reading : str or None
        The interpretation of the paper that the experiment must use; None is the default.
    planned : list of tuple
        ``(experiment, runs, simulated seconds)`` for each sweep.
    extents : dict of str to list of Extent
        How much of the paper's runs each experiment ran, by its name in `run`: an entry for each of its sweeps.
    """

    def __init__(
        self,
        papers: Iterable[Paper],
        tier: Tier = DEFAULT,
        store: Path | None = None,
        executor: _workers.Executor | None = None,
        told: Callable[[str], object] = lambda _: None,
        *,
        dry: bool = False,
        first_seed: int = 1,
        more_seeds: Collection[str] | None = None,
        full_for: Collection[str] = (),
        interpret: bool = True,
        asked: Sequence[str] = (),
        times: float = 1.0,
    ) -> None:
        """Start without results; with ``dry``, only count the runs."""
        papers = list(papers)
        self.experiments = {id: experiment for paper in papers for id, experiment in paper.experiments.items()}
        self.units = [unit for paper in papers for unit in paper.units.values()]
        self.base, self.full_for, self.store = tier, full_for, store
        self.interpret = interpret and tier.name != "quick"
        self.executor, self.told, self.dry = executor, told, dry
        self.first_seed, self.more_seeds, self.asked = first_seed, more_seeds, asked
        self.times = times
        self.reading: str | None = None
        self.extents: dict[str, list[Extent]] = {}
        self.planned: list[tuple[str, int, float]] = []
        self.seconds: dict[str, float] = {}
        self._results: dict[str, Result] = {}
        self._open: list[str] = []
        self._shows: dict[str, set[str]] = {}
        self._thorough: dict[str, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Lab:
        """Start the worker processes."""
        if self.executor is None and not self.dry:
            self.executor = self._stack.enter_context(_workers._processes(1024))
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the worker processes."""
        if error[0] is not None and isinstance(self.executor, ProcessPoolExecutor):
            # Discard what they are running; finished runs are in the store.
            at_work = list((getattr(self.executor, "_processes", None) or {}).values())
            self.executor.shutdown(wait=False, cancel_futures=True)
            for process in at_work:
                process.terminate()
        self._stack.close()

    @property
    def tier(self) -> Tier:
        """The tier of the current experiment; outside of experiments, that of most."""
        return FULL if self._open and self.is_full(self._open[-1].partition("@")[0]) else self.base

    def is_full(self, id: str) -> bool:
        """Return whether an experiment runs at the full tier."""
        return self.base.name == FULL.name or self._is_among(id, self.full_for)

    def is_whole(self, id: str) -> bool:
        """Return whether an experiment ran with the paper's durations, seeds and points."""
        shown = self._shows.get(id, set()) - {id}
        return all(extent.is_whole for extent in self.extents.get(id, ())) and all(map(self.is_whole, shown))

    def result(self, id: str) -> Result:
        """Run an experiment, or return its result if it has already run; experiments may call this for others."""
        name = (
            id if self.reading is None or self.reading not in self.experiments[id].readings else f"{id}@{self.reading}"
        )
        if self._open:
            self._shows.setdefault(self._open[-1], set()).add(name)
        if name in self._results:
            return self._results[name]
        if name in self._open:
            raise ValueError(f"{name}: needs itself")
        self._open.append(name)
        self.extents[name] = []
        began = time.monotonic()
        try:
            found = self._checked(id, self.experiments[id](self))
        finally:
            self._open.pop()
        self.seconds[name] = time.monotonic() - began
        self._results[name] = found
        return found

    def run(self, ids: Iterable[str]) -> dict[str, Result]:
        """Run experiments; above the quick tier also with their other interpretations, named ``id@reading``.

        Returns
        -------
        dict
            All results so far, including those of experiments that these needed.
        """
        for id in ids:
            for reading in [None, *(self.experiments[id].readings if self.interpret else ())]:
                self.reading = reading
                self.result(id)
        self.reading = None
        return dict(self._results)

    def deepen(self, ids: Iterable[str], times: int = 1) -> None:
        """Forget the results of experiments and of those that show their runs.

        `run` then takes more seeds for them: ``times`` as many as are usually enough.
        """
        deep = set(ids)
        while more := {shown for id in deep for shown in self._shows.get(id, ())} - deep:
            deep |= more
        self._thorough |= dict.fromkeys(deep, times)
        while more := {name for name, shown in self._shows.items() if shown & deep} - deep:
            deep |= more
        for name in deep:
            self._results.pop(name, None)

    def sweep(
        self,
        scenario: Callable[[Any], Scenario],
        points: Sequence[Point],
        variants: Curves,
        *,
        duration_s: float,
        seeds: int = 5,
        keep: Iterable[Point] = (),
        whole: bool = False,
        least_seeds: int = 0,
        least_points: int = 0,
        split: Split | None = None,
    ) -> Result:
        """Run curves over the points of an axis.

        Parameters
        ----------
        scenario : callable
            Returns the scenario at a point: keys of docs/reference/scenarios.md, and of the path.
        points : sequence
            The axis as published.
        variants : sequence of str, or mapping
            Labels of curves; or a mapping from labels to variants, or to functions from the point to a variant.
        duration_s : float
            Duration in the paper, seconds; reduced tiers run a fraction of it.
        seeds : int
            Number of seeds in the paper.
        keep : iterable
            Points that reduced tiers must keep because claims use them.
        whole : bool
            Run the whole duration in every tier, for transfers that end by themselves.
        least_seeds : int
            Minimum number of seeds in every tier, up to ``seeds``: for medians, and for short runs.
        least_points : int
            Minimum number of points in every tier, for claims about the shape of a curve.
        split : callable, optional
            Splits a run into several rows, given its label and its row: for example the flows of a mix, each with its
            own label. In a dry run the counts are None.

        Returns
        -------
        Result
            The result, without figures.
        """
        ends_by_itself = whole and duration_s >= TO_THE_END_S
        duration = duration_s * (1.0 if ends_by_itself else self.times)
        if not whole:
            duration = max(min(duration_s, MIN_DURATION_S), duration_s * self.tier.duration)
        count = seeds if self.tier.seeds is None else min(seeds, max(self.tier.seeds, least_seeds))
        name = self._open[-1] if self._open else "sweep"
        if seeds > 1:
            count = self.enough(count)
        chosen = self.tier.thin(points, keep, least_points)
        numbers = range(self.first_seed, self.first_seed + count)
        extent = Extent(
            None if ends_by_itself else (duration, duration_s),
            (count, seeds),
            (len(chosen), len(points)),
        )
        self.extents.setdefault(name, []).append(extent)
        found = [
            _measured(
                self._at(scenario(x), _curves(variants, x), key(x), duration, numbers), duration, duration_s, split
            )
            for x in chosen
        ]
        return Result(
            points=tuple(points),
            table=pl.concat([table for table, _ in found]),
            runs=pl.concat([runs for _, runs in found], how="diagonal_relaxed"),
        )

    def _at(
        self, scenario: Scenario, curves: Mapping[str, Variant], x: str, duration: float, seeds: Sequence[int]
    ) -> pl.DataFrame:
        """Run one point."""
        id = self._open[-1] if self._open else "sweep"
        self.planned.append((id, len(curves) * len(seeds), duration))
        if self.dry:
            found = _nothing(len(curves), seeds)
        else:
            self.told(f"{id}: {x}")
            given = {**FIXED, "duration": f"{duration:g} s", **scenario}
            axes = {"variant": list(curves.values())}
            found = reknit.sweep(given, axes, seeds, self.executor, self.kept(id, x), progress=False)
        labels = [label for label in curves for _ in seeds]
        return found.with_columns(pl.Series("variant", labels), pl.lit(x).alias("x"))

    def _checked(self, id: str, found: Result) -> Result:
        """Add the outcomes of the experiment's checks."""
        if self.dry:
            return found
        passed = {unit.name: bool(unit.check()) for unit in self.units if unit.experiment == id}
        return replace(found, units=found.units | passed)

    def repeated(self, count: int, published: int) -> None:
        """Record the repetitions of whole transfers that the current experiment ran one by one."""
        self.extents[self._open[-1]] = [Extent(None, (count, published), (1, 1))]

    def may_deepen(self, id: str) -> bool:
        """Return whether an experiment may get more seeds."""
        return id in self.experiments and (self.more_seeds is None or self._is_among(id, self.more_seeds))

    def _is_among(self, id: str, names: Collection[str]) -> bool:
        return bool({id, self.experiments[id].paper} & set(names))

    def enough(self, seeds: int) -> int:
        """Return how many seeds the current experiment gets, if not for its outcomes it would get ``seeds``."""
        name = self._open[-1] if self._open else ""
        return max(seeds, self.enough_seeds(name.partition("@")[0], self._thorough.get(name, 0))) if name else seeds

    def enough_seeds(self, id: str, times: int) -> int:
        """Return ``times`` the seeds that are usually enough for an experiment, at most as many as a set has."""
        return min(self.experiments[id].enough_seeds * times, MAX_SEEDS)

    def kept(self, *names: str) -> Path | None:
        """Return the directory of the store for some runs; small directories are faster to read."""
        if self.store is None:
            return None
        return self.store.joinpath(*(name.replace("/", "_") for name in names))

    def scaled(self, seconds: float) -> str:
        """Scale a time of the paper's run, such as a warm-up, to this tier."""
        return f"{seconds * self.tier.duration:g} s"


def _measured(
    runs: pl.DataFrame, duration: float, published: float, split: Split | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compute the metrics of runs, which are split first if requested."""
    rows = list(runs.iter_rows(named=True))
    if split is not None:
        parts = [(row, split(row["variant"], row)) for row in rows]
        rows = [{**row, **part, "variant": canonical(label)} for row, each in parts for label, part in each.items()]
        runs = pl.DataFrame(rows, infer_schema_length=None)
    metrics = [_metrics.evaluate(row, duration_s=duration, published_s=published) for row in rows]
    table = pl.DataFrame(metrics, schema=dict.fromkeys(_metrics.METRICS, pl.Float64))
    return pl.concat([runs.select("variant", "x", "seed"), table], how="horizontal"), runs


def _curves(variants: Curves, x: Point) -> dict[str, Variant]:
    if not isinstance(variants, Mapping):
        return {canonical(label): variant(label) for label in variants}
    return {canonical(label): of(x) if callable(of) else of for label, of in variants.items()}


def _nothing(curves: int, seeds: Sequence[int]) -> pl.DataFrame:
    """Make the table of a sweep in a dry run."""
    columns = {name: pl.Series([None] * curves * len(seeds), dtype=pl.Float64) for name in reknit._compare.RUN}
    return pl.DataFrame({"variant": [""] * curves * len(seeds), "seed": [*seeds] * curves, **columns})
