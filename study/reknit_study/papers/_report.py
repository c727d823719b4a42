"""The report: one self-contained HTML file."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

import reknit
from reknit_study.papers import _overview, _scores, _svg, papers
from reknit_study.papers._claims import CHECKED, JUDGED, Claim, Measured, Verdict
from reknit_study.papers._frame import ENOUGH_SEEDS, Experiment, Result
from reknit_study.papers._lab import Extent, Lab
from reknit_study.papers._labels import OFFICIAL, SETS
from reknit_study.papers._statistics import Interval

OUTCOMES = (*JUDGED, *CHECKED, "not evaluated")
NUMBERS = ("met", "missed", "undecided")
CONFIDENCES = ("high", "medium", "low")


@dataclass(frozen=True)
class Block:
    """An experiment in the report, or another interpretation of it; ``idle`` are those that change no outcome."""

    experiment: Experiment
    reading: str | None
    result: Result
    figures: list[tuple[int, str]]
    verdicts: list[Verdict]
    table: int | None
    units: list[tuple[str, bool]]
    curves: str
    ran: list[str]
    idle: list[str]


def write(
    out: Path,
    lab: Lab,
    results: Mapping[str, Result],
    verdicts: Sequence[Verdict],
    overview: _overview.Overview | None,
) -> list[Verdict]:
    """Write the report.

    Parameters
    ----------
    out : Path
        The file to write.
    lab : Lab
        The lab that ran the experiments.
    results : mapping of str to Result
        Their results.
    verdicts : sequence of Verdict
        The outcomes of all claims.
    overview : Overview, optional
        The overview; without one, the report has only the claims about the experiments in ``results``.

    Returns
    -------
    list of Verdict
        The outcomes that the report shows, and counts.
    """
    shown = explained(lab, verdicts if overview else [v for v in verdicts if _concerns(v.claim, results)])
    pictures = _svg.Pictures()
    blocks = [_block(lab, name, results, shown, pictures) for name in results if _is_shown(name, shown)]
    environment = Environment(
        loader=PackageLoader("reknit_study.papers"),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
    )
    environment.lstrip_blocks = True
    environment.filters.update(measured=measured, interval=_interval, percent=percent, number=number, heat=heat)
    environment.globals["contradicts"] = _scores.contradicts
    environment.globals["condition"] = lambda claim: pictures.add_table(_condition(claim))
    text = environment.get_template("report.html.j2").render(
        tier=lab.base,
        ran=ran(lab, results),
        overview=overview,
        o=_overview,
        about=variants(),
        sides=sides(),
        papers=papers(),
        verdicts=shown,
        board=_scores.by_paper(shown, papers()),
        interpreted=_scores.interpreted(shown, were_run=lab.interpret),
        judged=JUDGED,
        outcomes=OUTCOMES,
        number_outcomes=NUMBERS,
        confidences=CONFIDENCES,
        blocks=blocks,
        pictures=pictures,
        versions=versions(),
        command=command(lab),
        more_seeds=more_seeds(lab),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, "utf-8")
    return shown


def explained(lab: Lab, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Remove explanations of other runs than this one, and of claims that were not evaluated.

    Explanations have the numbers of the default tier.
    """
    is_theirs = lab.base.name == "default" and lab.first_seed == 1
    kept = []
    for verdict in verdicts:
        full = any(lab.is_full(id) for id in verdict.claim.named if id in lab.experiments)
        has = is_theirs and not full and verdict.outcome != "not evaluated"
        kept.append(verdict if has else replace(verdict, claim=replace(verdict.claim, explanation=None)))
    return kept


def sides() -> dict[str, str]:
    """Look up where each variant runs: sender, receiver or both."""
    return {name: row["side"] for name, row in variants().items()}


def _condition(claim: Claim) -> list[tuple[str, str]]:
    """List what decides about a claim, each with its name."""
    parts = {"": claim.gate, "effect: ": claim.effect, "published number: ": claim.strict}
    return [(name, " ".join(part.split())) for name, part in parts.items() if part]


def variants() -> dict[str, dict[str, Any]]:
    """Look up what each variant is, where it runs, and what the other end must support."""
    return {row["name"]: row for row in reknit.variants().iter_rows(named=True)}


def versions() -> dict[str, str]:
    """List the versions of the software that made the report."""
    found = {"reknit": reknit.__version__, "Python": platform.python_version()}
    for name in ("polars", "matplotlib", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def command(lab: Lab) -> str:
    """Write the command that reproduces this report."""
    tier = "" if lab.base.name == "default" else f" --{lab.base.name}"
    full = f" --full-for {','.join(lab.full_for)}" if lab.full_for else ""
    more = "" if lab.more_seeds is None else f" --more-seeds {','.join(lab.more_seeds) or 'none'}"
    first = "" if lab.first_seed == 1 else f" --first-seed {lab.first_seed}"
    return f"{' '.join(['reknit papers', *lab.asked])}{tier}{full}{more}{first}"


def ran(lab: Lab, results: Iterable[str]) -> str:
    """Say how many experiments ran as published."""
    ids = [id for id in results if "@" not in id]
    whole = sum(map(lab.is_whole, ids))
    published = "the papers' durations, seeds and points, or ours where a paper gives none"
    return f"{whole} of {len(ids)} experiments ran with {published}."


def more_seeds(lab: Lab) -> str:
    """Say which claims got more seeds."""
    if lab.base.name == "quick" or (lab.more_seeds is not None and not lab.more_seeds):
        return "No claim got more seeds where its outcome depends on the choice of seeds."
    medians, means = (
        sorted({e.enough_seeds for id, e in lab.experiments.items() if id.startswith(begins)} - {ENOUGH_SEEDS})
        for begins in ("F", ("S7/", "S8/"))
    )
    told = (
        f"Claims whose outcome depends on the choice of seeds get at least {ENOUGH_SEEDS} seeds, those about medians "
        f"of F-RTO {medians[0]} or {medians[-1]}, those about Figs. 7 and 8 of the survey {means[0]}; where it is "
        "still undecided, four times as many"
    )
    if lab.more_seeds is None:
        return f"{told}."
    return f"{told}, in these papers and experiments only: {', '.join(lab.more_seeds)}."


def percent(share: float) -> str:
    """Format a fraction in percent."""
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")


def number(value: float) -> str:
    """Format a number with three significant digits, or all digits before the decimal point."""
    if not math.isfinite(value):
        return "never" if value > 0 else "-∞"
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def measured(one: Measured) -> str:
    """Format a measured value with its confidence interval."""
    if one.count == 1 or one.least == one.largest:
        return _interval(one.least)
    return f"{_interval(one.least)} … {_interval(one.largest)} ({one.count} values)"


def heat(share: float) -> str:
    """Grade a fraction for the colour of its cell."""
    return f"h{min(5, max(0, int(share * 5 + 1e-9)))}"


def _interval(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return number(interval.value)
    return f"{number(interval.value)} [{number(interval.low)}, {number(interval.high)}]"


def _concerns(claim: Claim, results: Mapping[str, Result]) -> bool:
    return any(id in results for id in claim.experiments)


def _is_shown(name: str, verdicts: Sequence[Verdict]) -> bool:
    """Return whether an experiment has its own place.

    Other interpretations have one only if they change an outcome, and not for figures of the same runs.
    """
    id, _, reading = name.partition("@")
    mine = (verdict for verdict in verdicts if id in verdict.claim.named)
    return not reading or any(reading in verdict.readings or reading in verdict.numbers for verdict in mine)


def _block(
    lab: Lab, name: str, results: Mapping[str, Result], verdicts: Sequence[Verdict], pictures: _svg.Pictures
) -> Block:
    id, _, reading = name.partition("@")
    experiment, result = lab.experiments[id], results[name]
    values = _numbers(result)
    mine = [] if reading else [verdict for verdict in verdicts if id in verdict.claim.experiments]
    # Those of figures that show the runs of another experiment are with that experiment.
    others = [] if reading or not lab.extents.get(id) else [f"{id}@{other}" for other in experiment.readings]
    return Block(
        experiment,
        reading or None,
        result,
        [(pictures.add(figure.svg(result)), _alternative(experiment, figure.title)) for figure in result.figures],
        mine,
        pictures.add_table(values) if values else None,
        [(_sentence(unit.statement), result.units[unit.name]) for unit in lab.units if unit.name in result.units],
        _curves(result),
        extents(lab, name),
        [other.partition("@")[2] for other in others if other in results and not _is_shown(other, verdicts)],
    )


def extents(lab: Lab, name: str) -> list[str]:
    """Say what an experiment ran, beside what the paper ran."""
    return list(dict.fromkeys(_extent(extent) for extent in lab.extents.get(name, ())))


def _extent(extent: Extent) -> str:
    """Say what was run, beside what the paper ran."""
    (count, seeds), (run, points) = extent.seeds, extent.points
    told = ["whole transfers"]
    if extent.duration is not None:
        here, there = extent.duration
        told = [f"{here:g} s" if here == there else f"{here:g} of {there:g} s"]
    told.append(f"{count} seed{'s' if count > 1 else ''}" + (f" (paper or plan: {seeds})" if count != seeds else ""))
    told.append(f"{run} of {points} points" if run != points else f"all {points} points" if points > 1 else "one point")
    return ", ".join(told)


def _sentence(statement: str) -> str:
    """Turn 'Check that ...' into the sentence that is checked."""
    found = statement.removeprefix("Check that ")
    return found[:1].upper() + found[1:]


def _curves(result: Result) -> str:
    """List the variants of the curves whose label is not their name."""
    labels = result.table["variant"].unique(maintain_order=True).to_list() if len(result.table) else []
    found = []
    for label in labels:
        of = OFFICIAL.get(label, SETS.get(label, label))
        name = of if isinstance(of, str) else f"{of['name']}, based on {of['base']}"
        if name != label.replace("_", "-"):
            found.append(f"{label}: {name}")
    return "; ".join(found)


def _alternative(experiment: Experiment, panel: str) -> str:
    of = f", {panel}" if panel else ""
    return f"{experiment.figure} rerun{of}: {experiment.title}. The values are in the table below."


def _numbers(result: Result) -> list[list[str]]:
    """Tabulate the metrics of the figures: a row for each curve and metric, a column for each point."""
    metrics = list(dict.fromkeys(figure.y for figure in result.figures if figure.y in result.table.columns))
    if not metrics or not len(result.table):
        return []
    points = result.table["x"].unique(maintain_order=True).to_list()
    rows = [["curve", "metric", *points]]
    mean = result.table.group_by("variant", "x", maintain_order=True).agg(pl.col(metrics).mean())
    values: dict[tuple[str, str], dict[str, Any]] = {
        (row["variant"], row["x"]): row for row in mean.iter_rows(named=True)
    }
    for variant in result.table["variant"].unique(maintain_order=True):
        for metric in metrics:
            cells = [values.get((variant, x), {}).get(metric) for x in points]
            rows.append([variant, metric, *("" if cell is None else number(cell) for cell in cells)])
    return rows
