"""The survey of Leung, Li and Yang (TPDS 2007): all schemes on one path with route flutter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from reknit_study.papers._figures import Bars, Lines
from reknit_study.papers._frame import Paper, Point, Result
from reknit_study.papers._lab import Curves, Lab
from reknit_study.papers._labels import Variant, changed, variant

paper = Paper(
    "survey",
    "An Overview of Packet Reordering in Transmission Control Protocol (TCP): Problems, Solutions, and Challenges",
    "Leung, Li, Yang: IEEE TPDS, 2007",
)

WARM_UP_S, MEASURED_S = 100, 1000
ENOUGH_SEEDS = 10
"""Fewer than elsewhere: means over 1000 s vary little, and these runs are most of the default tier."""
TAUS: list[Point] = [0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]
RECONCILING = ["sack", "dsack_tcp", "eifel", "door"]
ADJUSTING = ["ba_inc", "ba_avg", "ba_ewma", "rr", "leungma", "rntcp"]
WAITING = ["ba_timeinc", "dcr", "tcppr"]
MARKED = ["sack", "dsack_tcp", "eifel", "door", *ADJUSTING, *WAITING]
"""SACK, and the rows of Table 2 that the survey simulated."""

READINGS = {
    "min-rto-1s": "the minimum RTO is 1 s, as RFC 2988 requires, instead of the 200 ms of ns-2.29",
    "leung-ma-port": "Leung-Ma has the constants of an implementation by others, which leave room for two round trips "
    "in 70 % of the timeout (the survey gives no constants)",
    "limit-64": "the thresholds of RR-TCP and Leung-Ma are at most 64, as in Table 2 of the RR-TCP paper, whose "
    "windows are 50 packets",
    "dcr-before-timeout": "TCP-DCR's wait ends a round trip before the retransmission timer expires",
    "slow-link": "the link has 1 Mbit/s instead of 10; neither the survey's text nor its Table 1 gives rates",
    "any-hole": "in recovery every hole below the highest SACK is retransmitted, as in sack1 of ns-2.29, which the "
    "survey used; it does not say whether all of the programs that it ported do",
    "rn-125": "RN-TCP waits for k = 125 more duplicate ACKs, half a window at tau = 1, instead of 3 (the survey gives "
    "no value)",
    "rfc-eifel": "Eifel responds as in RFC 4015, however many segments were retransmitted; the survey's restores the "
    "window after a single retransmission only",
    "door-freeze": "TCP-DOOR only freezes congestion control; the survey has either that or instant recovery (section "
    "5.1.2), by default it does both",
}
PAPERS_AVERAGE = {
    "rr-tcp-avg": "against the paper: BA-AVG averages the threshold with the number of duplicate ACKs that caused a "
    "false fast retransmit, as the RR-TCP paper says; that number is the threshold itself, which therefore never "
    "rises. Leung-Ma adds eight mean deviations instead of four, and the minimum RTO is 1 s. Only the schemes that "
    "adjust the threshold and TCP-DCR are run"
}
SLOW_LINK_1S = {
    "slow-link-1s": "as slow-link, with a minimum RTO of 1 s, and Leung-Ma adds eight mean deviations instead of four; "
    "only Leung-Ma, RR-TCP and TCP-DCR are run"
}
SETUP = (
    "One flow of 1100 s, of which the first 100 s are not counted, over 10 Mbit/s, with queues of 300 packets and "
    "cwnd up to 500 packets. The delay of the {way} path changes at exponentially distributed intervals with a mean "
    "of {delta} ms; each new delay is drawn from N(50 + 200 x, 200 x / 3) ms, at least 50 ms, where x is tau. The "
    "delay of the other direction is 50 ms. Eifel restores the window if only the oldest segment was retransmitted, as "
    "section 5.1.1 of the survey describes; against the survey, which has no such rule, it does not if the ACK covers "
    "everything outstanding and no DSACK was ever seen (rule 4 of RFC 3522). The survey's Blanton-Allman:DEL is the "
    "TIMEINC of the RR-TCP paper, which waits for at most half of the smoothed round trip and is never reset; the "
    "survey has no such limit. While it waits it sends new segments as the other Blanton-Allman schemes do (section "
    "5.2.2), where section 7.3 says that all of these schemes but TCP-DCR fail to. The thresholds of RR-TCP and "
    "Leung-Ma may be as large as the window [assumed]; it is ten times that of the RR-TCP paper, where 64 is the "
    "largest threshold. "
    "[assumed: 10 Mbit/s (neither the text nor Table 1 gives rates; Fig. 6 was not available to us); an access link of "
    "100 Mbit/s and 1 ms at the sender only; an ACK per packet; no timestamps; initial window 2, where section 1.2 "
    "says one; minimum RTO 200 ms, initial RTO 3 s, clock tick 10 ms; packets of 1500 bytes with headers; the twelve "
    "values of tau.] Figs. 7 and 8 are judged by what the text says about them."
)


EIFEL: dict[str, Variant] = {
    "eifel": changed(
        "eifel",
        "eifel-oldest-only",
        spurious_response={"algorithm": "oldest-only"},
        rto_estimator={"algorithm": "rfc6298"},
    )
}
"""Eifel as the survey describes it; RFC 4015 came later."""
LARGEST = {"max_dup_thresh": 500}
"""The largest threshold: the largest window."""
LIFTED: dict[str, Variant] = {
    "rr": changed("rr", "rr-taes-500", dup_thresh=LARGEST),
    "leungma": changed("leungma", "leung-ma-500", dup_thresh=LARGEST),
}
"""The curves whose threshold has a limit of its own."""
OTHER_VARIANTS: dict[str, dict[str, Variant]] = {
    "leung-ma-port": {"leungma": {"name": "leung-ma-port-500", "base": "leung-ma-port", "dup_thresh": LARGEST}},
    "limit-64": {label: variant(label) for label in LIFTED},
    "dcr-before-timeout": {"dcr": changed("dcr", "dcr-before-timeout", loss_detector={"before_timeout": True})},
    "rn-125": {"rntcp": changed("rntcp", "rn-125", dup_thresh={"k": 125})},
    "rfc-eifel": {"eifel": "eifel"},
    "door-freeze": {
        "door": changed("door", "door-freeze", spurious_detectors=[{"algorithm": "door", "respond": "freeze"}])
    },
}
"""Interpretations that change some curves only."""
RATES = {"slow-link": "1 Mbit/s", "slow-link-1s": "1 Mbit/s"}
"""The rate of the link by interpretation; 10 Mbit/s by default."""
AT_LEAST_1S = ("min-rto-1s", "rr-tcp-avg", "slow-link-1s")
"""The interpretations with a minimum RTO of 1 s."""


EIGHT_DEVIATIONS: dict[str, Variant] = {
    "leungma": changed("leungma", "leung-ma-500-8", dup_thresh={**LARGEST, "lambda": 8.0})
}
CONSTANT_AVERAGE: dict[str, Variant] = {
    "ba_avg": changed("ba_avg", "ba-avg-constant", dup_thresh={"rule": "inc", "step": 0})
}
"""BA-AVG with a threshold that never rises."""
SPECIAL = {"rr-tcp-avg": {**EIGHT_DEVIATIONS, **CONSTANT_AVERAGE}, "slow-link-1s": EIGHT_DEVIATIONS}
"""The variants that an interpretation changes, if all curves are run again."""
SOME_CURVES = {
    "rr-tcp-avg": [*ADJUSTING, "dcr"],
    "slow-link-1s": ["leungma", "rr", "dcr"],
}
"""Interpretations under which only some curves are run."""


def curves(labels: Sequence[str], reading: str | None = None) -> dict[str, Variant]:
    """Look up the variants of the survey's curves."""
    special = {**EIFEL, **LIFTED, **SPECIAL.get(reading or "", {})}
    return {label: special.get(label) or variant(label) for label in labels}


def sweep_as_read(lab: Lab, id: str, labels: list[str], sweep: Callable[[Curves], Result]) -> Result:
    """Sweep curves; if an interpretation changes some of them, the others are taken from the default."""
    if lab.reading not in OTHER_VARIANTS:
        return sweep(curves(labels, lab.reading))
    reading, lab.reading = lab.reading, None
    try:
        default = lab.result(id)
    finally:
        lab.reading = reading
    others = {label: other for label, other in OTHER_VARIANTS[reading].items() if label in labels}
    return default.only(*(label for label in labels if label not in others)) | sweep(others)


def route(tau: float, delta_ms: float) -> dict[str, object]:
    """Describe a route whose delay changes."""
    return {
        "kind": "flutter",
        "interval": f"exponential({delta_ms} ms)",
        "delay": f"normal({50 + 200 * tau} ms, {200 * tau / 3} ms)",
        "minimum": "50 ms",
    }


def fluttering(
    lab: Lab, delta_ms: float, way: str = "forward", buffer: int = 300
) -> Callable[[float], dict[str, object]]:
    """Make the scenarios of Figs. 7 and 8 over tau."""
    queue = f"{buffer} packets"
    access = {"kind": "link", "rate": "100 Mbit/s", "delay": "1 ms", "queue": "300 packets"}
    tcp = {
        "initial_window": 2,
        "max_window": 500,
        "max_window_caps": "cwnd",
        "max_burst": "none",
        "timestamps": False,
        "ack_every": 1,
        "byte_counting": False,
        "initial_rto": "3 s",
        "min_rto": "1 s" if lab.reading in AT_LEAST_1S else "200 ms",
        "rto_tick": "10 ms",
    }
    if lab.reading == "any-hole":
        tcp["retransmit"] = "any-hole"

    def scenario(tau: float) -> dict[str, object]:
        rate = RATES.get(lab.reading or "", "10 Mbit/s")
        bottleneck = {"kind": "link", "name": "bottleneck", "rate": rate, "queue": queue}
        late = [bottleneck, route(tau, delta_ms)]
        steady = [{**bottleneck, "delay": "50 ms"}]
        path = {
            "drop_notices": True,
            "forward": [access, *(late if way == "forward" else steady)],
            "reverse": [*(late if way == "reverse" else steady), access],
            "tcp": tcp,
        }
        return {"path": path, "warm_up": lab.scaled(WARM_UP_S)}

    return scenario


@paper.experiment(
    "S7/50",
    figure="Fig. 7 a, c, e",
    title="Goodput where the forward route changes every 50 ms",
    reports="The goodput of all schemes except TCP-PR falls as tau grows; threshold adjustment and temporal schemes "
    "are better than state reconciliation.",
    setup=SETUP.format(way="forward", delta=50),
    packets=1.9e9,
    quick=True,
    readings=READINGS | PAPERS_AVERAGE | SLOW_LINK_1S,
    enough_seeds=ENOUGH_SEEDS,
    delta_ms=50,
    way="forward",
)
@paper.experiment(
    "S7/250",
    figure="Fig. 7 b, d, f",
    title="Goodput where the forward route changes every 250 ms",
    reports="As with route changes every 50 ms, but goodput is usually higher.",
    setup=SETUP.format(way="forward", delta=250),
    packets=2.6e9,
    readings=READINGS | PAPERS_AVERAGE | SLOW_LINK_1S,
    enough_seeds=ENOUGH_SEEDS,
    delta_ms=250,
    way="forward",
)
@paper.experiment(
    "S8/50",
    figure="Fig. 8 a, c, e",
    title="Goodput where the return route changes every 50 ms",
    reports="The goodput of all schemes except TCP-PR falls as tau grows, and is about equal; TCP-PR keeps its "
    "goodput.",
    setup=SETUP.format(way="return", delta=50),
    packets=3.7e9,
    readings=READINGS,
    enough_seeds=ENOUGH_SEEDS,
    delta_ms=50,
    way="reverse",
)
@paper.experiment(
    "S8/250",
    figure="Fig. 8 b, d, f",
    title="Goodput where the return route changes every 250 ms",
    reports="As with route changes every 50 ms.",
    setup=SETUP.format(way="return", delta=250),
    packets=3.6e9,
    readings=READINGS,
    enough_seeds=ENOUGH_SEEDS,
    delta_ms=250,
    way="reverse",
)
def goodput_over_tau(lab: Lab, delta_ms: float, way: str) -> Result:
    """Sweep the path delay factor tau for all schemes."""

    def sweep(curves: Curves) -> Result:
        scenario, duration_s = fluttering(lab, delta_ms, way), WARM_UP_S + MEASURED_S
        return lab.sweep(scenario, TAUS, curves, duration_s=duration_s, seeds=30, keep=[0, 0.2, 1.0, 1.4, 2.0])

    labels = SOME_CURVES.get(lab.reading or "", [*MARKED, "dsack_r"])
    found = sweep_as_read(lab, f"S{7 if way == 'forward' else 8}/{delta_ms}", labels, sweep)
    # TCP-PR has a timer per segment instead of a single one: three times its envelope of round-trip times.
    timer = pl.coalesce("rto_mean_ms", 3 * pl.col("srtt_mean_ms"))
    return found.with_metric("rto_over_rtt99", timer / pl.col("rtt_p99_ms")).drawn(_goodput(MARKED))


def _goodput(labels: list[str]) -> Lines:
    return Lines("goodput_mbps", "path delay factor tau", "goodput, Mbit/s", variants=labels)


def _panel(letter: str, runs: str, labels: list[str], what: str, reports: str) -> None:
    figure, way = ("Fig. 7", "forward") if runs.startswith("S7") else ("Fig. 8", "return")
    delta = runs.partition("/")[2]

    @paper.experiment(
        f"{runs[:2]}{letter}",
        figure=f"{figure} {letter}",
        title=f"{what}, {way} route changes every {delta} ms",
        reports=reports,
        setup=f"The runs of {runs}; only the curves of this panel.",
        readings=READINGS,
    )
    def panel(lab: Lab) -> Result:
        return lab.result(runs).only(*labels).drawn(_goodput(labels))


_REVERSE = "The goodput of all schemes except TCP-PR falls as tau grows, and is about equal."
for _letters, _labels, _what, _reports in (
    (
        "ab",
        RECONCILING,
        "State reconciliation",
        "Goodput falls as tau grows; at tau = 2, TCP-DOOR is at least 89.4 % above the others.",
    ),
    (
        "cd",
        ADJUSTING,
        "Threshold adjustment",
        "Leung-Ma and RR-TCP are alike, and better than Blanton-Allman and RN-TCP beyond tau = 1.",
    ),
    (
        "ef",
        WAITING,
        "Temporal approach",
        "TCP-PR sustains a good goodput at all levels; TCP-DCR is like Leung-Ma and RR-TCP.",
    ),
):
    for _delta, _letter in zip((50, 250), _letters, strict=True):
        _panel(_letter, f"S7/{_delta}", _labels, _what, _reports)
        _panel(_letter, f"S8/{_delta}", _labels, _what, _REVERSE)


@paper.experiment(
    "S7cong",
    figure="sec. 5.1.2",
    title="Forty flows on a congested path that reorders",
    reports="TCP-DOOR, which freezes congestion control, may overload the path.",
    setup="As in S7/50 at tau = 1, with 40 flows of the same scheme and a queue of 50 packets, so that SACK loses "
    "packets there, too. The experiment is ours, not the survey's.",
    packets=24e6,
    readings={"door-freeze": READINGS["door-freeze"]},
)
def congested(lab: Lab) -> Result:
    """Run competing flows of the same scheme."""
    scenario = fluttering(lab, 50, buffer=50)

    def sweep(curves: Curves) -> Result:
        return lab.sweep(
            lambda tau: {**scenario(tau), "flows": 40},
            [1.0],
            curves,
            duration_s=WARM_UP_S + MEASURED_S,
            seeds=5,
            keep=[1.0],
            least_seeds=5,
        )

    found = sweep_as_read(lab, "S7cong", ["sack", "dsack_tcp", "door", "rr", "dcr", "tcppr"], sweep)
    return found.drawn(
        Bars("drop_frac", "", "fraction of packets dropped by the queue"), Bars("goodput_mbps", "", "goodput, Mbit/s")
    )


@paper.experiment(
    "ST2",
    figure="Table 2",
    title="Properties of the schemes, measured",
    reports="The table marks schemes with fewer spurious retransmissions, ACK clocking, a larger window, or a better "
    "estimate of the timeout.",
    setup="The runs of S7/50 at tau = 1.",
    readings=READINGS,
)
def property_matrix(lab: Lab) -> Result:
    """Show the properties that Table 2 marks as numbers."""
    runs = lab.result("S7/50")
    at = [part.filter(pl.col("x") == "1").with_columns(x=pl.lit("all")) for part in (runs.table, runs.runs)]
    return Result(points=("all",), table=at[0], runs=at[1]).drawn(
        Bars("spurious_1000", "", "spurious retransmissions per 1000 packets", variants=MARKED),
        Bars("burst_p99", "", "segments sent per ACK, 99th percentile", variants=MARKED),
        Bars("cwnd_mean", "", "mean cwnd, bytes", variants=MARKED),
        Bars("rto_over_rtt99", "", "mean RTO / 99th percentile of true RTT", variants=MARKED),
    )


from reknit_study.papers import survey_checks, survey_quoted  # noqa: E402, F401 - they add to the paper
