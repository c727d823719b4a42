"""Papers, experiments and results, with small experiments."""

import polars as pl
import pytest

from reknit_study.papers import _claims, _costs
from reknit_study.papers._frame import DEFAULT, FULL, QUICK, Paper, Result, Tier
from reknit_study.papers._lab import Lab

TINY = Tier("default", duration=0.01, seeds=2, points=2)


def table(**values: list[float]) -> Result:
    """Make a result at x = 0 and 1, with one seed."""
    rows = [
        {"variant": variant, "x": str(x), "seed": 1, "y": y} for variant, ys in values.items() for x, y in enumerate(ys)
    ]
    return Result(points=(0.0, 1.0), table=pl.DataFrame(rows), runs=pl.DataFrame(rows).drop("y"))


def late(share: float) -> dict[str, object]:
    """Delay a share of packets."""
    return {"path": "rr-tcp", "forward.delays.probability": share}


@pytest.fixture
def paper() -> Paper:
    """Make a paper with two experiments; the second shows the runs of the first."""
    paper = Paper("tiny", "Tiny", "nobody")
    paper.ran = []  # type: ignore[attr-defined]

    @paper.experiment(
        "A",
        figure="Fig. 1",
        title="a",
        reports="a",
        packets=1000,
        readings={"worse": "more packets are late"},
        quick=True,
        late_s=20,
    )
    def first(lab: Lab, late_s: float) -> Result:
        paper.ran.append(("A", lab.reading))  # type: ignore[attr-defined]
        shares = [0, 0.2, 0.3] if lab.reading is None else [0, 0.4]
        return lab.sweep(late, shares, ["sack", "ta"], duration_s=late_s * 100, seeds=3)

    @paper.experiment("B", figure="Fig. 2", title="b", reports="b", packets=0)
    def second(lab: Lab) -> Result:
        return lab.result("A").only("sack").relative("rel_thr", of="thr_pkts", to=0)

    @paper.unit("holds", "B")
    def holds() -> bool:
        """Check that it passes."""
        return True

    return paper


def test_experiments_share_runs_and_have_readings(paper: Paper) -> None:
    """Each experiment runs once per interpretation, each with its own name; checks run with their experiment."""
    with Lab([paper], TINY) as lab:
        found = lab.run(["B", "A"])
    assert paper.ran == [("A", None), ("A", "worse")]  # type: ignore[attr-defined]
    assert list(found) == ["A", "B", "A@worse"]
    assert found["A"].table["variant"].unique(maintain_order=True).to_list() == ["sack", "dsack_ta"]
    assert found["A"].table["x"].unique(maintain_order=True).to_list() == ["0", "0.3"]
    assert found["A"].points == (0, 0.2, 0.3)
    assert found["A@worse"].points == (0, 0.4)
    assert found["B"].units == {"holds": True}
    share = found["B"].table.filter(pl.col("x") == "0.3")["rel_thr"]
    assert 0 < share.max() < 0.9  # type: ignore[operator]
    # 20 s each: 1 % of 2000 s.
    assert {seconds for _, _, seconds in lab.planned} == {20.0}


def test_tiers_reduce_experiments(paper: Paper) -> None:
    """Check runs, seconds and cost of each tier."""
    planned = {}
    for tier in (QUICK, DEFAULT, FULL):
        lab = Lab([paper], tier, dry=True)
        lab.result("A")
        planned[tier.name] = lab.planned
    assert planned["quick"] == [("A", 4, 40.0)] * 3
    assert planned["default"] == [("A", 6, 2000.0)] * 3
    assert planned["full"] == [("A", 6, 2000.0)] * 3
    assert _costs.packets(paper.experiments["A"], [paper]) == pytest.approx(
        {"quick": 40 / 3, "default": 1000, "full": 1000}
    )
    assert _costs.packets(paper.experiments["B"], [paper]) == {"quick": None, "default": 0, "full": 0}
    enough = paper.experiments["A"].enough_seeds
    assert _costs.packets_with_more_seeds(paper.experiments["A"], [paper]) == pytest.approx(1000 * enough / 3)


def test_a_run_can_be_split_into_sets(paper: Paper) -> None:
    """Each set is a curve, with the columns that the experiment sets."""
    with Lab([paper], TINY) as lab:
        found = lab.sweep(
            late,
            [0],
            ["sack"],
            duration_s=1000,
            seeds=1,
            split=lambda label, row: {"long": {"delivered_packets": 7}, "http": {"delivered_packets": 5}},
        )
    assert found.table.select("variant", "thr_pkts").rows() == [("long", 700.0), ("http", 500.0)]


def test_results_are_combined() -> None:
    """The axis is that of the first result; metrics that the other lacks are null."""
    both = table(sack=[4, 2]) | Result(
        points=("all",), table=pl.DataFrame({"variant": ["pr"], "x": ["all"], "seed": [1], "z": [1.0]})
    )
    assert both.points == (0.0, 1.0)
    assert both.table["z"].to_list() == [None, None, 1.0]
    assert table(sack=[4, 2]).relative("share", of="y", to=0).table["share"].to_list() == [1.0, 0.5]
    assert table(sack=[4, 2]).traced("ta", t=1.5).traces == {("dsack_ta", "t"): 1.5}


def test_nothing_is_declared_twice(paper: Paper) -> None:
    """Experiments and checks have unique names; a check needs a docstring."""
    with pytest.raises(ValueError, match="A: declared twice"):
        paper.checks("A", figure="", title="", reports="")
    with pytest.raises(ValueError, match="holds: declared twice"):
        paper.unit("holds", "A")(lambda: True)
    with pytest.raises(ValueError, match="docstring"):
        paper.unit("silent", "A")(lambda: True)


def test_interpretations_are_evaluated_beside_the_default() -> None:
    """A claim has the outcome under each interpretation of its experiments; the others use the default."""
    claim = _claims.Claim(
        "c", "", "tiny", ("A",), "simulation", "", "", "", 'm("A","sack",1,"y") < m("B","sack",1,"y")', "high",
        measure=('m("A","sack",1,"y") / m("B","sack",1,"y")',),
    )  # fmt: skip
    results = {
        "A": table(sack=[4, 2]),
        "A@worse": table(sack=[4, 9]),
        "B": table(sack=[4, 4]),
        "C@other": table(sack=[0, 0]),
    }
    (verdict,) = _claims.judge([claim], results)
    assert verdict.outcome == "reproduced"
    assert verdict.readings == {"worse": "not met"}
    assert verdict.measured[0].least.value == 0.5
    assert verdict.measured[0].least.low is None  # one seed
