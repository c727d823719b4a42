#!/usr/bin/env python3
"""Build the documentation as a site in target/site, with MkDocs.

The pages are laid out as in the repository, so their links work unchanged. Links to other files of the repository lead
to its web address.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import tomllib
from places import PYTHON, TARGET

import python

ROOT = Path(__file__).parents[1]
PAGES = TARGET.absolute() / "site-pages"
SITE = TARGET.absolute() / "site"
FOLDERS = ("docs", "study/results")
SINGLE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "study/README.md")
SHOWN = {".md", ".svg", ".png"}
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
RUST_FENCE = re.compile(r"^```rust,\w+$", re.MULTILINE)
NAMED_FENCE = re.compile(r"^```(\w+) file=(\S+)$", re.MULTILINE)
DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRANSITION = re.compile(r"\s*(\S+) --> (\w+|\[\*\])(?:: (\w+))?")


def sources() -> list[Path]:
    """List the pages and pictures, relative to the repository."""
    found = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in SHOWN]
    return [file.relative_to(ROOT) for file in sorted(found)] + [Path(name) for name in SINGLE]


def to_repository(text: str, page: Path, shown: set[Path], repository: str) -> str:
    """Let links to files that the site does not have lead to the repository."""

    def changed(link: re.Match[str]) -> str:
        if "://" in link[2] or link[2].startswith("mailto:"):
            return link[0]
        target = Path(os.path.normpath(page.parent / link[2]))
        if target in shown:
            return link[0]
        return f"{link[1]}{repository}/{'tree' if (ROOT / target).is_dir() else 'blob'}/main/{target}{link[3]}"

    return LINK.sub(changed, text)


def as_table(diagram: re.Match[str]) -> str:
    """Show the transitions of a diagram of states as a table: drawing it would need a script from another host."""
    rows = [TRANSITION.fullmatch(line) for line in diagram[1].splitlines()]
    cells = [(row[1].replace("[*]", ""), row[3] or "", row[2].replace("[*]", "")) for row in rows if row]
    lines = ["| from | event | to |", "|---|---|---|", *(f"| {start} | {event} | {to} |" for start, event, to in cells)]
    return "\n".join(lines)


def for_site(text: str) -> str:
    """Write what GitHub and MkDocs spell differently as MkDocs does."""
    text = NAMED_FENCE.sub(r'```\1 title="\2"', RUST_FENCE.sub("```rust", text))
    return DIAGRAM.sub(as_table, text)


def lay_out() -> None:
    """Copy the pages to a folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    repository = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
    shown = set(sources())
    for file in shown:
        place = PAGES / file
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            place.write_text(for_site(to_repository((ROOT / file).read_text(), file, shown, repository)))
        else:
            shutil.copyfile(ROOT / file, place)


def main() -> int:
    """Build the site."""
    try:
        python.install(("mkdocs-material",))
    except python.NoPackagesError as error:
        print(f"the site cannot be built: {error}", file=sys.stderr)
        return 1
    lay_out()
    environment = {**os.environ, "SITE_PAGES": str(PAGES), "SITE": str(SITE), "NO_MKDOCS_2_WARNING": "1"}
    command = [PYTHON, "-m", "mkdocs", "build", "--quiet", "--clean", "--config-file", ROOT / "tools/mkdocs.yml"]
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode == 0:
        print(f"Built. To read it with search: python3 -m http.server --directory {SITE}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
