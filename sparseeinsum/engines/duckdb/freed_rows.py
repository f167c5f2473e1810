"""Engines: frees the memory of rows of DuckDB before the end of the transaction that wrote them."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import Column


def free_rows(table: exp.Table, columns: Sequence[Column], execute: Callable[[str], object]) -> None:
    """Leave of a table one column of NULL.

    DuckDB 2.0 keeps dropped tables and deleted rows until the transaction ends, but not dropped columns.
    """
    altered = f"ALTER TABLE {table.sql('duckdb')}"
    kept, *others = (exp.to_identifier(column.name, quoted=True).sql("duckdb") for column in columns)
    for name in others:
        execute(f"{altered} DROP COLUMN {name}")
    execute(f"{altered} ALTER COLUMN {kept} TYPE BOOLEAN USING NULL")
