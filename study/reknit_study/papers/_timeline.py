"""Traces of small scripted runs, and the queries that checks use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

import reknit
from reknit._style import CAUSES, COLOURS
from reknit_study.papers._figures import Drawn
from reknit_study.papers._frame import FIXED
from reknit_study.papers._labels import Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reknit_study.papers._frame import Result

Rule = dict[str, Any]
"""What happens to which packet: docs/reference/paths.md, scripts."""


def drop(segment: int | Sequence[int], transmission: int | Sequence[int] = 1) -> Rule:
    """Drop a data segment, or those from the first to the last of a pair."""
    return {"segment": _plain(segment), "transmission": _plain(transmission), "action": "drop"}


def delay(segment: int | Sequence[int], by_s: float) -> Rule:
    """Delay a data segment, so that others overtake it."""
    return {"segment": _plain(segment), "action": "delay", "by": f"{by_s:.9f} s"}


def hold(from_s: float, to_s: float) -> Rule:
    """Hold all packets for a time."""
    return {"from": f"{from_s:.9f} s", "to": f"{to_s:.9f} s", "action": "hold"}


def outage(from_s: float, to_s: float) -> Rule:
    """Drop all packets for a time."""
    return {"from": f"{from_s:.9f} s", "to": f"{to_s:.9f} s", "action": "drop"}


def script(*rules: Rule) -> dict[str, Any]:
    """Make a stage from rules."""
    return {"kind": "script", "rules": list(rules)}


def _plain(numbers: int | Sequence[int]) -> int | list[int]:
    return numbers if isinstance(numbers, int) else list(numbers)


@dataclass(frozen=True)
class TimeLine:
    """A run, packet by packet.

    Attributes
    ----------
    packets : polars.DataFrame
        As returned by `reknit.trace`.
    """

    packets: pl.DataFrame

    @classmethod
    def of(cls, variant: Variant, scenario: Mapping[str, Any]) -> TimeLine:
        """Run a variant once."""
        return cls(reknit.trace(None, variant, scenario={**FIXED, **scenario}))

    @property
    def sent(self) -> pl.DataFrame:
        """Data segments as they leave the sender."""
        return self._at("send", "sender").filter(pl.col("length_bytes") > 0)

    @property
    def retransmitted(self) -> pl.DataFrame:
        """The retransmissions among them."""
        return self.sent.filter(pl.col("transmission") > 1)

    @property
    def arrived(self) -> pl.DataFrame:
        """Data segments as they reach the receiver."""
        return self._at("deliver", "receiver").filter(pl.col("length_bytes") > 0)

    @property
    def acks(self) -> pl.DataFrame:
        """ACKs without data as they leave the receiver."""
        return self._at("send", "receiver").filter(pl.col("length_bytes") == 0, pl.col("flags") == ".")

    @property
    def heard(self) -> pl.DataFrame:
        """ACKs as they reach the sender, with the sender's variables afterwards."""
        return self._at("deliver", "sender").filter(pl.col("flags") == ".")

    @property
    def lost(self) -> list[int]:
        """Numbers of the data segments that were lost, once for each copy."""
        gone = self.packets.filter(pl.col("event") == "lost", pl.col("length_bytes") > 0)
        return gone["segment"].to_list()

    def of_cause(self, cause: str) -> pl.DataFrame:
        """List the data segments that were sent for a cause."""
        return self.sent.filter(pl.col("cause") == cause)

    def start_of(self, segment: int) -> int:
        """Look up the first byte of a segment."""
        return int(self.sent.filter(pl.col("segment") == segment)["seq_bytes"][0])

    def arrival_of(self, segment: int) -> float:
        """Look up when a segment first reached the receiver, seconds."""
        return float(self.arrived.filter(pl.col("segment") == segment)["time_s"][0])

    def overtaken_by(self, segment: int) -> list[int]:
        """List the later segments that arrived before this one, in the order of their arrival."""
        before = self.arrived.filter(pl.col("time_s") < self.arrival_of(segment), pl.col("segment") > segment)
        return before["segment"].to_list()

    def duplicates_sent(self, segment: int) -> pl.DataFrame:
        """List the duplicate ACKs that the receiver sent for a segment: all ACKs that request it except the first."""
        return self.acks.filter(pl.col("ack_bytes") == self.start_of(segment))[1:]

    def duplicates_heard(self, segment: int) -> pl.DataFrame:
        """List the duplicate ACKs for a segment as they reach the sender."""
        return self.heard.filter(pl.col("ack_bytes") == self.start_of(segment))[1:]

    def sent_at(self, time_s: float) -> list[int]:
        """List the segments that were sent at a time."""
        return self.sent.filter((pl.col("time_s") - time_s).abs() < INSTANT_S)["segment"].to_list()

    def _at(self, event: str, end: str) -> pl.DataFrame:
        return self.packets.filter(pl.col("event") == event, pl.col("end") == end)


INSTANT_S = 1e-9
"""Times that differ by less are those of the same event."""


def same_moment(a: float, b: float) -> bool:
    """Return whether two times are those of the same event."""
    return abs(a - b) < INSTANT_S


def sequence(line: TimeLine, title: str, from_s: float, to_s: float) -> Drawn:
    """Draw which segment was sent when, and which one the receiver requested, as the papers do."""

    def draw(axes: Axes, _: Result) -> None:
        shown = pl.col("time_s").is_between(from_s, to_s)
        first, again = line.sent.filter(shown, pl.col("transmission") == 1), line.retransmitted.filter(shown)
        # An ACK requests the segment that begins with its ACK number.
        starts = line.sent.group_by("seq_bytes").agg(pl.col("segment").first())
        acks = line.heard.filter(shown).join(starts, left_on="ack_bytes", right_on="seq_bytes", suffix="_asked")
        axes.plot(first["time_s"], first["segment"], linestyle="", marker=".", color=COLOURS["in_order"], label="sent")
        marks: dict[str, Any] = {
            "marker": "s",
            "markersize": 4,
            "color": CAUSES["fast_retransmit"],
            "label": "retransmitted",
        }
        axes.plot(again["time_s"], again["segment"], linestyle="", **marks)
        axes.plot(
            acks["time_s"],
            acks["segment_asked"],
            linestyle="",
            marker="_",
            color=COLOURS["reference"],
            label="expected by the receiver",
        )

    return Drawn(title=title, x_label="time, s", y_label="segment", drawing=draw)
