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
    reduced: Sequence[Verdict] = (),
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
    reduced : sequence of Verdict, optional
        The outcomes at the tier of the command, if some experiments ran at the full tier.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    parts = [
        f"<!-- Written by `{_report.command(lab)} --summary docs/papers`; do not edit. -->",
        "# Results",
        _sentences(verdicts),
        _board(verdicts),
        f"{_scores.interpreted(verdicts, were_run=lab.interpret)} {_report.ran(lab, results)} The others are shorter: "
        f"see [What was run](#what-was-run). {_report.more_seeds(lab)} [README.md](README.md#claims) explains the "
        "outcomes.",
    ]
    if overview is not None:
        parts += _overview_parts(overview)
    parts += _figures(folder, lab, results)
    numbers = [v for v in verdicts if v.number in ("missed", "undecided")]
    parts += ["## Published numbers that are missed", *_claims(numbers)]
    other = [v for v in verdicts if v.outcome in ("failed", *JUDGED[1:]) and v not in numbers]
    parts += ["## Other claims that are not reproduced", *_claims(other)]
    if reduced:
        parts += [f"## The full and the {lab.base.name} tier", *_tiers(lab, verdicts, reduced)]
    parts += ["## What was run", _ran(lab, results)]
    (folder / "results.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def _sentences(verdicts: Sequence[Verdict]) -> str:
    return "\n".join(f"* {sentence}" for sentence in _scores.scores(verdicts).sentences)


def _tiers(lab: Lab, verdicts: Sequence[Verdict], reduced: Sequence[Verdict]) -> list[str]:
    """Compare with the outcomes at the tier of the command."""
    before = {verdict.claim.id: verdict for verdict in reduced}
    told = [
        f"Above, {', '.join(f'`{name}`' for name in lab.full_for)} ran at the full tier, which counts where the tiers "
        f"differ. All experiments at the {lab.base.name} tier:",
        _sentences([before[verdict.claim.id] for verdict in verdicts]),
    ]
    rows = [["claim", f"{lab.base.name} tier", "full tier"]]
    for now in verdicts:
        then = before[now.claim.id]
        if (now.outcome, now.number) != (then.outcome, then.number):
            rows.append([now.claim.id, _told(then), _told(now)])
    return [*told, _markdown(rows) if len(rows) > 1 else "No outcome differs."]


def _told(verdict: Verdict) -> str:
    number = f", published number {verdict.number}" if verdict.number else ""
    measured = "; ".join(_report.measured(one) for one in verdict.measured)
    return f"{verdict.outcome}{number}" + (f": {measured}" if measured else "")


def _ran(lab: Lab, results: Mapping[str, Result]) -> str:
    rows = [["paper", "as published", "shorter: what was run"]]
    for name, paper in papers().items():
        ids = [id for id in results if id in paper.experiments]
        whole = [id for id in ids if lab.is_whole(id)]
        shorter = [f"{id} ({'; '.join(_report.extents(lab, id))})" for id in ids if lab.extents[id] and id not in whole]
        shown = [id for id in ids if not lab.extents[id] and id not in whole]
        told = [*shorter, *([f"figures of the same runs: {', '.join(shown)}"] if shown else [])]
        rows.append([f"`{name}`", ", ".join(whole) or "none", "; ".join(told) or "none"])
    return _markdown(rows)


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


def _overview_parts(overview: _overview.Overview) -> list[str]:
    return [
        "## Which variant works on which path",
        " ".join(overview.answers),
        _cures(overview),
        f"Goodput relative to plain SACK on the same path without reordering and loss, mean of {overview.seeds} seeds. "
        "*Italic*: unfair, see the costs.",
        "## What each variant costs",
        _costs(overview),
        "The loss columns show goodput without reordering, relative to SACK with the same loss: more than "
        f"{_overview.UNFAIR:.0%} is not better but unfair. The state is what a connection keeps because of reordering. "
        f"`{_overview.LIMIT}` is the limit: the simulator tells it about each loss.",
        "## All variants on all paths",
        _table(overview),
        "Bold: no variant is significantly better on this path.",
    ]


def _cures(overview: _overview.Overview) -> str:
    rows = [["a path like yours", "SACK", f"variants that keep at least {_overview.WORKS:.0%}, best first"]]
    for path, (about, _) in _overview.PATHS.items():
        kept = overview.kept[0.0][path]
        there = [
            f"*{v}* {kept[v]:.0%}" if overview.ever_unfair(v) else f"{v} {kept[v]:.0%}" for v in overview.cures(path)
        ]
        best = "" if overview.works(path, overview.cures(path)[0]) else "none; best: "
        rows.append([about, f"{kept['sack']:.0%}", best + ", ".join(there)])
    return _markdown(rows)


def _costs(overview: _overview.Overview) -> str:
    about = _report.variants()
    losses = [f"at {100 * loss:g} % loss" for loss in _overview.LOSSES[1:]]
    rows = [["variant", *losses, "state, bytes", "runs at", "the other end needs"]]
    for variant in _overview.VARIANTS:
        state = overview.properties[variant]["reorder_state_bytes"]
        rows.append(
            [
                f"[{variant}](../algorithms/{variant}.md)",
                *(
                    f"{overview.price[loss][variant]:.0%}{', unfair' if overview.is_unfair(loss, variant) else ''}"
                    for loss in _overview.LOSSES[1:]
                ),
                "" if state is None else _report.number(state),
                about[variant]["side"],
                about[variant]["peer_needs"],
            ]
        )
    return _markdown(rows)


def _table(overview: _overview.Overview) -> str:
    lossless = overview.kept[0.0]
    rows = [["variant", *(about for about, _ in _overview.PATHS.values())]]
    for variant in _overview.VARIANTS:
        cells = []
        for path in _overview.PATHS:
            cell = f"{lossless[path][variant]:.0%}"
            cells.append(f"**{cell}**" if overview.is_best(path, variant) else cell)
        rows.append([variant, *cells])
    return _markdown(rows)


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
        number = _number(verdict)
        seeds = f", {verdict.seeds} seeds" if verdict.seeds > 1 else ""
        measured = "; ".join(_report.measured(one) for one in verdict.measured)
        lines = [
            f"**{claim.id}** ({verdict.outcome}{number}{seeds}): {claim.statement}",
            f"Published: {claim.published}." + (f" Measured: {measured}." if measured else ""),
            *([claim.explanation] if claim.explanation else []),
        ]
        found.append(" ".join(lines))
    return found


def _number(verdict: Verdict) -> str:
    """Say whether the published number is met, and if it is not, how often resamples of the seeds meet it."""
    if verdict.number is None:
        return ""
    share = verdict.number_share
    often = "" if share is None or verdict.number == "met" else f", met in {_report.percent(share)} of resamples"
    readings = [reading for reading, met in verdict.numbers.items() if met]
    other = ""
    if readings:
        other = f", met with interpretation {' or '.join(readings)}"
    elif verdict.number != "met" and verdict.claim.out_of_reach:
        other = ", out of reach"
    return f", published number {verdict.number}{often}{other}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))
