"""What the overview says about duplicate ACKs and recovery, checked on traces."""

from __future__ import annotations

import polars as pl

from reknit_study.papers._scripted import MSS, acks, numbers, sent, steps, time_line
from reknit_study.papers.laor_gendel import paper

paper.checks(
    "L0",
    figure="Overview",
    title="Duplicate ACKs, fast retransmit and recovery",
    reports="Displacement by three causes a fast retransmit. Reno halves its window twice for two losses and may stall "
    "with three; NewReno and SACK halve it once. Fast recovery sends as much as a halved window would.",
    setup="Traces over 10 Mbit/s and 50 ms each way, with limited transmit, byte counting and bursts of at most four "
    "segments, unlike the other experiments.",
)

PACKET_MS = 8 * (MSS + 40) / 10_000
"""Time between two packets of a train."""


def _displaced(segment: int, positions: int) -> tuple[int, int]:
    """Count duplicate ACKs and fast retransmits after a displacement, with delayed ACKs."""
    rule = {"segment": segment, "action": "delay", "by": f"{(positions + 0.5) * PACKET_MS} ms"}
    packets = time_line("reno", rule, window=10, ack_every=2)
    asking = pl.col("ack_bytes") == 1 + (segment - 1) * MSS
    return acks(packets).filter("duplicate", asking).height, sent(packets, "fast_retransmit").height


@paper.unit("lg_shift_dupacks", "L0")
def shift_dupacks() -> bool:
    """Check that s positions cause s duplicate ACKs (3: a fast retransmit), one fewer with a delayed ACK pending."""
    free = [_displaced(3, positions) for positions in (1, 2, 3)]
    # The ACK of segment 3 is delayed until segment 4; the first segment that overtakes that acknowledges it.
    pending = [_displaced(4, positions) for positions in (1, 2, 3)]
    return free == [(1, 0), (2, 0), (3, 1)] and pending == [(0, 0), (1, 0), (2, 0)]


def _recovery(variant: str, *lost: int) -> pl.DataFrame:
    """Lose segments without a maximum window, which would limit what recovery may send."""
    rules = ({"segment": n, "action": "drop"} for n in lost)
    return time_line(variant, *rules, window=10, max_window="none", seconds=4)


def _window(packets: pl.DataFrame) -> float:
    """Compute the flight size before the first fast retransmit, segments."""
    again = sent(packets, "fast_retransmit").row(0, named=True)
    first = sent(packets).filter(pl.col("time_s") < again["time_s"])["segment"].n_unique()
    return float(first - again["segment"] + 1)


def _thresholds(packets: pl.DataFrame) -> list[float]:
    """List the successive values of ssthresh, relative to that window."""
    return [value / MSS / _window(packets) for value in steps(packets, "ssthresh_bytes")]


def _retransmitted(packets: pl.DataFrame) -> dict[int, str]:
    """List which segments were retransmitted, and why."""
    return dict(sent(packets).filter(pl.col("transmission") == 2).select("segment", "cause").rows())


@paper.unit("reno_two_losses_quarter", "L0")
def two_losses_quarter() -> bool:
    """Check that Reno responds to two losses in a window with two fast retransmits, and ends at a quarter of it."""
    packets = _recovery("reno", 50, 54)
    shares = _thresholds(packets)
    near = len(shares) == 2 and abs(shares[0] - 1 / 2) <= 0.05 and abs(shares[1] - 1 / 4) <= 0.05
    return near and _retransmitted(packets) == {50: "fast_retransmit", 54: "fast_retransmit"}


@paper.unit("reno_three_losses_rto", "L0")
def three_losses_timeout() -> bool:
    """Check that with three losses in a window, Reno needs the retransmission timer for one of them."""
    causes = _retransmitted(_recovery("reno", 50, 52, 54))
    return causes[50] == "fast_retransmit" and "timeout" in (causes[52], causes[54])


@paper.unit("newreno_single_halving", "L0")
def single_halving() -> bool:
    """Check that NewReno and SACK repair three losses in a window without a timeout, and halve the window once."""
    for variant in ("newreno", "sack"):
        packets = _recovery(variant, 50, 52, 54)
        shares = _thresholds(packets)
        if _retransmitted(packets) != dict.fromkeys((50, 52, 54), "fast_retransmit"):
            return False
        if len(shares) != 1 or abs(shares[0] - 1 / 2) > 0.05:
            return False
    return True


@paper.unit("fast_recovery_volume", "L0")
def recovery_volume() -> bool:
    """Check that Reno's fast recovery sends about half a window of new data, and no burst at the end."""
    packets = _recovery("reno", 50)
    began = numbers(sent(packets, "fast_retransmit"), "time_s")[0]
    ended = numbers(acks(packets).filter(pl.col("time_s") > began, ~pl.col("duplicate")), "time_s")[0]
    new = sent(packets).filter(pl.col("transmission") == 1)
    during = new.filter(pl.col("time_s").is_between(began, ended, closed="none")).height
    at_end = new.filter(pl.col("time_s") == ended).height
    return abs(during / _window(packets) - 1 / 2) <= 0.1 and at_end <= 2
