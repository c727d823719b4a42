"""Small scenarios that specify what happens to each packet, and queries on their traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

import reknit
from reknit_study.papers._frame import FIXED

if TYPE_CHECKING:
    from reknit_study.papers._labels import Variant

Rule = Mapping[str, Any]

MSS = 960
HOP_S = 0.05


def scripted(
    *rules: Rule,
    acks: Sequence[Rule] = (),
    window: int = 16,
    spaced: bool = False,
    hop_s: float = HOP_S,
    duration: str = "3 s",
    tcp: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe a bulk transfer with a constant window over a path with the same delay in both directions.

    Parameters
    ----------
    *rules : Rule
        What happens to data packets at the end of the path: keys of docs/reference/paths.md, Scripts.
    acks : sequence of Rule
        What happens to ACKs.
    window : int
        Packets of 1000 bytes.
    spaced : bool
        Whether the packets of a window are 1 ms apart, instead of back to back.
    hop_s : float
        Delay each way, seconds.
    duration : str
        Of the run.
    tcp : mapping, optional
        Further options of both ends.
    """
    hop = {"kind": "link", "delay": f"{hop_s:g} s"}
    forward = {**hop, "rate": "8 Mbit/s", "queue": "1000 packets"} if spaced else hop
    ends = {
        "mss": MSS,
        "initial_window": window,
        "max_window": window,
        "max_burst": "none",
        "timestamps": False,
        "ack_every": 1,
        "byte_counting": False,
    }
    path = {
        "forward": [forward, *_script(rules)],
        "reverse": [*_script(acks), hop],
        "tcp": {**ends, **(tcp or {})},
    }
    return {**FIXED, "path": path, "duration": duration}


def _script(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return [{"kind": "script", "rules": [dict(rule) for rule in rules]}] if rules else []


def late(segment: int, by_ms: float, transmission: int = 1) -> dict[str, Any]:
    """Delay a segment."""
    return {"segment": segment, "transmission": transmission, "action": "delay", "by": f"{by_ms:g} ms"}


def dropped(first: int, last: int | None = None) -> dict[str, Any]:
    """Drop the first transmissions of segments."""
    return {"segment": [first, first if last is None else last], "transmission": 1, "action": "drop"}


def silence(begin_s: float, end_s: float) -> dict[str, Any]:
    """Drop everything for a time."""
    return {"from": f"{begin_s:g} s", "to": f"{end_s:g} s", "action": "drop"}


def trace(scenario: Mapping[str, Any], variant: Variant) -> pl.DataFrame:
    """Run it, packet by packet."""
    return reknit.trace(None, variant, scenario=scenario)


def at_sender(packets: pl.DataFrame) -> pl.DataFrame:
    """Keep the events at the sender that show its variables."""
    return packets.filter(pl.col("end") == "sender", pl.col("cwnd_bytes").is_not_null())


def threshold(packets: pl.DataFrame) -> int:
    """Look up the duplicate threshold at the end."""
    return int(at_sender(packets)["dup_thresh_segments"][-1])


def arrivals(packets: pl.DataFrame) -> pl.DataFrame:
    """List data arrivals at the receiver: ``segment``, ``transmission``, ``time_s``, ``highest`` segment so far."""
    data = packets.filter(
        pl.col("event") == "deliver", pl.col("direction") == "forward", pl.col("segment").is_not_null()
    )
    return data.select("time_s", "segment", "transmission", pl.col("segment").cum_max().alias("highest"))


def fast_retransmits(packets: pl.DataFrame) -> list[float]:
    """List the times of fast retransmits, seconds."""
    return packets.filter(pl.col("event") == "send", pl.col("cause") == "fast_retransmit")["time_s"].to_list()


def duplicate_reports(packets: pl.DataFrame) -> list[float]:
    """List the times at which DSACKs reached the sender, seconds."""
    told = packets.filter(pl.col("event") == "deliver", pl.col("end") == "sender", pl.col("dsack").is_not_null())
    return told["time_s"].to_list()
