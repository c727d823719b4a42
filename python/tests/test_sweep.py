"""Sweeps: equal to single runs, stored as they come, resumed where they were."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reknit

from conftest import Command

SCENARIO = {"path": "two-paths-50ms", "duration": "3s"}
AXES = {"variant": ["sack", "rack"], "loss": [0.0, 0.01]}


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:  # noqa: ANN401
        """Count and go on."""
        self.submitted += 1
        return super().submit(fn, *args, **more)


def test_points_are_runs_of_their_own() -> None:
    """The same numbers as `simulate`, in the order of the grid."""
    with Counting(2) as executor:
        table = reknit.sweep(SCENARIO, AXES, 2, executor)
    assert executor.submitted == len(table) == 8
    assert table.columns[:3] == ["variant", "loss", "seed"]
    assert table["seed"].to_list() == [1, 2] * 4
    row = table.row(5, named=True)
    run = reknit.simulate("two-paths-50ms", "rack", seed=2, loss=0.0, duration=3)
    assert {name: row[name] for name in run.totals} == run.totals


def test_two_workers_are_two_processes(tmp_path: Path) -> None:
    """And give what one thread gives."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        theirs = reknit.sweep(SCENARIO, AXES, [7], executor, tmp_path)
    with ThreadPoolExecutor(1) as thread:
        assert theirs.equals(reknit.sweep(SCENARIO, AXES, [7], thread))
    parts = list(tmp_path.iterdir())
    assert [part.suffix for part in parts] == [".parquet"]
    assert pl.read_parquet(parts[0])["goodput_mbit_s"].sort().equals(theirs["goodput_mbit_s"].sort())


def test_finished_points_are_not_run_again(tmp_path: Path) -> None:
    """Neither for the same grid nor for a larger one; other words for the same are the same."""
    seen: list[reknit.Progress] = []
    with Counting(2) as executor:
        first = reknit.sweep(SCENARIO, AXES, 1, executor, tmp_path, progress=seen.append)
        assert executor.submitted == 4
        again = reknit.sweep({**SCENARIO, "duration": 3}, AXES, 1, executor, tmp_path)
        assert executor.submitted == 4
        reknit.sweep(SCENARIO, {**AXES, "tcp.min_rto": ["200ms"]}, 1, executor, tmp_path)
        assert executor.submitted == 8
        mixed = {"variant": ["rack"], "loss": [0.01, 0.02]}
        reknit.sweep({**SCENARIO, "duration": timedelta(seconds=3)}, mixed, 1, executor, tmp_path)
        assert executor.submitted == 9
    assert again.equals(first)
    assert [progress.done for progress in seen] == [1, 2, 3, 4]
    assert str(seen[-1]) == "4 of 4 points, 0 s left"


def test_a_changed_file_is_another_point(tmp_path: Path) -> None:
    """Files count by what is in them."""
    file = tmp_path / "mine.toml"
    with Counting(1) as executor:
        for divisor in (1, 1, 2):
            file.write_text(f'name = "mine"\nbase = "rack"\n[loss_detector]\nreo_wnd_divisor = {divisor}\n')
            reknit.sweep(SCENARIO, {"variant": ["mine"]}, 1, executor, tmp_path / "store", variant_files=file)
        assert executor.submitted == 2


SCRIPT = """
import sys, reknit
if __name__ == "__main__":
    reknit.sweep({"path": "two-paths-50ms", "duration": "40s"}, {"variant": ["sack", "rack"]}, 40, store=sys.argv[1])
"""


def finished(store: Path) -> list[str]:
    """Keys of the runs that are kept."""
    lines = [line for file in store.glob("*.jsonl") for line in file.read_text().splitlines()]
    keys = [json.loads(line)["key"] for line in lines if line.endswith("}")]
    return keys + [key for file in store.glob("*.parquet") for key in pl.read_parquet(file)["key"]]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_goes_on_where_it_was(how: signal.Signals, tmp_path: Path) -> None:
    """What was finished is kept: only the rest is run."""
    script, store = tmp_path / "sweep.py", tmp_path / "store"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script), str(store)], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (store.exists() and len(finished(store)) >= 10):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(how)
        process.wait(30)
    kept = finished(store)
    assert 10 <= len(kept) == len(set(kept)) < 80
    grid = {"path": "two-paths-50ms", "duration": "40s"}, {"variant": ["sack", "rack"]}, 40
    with Counting(2) as executor:
        resumed = reknit.sweep(*grid, executor, store)
        assert executor.submitted == 80 - len(kept)
    assert len(finished(store)) == 80
    row = resumed.row(3, named=True)
    run = reknit.simulate("two-paths-50ms", "sack", seed=4, duration=40)
    assert {name: row[name] for name in run.totals} == run.totals


def test_what_algorithms_show_is_kept(tmp_path: Path) -> None:
    """Also in a store; null for variants that do not show it."""
    grid = {"path": "reordered-and-lossy", "duration": "20s"}, {"variant": ["sack", "rr-ta"]}, 1
    with ThreadPoolExecutor(1) as thread:
        table = reknit.sweep(*grid, thread, tmp_path)
        assert table.equals(reknit.sweep(*grid, thread, tmp_path))
    run = reknit.simulate("reordered-and-lossy", "rr-ta", duration="20s").totals
    shown = sorted(name for name in run if "." in name)
    assert shown == [f"dup_thresh.fa_ratio{statistic}" for statistic in ("", "_mean", "_std")]
    assert table.select(shown).rows() == [(None, None, None), tuple(run[name] for name in shown)]


def test_keys_of_all_kinds_vary() -> None:
    """Of the path, of sets of flows, whole paths and variants; what is a mapping has a label."""
    mine = {"name": "mine", "base": "rack", "loss_detector": {"reo_wnd_divisor": 1}}
    line = {"forward": [{"kind": "link", "name": "bottleneck", "rate": "4 Mbit/s", "delay": 0.02}]}
    flows = [{"name": "few", "count": 1, "workload": "bulk"}]
    axes: dict[str, Any] = {
        "path": {"line": line, "known": "rr-tcp"},
        "variant": ["sack", mine],
        "flows.few.count": [1, 2],
        "forward.bottleneck.rate": ["2 Mbit/s"],
        "duration": [1, timedelta(seconds=2)],
        "tcp.min_rto": [0.3],
    }
    with ThreadPoolExecutor(1) as executor:
        table = reknit.sweep({"flows": flows}, axes, [3], executor)
    assert table.columns[:7] == [*axes, "seed"]
    assert table["path"].to_list() == ["line"] * 8 + ["known"] * 8
    assert table["variant"].to_list() == (["sack"] * 4 + ["mine"] * 4) * 2
    assert table["duration"].to_list() == [1.0, 2.0] * 8
    run = reknit.simulate(
        line, mine, seed=3, flows=2, duration=2, set={"forward.bottleneck.rate": "2 Mbit/s", "tcp.min_rto": "300 ms"}
    )
    # Two bulk transfers of `simulate` open one after the other, those of the set at once.
    assert table.row(7, named=True)["goodput_mbit_s"] == pytest.approx(run.totals["goodput_mbit_s"], rel=0.1)
    assert table.row(7, named=True)["goodput_mbit_s"] != table.row(6, named=True)["goodput_mbit_s"]


def test_the_command_sweeps_the_same_file(tmp_path: Path, command: Command) -> None:
    """The same numbers, the same axes; what the command has finished Python does not run again, nor the other way."""
    file, store = tmp_path / "rates.toml", str(tmp_path / "store")
    file.write_text(
        'path = "two-paths-50ms"\nduration = "2 s"\nseeds = 2\nvariants = ["sack", "rack"]\n'
        '[axes]\nloss = [0, "1 %"]\nforward.bottleneck.rate = ["2 Mbit/s", "8 Mbit/s"]\n'
    )
    told = list(csv.DictReader(io.StringIO(command("sweep", str(file), "--csv", "--store", store).stdout)))
    with Counting(2) as executor:
        ours = reknit.sweep(file, executor=executor, store=store)
        assert executor.submitted == 0
        assert ours.equals(reknit.sweep(file, executor=executor))
        assert executor.submitted == len(told) == len(ours) == 16
    for mine, theirs in zip(ours.rows(named=True), told, strict=True):
        same = ["variant", "loss", "forward.bottleneck.rate", "seed", "goodput_mbit_s", "undos", "wait_p99_ms"]
        assert [str(mine[name]) for name in same] == [theirs[name] for name in same]
    document = json.loads(command("sweep", str(file), "--json", "--store", store).stdout)
    assert document["axes"] == ["variant", "loss", "forward.bottleneck.rate"]
    assert [row["run"]["goodput_mbit_s"] for row in document["points"]] == ours["goodput_mbit_s"].to_list()


def test_wrong_points_are_refused_before_anything_runs() -> None:
    """Names, keys and axes."""
    with Counting(1) as executor:
        for scenario, axes, says in [
            (SCENARIO, {"variant": ["sack", "rock"]}, "scenario: variant: unknown variant `rock`"),
            (
                SCENARIO,
                {"variant": ["sack"], "speed": [1]},
                "scenario: axes.speed: unknown key; these can vary: variant",
            ),
            (SCENARIO, {"loss": [0.1]}, "scenario: `variants` is missing"),
            (SCENARIO, {"variant": []}, "axes.variant: must be a list"),
            (SCENARIO, {"variant": "sack"}, "axes.variant: must be a list"),
            (SCENARIO, {"variant": ["sack"], "tcp.mss": [7]}, "two-paths-50ms: tcp.mss = 7: must be from"),
            (SCENARIO, {"variant": ["sack"], "flows.0.count": [7]}, "scenario: axes.flows.0.count: the scenario has"),
            (
                {**SCENARIO, "flows": [{"workload": "bulk"}]},
                {"flows.web.count": [7]},
                "scenario: axes.flows.web.count: unknown entry",
            ),
            (
                SCENARIO,
                {"variant": ["sack"], "loss": [n / 1e6 for n in range(20_000)], "duration": list(range(1, 61))},
                "scenario: axes: the grid has",
            ),
        ]:
            with pytest.raises(reknit.Error, match=f"^{re.escape(says)}"):
                reknit.sweep(scenario, axes, 1, executor)
        assert executor.submitted == 0


def test_sets_of_flows_have_a_column(tmp_path: Path) -> None:
    """The same numbers as in `Run.groups`, also from the store."""
    flows = [{"name": "long", "workload": "bulk"}, {"name": "short", "workload": {"kind": "files", "size": "20 kB"}}]
    scenario = {"path": "two-paths-50ms", "duration": "3s", "flows": flows}
    run = reknit.simulate(scenario=scenario, variant="sack")
    for _ in range(2):
        with ThreadPoolExecutor(1) as thread:
            table = reknit.sweep(scenario, {"variant": ["sack"]}, 1, thread, tmp_path)
        assert table["groups"].to_list() == [run.groups.rows(named=True)]
