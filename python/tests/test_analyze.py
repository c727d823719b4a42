"""Captures: the same as the command, and the page in a browser."""

import json
from pathlib import Path

import polars as pl
import pytest

import reknit

from conftest import Command, OpenPage


@pytest.fixture(scope="module")
def capture(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Capture a transfer at the sender: every other packet is late, and some are lost."""
    file = tmp_path_factory.mktemp("captures") / "sack.pcapng"
    options = ("--variants", "sack", "--duration", "4 s", "--seeds", "1", "--loss", "0.01", "--no-oracle")
    done = command("compare", "--path", "two-paths-50ms", *options, "--pcap", str(file), "--pcap-side", "sender")
    assert done.returncode == 0, done.stderr
    return file


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
    with pytest.warns(UserWarning, match="reading ended early, the result is partial"):
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


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_in_a_browser(
    open_page: OpenPage, command: Command, capture: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """Nothing is fetched, there are no errors, the plots are drawn and can be zoomed, and the page fits the screen."""
    file = tmp_path / "page.html"
    done = command("analyze", str(capture), "--html", str(file))
    assert done.returncode == 0, done.stderr
    opened = open_page(file, width, scheme)
    page = opened.page
    ink = """name => {
        const canvas = document.getElementById(name);
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const colours = new Set();
        for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3]) colours.add(pixels.slice(i, i + 3).join());
        return colours.size;
    }"""
    page.wait_for_function(f"({ink})('sequence') > 3")
    assert page.evaluate(ink, "flight") > 3
    assert page.evaluate(ink, "lateness") > 3
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    whole = page.evaluate("view.to - view.from")
    page.focus("#sequence")
    page.keyboard.press("+")
    assert page.evaluate("view.to - view.from") == pytest.approx(whole / 2)
    before = page.evaluate("view.from")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("view.from") > before
    page.keyboard.press("0")
    assert page.evaluate("view.to - view.from") == pytest.approx(whole)
    page.click("#in")
    page.mouse.move(*_middle(page))
    page.mouse.wheel(0, -200)
    page.wait_for_function(f"view.to - view.from < {whole / 2}")
    assert opened.complaints == []
    assert [url for url in opened.fetched if not url.startswith("data:")] == [file.as_uri()]
    page.close()


def test_two_fingers_zoom(browser: object, command: Command, capture: Path, tmp_path: Path) -> None:
    """The plot is zoomed, and the page is not; one finger then moves the plot."""
    file = tmp_path / "page.html"
    command("analyze", str(capture), "--html", str(file))
    phone = {"width": 390, "height": 844}
    context = browser.new_context(viewport=phone, has_touch=True, is_mobile=True)  # type: ignore[attr-defined]
    page = context.new_page()
    page.goto(file.as_uri())
    page.evaluate("document.getElementById('sequence').scrollIntoView()")
    x, y = _middle(page)
    devtools = context.new_cdp_session(page)

    def touch(kind: str, *fingers: float) -> None:
        points = [{"x": at, "y": y, "id": i} for i, at in enumerate(fingers)]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    whole = page.evaluate("view.to - view.from")
    touch("touchStart", x - 20)
    touch("touchStart", x - 20, x + 20)
    for apart in range(30, 120, 10):
        touch("touchMove", x - apart, x + apart)
    touch("touchEnd")
    page.wait_for_function(f"view.to - view.from < {whole / 2}")
    assert page.evaluate("visualViewport.scale") == 1
    before = page.evaluate("view.from")
    touch("touchStart", x)
    for by in range(0, 100, 10):
        touch("touchMove", x - by)
    touch("touchEnd")
    page.wait_for_function(f"view.from > {before}")
    context.close()


def _middle(page: object) -> tuple[float, float]:
    box = page.locator("#sequence").bounding_box()  # type: ignore[attr-defined]
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_page_without_scripts(browser: object, command: Command, capture: Path, tmp_path: Path) -> None:
    """The answer and the tables remain."""
    file = tmp_path / "page.html"
    command("analyze", str(capture), "--html", str(file))
    context = browser.new_context(java_script_enabled=False)  # type: ignore[attr-defined]
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(".answer dt:visible").count() == 5
    assert page.locator("table:visible").count() == 1
    assert not page.locator("#plots").is_visible()
    context.close()
