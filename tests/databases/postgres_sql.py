"""What tests say to DuckDB, in PostgreSQL's words."""

import re

import sqlglot
from sqlglot import exp

# Functions that return an array of arrays in DuckDB, and a set of arrays in PostgreSQL.
_SETS = re.compile(r"tensor(_complex)?_split(_tiles)?\(")


def in_postgres(expression: str) -> str:
    """An expression or a query in PostgreSQL's SQL; calls that return sets become arrays of texts."""
    tree = sqlglot.parse_one(expression, read="duckdb").transform(_typed_arrays)
    text = tree.sql("postgres", normalize_functions=False)
    return f"ARRAY(SELECT part::text FROM {text} AS parts(part))" if _SETS.match(expression) else text


def _typed_arrays(node: exp.Expression) -> exp.Expression:
    """Add types to empty arrays and arrays of NULL, as PostgreSQL cannot infer them."""
    is_untyped = isinstance(node, exp.Array) and all(isinstance(element, exp.Null) for element in node.expressions)
    return exp.cast(node.copy(), "INT[]") if is_untyped and not isinstance(node.parent, exp.Cast) else node


def numbers(value: object) -> list[float]:
    """The numbers of a result, in order; texts are arrays of a set."""
    if isinstance(value, str):
        return [float(number) for number in value.strip("{}").split(",") if number]
    if isinstance(value, list):
        return [number for element in value for number in numbers(element)]
    assert isinstance(value, int | float)
    return [value]
