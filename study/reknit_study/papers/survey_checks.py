"""Rules of the schemes that the survey describes, checked on traces."""

from __future__ import annotations

from typing import Any

import polars as pl

import reknit
from reknit_study.papers._labels import Variant
from reknit_study.papers._scripted import MSS, ONE_WAY_S, Rule, acks, numbers, scenario, sent, steps, time_line
from reknit_study.papers.survey import paper

RTT_S = 2 * ONE_WAY_S


@paper.unit("dsack_example", "S7a")
def dsack_example() -> bool:
    """Check that S2, S3, S4 before S1 cause three duplicate ACKs, a retransmission of S1, and a DSACK for S1."""
    packets = time_line("sack", {"segment": 1, "action": "delay", "by": "60 ms"}, window=4)
    again = sent(packets, "fast_retransmit")
    before = acks(packets).filter(pl.col("time_s") <= again["time_s"].min())
    told = acks(packets).filter(pl.col("dsack").is_not_null()).select("ack_bytes", "dsack").rows()
    return (
        before["ack_bytes"].to_list() == [1, 1, 1]
        and again["segment"].to_list() == [1]
        and told == [(1 + 4 * MSS, f"1-{1 + MSS}")]
        and "lost" not in packets["event"]
    )


@paper.unit("eifel_swapped_copies", "S7a")
def eifel_swapped_copies() -> bool:
    """Check that Eifel detects a spurious retransmission if the original arrives first, and misses it otherwise."""
    restored = []
    # The retransmission arrives some 100 ms after the original would have.
    for late_ms in (80, 160):
        packets = time_line("eifel", {"segment": 40, "action": "delay", "by": f"{late_ms} ms"})
        again = sent(packets).filter(pl.col("transmission") > 1)
        if again["segment"].to_list() != [40] or "lost" in packets["event"]:
            return False
        at = numbers(again, "time_s")[0]
        before = numbers(packets.filter(pl.col("time_s") < at), "cwnd_bytes")[-1]
        restored.append(numbers(packets.filter(pl.col("time_s") < at + 2 * RTT_S), "cwnd_bytes")[-1] == before)
    return restored == [True, False]


@paper.unit("rntcp_ack_order_sensitivity", "S7c")
def rntcp_ack_order_sensitivity() -> bool:
    """Check that whether RN-TCP retransmits a late segment depends on the order of the same two ACKs."""
    # Segment 3 is lost, segment 2 is late. Segment 4 reports the loss, but three others overtake it: their ACKs say
    # "reordered", so three are not enough. The ACK of segment 4 does not say so, and triggers a retransmission unless
    # the ACK of segment 2 arrives first.
    lost: list[Rule] = [{"segment": 3, "action": "drop"}, {"segment": 2, "action": "delay", "by": "10 ms"}]
    overtaken: list[Rule] = [{"segment": 4, "action": "delay", "by": "5 ms"}]
    permuted: list[Rule] = [{"packet": 6, "action": "delay", "by": "20 ms"}]
    retransmitted = []
    for back in ([], permuted):
        packets = time_line("rn", *lost, later=overtaken, back=back, bytes=7 * (MSS - 16), window=7)
        retransmitted.append(set(sent(packets, "fast_retransmit")["segment"]))
    return retransmitted == [{2, 3}, {3}]


@paper.unit("dcr_clocking", "Q3")
def dcr_clocking() -> bool:
    """Check that TCP-DCR sends a new segment per duplicate ACK, and retransmits a round trip after the first one."""
    packets = time_line("dcr", {"segment": 40, "action": "drop"}, max_window_caps="cwnd")
    duplicates = acks(packets).filter("duplicate")
    again = numbers(sent(packets, "fast_retransmit"), "time_s")
    first = numbers(duplicates, "time_s")[0]
    waited = set(numbers(duplicates.filter(pl.col("time_s") < again[0]), "time_s"))
    answers = sent(packets).filter(pl.col("time_s").is_between(first, again[0], closed="left"))
    answered = numbers(answers, "time_s")
    in_time = abs(again[0] - first - RTT_S) <= 0.1 * RTT_S
    is_new = answers["transmission"].to_list() == [1] * len(answered)
    return in_time and is_new and len(again) == 1 and len(waited) >= 10 and answered == sorted(waited)


@paper.unit("tcppr_reduction_rules", "S7e")
def tcppr_reduction_rules() -> bool:
    """Check that TCP-PR halves the window once for losses of half a window and one, and goes to a segment for more."""
    least = []
    for last in (40, 41, 46, 48, 49, 50):
        # One, two, seven, nine, ten and eleven losses of sixteen. Nine are more than half, but the algorithm does not
        # count the first loss among those that it remembers, so ten are the fewest that reduce the window to a segment.
        lost = scenario({"segment": [40, last], "action": "drop"})
        series = reknit.simulate(scenario=lost, variant="pr", sample_every="1 ms").series
        least.append(min(numbers(series, "cwnd_bytes")))
    return least == [8 * MSS, 8 * MSS, 8 * MSS, 8 * MSS, MSS, MSS]


@paper.unit("tcppr_spike_memory", "S7e")
def tcppr_spike_memory() -> bool:
    """Check that 20 round trips after an RTT spike, TCP-PR still retransmits late, and SACK does not."""
    lost: Rule = {"segment": 500, "action": "drop"}
    spike: Rule = {"from": "1 s", "to": "1.15 s", "action": "hold"}
    waited = {}
    for variant in ("pr", "sack"):
        for name, rules in (("calm", [lost]), ("spike", [lost, spike])):
            first, again, *_ = numbers(
                sent(time_line(variant, *rules, seconds=5)).filter(pl.col("segment") == 500), "time_s"
            )
            waited[variant, name] = again - first
            if first < 1.15 + 20 * RTT_S:
                return False
    longest = reknit.simulate(scenario=scenario(spike), variant="pr").totals["rtt_max_ms"] / 1000
    # TCP-PR's timer: three times the longest round trip, which decays by 0.5 % per round trip.
    is_late = 0.85 * 3 * longest <= waited["pr", "spike"] <= 3 * longest and longest > 1.5 * RTT_S
    is_calm = waited["pr", "calm"] <= 1.1 * 3 * RTT_S
    return is_late and is_calm and abs(waited["sack", "spike"] - waited["sack", "calm"]) <= 0.1 * RTT_S


@paper.unit("ba_inc_17_steps", "Q4")
def ba_inc_17_steps() -> bool:
    """Check that 17 spurious fast retransmits raise BA-INC's threshold from 3 to 20, which then avoids another one."""
    # Each of these, far apart, is overtaken by some thirty segments; the 18th by eighteen only.
    late: list[Rule] = [{"segment": 200 * n, "action": "delay", "by": "30 ms"} for n in range(1, 18)]
    short: Rule = {"segment": 3600, "action": "delay", "by": "15.5 ms"}
    packets = time_line("ba-inc", *late, short, window=64, seconds=8)
    spurious = sent(packets, "fast_retransmit")["segment"].to_list()
    reached = sent(packets)["segment"].max()
    return (
        spurious == [200 * n for n in range(1, 18)]
        and steps(packets, "dup_thresh_segments") == list(range(3, 21))
        and isinstance(reached, int)
        and reached > 3700
    )


Needs = tuple[frozenset[str], frozenset[str]]
"""The devices that a scheme changes, and what it adds to headers or takes from them."""


def _row(devices: str, fields: str = "") -> Needs:
    return frozenset(devices.split()), frozenset(fields.split())


PUBLISHED: dict[str, Needs] = {
    "Blanton-Allman": _row("source", "DSACK"),
    "DSACK TCP": _row("source", "DSACK"),
    "Eifel": _row("source", "option"),
    "Lee-Park-Choi": _row("source router"),
    "Leung-Ma": _row("source", "DSACK"),
    "Paxson": _row("destination"),
    "RN-TCP": _row("source destination router", "option"),
    "RR-TCP": _row("source", "DSACK"),
    "TCP-DCR": _row("source"),
    "TCP-DOOR": _row("source destination", "option"),
    "TCP-PR": _row("source"),
}
"""Table 2 as published: devices involved; DSACK, or a reordered bit, timestamp or sequence number (an option)."""

IMPLEMENTED: dict[str, list[Variant]] = {
    "Blanton-Allman": ["ba-inc", "ba-timeinc"],
    "DSACK TCP": ["dsack-ss"],
    "Eifel": ["eifel"],
    # With one path, the default, the sender's threshold is 3.
    "Lee-Park-Choi": [{"name": "lpc-4", "base": "lpc-sender", "dup_thresh": {"paths": 4}}, "lpc-receiver"],
    "Leung-Ma": ["leung-ma"],
    "Paxson": [{"name": "paxson-receiver", "base": "paxson-rcv", "dup_thresh": {"dup_thresh": 3}}],
    "RN-TCP": ["rn"],
    "RR-TCP": ["rr-taes"],
    "TCP-DCR": ["dcr"],
    "TCP-DOOR": ["door"],
    "TCP-PR": ["pr"],
}
"""The variants of each row."""

PLAIN_SENDER: dict[str, Any] = {
    "loss_detector": {"algorithm": "sacked-above"},
    "dup_thresh": {"algorithm": "fixed", "dup_thresh": 3},
    "postponements": [],
    "spurious_detectors": [],
    "spurious_response": {"algorithm": "none"},
    "loss_response": {"algorithm": "at-once"},
    "fast_recovery": {"algorithm": "pipe"},
    "rto_estimator": {"algorithm": "rfc6298"},
    "limited_transmit": {"algorithm": "rfc3042"},
}
PLAIN_RECEIVER: dict[str, Any] = {"ack_policy": {"algorithm": "delayed"}, "header_support": []}


def _differs(variant: Variant, other: Variant, notices: bool = True, **options: Any) -> bool:  # noqa: ANN401
    """Return whether two variants behave differently where segments are late and one is lost.

    The second one runs with other TCP options, or without the routers' notices of drops.
    """
    late: list[Rule] = [{"segment": n, "action": "delay", "by": "8 ms"} for n in (40, 140, 240, 340, 440)]
    columns = ["time_s", "event", "end", "seq_bytes", "ack_bytes", "length_bytes"]
    rules = [*late, {"segment": 540, "action": "drop"}]
    plain, changed = (scenario(*rules, window=32, seconds=5, **o) for o in ({}, options))
    changed = {**changed, "path": {**changed["path"], "drop_notices": notices}}
    first, second = (reknit.trace(None, v, scenario=s).select(columns) for v, s in ((variant, plain), (other, changed)))
    return not first.equals(second)


def behaviour(variant: Variant) -> Needs:
    """Find out what a variant needs, by taking it away."""
    own: dict[str, Any] = {"base": variant} if isinstance(variant, str) else variant
    devices, fields = set(), set()
    if sent(time_line(variant))["length_bytes"].max() != MSS:
        fields.add("option")
    elif _differs(variant, variant, dsack=False):
        fields.add("DSACK")
    if _differs(variant, {**own, **PLAIN_SENDER, "name": "plain-sender"}):
        devices.add("source")
    # Timestamps are echoed by every receiver.
    if variant != "eifel" and _differs(variant, {**own, **PLAIN_RECEIVER, "name": "plain-receiver"}):
        devices.add("destination")
    if _differs(variant, variant, notices=False):
        devices.add("router")
    return frozenset(devices), frozenset(fields)


def differences() -> dict[str, tuple[Needs, Needs]]:
    """List the rows of Table 2 that the variants contradict: as published, as they behave."""
    found = {}
    for row, names in IMPLEMENTED.items():
        each = [behaviour(name) for name in names]
        is_so = frozenset().union(*(d for d, _ in each)), frozenset().union(*(f for _, f in each))
        if is_so != PUBLISHED[row]:
            found[row] = PUBLISHED[row], is_so
    return found


@paper.unit("variant_requirements_matrix", "ST2")
def variant_requirements_matrix() -> bool:
    """Check that each scheme changes the devices, and needs the header fields, that Table 2 lists."""
    return not differences()
