"""The outcomes of claims: by their condition, the direction of the effect, and whether the choice of seeds matters."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest

from reknit_study.papers import _claims, _scores, _stability, experiments, papers
from reknit_study.papers._claims import Claim, Verdict, judge
from reknit_study.papers._frame import DEFAULT, FULL, Paper, Result, Tier
from reknit_study.papers._lab import Lab

CLAIM = Claim(
    id="test-1",
    source="",
    paper="yang",
    experiments=("Y",),
    kind="simulation",
    statement="The cure is faster.",
    quantity="ratio",
    published="1.5",
    gate='m("Y","dsack_r","all","y") >= 1.1*m("Y","sack","all","y")',
    confidence="high",
    effect='m("Y","dsack_r","all","y")/m("Y","sack","all","y") - 1',
    measure=('m("Y","dsack_r","all","y")/m("Y","sack","all","y")',),
)
WEAK = replace(CLAIM, gate='m("Y","dsack_r","all","y") >= 0.5*m("Y","sack","all","y")', gate_weaker=True)


def verdict(claim: Claim, cured: list[float], units: dict[str, bool] | None = None) -> Verdict:
    """Judge a claim about a curve, next to one that is 1 with every seed."""
    rows = [
        {"variant": variant, "x": "all", "seed": seed, "y": y}
        for variant, values in (("sack", [1.0] * len(cured)), ("dsack_r", cured))
        for seed, y in enumerate(values, 1)
    ]
    return judge([claim], {"Y": Result(points=("all",), table=pl.DataFrame(rows), units=units or {})})[0]


STEADY = [1.5 + 0.01 * (i % 3) for i in range(5)]
NEAR = [0.85, 0.95, 0.9, 0.86, 0.95, 0.88, 0.92]
SPREAD = [0.4 + 1.2 * (i % 2) for i in range(20)]


@pytest.mark.parametrize(
    ("claim", "cured", "outcome"),
    [
        (CLAIM, STEADY, "reproduced"),
        (CLAIM, [1.05, 1.06, 1.05], "not reproduced"),
        (CLAIM, [0.9, 0.91, 0.9], "contradicted"),
        # The condition is met with some seeds only.
        (CLAIM, [1.5, 1.5, 0.5, 0.6, 1.5], "undecided"),
        (WEAK, STEADY, "reproduced"),
        (WEAK, [0.9, 1.1, 1.0, 0.95, 1.05], "not contradicted"),
        (WEAK, [0.9, 0.91, 0.9], "contradicted"),
        # So is one whose condition allows some of the opposite effect, and is met with some seeds only.
        (replace(CLAIM, gate='m("Y","dsack_r","all","y") >= 0.9*m("Y","sack","all","y")'), NEAR, "contradicted"),
        (WEAK, SPREAD, "not contradicted"),
        # Without a direction, a weak condition shows nothing unless the published value is met, too.
        (replace(WEAK, effect=None), STEADY, "not contradicted"),
        (replace(WEAK, effect=None, strict='m("Y","dsack_r","all","y") >= 1.4'), STEADY, "reproduced"),
        (
            replace(WEAK, effect=None, strict='m("Y","dsack_r","all","y") >= 1.4'),
            [1.35, 1.45, 1.42, 1.38, 1.44],
            "undecided",
        ),
        (replace(CLAIM, gate='m("Z","sack","all","y") > 1'), STEADY, "not evaluated"),
    ],
)
def test_outcomes(claim: Claim, cured: list[float], outcome: str) -> None:
    """Each outcome has its case."""
    assert verdict(claim, cured).outcome == outcome


def test_a_condition_that_is_met_without_an_effect_shows_nothing() -> None:
    """As 0 >= 0 does where the effect would be 0 / 0."""
    claim = replace(CLAIM, gate='m("Y","dsack_r","all","z") >= m("Y","sack","all","z")', strict="1 > 0")
    claim = replace(claim, effect='m("Y","dsack_r","all","z")/m("Y","sack","all","z") - 1', measure=())
    rows = [{"variant": variant, "x": "all", "seed": 1, "z": 0.0} for variant in ("sack", "dsack_r")]
    (found,) = judge([claim], {"Y": Result(points=("all",), table=pl.DataFrame(rows))})
    assert (found.outcome, found.number) == ("not evaluated", None)
    assert found.reason == "the effect: a denominator is zero"


def test_checks_pass_or_fail() -> None:
    """They are not counted with the simulated claims."""
    check = replace(CLAIM, kind="trace", gate='unit("rule")', effect=None, measure=())
    assert [verdict(check, [1.0], {"rule": held}).outcome for held in (True, False)] == ["passed", "failed"]
    counted = _scores.scores([verdict(check, [1.0], {"rule": True}), verdict(CLAIM, STEADY)])
    assert (counted.checks, counted.trends) == (Counter(passed=1), Counter(reproduced=1))
    assert counted.sentences == ["checks: 1 of 1 passed", "trends: 1 of 1 reproduced"]


def test_published_numbers_are_a_score_of_their_own() -> None:
    """A trend may be reproduced although the number is missed; an unstable number is undecided."""
    exact = replace(CLAIM, strict='1.4 <= m("Y","dsack_r","all","y") <= 1.6', confidence_strict="low")
    assert [verdict(exact, values).number for values in (STEADY, [2.0, 2.1, 2.0])] == ["met", "missed"]
    assert verdict(exact, [2.0, 2.1, 2.0]).outcome == "reproduced"
    unsure = verdict(exact, [1.2, 1.2, 1.7, 1.75, 1.3])
    assert (unsure.outcome, unsure.number) == ("reproduced", "undecided")
    assert unsure.depends_on_seeds


def test_a_narrow_miss_with_few_seeds_depends_on_them() -> None:
    """All seeds agree, but the condition is 1.1 times SACK: runs may be of two kinds, and these all of one."""
    narrow, clear = verdict(CLAIM, [1.05, 1.06, 1.05]), verdict(CLAIM, [0.9, 0.91, 0.9])
    assert (narrow.agreement, clear.agreement) == (1, 1)
    assert narrow.depends_on_seeds
    assert not clear.depends_on_seeds
    number = replace(CLAIM, strict='m("Y","dsack_r","all","y") >= 1.6*m("Y","sack","all","y")')
    assert verdict(number, STEADY).depends_on_seeds
    assert not verdict(CLAIM, STEADY).depends_on_seeds


def test_missed_numbers_are_counted_by_their_reason() -> None:
    """Each missed number is met under an interpretation, out of reach, or unexplained."""
    exact = replace(CLAIM, strict='m("Y","dsack_r","all","y") >= 2')
    missed = verdict(exact, STEADY)
    read = replace(missed, numbers={"other": True, "third": False})
    beyond = replace(missed, claim=replace(exact, out_of_reach=True))
    assert _scores.interpreted([verdict(CLAIM, STEADY), read, beyond, beyond, missed]) == (
        "Of the 4 published numbers that are missed or undecided, 1 would be met with an interpretation (an assumption "
        "that the paper does not state), 2 cannot be met by any value of what the papers leave open and 1 is "
        "unexplained."
    )
    assert "are missed or undecided, 1 would be met with an interpretation" in _scores.interpreted([read])
    assert "under one interpretation" in _scores.interpreted([missed], were_run=False)


def test_numbers_met_only_against_the_paper_are_counted_apart() -> None:
    """An interpretation that contradicts the paper excuses nothing; another one that fills a gap may."""
    strict = 'm("Y5.1","dsack_r","50%","y") >= 2'
    missed = replace(verdict(replace(CLAIM, strict='m("Y","dsack_r","all","y") >= 2'), STEADY), claim=yang(strict))
    rare, both = (
        replace(missed, numbers={"rare": True, "tick": False}),
        replace(missed, numbers={"rare": True, "tick": True}),
    )
    assert [_scores.contradicts(missed.claim, name) for name in ("rare", "tick")] == [True, False]
    assert _scores.interpreted([rare, both, missed]) == (
        "Of the 3 published numbers that are missed or undecided, 1 would be met with an interpretation (an assumption "
        "that the paper does not state), 1 only with one that contradicts what the paper states and 1 is unexplained."
    )
    # Another paper may have an interpretation of the same name, which contradicts nothing.
    assert _scores.contradicts(missed.claim, "in-order")
    assert not _scores.contradicts(
        replace(CLAIM, gate='m("R14","sack","0","y") > 1', effect=None, measure=()), "in-order"
    )


def yang(strict: str) -> Claim:
    """Make a claim about an experiment of Yang's thesis."""
    return replace(CLAIM, gate=strict, strict=strict, effect=None, measure=())


def test_interpretations_against_a_paper_are_known() -> None:
    """Those of each paper that contradict what it states; all others fill a gap."""
    found = {
        (experiment.paper, name)
        for experiment in experiments().values()
        for name in experiment.readings
        if experiment.contradicts(name)
    }
    yang = {"rare", "one-way", "one-way-rarer", "in-order", "alternate"}
    rr_tcp = {"unrestored", "seldom-restored", "fewer-losses", "short-queue", "more-bursts"}
    assert found == {
        *(("yang", name) for name in yang),
        *(("rr-tcp", name) for name in rr_tcp),
        *(("frto", name) for name in ("short-delay", "rfc6675-short-delay")),
        ("survey", "rr-tcp-avg"),
    }


def test_more_seeds_for_what_depends_on_them() -> None:
    """Experiments that are asked to go deeper get 20 seeds, and so do those that show their runs."""
    found = run_twice(Tier("default", duration=0.1, seeds=2, points=None))
    assert found == {"A": (2, 20), "B": (2, 20), "C": (2, 2)}


def run_twice(tier: Tier) -> dict[str, tuple[int, int]]:
    """Run three experiments, then again with more seeds for B, which shows the runs of A."""
    paper = Paper("test", "", "")

    def sweep(lab: Lab) -> Result:
        return lab.sweep(lambda _: {}, ["all"], ["sack"], duration_s=1, seeds=5)

    for id, body in (("A", sweep), ("B", lambda lab: lab.result("A")), ("C", sweep)):
        paper.experiment(id, figure="", title="", reports="")(body)
    lab = Lab([paper], tier, dry=True)
    first = lab.run("ABC")
    lab.deepen(["B"])
    then = lab.run("ABC")
    return {id: (first[id].table["seed"].n_unique(), then[id].table["seed"].n_unique()) for id in "ABC"}


@pytest.mark.parametrize(
    ("tier", "more_seeds", "seeds"),
    [
        (DEFAULT, None, [80, 80]),
        (DEFAULT, ["test"], [80, 80]),
        (DEFAULT, ["A"], [80, 2]),
        (DEFAULT, [], [2, 2]),
        (FULL, None, [20, 20]),
    ],
)
def test_more_seeds_only_where_asked(
    monkeypatch: pytest.MonkeyPatch, tier: Tier, more_seeds: list[str] | None, seeds: list[int]
) -> None:
    """For all papers and experiments by default, or for some of them, or for none.

    What is still undecided with 20 seeds gets 80, except at the full tier.
    """
    paper = Paper("test", "", "")
    for id in "AB":
        paper.experiment(id, figure="", title="", reports="")(noisy)
    about = [
        replace(CLAIM, id=id, experiments=(id,), gate=CLAIM.gate.replace('"Y"', f'"{id}"'), effect=None, measure=())
        for id in "AB"
    ]
    monkeypatch.setattr(_stability, "claims", lambda: about)
    lab = Lab([paper], tier, more_seeds=more_seeds)
    assert [verdict.seeds for verdict in _stability.decided(lab, ["A", "B"])] == seeds


def noisy(lab: Lab) -> Result:
    """Make a result whose condition is met with every second seed."""
    rows = [
        {"variant": variant, "x": "all", "seed": seed, "y": y}
        for seed in range(1, 1 + lab.enough(2))
        for variant, y in (("sack", 1.0), ("dsack_r", 0.4 + 1.2 * (seed % 2)))
    ]
    return Result(points=("all",), table=pl.DataFrame(rows))


def test_some_experiments_at_the_full_tier() -> None:
    """Those of the papers and experiments that are named, and only those; a figure follows the runs that it shows."""
    paper = Paper("test", "", "")

    def sweep(lab: Lab) -> Result:
        return lab.sweep(lambda _: {}, [0, 1, 2, 3, 4, 5], ["sack"], duration_s=1000, seeds=30)

    for id, body in (("A", sweep), ("B", lambda lab: lab.result("A")), ("C", sweep), ("D", lambda _: Result())):
        paper.experiment(id, figure="", title="", reports="")(body)
    for full_for, whole in (((), "D"), (["A"], "ABD"), (["test"], "ABCD")):
        lab = Lab([paper], DEFAULT, dry=True, full_for=full_for)
        lab.run("ABCD")
        assert "".join(filter(lab.is_whole, "ABCD")) == whole
        assert lab.tier == lab.base == DEFAULT


def test_sets_of_seeds_are_disjoint() -> None:
    """The first seed of each set is more than any set's number of seeds after that of the one before."""
    assert min(b - a for a, b in pairwise(_stability.FIRST_SEEDS)) >= 1000
    first = _stability.FIRST_SEEDS[1]
    lab = Lab(papers().values(), DEFAULT, dry=True, first_seed=first)
    assert sorted(lab.result("S7/50").table["seed"].unique()) == [first, first + 1, first + 2]


@pytest.mark.parametrize("times", [1.0, 2.0])
def test_other_lengths_change_all_runs_but_whole_transfers(times: float) -> None:
    """Also those with the paper's duration in every tier; transfers end by themselves."""
    paper = Paper("test", "", "")

    def sweep(lab: Lab) -> Result:
        one = {"duration_s": 1000.0, "seeds": 1}
        shortened = lab.sweep(lambda _: {}, ["all"], ["sack"], **one)
        return (
            shortened
            | lab.sweep(lambda _: {}, ["all"], ["sack"], whole=True, **one)
            | lab.sweep(lambda _: {}, ["all"], ["sack"], whole=True, duration_s=20_000, seeds=1)
        )

    paper.experiment("A", figure="", title="", reports="")(sweep)
    lab = Lab([paper], replace(DEFAULT, duration=DEFAULT.duration * times), dry=True, times=times)
    lab.result("A")
    assert [seconds for _, _, seconds in lab.planned] == [1000 * times, 1000 * times, 20_000]


def test_unstable_outcomes_are_named() -> None:
    """Only those that differ although every set decides them."""
    sure, other = verdict(CLAIM, STEADY), verdict(CLAIM, [0.9, 0.91, 0.9])
    unsure = verdict(CLAIM, [1.5, 1.5, 0.5, 0.6, 1.5])
    assert _stability.unstable([{"a": sure}, {"a": sure}]) == []
    assert _stability.unstable([{"a": sure}, {"a": unsure}]) == []
    assert _stability.unstable([{"a": sure}, {"a": other}]) == ["a: reproduced, contradicted"]
    assert _stability.undecided({"seeds from 1": {"a": sure, "b": unsure}, "others": {"a": unsure, "b": sure}}) == [
        "undecided with seeds from 1: 1: b",
        "undecided only with others: 1: a",
    ]


def test_an_effect_is_about_what_its_claim_is_about() -> None:
    """It compares curves of the experiments that the condition looks at."""
    for claim in _claims.claims():
        if claim.effect is not None:
            assert not claim.is_check, claim.id
            effect, gate = _claims.looked_up(claim.effect), _claims.looked_up(claim.gate)
            for kind in ("experiment", "variant", "metric"):
                assert effect[kind] and effect[kind] <= gate[kind], (claim.id, kind)


def test_what_meets_a_number_under_an_interpretation_is_measured() -> None:
    """The value is that of the runs under this interpretation; one that misses the number, too, has none."""
    exact = replace(CLAIM, strict='m("Y","dsack_r","all","y") >= 2')
    rows = {"Y": 1.5, "Y@other": 2.5, "Y@third": 1.7}
    results = {
        name: Result(
            points=("all",),
            table=pl.DataFrame({"variant": ["sack", "dsack_r"], "x": ["all"] * 2, "seed": [1, 1], "y": [1.0, cured]}),
        )
        for name, cured in rows.items()
    }
    (found,) = judge([exact], results)
    assert found.number == "missed"
    assert found.numbers == {"other": True}
    assert {reading: [one.least.value for one in values] for reading, values in found.met_by.items()} == {
        "other": [2.5]
    }
