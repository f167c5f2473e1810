"""Decompose: EinSums of a graph that differ in nothing but names, so that their costs are computed once.

Networks of small tensors, layers and heads have many of them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.graph_sizes import GraphSizes
from sparseeinsum.decompose.indexed_access import StoredOrder
from sparseeinsum.decompose.staying_operands import StayingOperands
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.semantics.exactness import Evaluation


@dataclass(frozen=True, slots=True)
class Uses:
    """Where a result goes.

    Attributes:
        readers: How often other EinSums read it: 0, 1, or 2 for more.
        is_output: Whether the graph returns it.
    """

    readers: int
    is_output: bool

    @property
    def total(self) -> int:
        """How often it is read or returned."""
        return self.readers + self.is_output


@dataclass(frozen=True, slots=True)
class EinSumKinds:
    """The costs of kinds of EinSums; EinSums are of one kind if all that their costs depend on is the same.

    Attributes:
        sizes: The sizes of the tensors.
        evaluations: The exact evaluations of every EinSum.
        orders: The order of the tuples of stored tensors, where it is known.
        index_maps: The indices that index maps stand for, by the names of the maps.
        in_lists: The names of tensors that are stored in lists.
        of_numbers: The names of stored tensors with a tuple for each entry.
        staying: The stored tensors of which operands in memory stay there from run to run.
        inputs: The tensors of the graph that no EinSum computes.
    """

    sizes: GraphSizes
    evaluations: Mapping[str, Evaluation]
    orders: Mapping[str, StoredOrder]
    index_maps: Mapping[str, AffineIndex]
    in_lists: frozenset[str]
    of_numbers: frozenset[str]
    staying: StayingOperands
    inputs: frozenset[str]
    sparse_products: frozenset[str]
    _kinds: dict[str, Hashable] = field(default_factory=dict, init=False, repr=False)
    _numbers: dict[Hashable, int] = field(default_factory=dict, init=False, repr=False)
    _costs: dict[Hashable, VertexCost] = field(default_factory=dict, init=False, repr=False)

    def known_cost(self, einsum: EinSum, choice: Choice, uses: Uses) -> VertexCost | None:
        """The cost that an EinSum of the same kind has under the same choice, if it was computed."""
        kind = self._kind(einsum, uses)
        return self._costs.get((kind, choice)) or self._costs.get((kind, choice, einsum.labels))

    def remember(self, einsum: EinSum, choice: Choice, uses: Uses, cost: VertexCost) -> None:
        """Keep the cost of an EinSum for others of its kind: for those with the same labels, if it names labels."""
        names_labels = bool(cost.orders) or cost.passes is not None or cost.copied is not None
        kind = self._kind(einsum, uses)
        self._costs[(kind, choice, einsum.labels) if names_labels else (kind, choice)] = cost

    def _kind(self, einsum: EinSum, uses: Uses) -> Hashable:
        name = einsum.output.tensor
        kind = self._kinds.get(name)
        if kind is None:
            key = self._key(einsum, uses)
            kind = self._kinds[name] = self._numbers.setdefault(key, len(self._numbers))
        return kind

    def _key(self, einsum: EinSum, uses: Uses) -> Hashable:
        """All that the cost of an EinSum depends on, with positions in place of names."""
        name = einsum.output.tensor
        position = {label: number for number, label in enumerate(einsum.labels)}
        read = [operand.tensor for operand in einsum.operands]
        skew = self.sizes.statistics[name].skew
        return (
            tuple([self._operand_key(operand, position) for operand in (einsum.output, *einsum.operands)]),
            tuple([read.index(tensor) for tensor in read]),
            einsum.join,
            einsum.aggregate,
            frozenset((position[label], tile) for label, tile in einsum.promoted),
            tuple([position.get(str(label)) for label in (einsum.along, einsum.state)]),
            frozenset((position.get(label), factor) for label, factor in skew.items()),
            self.evaluations[name].treatment,
            uses,
            name if not self.index_maps.keys().isdisjoint(read) else None,
        )

    def _operand_key(self, reference: Reference, position: Mapping[str, int]) -> Hashable:
        tensor = reference.tensor
        labels = tuple([position[label] for label in reference.labels])
        sets = self.in_lists, self.of_numbers, self.staying.tensors, self.inputs, self.sparse_products
        storage = [tensor in names for names in sets]
        return labels, self.sizes.kind(tensor), self.orders.get(tensor), *storage
