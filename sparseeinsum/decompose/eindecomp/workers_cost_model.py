"""EinDecomp: a cost model for several workers with fixed partition vectors, which adds the transfers between them.

A vector transfers a certain multiple of a tensor's size, more than 1 if several workers get the same piece. The size in
bytes, including keys, depends on the decomposition. So the model adds the transferred bytes to the work of every
choice. Its seconds are those of all workers together, including the time in which workers wait for the one with the
largest piece of an EinSum.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, Vectors
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import extent_of
from sparseeinsum.semantics.exactness import Absence


@dataclass(frozen=True, slots=True)
class WorkersShares:
    """The work and transfers of an EinSum on several workers, relative to its total work and its tensors.

    Attributes:
        busiest: The work of the busiest worker divided by the mean: more than 1 if pieces are uneven or too few.
        operands: For each operand, its name and the multiple of its size that is transferred, into calls or by a
            repartition before.
        result: The multiple of the result's size that is transferred as partial results.
    """

    busiest: float
    operands: tuple[tuple[str, float], ...]
    result: float


@dataclass(frozen=True)
class WorkersCostModel(CostModel):
    """A cost model that adds the transfers between workers, and the time that workers wait.

    Attributes:
        shares: The shares of EinSums, by the name of the result. Others, such as those that replanning adds, are
            priced as on one worker.
    """

    shares: Mapping[str, WorkersShares] = field(default_factory=dict)

    def _price(self, decomposed: DecomposedEinSum, absence: Absence, index: int | None = None) -> VertexCost:
        cost = super()._price(decomposed, absence, index)
        operands, shares = decomposed.einsum.operands, self.shares.get(decomposed.name)
        if shares is None or [name for name, _ in shares.operands] != [operand.tensor for operand in operands]:
            return cost
        read = 0.0
        moved = zip(operands, decomposed.operands, absence.dense, shares.operands, strict=True)
        for operand, tiles, dense, (_, share) in moved:
            sizes = self.sizes.operand(operand, tiles, dense)
            read += share * sizes.tuples * sizes.tuple_bytes
        name, tiles = decomposed.name, decomposed.result
        written = shares.result * self.sizes.relation_bytes(name, tiles)
        join = cost.join.times(shares.busiest) + Work(bytes_moved=read)
        aggregation = cost.aggregation.times(shares.busiest) + Work(bytes_moved=written)
        filling = cost.filling.times(shares.busiest)
        seconds = sum([work.seconds(self.constants) for work in (join, aggregation, filling)])
        return replace(cost, join=join, aggregation=aggregation, filling=filling, seconds=seconds)


def with_workers(model: CostModel, task: TransferTask, vectors: Vectors, workers: int) -> WorkersCostModel:
    """The cost model for several workers with these vectors.

    Args:
        model: The cost model of one machine.
        task: Counts the floats that the vectors transfer.
        vectors: The vector of every EinSum.
        workers: The number of workers.
    """
    options = {option.name: getattr(model, option.name) for option in fields(CostModel) if option.init}
    tiles = {
        einsum.output.tensor: result_tiles(einsum, vectors[einsum.output.tensor]) for einsum in model.graph.einsums
    }
    shares = {
        einsum.output.tensor: _shares(task, einsum, vectors[einsum.output.tensor], tiles, workers)
        for einsum in model.graph.einsums
    }
    return WorkersCostModel(**options, shares=shares)


def _shares(
    task: TransferTask, einsum: EinSum, vector: Choice, tiles: Mapping[str, Choice], workers: int
) -> WorkersShares:
    """The shares of one EinSum with a vector, if results have these tiles."""
    moved = task.model.moved(einsum, vector)
    operands = []
    for operand in einsum.operands:
        name, required = operand.tensor, reference_tiles(einsum, operand, vector)
        pieces = task.model.pieces(name, required)
        joined = moved.calls / pieces.count if pieces.count else 0.0
        before = task.repartition(name, tiles[name], required) if name in tiles else 0.0
        operands.append((name, joined + (before / pieces.floats if pieces.floats else 0.0)))
    floats = task.model.floats(einsum.output.tensor)
    bounds = [max(task.model.graph.bound_of(einsum, label), 1) for label in einsum.labels]
    largest = math.prod(extent_of(tile, bound) / bound for tile, bound in zip(vector, bounds, strict=True))
    return WorkersShares(largest * workers, tuple(operands), moved.aggregation / floats if floats else 0.0)
