"""The summary that is kept: the scores, the overview, and the claims that are not reproduced, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reknit_study._generated import generated
from reknit_study.papers import _claims, _labels, _overview, _report, _scores, _svg, papers
from reknit_study.papers._claims import JUDGED, Claim, Measured, Verdict
from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab

FIGURES = ("R4", "S7/50", "F6", "L2/35")
"""The experiments whose first figure is kept."""
HEADLINES = ("yang-5.3-1", "rr-fig4-1", "frto-t1-1", "surv-fig7a-1", "lg-fig2-4")
"""What each paper is best known for: a claim with a published number."""


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
        "# Results",
        generated(f"{_report.command(lab)} --summary study/results/papers"),
        _sentences(verdicts),
        *(_both_tiers(lab, verdicts, reduced) if reduced else []),
        "## What each paper is known for",
        _headlines(verdicts),
        "## Scores by paper",
        _board(verdicts),
        f"{_scores.interpreted(verdicts, were_run=lab.interpret)} {_report.ran(lab, results)} See [What was "
        f"run](#what-was-run) for the others. {_report.more_seeds(lab)} [README.md](README.md#claims) explains the "
        "outcomes.",
    ]
    if overview is not None:
        parts += _overview_parts(overview)
    parts += _figures(folder, lab, results)
    parts += _reproduced(verdicts)
    parts += ["## What each variant reproduces", *_by_variant(verdicts)]
    parts += _missed(lab, [v for v in verdicts if v.number in ("missed", "undecided")])
    other = [v for v in verdicts if v.outcome in ("failed", *JUDGED[1:]) and v.number not in ("missed", "undecided")]
    parts += ["## Other claims that are not reproduced", *(_details(lab, other) or ["None."])]
    if reduced:
        parts += [
            f"## Differences between the {lab.base.name} and the full tier",
            *_differences(lab, verdicts, reduced),
        ]
    parts += ["## What was run", _ran(lab, results)]
    (folder / "results.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def _sentences(verdicts: Sequence[Verdict]) -> str:
    return "\n".join(f"* {sentence}" for sentence in _scores.scores(verdicts).sentences)


def _both_tiers(lab: Lab, verdicts: Sequence[Verdict], reduced: Sequence[Verdict]) -> list[str]:
    """Set the scores beside those with all experiments at the tier of the command."""
    before = _scores.scores(_same_claims(verdicts, reduced).values()).sentences
    rows = [["score", f"{lab.base.name} tier", "full tier where it was run"]]
    for then, now in zip(before, _scores.scores(verdicts).sentences, strict=True):
        name, _, told = then.partition(": ")
        rows.append([name, told, now.partition(": ")[2]])
    return [
        f"{', '.join(f'`{name}`' for name in lab.full_for)} ran at the full tier, with the papers' durations, seeds "
        f"and points. Where the tiers differ, the full tier counts: see [Differences]({_differing(lab)}).",
        _markdown(rows),
    ]


def _differing(lab: Lab) -> str:
    return f"#differences-between-the-{lab.base.name}-and-the-full-tier"


def _same_claims(verdicts: Sequence[Verdict], reduced: Sequence[Verdict]) -> dict[str, Verdict]:
    shown = {verdict.claim.id for verdict in verdicts}
    return {verdict.claim.id: verdict for verdict in reduced if verdict.claim.id in shown}


def _differences(lab: Lab, verdicts: Sequence[Verdict], reduced: Sequence[Verdict]) -> list[str]:
    """List the claims that have another outcome at the full tier, with the reason."""
    before = _same_claims(verdicts, reduced)
    rows = [["claim", f"{lab.base.name} tier", "full tier", "why"]]
    for now in verdicts:
        then = before[now.claim.id]
        if (now.outcome, now.number) != (then.outcome, then.number):
            rows.append([now.claim.id, _told(then), _told(now), now.claim.why_full_differs or ""])
    return [_markdown(rows) if len(rows) > 1 else "No outcome differs."]


def _told(verdict: Verdict) -> str:
    number = f", published number {verdict.number}" if verdict.number else ""
    measured = _measured(verdict)
    seeds = f", {_seeds(verdict)}" if verdict.seeds else ""
    return f"{verdict.outcome}{number}{seeds}" + (f": {measured}" if measured else "")


def _ran(lab: Lab, results: Mapping[str, Result]) -> str:
    """List the experiments that were run in the same way."""
    rows = [["paper", "experiments", "run"]]
    for name, paper in papers().items():
        groups: dict[str, list[str]] = {}
        for id in (id for id in results if id in paper.experiments):
            if lab.is_whole(id):
                how = "as published" if paper.gives_durations else "as planned; the paper does not give durations"
            else:
                how = "; ".join(_report.extents(lab, id)) or "figures of the same runs"
            groups.setdefault(how, []).append(id)
        rows += [[f"`{name}`", ", ".join(ids), how] for how, ids in sorted(groups.items(), key=lambda g: -len(g[1]))]
    return _markdown(rows)


def _board(verdicts: Sequence[Verdict]) -> str:
    rows = [["paper", "checks passed", *(f"trends {name}" for name in JUDGED), "numbers met"]]
    for name, row in _scores.by_paper(verdicts, papers()).items():
        rows.append(
            [
                name if name == "all" else f"`{name}`",
                f"{row.checks['passed']} of {row.checks.total()}",
                *(str(row.trends[outcome]) for outcome in JUDGED),
                f"{row.numbers['met']} of {row.numbers.total()}",
            ]
        )
    return _markdown(rows)


def _headlines(verdicts: Sequence[Verdict]) -> str:
    by_id = {verdict.claim.id: verdict for verdict in verdicts}
    rows = [["paper", "its best-known result", "published", "here", "outcome"]]
    for verdict in (by_id[id] for id in HEADLINES if id in by_id):
        claim = verdict.claim
        number = f"; number {verdict.number}" if verdict.number else ""
        statement = f"{claim.statement} ({claim.source.partition(', ')[2]})"
        rows.append([f"`{claim.paper}`", statement, claim.published, _measured(verdict), f"{verdict.outcome}{number}"])
    return _markdown(rows)


def _reproduced(verdicts: Sequence[Verdict]) -> list[str]:
    """List what was reproduced, paper by paper."""
    parts = ["## What was reproduced", "Trends and published numbers; those that are missed follow below."]
    for name, paper in papers().items():
        rows = [["claim", "published", "measured", "number"]]
        for verdict in verdicts:
            claim = verdict.claim
            if claim.paper == name and not claim.is_check and verdict.outcome == "reproduced":
                told = f"{claim.statement} <sub>{claim.id}</sub>"
                rows.append([told, claim.published, _measured(verdict), verdict.number or ""])
        if len(rows) > 1:
            met = sum(row[3] == "met" for row in rows)
            title = f"{paper.title}: {len(rows) - 1} trends reproduced, {met} of their numbers met"
            parts.append(f"<details><summary>{title}</summary>\n\n{_markdown(rows)}\n\n</details>")
    return parts


def _by_variant(verdicts: Sequence[Verdict]) -> list[str]:
    """Count the claims about each variant: what its page does not say."""
    counted: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.claim.is_check or verdict.outcome == "not evaluated":
            continue
        for variant in dict.fromkeys(base for label in _claims.curves(verdict.claim) if (base := _labels.base(label))):
            counted.setdefault(variant, []).append(verdict)
    rows = [["variant", "trends reproduced", "numbers met", "not reproduced, or number missed"]]
    for variant, about in sorted(counted.items()):
        trends = [verdict for verdict in about if verdict.outcome == "reproduced"]
        numbers = [verdict for verdict in about if verdict.number is not None]
        met = [verdict for verdict in numbers if verdict.number == "met"]
        other = [v.claim.id for v in about if v.outcome != "reproduced" or v.number not in (None, "met")]
        rows.append(
            [
                f"[{variant}](../../../docs/reference/algorithms/{variant}.md)",
                f"{len(trends)} of {len(about)}",
                f"{len(met)} of {len(numbers)}" if numbers else "",
                ", ".join(other),
            ]
        )
    return [
        "A claim that compares several variants counts for each of them, also where the cause is another one.",
        _markdown(rows),
    ]


def _overview_parts(overview: _overview.Overview) -> list[str]:
    return [
        "## Which variant works on which path",
        " ".join(overview.answers),
        f"The best on average, if you control {'; '.join(overview.by_control(_report.sides()))}.",
        _cures(overview),
        f"Goodput relative to plain SACK on the same path without reordering and loss, mean of {overview.seeds} seeds. "
        "**Bold**: no variant is significantly better. ±: 95 % intervals of at least 5 %. †: unfair to a "
        "neighbour, see the costs.",
        "## What each variant costs",
        _costs(overview),
        "The loss columns show goodput without reordering, relative to SACK with the same loss. The columns *beside* "
        "show the goodput of the variant and that of its neighbour, in Mbit/s: two flows share 10 Mbit/s and a queue "
        "of one round trip for 60 s, in order and with 1 % of packets delayed by 25 ms. *Unfair*: the neighbour "
        f"gets less than {_overview.FAIR:.0%} of what it gets beside a flow of its own variant. The state is what a "
        "connection keeps because of reordering. "
        f"`{_overview.LIMIT}` is the limit: the simulator tells it about each loss.",
        "## All variants on all paths",
        _table(overview),
        "Bold: no variant is significantly better on this path.",
    ]


def _cures(overview: _overview.Overview) -> str:
    rows = [["a path like yours", "SACK", f"variants that keep at least {_overview.WORKS:.0%}, best first"]]
    for path, (about, _) in _overview.PATHS.items():
        kept = overview.kept[0.0][path]
        there = []
        for variant in overview.cures(path):
            told = f"{variant}{'†' if overview.is_unfair(variant) else ''} {overview.share(path, variant)}"
            there.append(f"**{told}**" if overview.is_best(path, variant) else told)
        best = "" if overview.works(path, overview.cures(path)[0]) else "none; best: "
        rows.append([about, f"{kept['sack']:.0%}", best + ", ".join(there)])
    return _markdown(rows)


def _costs(overview: _overview.Overview) -> str:
    about = _report.variants()
    losses = [f"at {100 * loss:g} % loss" for loss in _overview.LOSSES[1:]]
    beside = [f"beside {_overview.NEIGHBOURS[name]}, {_overview.LATE[late]}" for name, late in overview.shares]
    rows = [["variant", *losses, *beside, "state, bytes", "runs at", "the other end needs"]]
    for variant in _overview.VARIANTS:
        state = overview.properties[variant]["reorder_state_bytes"]
        rows.append(
            [
                f"[{variant}](../../../docs/reference/algorithms/{variant}.md)",
                *(f"{overview.price[loss][variant]:.0%}" for loss in _overview.LOSSES[1:]),
                *(overview.shared(variant, neighbour, late) for neighbour, late in overview.shares),
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


def _missed(lab: Lab, verdicts: Sequence[Verdict]) -> list[str]:
    """List the published numbers that are not met: a table to look through, then a section for each."""
    if not verdicts:
        return ["## Published numbers that are missed", "None."]
    rows = [["claim", "published", "measured", "would be met with"]]
    for verdict in verdicts:
        id = verdict.claim.id
        rows.append([f"[{id}](#{_anchor(id)})", verdict.claim.published, _measured(verdict), _would_be_met(verdict)])
    return [
        "## Published numbers that are missed",
        "The last column names *interpretations*: other values of something that the paper leaves open. The paper does "
        "not state these values, so a number that is met with one of them only counts as missed. An interpretation "
        "*against the paper* contradicts what the paper states: it shows what the number depends on, and excuses "
        "nothing. The values in brackets are measured with it.",
        _markdown(rows),
        *_details(lab, verdicts),
    ]


def _would_be_met(verdict: Verdict) -> str:
    if verdict.met_by:
        return "; ".join(
            f"`{reading}`{_against(verdict.claim, reading)} ({_values(found)})"
            for reading, found in verdict.met_by.items()
        )
    return "nothing: out of reach" if verdict.claim.out_of_reach else ""


def _against(claim: Claim, reading: str) -> str:
    return ", against the paper" if _scores.contradicts(claim, reading) else ""


def _details(lab: Lab, verdicts: Sequence[Verdict]) -> list[str]:
    """Describe claims: what was published and measured, why they differ, and what would give the published value."""
    return [part for verdict in verdicts for part in _section(lab, verdict)]


def _section(lab: Lab, verdict: Verdict) -> list[str]:
    claim = verdict.claim
    seeds = f", {_seeds(verdict)}" if verdict.seeds else ""
    readings = [
        f"* **Would be met with** `{reading}`, {_meaning(lab, claim, reading)}: {_values(found)}."
        for reading, found in verdict.met_by.items()
    ]
    reasons = claim.reasons
    parts = [
        f"### {claim.id}",
        claim.statement,
        "\n".join(
            [
                f"* **Published:** {claim.published}. **Measured:** {_measured(verdict) or 'see below'}{seeds}.",
                f"* **Outcome:** {verdict.outcome}{_number(verdict)}.",
                *readings,
                *([f"* **Why:** {reasons[0]}"] if reasons else []),
            ]
        ),
    ]
    if len(reasons) > 1:
        more = "\n\n".join(reasons[1:])
        parts.append(f"<details><summary>More about {claim.id}</summary>\n\n{more}\n\n</details>")
    return parts


def _meaning(lab: Lab, claim: Claim, reading: str) -> str:
    """Look up what an interpretation assumes."""
    return next(lab.experiments[id].readings[reading] for id in claim.named if reading in lab.experiments[id].readings)


def _anchor(heading: str) -> str:
    """Return the anchor that Markdown gives a heading."""
    return heading.replace(".", "")


def _seeds(verdict: Verdict) -> str:
    return f"{verdict.seeds} seed{'s' if verdict.seeds > 1 else ''}"


def _measured(verdict: Verdict) -> str:
    return _values(verdict.measured)


def _values(measured: Sequence[Measured]) -> str:
    return "; ".join(_report.measured(one) for one in measured)


def _number(verdict: Verdict) -> str:
    """Say whether the published number is met, and if it is not, how often resamples of the seeds meet it."""
    if verdict.number is None:
        return ""
    share = verdict.number_share
    often = "" if share is None or verdict.number == "met" else f", met in {_report.percent(share)} of resamples"
    beyond = verdict.number != "met" and not verdict.met_by and verdict.claim.out_of_reach
    return f"; published number {verdict.number}{often}{', out of reach' if beyond else ''}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))
