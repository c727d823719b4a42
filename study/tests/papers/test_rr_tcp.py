"""RR-TCP: each experiment runs, each check passes, and the network is that of the built-in path."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import reknit
from reknit_study.papers import _claims
from reknit_study.papers._frame import Tier
from reknit_study.papers._lab import Lab
from reknit_study.papers.rr_tcp import paper
from reknit_study.papers.rr_tcp._network import NS2, delayed, dumbbell, lost, normal

TINY = Tier("tiny", duration=0.005, seeds=1, points=2)
TRACES = [id for id, experiment in paper.experiments.items() if experiment.kind == "trace"]
SWEEPS = [id for id, experiment in paper.experiments.items() if experiment.kind == "sweep"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Make a lab that runs each experiment once."""
    with ThreadPoolExecutor(2) as threads, Lab([paper], TINY, executor=threads) as lab:
        yield lab


@pytest.mark.parametrize("id", SWEEPS)
def test_sweeps_run(lab: Lab, id: str) -> None:
    """Each sweep runs under each interpretation, and can be drawn."""
    for reading in (None, *paper.experiments[id].readings):
        lab.reading = reading
        found = lab.result(id)
        assert len(found.table) > 0
        assert found.figures
        for figure in found.figures:
            assert figure.svg(found).startswith("<svg")
    lab.reading = None


@pytest.mark.parametrize("name", paper.units)
def test_checks_pass(name: str) -> None:
    """Each check passes."""
    assert paper.units[name].check()


@pytest.mark.parametrize("id", TRACES)
def test_traces(lab: Lab, id: str) -> None:
    """The figure can be drawn, and the result has the values that claims use."""
    found = lab.result(id)
    assert found.figures[0].svg(found).startswith("<svg")
    wanted = {
        (variant, field)
        for claim in _claims.claims()
        if claim.experiments == (id,)
        for text in claim.expressions
        for variant in _claims.looked_up(text)["variant"]
        for field in _claims.looked_up(text)["field"]
    }
    assert wanted <= set(found.traces)


def test_figure_1_is_as_published(lab: Lab) -> None:
    """A window of 16 is halved just after 1 s and restored at about 1.45 s."""
    found = {field: value for (_, field), value in lab.result("R1").traces.items()}
    assert (found["cwnd_before"], found["cwnd_after_fr"], found["cwnd_after_dsack"]) == (16, 8, 16)
    assert found["t_fr"] == pytest.approx(1.05, abs=0.05)
    assert found["t_dsack"] == pytest.approx(1.45, abs=0.05)


def test_samples_are_most_of_the_state() -> None:
    """A thousand samples take 8000 bytes, as the explanation of rr-4.1.3-1 says; what else grows is small."""
    empty = reknit.simulate("rr-tcp", "rr-taes", duration="1 s", in_order=True).totals
    full = reknit.simulate("rr-tcp", "rr-taes", duration="60 s", set={"forward.delays.probability": 0.3}).totals
    assert 8000 <= full["reordering_state_bytes"] - empty["reordering_state_bytes"] <= 8192


def test_the_network_is_the_built_in_path() -> None:
    """The network of the experiments with P = 50 ms gives the same run as rr-tcp, apart from ns-2's recovery."""
    ours = {**dumbbell(0.05, lost(0), delayed(0.1, normal(0.025, 0.008))), "duration": "20 s"}
    described = reknit.simulate(None, "rr-taes", scenario=ours, seed=3).totals
    recovery = {"tcp.retransmit": NS2["retransmit"]}
    assert described == reknit.simulate("rr-tcp", "rr-taes", duration="20 s", set=recovery, seed=3).totals


def test_the_cells_of_the_sweep_cover_each_dimension() -> None:
    """Each of the 200 cells has its own P, and each distribution has a sixth of the cells."""
    from reknit_study.papers.rr_tcp.prior_work import CELLS, SHAPES, _latin_hypercube

    paths = [cell["path"]["forward"] for cell in _latin_hypercube(power=1)]
    assert len(paths) == CELLS
    p_s = sorted(float(stages[3]["delay"].split()[0]) for stages in paths)
    assert all(0.05 + 0.35 * i / CELLS <= p <= 0.05 + 0.35 * (i + 1) / CELLS + 1e-6 for i, p in enumerate(p_s))
    names = [stages[2]["extra"].split("(")[0] for stages in paths]
    assert {names.count(name) for name in SHAPES} <= {33, 34}
