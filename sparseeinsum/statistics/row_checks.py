"""Statistics: finds the first row of a table for which it is no tensor, and says what is wrong with it."""

import math
from collections.abc import Iterable, Sequence

import sqlglot
from sqlglot import exp

from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import Axis, StoredTensor, count_keys, extent_of
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import value_of
from sparseeinsum.statistics.dictionary_queries import KEY_COLUMN, comparable_key, dictionary_table, rows_with_indices
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.extents import Extent, as_sql, extents_of, product
from sparseeinsum.statistics.sql_templates import union_all
from sparseeinsum.statistics.tensor_rows import relation_of, table_of_rows


def check_rows(stored: StoredTensor, executor: Executor) -> None:
    """Refuse unsound data with a message that names the first bad row; slower than `measure`.

    Raises:
        DataError: There is such a row.
        EngineError: The relation cannot be read.
    """
    numbered = _numbered_rows(stored, executor.dialect_name)
    for row, column, key in (
        executor.rows(_unknown_key(stored, executor.dialect_name)) if stored.column_dictionaries else ()
    ):
        raise DataError(_unknown_key_problem(stored, row, str(column), key))
    rows = [row for query_of in (_bad_row, _repeated_row) for row in executor.rows(query_of(stored, numbered))]
    if rows:
        raise DataError(_row_problem(stored, min(rows, key=lambda row: int(str(row[0])))))


def check_entries(stored: StoredTensor, executor: Executor) -> None:
    """Refuse NULL and indices out of range in entries whose coordinates may be repeated.

    Raises:
        DataError: There is such a row.
    """
    relation = relation_of(stored, executor.dialect_name)
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    is_bad = exp.or_(*_bad_conditions(stored, keys, value_of(stored)))
    if not executor.rows(exp.select(exp.Literal.number(1).as_("one")).from_(relation).where(is_bad).limit(1)):
        return
    # A query of its own, because numbering rows runs in a single thread.
    for row in executor.rows(_bad_row(stored, _numbered_rows(stored, executor.dialect_name))):
        raise DataError(_row_problem(stored, row))


def _numbered_rows(stored: StoredTensor, dialect: str) -> exp.Subquery:
    keys = [exp.alias_(exp.column(key, quoted=True), f"key_{i}") for i, key in enumerate(stored.keys)]
    value = exp.alias_(value_of(stored), "value")
    table: exp.Expr = table_of_rows(stored, dialect)
    row: exp.Expr = _row_number()
    if stored.column_dictionaries:  # rows are numbered before a join changes their order
        row = exp.column(_number_column(stored))
        table = rows_with_indices(stored, _with_numbers(stored, dialect), [row.name]).subquery("looked_up")
    select = exp.select(exp.alias_(row, "row"), *keys, value).from_(table)
    return select.subquery("numbered")


def _row_number() -> exp.Expr:
    return sqlglot.parse_one("ROW_NUMBER() OVER () - 1")


def _with_numbers(stored: StoredTensor, dialect: str) -> exp.Subquery:
    """The rows of a tensor's table with their numbers, under the alias t."""
    number = _row_number().as_(_number_column(stored))
    columns = [exp.column(column) for column in dict.fromkeys((*stored.keys, stored.value)) if column is not None]
    return exp.select(*columns, number).from_(table_of_rows(stored, dialect)).subquery("t")


def _number_column(stored: StoredTensor) -> str:
    """A name for the column of row numbers that no column of the tensor has."""
    name = "row_number"
    while name in {str(column).lower() for column in (*stored.keys, stored.value)}:
        name += "_"
    return name


def _unknown_key(stored: StoredTensor, dialect: str) -> exp.Select:
    """A query of the first row with a natural key that is NULL or not in its dictionary: row number, column, key."""
    queries: list[exp.Query] = []
    for key, dictionary in stored.column_dictionaries.items():
        column = exp.column(key, table="t")
        keys = exp.select(exp.column(KEY_COLUMN)).from_(dictionary_table(dictionary))
        is_known = exp.In(this=comparable_key(column.copy(), dictionary), query=keys.subquery())
        name, text = exp.Literal.string(key).as_("column_name"), exp.cast(column.copy(), "text").as_("key")
        is_unknown = exp.or_(column.copy().is_(exp.null()), exp.Not(this=is_known))
        row = exp.column(_number_column(stored), table="t").as_("row")
        rows = exp.select(row, name, text).from_(_with_numbers(stored, dialect))
        queries.append(rows.where(is_unknown))
    return exp.select("*").from_(union_all(queries).subquery("unknown")).order_by("row").limit(1)


def _unknown_key_problem(stored: StoredTensor, row: object, column: str, key: object) -> str:
    place = f"tensor {stored.tensor.name}, row {row} (counted from 0)"
    if key is None:
        return f"{place}: the key {column} is NULL; leave such rows out"
    return (
        f"{place}: the key {column} is {key}, which the dictionary {stored.column_dictionaries[column].name} lacks; "
        "declare the tensor again with tensor_from_table, which adds new keys"
    )


def _array_length(stored: StoredTensor, keys: Iterable[exp.Expr]) -> Extent:
    """The length of the array in a row with these keys, which has both parts of complex numbers."""
    return product([*extents_of(stored, keys), 2 if is_complex(stored.tensor.dtype) else 1])


def _bad_conditions(stored: StoredTensor, keys: Sequence[exp.Expr], value: exp.Expr) -> list[exp.Expr]:
    """Conditions that hold for a row with a NULL or an index out of range."""
    conditions: list[exp.Expr] = [value.is_(exp.null())]
    for key, position in zip(keys, stored.decomposition.promoted, strict=True):
        bound = count_keys(stored.decomposition.tiles[position], stored.tensor.shape[position])
        conditions += [key.is_(exp.null()), exp.LT(this=key, expression=exp.Literal.number(0))]
        conditions.append(exp.GTE(this=key, expression=exp.Literal.number(bound)))
    return conditions


def _bad_row(stored: StoredTensor, numbered: exp.Subquery) -> exp.Select:
    """A query of the first row with a NULL, an index out of range or an array of a wrong length."""
    conditions = _bad_conditions(stored, _keys(stored), exp.column("value"))
    size = _array_length(stored, _keys(stored))
    length: exp.Expr = exp.Literal.number(1)
    if not stored.decomposition.is_scalar or is_complex(stored.tensor.dtype):
        length, numbers = exp.func("len", exp.column("value")), exp.func("list_count", exp.column("value"))
        conditions += [exp.NEQ(this=count, expression=as_sql(size)) for count in (length, numbers)]
    return (
        exp.select(
            "row", length.as_("length"), exp.Literal.number(1).as_("times"), *_keys(stored), _shown_value(stored)
        )
        .from_(numbered)
        .where(exp.or_(*conditions))
        .order_by("row")
        .limit(1)
    )


def _repeated_row(stored: StoredTensor, numbered: exp.Subquery) -> exp.Select:
    """A query of the first row that repeats the coordinate of an earlier row."""
    keys = _keys(stored)
    times = exp.Window(
        this=exp.RowNumber(),
        partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=[exp.column("row")]),
    )
    counted = exp.select("*", times.as_("times")).from_(numbered).subquery("counted")
    size = _array_length(stored, keys)
    columns = (exp.column("row"), as_sql(size).as_("length"), exp.column("times"), *keys, _shown_value(stored))
    return exp.select(*columns).from_(counted).where("times > 1").order_by("row").limit(1)


def _keys(stored: StoredTensor) -> list[exp.Expr]:
    return [exp.column(f"key_{i}") for i in range(len(stored.keys))]


def _shown_value(stored: StoredTensor) -> exp.Expr:
    is_number = stored.decomposition.is_scalar and not is_complex(stored.tensor.dtype)
    return exp.column("value") if is_number else exp.column("value").is_(exp.null())


def _row_problem(stored: StoredTensor, row: tuple[object, ...]) -> str:
    """A message for a bad row; `row` has its number, array length, repetition, keys and value."""
    number, length, times, *keys, value = row
    axes = [stored.tensor.axes[position] for position in stored.decomposition.promoted]
    place = f"tensor {stored.tensor.name}, row {number} (counted from 0)"
    for axis, key, column in zip(axes, keys, stored.keys, strict=True):
        if key is None:
            return f"{place}: the index {column} is NULL; leave such rows out"
        tile = stored.decomposition.tiles[stored.tensor.axes.index(axis)]
        key_count = count_keys(tile, axis.bound)
        if not 0 <= int(str(key)) < key_count:
            in_tiles = f" in tiles of {tile}" if tile > 1 else ""
            return f"{place}: {describe_index(column, int(str(key)), Axis(axis.name + in_tiles, key_count))}"
    is_array = not stored.decomposition.is_scalar or is_complex(stored.tensor.dtype)
    if value is None or (value is True and is_array):
        return f"{place}: the value {stored.value} is NULL; give it a number, or leave such rows out"
    if times != 1:
        return (
            f"{place}: the coordinate ({', '.join(map(str, keys))}) stands in an earlier row, too; keep one of them, "
            "or add them up (duplicates='sum' when loading, GROUP BY in SQL)"
        )
    expected = _length_at(stored, [int(str(key)) for key in keys])
    if length == expected:
        return f"{place}: the array {stored.value} holds NULL; all its elements must be numbers"
    return f"{place}: the array {stored.value} has {length} elements, but its axes inside multiply to {expected}"


def _length_at(stored: StoredTensor, keys: Sequence[int]) -> int:
    """The number of elements of the array in the row with these keys, from their values."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    extents = [
        extent_of(tiles[position], shape[position])
        for position in stored.decomposition.array_axes
        if not tiles[position]
    ]
    for position, key in zip(stored.decomposition.promoted, keys, strict=True):
        extents.append(min(tiles[position], shape[position] - key * tiles[position]))
    return math.prod(extents) * (2 if is_complex(stored.tensor.dtype) else 1)


def describe_index(column: str, index: int, axis: Axis) -> str:
    """A message for an index that is out of the range of an axis.

    Args:
        column: The column of the index.
        index: The index.
        axis: The axis.
    """
    if index < 0:
        return f"the index {column} is {index}, but indices count from 0"
    return (
        f"the index {column} is {index}, but axis {axis.name} has the bound {axis.bound}; leave the row out, or give "
        "the tensor a larger shape"
    )
