"""Time lines: small scripted runs, packet by packet, and the questions that checks ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

import reknit
from reknit._style import CAUSES, COLOURS
from reknit.papers._figures import Drawn
from reknit.papers._frame import FIXED
from reknit.papers._labels import Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reknit.papers._frame import Result

Rule = dict[str, Any]
"""What happens to which packet: docs/paths.md, scripts."""


def drop(segment: int | Sequence[int], transmission: int | Sequence[int] = 1) -> Rule:
    """Lose a data segment, or those from the first to the last of a pair."""
    return {"segment": _plain(segment), "transmission": _plain(transmission), "action": "drop"}


def delay(segment: int | Sequence[int], by_s: float) -> Rule:
    """Let a data segment come later than it would, so that others overtake it."""
    return {"segment": _plain(segment), "action": "delay", "by": f"{by_s:.9f} s"}


def hold(from_s: float, to_s: float) -> Rule:
    """Let nothing pass for a time."""
    return {"from": f"{from_s:.9f} s", "to": f"{to_s:.9f} s", "action": "hold"}


def outage(from_s: float, to_s: float) -> Rule:
    """Lose everything for a time."""
    return {"from": f"{from_s:.9f} s", "to": f"{to_s:.9f} s", "action": "drop"}


def script(*rules: Rule) -> dict[str, Any]:
    """Make a stage of rules."""
    return {"kind": "script", "rules": list(rules)}


def _plain(numbers: int | Sequence[int]) -> int | list[int]:
    return numbers if isinstance(numbers, int) else list(numbers)


@dataclass(frozen=True)
class TimeLine:
    """A run, packet by packet.

    Attributes
    ----------
    packets : polars.DataFrame
        As `reknit.trace` gives them.
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
    def resent(self) -> pl.DataFrame:
        """Those of them that had left before."""
        return self.sent.filter(pl.col("transmission") > 1)

    @property
    def arrived(self) -> pl.DataFrame:
        """Data segments as they come to the receiver."""
        return self._at("deliver", "receiver").filter(pl.col("length_bytes") > 0)

    @property
    def acks(self) -> pl.DataFrame:
        """ACKs without data as they leave the receiver."""
        return self._at("send", "receiver").filter(pl.col("length_bytes") == 0, pl.col("flags") == ".")

    @property
    def heard(self) -> pl.DataFrame:
        """ACKs as they come to the sender, with the sender's variables afterwards."""
        return self._at("deliver", "sender").filter(pl.col("flags") == ".")

    @property
    def lost(self) -> list[int]:
        """Data segments of which a copy was lost."""
        gone = self.packets.filter(pl.col("event") == "lost", pl.col("length_bytes") > 0)
        return gone["segment"].to_list()

    def of_cause(self, cause: str) -> pl.DataFrame:
        """List the data segments that left for a reason."""
        return self.sent.filter(pl.col("cause") == cause)

    def start_of(self, segment: int) -> int:
        """Look up a segment's first byte."""
        return int(self.sent.filter(pl.col("segment") == segment)["seq_bytes"][0])

    def arrival_of(self, segment: int) -> float:
        """Look up when a segment first came to the receiver, seconds."""
        return float(self.arrived.filter(pl.col("segment") == segment)["time_s"][0])

    def overtaken_by(self, segment: int) -> list[int]:
        """List the later segments that arrived before this one, in the order of their arrival."""
        before = self.arrived.filter(pl.col("time_s") < self.arrival_of(segment), pl.col("segment") > segment)
        return before["segment"].to_list()

    def duplicates_sent(self, segment: int) -> pl.DataFrame:
        """ACKs by which the receiver asked for a segment once more: all that ask for it but the first."""
        return self.acks.filter(pl.col("ack_bytes") == self.start_of(segment))[1:]

    def duplicates_heard(self, segment: int) -> pl.DataFrame:
        """Those as they come to the sender."""
        return self.heard.filter(pl.col("ack_bytes") == self.start_of(segment))[1:]

    def sent_at(self, time_s: float) -> list[int]:
        """List the segments that left at a moment."""
        return self.sent.filter((pl.col("time_s") - time_s).abs() < INSTANT_S)["segment"].to_list()

    def _at(self, event: str, end: str) -> pl.DataFrame:
        return self.packets.filter(pl.col("event") == event, pl.col("end") == end)


INSTANT_S = 1e-9
"""Times of one event are the same; they are written in seconds."""


def same_moment(a: float, b: float) -> bool:
    """Tell whether two times are those of one event."""
    return abs(a - b) < INSTANT_S


def sequence(line: TimeLine, title: str, from_s: float, to_s: float) -> Drawn:
    """Draw which segment left when, and which one the receiver asked for, as the papers do."""

    def draw(axes: Axes, _: Result) -> None:
        shown = pl.col("time_s").is_between(from_s, to_s)
        first, again = line.sent.filter(shown, pl.col("transmission") == 1), line.resent.filter(shown)
        # A delayed ACK asks for what begins where the ACK ends.
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
            label="asked for",
        )

    return Drawn(title=title, x_label="s", y_label="segment", drawing=draw)
