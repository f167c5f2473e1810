"""Decompose: products of three operands that one kernel computes, so that the product of two of them is never stored.

Where an EinSum multiplies the result of another one that nothing else reads, one kernel may compute both:

- the inner product of rows of two dense matrices at every entry of a sparse one (SDDMM);
- for every row of a sparse tensor, the sum of its entries, each times the product of rows of two matrices (MTTKRP);
- the product of two sparse matrices where a third one, the mask, has entries (as for triangles of a graph).

Matrices stand for tensors of any number of axes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from sparseeinsum.decompose.choice import Choice, is_single_array, reference_tiles, result_tiles
from sparseeinsum.decompose.compressed_access import (
    MOST_POSITIONS,
    CompressedSizes,
    RowOrder,
    count_indices,
    has_enough_rows,
    in_masked_product,
    in_rows,
    writing_rows,
)
from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.decompose.indexed_access import needs_no_conversion
from sparseeinsum.decompose.joining import joined_pairs
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, is_ragged
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.expressions import Call, Operand
from sparseeinsum.operators.semirings import SEMIRINGS, Semiring
from sparseeinsum.semantics.exactness import JoinKind

_NUMBER_BYTES = 8


class FusedKernel(StrEnum):
    """What computes a product of three operands; the comments say which these are."""

    SAMPLED = "sampled"  # numbers, and two arrays in memory
    ROWS = "rows"  # numbers that are ordered by row, and two arrays in memory
    MASKED = "masked"  # the mask and two factors, all ordered by row


@dataclass(frozen=True, slots=True)
class FusedProduct:
    """A product of three operands that one kernel computes.

    Attributes:
        kernel: The kind of the kernel.
        einsum: The product, with the labels of the EinSum that computes it.
        choice: Tiles of its labels.
        orders: How operands are ordered by row, by the number of the operand.
        work: The work to order and multiply.
        keeping: The work to put arrays into memory.
        memory_bytes: Bytes of operands in memory.
    """

    kernel: FusedKernel
    einsum: EinSum
    choice: Choice
    orders: Mapping[int, RowOrder]
    work: Work
    keeping: Work
    memory_bytes: float

    @property
    def decomposed(self) -> DecomposedEinSum:
        """The product under its choice."""
        return DecomposedEinSum.of(self.einsum, self.choice)

    def seconds(self, constants: CostConstants) -> float:
        """The seconds that it takes if operands are in their decompositions."""
        return (self.work + self.keeping).seconds(constants)

    @property
    def resident(self) -> tuple[int, ...]:
        """The numbers of the operands that are arrays in memory."""
        return () if self.kernel == FusedKernel.MASKED else (1, 2)


@dataclass(frozen=True, slots=True)
class PricedEinSum:
    """An EinSum of a plan: its choice, and the cost of that."""

    einsum: EinSum
    choice: Choice
    cost: VertexCost


def fused_product(model: CostModel, reader: PricedEinSum, producer: PricedEinSum) -> FusedProduct | None:
    """The product that computes two EinSums at once; None where no kernel does, or memory does not suffice.

    Args:
        model: The cost model.
        reader: The EinSum that multiplies the result of the other.
        producer: The other one, whose result has no other use.
    """
    if _has_no_numbers(reader) and _has_no_numbers(producer):
        return None
    pair = _Pair.of(model, reader, producer)
    if pair is None:
        return None
    candidates = [product for product in pair.products() if product.memory_bytes <= model.resident_bytes]
    return min(candidates, key=lambda product: product.seconds(model.constants), default=None)


def _has_no_numbers(priced: PricedEinSum) -> bool:
    """Whether an EinSum surely reads no operand as numbers, one of which every product at once has."""
    return is_single_array(priced.choice) and all(operand.labels for operand in priced.einsum.operands)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two EinSums that may be computed at once.

    Attributes:
        model: The cost model.
        reader: The second one.
        semiring: What both compute with.
        factors: The operands of the first one, with the labels of the second.
        other: The other operand of the second one.
        tiles: The tiles of all labels.
    """

    model: CostModel
    reader: PricedEinSum
    semiring: Semiring
    factors: tuple[Reference, Reference]
    other: Reference
    tiles: Mapping[str, int]

    @classmethod
    def of(cls, model: CostModel, reader: PricedEinSum, producer: PricedEinSum) -> "_Pair | None":
        """A pair in one semiring, of which only entries of all operands matter, and whose values are finite."""
        first, second = producer.einsum, reader.einsum
        semiring = common_semiring(first, second)
        if semiring is None:
            return None
        if not all(_is_plain(model, einsum) for einsum in (producer, reader)):
            return None
        evaluations = [model.evaluations[einsum.output.tensor] for einsum in (first, second)]
        if evaluations[0].computed_in != evaluations[1].computed_in or is_complex(evaluations[0].computed_in):
            return None
        if evaluations[0].detects_nonfinite and not evaluations[1].detects_nonfinite:
            return None
        read = next(operand for operand in second.operands if operand.tensor == first.output.tensor)
        if reference_tiles(second, read, reader.choice) != result_tiles(first, producer.choice):
            return None
        other = next(operand for operand in second.operands if operand is not read)
        labels = labels_in_reader(first, read.labels, second.labels)
        factors = tuple(
            [
                Reference(operand.tensor, tuple([labels[label] for label in operand.labels]))
                for operand in first.operands
            ]
        )
        tiles = {labels[label]: tile for label, tile in zip(first.labels, producer.choice, strict=True)}
        tiles |= dict(zip(second.labels, reader.choice, strict=True))
        return cls(model, reader, semiring, (factors[0], factors[1]), other, tiles)

    def products(self) -> Iterator[FusedProduct]:
        """The products that compute both EinSums."""
        operands = (*self.factors, self.other)
        if self._is_masked:
            yield from self._masked()
            return
        numbers = [index for index, operand in enumerate(operands) if is_of_numbers(self._tiles(operand))]
        if self.semiring.text != "sum(u * v)" or len(numbers) != 1:
            return
        entries = operands[numbers[0]]
        arrays = [operand for index, operand in enumerate(operands) if index != numbers[0]]
        if not all(self._can_be_resident(array, entries) for array in arrays):
            return
        inside = [self._inside(reference) for reference in (*arrays, self.reader.einsum.output)]
        output_keys = self._promoted(self.reader.einsum.output.labels)
        if inside[0] == inside[1] and not inside[2] and sorted(entries.labels) == sorted(output_keys):
            yield from self._sampled(entries, arrays)
        if inside[0] == inside[1] == inside[2] and set(output_keys) <= set(entries.labels):
            yield from self._rows(entries, arrays, output_keys)

    @property
    def _is_masked(self) -> bool:
        """Whether all operands are read as numbers, one of which is the mask."""
        return all(is_of_numbers(self._tiles(operand)) for operand in (*self.factors, self.other))

    def _sampled(self, entries: Reference, arrays: Sequence[Reference]) -> Iterator[FusedProduct]:
        """The product of numbers and inner products of rows; without handles, a kernel may compute it for all rows."""
        tuples = self._tuples(entries)
        work = Work(tuples, kernel_operations=3 * tuples * self._size(arrays[0]), operators=1)
        yield self._product(FusedKernel.SAMPLED, (entries, *arrays), {}, work)
        if self.model.has_handles:
            return
        for left, right in (arrays, tuple(reversed(arrays))):
            order = RowOrder(self._promoted(left.labels), self._promoted(right.labels))
            if self._is_order_of(order, (entries, left, right)):
                prices = self.model.footprints.product_prices
                in_order = in_rows(replace(work, tuples=0), self._sizes(entries, order), prices)
                yield self._product(FusedKernel.SAMPLED, (entries, left, right), {0: order}, in_order)

    def _is_order_of(self, order: RowOrder, operands: Sequence[Reference]) -> bool:
        """Whether the first operand may be ordered so: rows by its first labels, as the result has them in order."""
        parts = order.rows, order.positions
        in_result = [label for part in parts for label in self.reader.einsum.output.labels if label in part]
        einsum, graph = self._einsum(operands), self.model.graph
        fits = all(count_indices(part, einsum, graph) < MOST_POSITIONS for part in parts)
        return operands[0].labels == tuple(in_result) == (*order.rows, *order.positions) and fits

    def _rows(
        self, entries: Reference, arrays: Sequence[Reference], output_keys: tuple[str, ...]
    ) -> Iterator[FusedProduct]:
        """The sum over the entries of a row, of products of rows of both arrays."""
        positions = (*self._promoted(arrays[0].labels), *self._promoted(arrays[1].labels))
        order, einsum = RowOrder(output_keys, positions), self._einsum((entries, *arrays))
        graph = self.model.graph
        if has_enough_rows(order, einsum, graph) and count_indices(positions, einsum, graph) < MOST_POSITIONS:
            operations = 3 * self._tuples(entries) * self._size(arrays[0])
            join, prices = Work(kernel_operations=operations, operators=1), self.model.footprints.product_prices
            work = in_rows(join, self._sizes(entries, order), prices)
            written = self.reader.cost.tuples * self._size(arrays[0]) * _NUMBER_BYTES
            work += writing_rows(written, self.model.has_handles)
            yield self._product(FusedKernel.ROWS, (entries, *arrays), {0: order}, work)

    def _masked(self) -> Iterator[FusedProduct]:
        """The products of two factors where the other operand has entries."""
        mask, output, graph = self.other, self.reader.einsum.output, self.model.graph
        ordered = output.labels if len(output.labels) == len(mask.labels) else mask.labels
        for left, right in (self.factors, tuple(reversed(self.factors))):
            rows = tuple([label for label in ordered if label in left.labels])
            shared = tuple([label for label in left.labels if label in right.labels])
            columns = tuple([label for label in ordered if label in right.labels and label not in rows])
            covers = [
                set(reference.labels) == {*first, *second}
                for reference, first, second in ((mask, rows, columns), (left, rows, shared), (right, shared, columns))
            ]
            is_contained = set(output.labels) <= set(mask.labels) and not set(shared) <= set(mask.labels)
            if not all(covers) or not is_contained:
                continue
            orders = {0: RowOrder(rows, columns), 1: RowOrder(rows, shared), 2: RowOrder(shared, columns)}
            einsum = self._einsum((mask, left, right))
            fits = all(
                count_indices(labels, einsum, graph) < MOST_POSITIONS
                for order in orders.values()
                for labels in (order.rows, order.positions)
            )
            if fits and has_enough_rows(orders[0], einsum, graph):
                yield self._product(FusedKernel.MASKED, (mask, left, right), orders, self._masked_work(einsum, orders))

    def _masked_work(self, einsum: EinSum, orders: Mapping[int, RowOrder]) -> Work:
        mask, *factors = einsum.operands
        pairs = joined_pairs(
            [self.model.sizes.operand(factor, self._tiles(factor), dense=False) for factor in factors], JoinKind.INNER
        )
        distinct = {  # operands that are one tensor in one order are ordered once
            (operand.tensor, self._axes(operand, orders[index])): self._sizes(operand, orders[index])
            for index, operand in enumerate(einsum.operands)
        }
        rows = self._count(mask, orders[0].rows)
        return in_masked_product(
            pairs, rows, self._tuples(mask), distinct.values(), self.model.footprints.product_prices
        )

    def _product(
        self, kernel: FusedKernel, operands: Sequence[Reference], orders: Mapping[int, RowOrder], work: Work
    ) -> FusedProduct:
        einsum = self._einsum(operands)
        choice = tuple([self.tiles[label] for label in einsum.labels])
        decomposed = DecomposedEinSum.of(einsum, choice)
        arrays = [] if kernel == FusedKernel.MASKED else [1, 2]
        resident = [self.model.footprints.resident(decomposed, index) for index in arrays]
        size = sum([self._sizes(operands[index], order).size_bytes for index, order in orders.items()])
        size += sum([sizes.size_bytes for sizes in resident])
        keeping = sum([sizes.keeping() for sizes in resident], Work(operators=1))
        return FusedProduct(kernel, einsum, choice, orders, work, keeping, size)

    def _einsum(self, operands: Sequence[Reference]) -> EinSum:
        """The product; that of a masked one has the labels of the mask, over which the reader may aggregate then."""
        function = self.semiring.function
        join = Call(function, (Call(function, (Operand(0), Operand(1))), Operand(2)))
        output, first = self.reader.einsum.output, operands[0].labels
        if self._is_masked and len(output.labels) < len(first):
            output = Reference(output.tensor, first)
        return EinSum(output, tuple(operands), join, self.semiring.aggregate)

    def _can_be_resident(self, array: Reference, entries: Reference) -> bool:
        """Whether an operand can be kept in memory, and be read by the keys of the entries."""
        tensor, tiles = self.model.graph.tensors[array.tensor], self._tiles(array)
        computed_in = self.model.evaluations[self.reader.einsum.output.tensor].computed_in
        keys = self._promoted(array.labels)
        is_even = not any(map(is_ragged, tiles, tensor.shape))
        return (
            bool(keys)
            and set(keys) <= set(entries.labels)
            and is_even
            and not tensor.fill
            and needs_no_conversion(tensor.dtype, computed_in, has_other_fill=False)
        )

    def _axes(self, operand: Reference, order: RowOrder) -> tuple[tuple[int, ...], tuple[int, ...]]:
        axis_of = operand.labels.index
        return tuple(map(axis_of, order.rows)), tuple(map(axis_of, order.positions))

    def _sizes(self, operand: Reference, order: RowOrder) -> CompressedSizes:
        model, name = self.model, operand.tensor
        rows, loads = self._count(operand, order.rows), model.staying.loads_of(name)
        products = model.footprints.product_prices
        prices = products.ordering if self._is_masked else products.before_array
        return CompressedSizes(rows, self._tuples(operand), name in model.in_lists, loads, prices)

    def _size(self, array: Reference) -> int:
        """The number of elements in a row of an array."""
        return self._count(array, self._inside(array))

    def _count(self, operand: Reference, labels: Sequence[str]) -> int:
        """The product of the bounds of labels of an operand."""
        shape = self.model.graph.tensors[operand.tensor].shape
        return math.prod(shape[operand.labels.index(label)] for label in labels)

    def _tuples(self, operand: Reference) -> float:
        return self.model.sizes.tuples(operand.tensor, self._tiles(operand))

    def _tiles(self, operand: Reference) -> Choice:
        return tuple([self.tiles[label] for label in operand.labels])

    def _promoted(self, labels: Sequence[str]) -> tuple[str, ...]:
        return tuple([label for label in labels if self.tiles[label] != DEMOTED])

    def _inside(self, operand: Reference) -> list[str]:
        """The labels inside the arrays of a tensor."""
        return [label for label in operand.labels if self.tiles[label] != 1]


def common_semiring(producer: EinSum, reader: EinSum) -> Semiring | None:
    """The semiring in which two EinSums together are an aggregate of products of three operands."""
    aggregates = {producer.aggregate, reader.aggregate} - {None}
    for semiring in SEMIRINGS:
        is_aggregate = aggregates == {semiring.aggregate}
        if is_aggregate and semiring.multiplies(producer.join) and semiring.multiplies(reader.join):
            return semiring if producer.aggregate is None or semiring.is_distributive else None
    return None


def _is_plain(model: CostModel, priced: PricedEinSum) -> bool:
    """Whether an EinSum joins its operands at entries alone, in one pass, and gives finite values."""
    evaluation, cost = model.evaluations[priced.einsum.output.tensor], priced.cost
    has_repeated_labels = any(len(set(operand.labels)) < len(operand.labels) for operand in priced.einsum.operands)
    is_inner = not any(evaluation.matters) and not evaluation.joint_absence_matters and not evaluation.compensates
    is_whole = cost.passes is None and cost.copied is None and not has_repeated_labels
    return is_inner and is_whole and evaluation.values.entries.is_finite


def labels_in_reader(producer: EinSum, read: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """The labels of an EinSum by what the EinSum that reads its result calls them; those of others are not taken."""
    labels = dict(zip(producer.output.labels, read, strict=True))
    used: Set[str] = {*taken}
    for label in producer.aggregated:
        name = label
        while name in used:
            name += "_"
        labels[label] = name
        used = {*used, name}
    return labels
