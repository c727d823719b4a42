"""Laor and Gendel (IEEE Network 2002): packets displaced on a backbone link.

The paper lists delays of 0, 15, 35 and 70 ms; where its text has "15 and 30 ms" we read 35.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from reknit_study.papers._figures import Bars, Lines
from reknit_study.papers._frame import QUICK, Paper, Point, Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import Variant, changed, variant

paper = Paper(
    "laor-gendel",
    "The Effect of Packet Reordering in a Backbone Link on Application Throughput",
    "Laor, Gendel: IEEE Network, 2002",
    gives_durations=False,
)

SHARES: list[Point] = [0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.08, 0.10, 0.15, 0.20]
BEYOND: list[Point] = [*SHARES, 0.30]
"""With a displacement by one or two positions, more than 20 % of packets can be displaced."""
MEASURED_S, WARM_UP_S = 60, 10

INHERENT_MS = 0.3
"""The delay of each way that is not added: less than 1 ms by the paper, whose delays are one-way."""
READINGS = {
    "periodic": "N packets pass and the next one is displaced, again and again, as the paper's instrument may do, "
    "instead of random packets; 1/x is rounded to whole packets",
    "window-48": "the window is 48 instead of 64 KiB (33 segments); the paper does not give it",
    "short-release": "a displaced packet that is not passed by enough others leaves after 100 ms instead of 1 s",
}
WINDOW_32 = {"window-32": "the window is 32 instead of 64 KiB (22 segments); the paper does not give it"}
WINDOWS = {"window-48": 33, "window-32": 22}
"""The window by interpretation, segments; 44 by default."""
LONGEST_RTT = {
    "longest-rtt": "the delay that is not added is 0.95 instead of 0.3 ms each way; the paper says less than 1 ms"
}
SETUP = (
    "{what}, with 100 Mbit/s to each client, {delay} ms of delay each way and 0.3 ms more [assumed], a window of 64 "
    "KiB (44 segments), without window scaling and timestamps [assumed: 'with the exception of Windows NT, all "
    "operating systems supported window scaling (RFC 1323)'], delayed ACKs [assumed] and no congestion loss. A "
    "fraction x of the data packets on the backbone is displaced by {shift}; ACKs stay in order [assumed: the paper "
    "reorders data, ACKs or both]. Packets are chosen at random with mean x [assumed: the paper's instrument displaces "
    "one packet at a time, perhaps periodically, which locks to delayed ACKs: see the interpretation periodic]; a "
    "packet that is not passed by enough others leaves after 1 s [assumed]. Reno, as on most systems of 1999 "
    "[assumed]; SACK detects and recovers by RFC 6675 [assumed: the paper says only that Linux 2.2.6 had SACK], where "
    "an ACK that advances and reports a hole counts as a duplicate. Without limited transmit, with an initial window "
    "of two segments, a minimum RTO of 1 s and an initial RTO of 3 s [assumed]. 60 s are measured, after 10 s of "
    "warm-up [assumed]."
)
ONE_FLOW = "A long flow that never ends [assumed: in the paper files of 400 MB, each closed by a reset]"
ONE_CLIENT = (
    "16 sessions (2 long, 2 of 100 kB, 12 HTTP) [assumed], whose connections end with a FIN [assumed: in the paper "
    "files end with a reset]"
)
FOUR_CLIENTS = (
    "64 sessions (8 long, 8 of 100 kB, 48 HTTP) [assumed], each connection to one of four clients, chosen by its hash "
    "[against the paper, in which each client has its own mix]"
)

TCP: Mapping[str, object] = {
    "initial_window": 2,
    "max_burst": "none",
    "timestamps": False,
    "byte_counting": False,
    "receive_buffer": "44 segments",
    "initial_rto": "3 s",
    "min_rto": "1 s",
    "rto_tick": "10 ms",
}
OLDER_THAN_LIMITED_TRANSMIT = ("reno", "newreno", "sack", "reno_t2", "dsack_r")
"""The senders that the paper's systems had or that it recommends: RFC 3042 is younger than its Solaris 2.6, Linux 2.2.6
and NT4."""
MIX = [
    {"share": 0.125, "name": "long", "kind": "files", "size": "400 MB"},
    {"share": 0.125, "name": "short", "kind": "files", "size": "100 kB"},
    {"share": 0.375, "name": "http 5 kB", "kind": "requests", "request": "300 B", "response": "5 kB"},
    {"share": 0.375, "name": "http 20 kB", "kind": "requests", "request": "300 B", "response": "20 kB"},
]


def backbone(
    lab: Lab,
    share: float,
    delay_ms: float,
    shift: int = 3,
    clients: int = 1,
    loss: float = 0,
    before: Sequence[Mapping[str, object]] = (),
    whole: bool = False,
) -> dict[str, object]:
    """Describe server, backbone with reordering, and clients, each with a link of 100 Mbit/s both ways."""
    chosen: dict[str, object] = {"probability": share}
    if lab.reading == "periodic" and share > 0:
        chosen = {"every": max(round(1 / share), shift + 1)}
    if lab.reading == "short-release":
        chosen["release"] = "100 ms"
    link = {"rate": "100 Mbit/s", "queue": "10000 packets"}
    # Connections are divided among the clients by their hash.
    each = {"kind": "multipath", "choice": "per-flow", "paths": [link] * clients}
    last = {"kind": "link", "name": "clients", **link} if clients == 1 else each
    delay = f"{delay_ms + (0.95 if lab.reading == 'longest-rtt' else INHERENT_MS):g} ms"
    window = {"receive_buffer": f"{WINDOWS[lab.reading]} segments"} if lab.reading in WINDOWS else {}
    path = {
        "forward": [
            {"kind": "link", "name": "server", "rate": "1 Gbit/s", "queue": "10000 packets"},
            *before,
            {"kind": "loss", "probability": loss},
            {"kind": "displace", "positions": shift, **chosen},
            {"kind": "link", "delay": delay},
            last,
        ],
        "reverse": [last, {"kind": "link", "delay": delay}],
        "tcp": {**TCP, **window},
    }
    return {"path": path, "warm_up": f"{WARM_UP_S} s" if whole else lab.scaled(WARM_UP_S)}


def senders(*labels: str) -> dict[str, Variant]:
    """Describe the senders without limited transmit, except RR-TCP, which extends it."""
    off = {"limited_transmit": {"algorithm": "off"}}
    return {
        label: changed(label, f"{label.replace('_', '-')}-1999", **off)
        if label in OLDER_THAN_LIMITED_TRANSMIT
        else variant(label)
        for label in labels
    }


def mix(sessions: int) -> list[dict[str, object]]:
    """Describe the sessions of the clients: an eighth long, an eighth short, the rest HTTP."""
    return [{"name": "mix", "count": sessions, "start": "uniform(0 ms, 200 ms)", "mix": MIX}]


def _by_type(label: str, row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Split Reno's runs by type of transaction."""
    if label != "reno":
        return {label: {}}
    rest = dict.fromkeys(name for name in row if name not in ("variant", "x", "seed"))
    of = {group["group"].removeprefix("mix/"): group["goodput_mbit_s"] for group in row.get("groups") or ()}
    sums = {kind: sum(rate for name, rate in of.items() if name.startswith(kind)) for kind in ("long", "short", "http")}
    return {label: {}, **{kind: {**rest, "goodput_mbit_s": rate} for kind, rate in sums.items()}}


def _relative(found: Result) -> Result:
    return found.relative("rel_thr", of="goodput_mbps", to=0)


def _is_thorough(lab: Lab) -> bool:
    """Return whether runs have the paper's length, which its results depend on: in all tiers except those of tests."""
    return lab.tier.duration >= QUICK.duration


def _share_of_throughput(*labels: str) -> Lines:
    return Lines("rel_thr", "fraction of packets displaced", "relative throughput", variants=labels, log_x=True)


@paper.experiment(
    "L2/0",
    figure="Fig. 2",
    title="A long flow, delay below 1 ms, packets displaced by three",
    reports="Throughput declines slowly up to 0.5-1 %, then falls from 85 % to 10 %, and is flat from 8 % on.",
    setup=SETUP.format(what=ONE_FLOW, delay=0, shift="three positions"),
    packets=24e6,
    readings={**READINGS, **LONGEST_RTT},
    delay_ms=0,
    curves=["reno"],
)
@paper.experiment(
    "L2/15",
    figure="Fig. 2",
    title="A long flow, 15 ms, packets displaced by three",
    reports="Throughput declines slowly up to 0.1-0.2 %, then falls from 85 % to 10 %, and is flat from 8 % on.",
    setup=SETUP.format(what=ONE_FLOW, delay=15, shift="three positions"),
    packets=3e6,
    readings=READINGS,
    delay_ms=15,
    curves=["reno"],
)
@paper.experiment(
    "L2/35",
    figure="Fig. 2",
    title="A long flow, 35 ms, packets displaced by three",
    reports="Throughput declines slowly up to 0.1-0.2 %, then falls from 85 % to 10 %, and is flat from 8 % on.",
    setup=SETUP.format(what=ONE_FLOW, delay=35, shift="three positions")
    + " SACK and DSACK senders, which the paper recommends, and NewReno are shown, too; RR-TCP (dsack_taes) is one of "
    "them, and keeps its own limited transmit.",
    packets=8.7e6,
    quick=True,
    readings=READINGS,
    delay_ms=35,
    curves=["reno", "newreno", "sack", "dsack_r", "dsack_taes"],
)
def long_flow(lab: Lab, delay_ms: float, curves: list[str]) -> Result:
    """Sweep the fraction of displaced packets for one flow."""
    thorough = _is_thorough(lab)
    found = lab.sweep(
        lambda share: backbone(lab, share, delay_ms, whole=thorough),
        SHARES,
        senders(*curves),
        duration_s=MEASURED_S + WARM_UP_S,
        keep=[0, 0.01, 0.02, 0.08, 0.20],
        whole=thorough,
        least_seeds=5 if thorough else 0,
        least_points=len(SHARES) if thorough else 0,
    )
    return _relative(found).drawn(_share_of_throughput())


@paper.experiment(
    "L8s/35",
    figure="Summary",
    title="A long flow, 35 ms, packets displaced by two",
    reports="Displacement by three positions matters, by two it does not.",
    setup=SETUP.format(what=ONE_FLOW, delay=35, shift="two positions"),
    packets=3e6,
    readings=READINGS,
)
def long_flow_shifted_by_two(lab: Lab) -> Result:
    """Sweep the fraction of displaced packets for one flow."""
    whole = _is_thorough(lab)
    found = lab.sweep(
        lambda share: backbone(lab, share, 35, shift=2, whole=whole),
        SHARES,
        senders("reno"),
        duration_s=MEASURED_S + WARM_UP_S,
        keep=[0.001, 0.01, 0.05],
        whole=whole,
    )
    return _relative(found).drawn(_share_of_throughput())


@paper.experiment(
    "L2loss/35",
    figure="Abstract",
    title="A long flow, 35 ms, loss and reordering at once",
    reports="With a little loss, reordering degrades throughput significantly; SACK can slow down the degradation "
    "(claimed, not measured).",
    setup="As in L2/35, with 0.1 % of packets lost, 0.1 % displaced by three, or both.",
    packets=1.8e6,
)
def loss_and_reordering(lab: Lab) -> Result:
    """Lose packets, displace packets, or do both."""
    whole = _is_thorough(lab)
    shares = {"none": (0.0, 0.0), "loss": (0.0, 0.001), "reorder": (0.001, 0.0), "both": (0.001, 0.001)}

    def scenario(point: str) -> dict[str, object]:
        displaced, lost = shares[point]
        return backbone(lab, displaced, 35, loss=lost, whole=whole)

    found = lab.sweep(
        scenario,
        list(shares),
        senders("reno", "newreno", "sack"),
        duration_s=MEASURED_S + WARM_UP_S,
        keep=list(shares),
        whole=whole,
        least_seeds=5 if whole else 0,
    )
    found = found.relative("rel_thr", of="goodput_mbps", to="none")
    return found.drawn(Bars("rel_thr", "", "relative throughput"))


def _mixed(
    lab: Lab,
    delay_ms: float,
    shift: int,
    clients: int,
    curves: Sequence[str],
    points: list[Point] = SHARES,
    keep: tuple[Point, ...] = (0, 0.001, 0.01, 0.02, 0.05, 0.08, 0.20),
    before: Sequence[Mapping[str, object]] = (),
) -> Result:
    """Sweep the fraction of displaced packets for a mix of 16 sessions per client.

    Runs keep their full length: at 70 ms a shorter one ends before the sessions are in a steady state.
    """
    whole = _is_thorough(lab)

    def scenario(share: float) -> dict[str, object]:
        path = backbone(lab, share, delay_ms, shift, clients, before=before, whole=whole)
        return {**path, "flows": mix(16 * clients)}

    found = lab.sweep(
        scenario,
        points,
        senders(*curves),
        duration_s=MEASURED_S + WARM_UP_S,
        keep=keep,
        whole=whole,
        split=_by_type,
    )
    return _relative(found).with_metric("agg_mbps", pl.col("goodput_mbit_s"))


@paper.experiment(
    "L3",
    figure="Fig. 3",
    title="The mix, one client, 35 ms, packets displaced by three",
    reports="Three regions, as with the single flow; the curve levels off near half of the throughput.",
    setup=SETUP.format(what=ONE_CLIENT, delay=35, shift="three positions")
    + " The paper does not give the delay of Fig. 3; 35 ms is our choice [assumed]. Its server is Linux, the only "
    "system with SACK; the paper says that the others behaved similarly.",
    packets=14e6,
    quick=True,
    readings={"window-48": READINGS["window-48"]},
    delay_ms=35,
)
@paper.experiment(
    "L3/15",
    figure="Results",
    title="The mix, one client, 15 ms, packets displaced by three",
    reports="Throughput degrades less than at 70 ms.",
    setup=SETUP.format(what=ONE_CLIENT, delay=15, shift="three positions"),
    packets=32e6,
    delay_ms=15,
)
@paper.experiment(
    "L3/70",
    figure="Results",
    title="The mix, one client, 70 ms, packets displaced by three",
    reports="Throughput degrades faster than at lower delays.",
    setup=SETUP.format(what=ONE_CLIENT, delay=70, shift="three positions"),
    packets=7e6,
    delay_ms=70,
)
def one_client(lab: Lab, delay_ms: float) -> Result:
    """Sweep the fraction of displaced packets for the mix of one client."""
    found = _mixed(lab, delay_ms, 3, 1, ["reno", "newreno", "sack"])
    return found.drawn(_share_of_throughput("reno", "newreno", "sack"))


@paper.experiment(
    "L4/15",
    figure="Fig. 4",
    title="The mix, four clients, 15 ms, packets displaced by three",
    reports="The slope is gentler than with one client; the curve is like that of 35 ms.",
    setup=SETUP.format(what=FOUR_CLIENTS, delay=15, shift="three positions"),
    packets=85e6,
    readings=WINDOW_32,
    delay_ms=15,
)
@paper.experiment(
    "L4/35",
    figure="Fig. 4",
    title="The mix, four clients, 35 ms, packets displaced by three",
    reports="The slope is gentler than with one client; the curve is like that of 15 ms.",
    setup=SETUP.format(what=FOUR_CLIENTS, delay=35, shift="three positions"),
    packets=37e6,
    readings=WINDOW_32,
    delay_ms=35,
)
def four_clients(lab: Lab, delay_ms: float) -> Result:
    """Sweep the fraction of displaced packets for the mix of four clients."""
    return _mixed(lab, delay_ms, 3, 4, ["reno", "sack"]).drawn(_share_of_throughput("reno", "sack"))


@paper.experiment(
    "L5/15",
    figure="Fig. 5",
    title="The mix, four clients, 15 ms, in Mbit/s",
    reports="Absolute throughput is higher than at 35 ms.",
    setup="The runs of L4/15.",
    delay_ms=15,
)
@paper.experiment(
    "L5/35",
    figure="Fig. 5",
    title="The mix, four clients, 35 ms, in Mbit/s",
    reports="Absolute throughput is lower than at 15 ms.",
    setup="The runs of L4/35.",
    delay_ms=35,
)
def four_clients_absolute(lab: Lab, delay_ms: float) -> Result:
    """Show the aggregate throughput."""
    runs = lab.result(f"L4/{delay_ms}").only("reno", "sack")
    return runs.drawn(Lines("agg_mbps", "fraction of packets displaced", "sum of the sessions, Mbit/s", log_x=True))


@paper.experiment(
    "L6c",
    figure="Fig. 6 c",
    title="The mix by type of transaction, four clients, 70 ms",
    reports="Long flows lose the most throughput; short files and HTTP lose little, and sometimes gain.",
    setup=SETUP.format(what=FOUR_CLIENTS, delay=70, shift="three positions"),
    packets=10e6,
)
def types_at_70_ms(lab: Lab) -> Result:
    """Split the mix of four clients by type of transaction."""
    return _mixed(lab, 70, 3, 4, ["reno"]).drawn(_share_of_throughput("long", "short", "http"))


@paper.experiment(
    "L6a",
    figure="Fig. 6 a",
    title="The mix by type of transaction, four clients, 15 ms",
    reports="Long flows lose the most throughput; short files and HTTP lose little, and sometimes gain.",
    setup="The runs of L4/15 with Reno.",
    delay_ms=15,
)
@paper.experiment(
    "L6b",
    figure="Fig. 6 b",
    title="The mix by type of transaction, four clients, 35 ms",
    reports="Long flows lose the most throughput; short files and HTTP lose little, and sometimes gain.",
    setup="The runs of L4/35 with Reno.",
    delay_ms=35,
)
def types(lab: Lab, delay_ms: float) -> Result:
    """Show the relative throughput of each type of transaction."""
    labels = ["long", "short", "http"]
    return lab.result(f"L4/{delay_ms}").only(*labels).drawn(_share_of_throughput(*labels))


@paper.experiment(
    "L4i/15",
    figure="Discussion",
    title="The mix, four clients, 15 ms, flows interleaved packet by packet",
    reports="If the flows were perfectly interleaved, displacement by three would hardly matter.",
    setup=SETUP.format(what=FOUR_CLIENTS, delay=15, shift="three positions")
    + " Before the backbone, each flow passes its own link of 20 Mbit/s, a little more than its window fills, so that "
    "some ten packets of other flows separate two of its packets [assumed].",
    packets=70e6,
)
def interleaved(lab: Lab) -> Result:
    """Sweep the fraction of displaced packets for flows whose packet trains are spread out."""
    lanes = [{"rate": "20 Mbit/s", "queue": "1000 packets"}] * 64
    found = _mixed(lab, 15, 3, 4, ["reno"], before=[{"kind": "multipath", "choice": "per-flow", "paths": lanes}])
    return found.drawn(_share_of_throughput("reno"))


for _shift, _positions, _figure, _reports in (
    (1, "one position", "Fig. 7", "Throughput does not drop; there is a slight loss above 20 %."),
    (
        2,
        "two positions",
        "Fig. 8",
        "Throughput does not drop, except for NT4, which reacts to the second duplicate ACK.",
    ),
):
    for _delay in (15, 35):
        declare = paper.experiment(
            f"L{6 + _shift}/{_delay}",
            figure=_figure,
            title=f"The mix, four clients, {_delay} ms, packets displaced by {_positions.split()[0]}",
            reports=_reports,
            setup=SETUP.format(what=FOUR_CLIENTS, delay=_delay, shift=_positions),
            packets=240e6 if _delay == 15 else 102e6,
            delay_ms=_delay,
            shift=_shift,
        )

        @declare
        def short_shifts(lab: Lab, delay_ms: float, shift: int) -> Result:
            """Sweep the fraction of packets displaced by one or two positions."""
            curves = ["reno", "sack", "reno_t2"]
            found = _mixed(lab, delay_ms, shift, 4, curves, BEYOND, keep=(0, 0.01, 0.05, 0.10, 0.20))
            return found.drawn(_share_of_throughput(*curves))


from reknit_study.papers import laor_gendel_checks  # noqa: E402, F401 - they add to the paper
