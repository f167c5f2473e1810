"""Engines: creates tables of PostgreSQL, which may take the place of old ones that views read."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.environment import assets
from sparseeinsum.errors import CatalogueError
from sparseeinsum.render.table_distribution import INLINE_ARRAYS
from sparseeinsum.statistics.columns import type_named


def old_and_new(engine: Engine, table: exp.Table) -> tuple[exp.Table, exp.Table]:
    """Return the qualified name of a table, which may exist, and of the one that is filled and then takes its place."""
    schema = exp.to_identifier(table.db or engine.location()[1])
    old = exp.table_(table.this.copy(), db=schema, catalog=table.args.get("catalog"))
    return old, exp.table_(exp.to_identifier(temporary_name(table.name)), db=schema.copy())


def create_empty(engine: Engine, table: exp.Table, columns: Sequence[Column]) -> None:
    """Create a table without rows; its arrays are never compressed, and lie outside of rows that fill a page."""
    definitions = [
        exp.ColumnDef(this=exp.to_identifier(column.name, quoted=True), kind=type_named(column.sql_type))
        for column in columns
    ]
    schema = exp.Schema(this=table.copy(), expressions=definitions)
    properties = exp.Properties(expressions=[INLINE_ARRAYS.copy()])
    engine.execute(exp.Create(this=schema, kind="TABLE", properties=properties))
    for column in columns:
        if column.sql_type.endswith("[]"):
            name = exp.to_identifier(column.name, quoted=True).sql(engine.dialect_name)
            engine.execute(f"ALTER TABLE {table.sql(engine.dialect_name)} ALTER COLUMN {name} SET STORAGE EXTERNAL")


def replace(
    engine: Engine,
    session: DatabaseSession,
    old: exp.Table,
    new: exp.Table,
    columns: Sequence[Column],
    analyze: Callable[[exp.Table], None],
) -> bool:
    """Let the table `new` take the name of the table `old`, if that exists.

    A table that views read cannot be dropped: it gets the rows of the new one instead.

    Args:
        engine: The engine of both tables.
        session: Its session.
        old: The name of the old table.
        new: The new table.
        columns: The columns of the new table.
        analyze: Analyses a table.

    Returns:
        Whether the result is the new table, and not the old one with other rows.

    Raises:
        CatalogueError: Views read the old table, and the new one has other columns.
    """
    old_columns = engine.columns_of(old)
    dependents = [] if old_columns is None else _dependents(engine, session, old)
    if dependents and old_columns == columns:
        engine.execute(exp.TruncateTable(expressions=[old.copy()]))
        engine.execute(exp.insert(exp.select("*").from_(new.copy()), old.copy()))
        engine.execute(exp.Drop(tables=[new.copy()], kind="TABLE"))
        analyze(old)
        return False
    if dependents:
        raise CatalogueError(
            f"the table {old.sql(engine.dialect_name)} cannot be replaced by one of other columns, because "
            f"{', '.join(dependents)} depend{'s' if len(dependents) == 1 else ''} on it; drop that first, or "
            "choose another table"
        )
    analyze(new)
    if old_columns is not None:  # DROP TABLE IF EXISTS would give a notice if there is none
        engine.execute(exp.Drop(tables=[old.copy()], kind="TABLE"))
    renamed = exp.AlterRename(this=exp.table_(old.this.copy()))
    engine.execute(exp.Alter(this=new.copy(), kind="TABLE", actions=[renamed]))
    return True


def _dependents(engine: Engine, session: DatabaseSession, table: exp.Table) -> list[str]:
    """Return the names of the views and other relations that read a table, as messages show them."""
    rows = session.fetch(assets.read("sql/postgresql/dependents.sql"), table.sql(engine.dialect_name))
    return [str(dependent) for (dependent,) in rows]
