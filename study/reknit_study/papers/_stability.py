"""Whether verdicts depend on the seeds (``reknit papers stability``), or on the length of runs (``lengths``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reknit_study.papers import papers
from reknit_study.papers._claims import Verdict, claims, judge
from reknit_study.papers._frame import Tier
from reknit_study.papers._lab import Lab
from reknit_study.papers._scores import scores

FIRST_SEEDS = (1, 1001, 2001, 3001)
"""The first seed of each set; they are disjoint, because no experiment gets more than 1000 seeds."""

SEEDS = {f"seeds from {first}": (first, 1.0) for first in FIRST_SEEDS}
"""Sets of seeds: the first seed, and the length of the runs relative to that of the tier."""

LENGTHS = {"runs as long as in the tier": (1, 1.0), "a third as long": (1, 1 / 3), "twice as long": (1, 2.0)}
"""Lengths of the runs, in the same way."""

FURTHER = 4
"""How many times the seeds that are usually enough an experiment gets if a claim is still undecided."""


def decided(lab: Lab, ids: Sequence[str]) -> list[Verdict]:
    """Run experiments and judge the claims.

    Experiments get more seeds where a claim depends on the choice of seeds, still more where it is undecided with them,
    and interpretations where they may meet a published number that is missed.
    """
    verdicts = judge(claims(), lab.run(ids))
    if lab.base.name == "quick":
        return verdicts
    for times, listed in ((1, _unsteady), (FURTHER, _undecided)):
        deeper = {
            name
            for verdict in verdicts
            for id in verdict.claim.named
            if lab.may_deepen(id) and verdict.seeds < lab.enough_seeds(id, times)
            for name in listed(verdict, id, lab)
        }
        if deeper:
            lab.deepen(deeper, times)
            verdicts = judge(claims(), lab.run(ids))
    return verdicts


def _unsteady(verdict: Verdict, id: str, lab: Lab) -> list[str]:
    """List an experiment, if the verdict depends on its seeds, and the interpretations that may meet the number."""
    read = verdict.near if verdict.number in ("missed", "undecided") else ()
    readings = [f"{id}@{reading}" for reading in read if reading in lab.experiments[id].readings]
    return [id] * verdict.depends_on_seeds + readings


def _undecided(verdict: Verdict, id: str, lab: Lab) -> list[str]:
    """List an experiment, if the verdict is still undecided and this is not the full tier, where seeds are slow."""
    return [id] * (verdict.is_undecided and not lab.is_full(id))


def compare(
    sets: Mapping[str, tuple[int, float]],
    tier: Tier,
    ids: Sequence[str],
    store: Path,
    told: Callable[[str], object],
    more_seeds: Collection[str] | None = None,
) -> tuple[list[str], list[str]]:
    """Judge with each of several sets of runs, `SEEDS` or `LENGTHS`.

    Returns
    -------
    tuple of list of str
        Lines for each set, and for what is called undecided; and a line for each claim whose outcome differs without
        being called undecided in any of them.
    """
    found: dict[str, dict[str, Verdict]] = {}
    for name, (first, times) in sets.items():
        with Lab(
            papers().values(),
            replace(tier, duration=tier.duration * times),
            store,
            told=told,
            first_seed=first,
            more_seeds=more_seeds,
            interpret=False,
            times=times,
        ) as lab:
            verdicts = [verdict for verdict in decided(lab, ids) if verdict.outcome != "not evaluated"]
        found[name] = {verdict.claim.id: verdict for verdict in verdicts}
    lines = [f"{name}: " + "; ".join(scores([*verdicts.values()]).sentences) for name, verdicts in found.items()]
    return [*lines, *undecided(found)], unstable([*found.values()])


def undecided(found: Mapping[str, Mapping[str, Verdict]]) -> list[str]:
    """List the claims that are called undecided with the first set, and those only with others."""
    first, *others = ([id for id, verdict in verdicts.items() if verdict.is_undecided] for verdicts in found.values())
    only = dict.fromkeys(id for ids in others for id in ids if id not in first)
    return [
        f"undecided with {next(iter(found))}: {len(first)}: {', '.join(first) or 'none'}",
        f"undecided only with others: {len(only)}: {', '.join(only) or 'none'}",
    ]


def unstable(found: Sequence[Mapping[str, Verdict]]) -> list[str]:
    """List the claims whose outcome differs between the sets although each set decides it."""
    lines = []
    for id in found[0]:
        outcomes = [verdicts[id].outcome for verdicts in found if id in verdicts]
        numbers = [verdicts[id].number for verdicts in found if id in verdicts]
        if len(set(outcomes)) > 1 and "undecided" not in outcomes:
            lines.append(f"{id}: {', '.join(outcomes)}")
        if len(set(numbers)) > 1 and "undecided" not in numbers:
            lines.append(f"{id}, published number: {', '.join(str(number) for number in numbers)}")
    return lines
