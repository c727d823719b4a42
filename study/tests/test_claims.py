"""The claims as data: every name in them is defined."""

from collections import Counter

import pytest

from reknit_study.papers import _claims, _metrics, papers
from reknit_study.papers._labels import OFFICIAL, canonical, known
from reknit_study.papers._vocabulary import parse

CLAIMS = _claims.claims()


def named(kind: str) -> set[object]:
    """List all names of a kind in all claims."""
    return {
        name
        for claim in CLAIMS
        for text in claim.expressions
        for name in _claims.looked_up(text)[kind]
        if name != "all"
    }


def test_there_are_255_claims() -> None:
    """None is missing, and ids are unique."""
    assert len(CLAIMS) == 255
    assert max(Counter(claim.id for claim in CLAIMS).values()) == 1
    assert Counter(claim.paper for claim in CLAIMS) == {
        "yang": 52,
        "rr-tcp": 87,
        "frto": 46,
        "survey": 38,
        "laor-gendel": 32,
    }


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_expressions_are_in_the_language(claim: _claims.Claim) -> None:
    """Every expression of a claim can be evaluated."""
    for text in claim.expressions:
        parse(text)
    assert claim.kind in ("simulation", "trace", "unit", "analytic")
    assert claim.paper in papers()
    assert {claim.confidence, claim.confidence_strict} <= {"high", "medium", "low", None}
    assert (claim.strict is None) == (claim.confidence_strict is None)
    assert claim.measure or "unit(" in claim.gate


def test_experiments_are_known() -> None:
    """Each exists, or its paper lists it as pending."""
    there = {id for paper in papers().values() for id in {*paper.experiments, *paper.pending}}
    assert named("experiment") <= there
    assert {id for claim in CLAIMS for id in claim.experiments} <= there
    for paper in papers().values():
        assert not paper.pending & set(paper.experiments), f"{paper.name}: both pending and written"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_is_beside_the_experiments_that_it_uses(claim: _claims.Claim) -> None:
    """It lists each experiment that its expressions look up: the report shows it there."""
    assert claim.named <= set(claim.experiments)


def test_checks_are_known() -> None:
    """Each exists, or its paper lists it as pending; each belongs to an experiment."""
    for paper in papers().values():
        assert not paper.pending_units & set(paper.units), f"{paper.name}: both pending and written"
        assert {unit.experiment for unit in paper.units.values()} <= set(paper.experiments)
    assert named("unit") <= {name for paper in papers().values() for name in {*paper.units, *paper.pending_units}}


def test_variants_and_metrics_are_known() -> None:
    """Each label has a curve; each metric is computed from the columns of a run, or listed."""
    assert [label for label in named("variant") if not known(str(label))] == []
    assert named("metric") <= {*_metrics.METRICS, *_metrics.BY_EXPERIMENT}
    assert not set(_metrics.METRICS) & _metrics.BY_EXPERIMENT


def test_labels_have_variants(command: object) -> None:
    """The variant of each label exists in the package."""
    import reknit

    there = set(reknit.variants()["name"])
    for label, variant in OFFICIAL.items():
        assert label == canonical(label)
        assert (variant if isinstance(variant, str) else variant["base"]) in there, label


def test_reduced_axes_keep_the_points_of_claims() -> None:
    """Every point that a claim names is run in every tier, if it is on the axis."""
    from reknit_study.papers._frame import TIERS, key
    from reknit_study.papers._lab import Lab

    wanted = _claims.points_named(CLAIMS)
    for tier in TIERS.values():
        lab = Lab(papers().values(), tier, dry=True)
        for id in lab.experiments:
            found = lab.result(id)
            published, run = {key(x) for x in found.points}, set(found.table["x"]) if len(found.table) else set()
            lost = {key(point) for point in wanted.get(id, ())} & published - run
            assert not lost, f"{id} leaves out {lost} at the {tier.name} tier: add them to keep="
