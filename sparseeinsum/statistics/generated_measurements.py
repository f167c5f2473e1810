"""Statistics: measurements of tensors that are generated from their bounds, which need no scan."""

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import EMPTY_RANGE, Range
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.measure import Measurement


def measure_generated(stored: StoredTensor, version: object) -> Measurement:
    """The result that `measure` would have for a vector of ones, a vector of indices, or a matrix of successors.

    Args:
        stored: A tensor whose rows follow from its bounds.
        version: A value that changes with its rows.
    """
    bound = stored.tensor.shape[0]
    tuples = bound if len(stored.keys) == 1 else max(bound - 1, 0)
    entries, values = tuples, Range(1, 1)
    if stored.value is not None:  # index 0 holds 0, the fill
        entries, values = max(bound - 1, 0), Range(1, max(bound - 1, 1))
    distinct = (float(entries),) * len(stored.keys)
    facts = ValueFacts(values if entries else EMPTY_RANGE, has_fill=entries < stored.tensor.size)
    return Measurement(Statistics(float(entries), distinct, stored.tensor.shape), tuples, facts, version)
