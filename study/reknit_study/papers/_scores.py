"""Three scores of the verdicts: of checks, of trends and of published numbers. They measure different things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reknit_study.papers import experiments
from reknit_study.papers._claims import JUDGED, Claim, Verdict


@dataclass
class Scores:
    """How many claims of a paper have each outcome.

    Attributes
    ----------
    checks : Counter
        Checks of the algorithms' rules: passed, failed.
    trends : Counter
        Simulated claims by outcome.
    numbers : Counter
        Published values: met, missed, undecided.
    missing : int
        Claims that were not evaluated.
    """

    checks: Counter[str] = field(default_factory=Counter)
    trends: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    def count(self, verdict: Verdict) -> None:
        """Count a verdict."""
        if verdict.outcome == "not evaluated":
            self.missing += 1
            return
        (self.checks if verdict.claim.is_check else self.trends)[verdict.outcome] += 1
        if verdict.number is not None:
            self.numbers[verdict.number] += 1

    @property
    def sentences(self) -> list[str]:
        """Say each score in a sentence."""
        told = []
        if self.checks:
            told.append(f"checks: {self.checks['passed']} of {self.checks.total()} passed")
        if self.trends:
            rest = ", ".join(f"{self.trends[name]} {name}" for name in JUDGED[1:] if self.trends[name])
            told.append(
                f"trends: {self.trends['reproduced']} of {self.trends.total()} reproduced"
                + (f", {rest}" if rest else "")
            )
        if self.numbers:
            unsure = f", {self.numbers['undecided']} undecided" if self.numbers["undecided"] else ""
            told.append(f"published numbers: {self.numbers['met']} of {self.numbers.total()} met{unsure}")
        return told


def scores(verdicts: Iterable[Verdict]) -> Scores:
    """Count verdicts."""
    found = Scores()
    for verdict in verdicts:
        found.count(verdict)
    return found


def contradicts(claim: Claim, reading: str) -> bool:
    """Return whether an interpretation contradicts what the claim's paper states about its experiments."""
    there = experiments()
    return any(there[id].contradicts(reading) for id in claim.named if id in there)


def interpreted(verdicts: Iterable[Verdict], *, were_run: bool = True) -> str:
    """Say why published numbers are not met: another interpretation of the paper would meet them, or none can."""
    other = [verdict for verdict in verdicts if verdict.number in ("missed", "undecided")]
    if not other:
        return "No published number is missed or undecided."
    if not were_run:
        return f"The {len(other)} that are missed or undecided were run under one interpretation of the papers only."
    read = [verdict for verdict in other if _is_met_by(verdict, contradicting=False)]
    against = [verdict for verdict in other if verdict not in read and _is_met_by(verdict, contradicting=True)]
    rest = [verdict for verdict in other if verdict not in (*read, *against)]
    beyond = sum(verdict.claim.out_of_reach for verdict in rest)
    mostly = sum(not verdict.claim.out_of_reach and (verdict.number_share or 0) >= 0.5 for verdict in rest)
    told = [
        f"{len(read)} would be met with an interpretation (an assumption that the paper does not state)",
        *([f"{len(against)} only with one that contradicts what the paper states"] if against else []),
        *([f"{_are(mostly)} met in most resamples of the seeds"] if mostly else []),
        *([f"{beyond} cannot be met by any value of what the papers leave open"] if beyond else []),
        *([f"{_are(left)} unexplained"] if (left := len(rest) - beyond - mostly) else []),
    ]
    listed = ", ".join(told[:-1]) + " and " * (len(told) > 1) + told[-1]
    return f"Of the {len(other)} published numbers that are missed or undecided, {listed}."


def _is_met_by(verdict: Verdict, *, contradicting: bool) -> bool:
    """Return whether an interpretation that does, or does not, contradict the paper meets the published number."""
    return any(met and contradicts(verdict.claim, name) == contradicting for name, met in verdict.numbers.items())


def _are(count: int) -> str:
    return f"{count} is" if count == 1 else f"{count} are"


def by_paper(verdicts: Sequence[Verdict], papers: Iterable[str]) -> Mapping[str, Scores]:
    """Count the verdicts of each paper that has some; ``all`` has those of all papers."""
    about = {paper: [verdict for verdict in verdicts if verdict.claim.paper == paper] for paper in papers}
    return {**{paper: scores(mine) for paper, mine in about.items() if mine}, "all": scores(verdicts)}


def summary(verdicts: Sequence[Verdict]) -> str:
    """Say the three scores, a line for each."""
    found = scores(verdicts)
    missing = [f"not evaluated: {found.missing}"] if found.missing else []
    return "\n".join([*found.sentences, *missing]) or "no claims were evaluated"
