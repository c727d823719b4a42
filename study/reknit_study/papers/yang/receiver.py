"""When the modified receiver sends ACKs: Figs. 3.1 to 3.3 and 4.1, sections 3.2 and 4.2."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl

from reknit_study.papers._labels import Variant, changed
from reknit_study.papers._timeline import TimeLine, delay, drop, same_moment
from reknit_study.papers.yang._paper import paper
from reknit_study.papers.yang._scenes import MSS, late_by, modified, receiver, scene, stock

SHOWN = 10
"""The second packet of the second window."""
BUSY = {"window": 60, "segments": 3000}
"""A window that fills the link, so that a packet arrives every 2 ms whatever happened before."""
LATER = 2508
"""A packet long after whatever happened before."""

paper.checks(
    "Y-stride",
    figure="Figs. 3.2 and 4.1",
    title="Stride: how far ahead of the expected packet an arrival is",
    reports="With packets 1 to 5 in order and 11 the highest to have arrived, the stride is 6.",
    setup="Strides are not visible on the wire; they are inferred from how many packets may later overtake another one "
    "without a third duplicate ACK.",
)


@paper.unit("yang_withhold", "Y-trace")
def withheld() -> bool:
    """Check that a packet overtaken by no more than the threshold causes two duplicate ACKs and no fast retransmit."""
    line = modified(4, delay(SHOWN, late_by(4)))
    overtaken = len(line.overtaken_by(SHOWN)) == 4
    return overtaken and len(line.duplicates_sent(SHOWN)) == 2 and line.retransmitted.is_empty() and line.lost == []


@paper.unit("yang_first_two_immediate", "Y-trace")
def first_two_at_once() -> bool:
    """Check that the first two out-of-order packets are acknowledged on arrival, and the third one is not."""
    line = modified(4, delay(SHOWN, late_by(4)))
    arrivals = [line.arrival_of(segment) for segment in line.overtaken_by(SHOWN)]
    left = line.duplicates_sent(SHOWN)["time_s"].to_list()
    at_once = len(left) == 2 and all(same_moment(a, b) for a, b in zip(left, arrivals, strict=False))
    return at_once and line.acks.filter((pl.col("time_s") - arrivals[2]).abs() < 1e-9).is_empty()


@paper.unit("yang_release_triggers_first", "Y-trace")
def release() -> bool:
    """Check that beyond the threshold duplicate ACKs are paced, and the first one triggers the fast retransmit."""
    line = modified(4, drop(SHOWN))
    fifth = line.arrived.filter(pl.col("segment") > SHOWN)["time_s"][4]
    left = line.duplicates_sent(SHOWN)["time_s"].to_list()
    again = line.of_cause("fast_retransmit")
    paced = left[3] - left[2] > 0.0005
    heard = line.duplicates_heard(SHOWN)["time_s"][2]
    return same_moment(left[2], fifth) and paced and same_moment(again["time_s"][0], heard)


@paper.unit("yang_ceil_half", "Y-trace")
def half_as_many() -> bool:
    """Check that with delayed ACKs, half as many ACKs are released as were withheld, the late segment included."""
    halves = []
    for places in (3, 4, 5, 6):
        line = modified(6, delay(18, late_by(places)), window=16, ack_every=2)
        halves.append(len(line.overtaken_by(18)) == places and len(_released(line, 18)) == math.ceil((places + 1) / 2))
    return all(halves)


@paper.unit("yang_pacing", "Y-trace")
def paced() -> bool:
    """Check that the released ACKs are evenly spaced over the hold and over the bytes, up to the last byte in order."""
    line = modified(6, delay(18, late_by(5)), window=16)
    passed = line.overtaken_by(18)
    filled = line.arrival_of(18)
    hold = filled - line.arrival_of(passed[0])
    count = len(passed) + 1
    times = [filled + i * hold / count for i in range(count)]
    numbers = [line.start_of(18) + i * MSS for i in range(1, count + 1)]
    left = _released(line, 18)
    on_time = all(abs(a - b) < 1e-6 for a, b in zip(left["time_s"], times, strict=True))
    return count == 6 and on_time and left["ack_bytes"].to_list() == numbers


@paper.unit("yang_no_ack_reordering", "Y-trace")
def behind_the_paced() -> bool:
    """Check that ACKs for packets that arrive meanwhile queue behind the paced ones, and ACK numbers never decrease."""
    line = modified(6, delay(18, late_by(6)), window=16)
    left = _released(line, 18)
    first, last = left["time_s"][0], left["time_s"][-1]
    meanwhile = line.arrived.filter(pl.col("time_s") > first, pl.col("time_s") < last)
    ends = (meanwhile["seq_bytes"] + meanwhile["length_bytes"]).to_list()
    waited = [
        line.acks.filter(pl.col("ack_bytes") >= end)["time_s"][0] > time + 1e-6
        for end, time in zip(ends, meanwhile["time_s"], strict=True)
    ]
    return len(waited) > 0 and all(waited) and line.acks["ack_bytes"].is_sorted()


@paper.unit("yang_giveup_timer", "Y-trace")
def gives_up() -> bool:
    """Check that the duplicate ACKs are released if nothing arrives for threshold x mean inter-arrival time."""
    thr0, lost = 9, 6
    line = modified(thr0, drop(lost), window=4)
    before = line.arrived.filter(pl.col("transmission") == 1, pl.col("segment") < 10)
    times = before["time_s"].to_list()
    silence = thr0 * _mean_gap(times)
    left = line.duplicates_sent(lost)["time_s"].to_list()
    fewer = len(before.filter(pl.col("segment") > lost)) == 3
    again = line.retransmitted.select("segment", "cause").rows() == [(lost, "fast_retransmit")]
    return fewer and again and abs(left[2] - (times[-1] + silence)) < 1e-6


def _mean_gap(times: list[float]) -> float:
    """Compute the receiver's estimate of the inter-arrival time: a moving average with a gain of 1/8."""
    gaps = [b - a for a, b in pairwise(times)]
    mean = gaps[0]
    for gap in gaps:
        mean += (gap - mean) / 8
    return mean


@paper.unit("yang_ignore_retransmission", "Y-trace")
def losses_do_not_count() -> bool:
    """Check that strides raise the threshold, unless the gap stays open for more than a round trip."""

    def told(first: dict[str, object]) -> int:
        line = modified(3, first, delay(LATER, late_by(5)), **BUSY)
        return len(line.duplicates_sent(LATER)) if len(line.overtaken_by(LATER)) == 5 else -1

    # With a threshold of 3, more than two duplicate ACKs are sent; with a larger one, two.
    return told(drop(18)) > 2 and told(delay(18, late_by(8))) == 2


@paper.unit("yang_threshold_survives_order", "Y-trace")
def survives_order() -> bool:
    """Check that a learned threshold persists after more in-order packets than the receiver remembers strides."""
    learned = modified(1, delay(18, late_by(6)), delay(LATER, late_by(5)), **BUSY)
    fresh = modified(1, delay(LATER, late_by(5)), **BUSY)
    comparable = len(learned.overtaken_by(LATER)) == len(fresh.overtaken_by(LATER)) == 5
    return comparable and len(learned.duplicates_sent(LATER)) == 2 < len(fresh.duplicates_sent(LATER))


@paper.unit("yang_stride_example", "Y-stride")
def stride_of_six() -> bool:
    """Check that after 7 to 11 overtook 6, six packets may overtake another one without a third duplicate ACK."""
    told = {}
    for places in (6, 7):
        line = modified(10, delay(6, late_by(5)), delay(LATER, late_by(places)), **BUSY)
        if line.overtaken_by(6) != [7, 8, 9, 10, 11] or len(line.overtaken_by(LATER)) != places:
            return False
        told[places] = len(line.duplicates_sent(LATER))
    return told[6] == 2 and told[7] > 2


@paper.unit("yang_in_order_identity", "Y-trace")
def in_order() -> bool:
    """Check that for packets in order, both receivers send the same ACKs at the same times."""
    columns = ["time_s", "ack_bytes", "length_bytes", "flags"]
    pairs = [(stock(ack_every=every), modified(3, ack_every=every)) for every in (1, 2)]
    return all(len(a.acks) > 20 and a.acks.select(columns).equals(b.acks.select(columns)) for a, b in pairs)


@paper.unit("yang_ack_flag_off", "Y-trace")
def no_ack_information() -> bool:
    """Check that data that a receiver sends while it withholds ACKs does not acknowledge new data."""
    # The thesis clears the ACK flag, which RFC 9293 requires: here segments carry no SACK and no new ACK number.
    withholding = changed("sack", "yang-unacknowledging", ack_policy=receiver(imm=0, thr0=20))
    told, stock_told = (_told_by_the_receiver(variant) for variant in (withholding, "sack"))
    released = told.filter(pl.col("length_bytes") == 0)["time_s"].min() or math.inf
    withheld = told.filter(pl.col("time_s") < released)
    silent = withheld.filter(pl.col("sack").list.len() == 0, pl.col("ack_bytes") == withheld["ack_bytes"].min())
    return len(withheld) > 10 and len(silent) == len(withheld) and stock_told["sack"].list.len().sum() > 0


def _told_by_the_receiver(variant: Variant) -> pl.DataFrame:
    """List what a receiver with data to send sends for 200 ms after a packet has overtaken a lost one."""
    line = TimeLine.of(variant, scene(drop(SHOWN), back=60))
    since = line.arrival_of(SHOWN + 1)
    sent = pl.col("event") == "send", pl.col("end") == "receiver"
    return line.packets.filter(*sent, pl.col("time_s") > since, pl.col("time_s") < since + 0.2)


def _released(line: TimeLine, late: int) -> pl.DataFrame:
    """List the ACKs that were released when a gap closed."""
    filled = line.arrival_of(late)
    last = max(line.overtaken_by(late))
    end = line.start_of(last) + MSS
    return line.acks.filter(
        pl.col("time_s") > filled - 1e-9, pl.col("ack_bytes") > line.start_of(late), pl.col("ack_bytes") <= end
    )
