"""For all tests: the command that came with the package, a capture, a browser, and skipped tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def command() -> Command:
    """Run ``reknit`` with some arguments."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "reknit", *arguments], capture_output=True, text=True, check=False, timeout=60
        )

    return run


def program(*names: str) -> str:
    """Return the first of these programs that is installed. Without one the test is skipped; in CI it fails."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        without(names[0])
    return found


def without(name: str) -> NoReturn:
    """Skip a test without what it needs; in CI it fails."""
    absent: Any = pytest.fail if os.environ.get("CI") else pytest.skip
    absent(f"needs {name}")
    raise AssertionError


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a skipped test for `make test`."""
    if report.skipped and (file := os.environ.get("SKIPPED_TESTS")):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with Path(file).open("a") as skipped:
            skipped.write(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}\n")


@pytest.fixture(scope="session")
def capture(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Capture a transfer at the sender: every other packet is late, and some are lost."""
    file = tmp_path_factory.mktemp("captures") / "sack.pcapng"
    options = ("--variants", "sack", "--duration", "4 s", "--seeds", "1", "--loss", "0.01", "--no-oracle")
    done = command("compare", "--path", "two-paths-50ms", *options, "--pcap", str(file), "--pcap-side", "sender")
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Start headless Chromium."""
    executable = program("chromium", "chromium-browser", "google-chrome")
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass
class Opened:
    """A page in a browser, what it complained about, and what it fetched."""

    page: Any
    complaints: list[str]
    fetched: list[str]


OpenUrl = Callable[[str, int, str], Opened]
OpenPage = Callable[[Path, int, str], Opened]


@pytest.fixture
def open_url(browser: object) -> OpenUrl:
    """Open an address in a window of a width, in a light or dark scheme."""

    def opened(address: str, width: int, scheme: str) -> Opened:
        viewport = {"width": width, "height": 844}
        page = browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[attr-defined]
        result = Opened(page, [], [])
        page.on("console", lambda message: result.complaints.append(message.text))
        page.on("pageerror", lambda error: result.complaints.append(str(error)))
        page.on("request", lambda request: result.fetched.append(request.url))
        page.goto(address)
        return result

    return opened


@pytest.fixture
def open_page(open_url: OpenUrl) -> OpenPage:
    """Open a file likewise."""
    return lambda file, width, scheme: open_url(file.as_uri(), width, scheme)
