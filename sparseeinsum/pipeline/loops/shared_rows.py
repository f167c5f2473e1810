"""Loops: what one statement of a step computes in one row, in tables with a column for every state and number.

Arrays are bytes in these tables: DuckDB reads arrays of removed rows, too, and bytes of those rows not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.refilled_tables import RefilledTable
from sparseeinsum.pipeline.loops.state_tables import StateTables, most_removed
from sparseeinsum.render.packing import packed_value, unpacked_value
from sparseeinsum.statistics.columns import computed_type

_MOST_REMOVED = 128e6  # bytes of removed rows, which take memory
_MOST_OF_MEMORY = 1 / 32  # the share of the database's memory that they may take


@dataclass(frozen=True, slots=True)
class SharedRow:
    """A row that every step replaces.

    Attributes:
        tables: The tables that hold it before and after even steps.
        states: The states that it holds, whose tables are views of it.
        numbers: The columns of the numbers that steps return, by name; they are the first ones.
    """

    tables: tuple[exp.Table, exp.Table]
    states: tuple[StateTables, ...]
    numbers: Mapping[str, str]


def share_row(
    engine: Engine,
    statements: PreparedStatements,
    states: Sequence[StateTables],
    numbers: Mapping[str, str],
    names: Sequence[str],
) -> SharedRow:
    """Move states to tables that they share.

    Args:
        engine: The database.
        statements: The statements of the loop.
        states: The states, of one row each; their tables are replaced by views.
        numbers: The dtypes of numbers that steps return, by name, for which the tables get columns.
        names: Names for the tables of the two turns.
    """
    columns = [f"state_{position}" for position in range(len(states))]
    number_columns = {name: f"number_{position}" for position, name in enumerate(numbers)}
    none = [
        exp.cast(exp.Null(), computed_type(dtype, is_scalar=True)).as_(column)
        for dtype, column in zip(numbers.values(), number_columns.values(), strict=True)
    ]
    rows = [exp.table_(exp.to_identifier(name), db=engine.dialect.temporary_schema) for name in names]
    for turn, row in enumerate(rows):
        _share_row(engine, row, none, [(state.tables[turn], _schema(state)) for state in states], columns)
    most_bytes = min(_MOST_REMOVED, engine.memory_limit() * _MOST_OF_MEMORY)
    most = most_removed([state.stored[0] for state in states], engine, most_bytes)
    first, second = (RefilledTable(engine, statements, row, most) for row in rows)
    moved = [
        replace(state, in_turn=(first, second), column=column) for state, column in zip(states, columns, strict=True)
    ]
    return SharedRow((first.table, second.table), tuple(moved), number_columns)


def _schema(state: StateTables) -> Schema:
    stored, _ = state.stored
    return Schema(stored.tensor, stored.decomposition)


def _share_row(
    engine: Engine,
    row: exp.Table,
    numbers: Sequence[exp.Expr],
    parts: Sequence[tuple[exp.Table, Schema]],
    columns: Sequence[str],
) -> None:
    """Create a table from numbers and the rows of other tables, one or none each, and make those views of it."""
    aliases = [f"of_{column}" for column in columns]
    first, *others = [exp.alias_(table.copy(), alias) for (table, _), alias in zip(parts, aliases, strict=True)]
    values = [
        packed_value(exp.column(VALUE_COLUMN, alias), schema).as_(column)
        for (_, schema), alias, column in zip(parts, aliases, columns, strict=True)
    ]
    query = exp.select(*numbers, *values).from_(first)
    for other in others:
        query = query.join(other, join_type="cross")
    engine.create_temporary(row, query)
    for (table, schema), column in zip(parts, columns, strict=True):
        engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))
        value = unpacked_value(exp.column(column), schema).as_(VALUE_COLUMN)
        properties = exp.Properties(expressions=[exp.TemporaryProperty()])
        view = exp.select(value).from_(row.copy())
        engine.execute(exp.Create(this=table.copy(), kind="VIEW", properties=properties, expression=view))
