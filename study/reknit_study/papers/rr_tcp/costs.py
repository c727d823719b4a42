"""Sections 4.3 and 4.4: costs that change the FA ratio, and RTT samples of late packets; a sender against formulas."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

import reknit
from reknit_study.papers._labels import Variant, changed
from reknit_study.papers.rr_tcp._network import paper
from reknit_study.papers.rr_tcp._scripted import (
    HOP_S,
    arrivals,
    dropped,
    duplicate_reports,
    fast_retransmits,
    late,
    scripted,
    silence,
    trace,
)
from reknit_study.papers.rr_tcp.ablations import bounded

paper.checks(
    "R-cost",
    figure="sections 4.2 and 4.3",
    title="Costs of timeouts, false fast retransmits and idle periods",
    reports="C(timeout) = W (T/R + log2 W - k - 2) + 1; C(false fast retransmit) = K (W - K + 1) / 2; "
    "C(idle) = (I/R) W - d.",
    setup="Scripted transfers with a window of W; the FA ratio falls by 0.01 x cost / C(false fast retransmit).",
)

START, STEP = 0.9, 0.01
EPSILON = 1e-4


def cost_of_timeout(w: float, t: float, k: float) -> float:
    """Compute the cost of section 4.3.1, with T in round trips."""
    return w * (t + math.log2(w) - k - 2) + 1


def cost_of_false_fast_retransmit(w: float, d: float) -> float:
    """Compute the cost of section 4.3.2, with D in round trips: linear between integers."""
    rounds = min(d, w / 2)
    low = math.floor(rounds)
    at, above = (k * (w - k + 1) / 2 for k in (low, low + 1))
    return at + (rounds - low) * (above - at)


@paper.unit("rr_cost_timeout", "R-cost")
def timeouts_lower_the_ratio() -> bool:
    """Check that a timeout lowers the FA ratio by its cost, for several W, T, R and k."""
    cases = [(16, 1.0, 0.1, 1), (50, 1.0, 0.1, 1), (32, 1.0, 0.2, 1), (16, 2.0, 0.1, 2), (16, 1.0, 0.1, 0)]
    return all(_timeout_lowers(*case) for case in cases)


def _timeout_lowers(w: int, t_s: float, r_s: float, k: float) -> bool:
    lost = dropped(w + 1, 2 * w)
    scenario = scripted(lost, window=w, hop_s=r_s / 2, duration="5 s", tcp={"min_rto": f"{t_s:g} s"})
    totals = reknit.simulate(None, bounded("dsack_ta", k), scenario=scenario).totals
    by = STEP * cost_of_timeout(w, t_s / r_s, k) / cost_of_false_fast_retransmit(w, 1)
    return bool(totals["timeouts"] == 1 and abs(totals["dup_thresh.fa_ratio"] - (START - by)) < EPSILON)


@paper.unit("rr_cost_ffr", "R-cost")
def false_fast_retransmits_by_their_length() -> bool:
    """Check that a false fast retransmit costs K(W - K + 1)/2: W/2 for one round trip, and at most that of K = W/2."""
    # W, and by how many milliseconds the second copy arrives after the first one.
    found = [_false_fast_retransmit(w, by_ms) for w, by_ms in [(16, 0), (16, 50), (16, 230), (4, 350)]]
    rounds = [d for d, _ in found]
    reach = rounds[0] < 1.01 and 1.4 < rounds[1] < 1.6 and 3 < rounds[2] < 3.6 and rounds[3] > 4
    return reach and all(passed for _, passed in found)


def _false_fast_retransmit(w: int, by_ms: float) -> tuple[float, bool]:
    """Cause one false fast retransmit and then a timeout, whose effect on the ratio reveals the former's cost.

    Returns
    -------
    tuple
        For how many round trips the window was reduced, and whether the ratio is as the formulas say.
    """
    scenario = scripted(
        late(w + 1, 60), late(w + 1, max(by_ms, 0.001), 2), silence(2.02, 2.12), window=w, duration="5 s"
    )
    # Averages with this memory keep their first sample: W remains the initial window.
    variant = changed("dsack_ta", f"steady-{w}", dup_thresh={"memory": 1_000_000})
    packets = trace(scenario, variant)
    run = reknit.simulate(None, variant, scenario=scenario, sample_every="10 ms")
    before = run.series.filter(pl.col("time_s") < 2)[-1]
    r_s, t_s = before["srtt_ms"][0] / 1000, before["rto_ms"][0] / 1000
    d = (duplicate_reports(packets)[0] - fast_retransmits(packets)[0]) / r_s
    by = STEP * cost_of_timeout(w, t_s / r_s, 1) / cost_of_false_fast_retransmit(w, d)
    expected = START + STEP - by
    once = run.totals["timeouts"] == 1 and len(duplicate_reports(packets)) == 1
    return d, once and abs(run.totals["dup_thresh.fa_ratio"] - expected) < EPSILON


@paper.unit("rr_cost_idle", "R-cost")
def idle_periods_lower_the_ratio() -> bool:
    """Check that an idle period lowers the FA ratio by its cost, if it costs more than a false fast retransmit."""
    falls = [_idle_period(by_ms) for by_ms in (220, 250, 500)]
    return all(passed for _, passed in falls) and [fell for fell, _ in falls] == [False, True, True]


def _idle_period(by_ms: float) -> tuple[bool, bool]:
    """Delay a packet until limited transmit is exhausted, with a threshold that is never reached.

    Returns
    -------
    tuple
        Whether the ratio fell, and whether it is as the formula says.
    """
    w = 16
    scenario = scripted(late(w + 1, by_ms), duration="2 s", tcp={"max_window_caps": "cwnd"})
    variant = changed("dsack_ta", "unreached", dup_thresh={"memory": 1_000_000, "min_dup_thresh": 60})
    sender = trace(scenario, variant).filter(pl.col("end") == "sender").with_row_index()
    hole = 1 + w * 960
    end = sender.filter(pl.col("event") == "deliver", pl.col("ack_bytes") > hole)[0]
    sent = sender.filter(pl.col("event") == "send", pl.col("length_bytes") > 0, pl.col("index") < end["index"][0])[-1]
    between = pl.col("index").is_between(sent["index"][0], end["index"][0], closed="none")
    d = len(sender.filter(between, pl.col("event") == "deliver"))
    idle = (end["time_s"][0] - sent["time_s"][0]) / (2 * HOP_S) * w - d
    limit = cost_of_false_fast_retransmit(w, 1)
    expected = START - STEP * idle / limit if idle > limit else START
    ratio = reknit.simulate(None, variant, scenario=scenario).totals["dup_thresh.fa_ratio"]
    return ratio < START - EPSILON, abs(ratio - expected) < EPSILON


@paper.unit("rr_es_sample_bounds", "RT3")
def enhanced_samples() -> bool:
    """Check that the RTT sample of a spuriously retransmitted packet lies between its two RTTs, and needs a DSACK."""
    # Which copy arrives first; neither arrives when the ACKs of the others do.
    orders = [(late(17, 70), late(17, 30, 2)), (late(17, 180), late(17, 0.001, 2))]
    passed = [_enhanced_sample(rules) for rules in orders]
    unreported = [scripted(*orders[0], tcp={"dsack": False}), scripted(dropped(17))]
    same = all(_smoothed(one, "rr-faes") == _smoothed(one, "rr-fa") for one in unreported)
    return all(passed) and same


def _enhanced_sample(rules: tuple[dict[str, Any], ...]) -> bool:
    scenario = scripted(*rules)
    packets = trace(scenario, "rr-faes")
    sent = packets.filter(pl.col("event") == "send", pl.col("segment") == 17, pl.col("end") == "sender")
    both = sent.join(arrivals(packets), on=["segment", "transmission"], suffix="_there")
    rtts = sorted((both["time_s_there"] - both["time_s"] + HOP_S).to_list())
    told = duplicate_reports(packets)[0]
    before, after = (_srtt_at(scenario, "rr-faes", told + by) for by in (-0.002, 0.002))
    plain = [_srtt_at(scenario, "rr-fa", told + by) for by in (-0.002, 0.002)]
    sample = 8 * (after - 7 / 8 * before)
    # Rounding to a microsecond, times eight.
    near = abs(sample - sum(rtts) / 2) < 1e-4
    return len(rtts) == 2 and near and rtts[0] < sample < rtts[1] and plain == [before, before]


def _smoothed(scenario: dict[str, Any], variant: Variant) -> list[float]:
    return reknit.simulate(None, variant, scenario=scenario, sample_every="1 ms").series["srtt_ms"].to_list()


def _srtt_at(scenario: dict[str, Any], variant: Variant, time_s: float) -> float:
    series = reknit.simulate(None, variant, scenario=scenario, sample_every="1 ms").series
    return float(series.filter(pl.col("time_s") <= time_s)["srtt_ms"][-1]) / 1000


@paper.unit("rr_response_delay_one_rtt", "R21")
def reduction_at_most_a_round_trip_later() -> bool:
    """Check that one window of limited transmit delays the reduction after a loss by at most one round trip.

    This is true of all thresholds that can be reached by the duplicate ACKs of a window and of the packets that these
    clock out by limited transmit, W - 1 each. There is one more duplicate ACK, a round trip later, and none after it.
    """
    w = 16
    scenario = scripted(dropped(w + 1), window=w, tcp={"max_window_caps": "cwnd"})
    soonest = fast_retransmits(trace(scenario, "sack"))[0]
    retransmitted = [_fast_retransmits(scenario, 1, n) for n in range(3, 2 * w - 1)]
    waits = [times[0] - soonest for times in retransmitted]
    longer = _fast_retransmits(scenario, 2, 2 * w)[0] - soonest
    bounded_by_one = max(waits) <= 2 * HOP_S + EPSILON < longer and not _fast_retransmits(scenario, 1, 2 * w)
    return bounded_by_one and waits == sorted(waits) and waits[0] == 0 < waits[-1]


def _fast_retransmits(scenario: dict[str, Any], windows: float, n: int) -> list[float]:
    fixed = bounded("dsack_ta", windows, min_dup_thresh=n, max_dup_thresh=n)
    return fast_retransmits(trace(scenario, fixed))
