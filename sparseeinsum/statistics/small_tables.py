"""Statistics: measures small tables of entries from all of their rows, in less time than several aggregates take."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.axis_counts import is_countable
from sparseeinsum.statistics.columns import LARGEST_COORDINATE, value_of
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.loaded_measurements import LoadedMeasurement, Values, measure_entries
from sparseeinsum.statistics.tensor_rows import relation_of

_MOST_ROWS = 150_000  # to read more may take longer than to aggregate them


def measure_small(stored: StoredTensor, executor: Executor, version: object) -> LoadedMeasurement | None:
    """Measure a small table of entries; None if it is large or not sound, so that `measure` must scan it.

    Args:
        stored: The tensor, in a table of this package.
        executor: Runs the query.
        version: The version of its rows, taken before the query.
    """
    tensor = stored.tensor
    if is_complex(tensor.dtype) or not is_countable(tensor.shape) or tensor.size >= LARGEST_COORDINATE:
        return None
    ((count,),) = executor.rows(_count_query(stored, executor.dialect_name))
    if int(str(count)) > _MOST_ROWS:
        return None
    rows = executor.arrow(_rows_query(stored, executor.dialect_name))
    if any(column.null_count for column in rows.columns):
        return None
    *coordinates, values = (column.to_numpy() for column in rows.columns)
    if not _are_distinct(coordinates, tensor.shape):
        return None
    loaded = measure_entries(stored, coordinates, values)
    return replace(loaded, measurement=replace(loaded.measurement, version=version))


@lru_cache(maxsize=512)  # small tensors may change between all runs
def _count_query(stored: StoredTensor, dialect: str) -> str:
    return exp.select(exp.Count(this=exp.Star())).from_(relation_of(stored, dialect)).sql(dialect)


@lru_cache(maxsize=512)
def _rows_query(stored: StoredTensor, dialect: str) -> str:
    """A query of the indices of all rows, and of their values."""
    keys = [exp.column(key, quoted=True).as_(f"index_{axis}") for axis, key in enumerate(stored.keys)]
    return exp.select(*keys, value_of(stored).as_("value")).from_(relation_of(stored, dialect)).sql(dialect)


def _are_distinct(coordinates: Sequence[Values], shape: Sequence[int]) -> bool:
    """Whether all indices are within bounds, and no two rows have the same ones."""
    if not len(coordinates[0]):
        return True
    if any(indices.min() < 0 or indices.max() >= bound for indices, bound in zip(coordinates, shape, strict=True)):
        return False
    numbers = np.ravel_multi_index(tuple(coordinates), tuple(shape))
    return bool(np.all(numbers[:-1] < numbers[1:])) or len(np.unique(numbers)) == len(numbers)
