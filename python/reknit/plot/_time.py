"""Plot one run over time: the sender's variables, or its packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reknit import _native
from reknit._compare import Run
from reknit._style import CAUSES, COLOURS, MARKERS, pyplot, styled
from reknit.plot import _read

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars
    from matplotlib.axes import Axes

    from reknit.plot._read import Columns

_SPURIOUS = "spurious retransmission"


@styled
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
        Above, the window and the slow start threshold in kB; below, the duplicate threshold in segments. The background
        is shaded while the sender is in recovery, and hatched after a timeout. Ticks at the top mark samples at which
        the count of spurious retransmissions has grown.

    Raises
    ------
    Error
        If the run has no series, or the connection does not exist.
    """
    if not isinstance(run, Run):
        raise _native.Error(f"run: a {type(run).__name__}; give what reknit.simulate returns")
    series = _read.columns(run.series, "run")
    rows = [row for row, of in enumerate(series["flow"]) if of == flow]
    if not rows:
        raise _native.Error(f"flow: the run has no series for flow {flow}; set sample_every to get one")
    mine = {name: [values[row] for row in rows] for name, values in series.items()}
    figure, (window, threshold) = pyplot().subplots(2, sharex=True, height_ratios=[2, 1])
    times = mine["time_s"]
    step = {"drawstyle": "steps-post"}
    window.plot(times, _kilobytes(mine["cwnd_bytes"]), color=COLOURS["window"], lw=1.6, label="cwnd", **step)
    window.plot(
        times, _kilobytes(mine["ssthresh_bytes"]), color=COLOURS["reference"], lw=1.2, ls="--", label="ssthresh"
    )
    threshold.plot(times, mine["dup_thresh_segments"], color=COLOURS["threshold"], lw=1.6, label="dup_thresh", **step)
    _shade((window, threshold), times, mine["phase"])
    counts = mine["spurious_retransmissions"]
    spurious = [time for time, now, before in zip(times, counts, [0, *counts], strict=False) if now > before]
    if spurious:
        rug = {"transform": window.get_xaxis_transform(), "ls": "none", "marker": "|", "ms": 8, "clip_on": False}
        window.plot(spurious, [1.0] * len(spurious), color=COLOURS["reordered"], label=_SPURIOUS + "s", **rug)
    window.set(ylabel="window (kB)")
    threshold.set(ylabel="dup_thresh\n(segments)", xlabel="time (s)", xlim=(times[0], times[-1]))
    for ax in (window, threshold):
        ax.set_ylim(bottom=0)
    figure.suptitle(f"{run.variant} on {run.path}, seed {run.seed}", x=0.01, ha="left", fontsize=11)
    figure.legend(*window.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return window, threshold


def _shade(axes: tuple[Any, Any], times: list[float], phases: list[str]) -> None:
    """Shade recovery, and hatch the time after a timeout."""
    looks = (("recovery", COLOURS["recovery"], None, "fast recovery"), ("loss", COLOURS["timeout"], "//", "after RTO"))
    for phase, colour, hatch, name in looks:
        for i, (begin, end) in enumerate(_spans(times, phases, phase)):
            for ax in axes:
                label = name if i == 0 and ax is axes[0] else None
                ax.axvspan(begin, end, facecolor=colour, alpha=0.22, lw=0, hatch=hatch, label=label, zorder=0.5)


def _spans(times: list[float], phases: list[str], wanted: str) -> Iterator[tuple[float, float]]:
    """Yield the begin and end of each period in a phase."""
    begin = None
    for time, phase in zip(times, phases, strict=True):
        if phase == wanted and begin is None:
            begin = time
        elif phase != wanted and begin is not None:
            yield begin, time
            begin = None
    if begin is not None:
        yield begin, times[-1]


def _kilobytes(values: list[int | None]) -> list[float]:
    return [float("nan") if value is None else value / 1e3 for value in values]


@styled
def sequence(trace: polars.DataFrame, flow: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw a connection's sequence numbers over time, as its sender sees them.

    Parameters
    ----------
    trace : polars.DataFrame
        From `trace`.
    flow : int
        Which connection, from 0.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
        Sequence numbers in kB over time in seconds: first transmissions, retransmissions by cause, and losses. The line
        shows what has been acknowledged. A ring marks each spurious retransmission: an earlier transmission of its
        segment arrived.

    Raises
    ------
    Error
        If the connection does not exist.
    """
    columns = _read.columns(trace, "trace")
    if not {"event", "end", "segment", "transmission"} <= columns.keys():
        raise _native.Error("trace: not a table of reknit.trace")
    mine = [row for row, of in enumerate(columns["flow"]) if of == flow]
    if not mine:
        raise _native.Error(f"flow: the trace has no flow {flow}; it has {_flows(columns)}")
    ax = pyplot().subplots()[1] if ax is None else ax
    acknowledged = _acknowledged(columns, mine)
    if acknowledged:
        ax.step(
            *zip(*acknowledged, strict=True), where="post", color=COLOURS["reference"], lw=1.2, label="acknowledged"
        )
    kinds = _kinds(columns, mine)
    looks: dict[str, dict[str, Any]] = {"sent": {"color": COLOURS["in_order"], "marker": ".", "ms": 3}}
    for i, (cause, colour) in enumerate(CAUSES.items()):
        looks[_retransmitted(cause)] = {"color": colour, "marker": MARKERS[1 + i], "ms": 4.5}
    looks["lost"] = {"color": COLOURS["lost"], "marker": "x", "ms": 6}
    looks[_SPURIOUS] = {"color": COLOURS["reordered"], "marker": "o", "ms": 9, "fillstyle": "none", "mew": 1.4}
    for kind in (kind for kind in looks if kind in kinds):
        ax.plot(*zip(*kinds[kind], strict=True), ls="none", label=kind, **looks[kind])
    ax.set(xlabel="time (s)", ylabel="sequence number (kB)", title=f"flow {flow}: sequence numbers at the sender")
    ax.legend(loc="upper left")
    return ax


def _kinds(columns: Columns, rows: list[int]) -> dict[str, list[tuple[float, float]]]:
    """Collect the positions of each kind of packet: time in seconds, first byte in kB."""
    arrived = _first_arrived(columns, rows)
    kinds: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        event, cause = columns["event"][row], columns["cause"][row] or "new"
        if columns["end"][row] != "sender" or event == "deliver" or not columns["length_bytes"][row]:
            continue
        point = columns["time_s"][row], columns["seq_bytes"][row] / 1e3
        if event == "lost":
            kinds.setdefault("lost", []).append(point)
            continue
        first = cause in ("new", "limited_transmit")
        kinds.setdefault("sent" if first else _retransmitted(cause), []).append(point)
        if (columns["transmission"][row] or 1) > arrived.get(columns["segment"][row], float("inf")):
            kinds.setdefault(_SPURIOUS, []).append(point)
    return kinds


def _first_arrived(columns: Columns, rows: list[int]) -> dict[int, int]:
    """Return the first transmission of each segment that arrived."""
    arrived: dict[int, int] = {}
    for row in rows:
        segment, transmission = columns["segment"][row], columns["transmission"][row]
        at_receiver = columns["event"][row] == "deliver" and columns["end"][row] == "receiver"
        if at_receiver and segment is not None and columns["length_bytes"][row]:
            arrived[segment] = min(transmission, arrived.get(segment, transmission))
    return arrived


def _acknowledged(columns: Columns, rows: list[int]) -> list[tuple[float, float]]:
    """Return the acknowledged data in kB, at the times when the sender received the ACKs."""
    line: list[tuple[float, float]] = []
    for row in rows:
        ack = columns["ack_bytes"][row]
        if columns["event"][row] == "deliver" and columns["end"][row] == "sender" and ack is not None:
            line.append((columns["time_s"][row], max(ack / 1e3, line[-1][1] if line else 0.0)))
    return line


def _retransmitted(cause: str) -> str:
    return f"retransmitted: {cause.replace('_', ' ')}"


def _flows(columns: Columns) -> str:
    flows = _read.distinct(columns["flow"])
    return f"flows {flows[0]} to {flows[-1]}" if flows else "none"
