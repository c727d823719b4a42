"""Execute the runs of a sweep: in own processes, or in any object with a method ``submit``."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection
from typing import Any, Protocol

from reknit import _native

# Most points that are submitted at once: enough for any cluster, and few enough to stop quickly.
IN_FLIGHT = 1024


class Future(Protocol):
    """What `Executor.submit` returns."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object:
        """Call ``fn`` with the future when it is done."""

    def result(self) -> Any:  # noqa: ANN401
        """Return what the call returned."""

    def cancel(self) -> object:
        """Cancel the call if it has not started."""


class Executor(Protocol):
    """An object with ``submit`` as in `concurrent.futures`, such as a ``dask.distributed.Client``."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:  # noqa: ANN401
        """Call ``fn`` in a worker."""


def run_point(point: str) -> dict[str, Any]:
    """Run one point, in a worker."""
    return _native.run_point(point)


def run_all(points: Mapping[str, str], executor: Executor | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield key and run of each point when it finishes; ``points`` has the text for each key."""
    if not points:
        return
    if executor is not None:
        yield from _run_all(points, executor)
        return
    pool = _processes(len(points))
    try:
        yield from _run_all(points, pool)
    except BaseException:
        _terminate(pool)
        raise
    pool.shutdown()


def _run_all(points: Mapping[str, str], executor: Executor) -> Iterator[tuple[str, dict[str, Any]]]:
    done: queue.SimpleQueue[tuple[str, Future]] = queue.SimpleQueue()
    running: dict[str, Future] = {}
    waiting = iter(points.items())

    def submit(key: str, point: str) -> None:
        future = running[key] = executor.submit(run_point, point)
        future.add_done_callback(lambda finished: done.put((key, finished)))

    try:
        for entry in itertools.islice(waiting, IN_FLIGHT):
            submit(*entry)
        while running:
            key, future = done.get()
            del running[key]
            yield key, future.result()
            for entry in itertools.islice(waiting, 1):
                submit(*entry)
    except BaseException:
        for future in running.values():
            future.cancel()
        raise


def _processes(points: int) -> ProcessPoolExecutor:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ProcessPoolExecutor(min(processors, points), mp_context=_fresh_processes(), initializer=_begin_worker)


def _fresh_processes() -> multiprocessing.context.BaseContext:
    """Start processes without the locks of this one's threads: forks of a server that has no threads, if possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])  # imported once, not by each worker
    return server


def _terminate(pool: ProcessPoolExecutor) -> None:
    """Stop the pool without waiting for its runs."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def _begin_worker() -> None:
    """End at once on Ctrl-C, and when the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
