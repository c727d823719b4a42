"""The summary that docs/ keeps: the scores, the overview, and the claims that are not reproduced, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reknit.papers import _overview, _report, _scores, _svg, papers
from reknit.papers._claims import JUDGED, Verdict
from reknit.papers._frame import Result
from reknit.papers._lab import Lab

FIGURES = ("R4", "S7/50", "F6", "L2/35")
"""The experiments whose first figure is kept."""


def write(
    folder: Path,
    lab: Lab,
    results: Mapping[str, Result],
    verdicts: Sequence[Verdict],
    overview: _overview.Overview | None,
) -> None:
    """Write ``results.md`` and a few figures.

    Parameters
    ----------
    folder : Path
        Where to write.
    lab : Lab
        The lab that ran the experiments.
    results : mapping of str to Result
        Their results.
    verdicts : sequence of Verdict
        The outcomes of the claims.
    overview : Overview, optional
        The overview, if it was run.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    parts = [
        f"<!-- Written by `{_report.command(lab)} --summary docs/papers`; do not edit. -->",
        f"# Results of the {lab.tier.name} tier",
        "\n".join(f"* {sentence}" for sentence in _scores.scores(verdicts).sentences),
        _board(verdicts),
        f"{_report.more_seeds(lab)} [README.md](README.md#claims) explains the outcomes.",
    ]
    if overview is not None:
        parts += ["## Which cure works on which path, and what it costs", " ".join(overview.answers), _table(overview)]
    parts += _figures(folder, lab, results)
    numbers = [v for v in verdicts if v.number in ("missed", "undecided")]
    parts += ["## Published numbers that are missed", *_claims(numbers)]
    other = [v for v in verdicts if v.outcome in ("failed", *JUDGED[1:]) and v not in numbers]
    parts += ["## Other claims that are not reproduced", *_claims(other)]
    (folder / "results.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def _board(verdicts: Sequence[Verdict]) -> str:
    names = {**{name: paper.title.partition(":")[0] for name, paper in papers().items()}, "all": "all"}
    rows = [["paper", "checks passed", *(f"trends {name}" for name in JUDGED), "numbers met"]]
    for name, row in _scores.by_paper(verdicts, papers()).items():
        rows.append(
            [
                f"`{name}`" if name != "all" else names[name],
                f"{row.checks['passed']} of {row.checks.total()}",
                *(str(row.trends[outcome]) for outcome in JUDGED),
                f"{row.numbers['met']} of {row.numbers.total()}",
            ]
        )
    return _markdown(rows)


def _table(overview: _overview.Overview) -> str:
    lossless = overview.kept[0.0]
    rows = [
        ["variant", *(about for about, _ in _overview.PATHS.values())]
        + [f"no reordering, {100 * loss:g} % loss" for loss in _overview.LOSSES[1:]]
    ]
    for variant in _overview.VARIANTS:
        cells = []
        for path in _overview.PATHS:
            cell = f"{lossless[path][variant]:.0%}"
            cells.append(f"**{cell}**" if overview.is_best(path, variant) else cell)
        for loss in _overview.LOSSES[1:]:
            unfair = ", unfair" if overview.is_unfair(loss, variant) else ""
            cells.append(f"{overview.price[loss][variant]:.0%}{unfair}")
        rows.append([f"[{variant}](../algorithms/{variant}.md)", *cells])
    told = (
        f"Goodput relative to plain SACK on the same path without reordering and loss, mean of {overview.seeds} seeds. "
        "Bold: no variant is significantly better. The last columns are the price under loss, relative to SACK with "
        f"the same loss: more than {_overview.UNFAIR:.0%} is not better but unfair. `{_overview.LIMIT}` is the limit: "
        "the simulator tells it about each loss."
    )
    return _markdown(rows) + "\n\n" + told


def _figures(folder: Path, lab: Lab, results: Mapping[str, Result]) -> list[str]:
    found = []
    for id in FIGURES:
        if id in results and results[id].figures:
            experiment, name = lab.experiments[id], f"{id.replace('/', '-')}.svg"
            (folder / "figures" / name).write_text(
                _svg.compact(results[id].figures[0].svg(results[id])) + "\n", "utf-8"
            )
            paper = papers()[experiment.paper].source.partition(":")[0]
            found.append(f"![{experiment.title}](figures/{name})\n\n{paper}, {experiment.figure}: {experiment.title}.")
    return found


def _claims(verdicts: Sequence[Verdict]) -> list[str]:
    if not verdicts:
        return ["None."]
    found = []
    for verdict in verdicts:
        claim = verdict.claim
        number = f", published number {verdict.number}" if verdict.number else ""
        seeds = f", {verdict.seeds} seeds" if verdict.seeds > 1 else ""
        measured = "; ".join(_report.measured(one) for one in verdict.measured)
        lines = [
            f"**{claim.id}** ({verdict.outcome}{number}{seeds}): {claim.statement}",
            f"Published: {claim.published}." + (f" Measured: {measured}." if measured else ""),
            *([claim.explanation] if claim.explanation else []),
        ]
        found.append(" ".join(lines))
    return found


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))
