"""Statistics: measurements of tensors that are generated from their bounds, which need no scan."""

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import EMPTY_RANGE, Range
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.measure import Measurement, values_of_entries


def measure_generated(stored: StoredTensor, version: object) -> Measurement:
    """What `measure` would return for a vector of ones or of indices, for a matrix of successors, or for an index map.

    The distinct indices of the last axis of a map may be fewer. They are as many as rows only if each has one row.

    Args:
        stored: A tensor whose rows follow from its bounds.
        version: A value that changes with its rows.
    """
    assert stored.row_count is not None
    shape, tuples = stored.tensor.shape, stored.row_count
    entries, values = tuples, Range(1, 1)
    if stored.value is not None:  # index 0 holds 0, the fill
        entries, values = max(tuples - 1, 0), Range(1, max(tuples - 1, 1))
    counts = [min(entries, bound) for bound in shape]
    if sum(bound > 1 for bound in shape[:-1]) > 1:
        counts[-1] = min(counts[-1], max(entries - 1, 1))
    distinct = tuple(map(float, counts))
    facts = values_of_entries(stored.tensor, entries, values if entries else EMPTY_RANGE)
    return Measurement(Statistics(float(entries), distinct, shape), tuples, facts, version)
