"""Papers, experiments, checks and results: the classes that the modules of the papers use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from reknit_study.papers._labels import canonical

if TYPE_CHECKING:
    from reknit_study.papers._figures import Figure
    from reknit_study.papers._lab import Lab

Point = float | str
"""A point on the axis of a sweep: a number, or a name such as ``"ref"``; ``"all"`` if nothing is swept."""
Kind = Literal["sweep", "trace", "unit"]
ENOUGH_SEEDS = 20
"""An outcome that depends on the choice of seeds gets at least as many before it is called undecided."""
AGAINST = "against the paper: "
"""The description of an interpretation that contradicts what the paper states begins like this."""
FIXED: Mapping[str, str] = {"phases": "fixed"}
"""Part of every scenario here: the papers' runs start at time zero, and scripts specify times and packets."""


@dataclass(frozen=True)
class Tier:
    """How much of the papers' experiments is run.

    Attributes
    ----------
    name : str
        quick, default or full.
    duration : float
        Fraction of the papers' durations.
    seeds, points : int or None
        Maximum number of seeds, and of points of an axis, in addition to those that must be kept; None: all.
    """

    name: str
    duration: float
    seeds: int | None
    points: int | None

    def thin(self, points: Sequence[Point], keep: Iterable[Point] = (), least: int = 0) -> list[Point]:
        """Choose points of an axis: both ends, those to keep, and points that fill the largest gaps."""
        if self.points is None or len(points) <= max(self.points, least):
            return list(points)
        named = {key(point) for point in keep}
        chosen = {0, len(points) - 1} | {i for i, point in enumerate(points) if key(point) in named}
        while len(chosen) < max(self.points, least):
            places = sorted(chosen)
            gap, low = max((high - low, -low) for low, high in pairwise(places))
            chosen.add(-low + gap // 2)
        return [points[i] for i in sorted(chosen)]


QUICK = Tier("quick", duration=0.02, seeds=2, points=3)
DEFAULT = Tier("default", duration=1.0, seeds=3, points=4)
FULL = Tier("full", duration=1.0, seeds=None, points=None)
TIERS = {tier.name: tier for tier in (QUICK, DEFAULT, FULL)}


def key(point: Point) -> str:
    """Format a point as in tables."""
    return point if isinstance(point, str) else f"{point:.10g}"


@dataclass(frozen=True)
class Result:
    """The results of an experiment.

    Attributes
    ----------
    points : tuple
        The axis as published, including points that this tier leaves out.
    table : polars.DataFrame
        A row for each run: ``variant`` (the paper's label), ``x``, ``seed``, and the metrics.
    runs : polars.DataFrame
        The same runs with the columns of `reknit.sweep`.
    traces : dict
        Single values from a trace, by label and field.
    units : dict
        Checks by name: whether each passed.
    figures : tuple of Figure
        The figures, as in the paper.
    notes : tuple of str
        Notes for the reader of the report.
    """

    points: tuple[Point, ...] = ()
    table: pl.DataFrame = field(default_factory=pl.DataFrame)
    runs: pl.DataFrame = field(default_factory=pl.DataFrame)
    traces: dict[tuple[str, str], float] = field(default_factory=dict)
    units: dict[str, bool] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()

    def __or__(self, other: Result) -> Result:
        """Combine two results; the axis is that of the first, since reference curves are at ``"all"`` or 0."""
        return Result(
            points=self.points or other.points,
            table=pl.concat([self.table, other.table], how="diagonal_relaxed"),
            runs=pl.concat([self.runs, other.runs], how="diagonal_relaxed"),
            traces=self.traces | other.traces,
            units=self.units | other.units,
            figures=self.figures + other.figures,
            notes=self.notes + other.notes,
        )

    def only(self, *variants: str) -> Result:
        """Keep some curves, without figures."""
        wanted = [canonical(label) for label in variants]
        kept = [part.filter(pl.col("variant").is_in(wanted)) for part in (self.table, self.runs)]
        return replace(self, table=kept[0], runs=kept[1], figures=())

    def drawn(self, *figures: Figure) -> Result:
        """Set the figures."""
        return replace(self, figures=figures)

    def noted(self, *notes: str) -> Result:
        """Add notes for the reader of the report."""
        return replace(self, notes=self.notes + notes)

    def traced(self, variant: str, **fields: float) -> Result:
        """Add values from a trace."""
        return replace(self, traces=self.traces | {(canonical(variant), name): v for name, v in fields.items()})

    def relative(self, name: str, of: str, to: Point) -> Result:
        """Add metric ``name``: ``of`` relative to the same variant's mean over the seeds at the point ``to``."""
        base = (
            self.table.filter(pl.col("x") == key(to))
            .group_by("variant", maintain_order=True)
            .agg(pl.col(of).mean().alias("_base"))
        )
        joined = self.table.drop(name, strict=False).join(base, on="variant", how="left", maintain_order="left")
        return replace(self, table=joined.with_columns((pl.col(of) / pl.col("_base")).alias(name)).drop("_base"))

    def with_metric(self, name: str, of: pl.Expr) -> Result:
        """Add a metric computed from the columns of `reknit.sweep`."""
        return replace(self, table=self.table.with_columns(self.runs.select(of.alias(name)).to_series()))


Body = Callable[..., Result]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper.

    Attributes
    ----------
    id, paper : str
        Its id, which claims use, and the name of the paper.
    figure, title, reports : str
        Its place in the paper, its title, and what the paper reports.
    setup : str
        The setup in a sentence or two.
    kind : str
        sweep; trace: a deterministic run, packet by packet; unit: checks only.
    packets : float
        Maximum number of data packets at the full tier.
    quick : bool
        Whether it is part of the quick tier.
    enough_seeds : int
        Number of seeds if an outcome depends on the choice of seeds.
    readings : mapping of str to str
        Other interpretations, where the paper leaves open what decides the outcome, with a description of each. The
        function gets the current one from ``lab.reading``; None is the default. The description of one that
        contradicts what the paper states begins with `AGAINST`.
    arguments : mapping
        Further arguments of the function.
    """

    id: str
    paper: str
    figure: str
    title: str
    reports: str
    setup: str
    kind: Kind
    packets: float
    quick: bool
    enough_seeds: int
    readings: Mapping[str, str]
    arguments: Mapping[str, Any]
    body: Body | None

    def contradicts(self, reading: str) -> bool:
        """Return whether an interpretation contradicts what the paper states, instead of filling a gap."""
        return self.readings.get(reading, "").startswith(AGAINST)

    def __call__(self, lab: Lab) -> Result:
        """Run the function."""
        return Result() if self.body is None else self.body(lab, **self.arguments)


@dataclass(frozen=True)
class Unit:
    """A named check of a rule, or of the trace of a small scenario."""

    name: str
    experiment: str
    statement: str
    check: Callable[[], bool]


class Paper:
    """A paper and its experiments.

    Parameters
    ----------
    name : str
        The name on the command line.
    title, source : str
        Title of the paper; authors, publisher and year.
    gives_durations : bool
        Whether it says how long its runs took; if not, ours are planned.
    pending, pending_units : iterable of str
        Experiments and checks that are not written yet.
    """

    def __init__(
        self,
        name: str,
        title: str,
        source: str,
        *,
        gives_durations: bool = True,
        pending: Iterable[str] = (),
        pending_units: Iterable[str] = (),
    ) -> None:
        """Start without experiments."""
        self.name, self.title, self.source, self.gives_durations = name, title, source, gives_durations
        self.pending, self.pending_units = frozenset(pending), frozenset(pending_units)
        self.experiments: dict[str, Experiment] = {}
        self.units: dict[str, Unit] = {}

    def experiment(
        self,
        id: str,
        *,
        figure: str,
        title: str,
        reports: str,
        setup: str = "",
        kind: Kind = "sweep",
        packets: float = 0,
        quick: bool = False,
        enough_seeds: int = ENOUGH_SEEDS,
        readings: Mapping[str, str] | None = None,
        **arguments: Any,  # noqa: ANN401
    ) -> Callable[[Body], Body]:
        """Declare an experiment; several of these decorators on one function declare as many experiments.

        Parameters are those of `Experiment`; other keywords are passed to the function.
        """

        def declare(body: Body) -> Body:
            self._add(
                Experiment(
                    id,
                    self.name,
                    figure,
                    title,
                    reports,
                    setup,
                    kind,
                    packets,
                    quick,
                    enough_seeds,
                    readings or {},
                    arguments,
                    body,
                )
            )
            return body

        return declare

    def checks(self, id: str, *, figure: str, title: str, reports: str, setup: str = "", quick: bool = True) -> None:
        """Declare an experiment that consists of `unit` checks only."""
        self._add(
            Experiment(id, self.name, figure, title, reports, setup, "unit", 0, quick, ENOUGH_SEEDS, {}, {}, None)
        )

    def unit(self, name: str, experiment: str) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
        """Declare a check of an experiment: a function without arguments whose docstring begins with 'Check that'."""

        def declare(check: Callable[[], bool]) -> Callable[[], bool]:
            if name in self.units:
                raise ValueError(f"{name}: declared twice")
            statement = (check.__doc__ or "").strip().splitlines()
            if not statement:
                raise ValueError(f"{name}: its docstring must say what is checked")
            self.units[name] = Unit(name, experiment, statement[0], check)
            return check

        return declare

    def _add(self, experiment: Experiment) -> None:
        if experiment.id in self.experiments:
            raise ValueError(f"{experiment.id}: declared twice")
        self.experiments[experiment.id] = experiment
