"""Plot values of runs: means with intervals, and the spread over the seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reknit import _compare, _native
from reknit._style import COLOURS, CURVES, look, pyplot, styled
from reknit.plot import _read

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars
    from matplotlib.axes import Axes

    from reknit._compare import Comparison
    from reknit.plot._read import Columns

# Height in inches of a row, and of everything around the rows.
_ROW, _AROUND = 0.23, 1.1
# More values without an order, such as paths, are drawn as a distribution.
_MOST_TICKS = 12


@styled
def goodput(
    result: Comparison | polars.DataFrame,
    x: str | None = None,
    by: str | None = "variant",
    *,
    y: str = "goodput_mbit_s",
    ax: Axes | None = None,
) -> Axes:
    """Draw means over the seeds with 95 % confidence intervals: of a comparison, or along an axis of a sweep.

    Parameters
    ----------
    result : Comparison or polars.DataFrame
        A comparison, or the table of a sweep.
    x : str, optional
        The axis for the x direction. Numbers and text such as ``"2 Mbit/s"`` are placed to scale, and connected by
        lines. Other values, such as paths, are points side by side; more than twelve are drawn as the distribution of
        their means. With a single line they have a row each; variants are grouped by family, the best first. By
        default the variant for a comparison, and the only axis besides ``by`` for a sweep.
    by : str, optional
        The axis with one line for each value.
    y : str
        The column to draw; by default the goodput in Mbit/s.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A line with a band, points or rows with bars, or a distribution, for each value of ``by`` (Student's t; no
        interval for a single seed). Intervals of values that are never negative end at zero.

    Raises
    ------
    Error
        If a column is missing, or if another axis also varies; select one value of it first.
    """
    columns, x = _read.runs(result, x, by, y)
    lines = _read.distinct(columns[by]) if by and by != x else [None]
    place, label, ticks = _read.scale(x, _read.distinct(columns[x]))
    if ticks and lines == [None]:
        return _rows_of_means(result, columns, x, y, ax)
    ax = pyplot().subplots()[1] if ax is None else ax
    for i, line in enumerate(lines):
        rows = [row for row in range(len(columns[x])) if line is None or columns[by or x][row] == line]
        values = _by_value({name: [columns[name][row] for row in rows] for name in (x, y)}, x, y)
        points = sorted((place[at], *_interval(many)) for at, many in values.items())
        if not ticks:
            _line(ax, points, i, str(line))
        elif len(ticks) <= _MOST_TICKS:
            _points(ax, points, i, str(line), len(lines))
        else:
            means = sorted(mean for _, mean, *_ in points)
            ax.ecdf(means, color=look(i)["color"], ls=look(i)["ls"], lw=1.8, label=str(line))
    title = _title(result, columns, "mean")
    if len(ticks) > _MOST_TICKS:
        ax.set(xlabel=_read.label(y), ylabel=f"share of {len(ticks)} values of {label}", title=title)
    else:
        if ticks:
            ax.set_xticks(range(len(ticks)), ticks, rotation=20 if len(ticks) > 4 else 0)
            ax.grid(visible=False, axis="x")
        ax.set(xlabel=label, ylabel=_read.label(y), title=title)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    if lines != [None]:
        _legend(ax, by, len(lines))
    return ax


def _interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean and the ends of its interval; that of values that are never negative ends at zero."""
    mean, half = _native.estimate(values)
    low, high = mean - (half or 0.0), mean + (half or 0.0)
    return mean, max(0.0, low) if min(values) >= 0.0 else low, high


def _line(ax: Axes, points: list[tuple[float, float, float, float]], i: int, label: str) -> None:
    """Draw line ``i``: position, mean and ends of the interval of each point."""
    xs, means, lows, highs = ([point[column] for point in points] for column in range(4))
    ax.plot(xs, means, **look(i), lw=1.8, ms=5, label=label)
    if lows != highs:
        ax.fill_between(xs, lows, highs, color=look(i)["color"], alpha=0.18, lw=0)


def _points(ax: Axes, points: list[tuple[float, float, float, float]], i: int, label: str, lines: int) -> None:
    """Draw the points of line ``i`` beside those of the others."""
    aside = 0.6 * ((i + 0.5) / lines - 0.5)
    xs, means, lows, highs = ([point[column] for point in points] for column in range(4))
    ends = [
        [mean - low for mean, low in zip(means, lows, strict=True)],
        [high - mean for mean, high in zip(means, highs, strict=True)],
    ]
    style = {**look(i), "ls": "none"}
    ax.errorbar([x + aside for x in xs], means, yerr=ends, **style, capsize=3, lw=1.6, ms=5, label=label)


@styled
def box(
    result: Comparison | polars.DataFrame,
    x: str | None = None,
    y: str = "goodput_mbit_s",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the spread over the seeds: boxes from the first to the third quartile.

    Whiskers extend to the last run within 1.5 times the interquartile range.

    Parameters
    ----------
    result : Comparison or polars.DataFrame
        A comparison, or the table of a sweep.
    x : str, optional
        The axis with one row for each value; by default the variant, or a sweep's only axis.
    y : str
        The column to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each value of ``x``, with a box and the individual runs. Variants are grouped by family, the largest
        median first.

    Raises
    ------
    Error
        If a column is missing, or if another axis also varies.
    """
    columns, x = _read.runs(result, x, None, y)
    values = _by_value(columns, x, y)
    ax, rows = _rows(values, x, _median, ax)
    for name, (at, colour) in rows.items():
        runs = values[name]
        line = {"color": colour, "linewidth": 1.5}
        ax.boxplot(
            [runs],
            positions=[at],
            widths=0.6,
            orientation="horizontal",
            patch_artist=True,
            showfliers=False,
            boxprops={"facecolor": colour + "30", "edgecolor": colour, "linewidth": 1.5},
            medianprops={"color": colour, "linewidth": 2.5},
            whiskerprops=line,
            capprops=line,
            manage_ticks=False,
        )
        # Spread over the height of the box, so that equal runs do not hide each other.
        ys = [at + 0.2 * (2 * (run + 0.5) / len(runs) - 1) for run in range(len(runs))]
        ax.plot(runs, ys, ls="none", marker="o", ms=3.5, color=colour, alpha=0.8)
    ax.set(xlabel=_read.label(y), title=_title(result, columns, "spread"))
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    return ax


def _rows_of_means(result: Comparison | polars.DataFrame, columns: Columns, x: str, y: str, given: Axes | None) -> Axes:
    """Draw a row for each value: its mean, with a bar for the interval."""
    values = _by_value(columns, x, y)
    ax, rows = _rows(values, x, lambda many: _native.estimate(many)[0], given)
    for name, (at, colour) in rows.items():
        mean, low, high = _interval(values[name])
        ax.errorbar([mean], [at], xerr=[[mean - low], [high - mean]], fmt="o", color=colour, capsize=3, lw=1.6, ms=5)
    if isinstance(result, _compare.Comparison) and y == "goodput_mbit_s":
        line: dict[str, Any] = {"color": COLOURS["reference"], "lw": 1.0, "ls": "--", "zorder": 1}
        ax.axvline(result.in_order_mbit_s, label="sack, in order", **line)
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    ax.set(xlabel=_read.label(y), title=_title(result, columns, "mean"))
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    return ax


def _by_value(columns: Columns, x: str, y: str) -> dict[Any, list[float]]:
    """Collect the runs for each value of ``x``."""
    pairs = [(at, value) for at, value in zip(columns[x], columns[y], strict=True) if value is not None]
    return {at: [value for other, value in pairs if other == at] for at in _read.distinct([at for at, _ in pairs])}


def _rows(
    values: dict[Any, list[float]], x: str, rank: Callable[[list[float]], float], given: Axes | None
) -> tuple[Axes, dict[Any, tuple[int, str]]]:
    """Make axes with a row for each value; return position and colour of each. Variants are sorted within families."""
    groups = _read.families(list(values)) if x == "variant" else {"": list(values)}
    if x == "variant":
        groups = {family: sorted(names, key=lambda n: -rank(values[n])) for family, names in groups.items()}
    heads: dict[int, str] = {}
    rows: dict[Any, tuple[int, str]] = {}
    headed = sum(map(bool, groups.values())) > 1
    for i, (family, names) in enumerate(groups.items()):
        if headed and names:
            heads[len(heads) + len(rows)] = family
        for name in names:
            rows[name] = len(heads) + len(rows), CURVES[i % len(CURVES)]
    count = len(heads) + len(rows)
    ax = pyplot().subplots(figsize=(7.0, _AROUND + _ROW * count))[1] if given is None else given
    ax.set_yticks([at for at, _ in rows.values()], [str(name) for name in rows])
    ax.set_ylim(count - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    for row, family in heads.items():
        ax.annotate(
            family, (0, row), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=8.5, fontweight="bold", color=COLOURS["reference"],
        )  # fmt: skip
        ax.axhline(row - 0.5, color=COLOURS["grid"], lw=0.8, zorder=0.5)
    return ax, rows


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _title(result: Comparison | polars.DataFrame, columns: Columns, what: str) -> str:
    """Return the path and the number of seeds."""
    seeds = len(_read.distinct(columns["seed"])) if "seed" in columns else 1
    over = "one seed" if seeds == 1 else f"{what} of {seeds} seeds" if what == "mean" else f"{seeds} seeds"
    interval = ", 95 % interval" if what == "mean" and seeds > 1 else ""
    paths = result.paths["path"].to_list() if isinstance(result, _compare.Comparison) else []
    where = f"{paths[0]}: " if len(paths) == 1 else ""
    return f"{where}{over}{interval}"


def _legend(ax: Any, title: str | None, entries: int) -> None:  # noqa: ANN401
    """Draw the legend, beside the axes if it is long."""
    if entries > 6:
        ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=-(-entries // 24))
    else:
        ax.legend(title=title)
