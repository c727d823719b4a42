#!/usr/bin/env python3
"""Measures `reknit` and states for each of its goals whether it holds.

    make build python && target/venv/bin/python study/benches/reknit > study/results/reknit.md

With names of sections (`python study/benches/reknit sharing`), only those. Without the Python package, `losses` is
left out.
The comparison uses seeds 101 to 120 of the random paths, on which nothing was developed; the ablations, seeds 1 to 12.
All of it is simulated, and takes about 15 minutes on two processors.
"""

import contextlib
import io
import sys

import losses
import paths
import receivers
import sharing
import transfers

from tools import GOALS, generated, table

SECTIONS = {
    "comparison": paths.comparison,
    "published": paths.published,
    "ablations": paths.ablations,
    "phases": paths.phases,
    "bulk": transfers.bulk,
    "transfers": transfers.transfers,
    "sharing": sharing.sharing,
    "losses": losses.losses,
    "receivers": receivers.receivers,
    "state": receivers.state,
}


def main() -> None:
    """Run the sections, and print the goals above them."""
    text = io.StringIO()
    for name in sys.argv[1:] or SECTIONS:
        print(name, file=sys.stderr)
        with contextlib.redirect_stdout(text):
            SECTIONS[name]()
    print(f"# Measurements of `reknit`\n\n{generated('python study/benches/reknit')}\n\n## Goals\n")
    rows = [[one.what, one.asked, one.measured, "yes" if one.holds else "**no**"] for one in GOALS]
    table(["goal", "target", "measured", "met"], rows)
    print(text.getvalue().rstrip("\n"))


if __name__ == "__main__":
    main()
