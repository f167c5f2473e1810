"""Statistics: measures large tables of sorted entries in less time than a count of distinct coordinates takes.

Sorted entries have no repeated coordinate, and the counts of entries at every index, which estimates need in any case,
say how many indices have any.
"""

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.ascending_runs import is_distinct_by_order
from sparseeinsum.statistics.axis_counts import CountEntries, is_countable
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.measure import (
    Measurement,
    are_rows_sound,
    scan_projections,
    value_range,
    values_of_entries,
)
from sparseeinsum.statistics.tensor_rows import relation_of

_LEAST_ROWS = 100_000  # with fewer, a scan that counts everything takes less time than several statements
_COUNTED = ("coordinates", "distinct_")  # what takes most of a scan


def measure_sorted(
    stored: StoredTensor, executor: Executor, count: CountEntries, version: object
) -> Measurement | None:
    """Measure a table of entries; None if it is small, not sorted or not sound, so that `measure` must scan it.

    Args:
        stored: The tensor, in a table of this package.
        executor: Runs the scans.
        count: Counts the entries at every index of every axis.
        version: The version of its rows, taken before the scan.
    """
    tensor = stored.tensor
    is_plain = stored.decomposition.is_scalar and bool(tensor.axes) and not stored.column_dictionaries
    if not is_plain or not is_countable(tensor.shape):
        return None
    relation = relation_of(stored, executor.dialect_name)
    ((rows,),) = executor.rows(exp.select(exp.Count(this=exp.Star())).from_(relation))
    if int(str(rows)) < _LEAST_ROWS:
        return None
    projections = [
        projection
        for projection in scan_projections(stored, executor.dialect_name)
        if not projection.alias.startswith(_COUNTED)
    ]
    (row,) = executor.rows(exp.select(*projections).from_(relation.copy()))
    values = dict(zip((projection.alias for projection in projections), row, strict=True))
    lowest, highest = values.pop("lowest"), values.pop("highest")
    counts = {name: 0 if value is None else int(str(value)) for name, value in values.items()}
    if not are_rows_sound(stored, counts) or not is_distinct_by_order(stored, executor):
        return None
    entries = float(counts["entries"])
    distinct = tuple(axis.distinct for axis in count({tensor.name: stored})[tensor.name]) if entries else ()
    statistics = Statistics(entries, distinct or (0.0,) * len(tensor.axes), tensor.shape, counted_tuples={})
    facts = values_of_entries(tensor, entries, value_range(lowest, highest))
    return Measurement(statistics, counts["tuples"], facts, version)
