"""The small scenario of Figs. 2.1 to 3.3: round trips of 100 ms, a window of packets per round trip, 2 ms apart."""

from __future__ import annotations

from typing import Any

from reknit_study.papers._labels import Variant, changed
from reknit_study.papers._timeline import Rule, TimeLine, script

GAP_S = 0.002
MSS = 500


def scene(
    *rules: Rule,
    window: int = 8,
    segments: int = 60,
    back: int = 0,
    ack_every: int = 1,
    **tcp: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Make a transfer of some segments, and of some back from the receiver meanwhile.

    Rules apply after the link, so that others overtake a delayed packet there.
    """
    link = {"kind": "link", "rate": "2.16 Mbit/s", "delay": "49 ms"}
    options = {
        "mss": MSS,
        "initial_window": window,
        "max_window": window,
        "max_burst": "none",
        "timestamps": False,
        "ack_every": ack_every,
        "ack_delay": "100 ms",
        "byte_counting": False,
        "initial_rto": "3 s",
        "min_rto": "1 s",
        "rto_tick": "10 ms",
    }
    return {
        "path": {
            "description": "a packet every 2 ms, round trips of 100 ms",
            "forward": [link, script(*rules)],
            "reverse": [{"kind": "link", "delay": "49 ms"}],
            "tcp": {**options, **tcp},
        },
        "duration": "60 s",
        "flows": [{"workload": {"kind": "transfer", "size": f"{segments * MSS} B", "back": f"{back * MSS} B"}}],
    }


def withholding(**parameters: object) -> Variant:
    """Describe the modified receiver with some parameters."""
    return changed("yang_mod", "yang-scene", ack_policy=receiver(**parameters))


def receiver(**parameters: object) -> dict[str, object]:
    """Describe the receiver alone; ACKs are withheld without an upper bound on the time, as in the thesis."""
    return {"algorithm": "yang", "imm": 2, "ring": 100, "gain": 8, "min_hold": "1 ms", "max_hold": "60 s", **parameters}


def stock(*rules: Rule, **scenery: Any) -> TimeLine:  # noqa: ANN401
    """Run the unmodified receiver."""
    return TimeLine.of(changed("yang_unmod", "stock-scene"), scene(*rules, **scenery))


def modified(thr0: int, *rules: Rule, **scenery: Any) -> TimeLine:  # noqa: ANN401
    """Run the modified receiver with an initial threshold."""
    return TimeLine.of(withholding(thr0=thr0), scene(*rules, **scenery))


def late_by(places: int) -> float:
    """Compute the delay with which a segment is overtaken by a number of others, seconds."""
    return (places + 0.5) * GAP_S
