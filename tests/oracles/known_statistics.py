"""Statistics that numpy counts, those estimated of a program's results, and the matrices of the paper."""

import itertools

import numpy as np
from evaluated_programs import evaluated
from numpy.typing import NDArray

from sparseeinsum.statistics.estimate import Statistics, estimate

# The matrices of SparseEinSum, section 4.1.
PAPER_U = np.array([[1.4, 2.2, 0, 2.1], [0, 0, 0, 0], [1.4, 0, 1.1, 0], [0, 0, 0, 0]])
PAPER_V = np.array([[3.2, 0, 1.3, 0], [0, 0, 0.6, 0], [0, 0, 1.2, 0], [1.2, 0, 2.1, 0]])


def counted(array: NDArray[np.float64]) -> Statistics:
    """T and V by numpy."""
    is_entry = array != 0
    others = [tuple(other for other in range(array.ndim) if other != axis) for axis in range(array.ndim)]
    distinct = tuple(float(is_entry.any(axis=axes).sum()) for axes in others)
    return Statistics(float(is_entry.sum()), distinct, array.shape)


def estimated(text: str, **statistics: Statistics) -> dict[str, Statistics]:
    """Estimated statistics of all tensors of a program, from those of its inputs."""
    graph, evaluations = evaluated(text, statistics)
    return estimate(graph, statistics, evaluations)


def subsets(rank: int) -> list[tuple[int, ...]]:
    return [subset for size in range(rank + 1) for subset in itertools.combinations(range(rank), size)]


def tiles_of(promoted: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return tuple(int(axis in promoted) for axis in range(rank))
