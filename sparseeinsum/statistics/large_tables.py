"""Statistics: measures large tables of entries: a scan for what plans rely on, a sample of rows for estimates.

Ranges of columns that the database knows can take the place of the scan. A constraint of the database, or the order of
the rows, can take the place of the search for repeated coordinates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import Range
from sparseeinsum.statistics.ascending_runs import is_distinct_by_order
from sparseeinsum.statistics.column_ranges import KNOWN_RANGES, column_ranges
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.distributed_aggregates import DISTRIBUTED_DIALECTS
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.measure import (
    Measurement,
    are_rows_sound,
    scan_projections,
    value_range,
    values_of_entries,
)
from sparseeinsum.statistics.row_checks import check_rows
from sparseeinsum.statistics.sql_templates import fill_placeholders, template

LEAST_ROWS = 1_000_000  # smaller tables are counted exactly, in less time than most programs take to plan
_ESTIMATED = "distinct_"
_COORDINATES = "coordinates"  # to count them takes several times as long as all else
_TUPLES = "tuples"
_ENTRIES = ("entries", "lowest", "highest")

# Estimates V of every axis of a table, from its number of entries.
EstimateDistinct = Callable[["TableDescription", float], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What the database knows of a table without reading its rows.

    Attributes:
        table_id: What identifies the table; another table has another one, even under the same name.
        rows: The rows that it has, or is expected to have.
        unique: Sets of columns of which no two rows have the same values.
        has_row_ids: Whether every row has a number of the database's, in a column `rowid`.
    """

    table_id: str
    rows: int
    unique: tuple[frozenset[str], ...]
    has_row_ids: bool


def measure_large(
    stored: StoredTensor, executor: Executor, estimate: EstimateDistinct, version: object
) -> Measurement | None:
    """Measure a large table of entries; None if it is small, no table, or not sound, so that `measure` must scan it.

    The number of entries is exact; that no coordinate is repeated is left to `proven`. The range of values may be wider
    than they are. The distinct indices of axes are estimates, and less than the rows, so that no axis is taken to
    identify rows; those of an only axis are the entries.

    Args:
        stored: The tensor.
        executor: Runs the scan.
        estimate: Estimates the distinct indices of axes.
        version: The version of its rows, taken before the scan.
    """
    table = _described(stored, executor) if _may_be_sampled(stored, executor.dialect_name) else None
    if table is None or table.rows < LEAST_ROWS:
        return None
    known = _known_entries(stored, executor) or _scanned_entries(stored, executor)
    if known is None or not known.entries:
        return None
    table = replace(table, rows=known.tuples)
    tensor = stored.tensor
    if len(tensor.axes) == 1:
        distinct: tuple[float, ...] = (known.entries,)
    else:
        distinct = tuple(min(values, known.tuples - 1.0) for values in estimate(table, known.entries))
    facts = values_of_entries(tensor, known.entries, known.values)
    statistics = Statistics(known.entries, distinct, tensor.shape)
    return Measurement(statistics, known.tuples, facts, version, is_proven=False)


def proven(measurement: Measurement, stored: StoredTensor, executor: Executor) -> Measurement:
    """What `measure_large` returned for the same rows, proven.

    Raises:
        DataError: A coordinate is repeated; the message names the first such row.
    """
    table = _described(stored, executor)
    if table is None:
        raise DataError(f"the table of tensor {stored.tensor.name} was replaced while it was measured; try again")
    table = replace(table, rows=measurement.tuples)
    is_ordered = _is_distinct_by_order(stored, table, executor)
    if not (is_ordered or _counts_distinct(stored, table, executor)):
        check_rows(stored, executor)
        raise DataError(f"tensor {stored.tensor.name} changed while it was measured; try again")
    is_quick = is_ordered and executor.dialect_name in KNOWN_RANGES
    return replace(measurement, is_proven=True, is_quick=is_quick)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a table whose rows are not NULL and within bounds.

    Attributes:
        tuples: The rows of the table.
        entries: Those that do not hold the fill.
        values: A range of the values of the entries.
    """

    tuples: int
    entries: float
    values: Range


def _is_distinct_by_order(stored: StoredTensor, table: TableDescription, executor: Executor) -> bool:
    """Whether a constraint, or the order of the rows, proves that no coordinate is repeated."""
    if any(columns <= frozenset(stored.keys) for columns in table.unique):
        return True
    return is_distinct_by_order(stored, executor, table.rows if table.has_row_ids else 0)


def _counts_distinct(stored: StoredTensor, table: TableDescription, executor: Executor) -> bool:
    """Whether as many coordinates as rows are counted."""
    return _scanned(stored, executor, lambda name: name == _COORDINATES)[_COORDINATES] == table.rows


def _known_entries(stored: StoredTensor, executor: Executor) -> _Entries | None:
    """The entries of a table, without a scan of its keys; None if what the database knows is not enough."""
    ranges = column_ranges(stored, executor)
    if ranges is None:
        return None
    *keys, values = ranges
    shape = stored.tensor.shape
    if not all(key.low >= 0 and key.high < bound for key, bound in zip(keys, shape, strict=True)):
        return None
    must_scan = values.may_contain(stored.tensor.fill.real)
    scanned = _scanned(stored, executor, lambda name: name == _TUPLES or (must_scan and name in _ENTRIES))
    if must_scan:
        return _entries_of(scanned)
    tuples = int(str(scanned[_TUPLES]))
    return _Entries(tuples, float(tuples), value_range(values.low, values.high))


def _scanned_entries(stored: StoredTensor, executor: Executor) -> _Entries | None:
    """The entries of a table by a scan; None if a row is not sound."""
    scanned = _scanned(stored, executor, lambda name: name != _COORDINATES and not name.startswith(_ESTIMATED))
    others = {name: value for name, value in scanned.items() if name not in _ENTRIES}
    counts = {name: 0 if value is None else int(str(value)) for name, value in others.items()}
    return _entries_of(scanned) if are_rows_sound(stored, counts) else None


def _entries_of(scanned: Mapping[str, object]) -> _Entries:
    values = value_range(scanned["lowest"], scanned["highest"])
    return _Entries(int(str(scanned[_TUPLES])), float(str(scanned["entries"])), values)


def _scanned(stored: StoredTensor, executor: Executor, is_needed: Callable[[str], bool]) -> dict[str, object]:
    """The results of those aggregates of a scan that are needed, by their names."""
    projections = [
        projection for projection in scan_projections(stored, executor.dialect_name) if is_needed(projection.alias)
    ]
    (row,) = executor.rows(exp.select(*projections).from_(table_by_name(stored, executor.dialect_name)))
    return dict(zip((projection.alias for projection in projections), row, strict=True))


def _may_be_sampled(stored: StoredTensor, dialect: str) -> bool:
    is_plain = stored.decomposition.is_scalar and bool(stored.tensor.axes) and not stored.column_dictionaries
    is_table = not (stored.is_generated or dialect in DISTRIBUTED_DIALECTS)
    return is_plain and is_table


def _described(stored: StoredTensor, executor: Executor) -> TableDescription | None:
    """What the database knows of a table; None for views and files, and if several tables have its name."""
    table = table_by_name(stored, executor.dialect_name)
    if not table.db:
        return None
    names = {"named_catalog": table.catalog or None, "named_schema": table.db, "named_table": table.name}
    values = {key: exp.null() if name is None else exp.Literal.string(name) for key, name in names.items()}
    rows = executor.rows(fill_placeholders(template("table", executor.dialect_name), values))
    if len({table_id for table_id, *_ in rows}) != 1:
        return None
    table_id, expected, has_row_ids, _ = rows[0]
    unique = tuple(frozenset(map(str, columns)) for *_, columns in rows if isinstance(columns, list | tuple))
    return TableDescription(str(table_id), int(str(expected)), unique, bool(has_row_ids))
