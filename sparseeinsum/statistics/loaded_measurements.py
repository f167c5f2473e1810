"""Statistics: measures a tensor from the values that are loaded, in place of scans of the table that holds them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.language.tensors import StoredTensor, Tensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.axis_counts import LARGEST_BOUND, AxisCounts, is_countable
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.measure import Measurement, value_range, values_of_entries
from sparseeinsum.statistics.order import ascending_indices

Values = NDArray[Any]

_MOST_TIMES = 4  # as many places as entries, up to which counting takes less time than sorting


@dataclass(frozen=True, slots=True)
class LoadedMeasurement:
    """What `measure` and `count_entries` would find in the rows that were loaded.

    Attributes:
        measurement: Without the version of the rows.
        counts: The entries at every index of every axis; None if axes are too long to keep them.
    """

    measurement: Measurement
    counts: tuple[AxisCounts, ...] | None


def facts_of_entries(tensor: Tensor, values: Values) -> ValueFacts:
    """The range of the values that are not the fill, which are given, and whether some index holds the fill."""
    numbers = values.astype(np.float64) if tensor.dtype == "bool" else values
    parts = [numbers.real, numbers.imag] if is_complex(tensor.dtype) else [numbers]
    ends = [(part.min().item(), part.max().item()) for part in parts if part.size]
    lowest, highest = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else (None, None)
    return values_of_entries(tensor, values.size, value_range(lowest, highest))


def is_measurable(stored: StoredTensor) -> bool:
    """Whether loaded values of a tensor can be measured here: real numbers of one axis or more."""
    return not is_complex(stored.tensor.dtype) and bool(stored.tensor.axes)


def measure_array(stored: StoredTensor, values: Values, tuples: int) -> LoadedMeasurement:
    """Measure a tensor that was loaded from a dense array.

    Args:
        stored: The tensor.
        values: The array, of the tensor's dtype and shape.
        tuples: The rows that hold it.
    """
    is_entry = values != stored.tensor.fill
    axes = range(values.ndim)
    entries = [is_entry.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    return _measurement(stored, entries, values[is_entry], tuples)


def measure_entries(stored: StoredTensor, coordinates: Sequence[Values], values: Values) -> LoadedMeasurement:
    """Measure a tensor that was loaded from entries without a repeated coordinate, a row for each of them.

    Args:
        stored: The tensor.
        coordinates: The indices of the entries, an array for every axis.
        values: The values of the entries, of the tensor's dtype; some may be the fill.
    """
    is_entry = values != stored.tensor.fill
    kept = slice(None) if is_entry.all() else is_entry
    pairs = zip(coordinates, stored.tensor.shape, strict=True)
    entries = [_counts(indices[kept].astype(np.int64, copy=False), bound) for indices, bound in pairs]
    loaded = _measurement(stored, entries, values[kept], len(values))
    if stored.lists is not None:
        return loaded
    return replace(loaded, measurement=replace(loaded.measurement, ascending=ascending_indices(coordinates)))


def _counts(indices: Values, bound: int) -> Values:
    """How often every index occurs, in order; those that do not occur may be left out if there are very many."""
    if bound <= max(LARGEST_BOUND, _MOST_TIMES * indices.size):
        return np.bincount(indices, minlength=bound)
    return np.unique_counts(indices).counts


def _measurement(stored: StoredTensor, entries: Sequence[Values], values: Values, tuples: int) -> LoadedMeasurement:
    """The measurement, from the entries at every index of every axis, the values of all entries, and the rows."""
    tensor, decomposition = stored.tensor, stored.decomposition
    distinct = tuple(float(np.count_nonzero(counts)) for counts in entries)
    counted = {} if decomposition.is_scalar else {decomposition.tiles: float(tuples)}
    statistics = Statistics(float(values.size), distinct, tensor.shape, counted_tuples=counted)
    measurement = Measurement(statistics, tuples, facts_of_entries(tensor, values), None)
    if not is_countable(tensor.shape):
        return LoadedMeasurement(measurement, None)
    axis_counts = [counts.astype(np.float64) for counts in entries]
    present = [(counts > 0).astype(np.float64) for counts in entries]
    return LoadedMeasurement(measurement, tuple(map(AxisCounts, axis_counts, present)))
