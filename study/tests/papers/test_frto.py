"""F-RTO: every experiment runs, and every check passes."""

import pytest

from reknit_study.papers import papers
from reknit_study.papers._frame import Tier
from reknit_study.papers._lab import Lab
from reknit_study.papers.frto import transfers

PAPER = papers()["frto"]
TINY = Tier("quick", duration=0.01, seeds=1, points=2)


@pytest.mark.parametrize("name", list(PAPER.units))
def test_checks_pass(name: str) -> None:
    """Each check passes on a small scripted run."""
    assert PAPER.units[name].check(), PAPER.units[name].statement


@pytest.mark.parametrize("id", PAPER.experiments)
def test_experiments_run(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each runs with few repetitions; figures can be drawn."""
    monkeypatch.setattr(transfers, "REPETITIONS", 2)
    monkeypatch.setattr(transfers, "FAIRNESS_REPETITIONS", 2)
    with Lab([], TINY) as lab:
        lab.experiments = PAPER.experiments
        found = lab.result(id)
        for figure in found.figures:
            assert figure.svg(found).startswith("<svg")
    if PAPER.experiments[id].kind == "sweep":
        metric = "thr_kbps" if id.startswith("F9") else "elapsed_s"
        assert found.table[metric].is_not_null().all()


def test_outages_differ_between_repetitions() -> None:
    """They do not overlap, last 3.5 s on average, and are the same every time."""
    first, second = transfers._schedule(1), transfers._schedule(2)
    assert first == transfers._schedule(1) != second
    times = [float(rule[end].removesuffix(" s")) for rule in first for end in ("from", "to")]
    assert times == sorted(times)
    lengths = [b - a for a, b in zip(times[::2], times[1::2], strict=True)]
    assert 2.5 < sum(lengths) / len(lengths) < 4.5


def test_nothing_is_left_out() -> None:
    """All experiments and checks of the paper exist."""
    ids = {"F1", "F2", "F3", "F4", "F6", "F7", "F7-2", "F7-10", "F8", "F9a", "F9b", "F9m", "F9n", "F10"}
    assert set(PAPER.experiments) == ids
    assert PAPER.pending == PAPER.pending_units == frozenset()
