"""Claims without a figure: the bound of limited transmit, and fairness to SACK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from reknit_study.papers._figures import Lines
from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import Variant, changed
from reknit_study.papers.rr_tcp._network import BA, delayed, dumbbell, normal, paper

BOUNDS = [0, 0.5, 1, 2]
PAYLOAD_BITS = 8 * 960


@paper.experiment(
    "R21",
    figure="sections 2.3 and 7",
    title="Throughput against the bound of limited transmit",
    reports="The gain over SACK is similar with a bound of zero, one or two windows; RR-TCP is better than SACK with "
    "any bound from half a window to two, and than Blanton and Allman's schemes.",
    setup="As in Fig. 4 with 5 % of packets delayed; limited transmit may send x windows, and may exceed the maximum "
    "window of 50 packets. Blanton and Allman's schemes have their own limited transmit, do not depend on x and are "
    "drawn as horizontal lines.",
    packets=32e6,
    readings={"two-paths": "as in Fig. 16 with a difference of 100 ms"},
)
def limited_transmit(lab: Lab) -> Result:
    """Sweep the bound."""
    late = delayed(0.5, "constant(100 ms)") if lab.reading == "two-paths" else delayed(0.05, normal(0.025, 0.008))
    scenario = dumbbell(0.05, late, tcp={"max_window_caps": "cwnd"})
    found = lab.sweep(
        lambda _: scenario,
        BOUNDS,
        {"sack": "sack", "dsack_r": "dsack-r", "dsack_fa": _bounded("dsack_fa"), "dsack_ta": _bounded("dsack_ta")},
        duration_s=1000,
        seeds=5,
        keep=BOUNDS,
    )
    prior = lab.sweep(lambda _: scenario, ["all"], ["ba_r", *BA], duration_s=1000, seeds=5)
    return (found | prior).drawn(Lines("thr_pkts", "bound of limited transmit, windows", "packets in 1000 s"))


def _bounded(label: str) -> Any:  # noqa: ANN401
    return lambda windows: bounded(label, windows)


def bounded(label: str, windows: float, **dup_thresh: Any) -> Variant:  # noqa: ANN401
    """Describe a variant of RR-TCP whose limited transmit may send a number of windows."""
    return changed(
        label,
        f"{label.replace('_', '-')}-{10 * windows:.0f}",
        limited_transmit={"algorithm": "per-sack", "windows": windows},
        dup_thresh={"windows": windows, **dup_thresh},
    )


@paper.experiment(
    "R22",
    figure="sections 4.3.4 and 7",
    title="Effect on a SACK flow if the competing flow uses RR-TCP",
    reports="Replacing a competing SACK flow by an RR-TCP flow does not hurt the other SACK flow.",
    setup="As in Fig. 4, with windows of up to 200 packets, queues of 100 packets, and two flows: A uses SACK, B uses "
    "SACK (partner_sack) or RR-TCP (partner_rr); x is the fraction of packets delayed. The paper did not measure this.",
    packets=12e6,
    quick=True,
    readings={
        "small-windows": "windows of up to 25 packets, two of which fill the link as one of 50 does in the paper's "
        "other experiments",
    },
)
def fairness(lab: Lab) -> Result:
    """Measure flow A beside each kind of partner."""
    shares = [0, 0.01, 0.05]
    found = lab.sweep(
        lambda share: _shared(share, lab.reading),
        shares,
        {"partner_sack": "sack", "partner_rr": "rr-taes"},
        duration_s=1000,
        seeds=5,
        keep=shares,
        split=_flow_a,
    )
    packets = 1000 * 1e6 * pl.col("goodput_mbit_s") / PAYLOAD_BITS
    return found.with_metric("thr_a_pkts", packets).drawn(
        Lines("thr_a_pkts", "fraction of packets delayed", "packets of flow A in 1000 s")
    )


def _flow_a(label: str, row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Keep the goodput of flow A only."""
    rest = dict.fromkeys(name for name in row if name not in ("variant", "x", "seed"))
    goodputs = {group["group"]: group["goodput_mbit_s"] for group in row.get("groups") or ()}
    return {label: {**rest, "goodput_mbit_s": goodputs.get("A")}}


def _shared(share: float, reading: str | None) -> dict[str, Any]:
    late = delayed(share, normal(0.025, 0.008))
    flows = [
        {"name": "A", "variant": "sack", "workload": "bulk"},
        {"name": "B", "start": "100 ms", "workload": "bulk"},
    ]
    window = 25 if reading == "small-windows" else 200
    return {**dumbbell(0.05, late, window=window, queue=100), "flows": flows}
