"""The command that came with the package, and a browser."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

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


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Start headless Chromium; outside CI it may be absent."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None and not os.environ.get("CI"):
        pytest.skip("no chromium: pages were not tested in a browser")
    assert program, "CI needs chromium"
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()
