"""The experiments and claims of five papers on reordering, rerun by ``reknit papers``.

The experiments are short functions in the modules `yang`, `rr_tcp`, `frto`, `survey` and `laor_gendel`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reknit_study.papers._frame import Experiment, Paper, Unit

MODULES = {
    "yang": "yang",
    "rr-tcp": "rr_tcp",
    "frto": "frto",
    "survey": "survey",
    "laor-gendel": "laor_gendel",
}
"""Papers by their name on the command line, and the module of each."""


@cache
def papers() -> dict[str, Paper]:
    """Load the papers, in the order of the report."""
    return {name: import_module(f"reknit_study.papers.{module}").paper for name, module in MODULES.items()}


def experiments() -> dict[str, Experiment]:
    """List the experiments of all papers by id."""
    return {id: experiment for paper in papers().values() for id, experiment in paper.experiments.items()}


def units() -> dict[str, Unit]:
    """List the checks of all papers by name."""
    return {name: unit for paper in papers().values() for name, unit in paper.units.items()}
