"""Statistics: a stored tensor together with what a scan of it found."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.language.tensors import Decomposition, StoredTensor
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.measure import Measurement
from sparseeinsum.statistics.scan_cache import RowVersion


@dataclass(frozen=True, slots=True)
class MeasuredTensor:
    """A tensor that a program reads.

    Attributes:
        stored: Its name, axes and dtype, and the table, columns and dictionaries that hold it.
        measurement: Its statistics, rows, range of values and version when it was scanned.
    """

    stored: StoredTensor
    measurement: Measurement

    @property
    def decomposition(self) -> Decomposition:
        """The layout in which the table stores it."""
        return self.stored.decomposition

    @property
    def statistics(self) -> Statistics:
        """T and V: the number of entries, and of distinct indices per axis."""
        return self.measurement.statistics

    @property
    def values(self) -> ValueFacts:
        """The range of its values, and whether some index holds the fill."""
        return self.measurement.values

    def with_possible(self, values: ValueFacts | None) -> "MeasuredTensor":
        """The same, with values that it may have besides its own; None for no others."""
        if values is None:
            return self
        return replace(self, measurement=replace(self.measurement, values=self.values.union(values)))

    @property
    def row_version(self) -> RowVersion:
        """The tensor with the version of its rows when it was scanned."""
        return RowVersion(self.stored, self.measurement.version)

    @property
    def is_complete(self) -> bool:
        """Whether the table has a row for every possible key."""
        return self.measurement.tuples == self.stored.max_tuples

    @property
    def identifying_axes(self) -> frozenset[int]:
        """Positions of the axes whose key differs in all rows, so that it identifies a row alone."""
        distinct, tiles = self.statistics.distinct, self.stored.decomposition.tiles
        tuples = self.measurement.tuples
        return frozenset(axis for axis, tile in enumerate(tiles) if tile == 1 and distinct[axis] == tuples)


def stored_of(inputs: Mapping[str, MeasuredTensor]) -> dict[str, StoredTensor]:
    """The stored tensors of `inputs`, by name."""
    return {name: tensor.stored for name, tensor in inputs.items()}


def statistics_of(inputs: Mapping[str, MeasuredTensor]) -> dict[str, Statistics]:
    """The statistics of `inputs`, by name."""
    return {name: tensor.statistics for name, tensor in inputs.items()}


def values_of(inputs: Mapping[str, MeasuredTensor]) -> dict[str, ValueFacts]:
    """The ranges of values of `inputs`, by name."""
    return {name: tensor.values for name, tensor in inputs.items()}
