"""Statistics: counts of entries at every index of an axis; measured for inputs, expected for results.

These vectors are the sketch of Sommer, Boehm, Evfimievski, Reinwald and Haas, "MNC: Structure-Exploiting Sparsity
Estimation for Matrix Expressions", SIGMOD 2019, section 3; here for tensors of any rank.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.distributed_aggregates import DISTRIBUTED_DIALECTS
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.sql_templates import fill_placeholders, placeholders, template, union_all
from sparseeinsum.statistics.tensor_rows import relation_of

Vector = NDArray[np.float64]

CountEntries = Callable[[Mapping[str, StoredTensor]], Mapping[str, tuple["AxisCounts", ...]]]

LARGEST_BOUND = 1 << 20  # the largest bound of an axis with a count for every index
_MOST_AXES = 32  # the most axes of a numpy array
_MOST_CELLS = 1 << 14  # the most cells of a grid of bins
_NARROWEST_BIN = 1e-9  # on a logarithmic scale: smaller differences are rounding errors


@dataclass(frozen=True, eq=False)
class AxisCounts:
    """Counts for every index of one axis; what follows from them is computed once.

    Attributes:
        entries: The number of entries at every index, or the expected number.
        present: 1 for indices with entries and 0 for others, or the probability of entries.
    """

    entries: Vector
    present: Vector

    @cached_property
    def total(self) -> float:
        """The entries at all indices."""
        return float(self.entries.sum())

    @cached_property
    def weights(self) -> Vector:
        """The share of all entries at every index."""
        return self.entries / self.total if self.total > 0 else self.entries

    @cached_property
    def distinct(self) -> float:
        """V, the expected number of indices with an entry."""
        return float(self.present.sum())

    @property
    def is_key(self) -> bool:
        """Whether no index has two entries."""
        return self.total <= self.distinct * (1 + 1e-9)

    def scaled(self, entries: float) -> "AxisCounts":
        """Counts with `entries` entries in the same proportions; no index becomes more likely to have entries."""
        if entries == self.total:
            return self
        scaled = self.weights * entries
        return AxisCounts(scaled, np.minimum(self.present, scaled))


def even_counts(bound: int, entries: float, distinct: float) -> AxisCounts:
    """Counts of `entries` spread evenly over an axis with this bound, of which `distinct` indices have entries."""
    indices = max(bound, 1)
    return AxisCounts(np.broadcast_to(entries / indices, bound), np.broadcast_to(distinct / indices, bound))


def is_countable(shape: Sequence[int]) -> bool:
    """Whether the axes are few enough, and short enough to keep a number for every index."""
    return len(shape) <= _MOST_AXES and all(bound <= LARGEST_BOUND for bound in shape)


def even_tensor(statistics: Statistics) -> tuple[AxisCounts, ...]:
    """Counts of a tensor from its statistics alone, with entries spread evenly over the indices of every axis."""
    axes = zip(statistics.shape, statistics.distinct, strict=True)
    return tuple(even_counts(bound, statistics.entries, distinct) for bound, distinct in axes)


def measure_counts(
    stored: Mapping[str, StoredTensor], statistics: Mapping[str, Statistics], count: CountEntries
) -> dict[str, tuple[AxisCounts, ...]]:
    """Count the entries at every index of every axis; tensors that are dense or have no entries are not read.

    Args:
        stored: The tensors, which must be countable.
        statistics: Their measured statistics.
        count: Counts the entries of tensors, as `count_entries` does.

    Raises:
        EngineError: A relation cannot be read.
    """
    even: dict[Hashable, tuple[AxisCounts, ...]] = {}  # of which many tensors may have the same
    counts: dict[str, tuple[AxisCounts, ...]] = {}
    for name in stored:
        key = statistics[name].entries, statistics[name].distinct, statistics[name].shape
        counts[name] = even[key] if key in even else even.setdefault(key, even_tensor(statistics[name]))
    sparse = {name: tensor for name, tensor in stored.items() if 0 < statistics[name].entries < tensor.tensor.size}
    return {**counts, **count(sparse)}


def count_entries(stored: Mapping[str, StoredTensor], executor: Executor) -> dict[str, tuple[AxisCounts, ...]]:
    """Count the entries at every index of every axis of all these tensors; see `measure_counts`."""
    axes = tuple((source, position) for source in stored.values() for position in range(len(source.tensor.shape)))
    counts = iter(_measure_axes(axes, executor) if axes else ())
    return {name: tuple(next(counts) for _ in source.tensor.shape) for name, source in stored.items()}


def counted_statistics(stored: StoredTensor, counts: Sequence[AxisCounts], tuples: int) -> Statistics:
    """T and V of a tensor whose entries were counted.

    Args:
        stored: The tensor.
        counts: The counts of its axes.
        tuples: The rows of its relation.
    """
    entries = counts[0].total if counts else float(tuples)
    counted = {} if stored.decomposition.is_scalar else {stored.decomposition.tiles: float(tuples)}
    return Statistics(entries, tuple(axis.distinct for axis in counts), stored.tensor.shape, counted_tuples=counted)


def _measure_axes(axes: Sequence[tuple[StoredTensor, int]], executor: Executor) -> Iterator[AxisCounts]:
    """The counts of these axes, given as a tensor and the position of an axis, in the same order."""
    if (
        executor.dialect_name in DISTRIBUTED_DIALECTS and len(axes) > 1
    ):  # machines send the branches of a union to one of them first
        for axis in axes:
            yield from _measure_axes([axis], executor)
        return
    rows = executor.arrow(_counting_query(tuple(axes), executor.dialect_name))
    # Of a relation without tuples, an aggregate of its arrays is NULL.
    numbers, places, entries = (rows[column].fill_null(0).to_numpy() for column in ("axis", "place", "entries"))
    for number, (stored, position) in enumerate(axes):
        is_of_axis = numbers == number
        counts = np.zeros(stored.tensor.shape[position])
        counts[places[is_of_axis]] = entries[is_of_axis]
        yield AxisCounts(counts, (counts > 0).astype(np.float64))


@lru_cache(maxsize=512)  # tensors are measured for every plan and every run
def _counting_query(axes: tuple[tuple[StoredTensor, int], ...], dialect: str) -> str:
    """One query for all axes, with a row for every index: the number of its axis, the index, its entries."""
    selects = [
        exp.select(exp.Literal.number(number).as_("axis"), "place", "entries").from_(
            exp.Subquery(this=_axis_query(stored, position, dialect), alias=exp.to_identifier("counted"))
        )
        for number, (stored, position) in enumerate(axes)
    ]
    return union_all(selects).sql(dialect, comments=False)


def _axis_query(stored: StoredTensor, position: int, dialect: str) -> exp.Expr:
    """The query that counts the entries at every index of one axis."""
    decomposition = stored.decomposition
    is_tiled = decomposition.has_tiles
    if decomposition.is_scalar or is_tiled or is_complex(stored.tensor.dtype):
        entries = entry_indices(stored, dialect).subquery("entries")
        return fill_placeholders(template("counts", dialect), {"entries": entries, "axis": index_column(position)})
    values = {**placeholders(stored), "relation": relation_of(stored, dialect)}
    if position in decomposition.promoted:
        axis = exp.column(stored.keys[decomposition.promoted.index(position)], quoted=True)
        return fill_placeholders(template("counts_of_keys", dialect), {**values, "axis": axis})
    inside = exp.Literal.number(decomposition.array_axes.index(position))
    bound = exp.Literal.number(stored.tensor.shape[position])
    return fill_placeholders(template("counts_inside", dialect), {**values, "position": inside, "bound": bound})


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The indices of an axis, grouped into bins of similar weight.

    Attributes:
        indices: The indices with positive weight.
        numbers: The number of the bin of each of these indices.
        sizes: For every bin, the number of its indices.
        weights: For every bin, the mean weight of its indices.
        bound: The bound of the axis.
    """

    indices: NDArray[np.int64]
    numbers: NDArray[np.int64]
    sizes: Vector
    weights: Vector
    bound: int

    @classmethod
    def from_weights(cls, weights: Vector, most: int) -> "Bins":
        """At most `most` bins, of equal width on a logarithmic scale, for the weights of all indices."""
        indices = np.flatnonzero(weights > 0)
        logarithms = np.log(weights[indices])
        steps = logarithms - logarithms.min() if len(indices) else logarithms
        width = max(float(steps.max(initial=0.0)) / most, _NARROWEST_BIN)
        numbers = np.minimum((steps / width).astype(np.int64), most - 1)
        sizes = np.bincount(numbers, minlength=most).astype(np.float64)
        totals = np.bincount(numbers, weights=weights[indices], minlength=most)
        used = sizes > 0
        renumbered = np.cumsum(used) - 1
        return cls(indices, renumbered[numbers], sizes[used], totals[used] / sizes[used], len(weights))

    def spread(self, values: Vector) -> Vector:
        """For every index, the value of its bin, or 0 if it has none."""
        by_index = np.zeros(self.bound)
        by_index[self.indices] = values[self.numbers]
        return by_index


def binned(axes: Iterable[AxisCounts]) -> list[Bins]:
    """The bins of every axis, so many that a grid of them has at most `_MOST_CELLS` cells."""
    weights = [counts.weights for counts in axes]
    most = max(1, int(_MOST_CELLS ** (1 / max(len(weights), 1))))
    return [Bins.from_weights(axis_weights, most) for axis_weights in weights]


def occupied_cells(entries: float, axes: Sequence[Bins]) -> tuple[float, list[Vector]]:
    """The expected number of cells with an entry, if entries fall at random: equation 7 for cells of unequal weights.

    Args:
        entries: The number of entries.
        axes: Bins of the indices of every axis; the probability of a cell is the product of its indices' weights.

    Returns:
        The expected number of cells with an entry, and for every axis this number at each index.
    """
    cells = _cells(entries, axes)
    by_index = []
    for axis, bins in enumerate(axes):
        others = tuple(other for other in range(len(axes)) if other != axis)
        by_index.append(bins.spread(cells.sum(axis=others) / bins.sizes))
    return float(cells.sum()), by_index


def count_occupied_cells(entries: float, axes: Sequence[Bins]) -> float:
    """The expected number of cells with an entry alone; see `occupied_cells`."""
    return float(_cells(entries, axes).sum())


def _cells(entries: float, axes: Sequence[Bins]) -> Vector:
    """The expected number of cells with an entry, for every combination of bins, an axis of the array for each axis."""
    expected = np.full((1,) * len(axes), float(entries))
    sizes = np.ones((1,) * len(axes))
    for axis, bins in enumerate(axes):
        shape = [-1 if other == axis else 1 for other in range(len(axes))]
        expected = expected * bins.weights.reshape(shape)
        sizes = sizes * bins.sizes.reshape(shape)
    cells: Vector = -np.expm1(-expected) * sizes
    return cells
