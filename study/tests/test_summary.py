"""The summary in Markdown: what is missed and why, and the outcomes of both tiers."""

from dataclasses import replace
from pathlib import Path

from reknit_study.papers import _claims, _report, _summary, papers
from reknit_study.papers._claims import Measured, Verdict
from reknit_study.papers._frame import DEFAULT, FULL, QUICK
from reknit_study.papers._lab import Lab
from reknit_study.papers._statistics import Interval

BY_ID = {claim.id: claim for claim in _claims.claims()}


def measured(value: float) -> tuple[Measured, ...]:
    """Make the value of a measure, without an interval."""
    interval = Interval(value, None, None)
    return (Measured(interval, interval, 1),)


def verdict(id: str, outcome: _claims.Outcome, number: _claims.Number | None, value: float) -> Verdict:
    """Make an outcome from five seeds."""
    return Verdict(BY_ID[id], outcome, "", number, 0.0, None, 1.0, False, measured(value), 5, {}, {})


MISSED = replace(verdict("yang-5.1-1", "reproduced", "missed", 0.25), met_by={"rare": measured(0.5)})
BEYOND = verdict("yang-5.7-2", "reproduced", "missed", 1.75)
FAILED = verdict("rr-fig10-1", "contradicted", None, 0.125)


def written(folder: Path, lab: Lab, verdicts: list[Verdict], reduced: list[Verdict]) -> str:
    """Write a summary without results."""
    _summary.write(folder, lab, {}, verdicts, None, reduced)
    return (folder / "results.md").read_text("utf-8")


def test_a_missed_number_has_its_values_and_its_reason(tmp_path: Path) -> None:
    """The table shows what would give it; the section says what that means, and why it is missed."""
    text = written(tmp_path, Lab(papers().values(), dry=True), [MISSED, BEYOND, FAILED], [])
    assert (
        f"| [yang-5.1-1](#yang-51-1) | {BY_ID['yang-5.1-1'].published} | 0.250 | `rare`, against the paper (0.500) |"
        in text
    )
    assert "| 1.75 | nothing: out of reach |" in text
    assert (
        "* **Would be met with** `rare`, against the paper: one of 250 packets takes the path with the longer" in text
    )
    first, *more = BY_ID["yang-5.1-1"].reasons
    assert f"* **Why:** {first}" in text
    assert all(part in text.partition("<details>")[2] for part in more)
    other = text.partition("## Other claims that are not reproduced")[2]
    assert "### rr-fig10-1" in other
    assert "yang-5" not in other
    assert "full tier" not in text


def test_both_tiers_are_listed(tmp_path: Path) -> None:
    """The scores of each, and the claims whose outcome differs, with the reason."""
    lab = Lab(papers().values(), DEFAULT, dry=True, full_for=["rr-tcp"])
    why = replace(FAILED.claim, why_full_differs="Runs are longer.")
    now = [MISSED, replace(FAILED, claim=why, outcome="reproduced", seeds=1, measured=measured(0.75))]
    text = written(tmp_path, lab, now, [MISSED, FAILED, BEYOND])
    assert "`reknit papers --full-for rr-tcp --summary study/results/papers`" in text
    assert "| trends | 1 of 2 reproduced, 1 contradicted | 2 of 2 reproduced |" in text
    differences = text.partition("## Differences between the default and the full tier")[2]
    told = "| rr-fig10-1 | contradicted, 5 seeds: 0.125 | reproduced, 1 seed: 0.750 | Runs are longer. |"
    assert told in differences
    assert "yang-5.1-1" not in differences.partition("## What was run")[0]


def test_what_was_reproduced_is_listed(tmp_path: Path) -> None:
    """The best-known result of each paper, the trends that are reproduced, and the counts of each variant."""
    known = verdict("yang-5.3-1", "reproduced", "met", 6.5)
    text = written(tmp_path, Lab(papers().values(), dry=True), [MISSED, known, FAILED], [])
    headlines = text.partition("## What each paper is known for")[2].partition("## Scores by paper")[0]
    assert f"| {BY_ID['yang-5.3-1'].published} | 6.50 | reproduced; number met |" in headlines
    title = papers()["yang"].title
    reproduced = text.partition("## What was reproduced")[2].partition("## What each variant")[0]
    assert f"{title}: 2 trends reproduced, 1 of their numbers met" in reproduced
    assert "rr-fig10-1" not in reproduced
    by_variant = text.partition("## What each variant reproduces")[2].partition("## Published numbers")[0]
    assert "/reno.md) | 2 of 2 | 1 of 2 | yang-5.1-1 |" in by_variant
    assert "/rr-ta.md) | 0 of 1 |  | rr-fig10-1 |" in by_variant


def test_explanations_are_only_beside_the_runs_that_they_explain() -> None:
    """They have the numbers of the default tier with the first seeds, and of claims that were evaluated."""
    missing = replace(MISSED, outcome="not evaluated")
    for lab, explained in (
        (Lab(papers().values(), DEFAULT, dry=True), True),
        (Lab(papers().values(), QUICK, dry=True), False),
        (Lab(papers().values(), FULL, dry=True), False),
        (Lab(papers().values(), DEFAULT, dry=True, first_seed=1001), False),
        (Lab(papers().values(), DEFAULT, dry=True, full_for=["yang"]), False),
    ):
        kept, none = _report.explained(lab, [MISSED, missing])
        assert bool(kept.claim.explanation) is explained
        assert none.claim.explanation is None
