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
    """

    name: str
    probe_hint: str | None


DUCKDB = Dialect("duckdb", "tensor_no_tuples")


def write_sql(statement: exp.Expr, dialect: Dialect) -> str:
    """A statement as text, one clause a line, identifiers quoted where they must be."""
    return statement.sql(dialect.name, pretty=True, normalize_functions=False, max_text_width=100)
