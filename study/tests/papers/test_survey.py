"""The survey: every experiment runs, every check passes."""

from pathlib import Path

import pytest

from reknit_study.papers import papers, survey_checks, units
from reknit_study.papers._frame import Result, Tier
from reknit_study.papers._lab import Lab

PAPER = papers()["survey"]
OWN = [id for id in PAPER.experiments if id not in ("Q1", "Q6")]
CHECKS = [name for name, unit in units().items() if unit.experiment in OWN and name != "variant_requirements_matrix"]
TINY = Tier("tiny", duration=0.001, seeds=1, points=2)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Run all experiments, each as short as possible."""
    store: Path = tmp_path_factory.mktemp("store")
    with Lab([PAPER], TINY, store) as lab:
        return {id: lab.result(id) for id in OWN}


@pytest.mark.parametrize("id", OWN)
def test_experiments_run(results: dict[str, Result], id: str) -> None:
    """Each has runs or checks, and can be drawn."""
    found = results[id]
    assert found.units or len(found.table) == len(found.runs) > 0
    for figure in found.figures:
        assert found.table[figure.y].is_not_null().any()
        assert figure.svg(found).startswith("<svg")


@pytest.mark.parametrize("name", CHECKS)
def test_checks_pass(name: str) -> None:
    """Each check passes."""
    assert units()[name].check()


def test_table_2_is_contradicted_in_one_row() -> None:
    """No router takes part in the algorithms of Lee, Park and Choi."""
    found = survey_checks.differences()
    assert {row: sorted(behaves[0]) for row, (_, behaves) in found.items()} == {
        "Lee-Park-Choi": ["destination", "source"],
    }


def test_panels_show_the_curves_of_their_runs(results: dict[str, Result]) -> None:
    """Panel d of Fig. 7 has the curves of S7/250 that adjust the threshold, and no others."""
    panel, runs = results["S7d"].table, results["S7/250"].table
    assert set(panel["variant"]) == {"ba_inc", "ba_avg", "ba_ewma", "dsack_taes", "leungma", "rntcp"}
    assert panel.equals(runs.filter(runs["variant"].is_in(panel["variant"].unique().to_list())))
    assert results["ST2"].points == ("all",)


def test_data_and_ack_reordering_differ(results: dict[str, Result]) -> None:
    """Without reordering, goodput is the same; reordering of data costs more than reordering of ACKs."""

    def goodput(id: str, x: str) -> float:
        table = results[id].table
        return float(table.filter(table["variant"] == "sack", table["x"] == x)["goodput_mbps"].item())

    assert goodput("S7/50", "0") == pytest.approx(goodput("S8/50", "0"), rel=0.01)
    assert goodput("S7/50", "1") < 0.8 * goodput("S8/50", "1")
