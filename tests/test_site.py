"""The site in a browser: it fits on a phone, finds pages, and fetches nothing from another host."""

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import OpenUrl, without

ROOT = Path(__file__).parents[1]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def folder() -> Path:
    """Build the site."""
    if find_spec("material") is None:
        without("mkdocs-material")
    done = subprocess.run([sys.executable, "tools/site.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(done.stdout.rsplit("--directory ", 1)[1].strip())


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    """Serve the site on the loopback device."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "page", ["index.html", "docs/guide/analyze.html", "docs/reference/commands.html", "docs/design/architecture.html"]
)
def test_pages_fit(open_url: OpenUrl, site: str, page: str, width: int, scheme: str) -> None:
    """Nothing has to be scrolled sideways, nothing complains, and everything comes from the site."""
    opened = open_url(f"{site}/{page}", width, scheme)
    opened.page.wait_for_load_state("networkidle")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.complaints == []
    assert opened.fetched
    assert [url for url in opened.fetched if not url.startswith((site, "data:", "blob:"))] == []


def test_everything_is_rendered(folder: Path) -> None:
    """No fence, diagram or escaped bar is left as its source."""
    for page in folder.rglob("*.html"):
        text = page.read_text()
        left = [mark for mark in ("```", "stateDiagram", "\\|") if mark in text]
        assert left == [], page


@pytest.mark.parametrize(
    ("words", "page"),
    [("analyze capture", "analyze"), ("path file stages", "paths"), ("of oracle", "oracle"), ("emulate", "emulate")],
)
def test_search_finds_a_page(open_url: OpenUrl, site: str, words: str, page: str) -> None:
    """Among the first results."""
    opened = open_url(f"{site}/index.html", 1280, "light")
    opened.page.locator("input.md-search__input").click()
    opened.page.locator("input.md-search__input").fill(words)
    results = opened.page.locator("a.md-search-result__link")
    results.first.wait_for()
    found = [results.nth(i).get_attribute("href") for i in range(min(8, results.count()))]
    assert any(page in address for address in found), found
    assert [url for url in opened.fetched if not url.startswith((site, "data:", "blob:"))] == []
