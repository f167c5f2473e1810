"""Statistics: the ranges of columns that the database keeps to skip rows in scans, read without a scan."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import table_by_name, value_of
from sparseeinsum.statistics.executor import Executor

KNOWN_RANGES = frozenset({"duckdb"})  # whose engines tell it; PostgreSQL's statistics are those of a sample


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A range that holds all values of a column, none of which is NULL.

    Attributes:
        low: No value is less.
        high: No value is greater; NaN if there may be NaNs, which are greater than all numbers.
    """

    low: float
    high: float

    def may_contain(self, value: float) -> bool:
        """Whether a value of the column may be this number."""
        return not (value < self.low or value > self.high)


def column_ranges(stored: StoredTensor, executor: Executor) -> list[ColumnRange] | None:
    """The ranges of a tensor's key columns and of its values, in this order; None if one of them is not known.

    Ranges hold for the rows of the open transaction, too. They may be wider than the values, as after a DELETE.

    Args:
        stored: The tensor, in a table with a number in every row.
        executor: Runs the query.
    """
    if executor.dialect_name not in KNOWN_RANGES or is_complex(stored.tensor.dtype):
        return None
    columns = [*(exp.column(key, quoted=True) for key in stored.keys), value_of(stored)]
    statistics = [exp.func("stats", column) for column in columns]
    rows = executor.rows(exp.select(*statistics).from_(table_by_name(stored, executor.dialect_name)).limit(1))
    known = [_known_range(column) for row in rows for column in row]
    ranges = [column for column in known if column is not None]
    return ranges if len(ranges) == len(columns) else None


def _known_range(statistics: Any) -> ColumnRange | None:  # noqa: ANN401  # a VARIANT of the database
    if not isinstance(statistics, dict) or statistics.get("has_null", True):
        return None
    low, high = statistics.get("min"), statistics.get("max")
    if isinstance(low, int | float) and isinstance(high, int | float):
        return ColumnRange(low, high)
    return None
