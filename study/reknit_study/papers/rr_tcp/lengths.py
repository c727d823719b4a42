"""Sections 4.1 and 4.2: how reordering is measured, and the resulting threshold. Fig. 2."""

from __future__ import annotations

import math

import polars as pl

import reknit
from reknit_study.papers._labels import Variant, changed
from reknit_study.papers.rr_tcp._network import paper
from reknit_study.papers.rr_tcp._scripted import arrivals, dropped, fast_retransmits, late, scripted, threshold, trace

paper.checks(
    "R2",
    figure="Fig. 2",
    title="Reordering lengths as measured by the sender",
    reports="The arrival order 2 3 4 5 1 gives a length of 4; an ACK that closes two holes gives no length; a segment "
    "that was retransmitted gives the mean of both lengths, if a DSACK reports that both copies arrived.",
    setup="Scripted transfers; the threshold is one more than the length.",
)


def patient(fa: float) -> Variant:
    """Describe a sender that does not retransmit late packets, and shows each length as threshold - 1."""
    return changed(
        "dsack_fa",
        f"patient-{1000 * fa:.0f}",
        dup_thresh={"fa": fa, "min_dup_thresh": 1},
        postponements=[{"algorithm": "fixed-wait", "wait": "900 ms"}],
    )


@paper.unit("rr_reorder_length_example", "R2")
def length_of_the_example() -> bool:
    """Check that the arrival order 2 3 4 5 1 gives a length of 4, and 1 3 2 a length of 1."""
    first = trace(scripted(late(1, 4.5), spaced=True, duration="0.5 s"), patient(1))
    second = trace(scripted(late(2, 1.5), spaced=True, duration="0.5 s"), patient(1))
    return (
        arrivals(first)["segment"].head(5).to_list() == [2, 3, 4, 5, 1]
        and arrivals(second)["segment"].head(3).to_list() == [1, 3, 2]
        and not fast_retransmits(first)
        and threshold(first) == 4 + 1
        and threshold(second) == 1 + 1
    )


@paper.unit("rr_multi_hole_no_sample", "R2")
def two_holes_at_once() -> bool:
    """Check that an ACK that closes two holes gives no length, although each hole alone does."""
    rules = late(1, 4.5), late(3, 3.7)
    apart = trace(scripted(*rules, spaced=True, duration="0.5 s"), patient(1))
    # The ACKs of 1 and of 6 are lost; the ACK of the SYN is the first packet on the return path.
    lost = {"packet": [5, 6], "action": "drop"}
    at_once = trace(scripted(*rules, acks=[lost], spaced=True, duration="0.5 s"), patient(1))
    return (
        arrivals(apart)["segment"].head(6).to_list() == [2, 4, 5, 1, 6, 3]
        and arrivals(at_once)["segment"].head(6).to_list() == [2, 4, 5, 1, 6, 3]
        and threshold(apart) == 4 + 1
        and threshold(at_once) == 1
    )


@paper.unit("rr_mean_pairing_invariant", "R2")
def mean_of_both_copies() -> bool:
    """Check that two copies give their mean length, whichever arrives first, and no length without a DSACK."""
    # One copy arrives 70 ms after the fast retransmit, the other one 200 ms after it.
    orders = [(late(17, 120), late(17, 150, 2)), (late(17, 250), late(17, 20, 2))]
    learned = []
    for rules in orders:
        found = trace(scripted(*rules, duration="2 s"), "rr-fa")
        copies = arrivals(found).filter(pl.col("segment") == 17)
        lengths = [highest - 17 for highest in copies["highest"]]
        if len(lengths) != 2 or lengths[0] == lengths[1] or threshold(found) != math.ceil(sum(lengths) / 2) + 1:
            return False
        learned.append((lengths, copies["transmission"].to_list()))
    unreported = [
        scripted(*orders[0], duration="2 s", tcp={"dsack": False}),
        scripted(dropped(17), duration="2 s"),
    ]
    silent = all(threshold(trace(one, "rr-fa")) == 3 for one in unreported)
    return silent and [order for _, order in learned] == [[1, 2], [2, 1]] and learned[0][0] == learned[1][0]


@paper.unit("rr_hist_robust_to_acks", "R2")
def lost_and_reordered_acks() -> bool:
    """Check that with 20 % of ACKs lost and 30 % delayed, the sender learns only lengths that some packet had."""
    hop = {"kind": "link", "delay": "50 ms", "rate": "8 Mbit/s", "queue": "1000 packets"}
    data = {"kind": "delay", "probability": 0.1, "extra": "either(2.5 ms, 6.5 ms)"}
    acks = [
        {"kind": "loss", "probability": 0.2},
        {"kind": "delay", "probability": 0.3, "extra": "uniform(0 ms, 20 ms)"},
    ]
    plain = scripted(spaced=True, window=32, duration="10 s")
    path = {**plain["path"], "forward": [hop, data], "reverse": [*acks, hop]}
    return all(_learns_what_was({**plain, "path": path}, fa) for fa in (0, 0.25, 0.5, 0.75, 1))


def _learns_what_was(scenario: dict[str, object], fa: float) -> bool:
    """Return whether each percentile of the histogram is the length of a packet that arrived late."""
    found = reknit.trace(None, patient(fa), scenario=scenario, seed=5)
    came = arrivals(found).with_columns(beyond=pl.col("highest") - pl.col("segment"))
    lengths = set(came.filter(pl.col("beyond") > 0, pl.col("transmission") == 1)["beyond"])
    first_copies_only = came["transmission"].max() == 1
    thresholds = found["dup_thresh_segments"].drop_nulls()
    learned = {value - 1 for value in thresholds if value > 1}
    return first_copies_only and bool(learned) and learned <= lengths


@paper.unit("rr_percentile_plus_one", "R-cost")
def percentile_plus_one() -> bool:
    """Check that with nine lengths of 8 and one of 20, the threshold is 9 at 90 %, and 21 at 99 %."""
    rules = [late(1 + 32 * i, 20.5 if i == 4 else 8.5) for i in range(10)]
    scenario = scripted(*rules, window=32, spaced=True, duration="3 s")
    found = trace(scenario, patient(0.9))
    came = arrivals(found).filter(pl.col("highest") > pl.col("segment"))
    lengths = [highest - segment for segment, highest in zip(came["segment"], came["highest"], strict=True)]
    return (
        sorted(lengths) == [8] * 9 + [20] and threshold(found) == 9 and threshold(trace(scenario, patient(0.99))) == 21
    )
