"""What the overview says of duplicate ACKs and recovery, checked on time lines."""

from __future__ import annotations

import polars as pl

from reknit.papers._scripted import MSS, acks, numbers, sent, steps, time_line
from reknit.papers.laor_gendel import paper

paper.checks(
    "L0",
    figure="Overview",
    title="Duplicate ACKs, fast retransmit and recovery",
    reports="Displacement by three draws a fast retransmit; Reno halves twice for two losses and may stall for three; "
    "NewReno and SACK halve once; recovery sends what a halved window would.",
    setup="Time lines over 10 Mbit/s and 50 ms each way.",
)

PACKET_MS = 8 * (MSS + 40) / 10_000
"""Between two packets of a train."""


def _displaced(segment: int, positions: int) -> tuple[int, int]:
    """Duplicate ACKs and fast retransmits after a displacement, with delayed ACKs."""
    rule = {"segment": segment, "action": "delay", "by": f"{(positions + 0.5) * PACKET_MS} ms"}
    packets = time_line("reno", rule, window=10, ack_every=2)
    asking = pl.col("ack_bytes") == 1 + (segment - 1) * MSS
    return acks(packets).filter("duplicate", asking).height, sent(packets, "fast_retransmit").height


@paper.unit("lg_shift_dupacks", "L0")
def shift_dupacks() -> bool:
    """Check that s positions draw s duplicate ACKs, three a fast retransmit; one fewer if a delayed ACK is pending."""
    free = [_displaced(3, positions) for positions in (1, 2, 3)]
    # Segment 3 waits for segment 4: the first that overtakes that acknowledges it.
    pending = [_displaced(4, positions) for positions in (1, 2, 3)]
    return free == [(1, 0), (2, 0), (3, 1)] and pending == [(0, 0), (1, 0), (2, 0)]


def _recovery(variant: str, *lost: int) -> pl.DataFrame:
    """Lose segments while the window grows without a limit, which would stop what recovery may send."""
    rules = ({"segment": n, "action": "drop"} for n in lost)
    return time_line(variant, *rules, window=10, max_window="none", seconds=4)


def _window(packets: pl.DataFrame) -> float:
    """Tell what was in flight before the first fast retransmit, segments."""
    again = sent(packets, "fast_retransmit").row(0, named=True)
    first = sent(packets).filter(pl.col("time_s") < again["time_s"])["segment"].n_unique()
    return float(first - again["segment"] + 1)


def _thresholds(packets: pl.DataFrame) -> list[float]:
    """List the values that ssthresh took one after the other, as shares of that window."""
    return [value / MSS / _window(packets) for value in steps(packets, "ssthresh_bytes")]


def _resent(packets: pl.DataFrame) -> dict[int, str]:
    """List what was sent again, and why."""
    return dict(sent(packets).filter(pl.col("transmission") == 2).select("segment", "cause").rows())


@paper.unit("reno_two_losses_quarter", "L0")
def two_losses_quarter() -> bool:
    """Check that Reno answers two losses of a window by two fast retransmits, down to a quarter of the window."""
    packets = _recovery("reno", 50, 54)
    shares = _thresholds(packets)
    near = len(shares) == 2 and abs(shares[0] - 1 / 2) <= 0.05 and abs(shares[1] - 1 / 4) <= 0.05
    return near and _resent(packets) == {50: "fast_retransmit", 54: "fast_retransmit"}


@paper.unit("reno_three_losses_rto", "L0")
def three_losses_timeout() -> bool:
    """Check that Reno needs the retransmission timer for one of three losses of a window."""
    causes = _resent(_recovery("reno", 50, 52, 54))
    return causes[50] == "fast_retransmit" and "timeout" in (causes[52], causes[54])


@paper.unit("newreno_single_halving", "L0")
def single_halving() -> bool:
    """Check that NewReno and SACK repair three losses of a window without the timer, and halve it once."""
    for variant in ("newreno", "sack"):
        packets = _recovery(variant, 50, 52, 54)
        shares = _thresholds(packets)
        if _resent(packets) != dict.fromkeys((50, 52, 54), "fast_retransmit"):
            return False
        if len(shares) != 1 or abs(shares[0] - 1 / 2) > 0.05:
            return False
    return True


@paper.unit("fast_recovery_volume", "L0")
def recovery_volume() -> bool:
    """Check that a fast recovery of Reno sends about half a window of new data, and no burst at its end."""
    packets = _recovery("reno", 50)
    began = numbers(sent(packets, "fast_retransmit"), "time_s")[0]
    ended = numbers(acks(packets).filter(pl.col("time_s") > began, ~pl.col("duplicate")), "time_s")[0]
    new = sent(packets).filter(pl.col("transmission") == 1)
    during = new.filter(pl.col("time_s").is_between(began, ended, closed="none")).height
    at_end = new.filter(pl.col("time_s") == ended).height
    return abs(during / _window(packets) - 1 / 2) <= 0.1 and at_end <= 2
