"""The wireless link of section 5: 28.8 kbit/s, 200 ms, room for 13 packets."""

from __future__ import annotations

from typing import Any

RATE = "28.8 kbit/s"
MSS = 256
TIMESTAMPS = 12
"""Bytes that timestamps add to each packet; the payload stays the same."""
PROPAGATION = {"kind": "link", "delay": "200 ms"}
LINUX = {
    "initial_window": 2,
    "max_burst": 3,
    "timestamps": False,
    "dsack": False,
    "byte_counting": False,
    "receive_buffer": "32 KiB",
    "initial_rto": "3 s",
    "min_rto": "200 ms",
    "rto_tick": "10 ms",
    "rtt_samples": "per-ack",
    "user_timeout": "20 min",
}
"""Both ends, as in Linux 2.4 (our choice): initial window of two segments, at most three segments per ACK, minimum RTO
of 200 ms, an RTT sample from every ACK; a connection ends after 15 retransmissions of a segment, about 20 minutes; no
DSACK, which Eifel did not use in 2000."""


def queue(packets: int = 13) -> dict[str, Any]:
    """Make the link: room for 7 packets in the router and for 6 in the link's own buffer of 1776 bytes."""
    return {"kind": "link", "name": "radio", "rate": RATE, "queue": f"{packets} packets"}


def stalling(header: int = 0, payload: int = MSS) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make both directions of a link that stalls now and then, with ``header`` bytes of options in each segment.

    Packets in the queue must wait until the stall is over, and then leave one by one. With a stall before the link, the
    queue would drain meanwhile; with a stall after it, all waiting packets would leave at once. So packets are
    serialised before the stall and again after it, and the propagation delay is reduced accordingly. The first
    queue also drains during a stall, into the stall; in the paper the router's cannot (section 5.2).
    """
    stall = {"kind": "stall", "probability": 0.02, "length": "exponential(3.5 s)"}
    segment, ack = payload + 40 + header, 40 + header
    forward, reverse = (
        [queue(), stall, {**queue(), "name": "again"}, {"kind": "link", "delay": f"{200 - bytes * 8 / 28.8:.3f} ms"}]
        for bytes in (segment, ack)
    )
    return forward, reverse


def path(
    forward: list[dict[str, Any]],
    reverse: list[dict[str, Any]],
    *,
    header: int = 0,
    payload: int = MSS,
    **tcp: object,
) -> dict[str, Any]:
    """Make the path, with ``header`` bytes of options in each segment."""
    return {
        "description": "the wireless link of F-RTO's experiments",
        "forward": forward,
        "reverse": reverse,
        "tcp": {"mss": payload + header, **LINUX, **tcp},
    }
