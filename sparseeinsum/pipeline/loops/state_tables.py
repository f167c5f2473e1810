"""Loops: the tables of a state: two temporary ones in turn, and that of the tensor which keeps it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import VALUE_COLUMN, Decomposition, StoredTensor
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.refilled_tables import RefilledTable, insert_into
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.tensor_rows import table_of_rows
from sparseeinsum.storage.tensor_tables import rows_as_stored, rows_in_layout, stored_tensor

_MOST_REMOVED = 32e6  # bytes of removed rows, which a scan still reads


@dataclass(frozen=True, slots=True)
class StateTables:
    """Where a state is during a loop.

    Attributes:
        name: The name of the state.
        in_turn: The tables that hold it before and after even steps, in this order; odd steps swap them.
        stored: The state in these tables, or in views of them.
        kept: The table of the tensor that keeps the state after the loop.
        keeping: Statements that copy the state from the table of each turn to that table.
        column: The column of its values if these tables hold other states, too; empty if they are its own.
    """

    name: str
    in_turn: tuple[RefilledTable, RefilledTable]
    stored: tuple[StoredTensor, StoredTensor]
    kept: RefilledTable
    keeping: tuple[str, str]
    column: str = ""

    @property
    def fill(self) -> Number:
        """The value of absent entries."""
        return self.stored[0].tensor.fill

    @property
    def most_rows(self) -> int:
        """The number of rows if there is one for every possible key."""
        return self.stored[0].max_tuples

    @property
    def tables(self) -> tuple[exp.Table, exp.Table]:
        """The tables that hold the state before and after even steps."""
        first, second = self.in_turn
        return first.table, second.table

    def keep(self, engine: Engine, turn: int, rows: int) -> None:
        """Copy the state from the table of a turn to where it is kept; it has about `rows` rows."""
        self.kept.empty(rows)
        engine.execute(self.keeping[turn])


def drop_state_tables(engine: Engine, states: Iterable[StateTables]) -> None:
    """Drop the tables of both turns of states; views first, since PostgreSQL drops no table that a view reads."""
    dropped = list(states)
    for relation in [stored.relation for state in dropped if state.column for stored in state.stored]:
        engine.execute(f"DROP VIEW IF EXISTS {relation}")
    for table in [table for state in dropped for table in state.tables]:
        engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE", exists=True))


def create_state_tables(
    engine: Engine,
    statements: PreparedStatements,
    name: str,
    source: StoredTensor,
    kept: StoredTensor,
    names: Sequence[str],
    layout: Decomposition,
    is_complete: bool,
) -> StateTables:
    """Create the tables in turn of a state; the first one has its rows.

    Args:
        engine: The database.
        statements: The statements of the loop.
        name: The name of the state.
        source: Holds the present rows.
        kept: The tensor that keeps the state.
        names: Names for the two tables.
        layout: The layout of the state in these tables.
        is_complete: Whether the first table has a row for every possible key.
    """
    dialect = engine.dialect_name
    has_own_layout = layout != source.decomposition
    rows = (
        rows_in_layout(engine, source, layout, is_complete=is_complete)
        if has_own_layout or is_complete
        else rows_as_stored(engine, source)
    )
    tables = [exp.table_(exp.to_identifier(table), db=engine.dialect.temporary_schema) for table in names]
    engine.create_temporary(tables[0], rows)
    engine.create_temporary(tables[1], rows.limit(0))
    tensor = replace(source.tensor, name=name)
    first, second = (replace(stored_tensor(tensor, layout, table.sql(dialect)), is_owned=False) for table in tables)
    most = most_removed([first], engine, _MOST_REMOVED)
    in_turn = RefilledTable(engine, statements, tables[0], most), RefilledTable(engine, statements, tables[1], most)
    kept_table = table_by_name(kept, dialect)
    home = RefilledTable(engine, statements, kept_table, None if engine.dialect.has_workers else most)
    keeps_fill = has_own_layout and count_rows(engine, source) == source.max_tuples
    keeping = [
        rows_in_layout(engine, stored, kept.decomposition, keeps_fill)
        if has_own_layout
        else exp.select("*").from_(table)
        for stored, table in zip((first, second), tables, strict=True)
    ]
    inserts = [_insert(engine, kept, home.table, query) for query in keeping]
    return StateTables(name, in_turn, (first, second), home, (inserts[0], inserts[1]))


def _insert(engine: Engine, kept: StoredTensor, table: exp.Table, rows: exp.Select) -> str:
    """The statement that adds the rows of a query, in the layout of a tensor, to its table."""
    keys = [kept.tensor.axes[position].name for position in kept.decomposition.promoted]
    columns = [exp.to_identifier(column, quoted=True) for column in (*keys, VALUE_COLUMN)]
    listed = ", ".join(column.sql(engine.dialect_name) for column in columns)
    query = exp.select(*[exp.column(column.copy()) for column in columns]).from_(rows.subquery("kept"))
    return insert_into(table, f"({listed}) {write_sql(query, engine.dialect)}", engine.dialect)


def count_rows(engine: Engine, stored: StoredTensor) -> int:
    """The number of rows of the table of a tensor."""
    ((rows,),) = engine.rows(exp.select("COUNT(*)").from_(table_of_rows(stored, engine.dialect_name)))
    return int(str(rows))


def most_removed(states: Sequence[StoredTensor], engine: Engine, most_bytes: float) -> int:
    """The number of removed rows, each with a tuple of every state, that take `most_bytes`."""
    sizes = [
        stored.decomposition.array_size(stored.tensor.shape) * ITEM_BYTES[stored.tensor.dtype] for stored in states
    ]
    return int(most_bytes / (engine.dialect.entry_bytes + sum(sizes)))
