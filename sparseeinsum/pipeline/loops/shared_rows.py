"""Loops: states of one row each in tables with a column for every state, so that a step replaces one row.

Arrays are bytes in these tables: DuckDB reads arrays of removed rows, too, and bytes of those rows not.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.refilled_tables import RefilledTable
from sparseeinsum.pipeline.loops.state_tables import StateTables, most_removed
from sparseeinsum.render.packing import packed_value, unpacked_value

_MOST_REMOVED = 128e6  # bytes of removed rows, which take memory
_MOST_OF_MEMORY = 1 / 32  # the share of the database's memory that they may take


def share_rows(
    engine: Engine, statements: PreparedStatements, states: Sequence[StateTables], names: Sequence[str]
) -> list[StateTables]:
    """Move states to tables that they share.

    Args:
        engine: The database.
        statements: The statements of the loop.
        states: The states; their tables are replaced by views.
        names: Names for the tables of the two turns.
    """
    columns = [f"state_{number}" for number in range(len(states))]
    rows = [exp.table_(exp.to_identifier(name), db=engine.dialect.temporary_schema) for name in names]
    for turn, row in enumerate(rows):
        _share_row(engine, row, [(state.tables[turn], _schema(state)) for state in states], columns)
    most_bytes = min(_MOST_REMOVED, engine.memory_limit() * _MOST_OF_MEMORY)
    most = most_removed([state.stored[0] for state in states], engine, most_bytes)
    first, second = (RefilledTable(engine, statements, row, most) for row in rows)
    return [
        replace(state, in_turn=(first, second), column=column) for state, column in zip(states, columns, strict=True)
    ]


def _schema(state: StateTables) -> Schema:
    stored, _ = state.stored
    return Schema(stored.tensor, stored.decomposition)


def _share_row(
    engine: Engine, row: exp.Table, parts: Sequence[tuple[exp.Table, Schema]], columns: Sequence[str]
) -> None:
    """Create a table from the rows of others, one or none each, and make those views of it."""
    aliases = [f"of_{column}" for column in columns]
    first, *others = [exp.alias_(table.copy(), alias) for (table, _), alias in zip(parts, aliases, strict=True)]
    values = [
        packed_value(exp.column(VALUE_COLUMN, alias), schema).as_(column)
        for (_, schema), alias, column in zip(parts, aliases, columns, strict=True)
    ]
    query = exp.select(*values).from_(first)
    for other in others:
        query = query.join(other, join_type="cross")
    engine.create_temporary(row, query)
    for (table, schema), column in zip(parts, columns, strict=True):
        engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))
        value = unpacked_value(exp.column(column), schema).as_(VALUE_COLUMN)
        properties = exp.Properties(expressions=[exp.TemporaryProperty()])
        view = exp.select(value).from_(row.copy())
        engine.execute(exp.Create(this=table.copy(), kind="VIEW", properties=properties, expression=view))
