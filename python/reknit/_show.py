"""Show results on a terminal and in a notebook: a title and a small table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reknit._compare import Comparison, Run

Rows = list[list[str]]

# Inherits the colours of the page, so that it is readable in light and dark themes.
_CELL = "padding: 0.15em 0.8em; text-align: {}; border-bottom: 1px solid rgba(128, 128, 128, 0.4); background: none"


def comparisons(result: Comparison) -> list[tuple[str, Rows, str]]:
    """Return title, table and footer of the comparison on each path."""
    documents = result.document.get("paths", [result.document])
    notes = [""] * (len(documents) - 1) + ["; details: .summary, .runs, .groups"]
    return [_comparison(document, note) for document, note in zip(documents, notes, strict=True)]


def _comparison(document: dict[str, Any], note: str) -> tuple[str, Rows, str]:
    name = ": ".join(filter(None, (document["path"], document["description"])))
    title = f"{name}; in order {document['in_order_mbit_s']:.2f} Mbit/s"
    rows = [["variant", "Mbit/s", "of in-order", "of oracle", "spurious", "window cuts (false)", "RTOs"]]
    for row in document["variants"]:
        goodput, ci95, runs = row["goodput_mbit_s"]["mean"], row["goodput_mbit_s"]["ci95"], row["runs"]
        retransmissions = sum(run["retransmissions"]["total"] for run in runs)
        cuts = _mean([run["window_cuts"]["total"] for run in runs])
        rows.append(
            [
                row["variant"],
                f"{goodput:.2f}" + ("" if ci95 is None else f" ± {ci95:.2f}"),
                *("" if row[share] is None else _percent(row[share]) for share in ("of_in_order", "of_oracle")),
                _share(sum(run["spurious_retransmissions"] for run in runs), retransmissions),
                f"{cuts} ({_mean([run['false_window_cuts'] for run in runs])})",
                _mean([run["timeouts"] for run in runs]),
            ]
        )
    seeds = document["seeds"]
    means = "one seed" if seeds == 1 else f"means of {seeds} seeds, ± half the 95 % interval"
    return title, rows, means + note


def run(result: Run) -> tuple[str, Rows, str]:
    """Return title, table and footer of a run."""
    name = f"{result.path} ({result.description})" if result.description else result.path
    title = f"{result.variant} on {name}, seed {result.seed}, {result.duration_s:g} s"
    totals = result.totals
    rows = [
        ["goodput", "retransmissions", "spurious", "window cuts (false)", "RTOs", "lost packets", "mean RTT"],
        [
            f"{totals['goodput_mbit_s']:.2f} Mbit/s",
            f"{totals['retransmissions']}",
            f"{totals['spurious_retransmissions']}",
            f"{totals['window_cuts']} ({totals['false_window_cuts']})",
            f"{totals['timeouts']}",
            f"{totals['lost_packets']}",
            "" if totals["rtt_mean_ms"] is None else f"{totals['rtt_mean_ms']:.1f} ms",
        ],
    ]
    series = f", .series {result.series.height:,} samples" if result.series.height else ""
    return title, rows, f".totals has {len(totals)} numbers{series}"


def text(title: str, rows: Rows, note: str) -> str:
    """Format as text, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([title, *lines, f"({note})"])


def html(title: str, rows: Rows, note: str) -> str:
    """Format as HTML, for a notebook."""

    def line(row: list[str], tag: str) -> str:
        cells = (
            f'<{tag} style="{_CELL.format("right" if i else "left")}">{escape(cell)}</{tag}>'
            for i, cell in enumerate(row)
        )
        return f"<tr style='background: none'>{''.join(cells)}</tr>"

    table = line(rows[0], "th") + "".join(line(row, "td") for row in rows[1:])
    return (
        f"<div><b>{escape(title)}</b>"
        f"<table style='border-collapse: collapse; margin: 0.5em 0; color: inherit'>{table}</table>"
        f"<small>{escape(note)}</small></div>"
    )


def _mean(counts: list[int]) -> str:
    return f"{sum(counts) / len(counts):.1f}".removesuffix(".0")


def _share(part: int, whole: int) -> str:
    return _percent(part / whole) if whole else ""


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.1 else 1}f} %"
