"""EinDecomp: what every worker sends and receives, when the calls of a partitioned graph run on workers.

A partition leaves open which worker runs which call, and where results are put. They are chosen together, so that the
fewest floats are sent; see `moves`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.choice_search import least_moves
from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning
from sparseeinsum.decompose.eindecomp.sendings import sent_name
from sparseeinsum.decompose.eindecomp.transfer import MovedFloats, TransferModel
from sparseeinsum.decompose.places.blocks import BlockPlacement, Floats
from sparseeinsum.decompose.places.computed_blocks import ComputedBlocks
from sparseeinsum.decompose.places.traffic import Traffic, sent_copies, sent_partials
from sparseeinsum.language.eingraph import EinSum, Reference

KINDS = ("join", "aggregation", "repartition")


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The transfers and operations of a partitioned graph.

    Attributes:
        traffic: The traffic of every kind.
        operations: Operations of every worker, as if tensors were dense: one for every index of an EinSum's labels.
        moved: For every EinSum, by the name of its result, the floats that it transfers.
        choices: For every EinSum, by the name of its result, its choice among `Moves`.
    """

    traffic: Mapping[str, Traffic]
    operations: Floats
    moved: Mapping[str, MovedFloats]
    choices: Mapping[str, Choice]

    @property
    def total(self) -> Traffic:
        """The traffic of all kinds together."""
        join, aggregation, repartition = (self.traffic[kind] for kind in KINDS)
        return join + aggregation + repartition

    @property
    def imbalance(self) -> float:
        """The operations of the busiest worker, divided by the mean."""
        mean = float(self.operations.mean())
        return float(self.operations.max()) / mean if mean else 1.0


def replay(model: TransferModel, partitioning: Partitioning, computed: ComputedBlocks | None = None) -> Replay:
    """Count the transfers of a partitioned graph, without its data.

    Args:
        model: Counts the floats.
        partitioning: The graph with its vectors.
        computed: Blocks that were computed before, such as by the search for these vectors.
    """
    vectors = {step.einsum.output.tensor: (step.choice,) for step in partitioning.steps}
    moves = Moves.of_vectors(model, vectors, partitioning.workers, computed=computed)
    return replay_choices(moves, dict(least_moves(moves).choices))


def replay_choices(moves: Moves, choices: Mapping[str, Choice]) -> Replay:
    """Count the transfers of choices."""
    nothing = Traffic(np.zeros(moves.workers), np.zeros(moves.workers))
    traffic = dict.fromkeys(KINDS, nothing)
    operations = np.zeros(moves.workers)
    moved, sent = {}, set()
    for einsum in moves.graph.einsums:
        name = einsum.output.tensor
        read = []
        for operand in einsum.operands:
            transfers = list(_reading(moves, einsum, operand, choices, operand.tensor in sent))
            sent.add(operand.tensor)
            for kind, transferred in transfers:
                traffic[kind] += transferred
            read.append(sum(transferred.floats for _, transferred in transfers))
        aggregated = _aggregation(moves, einsum, choices[name])
        traffic["aggregation"] += aggregated
        calls = moves.needed(einsum, einsum.output, choices[name]).calls
        moved[name] = MovedFloats(calls, tuple(read), aggregated.floats)
        operations += moves.operations(einsum, choices[name])
    return Replay(traffic, operations, moved, choices)


def _reading(
    moves: Moves, einsum: EinSum, operand: Reference, choices: Mapping[str, Choice], is_sent: bool
) -> Iterator[tuple[str, Traffic]]:
    """The kinds of the transfers that bring an operand to the calls that read it, and their traffic.

    A result that is computed in other pieces than it is read in is repartitioned; other operands are joined. The first
    of several operands that read a tensor has the traffic that sends it for all of them.
    """
    choice, tensor = choices[einsum.output.tensor], operand.tensor
    producer, destination = moves.graph.producer_of(tensor), choices.get(sent_name(tensor))
    places = [] if destination is None else [BlockPlacement.of_state(destination)]
    if producer is not None and not is_sent:
        places.insert(0, moves.result(producer, choices[tensor]))
    elif destination is None:
        places.insert(0, moves.available(einsum, operand, choice))
    elif not is_sent:
        places.insert(0, moves.origin(tensor, destination))
    for before, after in pairwise((*places, moves.needed(einsum, operand, choice))):
        kind = "join" if before.tiles == after.tiles else "repartition"
        present, required = (moves.blocks(tensor, place.state()) for place in (before, after))
        yield kind, sent_copies(present, required, moves.density(tensor))


def _aggregation(moves: Moves, einsum: EinSum, choice: Choice) -> Traffic:
    """The traffic of partial results to the workers that aggregate them."""
    name = einsum.output.tensor
    computed = moves.blocks(name, moves.needed(einsum, einsum.output, choice).state())
    aggregated = moves.blocks(name, moves.result_state(einsum, choice))
    return sent_partials(computed, aggregated, moves.model.moved(einsum, choice[:-2]).aggregation)
