"""The same question has the same answer from Python and from the command."""

import csv
import io
import json
import shutil
import subprocess
import sysconfig
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import reknit
from reknit._compare import MEASURED

from conftest import Command

ASKED = ["--path", "two-paths-50ms", "--variants", "sack,rack", "--duration", "5s", "--seeds", "3", "--loss", "1%"]


@pytest.fixture(scope="module")
def asked() -> reknit.Comparison:
    """Ask in Python."""
    return reknit.compare("two-paths-50ms", ["sack", "rack"], duration="5s", seeds=3, loss=0.01)


def test_the_documents_are_equal(asked: reknit.Comparison, command: Command) -> None:
    """To the last bit of each number."""
    assert asked.document == json.loads(command("compare", *ASKED, "--json").stdout)


def test_the_runs_are_those_of_the_csv(asked: reknit.Comparison, command: Command) -> None:
    """Column by column; each line of the CSV also names the version."""
    theirs = list(csv.DictReader(io.StringIO(command("compare", *ASKED, "--csv").stdout)))
    ours = asked.runs.rows(named=True)
    assert len(ours) == len(theirs) == 6
    for mine, other in zip(ours, theirs, strict=True):
        assert [*mine, "reknit"] == [*other]
        for name, value in mine.items():
            assert other[name] == ("" if value is None else str(value)) or value == float(other[name]), name


def test_the_summary_has_the_statistics(asked: reknit.Comparison) -> None:
    """Mean, interval, share."""
    assert asked.summary["variant"].to_list() == ["sack", "rack"]
    by_hand = asked.runs.group_by("variant", maintain_order=True).agg(pl.col("goodput_mbit_s").mean())
    assert asked.summary["goodput_mbit_s"].to_list() == pytest.approx(by_hand["goodput_mbit_s"].to_list())
    assert asked.summary["of_in_order"][0] == asked.summary["goodput_mbit_s"][0] / asked.in_order_mbit_s
    assert asked.summary["of_oracle"][0] == asked.summary["goodput_mbit_s"][0] / asked.summary["oracle_mbit_s"][0]


def test_the_summary_has_what_the_document_has(asked: reknit.Comparison) -> None:
    """Beside the runs, and with the statistics of the goodput in columns of their own."""
    row = asked.document["variants"][0]
    assert row["goodput_mbit_s"].keys() == {"mean", "ci95", "min", "max", "two_groups"}
    statistics = {"goodput_ci95_mbit_s", "goodput_min_mbit_s", "goodput_max_mbit_s", "two_groups"}
    assert set(asked.summary.columns) == {"path"} | row.keys() - {"shown"} | statistics


def test_several_paths_are_those_of_the_command(command: Command) -> None:
    """Names, patterns and files; each path once."""
    arguments = ["--variants", "sack,rack", "--duration", "2s", "--seeds", "2", "--json"]
    document = json.loads(command("compare", "--path", "two-paths-*,clean", *arguments).stdout)
    ours = reknit.compare(["two-paths-*", "clean", "clea?"], ["sack", "rack"], duration=2, seeds=2)
    assert ours.document == document
    assert ours.paths["path"].to_list() == ["two-paths-50ms", "two-paths-200ms", "clean"]
    for table, rows in ((ours.summary, 2), (ours.runs, 4), (ours.groups, 4)):
        assert table["path"].to_list() == [name for name in ours.paths["path"] for _ in range(rows)]
    assert repr(ours).count("of oracle") == ours._repr_html_().count("of oracle") == 3
    with pytest.raises(reknit.Error, match="in_order_mbit_s: 3 paths were compared"):
        _ = ours.in_order_mbit_s
    both = reknit.compare("two-paths-*", "sack", duration=1, seeds=1)
    assert both.paths["path"].to_list() == ["two-paths-50ms", "two-paths-200ms"]


def test_described_paths_have_numbers() -> None:
    """They have no names."""
    paths = [{"forward": [{"kind": "link", "rate": rate, "delay": 0.01}]} for rate in ("1 Mbit/s", "2 Mbit/s")]
    ours = reknit.compare([*paths, "clean"], "sack", duration=2, seeds=1)
    assert ours.paths["path"].to_list() == ["path[0]", "path[1]", "clean"]
    assert ours.summary["goodput_mbit_s"].is_sorted()
    assert reknit.compare(paths[0], "sack", duration=2, seeds=1).path == "path"


def test_without_the_oracle(command: Command) -> None:
    """Nothing is known of what is possible."""
    arguments = ["compare", "--path", "clean", "--variants", "sack", "--seeds", "2", "--duration", "1s", "--json"]
    ours = reknit.compare("clean", "sack", seeds=2, duration=1, oracle=False)
    assert ours.document == json.loads(command(*arguments, "--no-oracle").stdout)
    assert ours.summary["of_oracle"].to_list() == [None]
    assert ours.runs["of_oracle"].to_list() == [None, None]


def test_changes_to_the_path_are_the_same(command: Command) -> None:
    """Keys of the path and of the TCP, flows, without what reorders."""
    arguments = ["--path", "rr-tcp", "--variants", "sack", "--seeds", "1", "--duration", "3s"]
    changes = ["--flows", "2", "--in-order", "--set", "tcp.min_rto=300ms", "--set", "drop_notices=true"]
    document = json.loads(command("compare", *arguments, *changes, "--json").stdout)
    span = timedelta(seconds=3)
    settings = {"tcp.min_rto": "300ms", "drop_notices": True}
    ours = reknit.compare("rr-tcp", "sack", seeds=1, duration=span, flows=2, in_order=True, set=settings)
    assert ours.document == document


def test_a_variant_of_the_users_own(tmp_path: Path, command: Command) -> None:
    """From a file."""
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nbase = "rack"\n[loss_detector]\nreo_wnd_divisor = 1\n')
    arguments = f"compare --path two-paths-50ms --variant-file {file} --seeds 1 --duration 3s --json".split()
    document = json.loads(command(*arguments).stdout)
    ours = reknit.compare("two-paths-50ms", variant_files=file, seeds=1, duration=3)
    assert ours.document == document
    assert ours.summary["variant"].to_list() == ["rack", "mine"]


def test_one_run_is_that_of_the_comparison(asked: reknit.Comparison) -> None:
    """The same seed, the same numbers; the series ends where the totals are."""
    run = reknit.simulate("two-paths-50ms", "rack", seed=2, duration=5.0, loss="1 %", sample_every="100ms")
    row = asked.runs.row(by_predicate=(pl.col("variant") == "rack") & (pl.col("seed") == 2), named=True)
    counted = {name: total for name, total in run.totals.items() if name in row}
    assert counted == {name: row[name] for name in counted}
    assert set(run.totals) - set(row) == {*MEASURED}, "only a single run is measured"
    assert run.series["time_s"].to_list() == pytest.approx([i / 10 for i in range(1, 51)])
    # Not drawn, flows start at time zero, from where goodput counts.
    fixed = reknit.simulate("two-paths-50ms", "rack", duration=5.0, sample_every="100ms", phases="fixed")
    goodput = fixed.series["delivered_bytes"][-1] * 8 / 5e6
    assert goodput == pytest.approx(fixed.totals["goodput_mbit_s"])
    assert set(run.series["phase"].unique()) <= {"open", "disorder", "recovery", "loss"}
    assert reknit.simulate("rr-tcp", "sack", duration=1).series.is_empty()


def test_the_variants_are_those_of_the_command(command: Command) -> None:
    """All of them."""
    document = json.loads(command("variants", "--json").stdout)
    ours = reknit.variants()
    assert ours["name"].to_list() == [entry["name"] for entry in document["variants"]]
    assert ours["status"].to_list() == [entry["status"] for entry in document["variants"]]


def test_the_paths_are_those_of_the_command(command: Command) -> None:
    """All of them."""
    told = command("paths").stdout
    assert all(name in told for name in reknit.paths()["name"])


def test_a_train_is_that_of_the_command(command: Command) -> None:
    """The share of reordered packets, as printed."""
    forward, reverse = reknit.path("two-paths-50ms").rows(named=True)
    assert (forward["direction"], reverse["direction"]) == ("forward", "reverse")
    assert forward["packets"] == 20_000
    told = command("paths", "two-paths-50ms").stdout
    assert f"{100 * forward['reordered_ratio']:.2f} % of packets, extent median {forward['extent_p50']}," in told
    assert f"3: {100 * forward['extent_at_least_3'] / forward['packets']:.2f} %" in told


def test_the_console_script_is_installed() -> None:
    """And runs the same code."""
    script = shutil.which("reknit", path=sysconfig.get_path("scripts"))
    assert script is not None
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert told.split()[:2] == ["reknit", reknit.__version__]
