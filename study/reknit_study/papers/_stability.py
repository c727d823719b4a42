"""``reknit papers stability``: whether verdicts depend on the choice of seeds, or on the length of the runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from reknit_study.papers import papers
from reknit_study.papers._claims import Verdict, claims, judge
from reknit_study.papers._frame import Tier
from reknit_study.papers._lab import Lab
from reknit_study.papers._scores import scores

FIRST_SEEDS = (1, 1001, 2001, 3001)
"""The first seed of each set; they are disjoint, because no experiment gets more than 1000 seeds."""

LENGTHS = {Fraction(1, 3): "a third as long", Fraction(2): "twice as long"}
"""Other lengths of the runs, relative to those of the tier, with the first set of seeds."""

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
    tier: Tier,
    ids: Sequence[str],
    store: Path,
    told: Callable[[str], object],
    more_seeds: Collection[str] | None = None,
) -> tuple[list[str], list[str]]:
    """Judge with four disjoint sets of seeds, and with runs of other lengths.

    Returns
    -------
    tuple of list of str
        Lines for each set and length, and for what is called undecided; and a line for each claim whose outcome differs
        without being called undecided in any of them.
    """
    runs = [(f"seeds from {first}", first, Fraction(1)) for first in FIRST_SEEDS]
    runs += [(f"seeds from {FIRST_SEEDS[0]}, {told}", FIRST_SEEDS[0], times) for times, told in LENGTHS.items()]
    found: list[dict[str, Verdict]] = []
    lines = []
    for name, first, times in runs:
        with Lab(
            papers().values(),
            replace(tier, duration=tier.duration * float(times)),
            store,
            told=told,
            first_seed=first,
            more_seeds=more_seeds,
            interpret=False,
            times=float(times),
        ) as lab:
            verdicts = [verdict for verdict in decided(lab, ids) if verdict.outcome != "not evaluated"]
        found.append({verdict.claim.id: verdict for verdict in verdicts})
        lines.append(f"{name}: " + "; ".join(scores(verdicts).sentences))
    seeds, lengths = found[: len(FIRST_SEEDS)], [found[0], *found[len(FIRST_SEEDS) :]]
    by_length = [f"{line} (by length)" for line in unstable(lengths)]
    return [*lines, *undecided(seeds)], [*unstable(seeds), *by_length]


def undecided(found: Sequence[Mapping[str, Verdict]]) -> list[str]:
    """List the claims that are called undecided, with the first set of seeds and with others only."""
    sets = [[id for id, verdict in verdicts.items() if verdict.is_undecided] for verdicts in found]
    others = dict.fromkeys(id for ids in sets[1:] for id in ids if id not in sets[0])
    return [
        f"undecided with seeds from {FIRST_SEEDS[0]}: {len(sets[0])}: {', '.join(sets[0]) or 'none'}",
        f"undecided only with others: {len(others)}: {', '.join(others) or 'none'}",
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
