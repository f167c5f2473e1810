"""Decompose: sizes of the tensors of a graph in every decomposition."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.decomposed_einsum import is_of_numbers
from sparseeinsum.decompose.joining import OperandSizes, TensorSizes
from sparseeinsum.language.eingraph import EinGraph, Reference
from sparseeinsum.language.tensors import DEMOTED, KEY_BYTES, extent_of, mean_extent
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.statistics.estimate import Statistics, by_label, dense_statistics


@dataclass(frozen=True, slots=True)
class GraphSizes:
    """Sizes of the tensors of a graph, each computed once.

    Attributes:
        graph: The EinSums.
        statistics: T and V of every tensor.
        of_numbers: The names of stored tensors with a tuple for each entry.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    of_numbers: frozenset[str] = frozenset()
    _of_arrays: frozenset[str] = field(init=False, repr=False)
    _known_sizes: dict[tuple[str, Choice], TensorSizes] = field(default_factory=dict, init=False, repr=False)
    _kinds: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _numbers: dict[Hashable, int] = field(default_factory=dict, init=False, repr=False)
    _known_operands: dict[tuple[str, tuple[str, ...], Choice, bool], OperandSizes] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Note which tensors are stored in arrays."""
        object.__setattr__(self, "_of_arrays", frozenset(self.graph.inputs) - self.of_numbers)

    def kind(self, name: str) -> int:
        """A number that tensors share if all or none are stored in arrays, and of one size in every decomposition."""
        kind = self._kinds.get(name)
        if kind is None:
            tensor, statistics = self.graph.tensors[name], self.statistics[name]
            bounds, counted = statistics.tuple_bounds.items(), statistics.counted_tuples.items()
            sizes = statistics.entries, statistics.distinct, frozenset(bounds), frozenset(counted)
            key = tensor.shape, tensor.dtype, tensor.fill, name in self._of_arrays, *sizes
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
            tensor = self.graph.tensors[name]
            elements = math.prod(map(extent_of, tiles, tensor.shape))
            size_bytes = KEY_BYTES * (len(tiles) - tiles.count(DEMOTED)) + elements * ITEM_BYTES[tensor.dtype]
            sizes = TensorSizes(self.statistics[name].tuples(tiles), size_bytes, elements)
            self._known_sizes[name, tiles] = sizes
        return sizes

    def stored_bytes(self, tensor: str, tiles: Choice) -> float:
        """Expected bytes of the arrays of a tensor in these tiles if a table has arrays of it; else 0."""
        is_stored = tensor in self._of_arrays and not is_of_numbers(tiles)
        return self.relation_bytes(tensor, tiles) if is_stored else 0.0

    def mean_size(self, tensor: str, tiles: Choice) -> float:
        """The mean number of elements of an array."""
        return math.prod(map(mean_extent, tiles, self.graph.tensors[tensor].shape))

    def operand(self, operand: Reference, tiles: Choice, dense: bool) -> OperandSizes:
        """Sizes of an operand in the tiles of its axes; cached, because many choices give it the same tiles."""
        key = operand.tensor, operand.labels, tiles, dense
        sizes = self._known_operands.get(key)
        if sizes is None:
            sizes = self._known_operands[key] = self._operand(operand, tiles, dense)
        return sizes

    def _operand(self, operand: Reference, tiles: Choice, dense: bool) -> OperandSizes:
        labels, size = operand.labels, self.of(operand.tensor, tiles)
        statistics = self.statistics[operand.tensor]
        read = dense_statistics(self.graph.tensors[operand.tensor].shape) if dense else statistics
        if len(set(labels)) == len(labels):
            axes = enumerate(zip(labels, tiles, strict=True))
            distinct = {label: read.blocks(axis, tile) for axis, (label, tile) in axes if tile != DEMOTED}
            tuples = read.tuples(tiles) if dense else size.tuples
            return OperandSizes(tuples, size.tuples, distinct, size.tuple_bytes)
        tiles_by_label = dict(zip(labels, tiles, strict=True))
        joined = by_label(labels, read)
        present = by_label(labels, statistics).tuples(tiles_by_label)
        tuples = joined.tuples(tiles_by_label) if dense else present
        return OperandSizes(tuples, present, joined.distinct(tiles_by_label), size.tuple_bytes)
