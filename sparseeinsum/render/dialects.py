"""Render: what differs between engines, as data."""

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's ways.

    Attributes:
        name: Of the dialect in sqlglot, and of the engine's folder in stats/.
        probe_hint: Table function without rows that makes the side of a join with arrays probe; None where the
            engine needs none.
        row_number: Pseudo-column that numbers a table's rows from 0.
        rows_per_thread: Rows of a table that one thread scans at least.
        keeps_residents: Whether functions can read an array that a statement keeps in memory.
    """

    name: str
    probe_hint: str | None
    row_number: str
    rows_per_thread: int
    keeps_residents: bool


DUCKDB = Dialect("duckdb", "tensor_no_tuples", "rowid", 122_880, keeps_residents=True)


def write_sql(statement: exp.Expr, dialect: Dialect) -> str:
    """A statement as text, one clause a line, identifiers quoted where they must be."""
    return statement.sql(dialect.name, pretty=True, normalize_functions=False, max_text_width=100)
