"""Small scenarios in which each packet's fate is written down, and their time lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

import reknit

MSS = 1000
ONE_WAY_S = 0.05
Rule = Mapping[str, Any]


def time_line(
    variant: str,
    *rules: Rule,
    back: Sequence[Rule] = (),
    later: Sequence[Rule] = (),
    segments: int = 200,
    window: int = 16,
    seconds: float = 10,
    **tcp: Any,  # noqa: ANN401
) -> pl.DataFrame:
    """Send some segments of 1000 octets over 10 Mbit/s and 50 ms each way, from a window that is full from the start.

    Parameters
    ----------
    variant : str
        Who sends.
    rules, later, back : rules of a ``script`` stage
        On the way of data before the link and behind it, and on the way back.
    segments, window : int
        How many segments, and the largest window.
    seconds : float
        Length of the run.
    tcp
        Options beside those.

    Returns
    -------
    polars.DataFrame
        As of `reknit.trace`.
    """
    link = {"kind": "link", "delay": f"{ONE_WAY_S} s", "queue": "1000 packets"}
    path = {
        "drop_notices": True,
        "forward": [{**link, "rate": "10 Mbit/s"}, *_script(rules), *_script(later)],
        "reverse": [*_script(back), link],
        "tcp": {"mss": MSS, "timestamps": False, "ack_every": 1, "initial_window": window, "max_window": window, **tcp},
    }
    flows = [{"workload": {"kind": "transfer", "size": f"{MSS * segments} B"}}]
    scenario = {"path": path, "duration": f"{seconds} s", "flows": flows}
    packets: pl.DataFrame = reknit.trace(None, variant, scenario=scenario)
    return packets


def _script(rules: Sequence[Rule]) -> list[dict[str, object]]:
    return [{"kind": "script", "rules": [dict(rule) for rule in rules]}] if rules else []


def sent(packets: pl.DataFrame, *causes: str) -> pl.DataFrame:
    """Keep what the sender of data sent, for some reasons or all."""
    data = packets.filter(pl.col("event") == "send", pl.col("end") == "sender", pl.col("segment").is_not_null())
    return data.filter(pl.col("cause").is_in(causes)) if causes else data


def acks(packets: pl.DataFrame) -> pl.DataFrame:
    """Keep the ACKs as they reach the sender of data, with whether each is a duplicate of the one before."""
    found = packets.filter(pl.col("event") == "deliver", pl.col("end") == "sender", ~pl.col("flags").str.contains("S"))
    return found.with_columns(duplicate=(pl.col("ack_bytes") == pl.col("ack_bytes").shift(1)).fill_null(value=False))


def times(packets: pl.DataFrame) -> list[float]:
    """List when."""
    return [float(time) for time in packets["time_s"]]
