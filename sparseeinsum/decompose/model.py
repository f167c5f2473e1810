"""Decompose: the cost of an EinSum under a choice of promoted labels; its parts price memory and repartitions."""

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.call_threads import elements_of_call, threads_of_call
from sparseeinsum.decompose.choice import Choice, is_single_array, reference_tiles
from sparseeinsum.decompose.compressed_access import expanding, is_sparse, sparse_products
from sparseeinsum.decompose.copied_parts import CopiedPart, copied_part
from sparseeinsum.decompose.cost import (
    BATCHED_START_OPERATIONS,
    ONE_ROW_OPERATOR,
    START_OPERATIONS,
    Accounting,
    ContractionSizes,
    CostConstants,
    EmbeddedAccounting,
)
from sparseeinsum.decompose.costs_within_memory import CostsWithinMemory
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.decompose.einsum_kinds import EinSumKinds, Uses
from sparseeinsum.decompose.footprints import Footprints
from sparseeinsum.decompose.graph_sizes import GraphSizes
from sparseeinsum.decompose.in_memory_costs import InMemoryCosts
from sparseeinsum.decompose.indexed_access import StoredOrder, indexed
from sparseeinsum.decompose.joining import (
    OperandSizes,
    copied_bytes,
    filling_in,
    joined_groups,
    joined_pairs,
    looked_up_bytes,
    reread_bytes,
    share_keys,
    skew_factor,
)
from sparseeinsum.decompose.memory_footprint import UNLIMITED, Footprint, RunMemory
from sparseeinsum.decompose.repartition_costs import RepartitionCosts
from sparseeinsum.decompose.sparse_matmul import sparse_matmul_cost, sparse_matmuls
from sparseeinsum.decompose.staying_operands import NOTHING_STAYS, StayingOperands
from sparseeinsum.decompose.storing_costs import StoringCosts
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import mean_extent
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.estimate import Statistics

_EMBEDDED = EmbeddedAccounting()
_POSITION_BYTES = 8  # where in an array a window starts


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs of the EinSums of one graph on one engine.

    Attributes:
        graph: The EinSums.
        statistics: T and V of every tensor.
        evaluations: The exact evaluations of every EinSum.
        constants: Seconds of elementary work.
        accounting: Counts the work that the engine does.
        memory: The memory limit of a run; EinSums that would exceed it are priced in passes.
        resident_bytes: The most bytes of operands that an EinSum may keep in memory and read by index.
        kept_bytes: The most bytes of operands that stay in memory from run to run.
        has_handles: Whether functions compute many rows at once, and read operands in memory by handles; if not, they
            compute row by row, and a few kernels read operands as values.
        chains_arrays: Whether EinSums over single arrays are computed together in one row.
        collects_rows: As in `StoringCosts`.
        multiplies_sparse: Whether a sparse operand may be multiplied by a single array.
        orders: The order of the tuples of stored tensors, where it is known.
        index_maps: The indices that index maps stand for, by the names of the maps.
        in_lists: The names of tensors that are stored in lists.
        of_numbers: The names of stored tensors with a tuple for each entry.
        staying: The stored tensors of which operands in memory stay there from run to run.
        sizes: The sizes of the tensors in every decomposition.
        storing: The costs of tables of results, and of collecting results for the user.
        repartitions: The costs of repartitions between EinSums.
        footprints: The memory that EinSums take.
        kinds: The costs of EinSums that differ in nothing but names.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    evaluations: Mapping[str, Evaluation]
    constants: CostConstants
    accounting: Accounting = _EMBEDDED
    memory: RunMemory = UNLIMITED
    resident_bytes: float = 0.0
    kept_bytes: float = 0.0
    has_handles: bool = True
    chains_arrays: bool = False
    collects_rows: bool = False
    multiplies_sparse: bool = False
    orders: Mapping[str, StoredOrder] = field(default_factory=dict)
    index_maps: Mapping[str, AffineIndex] = field(default_factory=dict)
    in_lists: frozenset[str] = frozenset()
    of_numbers: frozenset[str] = frozenset()
    staying: StayingOperands = NOTHING_STAYS
    sizes: GraphSizes = field(init=False, repr=False, compare=False)
    storing: StoringCosts = field(init=False, repr=False, compare=False)
    repartitions: RepartitionCosts = field(init=False, repr=False, compare=False)
    footprints: Footprints = field(init=False, repr=False, compare=False)
    kinds: EinSumKinds = field(init=False, repr=False, compare=False)
    _within_memory: CostsWithinMemory = field(init=False, repr=False, compare=False)
    _in_memory: InMemoryCosts = field(init=False, repr=False, compare=False)
    _known_costs: dict[tuple[str, Choice], VertexCost] = field(default_factory=dict, init=False, repr=False)
    _known_footprints: dict[tuple[str, Choice], Footprint] = field(default_factory=dict, init=False, repr=False)
    _reader_counts: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    @property
    def least_operator_seconds(self) -> float:
        """The seconds that every EinSum takes, however little it does."""
        return self.constants.fixed_seconds_per_operator * self._operators_of_array

    @property
    def keeps_arrays(self) -> bool:
        """Whether a statement puts arrays of many rows together in memory, and reads them there."""
        return self.has_handles and self.resident_bytes > 0

    @property
    def _operators_of_array(self) -> float:
        """Operators that an EinSum over single arrays takes as long as."""
        return ONE_ROW_OPERATOR if self.chains_arrays else 1

    def __post_init__(self) -> None:
        """Make the parts of the model."""
        sizes = GraphSizes(self.graph, self.statistics, self.of_numbers)
        storing = StoringCosts(
            sizes, self.memory, self.accounting, self.constants, self.chains_arrays, self.collects_rows
        )
        read_again = [einsum.output.tensor for einsum in self.graph.einsums if self._uses(einsum).total > 1]
        in_one_row = frozenset(filter(storing.fits_into_row, read_again if self.chains_arrays else ()))
        kept, in_memory = (self.staying, self.kept_bytes), (self.has_handles, self.keeps_arrays)
        repartitions = RepartitionCosts(
            self.graph, sizes, self.constants, self.accounting, self.memory, in_one_row, *kept, *in_memory
        )
        copies = 1 if self.has_handles else self.memory.threads
        products = frozenset(() if self.has_handles else sparse_products(self.graph, self.statistics))
        footprints = Footprints(
            self.graph, sizes, self.evaluations, self.in_lists, self.staying, self.has_handles, copies, products
        )
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "storing", storing)
        object.__setattr__(self, "repartitions", repartitions)
        object.__setattr__(self, "footprints", footprints)
        inputs = frozenset(self.graph.inputs)
        within_memory = CostsWithinMemory(sizes, footprints, self.memory, self.constants, inputs)
        object.__setattr__(self, "_within_memory", within_memory)
        in_memory_costs = InMemoryCosts(footprints, within_memory, self.constants, self.resident_bytes)
        object.__setattr__(self, "_in_memory", in_memory_costs)
        stored = self.in_lists, self.of_numbers, self.staying, inputs, products
        kinds = EinSumKinds(sizes, self.evaluations, self.orders, self.index_maps, *stored)
        object.__setattr__(self, "kinds", kinds)

    def vertex_cost(self, einsum: EinSum, choice: Choice) -> VertexCost:
        """The cost of an EinSum whose operands are already in the decompositions that the choice requires."""
        cost = self._known_costs.get((einsum.output.tensor, choice))
        if cost is None:
            uses = self._uses(einsum)
            cost = self.kinds.known_cost(einsum, choice, uses)
            if cost is None:
                cost = self.storing.with_storing(einsum, choice, uses, self._vertex_cost(einsum, choice))
                self.kinds.remember(einsum, choice, uses, cost)
            self._known_costs[einsum.output.tensor, choice] = cost
        return cost

    def _vertex_cost(self, einsum: EinSum, choice: Choice) -> VertexCost:
        decomposed = DecomposedEinSum.of(einsum, choice)
        keys = tuple([decomposed.promoted.intersection(operand.labels) for operand in einsum.operands])
        evaluation = self.evaluations[decomposed.name]
        costs = [self._price(decomposed, absence) for absence in evaluation.absence_options(keys)]
        if self.resident_bytes > 0 and decomposed.promoted:  # a single array is neither read by key nor ordered by row
            indexed = [self._price(decomposed, *read) for read in self._in_memory.indexable(decomposed)]
            costs = [*costs, *self._in_memory.costs(decomposed, costs, indexed)]
        cost = self._within_memory.cheapest(decomposed, self._with_expansions(einsum, costs))
        products = list(self._sparse_matmul_costs(decomposed, evaluation, cost))
        return min(products, key=lambda product: product.seconds) if products else cost

    def decomposed(self, einsum: EinSum, choice: Choice) -> DecomposedEinSum:
        """An EinSum under a choice, with its operands in the tiles in which it reads them."""
        return replace(
            DecomposedEinSum.of(einsum, choice),
            operands=tuple([self.operand_tiles(einsum, index, choice) for index in range(len(einsum.operands))]),
        )

    def operand_tiles(self, einsum: EinSum, index: int, choice: Choice) -> Choice:
        """The tiles in which operand `index` is read under a choice."""
        if not is_single_array(choice):  # sparse matrix products promote no label
            return reference_tiles(einsum, einsum.operands[index], choice)
        return self.vertex_cost(einsum, choice).operand_tiles(einsum, index, choice)

    def _sparse_matmul_costs(
        self, decomposed: DecomposedEinSum, evaluation: Evaluation, dense: VertexCost
    ) -> Iterator[VertexCost]:
        """Costs if one operand is ordered by row, and multiplied by an array, where that takes less than arrays do.

        `dense` is the cost if the operand is an array, without that of making it one.
        """
        if self.resident_bytes == 0 or not self.multiplies_sparse:
            return
        if not (self.has_handles or decomposed.einsum.is_multilinear):  # other semirings read handles
            return
        names = [operand.tensor for operand in decomposed.einsum.operands]
        candidates = [index for index, name in enumerate(names) if self.may_be_of_numbers(name)]
        has_processes, operators = not self.has_handles, self._operators_of_array
        for product in sparse_matmuls(decomposed, self.graph, evaluation, candidates):
            name = names[product.index]
            cost = sparse_matmul_cost(
                product, evaluation, self.footprints, self.memory, has_processes, operators, self.constants
            )
            before, after = (read.operands[product.index] for read in (product.decomposed, decomposed))
            made_dense = self.repartitions.seconds(name, before, after, 1)
            if not self._is_stored_in_numbers(name):  # what computes it can make an array of it
                made_dense -= self.constants.fixed_seconds_per_operator
            fits = self.footprints.memory_bytes(product.decomposed, cost) <= self.resident_bytes
            if fits and cost.seconds < dense.seconds + made_dense:
                best = self._within_memory.cheapest(
                    product.decomposed, self._with_expansions(decomposed.einsum, [cost])
                )
                if best.is_within_memory or not dense.is_within_memory:
                    yield best

    def may_be_of_numbers(self, name: str) -> bool:
        """Whether a tensor is stored with its numbers alone, or is so sparse that what computes it may give these."""
        return self._is_stored_in_numbers(name) or is_sparse(
            self.statistics[name].entries, self.graph.tensors[name].size
        )

    def _is_stored_in_numbers(self, name: str) -> bool:
        """Whether a tensor is stored with a tuple, or a place in a list, for each entry."""
        return name in self.of_numbers or name in self.in_lists

    def _with_expansions(self, einsum: EinSum, costs: list[VertexCost]) -> list[VertexCost]:
        """The costs with those of reading entries out of lists, of operands that are not ordered by row from lists."""
        if self.in_lists.isdisjoint([operand.tensor for operand in einsum.operands]):
            return costs
        return [self._with_expansion(einsum, cost) for cost in costs]

    def _with_expansion(self, einsum: EinSum, cost: VertexCost) -> VertexCost:
        names = [operand.tensor for index, operand in enumerate(einsum.operands) if index not in cost.compressed]
        entries = sum([self.statistics[name].entries for name in names if name in self.in_lists])
        work = expanding(entries)
        return replace(cost, filling=cost.filling + work, seconds=cost.seconds + work.seconds(self.constants))

    def _is_in_order(self, decomposed: DecomposedEinSum, index: int, labels: Container[str]) -> bool:
        """Whether an operand, read as it is stored, has its tuples in the order of the keys of one of these labels."""
        operand = decomposed.einsum.operands[index]
        order = self.orders.get(operand.tensor)
        if order is None or order.tiles != decomposed.operands[index]:
            return False
        return any(operand.labels[axis] in labels for axis in order.ascending)

    def _price(self, decomposed: DecomposedEinSum, absence: Absence, index: int | None = None) -> VertexCost:
        """The cost if absent tuples are treated in one way.

        Args:
            decomposed: The EinSum under a choice.
            absence: How absent tuples are treated.
            index: The number of the operand that is read by index, as if it had all tuples; None if there is none.
        """
        einsum = decomposed.einsum
        operands = [
            self.sizes.operand(operand, tiles, dense or position == index)
            for position, (operand, tiles, dense) in enumerate(
                zip(einsum.operands, decomposed.operands, absence.dense, strict=True)
            )
        ]
        copied = self._copied_part(decomposed, absence) if index is None else None
        if copied is not None:
            operands[0] = replace(operands[0], tuples=operands[0].present, tuple_bytes=_POSITION_BYTES)
        sizes = self._contraction_sizes(decomposed, operands, absence, index)
        if copied is not None:
            operations = 0 if copied.label is None else sizes.result_size
            sizes = replace(sizes, operations=operations, is_expression=False, is_grouped=False)
        join, aggregation = self.accounting.join(sizes), self.accounting.aggregation(sizes)
        filling = filling_in(operands, absence, index, sizes.joined)
        if index is not None:
            is_in_order = self._is_in_order(decomposed, 1 - index, einsum.output.labels)
            is_scattered = sizes.is_grouped and not is_in_order
            resident = self.footprints.resident(decomposed, index)
            scattered = sizes.joined * operands[index].tuple_bytes if is_scattered else 0.0
            join = indexed(join, scattered, resident.missed_bytes(sizes.joined))
            filling += resident.keeping()
        seconds = sum([work.seconds(self.constants) for work in (join, aggregation, filling)])
        return VertexCost(
            sizes.joined, sizes.aggregated, join, aggregation, filling, seconds, absence, index, copied=copied
        )

    def _copied_part(self, decomposed: DecomposedEinSum, absence: Absence) -> CopiedPart | None:
        """The part of every array that an EinSum copies; None if it computes values."""
        einsum = decomposed.einsum
        index = self.index_maps.get(einsum.operands[0].tensor)
        if index is None or absence.join != JoinKind.INNER:
            return None
        return copied_part(einsum, dict(zip(einsum.labels, decomposed.choice, strict=True)), index)

    def _contraction_sizes(
        self, decomposed: DecomposedEinSum, operands: list[OperandSizes], absence: Absence, index: int | None
    ) -> ContractionSizes:
        """Sizes of an EinSum under a choice; the arguments are those of `_price`, and the sizes of the operands."""
        einsum, kernel = decomposed.einsum, self.footprints.kernel(decomposed.einsum)
        result = self.sizes.of(decomposed.name, decomposed.result)
        has_shared_keys = share_keys(operands)
        skew = self.statistics[decomposed.name].skew
        joined = joined_pairs(operands, absence.join)
        is_matrix_product = kernel.is_matrix_product(decomposed)
        operations = kernel.operations * math.prod(map(mean_extent, decomposed.choice, kernel.bounds))
        if not (self.has_handles or decomposed.promoted):
            read = zip(einsum.operands, decomposed.operands, strict=True)
            arrays = [result, *(self.sizes.of(operand.tensor, tiles) for operand, tiles in read)]
            elements = elements_of_call(max([array.elements for array in arrays]), operations, is_matrix_product)
            operations /= threads_of_call(elements, self.memory, has_processes=True)
        return ContractionSizes(
            joined=joined * skew_factor(decomposed, absence.join, skew) if skew else joined,
            matched=sum([operand.tuples for operand in operands]) if has_shared_keys else 0.0,
            groups=joined_groups(einsum, operands, absence.join),
            is_grouped=decomposed.is_grouped,
            has_keys=not decomposed.promoted.isdisjoint(einsum.output.labels),
            operand_bytes=sum([operand.tuple_bytes for operand in operands]),
            result_bytes=result.tuple_bytes,
            result_size=result.elements,
            operations=operations,
            is_matrix_product=is_matrix_product,
            is_expression=not kernel.is_multilinear and not is_of_numbers(decomposed.choice),
            start_operations=BATCHED_START_OPERATIONS if self.has_handles else START_OPERATIONS,
            copied_bytes=0 if index is not None else copied_bytes(decomposed, absence.join, operands),
            looked_up_bytes=0.0 if index is not None else self._looked_up_bytes(decomposed, operands),
            reread_bytes=reread_bytes(operands) if is_matrix_product and not self.has_handles else 0.0,
            scanned_bytes=self._scanned_bytes(decomposed, index),
            is_streamed=decomposed.has_number_result and self._uses(einsum) == Uses(1, is_output=False),
            is_one_row=self.storing.is_in_chain(decomposed.choice) and self.storing.fits_into_row(decomposed.name),
        )

    def _scanned_bytes(self, decomposed: DecomposedEinSum, index: int | None) -> float:
        """Bytes of arrays that are read from tables, row by row, but for those of the operand that is read by index."""
        if not self.has_handles:
            return 0.0
        read = enumerate(zip(decomposed.einsum.operands, decomposed.operands, strict=True))
        return sum(
            [
                self.sizes.stored_bytes(operand.tensor, tiles)
                for position, (operand, tiles) in read
                if position != index and not is_single_array(tiles)
            ]
        )

    def _looked_up_bytes(self, decomposed: DecomposedEinSum, operands: list[OperandSizes]) -> float:
        """What a pair takes to copy an array out of a hash table, as bytes to move; 0 where there is none or in order.

        The table has the operand of fewer tuples; the other one may come in the order of its keys.
        """
        if len(operands) < 2:
            return 0.0
        table = 0 if operands[0].tuples <= operands[1].tuples else 1
        shared = operands[0].distinct.keys() & operands[1].distinct.keys()
        if not shared or is_of_numbers(decomposed.operands[table]) or self._is_in_order(decomposed, 1 - table, shared):
            return 0.0
        return looked_up_bytes(operands[table])

    def _uses(self, einsum: EinSum) -> Uses:
        """Where the result of an EinSum goes."""
        name = einsum.output.tensor
        if not self._reader_counts:
            self._reader_counts.update(operand.tensor for reader in self.graph.einsums for operand in reader.operands)
        return Uses(min(self._reader_counts[name], 2), name in self.graph.outputs)

    def single_pass_seconds(self, einsum: EinSum, choice: Choice) -> float:
        """Seconds of an EinSum without the cost of passes, as if memory were unlimited."""
        cost = self.vertex_cost(einsum, choice)
        return cost.seconds - cost.rereading.seconds(self.constants)

    def footprint(self, einsum: EinSum, choice: Choice) -> Footprint:
        """The memory that an EinSum takes under a choice, in one pass; cached."""
        footprint = self._known_footprints.get((einsum.output.tensor, choice))
        if footprint is None:
            footprint = self.footprints.footprint(self.decomposed(einsum, choice), self.vertex_cost(einsum, choice))
            self._known_footprints[einsum.output.tensor, choice] = footprint
        return footprint

    def needed_bytes(self, einsum: EinSum, choice: Choice) -> float:
        """The memory limit that is enough for an EinSum under a choice, in the passes of its `vertex_cost`."""
        return self.footprint(einsum, choice).needed_bytes(self.memory, self.vertex_cost(einsum, choice).passes)

    def is_matrix_product(self, einsum: EinSum, choice: Choice) -> bool:
        """Whether the kernel of an EinSum is a matrix product, in a dtype that BLAS supports."""
        return self.footprints.kernel(einsum).is_matrix_product(DecomposedEinSum.of(einsum, choice))
