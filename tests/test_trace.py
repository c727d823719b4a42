"""Runs packet by packet, and what is measured of them."""

from typing import Any

import polars as pl
import pytest

import reknit

LINK = {"kind": "link", "delay": "50 ms"}


def scenario(*rules: dict[str, Any], warm_up: str = "0 s") -> dict[str, Any]:
    """40 segments of 960 bytes, windows of 8, 50 ms each way; ``rules`` say what happens to which packet."""
    tcp = {"mss": 960, "timestamps": False, "ack_every": 1, "initial_window": 8, "max_window": 8}
    path = {"forward": [{"kind": "script", "rules": list(rules)}, LINK], "reverse": [LINK], "tcp": tcp}
    flows = [{"workload": {"kind": "transfer", "size": "38400 B"}}]
    return {"path": path, "duration": "2 s", "warm_up": warm_up, "flows": flows, "phases": "fixed"}


def test_a_dropped_segment_can_be_followed() -> None:
    """It is lost, retransmitted and delivered; the sender's window is halved meanwhile."""
    packets = reknit.trace(None, "sack", scenario=scenario({"segment": 2, "action": "drop"}))
    second = packets.filter(pl.col("segment") == 2, pl.col("direction") == "forward")
    followed = second.select("event", "end", "transmission", "cause").rows()
    assert followed == [
        ("send", "sender", 1, "new"),
        ("lost", "sender", 1, "new"),
        ("send", "sender", 2, "fast_retransmit"),
        ("deliver", "receiver", 2, "fast_retransmit"),
    ]
    assert second["time_s"].to_list() == [0.1, 0.1, 0.2, 0.25]
    assert second["seq_bytes"].unique().to_list() == [961]
    assert second["phase"].to_list() == ["open", None, "recovery", None]
    assert packets.filter(pl.col("dsack").is_not_null()).is_empty()
    sack = packets.filter(pl.col("sack").list.len() > 0, pl.col("event") == "send")
    assert sack["ack_bytes"][0] == 961
    assert sack["sack"][0].to_list() == ["1921-2881"]


def test_every_packet_is_accounted_for() -> None:
    """What is sent is delivered or lost, once."""
    packets = reknit.trace("random-delay", "rr-taes", duration="3s", loss=0.02, seed=2)
    ended = packets.filter(pl.col("event") != "send", ~pl.col("copy"))["packet"]
    sent = packets.filter(pl.col("event") == "send")["packet"]
    assert sent.to_list() == list(range(len(sent)))
    assert ended.is_unique().all()
    assert set(ended) <= set(sent)
    run = reknit.simulate("random-delay", "rr-taes", duration="3s", loss=0.02, seed=2).totals
    lost = packets.filter(pl.col("event") == "lost")
    assert len(lost.filter(pl.col("length_bytes") > 0)) == run["lost_packets"] > 0
    data = packets.filter(pl.col("event") == "send", pl.col("length_bytes") > 0)
    assert len(data) == run["segments_sent"]
    assert len(data.filter(pl.col("transmission") > 1)) == run["retransmissions"]
    again = data.filter(pl.col("cause") == "fast_retransmit")
    assert len(again) == run["needed_fast_retransmissions"] + run["spurious_fast_retransmissions"]


def test_a_wrong_script_is_refused() -> None:
    """In the words of the command."""
    with pytest.raises(reknit.Error, match=r"rules\[0\]: give exactly one of `packet`, `segment` and `from`"):
        reknit.trace(None, "sack", scenario=scenario({"action": "drop"}))


def test_a_warm_up_must_leave_something() -> None:
    """It is shorter than the run."""
    with pytest.raises(reknit.Error, match="warm_up = 2 s: must be shorter than the run of 2 s"):
        reknit.trace(None, "sack", scenario=scenario(warm_up="2 s"))


def test_runs_are_measured_and_comparisons_are_not() -> None:
    """Every column of a run has a value or null; those of a comparison are counts."""
    run = reknit.simulate("rr-tcp", "rr-ta", duration="20s", phases="fixed").totals
    assert run["burst_max_segments"] >= run["burst_p99_segments"] >= 1
    assert 100 < run["rtt_mean_ms"] < run["rtt_p99_ms"] <= run["rtt_max_ms"] < 300
    assert run["elapsed_s"] is None
    assert run["run_length_mean_packets"] == run["segments_sent"]
    compared = reknit.compare("rr-tcp", "rr-ta", duration="20s", seeds=1, phases="fixed")
    assert "rtt_mean_ms" not in compared.runs.columns
    assert compared.runs["goodput_mbit_s"][0] == run["goodput_mbit_s"]


def test_numbers_that_an_algorithm_shows_are_columns() -> None:
    """With the name of their seam, in every table; null for variants that do not show them."""
    ratio = "dup_thresh.fa_ratio"
    run = reknit.simulate("reordered-and-lossy", "rr-ta", duration="20s", sample_every="1s")
    assert 0 < run.totals[ratio] < 0.99
    assert 0 < run.totals[f"{ratio}_mean"] < 0.99
    assert run.totals[f"{ratio}_std"] > 0
    assert run.series[ratio].is_between(0, 0.99).all()
    assert run.series[ratio][-1] == run.totals[ratio] == run.groups[ratio][0]
    compared = reknit.compare("reordered-and-lossy", ["sack", "rr-ta"], duration="20s", seeds=2)
    assert compared.runs[ratio].to_list()[:3] == [None, None, run.totals[ratio]]
    mean = compared.runs[ratio][2:].mean()
    assert compared.summary[ratio].to_list() == [None, pytest.approx(mean)]
    assert compared.groups[ratio].to_list() == compared.runs[ratio].to_list()
    assert compared.document["variants"][1]["shown"] == {ratio: compared.summary[ratio][1]}
    packets = reknit.trace("reordered-and-lossy", "rr-ta", duration="20s")
    seen = packets.filter(pl.col("end") == "sender", pl.col("event") != "lost")[ratio]
    assert seen.null_count() == 0
    assert seen[-1] == run.totals[ratio]
    assert packets.filter(pl.col("end") == "receiver")[ratio].is_null().all()
    assert ratio not in reknit.simulate("reordered-and-lossy", "sack", duration="1s").totals
