"""Single runs over time. Figs. 1, 9 and 19."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

import reknit
from reknit._style import CAUSES, COLOURS
from reknit_study.papers._figures import Drawn
from reknit_study.papers._frame import FIXED, Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import Variant
from reknit_study.papers.rr_tcp._network import WARM_UP_S, dumbbell, paper
from reknit_study.papers.rr_tcp._scripted import (
    MSS,
    at_sender,
    duplicate_reports,
    fast_retransmits,
    late,
    scripted,
    silence,
    trace,
)
from reknit_study.papers.rr_tcp.prior_work import BURSTS, bursty
from reknit_study.papers.rr_tcp.timeouts import FEWER_LOSSES, late_and_lost, loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WARM_UP = f"{WARM_UP_S:g} s"
SHOWN_FROM_S = 0.6
"""Start of the window that Fig. 1 shows."""


@paper.experiment(
    "R1",
    figure="Fig. 1",
    title="One false fast retransmit",
    reports="The first packet of a window of 16 is 0.45 s late; duplicate ACKs halve the window just after 1 s; the "
    "DSACK restores it at about 1.45 s.",
    setup="P = 200 ms [inferred from the 0.45 s between the fast retransmit and the DSACK]; DSACK-R, maximum window of "
    "16. The first packet is sent at 0.6 s [inferred from 'just after one second' and the RTT of 0.4 s].",
    kind="trace",
    quick=True,
)
def one_false_fast_retransmit(lab: Lab) -> Result:
    """Follow the packets."""
    if lab.dry:
        return Result()
    script = {"kind": "script", "rules": [late(1, 450)]}
    scenario = {**dumbbell(0.2, script, window=16, tcp={"initial_window": 16}), "duration": "3 s"}
    packets = trace(scenario, "dsack-r")
    data = packets.filter(pl.col("segment").is_not_null())
    shift = SHOWN_FROM_S - float(data["time_s"][0])
    found = fast_retransmits(packets)[0], duplicate_reports(packets)[0]
    windows = [_cwnd(packets, when) for when in (found[0] - 1e-6, *found)]
    return (
        Result()
        .traced("dsack_r", cwnd_before=windows[0], cwnd_after_fr=windows[1], cwnd_after_dsack=windows[2])
        .traced("dsack_r", t_fr=found[0] + shift, t_dsack=found[1] + shift)
        .drawn(Drawn(x_label="time at the sender, s", y_label="packet", drawing=_packets(packets, shift)))
    )


def _cwnd(packets: pl.DataFrame, time_s: float) -> float:
    """Look up cwnd at a time, after all events of that time; packets."""
    return float(at_sender(packets).filter(pl.col("time_s") <= time_s)["cwnd_bytes"][-1]) / MSS


def _packets(packets: pl.DataFrame, shift: float) -> Any:  # noqa: ANN401
    sender = at_sender(packets).with_columns(pl.col("time_s") + shift)
    sent = sender.filter(pl.col("event") == "send", pl.col("segment").is_not_null())
    acks = sender.filter(pl.col("event") == "deliver", pl.col("ack_bytes") > 0)

    def draw(axes: Axes, _: Result) -> None:
        looks = ((False, "o", COLOURS["in_order"], "sent"), (True, "s", CAUSES["fast_retransmit"], "retransmitted"))
        for again, marker, colour, label in looks:
            part = sent.filter((pl.col("transmission") > 1) == again)
            axes.plot(part["time_s"], part["segment"], marker, color=colour, markersize=3, label=label)
        marks: dict[str, Any] = {"color": COLOURS["reference"], "label": "acknowledged"}
        axes.plot(acks["time_s"], (acks["ack_bytes"] - 1) / MSS, "_", **marks)
        told = acks.filter(pl.col("dsack").is_not_null())
        axes.plot(
            told["time_s"], (told["ack_bytes"] - 1) / MSS, "*", color=COLOURS["reordered"], markersize=9, label="DSACK"
        )
        axes.set(xlim=(SHOWN_FROM_S - 0.1, 2.5), ylim=(0, 70))

    return draw


@paper.experiment(
    "R9",
    figure="Fig. 9",
    title="FA ratio and threshold over time",
    reports="The ratio oscillates around 70 %, the threshold around 25 packets.",
    setup="One run in the network of Fig. 8 [P and losses inferred from Fig. 8]; means from 100 s on.",
    kind="trace",
    packets=0.1e6,
    quick=True,
    readings=FEWER_LOSSES,
)
def ratio_over_time(lab: Lab) -> Result:
    """Run DSACK-TA for 1000 s."""
    if lab.dry:
        return Result()
    scenario = {**FIXED, **late_and_lost(0.1, loss(lab)), "duration": "1000 s", "warm_up": WARM_UP}
    run = reknit.simulate(None, "rr-ta", scenario=scenario, sample_every="1 s", seed=lab.first_seed)
    return (
        Result()
        .traced(
            "dsack_ta",
            fa_mean=run.totals["dup_thresh.fa_ratio_mean"],
            fa_std=run.totals["dup_thresh.fa_ratio_std"],
            dupthresh_mean=run.totals["dup_thresh_mean_segments"],
        )
        .drawn(
            Drawn(
                x_label="time, s",
                y_label="FA ratio, %; threshold, packets",
                drawing=_lines(
                    {
                        "FA ratio": run.series.select("time_s", 100 * pl.col("dup_thresh.fa_ratio")),
                        "threshold": run.series.select("time_s", "dup_thresh_segments"),
                    }
                ),
            )
        )
    )


def _lines(curves: dict[str, pl.DataFrame]) -> Any:  # noqa: ANN401
    def draw(axes: Axes, _: Result) -> None:
        for label, curve in curves.items():
            axes.step(curve["time_s"], curve.to_series(1), where="post", linewidth=0.9, label=label)
        axes.set_ylim(bottom=0)

    return draw


@paper.experiment(
    "R19",
    figure="Fig. 19",
    title="Thresholds over time, with bursts of loss",
    reports="INC's threshold returns to 3 at each timeout and then rises by one at a time; TA's stays about constant.",
    setup="One run of each in the network of Table 4, with bursts; means from 100 s on.",
    kind="trace",
    packets=0.2e6,
)
def thresholds_over_time(lab: Lab) -> Result:
    """Run INC and TA for 1000 s."""
    if lab.dry:
        return Result()
    scenario = {**FIXED, **bursty(BURSTS), "duration": "1000 s", "warm_up": WARM_UP}
    found, curves = Result(), {}
    for label, variant in (("ba_inc", "ba-inc"), ("dsack_ta", "rr-ta")):
        run = reknit.simulate(None, variant, scenario=scenario, sample_every="1 s", seed=lab.first_seed)
        spread = run.totals["dup_thresh_std_segments"] / run.totals["dup_thresh_mean_segments"]
        found = found.traced(label, dupthresh_cv=spread)
        curves[label] = run.series.select("time_s", "dup_thresh_segments")
    low, step = _resets(trace(scenario, "ba-inc"))
    return found.traced("ba_inc", min_dupthresh_after_rto=low, max_step_up=step).drawn(
        Drawn(x_label="time, s", y_label="threshold, packets", drawing=_lines(curves))
    )


def _resets(packets: pl.DataFrame) -> tuple[float, float]:
    """Find the threshold after timeouts, and by how much it rises.

    Returns
    -------
    tuple
        The largest threshold outside recovery between any timeout and the next fast retransmit; and the largest
        increase.
    """
    sender = at_sender(packets)
    cause = pl.when(pl.col("event") == "send").then(pl.col("cause"))
    turn = pl.when(cause.is_in(["timeout", "fast_retransmit"])).then(cause).forward_fill()
    # During recovery, the threshold keeps its value from the start of the recovery.
    used = sender.with_columns(turn=turn).filter(pl.col("phase").is_in(["open", "disorder"]))
    reset = used.filter(pl.col("turn") == "timeout")["dup_thresh_segments"].max()
    return float(reset), float(used["dup_thresh_segments"].diff().max())  # type: ignore[arg-type]


@paper.unit("ba_no_decrease", "R19")
def thresholds_after_reordering() -> bool:
    """Check that after reordering, INC keeps its threshold until a timeout, and RR-TCP returns to 3 within 80 s."""
    rules = [late(segment, 30) for segment in (33, 97, 161, 225)]
    scenario = scripted(*rules, silence(120, 120.1), duration="125 s")
    inc, rr = (_thresholds(scenario, variant) for variant in ("ba-inc", "rr-taes"))
    kept = inc[5] > 3 and inc[5] == inc[119] and inc[124] == 3
    return kept and rr[5] > 3 and rr[75] > 3 and rr[86] == 3


def _thresholds(scenario: dict[str, Any], variant: Variant) -> list[int]:
    """List the threshold at each second."""
    series = reknit.simulate(None, variant, scenario=scenario, sample_every="1 s").series
    return series["dup_thresh_segments"].to_list()
