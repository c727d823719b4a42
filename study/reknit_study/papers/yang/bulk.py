"""Bulk transfers over two paths: Figs. 5.1 to 5.11."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from reknit_study.papers._figures import Lines
from reknit_study.papers._frame import Point, Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import Variant, changed, variant
from reknit_study.papers.yang._paper import paper

SECOND_PATH = {"ref": 1.0, "25%": 0.75, "50%": 0.5}
"""The points of all figures: the delay of the second path as a fraction of the first path's."""
WINDOW = {50: 33, 100: 80, 200: 131}
"""Maximum window in packets by the delay of the first path in ms. The thesis gives it only as twice the largest
stride, about 19, 38 and 75 packets; at 50/37.5 ms it also says 2704 bytes, or a quarter of the largest window, which
is then 10,816 bytes. With its return path these cannot carry its 1217 kbit/s (we measure 689), so we use larger ones
(our choice). 33 packets are FreeBSD 4.1's default socket buffer, 16 KiB or 32.8 packets, rounded up. On the longer
paths that buffer would allow less than the 1164 kbit/s of the thesis; there the window is about one bandwidth-delay
product, so that the reference loses nothing; 131 is the largest without scaling."""
CURVES = ["yang_unmod", "yang_mod"]
SENDERS = ["sack", "dsack_taes"]
"""Variants that change the sender instead, for comparison; the thesis has no such curves."""
TRANSFER = {"kind": "transfer", "size": "5000000 B"}
TICK = "10 ms"
LONGEST_S = 20_000
"""Longer than any transfer; each ends by itself."""

SETUP = (
    "ttcp sends 10,000 packets of 500 bytes plus 40 bytes of headers [assumed] over one 1.5 Mbit/s link with a queue "
    "of 50 packets [assumed], against the thesis, which has two parallel paths with links of 1.5 Mbps (interpretation "
    "two-links); each packet then takes one of two paths with different delays, with probability 1/2. ACKs return in "
    "order over one path, and none is lost [assumed: the thesis has loss on each of the topologies]. FreeBSD 4.1: "
    "Reno [assumed] without SACK or limited transmit, initial window of one segment, windows of 33, 80 and 131 "
    "packets at 50, 100 and 200 ms [assumed: the thesis implies about 19, 38 and 75, which cannot carry its "
    "throughput], delayed ACKs [assumed: 100 ms], minimum RTO of 1 s. The modified receiver starts with a threshold "
    "of 0, which acts as 1, remembers 100 strides, averages the time between packets with a gain of 1/8, and releases "
    "ACKs after a silence of at least 20 ms [assumed]; how long it withholds them has no limit, as in the thesis. Five "
    "transfers per point [assumed: the thesis gives averages, but not of how many]."
)
READINGS = {
    "newreno": "the sender is NewReno; the thesis does not say which sender it used",
    "patient": "the initial threshold is 40 instead of 0",
    "two-links": "each of the two paths is a separate link of 1.5 Mbit/s",
    "alternate": "against the paper: packets take the two paths alternately",
    "rare": "against the paper: one of 250 packets takes the path with the longer delay, instead of half of them",
    "tick": "packets leave Dummynet's pipes only every 10 ms, the clock tick of FreeBSD 4.1",
    "one-way": "against the paper: Dummynet delays data packets only, so round trips are half as long; two of 25 "
    "packets take the path with the longer delay, and the receiver acknowledges every packet",
    "in-order": "against the paper: one of 2000 packets takes the path with the longer delay, and the initial "
    "threshold is 20",
}
RARER = {"one-way-rarer": "against the paper: as one-way, but one of 18 packets takes the path with the longer delay"}
ONE_WAY = ("one-way", *RARER)
"""The thesis gives a single return path of 50 ms for the paths of 50 ms, so halving the round trip contradicts it; so
does any other split than "an equal probability" (section 5.1)."""
LONGER = {"rare": (1, 249), "one-way": (2, 23), "one-way-rarer": (1, 17), "in-order": (1, 1999)}
"""The weights of the path with the longer delay and of the other one, by interpretation."""
INITIAL_THRESHOLDS = {"patient": 40, "in-order": 20}


def scenario(delay_ms: int, point: str, loss: float, reading: str | None = None) -> dict[str, Any]:
    """Make one transfer with random loss."""
    server = {"rate": "1.5 Mbit/s", "queue": "50 packets"}
    delays = [{"delay": f"{delay_ms} ms"}, {"delay": f"{SECOND_PATH[point] * delay_ms:g} ms"}]
    split: dict[str, Any] = {"kind": "multipath", "paths": delays}
    if reading == "alternate":
        split["choice"] = "round-robin"
    forward = [{"kind": "link", "name": "bottleneck", **server}, {"kind": "loss", "probability": loss}, split]
    back: list[dict[str, Any]] = [{"kind": "link", "delay": f"{delay_ms} ms", **server}]
    if reading in ONE_WAY:
        back = [{"kind": "link", **server}]
    if reading in LONGER:
        split["paths"] = [{**path, "weight": weight} for path, weight in zip(delays, LONGER[reading], strict=True)]
    if reading == "tick":
        split["tick"] = TICK
        back = [{"kind": "link", **server}, {"kind": "multipath", "paths": delays[:1], "tick": TICK}]
    if reading == "two-links":
        links = [{**server, **path} for path in (delays if point != "ref" else delays[:1])]
        forward = [{"kind": "loss", "probability": loss}, {"kind": "multipath", "paths": links}]
    tcp: dict[str, Any] = {
        "mss": 500,
        "initial_window": 1,
        "max_window": WINDOW[delay_ms],
        "max_burst": "none",
        "timestamps": False,
        "ack_delay": "100 ms",
        "byte_counting": False,
        "initial_rto": "3 s",
        "min_rto": "1 s",
        "rto_tick": "10 ms",
    }
    if reading in ONE_WAY:
        tcp["ack_every"] = 1
    path = {"description": "Yang's Dummynet box", "forward": forward, "reverse": back, "tcp": tcp}
    return {"path": path, "flows": [{"name": "ttcp", "workload": TRANSFER}]}


def _curves(reading: str | None) -> dict[str, Variant]:
    base = "newreno" if reading == "newreno" else "reno"
    stock, modified = (changed(label, f"{label.replace('_', '-')}-{base}", base=base) for label in CURVES)
    if reading in INITIAL_THRESHOLDS:
        modified["ack_policy"] = {**modified["ack_policy"], "thr0": INITIAL_THRESHOLDS[reading]}
    return dict(zip(CURVES, (stock, modified), strict=True))


def _transfers(lab: Lab, delay_ms: int, loss: float, curves: Mapping[str, Variant] | None = None) -> Result:
    def at(point: str) -> dict[str, Any]:
        return scenario(delay_ms, point, loss, lab.reading)

    points = [*SECOND_PATH]
    return lab.sweep(
        at,
        points,
        curves or _curves(lab.reading),
        duration_s=LONGEST_S,
        seeds=5,
        whole=True,
        least_seeds=5,
        keep=points,
    )


@paper.experiment(
    "Y5.1",
    figure="Fig. 5.1",
    title="Throughput without loss, first path of 50 ms",
    reports="The unmodified receiver loses almost 38 % of 1217 kbit/s (755 is derived from that); the modified one "
    "keeps its throughput.",
    setup=SETUP,
    packets=0.6e6,
    quick=True,
    readings=READINGS,
    delay_ms=50,
    published={"yang_unmod": [("ref", 1217.04), ("50%", 755)], "yang_mod": [("ref", 1217.02)]},
)
@paper.experiment(
    "Y5.2",
    figure="Fig. 5.2",
    title="Throughput without loss, first path of 100 ms",
    reports="With the strongest reordering, the modified receiver keeps 1164 kbit/s, almost three times as much as the "
    "unmodified one.",
    setup=SETUP,
    packets=0.6e6,
    quick=True,
    readings=READINGS,
    delay_ms=100,
    published={"yang_mod": [("50%", 1163.77)]},
)
@paper.experiment(
    "Y5.3",
    figure="Fig. 5.3",
    title="Throughput without loss, first path of 200 ms",
    reports="The unmodified receiver loses almost 80 %; the modified one transfers more than five times as much.",
    setup=SETUP,
    packets=0.6e6,
    quick=True,
    readings=READINGS,
    delay_ms=200,
    published={},
)
def no_loss(lab: Lab, delay_ms: int, published: dict[str, list[tuple[Any, float]]]) -> Result:
    """Sweep the difference between the two delays."""
    found = _transfers(lab, delay_ms, loss=0)
    if lab.reading is None:
        found = found | _transfers(lab, delay_ms, loss=0, curves={label: variant(label) for label in SENDERS})
    return found.drawn(
        Lines("thr_kbps", "reduction of the second path's delay", "throughput, kbit/s", published=published)
    )


@paper.experiment(
    "Y5.6",
    figure="Fig. 5.6",
    title="Throughput with 0.5 % loss, first path of 50 ms",
    reports="The modified receiver is faster at every level of reordering.",
    setup=f"{SETUP} 0.5 % of data packets are lost at random.",
    packets=0.3e6,
    readings=READINGS,
    delay_ms=50,
    loss=0.005,
)
@paper.experiment(
    "Y5.7",
    figure="Fig. 5.7",
    title="Throughput with 0.5 % loss, first path of 100 ms",
    reports="The modified receiver is faster at every level of reordering; with the strongest, five times as fast, "
    "according to the caption.",
    setup=f"{SETUP} 0.5 % of data packets are lost at random.",
    packets=0.3e6,
    readings=READINGS,
    delay_ms=100,
    loss=0.005,
)
@paper.experiment(
    "Y5.8",
    figure="Fig. 5.8",
    title="Throughput with 0.5 % loss, first path of 200 ms",
    reports="With the strongest reordering, 379 kbit/s against 166 kbit/s.",
    setup=f"{SETUP} 0.5 % of data packets are lost at random.",
    packets=0.3e6,
    quick=True,
    readings=READINGS | RARER,
    delay_ms=200,
    loss=0.005,
    published={"yang_unmod": [("50%", 165.52)], "yang_mod": [("50%", 379.17)]},
)
@paper.experiment(
    "Y5.9",
    figure="Fig. 5.9",
    title="Throughput with 1 % loss, first path of 50 ms",
    reports="The modified receiver is about 10 % slower.",
    setup=f"{SETUP} 1 % of data packets are lost at random.",
    packets=0.3e6,
    readings=READINGS,
    delay_ms=50,
    loss=0.01,
)
@paper.experiment(
    "Y5.10",
    figure="Fig. 5.10",
    title="Throughput with 1 % loss, first path of 100 ms",
    reports="The modified receiver is less than 5 % slower.",
    setup=f"{SETUP} 1 % of data packets are lost at random.",
    packets=0.3e6,
    readings=READINGS,
    delay_ms=100,
    loss=0.01,
)
@paper.experiment(
    "Y5.11",
    figure="Fig. 5.11",
    title="Throughput with 1 % loss, first path of 200 ms",
    reports="The modified receiver gains as reordering grows, and is faster with the strongest reordering.",
    setup=f"{SETUP} 1 % of data packets are lost at random.",
    packets=0.3e6,
    readings=READINGS,
    delay_ms=200,
    loss=0.01,
)
def random_loss(
    lab: Lab, delay_ms: int, loss: float, published: dict[str, list[tuple[Any, float]]] | None = None
) -> Result:
    """Sweep the difference between the two delays, with random loss."""
    found = _transfers(lab, delay_ms, loss)
    return found.drawn(
        Lines("thr_kbps", "reduction of the second path's delay", "throughput, kbit/s", published=published or {})
    )


@paper.experiment(
    "Y5.12",
    figure="section 5.2.3",
    title="Throughput with 5 % loss, all paths",
    reports="All transfers are slow, and the receiver makes no difference.",
    setup=f"{SETUP} 5 % of data packets are lost at random.",
    packets=1e6,
    readings=READINGS,
)
def heavy_loss(lab: Lab) -> Result:
    """Run all topologies."""

    def at(point: str) -> dict[str, Any]:
        return scenario(*topologies[point], 0.05, lab.reading)

    topologies = _all_topologies()
    points = [*topologies]
    found = lab.sweep(
        at, points, _curves(lab.reading), duration_s=LONGEST_S, seeds=5, whole=True, least_seeds=5, keep=points
    )
    return found.drawn(Lines("thr_kbps", "delays of the two paths, ms", "throughput, kbit/s"))


def _all_topologies() -> dict[str, tuple[int, str]]:
    """Name all pairs of paths by their delays in ms, as the thesis does."""
    pairs = [(delay, point) for delay in WINDOW for point in SECOND_PATH]
    return {_name(delay, point): (delay, point) for delay, point in pairs}


def _name(delay_ms: int, point: str) -> str:
    return f"{delay_ms}/{SECOND_PATH[point] * delay_ms:g}"


@paper.experiment(
    "Y5.4",
    figure="Fig. 5.4",
    title="Spurious fast retransmits with the unmodified receiver",
    reports="2.1 to 5.0 duplicates per 1000 packets arrive at the receiver.",
    setup="The runs of Figs. 5.1 to 5.3. The thesis counts complete duplicates that arrive at the receiver.",
    receiver="yang_unmod",
    published=[0, 2.68, 4.08, 0, 2.06, 3.74, 0, 3.18, 4.95],
    quick=True,
)
@paper.experiment(
    "Y5.5",
    figure="Fig. 5.5",
    title="Spurious fast retransmits with the modified receiver",
    reports="0.16 to 1.12 duplicates per 1000 packets arrive at the receiver.",
    setup="The runs of Figs. 5.1 to 5.3. The thesis counts complete duplicates that arrive at the receiver.",
    receiver="yang_mod",
    published=[0, 0.16, 0.16, 0, 0.20, 0.20, 0, 0.89, 1.12],
    quick=True,
)
def duplicates(lab: Lab, receiver: str, published: list[float]) -> Result:
    """Show the duplicates in the runs of three figures."""
    parts = [
        _at_delay(lab.result(id).only(receiver), delay)
        for id, delay in zip(["Y5.1", "Y5.2", "Y5.3"], WINDOW, strict=True)
    ]
    points: list[Point] = [*_all_topologies()]
    found = replace(parts[0] | parts[1] | parts[2], points=tuple(points))
    marks = {receiver: list(zip(points, published, strict=True))}
    return found.drawn(Lines("sfr_1000", "delays of the two paths, ms", "duplicates per 1000 packets", published=marks))


def _at_delay(found: Result, delay_ms: int) -> Result:
    named = pl.col("x").replace({point: _name(delay_ms, point) for point in SECOND_PATH})
    return replace(found, table=found.table.with_columns(named), runs=found.runs.with_columns(named))
