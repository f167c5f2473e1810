"""EinDecomp: the floats that workers really send each other, as costs of a search.

The paper's costs are upper bounds: they assume that a worker has nothing of what its call reads. Here a worker receives
only what it lacks. A choice is a partition vector with the numbers of the workers that run its calls, and the place of
the result, so that what an EinSum reads depends on no other choice than that of the EinSum that computed it:

- Inputs are stored in some partition, or available in any; then each piece is on the first worker that reads it.
- A group is aggregated on its first worker, or each of its workers aggregates an equal part of it.
- A worker receives from others what it lacks of the blocks that its call reads.
- A tensor that several operands read is sent once, to where one of them reads it, or stays; the others start there.

Entries of sparse tensors are spread evenly.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles
from sparseeinsum.decompose.choice_tables import ChoiceTables
from sparseeinsum.decompose.eindecomp.partition_vectors import pieces_of
from sparseeinsum.decompose.eindecomp.sendings import Sending, Vertex, source_of, vertices_of
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.places.blocks import UNDIVIDED, BlockPlacement, Blocks, Digits, Floats, numberings
from sparseeinsum.decompose.places.computed_blocks import ComputedBlocks
from sparseeinsum.decompose.search_tasks import State
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference


@dataclass(frozen=True, slots=True)
class Moves:
    """The choices of every EinSum, and the floats that workers send each other; a `Pricing` in floats.

    A choice of an EinSum is the tiles of all labels, then the number of a numbering of the calls, then the axis along
    which groups divide their pieces, or UNDIVIDED. A choice of a sending is the state in which its tensor is then.

    Attributes:
        model: Counts floats of tensors, and of partial results.
        workers: The number of workers.
        choices: The choices of every EinSum and every sending, by the names of their results.
        computed: The blocks that were computed before, for these choices or others.
        tables: What searches have computed of these choices.
    """

    model: TransferModel
    workers: int
    choices: Mapping[str, Sequence[Choice]]
    computed: ComputedBlocks = field(default_factory=ComputedBlocks, repr=False)
    tables: ChoiceTables = field(default_factory=ChoiceTables, repr=False)
    _own: dict[tuple[str, Choice], float] = field(default_factory=dict, repr=False)
    _numbered: dict[tuple[str, Choice], Digits] = field(default_factory=dict, repr=False)
    _needed: dict[tuple[str, tuple[str, ...], Choice], BlockPlacement] = field(default_factory=dict, repr=False)
    _origins: dict[tuple[str, State], BlockPlacement] = field(default_factory=dict, repr=False)
    _result_states: dict[tuple[str, Choice], State] = field(default_factory=dict, repr=False)
    _required_states: dict[tuple[str, tuple[str, ...], Choice], State] = field(default_factory=dict, repr=False)

    @classmethod
    def of_vectors(
        cls,
        model: TransferModel,
        vectors: Mapping[str, Collection[Choice]],
        workers: int,
        is_coarse: bool = False,
        computed: ComputedBlocks | None = None,
    ) -> "Moves":
        """The choices with these vectors.

        Args:
            model: Counts the floats.
            vectors: Some vectors of every EinSum, by the name of its result, as tiles.
            workers: The number of workers; more if vectors have more calls.
            is_coarse: Whether calls are numbered in one way only, that of the labels.
            computed: Blocks of the same tensors that were computed before.
        """
        graph, choices, calls = model.graph, {}, [workers]
        for einsum in graph.einsums:
            name = einsum.output.tensor
            choices[name] = [choice for tiles in vectors[name] for choice in _choices(graph, einsum, tiles, is_coarse)]
            calls += [math.prod(_pieces(graph, einsum, tiles)) for tiles in vectors[name]]
        moves = cls(model, max(calls), choices, ComputedBlocks() if computed is None else computed)
        sendings = [vertex for vertex in vertices_of(graph) if isinstance(vertex, Sending)]
        return moves.narrowed(choices | {sending.output.tensor: moves._places(sending) for sending in sendings})

    @property
    def graph(self) -> EinGraph:
        """The EinSums, with the tensors that they read and compute."""
        return self.model.graph

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The EinSums and the sendings, in topological order."""
        return tuple(vertices_of(self.graph))

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "Moves":
        """A copy with fewer choices."""
        return replace(self, choices=choices)

    def apart(self) -> "Moves":
        """A copy whose EinSums are searched without sendings: every operand is sent for itself."""
        return replace(self, _own={}, tables=ChoiceTables())  # an EinSum then pays for shared inputs, too

    def needed(self, einsum: EinSum, reference: Reference, choice: Choice) -> BlockPlacement:
        """The pieces of a tensor that every worker's call reads or computes."""
        key = einsum.output.tensor, reference.labels, choice[:-1]
        needed = self._needed.get(key)
        if needed is None:
            digits, tiles = self._digits(einsum, choice), reference_tiles(einsum, reference, choice)
            positions = [einsum.labels.index(label) for label in reference.labels]
            needed = self._needed[key] = BlockPlacement(math.prod(digits.counts), tiles, digits.selected(positions))
        return needed

    def result(self, einsum: EinSum, choice: Choice) -> BlockPlacement:
        """Where the result is when all groups are aggregated."""
        digits = self._digits(einsum, choice)
        group = [at for at, label in enumerate(einsum.labels) if label in einsum.aggregated and digits.counts[at] > 1]
        group.sort(key=lambda at: -digits.strides[at])
        return replace(self.needed(einsum, einsum.output, choice), group=digits.selected(group), divided=choice[-1])

    def available(self, einsum: EinSum, reference: Reference, choice: Choice) -> BlockPlacement:
        """Where an input is before an EinSum reads it: as stored, or each piece on the first worker that reads it."""
        stored = self.model.stored.get(reference.tensor)
        if stored is not None:
            return stored
        digits = self._digits(einsum, choice)
        others = [at for at, label in enumerate(einsum.labels) if label not in reference.labels]
        return replace(self.needed(einsum, reference, choice), group=digits.selected(others))

    def _places(self, sending: Sending) -> list[State]:
        """The states in which operands read a tensor, and those in which it is before it is sent."""
        tensor, stored, places = sending.tensor, self.model.stored.get(sending.tensor), set()
        for einsum in self.graph.einsums:
            for operand in einsum.operands:
                for choice in self.choices[einsum.output.tensor] if operand.tensor == tensor else ():
                    state = self.needed(einsum, operand, choice).state()
                    self._origins[tensor, state] = self.available(einsum, operand, choice)
                    places.add(state)
            if einsum.output.tensor == tensor:
                places.update(self.result_state(einsum, choice) for choice in self.choices[tensor])
        if stored is not None:
            self._origins[tensor, stored.state()] = stored
            places.add(stored.state())
        return sorted(places)

    def origin(self, tensor: str, state: State) -> BlockPlacement:
        """Where an input is before it is sent to be in a state."""
        return self._origins[tensor, state]

    def blocks(self, tensor: str, state: State) -> Blocks:
        """The blocks of a tensor in a state that `result_state` or `required_state` returns."""
        return self.computed.blocks(state, self._shape(tensor), self.workers)

    def _shape(self, tensor: str) -> tuple[int, ...]:
        return self.graph.tensors[source_of(tensor)].shape

    def density(self, tensor: str) -> float:
        """The mean number of floats at an index of a tensor."""
        source = source_of(tensor)
        size = self.graph.tensors[source].size
        return self.model.floats(source) / size if size else 0.0

    def result_state(self, vertex: Vertex, choice: Choice) -> State:
        """The blocks of the result that workers have."""
        if isinstance(vertex, Sending):
            return choice
        key = vertex.output.tensor, choice
        state = self._result_states.get(key)
        if state is None:
            state = self._result_states[key] = self.result(vertex, choice).state()
        return state

    def required_state(self, vertex: Vertex, index: int, choice: Choice) -> State:
        """The blocks of operand `index` that calls read."""
        if isinstance(vertex, Sending):
            return choice
        key = vertex.output.tensor, vertex.operands[index].labels, choice[:-1]
        state = self._required_states.get(key)
        if state is None:
            state = self._required_states[key] = self.needed(vertex, vertex.operands[index], choice).state()
        return state

    def own_cost(self, vertex: Vertex, choice: Choice) -> float:
        """The floats of partial results and of inputs that an EinSum or a sending moves."""
        key = vertex.output.tensor, choice
        cost = self._own.get(key)
        if cost is None:
            cost = self._own[key] = sum(self._own_costs(vertex, choice))
        return cost

    def _own_costs(self, vertex: Vertex, choice: Choice) -> Iterator[float]:
        if isinstance(vertex, Sending):
            if not vertex.is_computed:
                yield self._sent(vertex.tensor, choice, self.origin(vertex.tensor, choice))
            return
        einsum = self.graph.producer_of(vertex.output.tensor)
        assert einsum is not None
        yield self.model.moved(einsum, choice[:-2]).aggregation
        for index, operand in enumerate(vertex.operands):
            if operand.tensor in self.graph.inputs:
                available = self.available(einsum, operand, choice)
                yield self._sent(operand.tensor, self.required_state(vertex, index, choice), available)

    def _sent(self, tensor: str, needed: State, stored: BlockPlacement) -> float:
        lacking = self.computed.lacking(needed, stored.state(), self._shape(tensor), self.workers)
        return self.density(tensor) * lacking

    def reads(self, vertex: Vertex, choice: Choice) -> int:
        """Operands are always read once."""
        return 1

    def repartition_cost(self, tensor: str, before: State, after: State, reads: int = 1) -> float:
        """The floats that calls lack of a tensor."""
        return self.density(tensor) * self.computed.lacking(after, before, self._shape(tensor), self.workers)

    def repartition_costs(
        self, tensor: str, before: Sequence[State], required: Sequence[tuple[State, int]]
    ) -> NDArray[np.float64]:
        """The floats that calls lack: a row for each of `before`, a column for each of `required`."""
        needed = [state for state, _ in required]
        return self.computed.lacking_table(needed, before, self._shape(tensor), self.workers) * self.density(tensor)

    def operations(self, einsum: EinSum, choice: Choice) -> Floats:
        """For every worker, the indices of the labels that its call has."""
        digits, tiles = self._digits(einsum, choice), choice[:-2]
        bounds = [self.graph.bound_of(einsum, label) for label in einsum.labels]
        return BlockPlacement(math.prod(digits.counts), tiles, digits).blocks(bounds, self.workers).sizes

    def _digits(self, einsum: EinSum, choice: Choice) -> Digits:
        key = einsum.output.tensor, choice[:-1]
        digits = self._numbered.get(key)
        if digits is None:
            counts = _pieces(self.graph, einsum, choice[:-2])
            digits = self._numbered[key] = numberings(counts)[choice[-2]]
        return digits


def _choices(graph: EinGraph, einsum: EinSum, tiles: Choice, is_coarse: bool) -> Iterator[Choice]:
    """A vector with the numberings of its calls, and with the places of its result."""
    counts = _pieces(graph, einsum, tiles)
    has_groups = any(
        count > 1 for label, count in zip(einsum.labels, counts, strict=True) if label in einsum.aggregated
    )
    axes = range(len(einsum.output.labels)) if has_groups else ()
    for number in range(1 if is_coarse else len(numberings(counts))):
        yield from ((*tiles, number, axis) for axis in (UNDIVIDED, *axes))


def _pieces(graph: EinGraph, einsum: EinSum, tiles: Choice) -> tuple[int, ...]:
    return pieces_of(tiles, [graph.bound_of(einsum, label) for label in einsum.labels])
