"""Decompose: sizes of the tensors of a graph in every decomposition."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.joining import OperandSizes, TensorSizes
from sparseeinsum.language.eingraph import EinGraph, Reference
from sparseeinsum.language.tensors import Decomposition, mean_extent, tuple_bytes
from sparseeinsum.statistics.estimate import Statistics, by_label, dense_statistics


@dataclass(frozen=True, slots=True)
class GraphSizes:
    """Sizes of the tensors of a graph, each computed once.

    Attributes:
        graph: The EinSums.
        statistics: T and V of every tensor.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    _known_sizes: dict[tuple[str, Choice], TensorSizes] = field(default_factory=dict, init=False, repr=False)
    _kinds: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _numbers: dict[Hashable, int] = field(default_factory=dict, init=False, repr=False)
    _known_operands: dict[tuple[Reference, Choice, bool], OperandSizes] = field(
        default_factory=dict, init=False, repr=False
    )

    def kind(self, name: str) -> int:
        """A number that tensors share if their sizes are the same in every decomposition."""
        kind = self._kinds.get(name)
        if kind is None:
            tensor, statistics = self.graph.tensors[name], self.statistics[name]
            bounds, counted = statistics.tuple_bounds.items(), statistics.counted_tuples.items()
            sizes = statistics.entries, statistics.distinct, frozenset(bounds), frozenset(counted)
            key = tensor.shape, tensor.dtype, tensor.fill, *sizes
            kind = self._kinds[name] = self._numbers.setdefault(key, len(self._numbers))
        return kind

    def tuples(self, tensor: str, tiles: Choice) -> float:
        """Expected tuples of a tensor in a decomposition."""
        return self.of(tensor, tiles).tuples

    def relation_bytes(self, tensor: str, tiles: Choice) -> float:
        """Expected bytes of all tuples of a tensor in a decomposition."""
        sizes = self.of(tensor, tiles)
        return sizes.tuples * sizes.tuple_bytes

    def tuple_bytes(self, tensor: str, tiles: Choice) -> int:
        """Bytes of one tuple of a tensor in a decomposition."""
        return self.of(tensor, tiles).tuple_bytes

    def of(self, name: str, tiles: Choice) -> TensorSizes:
        """Sizes of a tensor in a decomposition; cached, because every pair of its decompositions asks for them."""
        sizes = self._known_sizes.get((name, tiles))
        if sizes is None:
            tensor, decomposition = self.graph.tensors[name], Decomposition(tiles)
            elements = decomposition.array_size(tensor.shape)
            size_bytes = tuple_bytes(tensor, decomposition)
            sizes = TensorSizes(self.statistics[name].tuples(tiles), size_bytes, elements)
            self._known_sizes[name, tiles] = sizes
        return sizes

    def mean_size(self, tensor: str, tiles: Choice) -> float:
        """The mean number of elements of an array."""
        return math.prod(map(mean_extent, tiles, self.graph.tensors[tensor].shape))

    def operand(self, operand: Reference, tiles: Choice, dense: bool) -> OperandSizes:
        """Sizes of an operand in the tiles of its axes; cached, because many choices give it the same tiles."""
        sizes = self._known_operands.get((operand, tiles, dense))
        if sizes is None:
            tiles_by_label = dict(zip(operand.labels, tiles, strict=True))
            statistics, size = self.statistics[operand.tensor], self.of(operand.tensor, tiles)
            joined = stored = by_label(operand.labels, statistics)
            present = size.tuples if stored.statistics is statistics else stored.tuples(tiles_by_label)
            if dense:
                joined = by_label(operand.labels, dense_statistics(self.graph.tensors[operand.tensor].shape))
            tuples = joined.tuples(tiles_by_label) if dense else present
            sizes = OperandSizes(tuples, present, joined.distinct(tiles_by_label), size.tuple_bytes)
            self._known_operands[operand, tiles, dense] = sizes
        return sizes
