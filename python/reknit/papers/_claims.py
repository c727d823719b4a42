"""The claims of the papers, and whether our results reproduce them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from reknit.papers import _statistics
from reknit.papers._frame import Point, Result
from reknit.papers._vocabulary import Evidence, NotEvaluatedError, parse

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Confidence = Literal["high", "medium", "low"]
Outcome = Literal["reproduced", "not reproduced", "not evaluated"]


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
    measure: tuple[str, ...] = ()
    explanation: str | None = None

    @property
    def expressions(self) -> list[str]:
        """All expressions of the claim."""
        return [self.gate, *([self.strict] if self.strict else []), *self.measure]


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
        reproduced, not reproduced or not evaluated, according to the gate.
    reason : str
        What was missing, if the claim was not evaluated.
    strict : bool or None
        Whether the published value was matched, too; None if there is no such condition or it was not evaluated.
    measured : tuple of Measured
        A value for each measure; empty if the claim was not evaluated.
    seeds : int
        Number of seeds.
    readings : dict of str to str
        The outcome under each other interpretation of the paper.
    """

    claim: Claim
    outcome: Outcome
    reason: str
    strict: bool | None
    measured: tuple[Measured, ...]
    seeds: int
    readings: dict[str, Outcome]


def claims() -> list[Claim]:
    """Read all claims, with their explanations."""
    folder = files("reknit.papers")
    document = tomllib.loads((folder / "claims.toml").read_text("utf-8"))
    why = tomllib.loads((folder / "explanations.toml").read_text("utf-8"))["explanations"]
    lists = ("experiments", "measure")
    found = []
    for entry in document["claim"]:
        fields: dict[str, Any] = {name: tuple(value) if name in lists else value for name, value in entry.items()}
        found.append(Claim(**fields, explanation=why.get(entry["id"])))
    if unknown := sorted(set(why) - {claim.id for claim in found}):
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
        named = {id for expression in claim.expressions for id in looked_up(expression)["experiment"]}
        concerned = {r: e for r, e in others.items() if any(f"{id}@{r}" in results for id in named)}
        verdicts.append(_judge(claim, evidence, concerned, named))
    return verdicts


def _judge(claim: Claim, evidence: Evidence, others: Mapping[str, Evidence], named: set[str]) -> Verdict:
    outcome, reason = _outcome(claim.gate, evidence)
    strict = None if claim.strict is None else _outcome(claim.strict, evidence)[0]
    seeds = evidence.seeds(named)
    return Verdict(
        claim,
        outcome,
        reason,
        None if strict in (None, "not evaluated") else strict == "reproduced",
        _measure(claim, evidence, seeds, named) if outcome != "not evaluated" else (),
        len(seeds),
        {reading: _outcome(claim.gate, other)[0] for reading, other in others.items()},
    )


def _outcome(predicate: str, evidence: Evidence) -> tuple[Outcome, str]:
    try:
        return ("reproduced" if evidence.judge(predicate) else "not reproduced"), ""
    except NotEvaluatedError as missing:
        return "not evaluated", str(missing)


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
