"""Scenarios, paths and variants may be files, names or mappings; all say the same."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import reknit
from reknit import _native
from reknit._scenario import SPANS

from conftest import Command

TEXT = """
path = "random-delay"
duration = "4 s"
seeds = 2
variants = ["sack", "rack"]

[[flows]]
name = "browsers"
count = 3
start = "50 ms"
mix = [
    { share = 0.75, name = "pages", kind = "requests", request = "300 B", response = "20 kB", think = "100 ms" },
    { share = 0.25, name = "files", kind = "files", size = "100 kB" },
]

[[flows]]
name = "long"
variant = "newreno"
workload = "bulk"
"""
MAPPING: dict[str, Any] = {
    "path": "random-delay",
    "duration": 4,
    "seeds": 2,
    "variants": ["sack", "rack"],
    "flows": [
        {
            "name": "browsers",
            "count": 3,
            "start": timedelta(milliseconds=50),
            "mix": [
                {
                    "share": 0.75,
                    "name": "pages",
                    "kind": "requests",
                    "request": "300 B",
                    "response": "20 kB",
                    "think": "constant(100 ms)",
                },
                {"share": 0.25, "name": "files", "kind": "files", "size": "100 kB"},
            ],
        },
        {"name": "long", "variant": "newreno", "workload": "bulk"},
    ],
}
PATH = {
    "description": "two lines",
    "forward": [
        {"kind": "multipath", "paths": [{"rate": "8 Mbit/s", "delay": 0.01}, {"rate": "8 Mbit/s", "delay": "40 ms"}]}
    ],
    "reverse": [{"kind": "link", "delay": timedelta(milliseconds=15)}],
}
PATH_TEXT = """
description = "two lines"
[[forward]]
kind = "multipath"
paths = [{ rate = "8 Mbit/s", delay = "10 ms" }, { rate = "8 Mbit/s", delay = "40 ms" }]
[[reverse]]
kind = "link"
delay = "15 ms"
"""
MINE = {"name": "mine", "base": "rack", "loss_detector": {"reo_wnd_divisor": 1}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the scenario."""
    file = tmp_path / "web.toml"
    file.write_text(TEXT.replace('think = "100 ms"', 'think = "constant(100 ms)"'))
    return file


def test_a_mapping_says_what_a_file_says(file: Path, command: Command) -> None:
    """To the last bit; and so does the command."""
    theirs = json.loads(command("compare", "--scenario", str(file), "--json").stdout)
    assert reknit.compare(scenario=file).document == theirs
    assert reknit.compare(scenario=MAPPING).document == {**theirs, "scenario": "scenario"}


def test_sets_of_flows_have_rows(file: Path) -> None:
    """For each run and each part of a mix."""
    result = reknit.compare(scenario=file)
    groups = result.groups
    assert groups.height == 2 * 2 * 3
    assert groups["group"].unique(maintain_order=True).to_list() == ["browsers/pages", "browsers/files", "long"]
    of_one = groups.rows(named=True)[:3]
    run = result.runs.row(0, named=True)
    assert sum(row["flows"] for row in of_one) == 4
    assert sum(row["goodput_mbit_s"] for row in of_one) == pytest.approx(run["goodput_mbit_s"])
    assert sum(row["transactions_completed"] or 0 for row in of_one) == run["transactions_completed"] > 0
    assert [row["group_variant"] for row in of_one] == [None, None, "newreno"]
    alone = reknit.simulate(variant="sack", scenario=file)
    assert alone.groups.rows(named=True) == [{k: row[k] for k in alone.groups.columns} for row in of_one]


def test_arguments_count_instead(file: Path) -> None:
    """Of what the scenario says."""
    result = reknit.compare("clean", "newreno", scenario=file, seeds=1, duration="2 s", flows=2)
    assert (result.path, result.summary["variant"].to_list()) == ("clean", ["newreno"])
    assert (result.document["duration_s"], result.document["flows"], result.document["seeds"]) == (2.0, 2, 1)
    ordered = {**MAPPING, "in_order": True}
    disordered = reknit.simulate(variant="sack", scenario=MAPPING).totals
    assert reknit.simulate(variant="sack", scenario=ordered, in_order=False).totals == disordered
    in_order = reknit.simulate(variant="sack", scenario=MAPPING, in_order=True).totals
    assert reknit.simulate(variant="sack", scenario=ordered).totals == in_order != disordered


def test_a_path_may_be_a_mapping(tmp_path: Path) -> None:
    """As a file says it; alone, and in a scenario."""
    file = tmp_path / "lines.toml"
    file.write_text(PATH_TEXT)
    ask: dict[str, Any] = {"duration": 3, "set": {"reverse.link.delay": 0.02}}
    totals = reknit.simulate(file, "rack", **ask).totals
    assert reknit.simulate(PATH, "rack", **ask).totals == totals
    assert reknit.simulate(variant="rack", scenario={"path": PATH, **ask}).totals == totals
    assert reknit.path(PATH).equals(reknit.path(file))
    assert reknit.compare(PATH, "sack", seeds=1, duration=1).description == "two lines"


def test_a_variant_may_be_a_mapping(tmp_path: Path) -> None:
    """As a file says it; among the compared ones, and in a set of flows."""
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nbase = "rack"\n[loss_detector]\nreo_wnd_divisor = 1\n')
    theirs = reknit.compare("random-delay", ["mine"], variant_files=file, seeds=1, duration=3)
    assert reknit.compare("random-delay", [MINE], seeds=1, duration=3).document == theirs.document
    both = reknit.compare("random-delay", ["sack", MINE], seeds=1, duration=3)
    assert both.summary["variant"].to_list() == ["sack", "mine"]
    shared = {"path": "random-delay", "duration": 3, "flows": [{"workload": "bulk"}, {"workload": "bulk"}]}
    shared["flows"][1]["variant"] = MINE  # type: ignore[index]
    named = reknit.compare(scenario=shared, variants="sack", seeds=1)
    assert named.summary["variant"].to_list() == ["sack"]
    assert named.groups["group_variant"].to_list() == [None, "mine"]
    assert reknit.simulate(scenario={**shared, "variants": [MINE]}).variant == "mine"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"scenario": {**MAPPING, "speed": 1}}, "scenario: speed: unknown key; did you mean `seeds`?"),
    ({"scenario": {**MAPPING, "duration": 0}}, "scenario: duration: must be more than 0"),
    ({"scenario": {"path": "moon"}}, "scenario: path: moon: unknown path"),
    (
        {"scenario": {"path": {"forward": [{"kind": "lnik"}]}}},
        "scenario: path.forward[0].kind: unknown kind of stage `lnik`",
    ),
    ({"scenario": {}}, "scenario: path: missing; name one here, or give path"),
    ({"path": {"forward": [{"kind": "link", "rate": 3}]}}, "path: forward[0].rate: `3` is not a "),
    ({"path": "rr-tcp", "variants": {"base": "rack"}}, "variants[0]: name: missing; a name consists of"),
    ({"path": "rr-tcp", "variants": ["sack", {**MINE, "speed": 1}]}, "variants[1]: speed: unknown key; allowed are"),
    ({"path": "rr-tcp", "variants": [MINE, {**MINE, "base": "sack"}]}, "variants[1]: "),
    ({"scenario": {**MAPPING, "variants": [{"name": "sack"}]}}, "scenario: variants[0]: name: `sack` is a built-in"),
    ({"scenario": "/nowhere/web.toml"}, "/nowhere/web.toml: No such file or directory"),
]


@pytest.mark.parametrize(("question", "says"), WRONG, ids=lambda case: str(case)[:40])
def test_errors_name_the_place(question: dict[str, Any], says: str) -> None:
    """Which for a mapping is ``scenario``, ``path`` or ``variants``."""
    with pytest.raises(reknit.Error) as caught:
        reknit.compare(**question)
    assert str(caught.value).startswith(says), caught.value


def test_one_variant_must_be_meant() -> None:
    """Of several it cannot be known which."""
    with pytest.raises(reknit.Error, match="variant: missing"):
        reknit.simulate(scenario=MAPPING)
    with pytest.raises(reknit.Error, match="path: missing"):
        reknit.compare(variants="sack")


def test_a_number_is_seconds_where_only_a_span_can_stand() -> None:
    """No number among the parameters of the variants has such a name and another unit."""
    parameters = [
        parameter
        for variant in _native.variants()["variants"]
        for part in variant["parts"]
        for parameter in part["parameters"]
        if parameter["name"] in SPANS and parameter["value"][0].isdigit()
    ]
    assert parameters
    assert all(re.fullmatch(r"[0-9.]+ (ns|us|ms|s|min|h)", parameter["value"]) for parameter in parameters)
