"""Picture: an explanation as one page of HTML that needs no other file and no network."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, Step
from sparseeinsum.plans.explain import Explanation, differing_steps, write_times
from sparseeinsum.plans.notes import notes_on
from sparseeinsum.plans.picture.cards import cards_of, marked, notation_lines
from sparseeinsum.plans.picture.drawing import draw
from sparseeinsum.plans.plan_statements import write_sql
from sparseeinsum.plans.units import write_seconds

_MOST_ALTERNATIVES = 5  # of each EinSum
_Row = tuple[bool, tuple[str, ...]]  # whether it is the plan itself, and its cells

_LEGEND = (("join", "join and kernel"), ("aggregate", "aggregation"), ("repartition", "repartition"))


def write_page(explanation: Explanation) -> str:
    """An HTML document with the drawing, the tables and the SQL of a plan, which needs no other files."""
    title = f"Plan of {', '.join(explanation.plan.decomposed.graph.outputs)}"
    body = "\n".join(_sections(explanation, title))
    return html_document(title, body)


def html_document(title: str, body: str) -> str:
    """An HTML document in the style of these pages; the title is text, and the body is HTML."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _sections(explanation: Explanation, title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="faint">{escape(explanation.headline())}</p>'
    yield (
        '<p>Labels in <span class="code key">UPPER CASE</span> are key columns, by which the database joins and '
        "groups; those in lower case lie inside arrays.</p>"
    )
    yield f'<div class="drawing">{draw(cards_of(explanation), title)}</div>'
    yield _legend(explanation)
    notes = notes_on(explanation.plan, explanation.analysis)
    if notes:
        yield "<h2>Worth knowing</h2>"
        yield f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"
    yield "<h2>Plans that were considered</h2>"
    yield _runners_up(explanation)
    yield "<h2>Other choices for a single EinSum</h2>"
    yield '<p class="faint">Everything else as planned; the cost of bringing tensors into other shapes is included.</p>'
    yield from _alternatives(explanation)
    yield "<h2>Text</h2>"
    yield f"<details><summary>Program</summary><pre>{escape(str(explanation.plan.program))}</pre></details>"
    sql = write_sql(explanation.plan.statements, "staged")
    yield f"<details><summary>SQL, as it runs</summary><pre>{escape(sql)}</pre></details>"


def _legend(explanation: Explanation) -> str:
    entries = list(_LEGEND)
    if explanation.analysis is not None:
        entries.append(("actual", "actual, each EinSum run alone"))
    spans = "".join(f'<span style="--swatch: var(--{name})">{text}</span>' for name, text in entries)
    rewriting_note = " Dashed boxes were invented by rewriting." if explanation.plan.rewriting.all_parts else ""
    return (
        f'<div class="legend">{spans}<div>Bars show shares of the time of the whole plan.{rewriting_note}</div></div>'
    )


def _runners_up(explanation: Explanation) -> str:
    chosen = explanation.plan.decomposed
    others = explanation.other_plans()
    if not others:
        return "<p>No other plan was asked for, or keeps to what is asked.</p>"
    rows = [_row(True, write_seconds(chosen.seconds), "1.00", "this plan")]
    for other in others:
        differing = "<br>".join(_notation(step) for step in differing_steps(chosen, other))
        rows.append(_row(False, write_seconds(other.seconds), write_times(other, chosen), differing))
    return _table((("expected", True), ("times this plan", True), ("EinSums that differ", False)), rows)


def _alternatives(explanation: Explanation) -> Iterator[str]:
    chosen = explanation.plan.decomposed
    variants = explanation.plan.alternatives.variants_by_result(chosen, _MOST_ALTERNATIVES)
    for step in chosen.steps:
        others = variants[step.einsum.output.tensor]
        if not others:
            yield f'<p><span class="code">{_notation(step)}</span> <span class="faint">: no other choice</span></p>'
            continue
        best = f"next best: {write_times(others[0], chosen)} times this plan"
        rows = [_alternative(step, chosen, chosen)]
        for other in others:
            changed = other.step_of(step.einsum.output.tensor)
            assert changed is not None
            rows.append(_alternative(changed, other, chosen))
        headings = ("join", "aggregate", "repartition", "whole plan", "times this plan")
        table = _table((("EinSum", False), *((heading, True) for heading in headings)), rows)
        yield (
            f'<details><summary><span class="code">{_notation(step)}</span> <span class="faint">&ensp;{best}</span>'
            f"</summary>{table}</details>"
        )


def _alternative(step: Step, plan: DecomposedGraph, chosen: DecomposedGraph) -> _Row:
    times = (step.join_seconds, step.aggregation_seconds, step.repartition_seconds, plan.seconds)
    return _row(plan is chosen, _notation(step), *map(write_seconds, times), write_times(plan, chosen))


def _notation(step: Step) -> str:
    """An EinSum in notation on one line, its promoted labels marked."""
    return "".join(marked(line, "span") for line in notation_lines(step.notation, step.promoted, longest=sys.maxsize))


def _row(is_chosen: bool, *cells: str) -> _Row:
    return is_chosen, cells


def _table(headings: Sequence[tuple[str, bool]], rows: Iterable[_Row]) -> str:
    """A table of cells that are HTML; of every column its heading, and whether it holds numbers."""
    styles = ["number" if is_number else "code" for _, is_number in headings]
    heading_cells = [
        f'<th class="{style}">{heading}</th>' for (heading, _), style in zip(headings, styles, strict=True)
    ]
    lines = [f"<tr>{''.join(heading_cells)}</tr>"]
    for is_chosen, cells in rows:
        row = "".join(f'<td class="{style}">{cell}</td>' for cell, style in zip(cells, styles, strict=True))
        lines.append(f'<tr class="chosen">{row}</tr>' if is_chosen else f"<tr>{row}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'
