"""Render: products of numbers that are ordered by row in memory, which kernels compute row by row."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Contract
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.compressed_access import semiring_of
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.operators.semirings import Semiring
from sparseeinsum.render.array_positions import positions_at
from sparseeinsum.render.blocks import KernelSelect, ValueOfTuples
from sparseeinsum.render.calls import call, constant, converted, function_named, integer, text
from sparseeinsum.render.compressing_queries import row_count
from sparseeinsum.render.dialects import DUCKDB, Dialect
from sparseeinsum.render.entry_bytes import ENTRY_COLUMN, EntryBytes
from sparseeinsum.render.gathered_sums import SUM_FUNCTION
from sparseeinsum.render.layouts import HANDLE_COLUMN, ROW_COLUMN, element_of, row_of_array
from sparseeinsum.render.sources import SelectSource, aliased, named, with_join
from sparseeinsum.render.values import with_finite_check
from sparseeinsum.render.whole_products import NUMBER_FUNCTION, ROW_FUNCTION, of_all_rows
from sparseeinsum.statistics.columns import NUMBER_TYPES, array_type, number_type

_VECTOR_ELEMENTS = 1 << 16  # of the results in a vector of rows
_MOST_RANGES = 4  # of the numbers of rows; each takes some time to start
_VECTORS = 64  # of rows of a sparse product, if there are so many rows, so that threads share them evenly
POSITION_COLUMN = "position"
_ONLY = "only_row"  # an alias; PostgreSQL 15 needs one
POSITION_BYTES = 8  # of a position in entries that come as bytes
HANDLE_ALIASES = ("u", "v", "w")  # of the tables that have handles


def gather_select(relation: Contract, entries: SelectSource, array: SelectSource, dialect: Dialect) -> KernelSelect:
    """The SELECT of an EinSum whose operands are compressed and resident: a kernel computes every row that has entries.

    Args:
        relation: The EinSum.
        entries: Where the handle of the compressed operand is read.
        array: Where the handle of the resident operand is read.
        dialect: The dialect of the engine.
    """
    size, semiring = array.schema.list_length, semiring_of(relation.einsum)
    arguments = (
        exp.column(HANDLE_COLUMN, table="u"),
        exp.column(ROW_COLUMN, table="r"),
        exp.column(HANDLE_COLUMN, table="v"),
        integer(size),
        element_of(array.schema),
    )
    if semiring is not None and semiring.aggregate != "sum":
        gathered = call("tensor_gather_reduce", text(semiring.text), *arguments)
        return gathered_rows_select(relation, gathered, (entries, array), size, dialect)
    select = gathered_rows_select(relation, call(SUM_FUNCTION, *arguments), (entries, array), size, dialect)
    return select if select.whole is None else replace(select, array=_sums_in_one_array(relation, entries, array))


def _sums_in_one_array(relation: Contract, entries: SelectSource, array: SelectSource) -> exp.Select | None:
    """The SELECT of the sums of all rows in one array; None if a row without entries is not 0."""
    if relation.output.tensor.fill != 0:
        return None
    entries_handle, array_handle = (exp.column(HANDLE_COLUMN, table=alias) for alias in HANDLE_ALIASES[:2])
    rows, size = integer(_count_rows(relation)), integer(array.schema.list_length)
    sums = call("tensor_sparse_matmul", entries_handle, rows, array_handle, size)
    select = exp.select(exp.alias_(sums, HANDLE_COLUMN))
    put_values_in_place(select, dict(zip(HANDLE_ALIASES, (entries, array), strict=False)))
    return select


def gathered_rows_select(
    relation: Contract, gathered: exp.Expr, handles: Sequence[SelectSource], size: int, dialect: Dialect
) -> KernelSelect:
    """The SELECT of arrays of `size` elements that a kernel computes for every row that has entries.

    Args:
        relation: The EinSum.
        gathered: The call of the kernel for row r, which returns NULL for other rows.
        handles: Where the handles u, v, ... of operands are read; that of the compressed one is the first.
        size: The elements of an array.
        dialect: The dialect of the engine.
    """
    return _values_of_rows_select(relation, gathered, handles, _rows_together(size), dialect)


def _values_of_rows_select(
    relation: Contract, computed: exp.Expr, handles: Sequence[SelectSource], together: int, dialect: Dialect
) -> KernelSelect:
    """The SELECT of values that a kernel computes for every row r, `together` of them in a vector; NULL is none."""
    rows = _rows_select(relation, [_row_number(), exp.alias_(computed, VALUE_COLUMN)], handles, together, dialect)
    keys = positions_at(exp.column(ROW_COLUMN, table="s"), relation.output.key_counts)
    value = exp.column(VALUE_COLUMN, table="s")
    if not relation.fills_rows:
        is_plain = not dialect.keeps_residents and result_value(relation, value) == value
        in_one_call = of_all_rows(rows.selects[-1].unalias()) if is_plain else None
        whole = None if in_one_call is None else ValueOfTuples.of(in_one_call)
        select = result_select(relation, keys, value, rows).where(value.is_(exp.null()).not_(), copy=False)
        return KernelSelect(select, whole=whole)
    fill = constant(relation.output.tensor.fill, relation.computed_in)
    filled = call(function_named("fill", relation.computed_in), integer(relation.output.list_length), fill)
    return KernelSelect(result_select(relation, keys, exp.func("coalesce", value, filled), rows))


def row_product_select(relation: Contract, first: SelectSource, second: SelectSource, dialect: Dialect) -> KernelSelect:
    """The SELECT of an EinSum whose operands are both compressed: a kernel computes the entries of every row.

    If the other operand is a vector, every row has a number.

    Args:
        relation: The EinSum.
        first: Where the handle of the operand is read whose rows are those of the result.
        second: Where the handle of the other operand is read.
        dialect: The dialect of the engine.
    """
    semiring = semiring_of(relation.einsum)
    assert semiring is not None
    row_labels = relation.einsum.operands[relation.compressed[0]].labels
    is_vector = set(relation.einsum.output.labels) <= set(row_labels)
    computed = call(
        NUMBER_FUNCTION if is_vector else ROW_FUNCTION,
        text(semiring.text),
        exp.column(HANDLE_COLUMN, table="u"),
        exp.column(ROW_COLUMN, table="r"),
        exp.column(HANDLE_COLUMN, table="v"),
        identity_of(semiring, relation),
    )
    if is_vector:
        return _values_of_rows_select(relation, computed, (first, second), _rows_shared(relation), dialect)
    return entries_of_rows_select(relation, computed, (first, second), row_labels, dialect)


def identity_of(semiring: Semiring, relation: Contract) -> exp.Expr:
    """The number that aggregates of an EinSum in a semiring start from."""
    return constant(AGGREGATES[semiring.aggregate].identity(relation.computed_in), relation.computed_in)


def entries_of_rows_select(
    relation: Contract,
    entries: exp.Expr,
    handles: Sequence[SelectSource],
    row_labels: Collection[str],
    dialect: Dialect,
) -> KernelSelect:
    """The SELECT of entries that a kernel computes for every row of the result.

    Args:
        relation: The EinSum.
        entries: The call of the kernel for row r, which returns a list of entries.
        handles: Where the handles u, v, ... of operands are read.
        row_labels: Labels of the result that number its rows, and others; the rest number the positions.
        dialect: The dialect of the engine.
    """
    counts = relation.output.key_counts
    axes = zip(relation.output.tensor.axes, relation.einsum.output.labels, strict=True)
    row_counts = {axis.name: counts[axis.name] for axis, label in axes if label in row_labels}
    position_counts = {name: count for name, count in counts.items() if name not in row_counts}
    if dialect.keeps_residents:
        position, value = field_of_entry("position", "s"), field_of_entry("val", "s")
        entry_rows = rows_of_entries_select(relation, entries, handles)
        as_bytes = None
    else:
        position, value = exp.column(POSITION_COLUMN, table="s"), exp.column(VALUE_COLUMN, table="s")
        columns = [_row_number(), exp.alias_(entries, ENTRY_COLUMN)]
        rows = _rows_select(relation, columns, handles, _rows_shared(relation), dialect)
        as_bytes = EntryBytes(rows.copy(), relation.computed_in, row_counts, position_counts)
        entry_rows = _unpacked_entries_select(rows, relation.computed_in)
    keys = keys_of_entries(row_counts, position_counts, position, "s")
    select = result_select(relation, {name: keys[name] for name in counts}, value, entry_rows)
    return KernelSelect(select, entries=as_bytes if result_value(relation, value) == value else None)


def rows_of_entries_select(relation: Contract, entries: exp.Expr, handles: Sequence[SelectSource]) -> exp.Select:
    """The SELECT of the number of a row, and of an entry, for all entries; arguments as of `entries_of_rows_select`."""
    columns = [_row_number(), exp.alias_(call("unnest", entries), ENTRY_COLUMN)]
    return _rows_select(relation, columns, handles, _rows_shared(relation), DUCKDB)


def _unpacked_entries_select(rows: exp.Select, dtype: str) -> exp.Select:
    """The SELECT of the number of a row, a position and a number, for entries that come as bytes with their rows."""
    entry = exp.column(ENTRY_COLUMN, table="e")
    count = exp.IntDiv(this=call("OCTET_LENGTH", entry), expression=integer(POSITION_BYTES + ITEM_BYTES[dtype]))
    end = exp.Mul(this=count, expression=integer(POSITION_BYTES))
    parts = {
        POSITION_COLUMN: (call("SUBSTR", entry.copy(), integer(1), end), "int64"),
        VALUE_COLUMN: (call("SUBSTR", entry.copy(), exp.Add(this=end.copy(), expression=integer(1))), dtype),
    }
    unpacked = [
        exp.alias_(call("unnest", call("tensor_of_bytes", part, constant(0, of))), name)
        for name, (part, of) in parts.items()
    ]
    return exp.select(exp.column(ROW_COLUMN, table="e"), *unpacked).from_(rows.subquery("e"), copy=False)


def keys_of_entries(
    rows: Mapping[str, int], positions: Mapping[str, int], position: exp.Expr, alias: str
) -> dict[str, exp.Expr]:
    """The keys of entries by name, from the number of a row and a position in it.

    Args:
        rows: The keys that a row number consists of, in C order, each with how many keys there are.
        positions: The same of the position in a row.
        position: The position in a row.
        alias: The alias of the relation with the row numbers.
    """
    return positions_at(exp.column(ROW_COLUMN, table=alias), rows) | positions_at(position, positions)


def field_of_entry(name: str, alias: str) -> exp.Expr:
    """A field of an entry of a row."""
    return exp.Dot(this=exp.column(ENTRY_COLUMN, table=alias), expression=exp.to_identifier(name))


def _rows_select(
    relation: Contract, columns: Sequence[exp.Expr], handles: Sequence[SelectSource], together: int, dialect: Dialect
) -> exp.Select:
    """The SELECT of columns for every row r of the result; handles are u, v, and so on.

    `together` rows are in a vector, unless one thread computes all of them.
    """
    rows = _count_rows(relation)
    if not dialect.keeps_residents:
        return _rows_with_values_select(columns, handles, rows).offset(0, copy=False)
    numbers = _numbers_in_range(0, rows).subquery("r") if relation.is_brief else _row_numbers(rows, together)
    select = exp.select(*columns).from_(numbers, copy=False)
    for alias, source in zip(HANDLE_ALIASES, handles, strict=False):
        is_unordered = alias == HANDLE_ALIASES[0] and not relation.is_brief
        if source.handle is not None and not is_unordered:
            _put_in_place(select, alias, source.handle)
        else:
            table = _without_order(source) if is_unordered else source.table
            select = with_join(select, aliased(table, alias), kind="CROSS")
    return select


def resident_rows_select(schema: Schema, source: SelectSource) -> exp.Select:
    """The SELECT of all tuples of a schema from a resident array, which is read where it is.

    Args:
        schema: The schema, of arrays of one length.
        source: Where the handle is read.
    """
    number, counts = _row_number().unalias(), schema.key_counts
    keys = [named(key, name) for name, key in positions_at(number, counts).items()]
    array = row_of_array(schema, exp.column(HANDLE_COLUMN, table="u"), number.copy())
    numbers = _row_numbers(math.prod(counts.values()), _rows_together(schema.list_length))
    select = exp.select(*keys, exp.alias_(array, VALUE_COLUMN)).from_(numbers, copy=False)
    return with_join(select, aliased(_without_order(source), "u"), kind="CROSS")


def _rows_with_values_select(columns: Sequence[exp.Expr], handles: Sequence[SelectSource], rows: int) -> exp.Select:
    """The SELECT of columns for every row r; each of u, v, and so on is a value that is computed once."""
    select = exp.select(*columns).from_(numbers_of_rows(rows), copy=False)
    put_values_in_place(select, dict(zip(HANDLE_ALIASES, handles, strict=False)))
    return select


def numbers_of_rows(rows: int) -> exp.Subquery:
    """The relation r of the numbers of so many rows."""
    numbers = exp.Table(this=call("RANGE", integer(rows)))
    return exp.select(exp.column("range").as_(ROW_COLUMN)).from_(numbers).subquery("r")


def put_values_in_place(select: exp.Select, handles: Mapping[str, SelectSource]) -> None:
    """Replace handles by values that are computed once, read from sources by alias; `select` is changed."""
    for alias, source in handles.items():
        _put_in_place(select, alias, only_value(source))


def only_value(source: SelectSource) -> exp.Expr:
    """The only value of a source: where it is in memory, or a subquery, which PostgreSQL computes once and copies."""
    if source.handle is not None:
        return source.handle.copy()
    return exp.select(exp.column(HANDLE_COLUMN)).from_(aliased(source.table, _ONLY), copy=False).subquery()


def _put_in_place(select: exp.Select, alias: str, handle: exp.Expr) -> None:
    """Replace the column of a handle; `select` is changed."""
    for column in list(select.find_all(exp.Column)):
        if column.table == alias and column.name == HANDLE_COLUMN:
            column.replace(handle.copy())


def _without_order(source: SelectSource) -> exp.Select:
    """The only handle, by a query that tells DuckDB that rows have no order.

    Otherwise, one thread would compute all rows, to keep the order of their numbers in results and tables.
    """
    return exp.select(exp.column(HANDLE_COLUMN)).distinct(copy=False).from_(source.table.copy(), copy=False)


def _row_numbers(rows: int, together: int) -> exp.Expr:
    """The table r of the numbers of rows, `together` of them in a vector, which threads share.

    DuckDB binds a prepared statement with a table function of an extension at every execution, but not one with RANGE.
    One thread reads a RANGE, and every part of a UNION ALL may have a thread of its own.
    """
    if rows > _MOST_RANGES * together:
        numbers = call("tensor_row_numbers", integer(rows), integer(together))
        return exp.alias_(exp.Table(this=numbers), "r", table=True)
    parts = [_numbers_in_range(start, min(start + together, rows)) for start in range(0, rows, together)]
    return exp.union(*parts, distinct=False).subquery("r") if len(parts) > 1 else parts[0].subquery("r")


def _numbers_in_range(start: int, stop: int) -> exp.Select:
    """The SELECT of the numbers of rows from `start` on, before `stop`."""
    numbers = exp.Table(this=call("RANGE", integer(start), integer(stop)))
    return exp.select(exp.column("range").as_(ROW_COLUMN)).from_(numbers)


def result_select(relation: Contract, keys: Mapping[str, exp.Expr], value: exp.Expr, rows: exp.Select) -> exp.Select:
    """The SELECT of an EinSum's result from its keys and values in `rows`, which it names s."""
    columns = [named(key.copy(), name) for name, key in keys.items()]
    result = exp.alias_(result_value(relation, value).copy(), VALUE_COLUMN)
    return exp.select(*columns, result).from_(rows.subquery("s", copy=False), copy=False)


def result_value(relation: Contract, value: exp.Expr) -> exp.Expr:
    """A value that a kernel computed, in the type of the result, and checked if that is planned."""
    tensor = relation.output.tensor
    if NUMBER_TYPES[relation.computed_in] != NUMBER_TYPES[tensor.dtype]:
        value = converted(value, number_type(tensor.dtype) if relation.output.is_scalar else array_type(tensor.dtype))
    return with_finite_check(value, tensor) if relation.detects_nonfinite else value


def _count_rows(relation: Contract) -> int:
    """How many rows the result has."""
    compressed = relation.inputs[relation.compressed[0]]
    assert isinstance(compressed, Compress)
    return row_count(compressed)


def _row_number() -> exp.Expr:
    return exp.alias_(exp.cast(exp.column(ROW_COLUMN, table="r"), "int"), ROW_COLUMN)


def _rows_shared(relation: Contract) -> int:
    """How many rows of numbers a vector has: so few that threads share them evenly."""
    return min(max(_count_rows(relation) // _VECTORS, 1), DUCKDB.vector_rows)


def _rows_together(size: int) -> int:
    """How many rows of the result, of `size` elements each, a vector has: few enough for the processor's cache."""
    return min(max(_VECTOR_ELEMENTS // max(size, 1), 1), DUCKDB.vector_rows)
