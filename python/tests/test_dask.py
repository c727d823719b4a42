"""A Dask cluster gives what one thread gives, also if a worker is killed."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import distributed
import pytest

import reknit

SCENARIO = {"path": "two-paths-50ms", "duration": "40s"}
AXES = {"variant": ["sack", "rack", "newreno"], "loss": [0.0, 0.01]}


# A worker that is killed leaves sockets behind, which is what the test wants.
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    """Two processes, one killed half-way."""
    with ThreadPoolExecutor(1) as thread:
        serial = reknit.sweep(SCENARIO, AXES, 8, thread)
    seen: list[reknit.Progress] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victims = list(client.run(os.getpid).values())
        assert len(set(victims)) == 2

        def kill() -> None:
            while len(seen) < 12:
                time.sleep(0.01)
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        theirs = reknit.sweep(SCENARIO, AXES, 8, client, tmp_path / "store", progress=seen.append)
        killer.join()
        assert victims[0] not in client.run(os.getpid).values()
    assert theirs.equals(serial)
