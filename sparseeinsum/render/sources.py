"""Render: what a SELECT reads from, and small pieces that all SELECTs share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Restrict
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN, Decomposition, ListLayout, StoredTensor, unused_axis_name
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.packing import is_packed, packed, unpacked
from sparseeinsum.statistics.columns import value_of, written_table
from sparseeinsum.statistics.dictionary_queries import rows_with_indices
from sparseeinsum.statistics.tensor_rows import table_of_rows

# A smaller part of a scan is not worth a task of its own (measured: bench/gcn.py).
_MIN_ROWS = 256
_MIN_VALUES = 16_384
_MOST_ROWS = (1 << 63) - 1
_PLAIN_CLAUSES = frozenset(("expressions", "from_", "with_"))


@dataclass(frozen=True, slots=True)
class SelectSource:
    """A table, view, file or CTE that holds a tensor relation.

    Attributes:
        table: The table or query for the FROM clause, without an alias.
        schema: The schema of the relation.
        columns: The column of every key, by axis name.
        stored: The stored tensor, if a table of the user's holds the relation; its values may need a cast.
        is_joined: Whether its rows come straight out of a join, with no aggregation or table between.
        is_table: Whether its rows are in a table, and not computed where they are read.
        is_packed: Whether the table holds arrays as bytes.
        value_column: The column of the values, unless a table of the user's holds the relation.
        handle: The handle of a relation that is in memory already; None if the table has it.
        numbers: The column of an array of numbers in place of those under the handle; empty if there is none.
        computed_value: The values, as an expression of columns of the table, unless a column has them.
    """

    table: exp.Expr
    schema: Schema
    columns: Mapping[str, str]
    stored: StoredTensor | None = None
    is_joined: bool = False
    is_table: bool = False
    is_packed: bool = False
    value_column: str = VALUE_COLUMN
    handle: exp.Expr | None = None
    numbers: str = ""
    computed_value: exp.Expr | None = None

    def key(self, axis: str, alias: str) -> exp.Expr:
        """The key column of an axis, qualified by the alias of the table."""
        return exp.column(self.columns[axis], table=alias)

    def value(self, alias: str) -> exp.Expr:
        """The value of a tuple, qualified by the alias of the table."""
        if self.stored is not None:
            return value_of(self.stored, alias)
        if self.computed_value is not None:
            value = self.computed_value.copy()
            for column in value.find_all(exp.Column):
                column.set("table", exp.to_identifier(alias))
            return value
        column = exp.column(self.value_column, table=alias)
        return unpacked(column, self.schema.tensor.dtype) if self.is_packed else column


@dataclass(frozen=True, slots=True)
class ListSource:
    """A table that holds the entries of a tensor in lists.

    Attributes:
        table: The table or query for the FROM clause, without an alias.
        layout: How it has the entries in lists.
        keys: The key columns, by the positions of their axes.
        lists: The columns of lists of positions, by the positions of their axes.
    """

    table: exp.Expr
    layout: ListLayout
    keys: Mapping[int, str]
    lists: Mapping[int, str]


def list_source(stored: StoredTensor, dialect: Dialect, boundaries: Sequence[int] = ()) -> ListSource | None:
    """The source of the lists in which a tensor is stored; None if it is stored otherwise. As `stored_source`."""
    if stored.lists is None or not dialect.stores_lists:
        return None
    names, layout = [axis.name for axis in stored.tensor.axes], stored.lists.layout
    table = _in_ranges(written_table(stored, dialect.names_in or dialect.name), boundaries, dialect.row_number)
    keys = {axis: names[axis] for axis in layout.keys}
    return ListSource(table, layout, keys, dict(zip(layout.compressed, layout.list_columns(names), strict=True)))


def plain_source(rows: exp.Expr, schema: Schema, is_joined: bool = False) -> SelectSource:
    """The source of a relation whose key columns are named as its axes."""
    return SelectSource(rows, schema, {key: key for key in schema.keys}, is_joined=is_joined)


def value_source(table: exp.Expr, schema: Schema, column: str) -> SelectSource:
    """The source of a relation without keys, whose value is in a column of a table that has other results, too."""
    if column == VALUE_COLUMN:
        return plain_source(table, schema)
    return plain_source(exp.select(exp.column(column).as_(VALUE_COLUMN)).from_(table.copy()), schema)


def materialized_source(table: exp.Table, schema: Schema, dialect: Dialect) -> SelectSource:
    """The source of a relation that a run has materialised in a table."""
    return replace(plain_source(table, schema), is_table=True, is_packed=is_packed(schema, dialect))


def materialized_select(select: exp.Select, schema: Schema, dialect: Dialect) -> exp.Select:
    """The SELECT that fills the table of a relation in a run: arrays become bytes where the engine needs that.

    A SELECT of keys alone is returned as it is.
    """
    *keys, value = select.selects
    if value.alias_or_name != VALUE_COLUMN or not is_packed(schema, dialect):
        return select
    return select.select(*keys, named(packed(value.unalias()), VALUE_COLUMN), append=False)


def stored_source(stored: StoredTensor, dialect: Dialect, boundaries: Sequence[int] = ()) -> SelectSource:
    """The source of a stored tensor, under the column names of its table.

    Args:
        stored: The tensor.
        dialect: The dialect of the engine.
        boundaries: Row numbers at which to split the scan of its table, ascending.
    """
    schema = Schema(stored.tensor, stored.decomposition)
    table: exp.Expr = _table_of_rows(stored, dialect)
    columns = dict(zip(schema.keys, stored.keys, strict=True))
    if stored.lists is None:  # rows that are read out of lists have no numbers
        table = _in_ranges(table, boundaries, dialect.row_number)
    return SelectSource(table, schema, columns, stored, is_table=True)


def indices_select(stored: StoredTensor, dialect: Dialect) -> exp.Select:
    """The SELECT of a table that holds natural keys, with their indices in the columns of the same names."""
    return rows_with_indices(stored, aliased(_table_of_rows(stored, dialect), "t"))


def _table_of_rows(stored: StoredTensor, dialect: Dialect) -> exp.Table | exp.Subquery:
    """The table or subquery with the rows of a tensor; an engine without lists has a table named as their view."""
    return table_of_rows(stored if dialect.stores_lists else stored.as_view, dialect.names_in or dialect.name)


def scan_boundaries(stored: StoredTensor, rows: int, threads: int, dialect: Dialect) -> tuple[int, ...]:
    """The row numbers at which to split the scan of a table that too few threads would scan; none if that does not pay.

    Args:
        stored: The tensor in the table.
        rows: How many rows the table has; those of lists are estimated from their entries.
        threads: How many threads the engine has.
        dialect: The dialect of the engine.
    """
    values = rows * stored.decomposition.array_size(stored.tensor.shape)
    if stored.lists is not None:
        rows = min(rows, Decomposition(stored.lists.layout.tiles).max_tuples(stored.tensor.shape))
    range_count = min(threads, rows // _MIN_ROWS, values // _MIN_VALUES)
    can_split = dialect.row_number is not None and stored.is_owned and not stored.holds_keys
    # If every thread has work already, and the last one half a share, filters by row number would cost more than help.
    is_shared = 2 * rows >= (2 * threads - 1) * dialect.rows_per_thread
    if not can_split or range_count < 2 or is_shared:
        return ()
    return tuple(rows * part // range_count for part in range(1, range_count))


def _in_ranges(table: exp.Expr, boundaries: Sequence[int], row_number: str | None) -> exp.Expr:
    """The table, or, with boundaries, a UNION ALL of ranges of its rows, which an engine scans in parallel."""
    if not boundaries or row_number is None:
        return table
    ranges = []
    for low, high in zip((None, *boundaries), (*boundaries, None), strict=True):
        rows = exp.select(exp.Star()).from_(table.copy(), copy=False)
        if low is not None:
            rows = rows.where(exp.column(row_number) >= low, copy=False)
        if high is not None:
            rows = rows.where(exp.column(row_number) < high, copy=False)
        ranges.append(rows)
    return exp.union(*ranges, distinct=False, copy=False)


def in_one_process(source: SelectSource) -> SelectSource:
    """The source without workers that share its rows: an aggregate of each would return as large an array as all."""
    tuples = exp.select("*").from_(aliased(source.table, "u"), copy=False).limit(integer(_MOST_ROWS), copy=False)
    return replace(source, table=tuples)


def restricted_source(relation: Restrict, source: SelectSource) -> SelectSource:
    """The tuples of a source whose keys are in a range, as a subquery that filters close to the tables."""
    column = exp.column(source.columns[relation.schema.tensor.axes[relation.axis].name], table="t")
    low, high = exp.Literal.number(relation.first), exp.Literal.number(relation.last)
    condition = exp.Between(this=column, low=low, high=high)
    return replace(source, table=exp.select("*").from_(aliased(source.table, "t")).where(condition))


def with_inline_arrays(source: SelectSource, largest_inline: int) -> SelectSource:
    """The source with its arrays copied into the rows, so that a join fetches each of them once.

    PostgreSQL stores arrays above `largest_inline` bytes outside of the rows, and fetches them at every use.
    """
    schema = source.schema
    size = 0 if schema.is_scalar else schema.array_size * ITEM_BYTES[schema.tensor.dtype]
    if not source.is_table or size <= largest_inline:
        return source
    keys = [key_column(source, key, "t") for key in schema.keys]
    table, array = source.table, source.value("t")
    if source.is_packed:
        # Citus sends what the innermost query of a coordinator's table computes, so this one keeps the bytes.
        table = exp.select("*").from_(aliased(table, "t"))
    else:
        array = call("ARRAY_CAT", array, exp.array())  # copies, and adds nothing
    rows = exp.select(*keys, exp.alias_(array, VALUE_COLUMN)).from_(aliased(table, "t"))
    return plain_source(fenced(rows), schema)


def keys_and_value(source: SelectSource) -> exp.Select:
    """The SELECT of the key columns, under the names of the axes, and of the value of every tuple of a source."""
    columns = [key_column(source, key, "t") for key in source.schema.keys]
    return exp.select(*columns, named(source.value("t"), VALUE_COLUMN)).from_(aliased(source.table, "t"), copy=False)


def with_value_column(source: SelectSource) -> SelectSource:
    """The source with its values in a column, which is NULL where an outer join finds no tuple.

    A table without a value column has the value 1, and it would be 1 also where the join finds no row of the table.
    A value that is computed is none either.
    """
    is_column = source.stored is None or source.stored.value is not None
    has_column = is_column and source.computed_value is None
    return source if has_column else plain_source(keys_and_value(source), source.schema)


def fenced(select: exp.Select) -> exp.Select:
    """The SELECT, fenced off: PostgreSQL computes it row by row, and does not move its expressions into an outer query.

    PostgreSQL does not merge a query that has an ORDER BY into another one, and does not sort by a constant. Unlike
    OFFSET 0, which would do the same, this can be computed by several processes or machines.
    """
    return select.order_by(exp.cast(exp.null(), "int"))


def aliased(table: exp.Expr, alias: str) -> exp.Expr:
    """The table or query under an alias, for a FROM clause."""
    if isinstance(table, exp.Subquery):
        return exp.alias_(table.this.subquery(), alias, table=True, copy=False)
    if isinstance(table, exp.Query):
        return table.subquery(alias)
    return exp.alias_(table, alias, table=True)


def with_join(
    select: exp.Select, table: exp.Expr, on: exp.Expr | None = None, side: str | None = None, kind: str | None = None
) -> exp.Select:
    """The SELECT with a join; sqlglot's builder would parse the type of the join as SQL.

    Args:
        select: The SELECT, which is changed.
        table: The table or query under an alias.
        on: The condition.
        side: LEFT, RIGHT or FULL for an outer join.
        kind: CROSS for a cross product.
    """
    return select.join(exp.Join(this=table, on=on, side=side, kind=kind), copy=False)


def key_column(source: SelectSource, axis: str, alias: str) -> exp.Expr:
    """The key of an axis for a SELECT list, under the name of the axis."""
    return named(source.key(axis, alias), axis)


def is_plain(query: exp.Select, *clauses: str) -> bool:
    """Whether a SELECT has none but columns and what these are read from, and these other clauses."""
    return all(name in _PLAIN_CLAUSES or name in clauses for name, clause in query.args.items() if clause)


def plain_subquery(query: exp.Select, *clauses: str) -> exp.Subquery | None:
    """The SELECT in a subquery that a plain SELECT reads alone; None if it reads something else, or is not plain."""
    source = query.args["from_"].this if query.args.get("from_") is not None else None
    is_select = isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select)
    return source if is_select and is_plain(query, *clauses) else None


def named(column: exp.Expr, name: str) -> exp.Expr:
    """The expression for a SELECT list under a name; a column that has this name already needs no alias."""
    return column if isinstance(column, exp.Column) and column.name == name else exp.alias_(column, name)


def unused(name: str, schema: Schema) -> str:
    """A column name that no axis of the schema has: `name`, with underscores appended if needed."""
    return unused_axis_name(name, schema.tensor)
