"""Captures: the same as the command."""

import json
from pathlib import Path

import polars as pl
import pytest

import reknit

from conftest import Command


def test_tables_say_what_the_command_says(capture: Path, command: Command) -> None:
    """The document is the command's, and the tables agree with it."""
    found = reknit.analyze(capture)
    assert found.document == json.loads(command("analyze", "--json", str(capture)).stdout)
    (direction,) = found.document["directions"]
    (stream,) = found.streams.rows(named=True)
    assert stream["from"] == direction["from"]
    assert stream["captured_at"] == "sender"
    assert stream["spurious"] == direction["verdicts"]["spurious"] > 0
    assert stream["sack"] is True
    assert stream["advice"] == direction["advice"]
    counts = dict(found.events.group_by("verdict").len().iter_rows())
    for verdict in ("lost", "reordered", "duplicated", "spurious", "cannot_tell"):
        assert counts.get(verdict, 0) == direction["verdicts"][verdict], verdict
    late = found.events.filter(pl.col("verdict") == "reordered")
    assert late["late_ms"].max() == pytest.approx(direction["reordering"]["late_max_ms"], abs=0.001)
    assert found.events["packet"].is_sorted()
    (path,) = found.paths.rows(named=True)
    assert path["round_trip_ms"] == direction["round_trip"]["least_ms"]
    assert path["reordered_ratio"] == direction["reordering"]["ratio"]
    assert path["reordered_3"] == direction["reordering"]["n_reordered"][2]
    displaced = found.densities.filter(pl.col("density") == "displacement")
    counts_of = [tuple(pair) for pair in direction["density"]["displacements"]]
    assert displaced.select("value", "packets").rows() == counts_of


def test_the_place_can_be_given(capture: Path) -> None:
    """It changes what counts."""
    found = reknit.analyze(capture, at="receiver")
    assert found.streams["captured_at"].to_list() == ["receiver"]
    assert found.streams["confidence"].to_list() == ["given"]


def test_a_damaged_capture_warns(capture: Path, tmp_path: Path) -> None:
    """The result covers what comes before the damage."""
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(capture.read_bytes()[:-50])
    with pytest.warns(UserWarning, match="the file is damaged, so only the part before the damage was read"):
        found = reknit.analyze(cut)
    assert len(found.events) > 0


def test_wrong_input_is_refused(tmp_path: Path, capture: Path) -> None:
    """In one line."""
    with pytest.raises(reknit.Error, match=r"missing\.pcap: No such file"):
        reknit.analyze(tmp_path / "missing.pcap")
    with pytest.raises(reknit.Error, match="at = home: must be `sender`, `middle` or `receiver`"):
        reknit.analyze(capture, at="home")  # type: ignore[arg-type]
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(b"")
    with pytest.raises(reknit.Error, match=r"empty\.pcap: is empty"):
        reknit.analyze(empty)
