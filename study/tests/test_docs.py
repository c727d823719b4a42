"""The pages about the papers agree with each other."""

import re
from pathlib import Path

from reknit_study.papers import _claims, experiments

DOCS = Path(__file__).parents[2]


def test_the_readme_has_the_recorded_scores() -> None:
    """The README of the study repeats the three scores of results/papers/results.md."""
    results = (DOCS / "study/results/papers/results.md").read_text("utf-8")
    scores = [line.removeprefix("* ") for line in results.splitlines() if line.startswith("* ")][:3]
    assert [score.partition(":")[0] for score in scores] == ["checks", "trends", "published numbers"]
    readme = (DOCS / "study/README.md").read_text("utf-8")
    for score in scores:
        assert score.replace(":", ",", 1) in readme


def test_what_is_missed_is_explained() -> None:
    """The explanation of each published number that is missed in papers/results.md names what would give it.

    That is an interpretation, unless most resamples of the seeds meet the number or nothing can; one that meets it.
    """
    claims = {claim.id: claim for claim in _claims.claims()}
    results = (DOCS / "study/results/papers/results.md").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    sections = re.findall(r"^### (\S+)$(.*?)(?=^##)", results, re.MULTILINE | re.DOTALL)
    missed = {id: text for id, text in sections if re.search(r"published number (missed|undecided)", text)}
    assert missed
    for id, text in missed.items():
        why = claims[id].explanation
        assert why, id
        share = re.search(r"met in (\d+) % of resamples", text)
        if not claims[id].out_of_reach and int(share[1] if share else 0) < 50:
            readings = re.findall(r"Would be met with\*\* `([^`]+)`", text) or _readings(claims[id])
            assert any(f"interpretation {reading})" in why for reading in readings), f"{id}: {readings}"


def _readings(claim: _claims.Claim) -> list[str]:
    """List the interpretations of the experiments that a claim names."""
    return [reading for id in claim.named for reading in experiments()[id].readings]
