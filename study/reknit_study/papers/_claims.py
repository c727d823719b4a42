"""The claims of the papers, and whether our results reproduce them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from reknit_study.papers import _statistics
from reknit_study.papers._frame import Point, Result
from reknit_study.papers._vocabulary import Evidence, NotEvaluatedError, parse

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Confidence = Literal["high", "medium", "low"]
Outcome = Literal[
    "passed", "failed", "reproduced", "not contradicted", "undecided", "not reproduced", "contradicted", "not evaluated"
]
CHECKED: tuple[Outcome, ...] = ("passed", "failed")
JUDGED: tuple[Outcome, ...] = ("reproduced", "not contradicted", "undecided", "not reproduced", "contradicted")
Number = Literal["met", "missed", "undecided"]
AGREEMENT = 0.95
"""The fraction of resamples of the seeds that must give the same outcome."""
CLOSE = 0.1
"""If a curve that is this fraction higher or lower changes an answer, few seeds do not decide it: runs may be of
several kinds, and all of a few of the same kind."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, with the fields of claims.toml, which describes them."""

    id: str
    source: str
    paper: str
    experiments: tuple[str, ...]
    kind: str
    statement: str
    quantity: str
    published: str
    gate: str
    confidence: Confidence
    strict: str | None = None
    confidence_strict: Confidence | None = None
    gate_weaker: bool = False
    effect: str | None = None
    measure: tuple[str, ...] = ()
    explanation: str | None = None
    out_of_reach: bool = False
    """Whether no value of what the paper leaves open gives the published number; the explanation says why."""
    why_full_differs: str | None = None
    """Why its outcome at the full tier differs from that at the default tier."""

    @property
    def reasons(self) -> list[str]:
        """The paragraphs of the explanation; the first one says the most important."""
        return [part.strip() for part in (self.explanation or "").split("\n\n") if part.strip()]

    @property
    def named(self) -> set[str]:
        """The experiments that its expressions look up."""
        return {id for expression in self.expressions for id in looked_up(expression)["experiment"]}

    @property
    def is_check(self) -> bool:
        """Whether it is about the algorithm itself, and checked on scripted packets or formulas."""
        return self.kind in ("unit", "analytic") or "unit(" in self.gate

    @property
    def expressions(self) -> list[str]:
        """All expressions of the claim."""
        return [self.gate, *(text for text in (self.strict, self.effect) if text), *self.measure]


@dataclass(frozen=True)
class Measured:
    """The value of one measure of a claim: a number, or the smallest and the largest of several."""

    least: _statistics.Interval
    largest: _statistics.Interval
    count: int


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim.

    Attributes
    ----------
    outcome : str
        For checks: passed or failed. For the others:

        - reproduced: the condition is met, and if the claim has a direction, the effect has it significantly;
        - not contradicted: only a condition that is weaker than the claim is met;
        - contradicted: the effect is opposite, significantly, whether or not the condition allows it;
        - undecided: the answer to the condition depends on the choice of seeds, or the condition is weaker than the
          claim and whether the published value is met depends on it;
        - not reproduced: otherwise.
    reason : str
        What was missing, if the claim was not evaluated.
    number : str or None
        Whether the published value is met; None if there is none or it was not evaluated.
    number_share : float or None
        The fraction of resamples of the seeds that meet the published value; None if there is one seed only.
    effect : Interval or None
        The effect in the direction of the claim.
    agreement : float or None
        The fraction of resamples of the seeds that give the same answer to the condition, and to whether the published
        value is met; the smaller of both.
    is_close : bool
        Whether the answer to the condition, or to whether the published value is met, changes if a curve is 10 % higher
        or lower.
    measured : tuple of Measured
        A value for each measure; empty if the claim was not evaluated.
    seeds : int
        Number of seeds.
    readings : dict of str to str
        Other interpretations of the paper that change the answer to the condition: met or not met.
    numbers : dict of str to bool
        Other interpretations that change whether the published value is met.
    met_by : dict of str to tuple of Measured
        The values of the measures under those that meet it.
    near : tuple of str
        Other interpretations that meet the published value; if none does, those that would with a curve that is 10 %
        higher or lower.
    """

    claim: Claim
    outcome: Outcome
    reason: str
    number: Number | None
    number_share: float | None
    effect: _statistics.Interval | None
    agreement: float | None
    is_close: bool
    measured: tuple[Measured, ...]
    seeds: int
    readings: dict[str, str]
    numbers: dict[str, bool]
    met_by: dict[str, tuple[Measured, ...]] = field(default_factory=dict)
    near: tuple[str, ...] = ()

    @property
    def depends_on_seeds(self) -> bool:
        """Whether some resample of the seeds gives another answer, or other seeds are likely to."""
        return self.agreement is not None and (self.agreement < 1 or self.is_close)

    @property
    def is_undecided(self) -> bool:
        """Whether the outcome or the published number is undecided."""
        return "undecided" in (self.outcome, self.number)


def claims() -> list[Claim]:
    """Read all claims, with their explanations."""
    folder = files("reknit_study.papers")
    document = tomllib.loads((folder / "claims.toml").read_text("utf-8"))
    why = tomllib.loads((folder / "explanations.toml").read_text("utf-8"))
    explanations, out_of_reach, full = why["explanations"], why["out_of_reach"], why["full"]
    lists = ("experiments", "measure")
    found = []
    for entry in document["claim"]:
        fields: dict[str, Any] = {name: tuple(value) if name in lists else value for name, value in entry.items()}
        id = entry["id"]
        reasons = {"explanation": explanations.get(id), "why_full_differs": full.get(id)}
        found.append(Claim(**fields, **reasons, out_of_reach=id in out_of_reach))
    if unknown := sorted({*explanations, *out_of_reach, *full} - {claim.id for claim in found}):
        raise ValueError(f"explanations.toml: {', '.join(unknown)}: no such claim")
    return found


def judge(all_claims: Iterable[Claim], results: Mapping[str, Result]) -> list[Verdict]:
    """Evaluate claims on results; those of other interpretations are named ``id@reading``."""
    evidence = Evidence({id: result for id, result in results.items() if "@" not in id})
    others: dict[str, Evidence] = {}
    for reading in sorted({id.split("@", 1)[1] for id in results if "@" in id}):
        read = {id.split("@", 1)[0]: result for id, result in results.items() if id.endswith(f"@{reading}")}
        others[reading] = Evidence({**{id: r for id, r in results.items() if "@" not in id}, **read})
    verdicts = []
    for claim in all_claims:
        named = claim.named
        concerned = {r: e for r, e in others.items() if any(f"{id}@{r}" in results for id in named)}
        verdicts.append(_judge(claim, evidence, concerned, named))
    return verdicts


def _judge(claim: Claim, evidence: Evidence, others: Mapping[str, Evidence], named: set[str]) -> Verdict:
    met, reason = _is_met(claim.gate, evidence)
    seeds = evidence.seeds(named)
    strict = None if claim.strict is None or met is None else _is_met(claim.strict, evidence)[0]
    agreement = lowest = _agreement(claim.gate, met, evidence, seeds)
    effect, missing = _effect(claim, evidence, seeds, named) if met is not None and claim.effect else (None, "")
    if met and missing:
        # A condition that is met although there is no effect, such as 0 >= 0, shows nothing.
        met, reason, strict = None, f"the effect: {missing}", None
    number: Number | None = None
    share: float | None = None
    if claim.strict is not None and strict is not None:
        number = "met" if strict else "missed"
        stable = _agreement(claim.strict, strict, evidence, seeds)
        if stable is not None:
            lowest = min(stable, 1.0 if lowest is None else lowest)
            share = stable if strict else 1 - stable
            number = number if stable >= AGREEMENT else "undecided"
    read = {reading: _is_met(claim.gate, other)[0] for reading, other in others.items()}
    exact = {reading: _is_met(claim.strict, other)[0] for reading, other in others.items()} if claim.strict else {}
    return Verdict(
        claim,
        _outcome(claim, met, number, effect, agreement),
        reason,
        number,
        share,
        effect,
        lowest,
        any(_is_close(text, is_met, evidence) for text, is_met in ((claim.gate, met), (claim.strict, strict))),
        _measure(claim, evidence, seeds, named) if met is not None else (),
        len(seeds),
        {reading: "met" if it else "not met" for reading, it in read.items() if it is not None and it != met},
        {reading: it for reading, it in exact.items() if it is not None and it != strict},
        {
            reading: _measure(claim, others[reading], others[reading].seeds(named), named)
            for reading, it in exact.items()
            if it and not strict
        },
        tuple(reading for reading, it in exact.items() if it)
        or tuple(reading for reading, it in exact.items() if _is_close(claim.strict, it, others[reading])),
    )


def _outcome(
    claim: Claim, met: bool | None, number: Number | None, effect: _statistics.Interval | None, agreement: float | None
) -> Outcome:
    if met is None:
        return "not evaluated"
    if claim.is_check:
        return "passed" if met else "failed"
    if effect is not None and effect.high is not None and effect.high < 0:
        return "contradicted"
    if agreement is not None and agreement < AGREEMENT:
        return "undecided"
    if not met:
        return "not reproduced"
    has_direction = effect is not None and (effect.low is None or effect.low > 0)
    if claim.gate_weaker and not has_direction:
        by_number: dict[Number | None, Outcome] = {"met": "reproduced", "undecided": "undecided"}
        return by_number.get(number, "not contradicted")
    return "reproduced" if effect is None or has_direction else "not contradicted"


def _is_met(predicate: str, evidence: Evidence) -> tuple[bool | None, str]:
    try:
        return bool(evidence.judge(predicate)), ""
    except NotEvaluatedError as missing:
        return None, str(missing)


def _agreement(predicate: str, met: bool | None, evidence: Evidence, seeds: Sequence[int]) -> float | None:
    """Compute the fraction of resamples of the seeds in which the condition has the same answer."""
    if met is None or len(seeds) < 2 or "unit(" in predicate:
        return None
    same = 0
    draws = _statistics.resamples(seeds)
    for weights in draws:
        try:
            same += bool(evidence.weighted(weights).judge(predicate)) == met
        except NotEvaluatedError:
            same += not met
    return same / len(draws)


def _is_close(predicate: str | None, met: bool | None, evidence: Evidence) -> bool:
    """Return whether the condition has another answer if a curve is a little higher or lower."""
    if predicate is None or met is None:
        return False
    variants = looked_up(predicate)["variant"]
    nearby = [evidence.scaled(variant, factor) for variant in variants for factor in (1 - CLOSE, 1 + CLOSE)]
    return any(_is_met(predicate, other)[0] != met for other in nearby)


def _effect(
    claim: Claim, evidence: Evidence, seeds: Sequence[int], named: set[str]
) -> tuple[_statistics.Interval | None, str]:
    """Compute the effect in the direction of the claim, with its interval; or what was missing for it."""
    expression = claim.effect or ""
    spread = _statistics.bootstrap if any(id.startswith("F") for id in named) else _statistics.jackknife
    try:
        return spread(lambda weights: _flat(evidence.weighted(weights).judge(expression)), seeds)[0], ""
    except NotEvaluatedError as missing:
        return None, str(missing)


def _measure(claim: Claim, evidence: Evidence, seeds: Sequence[int], named: set[str]) -> tuple[Measured, ...]:
    medians = any(id.startswith("F") for id in named)
    spread = _statistics.bootstrap if medians else _statistics.jackknife
    found = []
    for expression in claim.measure:

        def values(weights: Mapping[int, int] | None, expression: str = expression) -> list[float]:
            return _flat(evidence.weighted(weights).judge(expression))

        try:
            numbers = spread(values, [] if "pval(" in expression else seeds)
        except NotEvaluatedError:
            # The gate may be evaluated without this value, by short-circuit.
            continue
        ranked = sorted(numbers, key=lambda interval: interval.value)
        found.append(Measured(ranked[0], ranked[-1], len(ranked)))
    return tuple(found)


def _flat(value: Any) -> list[float]:  # noqa: ANN401
    if isinstance(value, list | tuple):
        return [number for part in value for number in _flat(part)]
    return [float(value)]


_PLACES: dict[str, tuple[str, ...]] = {
    "m": ("experiment", "variant", "point", "metric"),
    "S": ("experiment", "variant", "metric"),
    "X": ("experiment",),
    "tr": ("experiment", "variant", "field"),
    "unit": ("unit",),
    "best": ("experiment", "variant", "point", "metric"),
    "knee": ("experiment", "variant", "metric"),
    "slope_dec": ("experiment", "variant", "metric", "point", "point"),
    "argmax_x": ("experiment", "variant", "metric"),
    "pval": ("experiment", "variant", "variant", "point", "metric"),
}


def looked_up(expression: str) -> dict[str, set[Any]]:
    """List the names in an expression: experiments, variants, points, metrics, fields, checks.

    The variable of a comprehension counts as all values that it takes.
    """
    tree = parse(expression)
    found: dict[str, set[Any]] = {kind: set() for kinds in _PLACES.values() for kind in kinds}
    ranges: dict[str, set[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
            ranges.setdefault(node.target.id, set()).update(_constants(node.iter, {}))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            # `X` lists points; its argument is an experiment.
            for kind, argument in zip(_PLACES.get(node.func.id, ()), node.args, strict=False):
                found[kind] |= _constants(argument, ranges)
    return found


def curves(claim: Claim) -> set[str]:
    """List the curves that a claim is about."""
    return {label for expression in claim.expressions for label in looked_up(expression)["variant"]}


def _constants(node: ast.AST, ranges: Mapping[str, set[Any]]) -> set[Any]:
    if isinstance(node, ast.Constant):
        return {node.value}
    if isinstance(node, ast.Name):
        return set(ranges.get(node.id, ()))
    if isinstance(node, ast.List):
        return {value for part in node.elts for value in _constants(part, ranges)}
    return set()


def points_named(all_claims: Iterable[Claim]) -> dict[str, set[Point]]:
    """List the points that claims name, by experiment, which reduced tiers must keep."""
    named: dict[str, set[Point]] = {}
    for claim in all_claims:
        for node in ast.walk(parse(claim.gate)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("m", "best"):
                experiments, points = _constants(node.args[0], {}), _constants(node.args[2], {})
                for id in experiments:
                    named.setdefault(id, set()).update(points - {"all"})
    return named
