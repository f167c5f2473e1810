"""EinDecomp: a cost model for several workers with fixed partition vectors, which adds the transfers between them.

A vector transfers a certain multiple of a tensor's size, more than 1 if several workers get the same piece. The size in
bytes, including keys, depends on the decomposition. So the model adds the transferred bytes to the work of every
choice. Its seconds are those of all workers together, including the time in which workers wait for the one with the
largest piece of an EinSum.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum
from sparseeinsum.decompose.eindecomp.partitioning import PartitionedEinSum, Partitioning
from sparseeinsum.decompose.eindecomp.replay import Replay
from sparseeinsum.decompose.eindecomp.transfer import MovedFloats
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.tensors import extent_of
from sparseeinsum.semantics.exactness import Absence


@dataclass(frozen=True, slots=True)
class WorkersShares:
    """The work and transfers of an EinSum on several workers, relative to its total work and its tensors.

    Attributes:
        busiest: The work of the busiest worker divided by the mean: more than 1 if pieces are uneven or too few.
        operands: For each operand, its name and the multiple of its size that is transferred.
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


def with_workers(model: CostModel, replayed: Replay, partitioning: Partitioning) -> WorkersCostModel:
    """The cost model for several workers.

    Args:
        model: The cost model of one machine.
        replayed: What workers send each other.
        partitioning: The vectors with which they do.
    """
    options = {option.name: getattr(model, option.name) for option in fields(CostModel) if option.init}
    shares = {}
    for step in partitioning.steps:
        name = step.einsum.output.tensor
        shares[name] = _shares(model, step, replayed.moved[name], partitioning.workers)
    return WorkersCostModel(**options, shares=shares)


def _shares(model: CostModel, step: PartitionedEinSum, moved: MovedFloats, workers: int) -> WorkersShares:
    """The shares of one EinSum, and of what it transfers."""
    einsum = step.einsum
    operands = [
        (operand.tensor, _share(read, model.statistics[operand.tensor].entries))
        for operand, read in zip(einsum.operands, moved.read, strict=True)
    ]
    bounds = [max(model.graph.bound_of(einsum, label), 1) for label in einsum.labels]
    largest = math.prod(extent_of(tile, bound) / bound for tile, bound in zip(step.choice, bounds, strict=True))
    result = _share(moved.aggregation, model.statistics[einsum.output.tensor].entries)
    return WorkersShares(largest * workers, tuple(operands), result)


def _share(moved: float, floats: float) -> float:
    return moved / floats if floats else 0.0
