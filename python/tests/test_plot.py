"""Plots show what the tables say, and leave matplotlib's settings alone."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib as mpl
import polars as pl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.image import imread

import reknit
import reknit.plot


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Nothing of matplotlib's settings may change."""
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """Sweep a rate."""
    axes = {"variant": ["sack", "rack"], "forward.bottleneck.rate": ["800 kbit/s", "2 Mbit/s", "4 Mbit/s"]}
    with ThreadPoolExecutor(2) as executor:
        return reknit.sweep({"path": "random-delay", "duration": 4}, axes, 4, executor)


@pytest.fixture(scope="module")
def comparison() -> reknit.Comparison:
    """Compare three."""
    return reknit.compare("random-delay", ["newreno", "sack", "rack"], duration=4, seeds=4)


def drawn(ax: Axes, file: Path) -> None:
    """Render it, and not to an empty picture."""
    ax.figure.savefig(file)
    pixels = imread(file)[..., :3]
    assert (pixels != 1).any(axis=-1).mean() > 0.02


def test_goodput_has_means_and_bands(table: pl.DataFrame, tmp_path: Path) -> None:
    """To scale, with the interval of Student's t."""
    ax = reknit.plot.goodput(table, x="forward.bottleneck.rate")
    sack, rack = ax.get_lines()
    assert [sack.get_label(), rack.get_label()] == ["sack", "rack"]
    assert [to_hex(line.get_color()) for line in (sack, rack)] == ["#0072b2", "#d55e00"]
    assert list(sack.get_xdata()) == [0.8, 2.0, 4.0]
    assert ax.get_xlabel() == "forward.bottleneck.rate (Mbit/s)"
    assert ax.get_ylabel() == "goodput (Mbit/s)"
    of_rack = table.filter((pl.col("variant") == "rack") & (pl.col("forward.bottleneck.rate") == "4 Mbit/s"))
    goodput = of_rack["goodput_mbit_s"]
    assert rack.get_ydata()[-1] == pytest.approx(goodput.mean())
    # t of 3 degrees of freedom.
    high = goodput.mean() + 3.182 * goodput.std() / 2
    band = ax.collections[1].get_paths()[0].vertices
    assert max(y for x, y in band if x == 4.0) == pytest.approx(high, rel=1e-3)
    drawn(ax, tmp_path / "goodput.png")


def test_goodput_of_a_comparison(comparison: reknit.Comparison, tmp_path: Path) -> None:
    """Variants side by side, as in its summary."""
    ax = reknit.plot.goodput(comparison)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["newreno", "sack", "rack"]
    means = [container.lines[0].get_ydata()[0] for container in ax.containers]
    assert means == pytest.approx(comparison.summary["goodput_mbit_s"].to_list())
    drawn(ax, tmp_path / "comparison.png")


def test_what_else_varies_must_be_chosen(table: pl.DataFrame) -> None:
    """A mean over different paths would mean nothing."""
    with pytest.raises(reknit.Error, match=r"forward\.bottleneck\.rate: varies, too"):
        reknit.plot.goodput(table, x="variant", by=None)
    with pytest.raises(reknit.Error, match="x: choose one of variant, forward"):
        reknit.plot.box(table)
    with pytest.raises(reknit.Error, match="speed: no such column; there are variant, "):
        reknit.plot.goodput(table, y="speed")


def test_boxes_have_the_quartiles(comparison: reknit.Comparison, tmp_path: Path) -> None:
    """And the runs themselves, on axes of the caller's."""
    ours = plt.subplots()[1]
    ax = reknit.plot.box(comparison, y="wait_p99_ms", ax=ours)
    assert ax is ours
    assert len(ax.patches) == 3
    medians = comparison.runs.group_by("variant", maintain_order=True).agg(pl.col("wait_p99_ms").median())
    drawn_medians = [line.get_ydata()[0] for line in ax.get_lines() if line.get_linewidth() == 2.5]
    assert drawn_medians == pytest.approx(medians["wait_p99_ms"].to_list())
    drawn(ax, tmp_path / "box.png")


def test_the_timeline_shows_the_series(tmp_path: Path) -> None:
    """Window and threshold, recovery shaded."""
    run = reknit.simulate("rr-tcp", "rr-fa", duration=10, sample_every=0.02)
    window, threshold = reknit.plot.timeline(run)
    cwnd, ssthresh = window.get_lines()
    assert (cwnd.get_label(), ssthresh.get_label()) == ("cwnd", "ssthresh")
    assert list(cwnd.get_ydata()) == pytest.approx((run.series["cwnd_bytes"] / 1e3).to_list())
    assert list(threshold.get_lines()[0].get_ydata()) == run.series["dup_thresh_segments"].to_list()
    shaded = sum(patch.get_width() for patch in window.patches)
    share = (run.series["phase"].is_in(["recovery", "loss"])).mean()
    assert shaded / 10 == pytest.approx(share, abs=0.02)
    assert window.get_title("left") == "rr-fa on rr-tcp, seed 1"
    drawn(window, tmp_path / "timeline.png")
    with pytest.raises(reknit.Error, match="sample_every"):
        reknit.plot.timeline(reknit.simulate("rr-tcp", "sack", duration=1))


def test_the_sequence_shows_what_was_sent(tmp_path: Path) -> None:
    """First, again, lost, acknowledged."""
    columns = {
        "time_s": [0.0, 0.1, 0.1, 0.2, 0.3, 0.4, 0.0],
        "flow": [0, 0, 0, 0, 0, 0, 1],
        "event": ["send", "send", "lost", "deliver", "send", "deliver", "send"],
        "end": ["sender"] * 7,
        "seq_bytes": [1, 1001, 1001, 0, 1001, 0, 1],
        "ack_bytes": [1, 1, 1, 1001, 1, 2001, 1],
        "length_bytes": [1000, 1000, 1000, 0, 1000, 0, 1000],
        "cause": ["new", "new", "new", None, "fast_retransmit", None, "new"],
    }
    ax = reknit.plot.sequence(pl.DataFrame(columns))
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    assert lines == {
        "acknowledged": [[0.2, 1.001], [0.4, 2.001]],
        "sent": [[0.0, 0.001], [0.1, 1.001]],
        "sent again: fast retransmit": [[0.3, 1.001]],
        "lost": [[0.1, 1.001]],
    }
    drawn(ax, tmp_path / "sequence.png")


def test_without_matplotlib_it_is_said_what_to_install() -> None:
    """And the rest works."""
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import reknit, reknit.plot\n"
        "result = reknit.compare('clean', 'sack', duration=1, seeds=1)\n"
        "try: reknit.plot.goodput(result)\n"
        "except ImportError as error: assert 'reknit[plot]' in str(error)\n"
        "else: sys.exit('drawn?')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
