"""Sweeps: equal to single runs, stored as they come, resumed where they were."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import reknit

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
    assert len(list(tmp_path.glob("*.parquet"))) == 4


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
    assert again.equals(first)
    assert [progress.done for progress in seen] == [1, 2, 3, 4]
    assert str(seen[-1]) == "4 of 4 points, 0 s left"


def test_a_changed_file_is_another_point(tmp_path: Path) -> None:
    """Files count by what is in them."""
    file = tmp_path / "mine.toml"
    with Counting(1) as executor:
        for divisor in (1, 1, 2):
            file.write_text(f'name = "mine"\nbase = "rack"\n[loss_detector]\nreo_wnd_divisor = {divisor}\n')
            scenario = {**SCENARIO, "variant_files": [file]}
            reknit.sweep(scenario, {"variant": ["mine"]}, 1, executor, tmp_path / "store")
        assert executor.submitted == 2


SCRIPT = """
import sys, reknit
if __name__ == "__main__":
    reknit.sweep({"path": "two-paths-50ms", "duration": "400s"}, {"variant": ["sack", "rack"]}, 40, store=sys.argv[1])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_goes_on_where_it_was(how: signal.Signals, tmp_path: Path) -> None:
    """What was finished is kept, the rest is run."""
    script, store = tmp_path / "sweep.py", tmp_path / "store"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script), str(store)], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(list(store.glob("*.parquet"))) < 3:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(how)
        process.wait(30)
    kept = len(list(store.glob("*.parquet")))
    assert 3 <= kept < 80
    scenario = {"path": "two-paths-50ms", "duration": "400s"}
    few = {"variant": ["sack"]}
    with Counting(2) as executor:
        resumed = reknit.sweep(scenario, few, 4, executor, store)
        assert executor.submitted <= 1
        assert resumed.equals(reknit.sweep(scenario, few, 4, executor))


def test_wrong_points_are_refused_before_anything_runs() -> None:
    """Names, keys and axes."""
    with Counting(1) as executor:
        for scenario, axes in [
            (SCENARIO, {"variant": ["sack", "rock"]}),
            (SCENARIO, {"variant": ["sack"], "speed": [1]}),
            (SCENARIO, {"loss": [0.1]}),
            (SCENARIO, {"variant": []}),
            (SCENARIO, {"variant": ["sack"], "tcp.mss": [7]}),
        ]:
            with pytest.raises(reknit.Error):
                reknit.sweep(scenario, axes, 1, executor)
        assert executor.submitted == 0
