"""Figures as in the papers: curves, bars, boxes and traces, as SVG."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from reknit._style import COLOURS, CURVES, SETTINGS, look
from reknit_study.papers._frame import Result, key
from reknit_study.papers._labels import canonical

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Figure:
    """The fields of all figures.

    Attributes
    ----------
    y : str
        The metric.
    x_label, y_label : str
        With units.
    title : str
        Title of this panel; empty if that of the experiment is enough.
    variants : sequence of str
        Curves to draw, in this order; by default all.
    published : mapping
        The paper's values, by label: a list of ``(x, y)``.
    """

    y: str = ""
    x_label: str = ""
    y_label: str = ""
    title: str = ""
    variants: Sequence[str] = ()
    published: Mapping[str, Sequence[tuple[Any, float]]] = field(default_factory=dict)

    def svg(self, result: Result) -> str:
        """Draw the figure."""
        import matplotlib as mpl

        # The same bytes every time: no date, no random ids.
        with mpl.rc_context({**SETTINGS, "svg.hashsalt": "reknit", "svg.fonttype": "none"}):
            from matplotlib.figure import Figure as Canvas

            canvas = Canvas(figsize=(6.4, 4.0), layout="constrained")
            axes = canvas.add_subplot()
            self.draw(axes, result)
            axes.set(xlabel=self.x_label, ylabel=self.y_label, title=self.title)
            curves = len(axes.get_legend_handles_labels()[0])
            if curves:
                # The best place inside the axes takes longest to find, and may still hide a curve.
                canvas.legend(loc="outside lower center", ncols=min(3, curves))
            if axes.get_yscale() == "linear" and axes.get_ylim()[1] >= 10_000:
                axes.yaxis.set_major_formatter("{x:,.0f}")
            out = io.BytesIO()
            canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        text = out.getvalue().decode()
        return text[text.index("<svg") :]

    def draw(self, axes: Axes, result: Result) -> None:
        """Draw into the axes."""
        raise NotImplementedError

    def labels(self, result: Result) -> list[str]:
        """List the curves to draw."""
        there = result.table["variant"].unique(maintain_order=True).to_list()
        return [label for label in map(canonical, self.variants or there) if label in there]


@dataclass(frozen=True)
class Lines(Figure):
    """A metric over the axis: mean and range over the seeds; horizontal lines for curves that do not depend on x.

    Attributes
    ----------
    log_x, log_y : bool
        Logarithmic axes; 0 is then at the left end.
    """

    log_x: bool = False
    log_y: bool = False

    def draw(self, axes: Axes, result: Result) -> None:
        """Draw the curves, and the paper's values as hollow markers."""
        names = [x for x in result.points if isinstance(x, str)]
        places: dict[str, float] = {name: i for i, name in enumerate(names)}
        if names:
            axes.set_xticks(range(len(names)), names)
        places |= {key(x): float(x) for x in result.points if not isinstance(x, str)}
        labels = self.labels(result)
        covered = self._covered(result, labels)
        for i, label in enumerate(labels):
            self._curve(axes, result, label, i, places, 1.2 + 2 * covered[label])
        if self.log_x:
            positive = [place for place in places.values() if place > 0]
            axes.set_xscale("symlog", linthresh=min(positive)) if 0 in places.values() else axes.set_xscale("log")
        if self.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)

    def _covered(self, result: Result, labels: Sequence[str]) -> dict[str, int]:
        """Count how many later curves hide each one; it is drawn wider, so that it shows on both sides of them."""
        table = result.table.filter(pl.col(self.y).is_not_null())
        means = {
            label: dict(
                table.filter(pl.col("variant") == label).group_by("x").agg(pl.col(self.y).mean()).sort("x").iter_rows()
            )
            for label in labels
        }
        top = max((abs(y) for curve in means.values() for y in curve.values()), default=0.0)

        def hides(later: str, earlier: str) -> bool:
            common = means[later].keys() & means[earlier].keys()
            near = sum(abs(means[later][x] - means[earlier][x]) <= 0.01 * top for x in common)
            return bool(common) and 2 * near >= len(common)

        return {label: sum(hides(later, label) for later in labels[i + 1 :]) for i, label in enumerate(labels)}

    def _curve(self, axes: Axes, result: Result, label: str, i: int, places: Mapping[str, float], width: float) -> None:
        style = look(i)
        mine = result.table.filter((pl.col("variant") == label) & pl.col(self.y).is_not_null())
        groups = mine.group_by("x", maintain_order=True)
        stats = {str(x): (fmean(part[self.y]), min(part[self.y]), max(part[self.y])) for (x,), part in groups}
        for at, (height, *_) in stats.items():
            if at not in places:
                axes.axhline(height, color=style["color"], linestyle="--", linewidth=width, label=label)
        curve = sorted((places[at], *stats[at]) for at in stats if at in places)
        if curve:
            x, y, low, high = zip(*curve, strict=True)
            # The mean of equal numbers may differ from them by rounding.
            below = [max(0.0, a - b) for a, b in zip(y, low, strict=True)]
            above = [max(0.0, b - a) for a, b in zip(y, high, strict=True)]
            axes.errorbar(
                x,
                y,
                [below, above],
                label=label,
                markersize=3 + width,
                linewidth=width,
                elinewidth=1.2,
                capsize=2,
                **style,
            )
        for point, value in self.published.get(label, ()):
            place = places.get(key(point))
            if place is not None:
                hollow: dict[str, Any] = {"markersize": 9, "fillstyle": "none", "linestyle": ""}
                axes.plot([place], [value], marker="o", color=style["color"], **hollow)


@dataclass(frozen=True)
class Dots(Figure):
    """A metric over the axis, with a dot for each run: where runs differ so much that a mean shows none of them."""

    def draw(self, axes: Axes, result: Result) -> None:
        """Draw the runs of each curve side by side."""
        labels = self.labels(result)
        places = sorted(float(x) for x in result.points if not isinstance(x, str))
        gap = min((b - a for a, b in pairwise(places)), default=1.0)
        rows = result.table.filter(pl.col(self.y).is_not_null(), pl.col("x") != "all")
        for i, label in enumerate(labels):
            mine = rows.filter(pl.col("variant") == label)
            x = mine["x"].cast(pl.Float64) + gap * 0.12 * (i - (len(labels) - 1) / 2)
            style = look(i)
            axes.plot(
                x, mine[self.y], linestyle="", marker=style["marker"], color=style["color"], alpha=0.7, label=label
            )
        axes.set_ylim(bottom=0)


@dataclass(frozen=True)
class Bars(Figure):
    """A metric without an axis, or at few points: a bar per curve, with the paper's value as a line across it."""

    def draw(self, axes: Axes, result: Result) -> None:
        """Draw a bar for each curve and point."""
        labels = self.labels(result)
        rows = result.table.filter(pl.col(self.y).is_not_null())
        groups = rows["x"].unique(maintain_order=True).to_list()
        width = 0.8 / max(1, len(groups))
        for g, x in enumerate(groups):
            for i, label in enumerate(labels):
                values = rows.filter((pl.col("variant") == label) & (pl.col("x") == x))[self.y]
                place = i - 0.4 + width * (g + 0.5)
                if len(values):
                    name = x if i == 0 and len(groups) > 1 else None
                    axes.bar(place, fmean(values), 0.9 * width, color=CURVES[g % len(CURVES)], label=name)
                for at, value in self.published.get(label, ()):
                    if key(at) == x:
                        axes.hlines(value, place - width / 2, place + width / 2, color=COLOURS["ink"], linewidth=2)
        _name(axes, labels)


@dataclass(frozen=True)
class Boxes(Figure):
    """A metric over the repetitions: median, quartiles, minimum and maximum, as in the F-RTO paper."""

    def draw(self, axes: Axes, result: Result) -> None:
        """Draw a box per curve, and the paper's median as a diamond."""
        labels = self.labels(result)
        rows = result.table.filter(pl.col(self.y).is_not_null())
        boxes = [rows.filter(pl.col("variant") == label)[self.y].to_list() for label in labels]
        drawn = [(i, box) for i, box in enumerate(boxes) if box]
        if drawn:
            axes.boxplot([box for _, box in drawn], positions=[i for i, _ in drawn], whis=(0, 100), widths=0.5)
        for i, label in enumerate(labels):
            for _, value in self.published.get(label, ()):
                axes.plot(
                    [i], [value], marker="D", markersize=8, color=COLOURS["reordered"], fillstyle="none", linestyle=""
                )
        _name(axes, labels)
        axes.set_ylim(bottom=0)


@dataclass(frozen=True)
class Drawn(Figure):
    """What a function draws: for traces."""

    drawing: Callable[[Axes, Result], None] = lambda axes, result: None

    def draw(self, axes: Axes, result: Result) -> None:
        """Call the function."""
        self.drawing(axes, result)


def _name(axes: Axes, labels: Sequence[str]) -> None:
    many = len(labels) > 4
    axes.set_xticks(range(len(labels)), labels, rotation=30 if many else 0, ha="right" if many else "center")
