"""Statistics: measures T and V of stored tensors, and checks their data, by one scan each.

The templates of the statements are `stats/entries.sql`, `arrays.sql` and `complex.sql`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import pyarrow as pa
import sqlglot
from sqlglot import exp

from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import DEMOTED, Axis, StoredTensor, Tensor, count_keys, extent_of
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.ranges import ANY_VALUE, EMPTY_RANGE, Range
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.columns import relation_of, table_of_rows, value_of
from sparseeinsum.statistics.dictionary_queries import KEY_COLUMN, comparable_key, dictionary_table, rows_with_indices
from sparseeinsum.statistics.distributed_aggregates import aggregate_query
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.extents import Extent, as_sql, extents_of, product
from sparseeinsum.statistics.templates import fill_placeholders, placeholders, template, union_all

_ANY_RELATION = "sparseeinsum_any_relation"  # stands for that of a tensor, in the text of a statement


class Executor(Protocol):
    """Runs statements on a database."""

    @property
    def dialect_name(self) -> str:
        """Name of the engine's SQL dialect, which is also its folder in stats/."""

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """Run a query and return all its rows."""

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """Run a query of many rows and return them as an Arrow table."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a scan of a stored tensor.

    Attributes:
        statistics: T and V, exact.
        tuples: The number of rows of the relation, including those that store the fill.
        values: The range of the values that are not the fill, and whether some index holds the fill.
        version: A value that changes with the rows; None if it is not known.
    """

    statistics: Statistics
    tuples: int
    values: ValueFacts
    version: object


def measure(stored: StoredTensor, executor: Executor, version: object = None) -> Measurement:
    """Measure a stored tensor by a scan.

    Args:
        stored: The tensor.
        executor: Runs the scan.
        version: The version of its rows, taken before the scan, so that rows that are added in between count as
            changed; None if it is not needed.

    Raises:
        DataError: It holds NULL, an index out of range or a repeated coordinate; the message names the first such row.
        EngineError: The database refused the scan, as for arrays of a wrong length; `check_rows` finds the row.
    """
    scan = _scan(stored, executor.dialect_name)
    (row,) = executor.rows(scan.statement)
    values = dict(zip(scan.columns, row, strict=True))
    lowest, highest = values.pop("lowest"), values.pop("highest")
    counts = {name: 0 if value is None else int(value) for name, value in values.items()}  # type: ignore[call-overload]
    if not _is_sound(stored, counts):
        check_rows(stored, executor)
        raise DataError(f"tensor {stored.tensor.name} changed while it was measured; try again")
    distinct = [0.0] * len(stored.tensor.axes)
    for position in range(len(distinct)):
        prefix = "distinct" if stored.decomposition.tiles[position] == 1 else "occupied"
        distinct[position] = float(counts[f"{prefix}_{position}"])
    tuples = {} if stored.decomposition.is_scalar else {stored.decomposition.tiles: float(counts["tuples"])}
    statistics = Statistics(float(counts["entries"]), tuple(distinct), stored.tensor.shape, counted_tuples=tuples)
    facts = values_of_entries(stored.tensor, counts["entries"], value_range(lowest, highest))
    return Measurement(statistics, counts["tuples"], facts, version)


def value_range(lowest: object, highest: object) -> Range:
    """The range of values from the lowest to the highest; the engine orders NaN above all numbers."""
    if lowest is None or highest is None:
        return EMPTY_RANGE
    low, high = (value if isinstance(value, int) else float(str(value)) for value in (lowest, highest))
    return ANY_VALUE if math.isnan(high) else Range(low, high)


def values_of_entries(tensor: Tensor, entries: float, values: Range) -> ValueFacts:
    """The facts of the values of a tensor with so many entries, whose values are in a range."""
    return ValueFacts(values, has_fill=entries < tensor.size, has_entries=entries > 0)


def measured_values(stored: StoredTensor, executor: Executor) -> ValueFacts:
    """The facts of the values of a tensor whose rows are sound, by a scan."""
    ((entries, lowest, highest),) = executor.rows(_values_scan(stored, executor.dialect_name))
    return values_of_entries(stored.tensor, int(str(entries)), value_range(lowest, highest))


@lru_cache(maxsize=512)
def _values_scan(stored: StoredTensor, dialect: str) -> str:
    projections = {projection.alias: projection for projection in scan_projections(stored, dialect)}
    columns = [projections[name] for name in ("entries", "lowest", "highest")]
    return exp.select(*columns).from_(relation_of(stored, dialect)).sql(dialect)


@dataclass(frozen=True, slots=True)
class _ScanStatement:
    """A statement that measures a tensor, and the names of its columns."""

    statement: str
    columns: tuple[str, ...]


def _scan(stored: StoredTensor, dialect: str) -> _ScanStatement:
    """The scan of a tensor, from the template; it takes longer to write than to read a small tensor."""
    if stored.is_query or stored.column_dictionaries:
        return _written_scan(stored, dialect)
    tensor = replace(stored.tensor, name=_ANY_RELATION)
    scan = _written_scan(replace(stored, tensor=tensor, relation=_ANY_RELATION), dialect)
    return replace(scan, statement=scan.statement.replace(_ANY_RELATION, relation_of(stored, dialect).sql(dialect)))


@lru_cache(maxsize=512)  # many tensors differ in nothing but their tables
def _written_scan(stored: StoredTensor, dialect: str) -> _ScanStatement:
    projections = scan_projections(stored, dialect)
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    statement = aggregate_query(relation_of(stored, dialect), projections, keys, dialect)
    return _ScanStatement(statement.sql(dialect), tuple(projection.alias for projection in projections))


def scan_projections(stored: StoredTensor, dialect: str) -> list[exp.Expr]:
    """The aggregates that a scan of a tensor computes; the alias of an axis's aggregate ends in the axis's position."""
    real_name = "entries" if stored.decomposition.is_scalar else "arrays"
    name = "complex" if is_complex(stored.tensor.dtype) else real_name
    return [
        projection
        for template_projection in template(name, dialect).expressions
        for projection in _repeat(template_projection, stored, dialect)
    ]


def _repeat(projection: exp.Expr, stored: StoredTensor, dialect: str) -> Iterator[exp.Expr]:
    """The projection, repeated for every key column, every tiled axis or every demoted axis if it mentions one."""
    mentioned = {column.name for column in projection.find_all(exp.Column)}
    constants = placeholders(stored)
    decomposition = stored.decomposition
    if "axis" in mentioned:
        for position, key in zip(decomposition.promoted, stored.keys, strict=True):
            yield _fill_projection(projection, {**constants, "axis": exp.column(key, quoted=True)}, f"_{position}")
    elif "tiled" in mentioned:
        for inside, position in enumerate(decomposition.array_axes):
            if decomposition.tiles[position] != DEMOTED:
                column = exp.column(stored.keys[decomposition.promoted.index(position)], quoted=True)
                relation = relation_of(stored, dialect)
                values = {**constants, "tiled": exp.Literal.number(inside), "key": column, "relation": relation}
                yield _fill_projection(projection, values, f"_{position}")
    elif "position" in mentioned:
        for inside, position in enumerate(decomposition.array_axes):
            if decomposition.tiles[position] == DEMOTED:
                yield _fill_projection(
                    projection, {**constants, "position": exp.Literal.number(inside)}, f"_{position}"
                )
    else:
        yield _fill_projection(projection, constants, "")


def _fill_projection(projection: exp.Expr, values: Mapping[str, exp.Expr], suffix: str) -> exp.Expr:
    base = projection.alias.rsplit("_", 1)[0] if suffix else projection.alias
    return exp.alias_(fill_placeholders(projection.unalias(), values), base + suffix)


def _is_sound(stored: StoredTensor, counts: Mapping[str, int]) -> bool:
    """Whether no row is NULL or out of range, and no coordinate is repeated."""
    if counts["coordinates"] != counts["tuples"]:
        return False
    return are_rows_sound(stored, counts)


def are_rows_sound(stored: StoredTensor, counts: Mapping[str, int]) -> bool:
    """Whether no row is NULL, out of range or of a wrong length, by the numbers of a scan."""
    if counts["value_nulls"] or counts.get("wrong_lengths", 0):
        return False
    shape = stored.tensor.shape
    return counts["tuples"] == 0 or all(
        counts[f"nulls_{position}"] == 0
        and counts[f"least_{position}"] >= 0
        and counts[f"greatest_{position}"] < count_keys(stored.decomposition.tiles[position], shape[position])
        for position in stored.decomposition.promoted
    )


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
    where = f"tensor {stored.tensor.name}, row {row} (counted from 0)"
    if key is None:
        return f"{where}: the key {column} is NULL; leave such rows out"
    return (
        f"{where}: the key {column} is {key}, which the dictionary {stored.column_dictionaries[column].name} lacks; "
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
    where = f"tensor {stored.tensor.name}, row {number} (counted from 0)"
    for axis, key, column in zip(axes, keys, stored.keys, strict=True):
        if key is None:
            return f"{where}: the index {column} is NULL; leave such rows out"
        tile = stored.decomposition.tiles[stored.tensor.axes.index(axis)]
        key_count = count_keys(tile, axis.bound)
        if not 0 <= int(str(key)) < key_count:
            in_tiles = f" in tiles of {tile}" if tile > 1 else ""
            return f"{where}: {describe_index(column, int(str(key)), Axis(axis.name + in_tiles, key_count))}"
    is_array = not stored.decomposition.is_scalar or is_complex(stored.tensor.dtype)
    if value is None or (value is True and is_array):
        return f"{where}: the value {stored.value} is NULL; give it a number, or leave such rows out"
    if times != 1:
        return (
            f"{where}: the coordinate ({', '.join(map(str, keys))}) stands in an earlier row, too; keep one of them, "
            "or add them up (duplicates='sum' when loading, GROUP BY in SQL)"
        )
    expected = _length_at(stored, [int(str(key)) for key in keys])
    if length == expected:
        return f"{where}: the array {stored.value} holds NULL; all its elements must be numbers"
    return f"{where}: the array {stored.value} has {length} elements, but its axes inside multiply to {expected}"


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
