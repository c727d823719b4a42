"""The cost of experiments at each tier."""

from __future__ import annotations

import time

import reknit
from reknit_study.papers._frame import TIERS, Experiment, Paper, Tier
from reknit_study.papers._lab import Lab

PROCESSORS = 2


def speed() -> float:
    """Measure how many data packets per second a processor of this machine simulates, in a run of RR-TCP."""
    began = time.perf_counter()
    run = reknit.simulate("rr-tcp", "rr-ta", duration="400 s")
    return float(run.totals["segments_sent"] / (time.perf_counter() - began))


def packets(experiment: Experiment, papers: list[Paper]) -> dict[str, float | None]:
    """Estimate the data packets of each tier; None if the experiment is not part of it.

    The experiment declares those of the full tier; those of the others are proportional to the simulated seconds.
    """
    planned = {name: _seconds(experiment, papers, tier) for name, tier in TIERS.items()}
    whole = planned["full"] or 1.0
    return {
        name: None if name == "quick" and not experiment.quick else experiment.packets * seconds / whole
        for name, seconds in planned.items()
    }


def packets_with_more_seeds(experiment: Experiment, papers: list[Paper]) -> float:
    """Estimate the data packets of the default tier if all outcomes depend on the choice of seeds."""
    whole = _seconds(experiment, papers, TIERS["full"]) or 1.0
    return experiment.packets * _seconds(experiment, papers, TIERS["default"], more_seeds=True) / whole


def _seconds(experiment: Experiment, papers: list[Paper], tier: Tier, *, more_seeds: bool = False) -> float:
    """Return the simulated seconds of all runs together."""
    lab = Lab(papers, tier, dry=True)
    if more_seeds:
        lab.deepen([experiment.id])
    if experiment.kind == "sweep":
        lab.result(experiment.id)
    # Runs of another experiment that it shows cost nothing more.
    return sum(runs * seconds for id, runs, seconds in lab.planned if id == experiment.id)


def cost(count: float | None, per_s: float) -> str:
    """Format a number of packets, and how long they take."""
    if count is None:
        return "not run"
    return f"{_count(count)} packets ({_span(count / per_s / PROCESSORS)})" if count else "none"


def _count(packets: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if packets >= size:
            return f"{packets / size:.3g} {unit}"
    return f"{packets:.0f}"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
