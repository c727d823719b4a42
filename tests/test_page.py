"""The page of `reknit analyze --html` in a browser."""

from pathlib import Path

import pytest

from conftest import Command, OpenPage


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
