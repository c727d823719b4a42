"""The command that came with the package, a browser, and skipped tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

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
        absent = pytest.fail if os.environ.get("CI") else pytest.skip
        absent(f"needs {names[0]}")
    return found


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a skipped test for `make test`."""
    if report.skipped and (file := os.environ.get("SKIPPED_TESTS")):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with Path(file).open("a") as skipped:
            skipped.write(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}\n")


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


OpenPage = Callable[[Path, int, str], Opened]


@pytest.fixture
def open_page(browser: object) -> OpenPage:
    """Open a file in a window of a width, in a light or dark scheme."""

    def opened(file: Path, width: int, scheme: str) -> Opened:
        viewport = {"width": width, "height": 844}
        page = browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[attr-defined]
        result = Opened(page, [], [])
        page.on("console", lambda message: result.complaints.append(message.text))
        page.on("pageerror", lambda error: result.complaints.append(str(error)))
        page.on("request", lambda request: result.fetched.append(request.url))
        page.goto(file.as_uri())
        return result

    return opened
