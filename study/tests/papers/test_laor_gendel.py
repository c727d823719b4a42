"""Laor and Gendel: every experiment runs, every check passes."""

from pathlib import Path

import polars as pl
import pytest

from reknit_study.papers import papers, units
from reknit_study.papers._frame import Result, Tier
from reknit_study.papers._lab import Lab

PAPER = papers()["laor-gendel"]
CHECKS = [name for name, unit in units().items() if unit.experiment in PAPER.experiments]
TINY = Tier("quick", duration=0.01, seeds=1, points=2)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Run all experiments, each as short as possible."""
    store: Path = tmp_path_factory.mktemp("store")
    with Lab([PAPER], TINY, store) as lab:
        return {id: lab.result(id) for id in PAPER.experiments}


@pytest.mark.parametrize("id", PAPER.experiments)
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


def test_types_add_up_to_the_whole(results: dict[str, Result]) -> None:
    """The goodput of Reno's sessions is the sum of long, short and HTTP transactions."""
    table = results["L4/15"].table.filter(pl.col("x") == "0")
    rate = dict(table.select("variant", "goodput_mbps").rows())
    assert rate["long"] + rate["short"] + rate["http"] == pytest.approx(rate["reno"], rel=1e-6)
    assert min(rate.values()) > 0
    assert set(results["L5/15"].table["variant"]) == {"reno", "sack"}


def test_lanes_shorten_packet_trains(results: dict[str, Result]) -> None:
    """With a link per flow, fewer consecutive packets belong to one flow."""

    def run_length(id: str) -> float:
        table = results[id].table.filter(pl.col("variant") == "reno", pl.col("x") == "0")
        return float(table["mean_run_length"].item())

    assert run_length("L4i/15") < 0.5 * run_length("L4/15")
