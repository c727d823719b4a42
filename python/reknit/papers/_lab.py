"""Where experiments run: a tier, a store, processes, and what was run before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import reknit
from reknit import _workers
from reknit.papers import _metrics
from reknit.papers._frame import DEFAULT, FIXED, Paper, Point, Result, Tier, key
from reknit.papers._labels import Variant, canonical, variant

Scenario = Mapping[str, Any]
Split = Callable[[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]]
Curves = Sequence[str] | Mapping[str, Variant | Callable[[Any], Variant]]

MIN_DURATION_S = 10.0
"""No run of a thinned tier is shorter, unless the paper's was: slow start alone takes seconds on the longer paths."""


class Lab:
    """Runs experiments, each once.

    Parameters
    ----------
    papers : iterable of Paper
        Whose experiments and checks.
    tier : Tier
        How much of what the papers ran.
    store : Path, optional
        Where finished points are kept.
    executor : Executor, optional
        Where runs go; by default processes of this machine, as `reknit.sweep` does.
    told : callable, optional
        Gets a line about each step.

    Attributes
    ----------
    reading : str or None
        Which reading of the paper the experiment is to follow.
    planned : list of tuple
        ``(experiment, runs, simulated seconds)`` for each sweep.
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
    ) -> None:
        """Begin with nothing run; ``dry``: count what would be run instead."""
        papers = list(papers)
        self.experiments = {id: experiment for paper in papers for id, experiment in paper.experiments.items()}
        self.units = [unit for paper in papers for unit in paper.units.values()]
        self.tier, self.store = tier, store
        self.executor, self.told, self.dry = executor, told, dry
        self.reading: str | None = None
        self.planned: list[tuple[str, int, float]] = []
        self.seconds: dict[str, float] = {}
        self._results: dict[str, Result] = {}
        self._open: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Lab:
        """Start the processes."""
        if self.executor is None and not self.dry:
            self.executor = self._stack.enter_context(_workers._processes(1024))
        return self

    def __exit__(self, *error: object) -> None:
        """End them."""
        if error[0] is not None and isinstance(self.executor, ProcessPoolExecutor):
            # Nobody wants what they are at; what was finished is in the store.
            at_work = list((getattr(self.executor, "_processes", None) or {}).values())
            self.executor.shutdown(wait=False, cancel_futures=True)
            for process in at_work:
                process.terminate()
        self._stack.close()

    def result(self, id: str) -> Result:
        """Run an experiment, unless it has been: for one that shows the same runs in another way, too."""
        name = (
            id if self.reading is None or self.reading not in self.experiments[id].readings else f"{id}@{self.reading}"
        )
        if name in self._results:
            return self._results[name]
        if name in self._open:
            raise ValueError(f"{name}: needs itself")
        self._open.append(name)
        began = time.monotonic()
        try:
            found = self._checked(id, self.experiments[id](self))
        finally:
            self._open.pop()
        self.seconds[name] = time.monotonic() - began
        self._results[name] = found
        return found

    def run(self, ids: Iterable[str]) -> dict[str, Result]:
        """Run experiments, with their other readings beyond the quick tier, named ``id@reading``.

        Returns
        -------
        dict
            All that has been run here, also what these experiments took from others.
        """
        for id in ids:
            for reading in [None, *(self.experiments[id].readings if self.tier.name != "quick" else ())]:
                self.reading = reading
                self.result(id)
        self.reading = None
        return dict(self._results)

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
            The scenario at a point: keys of docs/scenarios.md, and of the path.
        points : sequence
            The axis as published.
        variants : sequence of str, or mapping
            Labels of curves; or labels with the variant of each, or with a function from the point to it.
        duration_s : float
            What the paper ran, seconds; a thinned tier runs a share of it.
        seeds : int
            What the paper ran.
        keep : iterable
            Points that a thinned tier must keep: those by which claims are judged.
        whole : bool
            Run the whole duration in every tier: transfers that end by themselves.
        least_seeds : int
            At least so many seeds in every tier, if there are: medians, and what costs nothing.
        least_points : int
            At least so many points in every tier: where a claim asks for the shape of a curve.
        split : callable, optional
            Makes several rows of a run, from its label and its row: flows of a mix, each under a label of its own.
            Where a tier is only planned, the counts are None.

        Returns
        -------
        Result
            Without figures.
        """
        duration = duration_s if whole else max(min(duration_s, MIN_DURATION_S), duration_s * self.tier.duration)
        count = seeds if self.tier.seeds is None else min(seeds, max(self.tier.seeds, least_seeds))
        chosen = self.tier.thin(points, keep, least_points)
        numbers = range(1, count + 1)
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
        """Add the outcome of the experiment's checks."""
        if self.dry:
            return found
        held = {unit.name: bool(unit.check()) for unit in self.units if unit.experiment == id}
        return replace(found, units=found.units | held)

    def kept(self, *names: str) -> Path | None:
        """Name the part of the store for some runs: small parts are read fast."""
        if self.store is None:
            return None
        return self.store.joinpath(*(name.replace("/", "_") for name in names))

    def scaled(self, seconds: float) -> str:
        """Write a time of the paper's run, such as a warm-up, as this tier has it."""
        return f"{seconds * self.tier.duration:g} s"


def _measured(
    runs: pl.DataFrame, duration: float, published: float, split: Split | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compute the metrics of runs, and split the runs first if asked to."""
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
    """Make the table of a sweep that was not run."""
    columns = {name: pl.Series([None] * curves * len(seeds), dtype=pl.Float64) for name in reknit._compare.RUN}
    return pl.DataFrame({"variant": [""] * curves * len(seeds), "seed": [*seeds] * curves, **columns})
