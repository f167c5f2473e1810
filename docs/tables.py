"""Generates the tables of docs/language.md from the records of `operators`: `python docs/tables.py`."""

import re
from collections.abc import Iterator
from pathlib import Path

from sparseeinsum.language.scalar import write_number
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.functions import built_in
from sparseeinsum.operators.scans import SCANS

BAR = r"\|"  # in a cell of a table
PAGE = Path(__file__).parent / "language.md"


def written(page: str) -> str:
    """The text of a page with new tables; each one begins after its mark and ends at an empty line."""
    tables = {"scalar functions": _scalar_functions(), "aggregates": _aggregates(), "scans": _scans()}
    for mark, rows in tables.items():
        table = f"<!-- table of {mark} -->\n" + "\n".join(rows) + "\n\n"
        page = re.sub(rf"<!-- table of {mark} -->\n(.+\n)*\n", lambda _, table=table: table, page)
    return page


def _scalar_functions() -> Iterator[str]:
    yield from ("| | | int64 stays int64 | complex numbers |", "|---|---|---|---|")
    for function in built_in():
        if not function.symbol:
            call = f"`{function.name}({', '.join('uvw'[: function.operands])})`"
            has = ("yes" if body is not None else "" for body in (function.integer, function.complex))
            yield f"| {call} | {function.description.replace('|', BAR)} | {' | '.join(has)} |"


def _aggregates() -> Iterator[str]:
    yield from ("| | of no values | |", "|---|---|---|")
    for name, aggregate in AGGREGATES.items():
        yield f"| `{name}` | {write_number(aggregate.identity('float64'))} | {aggregate.description} |"


def _scans() -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    for name, scan in SCANS.items():
        yield f"| `{name}[j](X[i, j])` | {scan.description} |"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
