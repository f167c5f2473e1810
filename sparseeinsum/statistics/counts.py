"""Statistics: how many entries a tensor has at every index of an axis; measured, or expected of results.

Such vectors of counts are the sketch of Sommer, Boehm, Evfimievski, Reinwald and Haas, "MNC: Structure-Exploiting
Sparsity Estimation for Matrix Expressions", SIGMOD 2019, section 3; here of tensors of any rank.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import relation_of
from sparseeinsum.statistics.distributed_aggregates import DISTRIBUTED_DIALECTS
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.templates import filled, placeholders, template, union_all

Vector = NDArray[np.float64]

LARGEST_BOUND = 1 << 20  # of an axis whose indices are counted one by one
_MOST_AXES = 32  # of an array
_MOST_CELLS = 1 << 14  # of a grid of bins
_NARROWEST_BIN = 1e-9  # on a logarithmic scale: less is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What is known of every index of one axis.

    Attributes:
        entries: Entries there, or how many are expected.
        present: Whether there are any, or the chance of it.
    """

    entries: Vector
    present: Vector

    @property
    def weights(self) -> Vector:
        """The share of all entries."""
        total = self.entries.sum()
        return self.entries / total if total > 0 else self.entries

    @property
    def distinct(self) -> float:
        """V: expected indices with an entry."""
        return float(self.present.sum())

    @property
    def is_key(self) -> bool:
        """Whether no index has two entries."""
        return float(self.entries.sum()) <= self.distinct * (1 + 1e-9)

    def scaled(self, entries: float) -> "Counts":
        """With so many entries, spread alike; an index is no more likely to have any than before."""
        scaled = self.weights * entries
        return Counts(scaled, np.minimum(self.present, scaled))


def even_counts(bound: int, entries: float, distinct: float) -> Counts:
    """So many entries spread evenly over the indices of an axis, of which so many have any."""
    places = max(bound, 1)
    return Counts(np.full(bound, entries / places), np.full(bound, distinct / places))


def is_countable(shape: Sequence[int]) -> bool:
    """Whether all axes are short enough to keep a number for every index, and they are not too many for cells."""
    return len(shape) <= _MOST_AXES and all(bound <= LARGEST_BOUND for bound in shape)


def even_tensor(statistics: Statistics) -> tuple[Counts, ...]:
    """Counts of a tensor of which no more is known."""
    axes = zip(statistics.shape, statistics.distinct, strict=True)
    return tuple(even_counts(bound, statistics.entries, distinct) for bound, distinct in axes)


def measure_counts(
    stored: Mapping[str, StoredTensor], statistics: Mapping[str, Statistics], executor: Executor
) -> dict[str, tuple[Counts, ...]]:
    """Count the entries at every index of every axis; where all indices are entries, or none, nothing needs to be read.

    Args:
        stored: The tensors; they are countable.
        statistics: Of them, measured.
        executor: Runs one query for all.

    Raises:
        EngineError: A relation cannot be read.
    """
    found = {name: even_tensor(statistics[name]) for name in stored}
    partly = {name: each for name, each in stored.items() if 0 < statistics[name].entries < each.tensor.size}
    return found | count_entries(partly, executor)


def count_entries(stored: Mapping[str, StoredTensor], executor: Executor) -> dict[str, tuple[Counts, ...]]:
    """Count the entries at every index of every axis, whether or not all indices are entries; see `measure_counts`."""
    axes = tuple((each, position) for each in stored.values() for position in range(len(each.tensor.shape)))
    counts = iter(_measured(axes, executor) if axes else ())
    return {name: tuple(next(counts) for _ in each.tensor.shape) for name, each in stored.items()}


def counted_statistics(stored: StoredTensor, counts: Sequence[Counts], tuples: int) -> Statistics:
    """T and V of a tensor whose entries were counted.

    Args:
        stored: The tensor.
        counts: Of its axes.
        tuples: Rows of its relation.
    """
    entries = float(counts[0].entries.sum()) if counts else float(tuples)
    measured = {} if stored.decomposition.is_scalar else {stored.decomposition.tiles: float(tuples)}
    return Statistics(entries, tuple(each.distinct for each in counts), stored.tensor.shape, measured=measured)


def _measured(axes: Sequence[tuple[StoredTensor, int]], executor: Executor) -> Iterator[Counts]:
    if (
        executor.dialect_name in DISTRIBUTED_DIALECTS and len(axes) > 1
    ):  # machines send the branches of a union to one of them first
        for axis in axes:
            yield from _measured([axis], executor)
        return
    rows = executor.arrow(_counting_all(tuple(axes), executor.dialect_name))
    numbers, places, entries = (rows[column].to_numpy() for column in ("axis", "place", "entries"))
    for number, (stored, position) in enumerate(axes):
        is_of_axis = numbers == number
        counts = np.zeros(stored.tensor.shape[position])
        counts[places[is_of_axis]] = entries[is_of_axis]
        yield Counts(counts, (counts > 0).astype(np.float64))


@lru_cache(maxsize=512)  # tensors are measured for every plan and every run
def _counting_all(axes: tuple[tuple[StoredTensor, int], ...], dialect: str) -> str:
    """One query for all axes: their numbers, indices and entries."""
    selects = [
        exp.select(exp.Literal.number(number).as_("axis"), "place", "entries").from_(
            exp.Subquery(this=_counting(stored, position, dialect), alias=exp.to_identifier("counted"))
        )
        for number, (stored, position) in enumerate(axes)
    ]
    return union_all(selects).sql(dialect, comments=False)


def _counting(stored: StoredTensor, position: int, dialect: str) -> exp.Expr:
    """The query for one axis."""
    decomposition = stored.decomposition
    is_tiled = decomposition.has_tiles
    if decomposition.is_scalar or is_tiled or is_complex(stored.tensor.dtype):
        entries = entry_indices(stored, dialect).subquery("entries")
        return filled(template("counts", dialect), {"entries": entries, "axis": index_column(position)})
    values = {**placeholders(stored), "relation": relation_of(stored, dialect)}
    if position in decomposition.promoted:
        axis = exp.column(stored.keys[decomposition.promoted.index(position)], quoted=True)
        return filled(template("counts_of_keys", dialect), {**values, "axis": axis})
    inside = exp.Literal.number(decomposition.array_axes.index(position))
    bound = exp.Literal.number(stored.tensor.shape[position])
    return filled(template("counts_inside", dialect), {**values, "position": inside, "bound": bound})


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Indices of an axis, those of much the same weight in one bin.

    Attributes:
        indices: The indices that have any weight.
        numbers: The bin of each of them.
        sizes: Of every bin, how many indices it has.
        weights: Of every bin, their mean weight.
        bound: Of the axis.
    """

    indices: NDArray[np.int64]
    numbers: NDArray[np.int64]
    sizes: Vector
    weights: Vector
    bound: int

    @classmethod
    def of(cls, weights: Vector, most: int) -> "Bins":
        """At most so many bins, each as wide as the others on a logarithmic scale."""
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
        """For every index the value of its bin."""
        found = np.zeros(self.bound)
        found[self.indices] = values[self.numbers]
        return found


def binned(axes: Iterable[Counts]) -> list[Bins]:
    """Axes whose cells are to be counted: the fewer bins each, the more axes there are."""
    weights = [counts.weights for counts in axes]
    most = max(1, int(_MOST_CELLS ** (1 / max(len(weights), 1))))
    return [Bins.of(each, most) for each in weights]


def occupied_cells(entries: float, axes: Sequence[Bins]) -> tuple[float, list[Vector]]:
    """Cells that get one of so many entries, thrown at random: equation 7 where not all cells are as likely.

    Args:
        entries: How many.
        axes: A cell is as likely as its indices together.

    Returns:
        Expected cells, and for every axis how many at each index.
    """
    expected = np.full((1,) * len(axes), float(entries))
    places = np.ones((1,) * len(axes))
    for axis, bins in enumerate(axes):
        shape = [-1 if other == axis else 1 for other in range(len(axes))]
        expected = expected * bins.weights.reshape(shape)
        places = places * bins.sizes.reshape(shape)
    cells = -np.expm1(-expected) * places
    found = []
    for axis, bins in enumerate(axes):
        others = tuple(other for other in range(len(axes)) if other != axis)
        found.append(bins.spread(cells.sum(axis=others) / bins.sizes))
    return float(cells.sum()), found
