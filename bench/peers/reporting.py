"""Reports of races: a table, and a page of HTML with drawings."""

import html
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from bench.peers.racing import OURS, PLANNING, PREPARED, Race


def table(races: Sequence[Race], peers: Sequence[str], missing: Mapping[str, str]) -> Table:
    """Seconds of all contenders, a star at the best peer, and a line for every package that is not installed."""
    shown = Table(title="seconds; times: those of sparseeinsum by those of the best peer (*)", title_justify="left")
    shown.add_column("workload", min_width=26)
    for heading in ("plan", "run", "times", "prepared", "times", *peers):
        shown.add_column(heading, justify="right")
    for race in races:
        shown.add_row(race.workload, *_cells(race, peers))
    shown.add_section()
    for peer, package in missing.items():
        shown.add_row(f"{peer} is missing: pip install {package}")
    return shown


def _cells(race: Race, peers: Sequence[str]) -> list[str]:
    best = race.best
    cells = [_number(race.seconds(PLANNING))]
    for contender in (OURS, PREPARED):
        cells += [_number(race.seconds(contender)), f"{race.ratio(contender):.1f}"]
    for peer in peers:
        cells.append(race.unavailable.get(peer) or _number(race.seconds(peer)) + "*" * (peer == best))
    return cells


def _number(seconds: float | None) -> str:
    if seconds is None:
        return "missing"
    return f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.4f}"


def write_page(races: Sequence[Race], peers: Sequence[str], heading: str, shown: Table, path: Path) -> None:
    """Write a page with a drawing and the table; needs matplotlib."""
    parts = [
        "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>Sparse work beside other libraries</title>",
        "<style>body {font-family: sans-serif; margin: 2em} table {border-collapse: collapse}",
        "td, th {padding: 0.2em 0.7em; border-bottom: 1px solid #ccc; text-align: right}",
        "td:first-child, th:first-child {text-align: left}</style>",
        f"<h1>Sparse work beside other libraries</h1><p>{html.escape(heading)}</p>",
        _drawing(races, peers),
        f"<p>{html.escape(str(shown.title))}</p>{_table(shown)}</html>",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts), encoding="utf-8")


def _table(shown: Table) -> str:
    headings = "".join(f"<th>{html.escape(str(column.header))}</th>" for column in shown.columns)
    rows = zip(*([html.escape(str(cell)) for cell in column.cells] for column in shown.columns), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{headings}</tr>{body}</table>"


def _drawing(races: Sequence[Race], peers: Sequence[str]) -> str:
    """Seconds of all contenders and times of the best peer, a line for every workload, as SVG."""
    from matplotlib import pyplot  # noqa: PLC0415  # for pages alone

    drawing, (left, right) = pyplot.subplots(1, 2, figsize=(15, 0.4 * len(races) + 1.5), sharey=True)
    for contender in (OURS, PREPARED, PLANNING, *peers):
        seconds = [race.seconds(contender) or math.nan for race in races]
        marker = {OURS: "D", PREPARED: "s", PLANNING: "d"}.get(contender, "o")
        left.plot(seconds, [race.workload for race in races], marker, label=contender, alpha=0.8)
    left.set_xscale("log")
    left.set_xlabel("seconds")
    left.legend(fontsize="small")
    right.barh([race.workload for race in races], [race.ratio(OURS) for race in races])
    right.set_xlabel("seconds of a run by those of the best peer")
    right.axvline(1, color="black", linewidth=1)
    right.invert_yaxis()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    drawing.tight_layout()
    text = io.StringIO()
    drawing.savefig(text, format="svg")
    return text.getvalue().partition("<svg")[2].join(["<svg", ""])
