"""Statistics: measures large tables of users: a scan for what plans rely on, a sample of rows for estimates.

A constraint of the database can take the place of the search for repeated coordinates, and so can their order.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
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
from sparseeinsum.statistics.order import is_ascending
from sparseeinsum.statistics.sql_templates import fill_placeholders, template

LEAST_ROWS = 1_000_000  # smaller tables are counted exactly, in less time than most programs take to plan
_ESTIMATED = "distinct_"
_COORDINATES = "coordinates"  # to count them takes several times as long as all else

# Estimates V of every axis of a table of so many rows, of which so many are entries.
EstimateDistinct = Callable[[int, float], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What the database knows of a table without reading its rows.

    Attributes:
        rows: The rows that it is expected to have.
        unique: Sets of columns of which no two rows have the same values.
    """

    rows: int
    unique: tuple[frozenset[str], ...]


def measure_large(
    stored: StoredTensor, executor: Executor, estimate: EstimateDistinct, version: object
) -> Measurement | None:
    """Measure a large table of entries; None if it is small, no table, or not sound, so that `measure` must scan it.

    The number of entries, the range of their values and the absence of repeated coordinates are exact. The distinct
    indices of axes are estimates, and less than the rows, so that no axis is taken to identify rows.

    Args:
        stored: The tensor, in a table of a user.
        executor: Runs the scan.
        estimate: Estimates the distinct indices of axes.
        version: The version of its rows, taken before the scan.
    """
    table = _described(stored, executor) if _may_be_sampled(stored, executor.dialect_name) else None
    if table is None or table.rows < LEAST_ROWS:
        return None
    is_unique = any(columns <= frozenset(stored.keys) for columns in table.unique)
    values = _scanned(stored, executor, lambda name: name != _COORDINATES and not name.startswith(_ESTIMATED))
    lowest, highest = values.pop("lowest"), values.pop("highest")
    counts = {name: 0 if value is None else int(str(value)) for name, value in values.items()}
    tuples, entries = counts["tuples"], float(counts["entries"])
    if not are_rows_sound(stored, counts) or not entries:
        return None
    if not (is_unique or is_ascending(stored, executor)):
        coordinates = _scanned(stored, executor, lambda name: name == _COORDINATES)[_COORDINATES]
        if coordinates != tuples:
            return None
    distinct = tuple(min(values, tuples - 1.0) for values in estimate(tuples, entries))
    facts = values_of_entries(stored.tensor, entries, value_range(lowest, highest))
    return Measurement(Statistics(entries, distinct, stored.tensor.shape), tuples, facts, version)


def _scanned(stored: StoredTensor, executor: Executor, is_needed: Callable[[str], bool]) -> dict[str, object]:
    """The results of those aggregates of a scan that are needed, by their names."""
    projections = [
        projection for projection in scan_projections(stored, executor.dialect_name) if is_needed(projection.alias)
    ]
    (row,) = executor.rows(exp.select(*projections).from_(table_by_name(stored, executor.dialect_name)))
    return dict(zip((projection.alias for projection in projections), row, strict=True))


def _may_be_sampled(stored: StoredTensor, dialect: str) -> bool:
    is_plain = stored.decomposition.is_scalar and bool(stored.tensor.axes) and not stored.column_dictionaries
    is_table = not (stored.is_owned or stored.is_generated or dialect in DISTRIBUTED_DIALECTS)
    return is_plain and is_table


def _described(stored: StoredTensor, executor: Executor) -> TableDescription | None:
    """What the database knows of a table; None for views and files, and if several tables have its name."""
    table = table_by_name(stored, executor.dialect_name)
    if not table.db:
        return None
    names = {"named_catalog": table.catalog or None, "named_schema": table.db, "named_table": table.name}
    values = {key: exp.null() if name is None else exp.Literal.string(name) for key, name in names.items()}
    rows = executor.rows(fill_placeholders(template("table", executor.dialect_name), values))
    if len({table_id for table_id, _, _ in rows}) != 1:
        return None
    unique = tuple(frozenset(map(str, columns)) for _, _, columns in rows if isinstance(columns, list | tuple))
    return TableDescription(int(str(rows[0][1])), unique)
