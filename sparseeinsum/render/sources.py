"""Render: what a SELECT reads from, and the small pieces that all SELECTs share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Restrict, Schema
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.calls import call
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.packing import is_packed, packed, unpacked
from sparseeinsum.statistics.columns import table_of_rows, value_of
from sparseeinsum.statistics.dictionaries import rows_with_indices

# A part of a scan below these sizes is not worth a task of its own (measured: bench/gcn.py).
_LEAST_ROWS = 256
_LEAST_VALUES = 16_384


@dataclass(frozen=True, slots=True)
class Source:
    """A table, view, file or CTE that holds a tensor relation.

    Attributes:
        table: For the FROM clause, without an alias.
        schema: What it holds.
        columns: Column of every key, by axis name.
        stored: Where a table of the user's holds it; its values may need a cast.
        is_joined: Whether its rows come straight out of a join, with no aggregation or table between.
        is_table: Whether its rows are kept in a table, not computed where they are read.
        is_packed: Whether that holds arrays as bytes.
    """

    table: exp.Expr
    schema: Schema
    columns: Mapping[str, str]
    stored: StoredTensor | None = None
    is_joined: bool = False
    is_table: bool = False
    is_packed: bool = False

    def key(self, axis: str, alias: str) -> exp.Expr:
        """A key column."""
        return exp.column(self.columns[axis], table=alias)

    def value(self, alias: str) -> exp.Expr:
        """The value of a tuple."""
        if self.stored is not None:
            return value_of(self.stored, alias)
        column = exp.column(VALUE_COLUMN, table=alias)
        return unpacked(column, self.schema.tensor.dtype) if self.is_packed else column


def plain_source(rows: exp.Expr, schema: Schema, is_joined: bool = False) -> Source:
    """A relation whose columns are named as its axes."""
    return Source(rows, schema, {key: key for key in schema.keys}, is_joined=is_joined)


def kept_source(table: exp.Table, schema: Schema, dialect: Dialect) -> Source:
    """A relation that a run keeps in a table."""
    return replace(plain_source(table, schema), is_table=True, is_packed=is_packed(schema, dialect))


def kept_select(select: exp.Select, schema: Schema, dialect: Dialect) -> exp.Select:
    """The SELECT of a relation as the table of a run keeps its rows; of keys alone, as it is."""
    *keys, value = select.selects
    if value.alias_or_name != VALUE_COLUMN or not is_packed(schema, dialect):
        return select
    return select.select(*keys, named(packed(value.unalias()), VALUE_COLUMN), append=False)


def stored_source(stored: StoredTensor, dialect: Dialect, boundaries: Sequence[int] = ()) -> Source:
    """A stored tensor under the column names that its table has.

    Args:
        stored: The tensor.
        dialect: Of the engine.
        boundaries: Row numbers at which to split the scan of its table, ascending.
    """
    schema = Schema(stored.tensor, stored.decomposition)
    table = table_of_rows(stored, dialect.name)
    columns = dict(zip(schema.keys, stored.keys, strict=True))
    return Source(_in_ranges(table, boundaries, dialect.row_number), schema, columns, stored, is_table=True)


def indices_select(stored: StoredTensor, dialect: Dialect) -> exp.Select:
    """The rows of a table that holds natural keys, with their indices in the columns of the same names."""
    return rows_with_indices(stored, aliased(table_of_rows(stored, dialect.name), "t"))


def scan_boundaries(stored: StoredTensor, rows: int, threads: int, dialect: Dialect) -> tuple[int, ...]:
    """Row numbers at which to split the scan of a table that too few threads would scan; none where it pays not."""
    parts = min(
        threads, rows // _LEAST_ROWS, rows * stored.decomposition.array_size(stored.tensor.shape) // _LEAST_VALUES
    )
    is_split = dialect.row_number is not None and stored.is_owned and not stored.holds_keys
    # A thread whose part is half of what others scan helps as much as one that is given more at the price of a filter.
    has_parts = 2 * rows >= (2 * threads - 1) * dialect.rows_per_thread
    if not is_split or parts < 2 or has_parts:
        return ()
    return tuple(rows * part // parts for part in range(1, parts))


def _in_ranges(table: exp.Expr, boundaries: Sequence[int], row_number: str | None) -> exp.Expr:
    """The table, or all of it by ranges of its rows, which an engine scans in parallel."""
    if not boundaries or row_number is None:
        return table
    ranges = []
    for low, high in zip((None, *boundaries), (*boundaries, None), strict=True):
        rows = exp.select("*").from_(table.copy())
        if low is not None:
            rows = rows.where(exp.column(row_number) >= low)
        if high is not None:
            rows = rows.where(exp.column(row_number) < high)
        ranges.append(rows)
    return exp.union(*ranges, distinct=False)


def restricted_source(relation: Restrict, source: Source) -> Source:
    """The tuples of a source in a range of keys; an engine looks for them as near to the tables as it can."""
    column = exp.column(source.columns[relation.schema.tensor.axes[relation.axis].name], table="t")
    low, high = exp.Literal.number(relation.first), exp.Literal.number(relation.last)
    condition = exp.Between(this=column, low=low, high=high)
    return replace(source, table=exp.select("*").from_(aliased(source.table, "t")).where(condition))


def with_inline_arrays(source: Source, largest_inline: int) -> Source:
    """A relation in whose rows the arrays lie, so that a join fetches each of them once."""
    schema = source.schema
    size = 0 if schema.is_scalar else schema.array_size * ITEM_BYTES[schema.tensor.dtype]
    if not source.is_table or size <= largest_inline:
        return source
    keys = [key_column(source, key, "t") for key in schema.keys]
    table, array = source.table, source.value("t")
    if source.is_packed:
        # Of a table that is the coordinator's alone, Citus sends what the innermost query computes: here bytes.
        table = exp.select("*").from_(aliased(table, "t"))
    else:
        array = call("ARRAY_CAT", array, exp.array())  # copies, and adds nothing
    rows = exp.select(*keys, exp.alias_(array, VALUE_COLUMN)).from_(aliased(table, "t"))
    return plain_source(fenced(rows), schema)


def fenced(select: exp.Select) -> exp.Select:
    """A SELECT that PostgreSQL computes row by row where it stands, not in the place of each of its columns.

    It puts no query that has an order in the place of another's columns, and sorts by no constant. Processes share the
    rows of such a query, and machines, too, which they do not where some are skipped, be it none.
    """
    return select.order_by(exp.cast(exp.null(), "int"))


def aliased(table: exp.Expr, alias: str) -> exp.Expr:
    """A table or query under an alias, for a FROM clause."""
    if isinstance(table, exp.Subquery):
        return exp.alias_(table.this.copy().subquery(), alias, table=True)
    if isinstance(table, exp.Query):
        return table.copy().subquery(alias)
    return exp.alias_(table.copy(), alias, table=True)


def key_column(source: Source, axis: str, alias: str) -> exp.Expr:
    """A key for a SELECT list, under the name of its axis."""
    return named(source.key(axis, alias), axis)


def named(column: exp.Expr, name: str) -> exp.Expr:
    """An expression for a SELECT list under a name, which a column that has it already needs not be given."""
    return column if isinstance(column, exp.Column) and column.name == name else exp.alias_(column, name)


def unused(name: str, schema: Schema) -> str:
    """A column name that no axis of the schema has."""
    names = {axis.name.lower() for axis in schema.tensor.axes}
    while name in names:
        name += "_"
    return name
