"""Plots of results, with matplotlib: each returns its axes, none changes matplotlib's settings.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers and dashes differ, too.

>>> import reknit, reknit.plot
>>> axes = reknit.plot.goodput(reknit.compare("two-paths-50ms", ["sack", "rack"], duration="20s"))
>>> axes.figure.savefig("goodput.svg")
"""

from __future__ import annotations

import re
from functools import wraps
from typing import TYPE_CHECKING, Any

from reknit import _compare, _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import ParamSpec, TypeVar

    import polars
    from matplotlib.axes import Axes

    from reknit._compare import Comparison, Run

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)))
_CAUSES = ("fast retransmit", "timeout", "probe", "rescue", "window probe")
_GREY = "#5F6368"
_STYLE = {
    "figure.figsize": (7.0, 4.2),
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": _GREY,
    "axes.labelcolor": "#202124",
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E5E8",
    "grid.linewidth": 0.8,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "font.family": "sans-serif",
}
_NAMES = {
    "goodput_mbit_s": "goodput (Mbit/s)",
    "of_in_order": "goodput, share of in-order",
    "spurious_retransmissions": "spurious retransmissions",
    "false_window_cuts": "spurious window cuts",
    "window_cuts": "window cuts",
    "timeouts": "timeouts",
    "wait_p99_ms": "wait at the receiver, 99 % (ms)",
    "transactions_p99_ms": "completion time, 99 % (ms)",
    "transactions_p50_ms": "completion time, median (ms)",
    "jain": "Jain's index",
}
# What a unit is in seconds, bit/s or bytes; the first word tells which go together.
_UNITS = {
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "bit/s": ("rate", 1.0),
    "kbit/s": ("rate", 1e3),
    "Mbit/s": ("rate", 1e6),
    "Gbit/s": ("rate", 1e9),
    "B": ("size", 1.0),
    "kB": ("size", 1e3),
    "KiB": ("size", 1024.0),
    "MB": ("size", 1e6),
    "MiB": ("size", 1048576.0),
    "%": ("share", 1.0),
    "packets": ("count", 1.0),
}


def _styled(draw: Callable[_P, _T]) -> Callable[_P, _T]:
    """Draw in our style, and leave matplotlib's as it was."""

    @wraps(draw)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with _matplotlib().rc_context(_STYLE):
            return draw(*args, **kwargs)

    return wrapper


@_styled
def goodput(
    result: Comparison | polars.DataFrame,
    x: str | None = None,
    by: str | None = "variant",
    *,
    y: str = "goodput_mbit_s",
    ax: Axes | None = None,
) -> Axes:
    """Draw means over the seeds with 95 % confidence bands against an axis of a sweep; of a comparison, by variant.

    Parameters
    ----------
    result : Comparison or polars.DataFrame
        A comparison, or the table of a sweep.
    x : str, optional
        The axis to draw against. Numbers and text such as ``"2 Mbit/s"`` are placed to scale, all else side by side. By
        default the variant for a comparison, and the only axis beside ``by`` for a sweep.
    by : str, optional
        The axis that has a line for each value.
    y : str
        Another column than the goodput in Mbit/s.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on axes of its own.

    Returns
    -------
    matplotlib.axes.Axes
        With a line and a band (Student's t; none for a single seed) for each value of ``by``.

    Raises
    ------
    Error
        If a column is missing, or if something else varies, too: select one value of it first.
    """
    columns, x = _read(result, x, by, y)
    ax = _axes(ax)
    lines = _distinct(columns[by]) if by and by != x else [None]
    place, label, ticks = _scale(x, _distinct(columns[x]))
    for i, line in enumerate(lines):
        rows = [row for row in range(len(columns[x])) if line is None or columns[by or x][row] == line]
        values = {at: [columns[y][row] for row in rows if columns[x][row] == at] for at in _distinct(columns[x])}
        points = sorted((place[at], *_native.estimate(many)) for at, many in values.items() if many)
        xs, means = [point[0] for point in points], [point[1] for point in points]
        half = [point[2] or 0.0 for point in points]
        colour, marker, dashes = COLOURS[i % 7], _MARKERS[i % 7], _DASHES[i % 7]
        if ticks and line is None:
            for n, (at, mean, error) in enumerate(zip(xs, means, half, strict=True)):
                fmt, colour = _MARKERS[n % 7], COLOURS[n % 7]
                ax.errorbar([at], [mean], [error], fmt=fmt, color=colour, capsize=5, lw=1.8, ms=6)
            continue
        ax.plot(xs, means, color=colour, marker=marker, ls=dashes, lw=1.8, ms=5, label=str(line))
        if any(half):
            low, high = ([m + sign * h for m, h in zip(means, half, strict=True)] for sign in (-1, 1))
            ax.fill_between(xs, low, high, color=colour, alpha=0.18, lw=0)
    if ticks:
        ax.set_xticks(range(len(ticks)), ticks)
        ax.set_xlim(-0.6, len(ticks) - 0.4)
        ax.grid(visible=False, axis="x")
    ax.set(xlabel=label, ylabel=_NAMES.get(y, y))
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    if lines != [None]:
        ax.legend(title=by)
    return ax


@_styled
def box(
    result: Comparison | polars.DataFrame,
    x: str | None = None,
    y: str = "goodput_mbit_s",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the spread over the seeds: boxes from the first to the third quartile.

    Whiskers reach to the last run within 1.5 times that distance.

    Parameters
    ----------
    result : Comparison or polars.DataFrame
        A comparison, or the table of a sweep.
    x : str, optional
        The axis that has a box for each value; by default the variant, or a sweep's only axis.
    y : str
        The column whose spread is drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on axes of its own.

    Returns
    -------
    matplotlib.axes.Axes
        With a box and the runs themselves for each value of ``x``.

    Raises
    ------
    Error
        If a column is missing, or if something else varies, too.
    """
    columns, x = _read(result, x, None, y)
    ax = _axes(ax)
    names = _distinct(columns[x])
    for i, name in enumerate(names):
        runs = [value for at, value in zip(columns[x], columns[y], strict=True) if at == name and value is not None]
        colour = COLOURS[i % 7]
        line = {"color": colour, "linewidth": 1.5}
        ax.boxplot(
            [runs],
            positions=[i],
            widths=0.5,
            patch_artist=True,
            showfliers=False,
            boxprops={"facecolor": colour + "30", "edgecolor": colour, "linewidth": 1.5},
            medianprops={"color": colour, "linewidth": 2.5},
            whiskerprops=line,
            capprops=line,
            manage_ticks=False,
        )
        # Side by side, so that equal runs do not hide each other.
        xs = [i + 0.18 * (2 * (run + 0.5) / len(runs) - 1) for run in range(len(runs))]
        ax.plot(xs, runs, ls="none", marker=_MARKERS[i % 7], ms=3.5, color=colour, alpha=0.8)
    ax.set_xticks(range(len(names)), [str(name) for name in names])
    ax.set(xlabel=x, ylabel=_NAMES.get(y, y), xlim=(-0.6, len(names) - 0.4))
    ax.grid(visible=False, axis="x")
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    return ax


@_styled
def timeline(run: Run, flow: int = 0) -> tuple[Axes, Axes]:
    """Draw a sender's congestion window and duplicate threshold over time.

    Parameters
    ----------
    run : Run
        From `simulate` with ``sample_every``.
    flow : int
        Which connection, from 0.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The window with the slow start threshold in kB, above; the threshold of duplicates in segments, below. Where the
        sender was in recovery or after a timeout, the background is shaded.

    Raises
    ------
    Error
        If the run has no series, or no such connection.
    """
    series = _columns(run.series)
    rows = [row for row, of in enumerate(series["flow"]) if of == flow]
    if not rows:
        raise _native.Error(f"flow: the run has no series of flow {flow}; ask for one with sample_every")
    times = [series["time_s"][row] for row in rows]
    figure, (window, threshold) = _matplotlib().subplots(2, sharex=True, height_ratios=[2, 1])

    def kilobytes(name: str) -> list[float]:
        return [float("nan") if series[name][row] is None else series[name][row] / 1e3 for row in rows]

    window.plot(times, kilobytes("cwnd_bytes"), color=COLOURS[0], lw=1.6, drawstyle="steps-post", label="cwnd")
    window.plot(times, kilobytes("ssthresh_bytes"), color=COLOURS[6], lw=1.2, ls="--", label="ssthresh")
    thresholds = [series["dup_thresh_segments"][row] for row in rows]
    threshold.plot(times, thresholds, color=COLOURS[2], lw=1.6, drawstyle="steps-post", label="dup_thresh")
    phases = [series["phase"][row] for row in rows]
    for phase, colour, hatch in (("recovery", COLOURS[4], None), ("loss", COLOURS[1], "//")):
        for i, (begin, end) in enumerate(_spans(times, phases, phase)):
            for ax in (window, threshold):
                name = phase if i == 0 and ax is window else None
                ax.axvspan(begin, end, facecolor=colour, alpha=0.18, lw=0, hatch=hatch, label=name, zorder=0.5)
    window.set(ylabel="window (kB)", title=f"{run.variant} on {run.path}, seed {run.seed}")
    threshold.set(ylabel="dup_thresh\n(segments)", xlabel="time (s)", xlim=(times[0], times[-1]))
    for ax in (window, threshold):
        ax.set_ylim(bottom=0)
    figure.legend(*window.get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return window, threshold


@_styled
def sequence(trace: polars.DataFrame, flow: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw a connection's sequence numbers over time, as its sender sees them.

    Parameters
    ----------
    trace : polars.DataFrame
        From `trace`.
    flow : int
        Which connection, from 0.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on axes of its own.

    Returns
    -------
    matplotlib.axes.Axes
        Bytes in kB against time in seconds: what was sent for the first time, again (by cause), and lost; the line is
        what has been acknowledged.

    Raises
    ------
    Error
        If there is no such connection.
    """
    columns = _columns(trace)
    rows = [row for row, of in enumerate(columns["flow"]) if of == flow and columns["end"][row] == "sender"]
    if not rows:
        raise _native.Error(f"flow: the trace has no flow {flow}")
    ax = _axes(ax)
    kinds: dict[str, list[tuple[float, float]]] = {}
    acknowledged: list[tuple[float, float]] = []
    for row in rows:
        time, event = columns["time_s"][row], columns["event"][row]
        if event == "deliver" and columns["ack_bytes"][row] is not None:
            top = max(columns["ack_bytes"][row] / 1e3, acknowledged[-1][1] if acknowledged else 0.0)
            acknowledged.append((time, top))
        elif columns["length_bytes"][row]:
            cause = columns["cause"][row] or "new"
            first = cause in ("new", "limited_transmit")
            kind = "lost" if event == "lost" else "sent" if first else f"sent again: {cause.replace('_', ' ')}"
            kinds.setdefault(kind, []).append((time, columns["seq_bytes"][row] / 1e3))
    if acknowledged:
        ax.step(*zip(*acknowledged, strict=True), where="post", color=COLOURS[6], lw=1.2, label="acknowledged")
    again = [kind for kind in sorted(kinds) if kind.startswith("sent again")]
    looks: dict[str, tuple[str, str, float]] = {"sent": (COLOURS[0], ".", 3), "lost": (COLOURS[1], "x", 6)}
    for i, cause in enumerate(_CAUSES):
        looks[f"sent again: {cause}"] = COLOURS[2 + i % 4], _MARKERS[1 + i], 4.5
    for kind in ("sent", *again, "lost"):
        if kind in kinds:
            colour, marker, size = looks.get(kind, (_GREY, "*", 5.0))
            ax.plot(*zip(*kinds[kind], strict=True), ls="none", marker=marker, ms=size, color=colour, label=kind)
    ax.set(xlabel="time (s)", ylabel="sequence number (kB)")
    ax.legend(loc="upper left")
    return ax


def _matplotlib() -> Any:  # noqa: ANN401
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("reknit.plot needs matplotlib: pip install 'reknit[plot]'") from error
    return plt


def _axes(ax: Axes | None) -> Any:  # noqa: ANN401
    """Make axes, unless there are some."""
    return _matplotlib().subplots()[1] if ax is None else ax


def _columns(frame: Any) -> dict[str, list[Any]]:  # noqa: ANN401
    if hasattr(frame, "iter_columns"):
        return {column.name: column.to_list() for column in frame.iter_columns()}
    return {str(name): frame[name].tolist() for name in frame.columns}


def _read(
    result: Comparison | polars.DataFrame, x: str | None, by: str | None, y: str
) -> tuple[dict[str, list[Any]], str]:
    """Check the columns; only ``x``, ``by`` and the seed may vary."""
    columns = _columns(result.runs if isinstance(result, _compare.Comparison) else result)
    names = list(columns)
    axes = names[: names.index("seed")] if "seed" in names else names
    varying = [axis for axis in axes if len(_distinct(columns[axis])) > 1]
    free = [axis for axis in varying if axis != by]
    x = x or (free[0] if len(free) == 1 else "variant" if not free else None)
    if x is None:
        raise _native.Error(f"x: choose one of {', '.join(free)}")
    for name in (x, y, *([by] if by and by != "variant" else [])):
        if name not in columns:
            raise _native.Error(f"{name}: no such column; there are {', '.join(names)}")
    more = [axis for axis in free if axis != x]
    if more:
        raise _native.Error(f"{more[0]}: varies, too; select one value of it first")
    return columns, x


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _scale(name: str, values: list[Any]) -> tuple[dict[Any, float], str, list[str]]:
    """Where each value stands, what the axis is called, and the values' names if they stand side by side."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return {value: float(value) for value in values}, name, []
    read = [re.fullmatch(r"\s*([0-9.]+)\s*(\S+)\s*", str(value)) for value in values]
    found = [(value, float(match[1]), match[2]) for value, match in zip(values, read, strict=True) if match]
    if len(found) == len(values) and len({_UNITS.get(unit, (unit, 0.0))[0] for _, _, unit in found}) == 1:
        unit = found[-1][2]
        if unit in _UNITS:
            return {v: number * _UNITS[of][1] / _UNITS[unit][1] for v, number, of in found}, f"{name} ({unit})", []
    return {value: float(i) for i, value in enumerate(values)}, name, [str(value) for value in values]


def _spans(times: list[float], phases: list[str], wanted: str) -> Iterator[tuple[float, float]]:
    """Yield when a phase began and ended."""
    begin = None
    for time, phase in zip(times, phases, strict=True):
        if phase == wanted and begin is None:
            begin = time
        elif phase != wanted and begin is not None:
            yield begin, time
            begin = None
    if begin is not None:
        yield begin, times[-1]
