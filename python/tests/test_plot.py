"""Plots show what the tables say, and leave matplotlib's settings alone."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
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


@pytest.mark.parametrize("many", [3, 20])
def test_paths_have_no_order(many: int, tmp_path: Path) -> None:
    """A few are points side by side, with intervals that end at zero; many are the distribution of their means."""
    rows = [
        {"path": f"path-{path:c}", "variant": variant, "seed": seed, "goodput_mbit_s": goodput + path - 97}
        for path in range(97, 97 + many)
        for variant, values in (("sack", [0.0, 4.0]), ("rack", [6.0, 6.5]))
        for seed, goodput in enumerate(values, 1)
    ]
    ax = reknit.plot.goodput(pl.DataFrame(rows), x="path")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sack", "rack"]
    if many == 3:
        sack, rack = (container.lines[0] for container in ax.containers)
        assert sack.get_linestyle() == "None"
        assert all(left < right for left, right in zip(sack.get_xdata(), rack.get_xdata(), strict=True))
        assert list(sack.get_ydata()) == [2.0, 3.0, 4.0]
        assert min(y for line in ax.collections[0].get_segments() for _, y in line) == 0.0
    else:
        sack, rack = ax.get_lines()
        assert sorted(set(sack.get_xdata()[1:])) == [2.0 + path for path in range(20)]
        assert ax.get_ylabel() == "share of 20 values of path"
        assert ax.get_xlabel() == "goodput (Mbit/s)"
    drawn(ax, tmp_path / "goodput.png")


def test_goodput_of_a_comparison(comparison: reknit.Comparison, tmp_path: Path) -> None:
    """A row for each variant: families in the order of the list, the best first in each."""
    ax = reknit.plot.goodput(comparison)
    of = dict(comparison.summary.select("variant", "goodput_mbit_s").iter_rows())
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert rows == [*sorted(["newreno", "sack"], key=lambda name: -of[name]), "rack"]
    means = [container.lines[0].get_xdata()[0] for container in ax.containers]
    assert means == pytest.approx([of[name] for name in rows])
    families = dict(reknit.variants().select("name", "family").iter_rows())
    assert [text.get_text() for text in ax.texts] == [families["sack"], families["rack"]]
    assert ax.get_title("left") == "random-delay: mean of 4 seeds, 95 % interval"
    assert ax.get_lines()[-1].get_xdata() == [comparison.in_order_mbit_s] * 2
    drawn(ax, tmp_path / "comparison.png")


def test_all_variants_can_be_read() -> None:
    """No label lies upon another."""
    ax = reknit.plot.goodput(reknit.compare("clean", duration=1, seeds=1))
    ax.figure.canvas.draw()
    boxes = sorted((label.get_window_extent() for label in ax.get_yticklabels()), key=lambda box: box.y0)
    assert len(boxes) == len(reknit.variants())
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))


def test_what_else_varies_must_be_chosen(table: pl.DataFrame) -> None:
    """A mean over different paths would mean nothing."""
    with pytest.raises(reknit.Error, match=r"forward\.bottleneck\.rate: also varies"):
        reknit.plot.goodput(table, x="variant", by=None)
    with pytest.raises(reknit.Error, match="x: choose one of variant, forward"):
        reknit.plot.box(table)
    with pytest.raises(reknit.Error, match="y: unknown column speed; the columns are variant, "):
        reknit.plot.goodput(table, y="speed")


def test_goodput_of_a_comparison_on_several_paths() -> None:
    """Points for each variant; the paths stand side by side, without a line between them."""
    result = reknit.compare(["clean", "rr-tcp"], ["sack", "rack"], duration=1, seeds=1)
    ax = reknit.plot.goodput(result)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["clean", "rr-tcp"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sack", "rack"]
    assert {line.get_linestyle() for line in ax.get_lines()} == {"None"}


def test_boxes_have_the_quartiles(comparison: reknit.Comparison, tmp_path: Path) -> None:
    """And the runs themselves, on axes of the caller's."""
    ours = plt.subplots()[1]
    ax = reknit.plot.box(comparison, y="wait_p99_ms", ax=ours)
    assert ax is ours
    assert len(ax.patches) == 3
    medians = comparison.runs.group_by("variant", maintain_order=True).agg(pl.col("wait_p99_ms").median())
    drawn_medians = [line.get_xdata()[0] for line in ax.get_lines() if line.get_linewidth() == 2.5]
    assert sorted(drawn_medians) == pytest.approx(sorted(medians["wait_p99_ms"].to_list()))
    drawn(ax, tmp_path / "box.png")


def test_the_timeline_shows_the_series(tmp_path: Path) -> None:
    """Window and threshold, recovery shaded, spurious retransmissions marked."""
    run = reknit.simulate("rr-tcp", "rr-fa", duration=10, sample_every=0.02)
    window, threshold = reknit.plot.timeline(run)
    cwnd, ssthresh, spurious = window.get_lines()
    labels = [line.get_label() for line in (cwnd, ssthresh, spurious)]
    assert labels == ["cwnd", "ssthresh", "spurious retransmissions"]
    counts = run.series["spurious_retransmissions"]
    assert counts[-1] == run.totals["spurious_retransmissions"] > 0
    assert list(spurious.get_xdata()) == run.series.filter(counts > counts.shift(fill_value=0))["time_s"].to_list()
    assert list(cwnd.get_ydata()) == pytest.approx((run.series["cwnd_bytes"] / 1e3).to_list())
    assert list(threshold.get_lines()[0].get_ydata()) == run.series["dup_thresh_segments"].to_list()
    shaded = sum(patch.get_width() for patch in window.patches)
    share = (run.series["phase"].is_in(["recovery", "loss"])).mean()
    assert shaded / 10 == pytest.approx(share, abs=0.02)
    assert window.figure.get_suptitle() == "rr-fa on rr-tcp, seed 1"
    drawn(window, tmp_path / "timeline.png")
    with pytest.raises(reknit.Error, match="sample_every"):
        reknit.plot.timeline(reknit.simulate("rr-tcp", "sack", duration=1))


def test_the_sequence_shows_what_was_sent(tmp_path: Path) -> None:
    """First transmissions, retransmissions, those that were spurious, what was lost and acknowledged."""
    rules = [{"segment": 2, "action": "drop"}, {"segment": 6, "action": "delay", "by": "700 ms"}]
    path = {
        "forward": [{"kind": "script", "rules": rules}, {"kind": "link", "delay": "50 ms"}],
        "reverse": [{"kind": "link", "delay": "50 ms"}],
    }
    trace = reknit.trace(path, "newreno", duration=2, phases="fixed")
    ax = reknit.plot.sequence(trace)
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.get_lines()}
    sent = trace.filter(pl.col("event") == "send", pl.col("end") == "sender", pl.col("length_bytes") > 0)

    def at(packets: pl.DataFrame) -> list[list[float]]:
        return [[time, seq / 1e3] for time, seq in packets.select("time_s", "seq_bytes").iter_rows()]

    again = sent.filter(pl.col("transmission") > 1)
    assert lines["sent"] == at(sent.filter(pl.col("transmission") == 1))
    lost = trace.filter(pl.col("event") == "lost")
    assert lost["segment"].to_list() == [2]
    assert lines["lost"] == at(lost)
    assert {2, 6} <= set(again["segment"])
    assert lines["spurious retransmission"] == at(again.filter(pl.col("segment") != 2))
    assert lines["acknowledged"][-1][1] == trace["ack_bytes"].max() / 1e3
    drawn(ax, tmp_path / "sequence.png")


def test_wrong_arguments_are_named() -> None:
    """In one line."""
    with pytest.raises(reknit.Error, match=r"^run: a str; "):
        reknit.plot.timeline("run")  # type: ignore[arg-type]
    with pytest.raises(reknit.Error, match=r"^trace: a dict; "):
        reknit.plot.sequence({})  # type: ignore[arg-type]
    with pytest.raises(reknit.Error, match=r"^result: a list; "):
        reknit.plot.goodput([])  # type: ignore[arg-type]


def test_results_show_themselves(comparison: reknit.Comparison) -> None:
    """On a terminal and in a notebook, whatever the notebook's background."""
    lines = repr(comparison).splitlines()
    assert lines[0].startswith("random-delay: ")
    assert [line.split()[0] for line in lines[2:5]] == ["newreno", "sack", "rack"]
    run = reknit.simulate("random-delay", "rack", duration=1)
    assert repr(run).startswith("rack on random-delay (")
    for page in (comparison._repr_html_(), run._repr_html_()):
        assert page.count("<tr") == page.count("</tr>") > 1
        assert "#" not in page and "color: " not in page.replace("color: inherit", "")


def test_without_matplotlib_it_is_said_what_to_install() -> None:
    """And the rest works."""
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import reknit, reknit.plot\n"
        "result = reknit.compare('clean', 'sack', duration=1, seeds=1)\n"
        "try: reknit.plot.goodput(result)\n"
        "except ImportError as error: assert 'pip install matplotlib' in str(error)\n"
        "else: sys.exit('drawn?')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
