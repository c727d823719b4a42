#!/usr/bin/env python3
"""How sweeps scale: two worker processes compared with one, and the memory and time of 10,000 short runs.

Needs the installed package: `make python`, then `target/venv/bin/python study/benches/sweep.py`.
"""

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import reknit


def warm(_: int) -> None:
    """Make a worker load the package."""
    reknit.simulate("clean", "sack", duration=0.1)


def processor(who: int) -> float:
    """Return processor time in seconds."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def timed(workers: int, duration: str) -> float:
    """Measure the time of 200 runs, without the start of the workers. Also prints processor time, for busy machines."""
    ours, theirs = processor(resource.RUSAGE_SELF), processor(resource.RUSAGE_CHILDREN)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
        list(executor.map(warm, range(4 * workers)))
        began = time.monotonic()
        axes = {"variant": ["sack", "rack"], "loss": [0, 0.001, 0.002, 0.005, 0.01]}
        reknit.sweep({"path": "two-paths-50ms", "duration": duration}, axes, 20, executor)
        took = time.monotonic() - began
    ours, theirs = processor(resource.RUSAGE_SELF) - ours, processor(resource.RUSAGE_CHILDREN) - theirs
    print(f"{workers} workers: {took:.1f} s; on a processor: workers {theirs:.1f} s, this process {ours:.2f} s")
    return took


def megabytes(who: int) -> float:
    """Return the peak of the resident set in megabytes."""
    return resource.getrusage(who).ru_maxrss / 1024


def main() -> int:
    """Measure and print."""
    duration = sys.argv[1] if len(sys.argv) > 1 else "300 s"
    one, two = timed(1, duration), timed(2, duration)
    print(f"200 runs of {duration}: one worker {one:.1f} s, two workers {two:.1f} s, ratio {two / one:.2f}")
    axes = {"variant": ["sack", "rack"], "loss": [n / 1e5 for n in range(100)]}
    short = {"path": "clean", "duration": "100 ms"}
    with tempfile.TemporaryDirectory() as store:
        for what in ("run", "resumed"):
            began = time.monotonic()
            rows = len(reknit.sweep(short, axes, 50, store=store))
            print(f"{rows} short runs, {what}: {time.monotonic() - began:.1f} s")
    parent, worker = megabytes(resource.RUSAGE_SELF), megabytes(resource.RUSAGE_CHILDREN)
    print(f"peak memory: {parent:.0f} MB, each worker at most {worker:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
