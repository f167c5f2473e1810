"""Engines: tables of DuckDB that take the place of others: those that several queries fill, and empty ones."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.render.sql_statement import create_table_as


def replace_in_passes(engine: Engine, table: exp.Table, queries: Sequence[exp.Select]) -> int:
    """Replace a table by the rows of queries, which may read it as it was; return the number of rows."""
    new = table.copy()
    new.set("this", exp.to_identifier(temporary_name(table.name)))
    first, *others = queries
    count = engine.replace_table(new, first)
    count += sum(engine.insert(new, query) for query in others)
    engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE", exists=True))
    name = exp.AlterRename(this=exp.table_(table.this.copy()))
    engine.execute(exp.Alter(this=new, kind="TABLE", actions=[name]))
    return count


def empty_table(engine: Engine, table: exp.Table) -> None:
    """Replace a table by an empty one with the same columns."""
    no_rows = exp.select("*").from_(table.copy()).limit(0)
    if table.db != engine.dialect.temporary_schema:
        engine.replace_table(table, no_rows, records_changes=True)
        return
    create = create_table_as(table, no_rows)
    create.set("replace", True)
    engine.execute(create)
