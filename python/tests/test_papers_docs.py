"""The pages about the papers agree with each other."""

from pathlib import Path

from reknit.papers import _claims

DOCS = Path(__file__).parents[2]


def test_the_readme_has_the_recorded_scores() -> None:
    """README.md repeats the three scores of docs/papers/results.md."""
    results = (DOCS / "docs/papers/results.md").read_text("utf-8")
    scores = [line.removeprefix("* ") for line in results.splitlines() if line.startswith("* ")][:3]
    assert [score.partition(":")[0] for score in scores] == ["checks", "trends", "published numbers"]
    readme = (DOCS / "README.md").read_text("utf-8")
    for score in scores:
        assert score.replace(":", ",", 1) in readme


def test_what_is_missed_is_explained() -> None:
    """Each published number that is missed or undecided in docs/papers/results.md has an explanation."""
    results = (DOCS / "docs/papers/results.md").read_text("utf-8")
    explained = {claim.id for claim in _claims.claims() if claim.explanation}
    missed = [
        line.split("**")[1]
        for line in results.splitlines()
        if line.startswith("**") and ("published number missed" in line or "published number undecided" in line)
    ]
    assert missed
    assert set(missed) <= explained
