"""How soon real losses are answered and repaired. Needs the installed package (`make python`)."""

import bisect
import importlib.util
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from transfers import IN_ORDER

from tools import goal, links, percent, table

LOSSES = [0, 0.001, 0.01]
LATE = '[[forward]]\nkind = "delay"\nprobability = 0.1\nextra = "uniform(0 ms, 100 ms)"\n'


@dataclass
class Run:
    """What a trace says about losses."""

    sent: dict[tuple[int, int], float] = field(default_factory=dict)
    lost: list[tuple[float, int, int]] = field(default_factory=list)
    reductions: list[float] = field(default_factory=list)
    # When a data packet arrived, and when it had been sent; when an ACK arrived, by when it was sent.
    arrivals: list[tuple[float, float]] = field(default_factory=list)
    acks: list[tuple[float, float]] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)


def read(path: Path, variant: str, loss: float, seed: int, duration: str = "20 s") -> Run:
    """Trace a bulk transfer."""
    import reknit

    run, acked, last, threshold = Run(), {}, 0, None
    for row in reknit.trace(str(path), variant, seed=seed, loss=loss, duration=duration).iter_rows(named=True):
        now, key = row["time_s"], (row["segment"], row["transmission"])
        data = row["direction"] == "forward" and row["length_bytes"] > 0
        if data and row["event"] == "send":
            run.sent[key] = now
        elif data and row["event"] == "lost":
            run.lost.append((run.sent[key], *key))
        elif data:
            run.arrivals.append((run.sent[key], now))
        elif row["event"] == "send":
            acked[row["packet"]] = now
        elif row["event"] == "deliver" and row["packet"] in acked:
            run.acks.append((acked[row["packet"]], now))
        if row["end"] == "sender" and row["cwnd_bytes"] is not None:
            # PRR lowers cwnd step by step, so ssthresh shows when the window is reduced.
            ssthresh = row["ssthresh_bytes"]
            if ssthresh != threshold and ssthresh is not None and ssthresh < 0.95 * last:
                run.reductions.append(now)
            threshold, last = ssthresh, row["cwnd_bytes"]
            run.waits.append((now, row.get("loss_detector.wait_ms") or 0.0))
    run.lost.sort()
    run.arrivals.sort()
    run.acks.sort()
    return run


def earliest_from(pairs: list[tuple[float, float]], since: float) -> float | None:
    """Return the earliest second time among pairs whose first time is `since` or later."""
    found = [at for when, at in pairs[bisect.bisect_left(pairs, (since, 0.0)) :][:200]]
    return min(found, default=None)


def evidence(run: Run, sent: float) -> float | None:
    """When the sender first heard of a segment sent later."""
    arrived = earliest_from(run.arrivals, sent + 1e-9)
    return None if arrived is None else earliest_from(run.acks, arrived)


def answered(run: Run) -> tuple[int, int]:
    """Count the congestion episodes, and those without a reduction within two round trips of the evidence."""
    episodes = missed = 0
    until = -1.0
    for sent, _, transmission in run.lost:
        if sent <= until or transmission > 1:
            continue
        heard = evidence(run, sent)
        if heard is None:
            continue
        limit = heard + 2 * (heard - sent)
        if limit > run.acks[-1][1]:
            break
        first = bisect.bisect_left(run.reductions, sent)
        is_answered = first < len(run.reductions) and run.reductions[first] <= limit
        episodes, missed = episodes + 1, missed + (not is_answered)
        until = run.reductions[first] if is_answered else heard
    return episodes, missed


def repair_times(run: Run) -> list[float]:
    """From the transmission of each lost segment to the next."""
    after = ((run.sent.get((segment, number + 1)), sent) for sent, segment, number in run.lost)
    return [again - sent for again, sent in after if again is not None]


def beyond_wait(run: Run) -> list[float]:
    """How much later than the learned wait, in round trips, lost segments were repaired."""
    times, found = [at for at, _ in run.waits], []
    for sent, segment, number in run.lost:
        again, heard = run.sent.get((segment, number + 1)), evidence(run, sent)
        if number == 1 and again is not None and heard is not None:
            wait = run.waits[bisect.bisect_right(times, again) - 1][1] / 1000
            found.append((again - heard - wait) / (heard - sent))
    return found


def p99(values: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(values)[int(0.99 * (len(values) - 1))]


def losses() -> None:
    """Measure on paths in order and on one that reorders."""
    if importlib.util.find_spec("reknit") is None:
        print("the Python package is not installed: `losses` was left out", file=sys.stderr)
        return
    rows, total, missed, slowest = [], 0, 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "path.toml"
        for rate, delay, queue in IN_ORDER:
            path.write_text(links(rate, delay, queue))
            for loss in LOSSES:
                runs = {v: [read(path, v, loss, seed) for seed in (1, 2, 3)] for v in ("reknit", "rack")}
                counts = [answered(run) for run in runs["reknit"]]
                total, missed = total + sum(c[0] for c in counts), missed + sum(c[1] for c in counts)
                times = {v: p99([t for run in of for t in repair_times(run)]) for v, of in runs.items()}
                slowest = max(slowest, times["reknit"] / times["rack"])
                what = f"{rate}, {delay} one way, {100 * loss:g} % lost"
                row = [sum(c[0] for c in counts), sum(c[1] for c in counts)]
                rows.append([what, *map(str, row), *(f"{1000 * times[v]:.0f}" for v in ("reknit", "rack"))])
        path.write_text(LATE + links("10 Mbit/s", "20 ms", 70))
        late = p99([t for seed in range(1, 6) for t in beyond_wait(read(path, "reknit", 0.01, seed))])
    print("## Real losses, in order\n")
    table(["path", "episodes", "unanswered after 2 RTT", "repair p99, ms", "`rack`: repair p99, ms"], rows)
    share = missed / total
    goal("congestion episodes unanswered after 2 RTT", "at most 1 %", percent(share), holds=share <= 0.01)
    goal("repair p99 / that of `rack`, in order", "at most 1.25", f"{slowest:.2f}", holds=slowest <= 1.25)
    goal("repair p99 after the learned wait, reordered", "at most 1 RTT", f"{late:.2f} RTT", holds=late <= 1.0)
