"""Transfers over the wireless link: Figs. 6 to 9, Tables 1 to 3."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

import reknit
from reknit_study.papers._figures import Boxes
from reknit_study.papers._frame import FIXED, Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import Variant, changed
from reknit_study.papers._timeline import outage, script
from reknit_study.papers.frto._link import MSS, PROPAGATION, TIMESTAMPS, path, queue, stalling
from reknit_study.papers.frto._paper import paper

PLAIN = ["rto_sack", "rto_newreno", "frto_sack", "frto_newreno"]
EIFEL = ["eifel_sack", "eifel_newreno"]
REPETITIONS = 30
FAIRNESS_REPETITIONS = 20
ENOUGH = 900
"""Repetitions where the medians of 30 leave it open whether a claim is met: they cost little."""
ENOUGH_ONE_BY_ONE = 300
"""The same where repetitions run one by one, which takes longer."""
LONGEST_S = 20_000
"""Longer than any transfer; each ends by itself."""

SETUP = (
    "A transfer of 100 KB [assumed: 102,400 bytes in segments of 256] over 28.8 kbit/s and 200 ms each way [assumed: "
    "the paper has 'a propagation delay of 200 ms'], with room for 7 packets in the router and for 6 in the link's "
    "buffer [inferred]. Linux 2.4: limited transmit, at most three segments per ACK, cwnd increased per ACK, minimum "
    "RTO of 200 ms, the RTO of RFC 6298 [assumed: that of Linux 2.4 is at least SRTT + 200 ms and falls more slowly; "
    "interpretation linux-rto], initial RTO of 3 s, initial window of two segments, a receive buffer of 32 KiB, no "
    "DSACK, an RTT sample from every ACK, and delayed ACKs [inferred from sections 4.1 and 4.3; 200 ms assumed]; what "
    "exceeds three segments waits for later ACKs, where the paper lowers cwnd; after a timeout in fast recovery "
    "ssthresh is half of the window that recovery was to end with [assumed]; retransmitting the first outstanding "
    "segment restarts the timer, as in its tcp_xmit_retransmit_queue [inferred]. SACK recovery counts transmissions "
    "less duplicate ACKs [inferred from the paper's account of Eifel with outages; it only says that its SACK recovery "
    "follows 'the conservative algorithm currently under work in the IETF', which became RFC 6675]. Timestamps make "
    "packets 12 bytes longer [assumed: the paper has about 4 % more packets to send]. The link's buffer has room for 6 "
    "packets in both directions, though 44 ACKs would fit, and holds none that the link layer waits to have "
    "acknowledged, as it does in the paper; only 5 of Eifel's packets of 308 bytes would fit. The first queue drains "
    "during a stall, too, into the stall, which the paper's router cannot (section 5.2). Eifel, as of 2000, also "
    "undoes fast retransmits, restores the whole window, where Linux 2.4 sends at most three segments more than are in "
    "flight after an undo, and undoes nothing if the ACK covers everything outstanding (rule 4 of RFC 3522). The "
    "paper's figures show throughput; transfer times, lost and retransmitted packets are the medians of its tables, so "
    "only medians are marked. Our boxes show transfer times."
)
READINGS = {
    "timed": "one segment per round trip is timed, instead of every segment",
    "rfc2988": "only an ACK for new data restarts the retransmission timer, as RFC 2988 says; Linux 2.4 also restarts "
    "it when it retransmits the first outstanding segment",
    "rfc6675": "SACK recovery does not count segments as outstanding that it considers lost (RFC 6675), so it need not "
    "wait for half a window of ACKs",
    "linux-rto": "the RTO is that of Linux: at least SRTT + 200 ms, and it falls once per round trip (as in 6.18)",
}
SHORT_DELAY = {
    "short-delay": "against the paper: the receiver delays ACKs by at most 40 ms instead of 200; packets are 82 ms "
    "apart, so each is acknowledged. Timestamps take 12 of the 256 bytes of a segment instead of making it longer"
}
DECIMAL = {"decimal": "a transfer of 100 KB has 100,000 bytes instead of 102,400"}
RFC6675_SHORT_DELAY = {
    "rfc6675-short-delay": "against the paper: as rfc6675, and the receiver delays ACKs by at most 40 ms instead of "
    "200, so each packet is acknowledged"
}
Ways = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""The stages of both directions."""


def scenario(ways: Ways, header: int, reading: str | None) -> dict[str, Any]:
    """Make one transfer."""
    transfer = {"kind": "transfer", "size": "100000 B" if reading in DECIMAL else "102400 B"}
    made = path(*ways, header=header, payload=_payload(header, reading), **TCP.get(reading or "", {}))
    return {"path": made, "flows": [{"name": "transfer", "workload": transfer}]}


TCP: dict[str, dict[str, Any]] = {
    "timed": {"rtt_samples": "per-round"},
    **{reading: {"ack_delay": "40 ms"} for reading in (*SHORT_DELAY, *RFC6675_SHORT_DELAY)},
}
"""The TCP options that an interpretation changes."""


def _payload(header: int, reading: str | None) -> int:
    return MSS - header if reading == "short-delay" else MSS


def _curve(label: str, reading: str | None) -> Variant:
    """Describe a curve: Linux 2.4 with the SACK recovery that the paper describes, or an interpretation."""
    changes: dict[str, Any] = {}
    if reading == "linux-rto":
        changes["rto_estimator"] = {"algorithm": "linux-rto"}
    elif reading != "rfc2988":
        changes["rto_estimator"] = {"algorithm": "rfc6298", "restart_on_retransmission": True}
    if reading not in ("rfc6675", *RFC6675_SHORT_DELAY) and label.endswith("_sack"):
        changes["fast_recovery"] = {"algorithm": "counted-pipe"}
    return changed(label, f"{label.replace('_', '-')}-{reading or 'linux'}", **changes)


def _curves(labels: Iterable[str], reading: str | None) -> dict[str, Variant]:
    return {label: _curve(label, reading) for label in labels}


def _all_variants(lab: Lab, ways: Callable[[int, int], Ways]) -> Result:
    def of(curves: list[str], header: int) -> Result:
        return lab.sweep(
            lambda _: scenario(ways(header, _payload(header, lab.reading)), header, lab.reading),
            ["all"],
            _curves(curves, lab.reading),
            duration_s=LONGEST_S,
            seeds=REPETITIONS,
            whole=True,
            least_seeds=REPETITIONS,
        )

    return of(PLAIN, 0) | of(EIFEL, TIMESTAMPS)


def _boxes(published: Mapping[str, tuple[float, float, float]]) -> list[Boxes]:
    panels = {"elapsed_s": "transfer time, s", "lost": "packets lost", "rexmits": "segments retransmitted"}
    return [
        Boxes(metric, y_label=name, published={label: [("all", row[i])] for label, row in published.items()})
        for i, (metric, name) in enumerate(panels.items())
    ]


@paper.experiment(
    "F6",
    enough_seeds=ENOUGH,
    figure="Fig. 6 and Table 1",
    title="Sudden delays",
    reports="With SACK and NewReno, F-RTO takes 76 and 75 s, conventional recovery 94 and 91 s, Eifel 78 and 79 s; "
    "F-RTO retransmits 12 and 13 segments, conventional recovery 57 and 60.",
    setup=f"{SETUP} Each packet, in both directions [inferred], stalls the link with probability 0.02, for an "
    "exponentially distributed time of 3.5 s on average. The packets pass a queue of 13 before the stall and another "
    "one after it [assumed: so that they leave one by one], so twice as many may wait.",
    packets=81e3,
    quick=True,
    readings=READINGS | SHORT_DELAY | DECIMAL,
)
def sudden_delays(lab: Lab) -> Result:
    """Run all variants with stalls."""
    found = _all_variants(lab, stalling)
    return found.drawn(
        *_boxes(
            {
                "eifel_sack": (77.94, 11, 16),
                "frto_sack": (76.23, 4, 12),
                "rto_sack": (94.13, 9, 57),
                "rto_newreno": (90.72, 10, 60),
                "frto_newreno": (75.18, 6, 13),
                "eifel_newreno": (79.21, 11, 19),
            }
        )
    )


@paper.experiment(
    "F7",
    enough_seeds=ENOUGH,
    figure="Fig. 7 and Table 2",
    title="Random loss of 5 %",
    reports="Transfers take 76 s with SACK and 82 s with NewReno, with and without F-RTO; with Eifel 81 and 90 s.",
    setup=f"{SETUP} 5 % of packets are lost in both directions.",
    packets=75e3,
    quick=True,
    readings=READINGS | RFC6675_SHORT_DELAY,
    loss=0.05,
    published={
        "eifel_sack": (80.68, 39, 26),
        "frto_sack": (75.69, 36, 24),
        "rto_sack": (76.18, 36, 22),
        "rto_newreno": (82.38, 36, 26),
        "frto_newreno": (81.67, 36, 26),
        "eifel_newreno": (89.64, 38, 27),
    },
)
@paper.experiment(
    "F7-2",
    enough_seeds=ENOUGH,
    figure="section 5.2",
    title="Random loss of 2 %",
    reports="The same trend as with 5 %.",
    setup=f"{SETUP} 2 % of packets are lost in both directions.",
    packets=75e3,
    readings=READINGS,
    loss=0.02,
)
@paper.experiment(
    "F7-10",
    enough_seeds=ENOUGH,
    figure="section 5.2",
    title="Random loss of 10 %",
    reports="The same trend as with 5 %.",
    setup=f"{SETUP} 10 % of packets are lost in both directions.",
    packets=80e3,
    readings=READINGS,
    loss=0.10,
)
def random_loss(lab: Lab, loss: float, published: Mapping[str, tuple[float, float, float]] | None = None) -> Result:
    """Run all variants with random loss."""
    way = [queue(), {"kind": "loss", "probability": loss}, PROPAGATION]
    found = _all_variants(lab, lambda *_: (way, way))
    return found.drawn(*_boxes(published or {}))


@paper.experiment(
    "F8",
    enough_seeds=ENOUGH_ONE_BY_ONE,
    figure="Fig. 8 and Table 3",
    title="Link outages",
    reports="With SACK and NewReno, F-RTO takes 65 and 68 s, conventional recovery 71 and 74 s, Eifel 124 and 80 s.",
    setup=f"{SETUP} Outages lose all packets in both directions. Their length is exponentially distributed, 3.5 s "
    "on average, with 0.1 to 20 s between them; there is none at first [assumed]. "
    "They lose what is sent during them, and spare what is already on its way [assumed].",
    packets=100e3,
    quick=True,
    readings=READINGS,
)
def outages(lab: Lab) -> Result:
    """Run all variants with outages, the same ones for all variants of a repetition."""
    parts = [_one_repetition(lab, number) for number in _numbers(lab, REPETITIONS)]
    found = parts[0]
    for part in parts[1:]:
        found = found | part
    lab.repeated(len(parts), REPETITIONS)
    return found.drawn(
        *_boxes(
            {
                "eifel_sack": (123.89, 50, 45),
                "frto_sack": (64.94, 42, 40),
                "rto_sack": (71.23, 42, 39),
                "rto_newreno": (74.48, 42, 43),
                "frto_newreno": (67.80, 39, 43),
                "eifel_newreno": (80.03, 42, 42),
            }
        )
    )


def _numbers(lab: Lab, repetitions: int) -> range:
    """List the seeds of an experiment that runs its repetitions one by one."""
    return range(lab.first_seed, lab.first_seed + lab.enough(repetitions))


def _one_repetition(lab: Lab, number: int) -> Result:
    # Both directions have the same schedule, which an outage stage in each would not have.
    way = [queue(), script(*_schedule(number)), PROPAGATION]

    def of(curves: list[str], header: int) -> Result:
        made = scenario((way, way), header, lab.reading)
        drawn = _curves(curves, lab.reading)
        # Each has its own point, since small directories of the store are faster to read.
        return lab.sweep(lambda _: made, [number], drawn, duration_s=LONGEST_S, seeds=1, whole=True)

    found = of([*PLAIN, "eifel_rtxbit_sack"], 0) | of(EIFEL, TIMESTAMPS)
    names = [pl.lit(number, pl.Int64).alias("seed"), pl.lit("all").alias("x")]
    return replace(found, points=("all",), table=found.table.with_columns(names), runs=found.runs.with_columns(names))


def _schedule(number: int, until_s: float = 2000) -> list[dict[str, Any]]:
    """Draw the outages of a repetition."""
    draw = random.Random(f"F8 {number}")
    rules, now = [], 0.0
    while now < until_s:
        begin = now + draw.uniform(0.1, 20)
        now = begin + draw.expovariate(1 / 3.5)
        rules.append(outage(begin, now))
    return rules


FAIRNESS = (
    "Six transfers of 50 KB share the link of Fig. 6: three flows with conventional NewReno [assumed] start first, "
    "and 3 s later three flows with F-RTO (test A) or conventional recovery (test B). Start times vary by 100 ms "
    "[assumed]; otherwise all repetitions without stalls would be alike."
)


@paper.experiment(
    "F9a",
    enough_seeds=ENOUGH_ONE_BY_ONE,
    figure="Fig. 9 (a)",
    title="Fairness: the fastest flow of each set",
    reports="Both tests give similar throughputs.",
    setup=f"{FAIRNESS} The link stalls as in Fig. 6.",
    packets=50e3,
    readings={"sack": "all flows use SACK"},
    delays=True,
    which=max,
)
@paper.experiment(
    "F9b",
    enough_seeds=ENOUGH_ONE_BY_ONE,
    figure="Fig. 9 (b)",
    title="Fairness: the slowest flow of each set",
    reports="Both tests give similar throughputs.",
    setup=f"{FAIRNESS} The link stalls as in Fig. 6.",
    readings={"sack": "all flows use SACK"},
    delays=True,
    which=min,
)
@paper.experiment(
    "F9n",
    enough_seeds=ENOUGH_ONE_BY_ONE,
    figure="section 5.3",
    title="Fairness without delays: the slowest flow of each set",
    reports="Both tests give similar throughputs.",
    setup=f"{FAIRNESS} The link does not stall.",
    packets=50e3,
    readings={"sack": "all flows use SACK"},
    delays=False,
    which=min,
)
@paper.experiment(
    "F9m",
    enough_seeds=ENOUGH_ONE_BY_ONE,
    figure="section 5.3",
    title="Fairness without delays: the fastest flow of each set",
    reports="Both tests give similar throughputs.",
    setup=f"{FAIRNESS} The link does not stall.",
    readings={"sack": "all flows use SACK"},
    delays=False,
    which=max,
)
def fairness(lab: Lab, delays: bool, which: Callable[[Iterable[float]], float]) -> Result:
    """Run both tests, and select a flow of each set."""
    kind = "sack" if lab.reading == "sack" else "newreno"
    tests = {"testA": _curve(f"frto_{kind}", None), "testB": _curve(f"rto_{kind}", None)}
    seeds = _numbers(lab, 0 if lab.dry else FAIRNESS_REPETITIONS)
    lab.repeated(len(seeds), FAIRNESS_REPETITIONS)
    rows = [
        {"variant": f"{test}_{name}", "x": "all", "seed": seed, "thr_kbps": which(flows)}
        for test, later in tests.items()
        for seed in seeds
        for name, flows in _six_flows(kind, later, delays, seed).items()
    ]
    table = pl.DataFrame(rows, {"variant": pl.String, "x": pl.String, "seed": pl.Int64, "thr_kbps": pl.Float64})
    return Result(points=("all",), table=table, runs=table).drawn(Boxes("thr_kbps", y_label="throughput, kbit/s"))


def _six_flows(kind: str, later: Variant, delays: bool, seed: int) -> dict[str, list[float]]:
    """Run three flows, then three more; the throughput of each, kbit/s, by set."""
    calm = [queue(), PROPAGATION]
    ways = stalling() if delays else (calm, calm)
    transfer = {"kind": "transfer", "size": "51200 B"}
    conventional = _curve(f"rto_{kind}", None)
    # One flow per group, since results are per group.
    early, late = "uniform(0 s, 0.1 s)", "uniform(3 s, 3.1 s)"
    first = [{"name": f"set1 {i}", "start": early, "variant": conventional, "workload": transfer} for i in range(3)]
    then = [{"name": f"set2 {i}", "start": late, "workload": transfer} for i in range(3)]
    scenario = {**FIXED, "path": path(*ways), "duration": f"{LONGEST_S} s", "flows": [*first, *then]}
    flows = reknit.simulate(None, later, scenario=scenario, seed=seed).groups
    return {
        name: (1000 * flows.filter(pl.col("group").str.starts_with(name))["goodput_mbit_s"]).to_list()
        for name in ("set1", "set2")
    }
