"""Yang's thesis: every experiment runs, and every check passes."""

import pytest

from reknit_study.papers import papers
from reknit_study.papers._frame import Tier
from reknit_study.papers._lab import Lab
from reknit_study.papers.yang.bulk import CURVES, SECOND_PATH, SENDERS

PAPER = papers()["yang"]
TINY = Tier("quick", duration=0.01, seeds=1, points=2)


@pytest.mark.parametrize("name", PAPER.units)
def test_checks_pass(name: str) -> None:
    """Each check passes on a small scripted run."""
    assert PAPER.units[name].check(), PAPER.units[name].statement


@pytest.mark.parametrize("id", ["Y5.1", "Y5.8", "Y-trace", "Y-stride"])
def test_experiments_run(id: str) -> None:
    """Each runs at the smallest tier; figures can be drawn."""
    with Lab([], TINY) as lab:
        lab.experiments = PAPER.experiments
        found = lab.result(id)
        for figure in found.figures:
            assert figure.svg(found).startswith("<svg")
    if PAPER.experiments[id].kind == "sweep":
        assert found.table["x"].unique(maintain_order=True).to_list() == [*SECOND_PATH]
        curves = CURVES + (SENDERS if id == "Y5.1" else [])
        assert found.table["variant"].unique(maintain_order=True).to_list() == curves
        assert found.table["thr_kbps"].is_not_null().all()


def test_nothing_is_left_out() -> None:
    """All experiments and checks of the paper exist."""
    ids = {"Y-trace", "Y-stride", *(f"Y5.{figure}" for figure in range(1, 13))}
    assert set(PAPER.experiments) == ids
    assert PAPER.pending == PAPER.pending_units == frozenset()
