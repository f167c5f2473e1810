"""EinDecomp: the cost model of one machine with what workers send each other, for vectors that are chosen already.

What a vector moves of a tensor is a share of all that the tensor takes, more than 1 where several workers get the same;
what the tensor takes, keys included, depends on the tiles that the model prices. So bytes that are moved are priced
together with the work of every choice. Seconds are of all workers together, those included in which some wait for the
one that has the largest piece of an EinSum.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.eindecomp.search import TransferTask, Vectors
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import extent_of
from sparseeinsum.semantics.exactness import Absence


@dataclass(frozen=True, slots=True)
class WorkersShares:
    """What an EinSum takes of workers.

    Attributes:
        busiest: Work of the busiest worker, in times of the mean: more than 1 where pieces are uneven or too few.
        operands: Their names, and how often all of each is moved: into calls, and before that to be cut otherwise.
        result: How often all of the result is moved, as partial results.
    """

    busiest: float
    operands: tuple[tuple[str, float], ...]
    result: float


@dataclass(frozen=True)
class WorkersCostModel(CostModel):
    """A cost model that counts what is moved between workers, and that they wait, too.

    Attributes:
        shares: What EinSums take, by result; others, as those of a plan made anew on the way, are of one worker.
    """

    shares: Mapping[str, WorkersShares] = field(default_factory=dict)

    def _price(self, einsum: EinSum, choice: Choice, absence: Absence, index: int | None = None) -> VertexCost:
        cost = super()._price(einsum, choice, absence, index)
        shares = self.shares.get(einsum.output.tensor)
        if shares is None or [name for name, _ in shares.operands] != [each.tensor for each in einsum.operands]:
            return cost
        read = 0.0
        for operand, dense, (_, share) in zip(einsum.operands, absence.dense, shares.operands, strict=True):
            found = self._operand_sizes(operand, reference_tiles(einsum, operand, choice), dense)
            read += share * found.tuples * found.tuple_bytes
        name, tiles = einsum.output.tensor, result_tiles(einsum, choice)
        made = shares.result * self.tuples(name, tiles) * self.tuple_bytes(name, tiles)
        join = cost.join.times(shares.busiest) + Work(bytes_moved=read)
        aggregation = cost.aggregation.times(shares.busiest) + Work(bytes_moved=made)
        filling = cost.filling.times(shares.busiest)
        seconds = (join + aggregation + filling).seconds(self.constants)
        return replace(cost, join=join, aggregation=aggregation, filling=filling, seconds=seconds)


def with_workers(model: CostModel, task: TransferTask, vectors: Vectors, workers: int) -> WorkersCostModel:
    """The same model with what these vectors take of so many workers."""
    given = {each.name: getattr(model, each.name) for each in fields(CostModel) if each.init}
    tiles = {each.output.tensor: result_tiles(each, vectors[each.output.tensor]) for each in model.graph.einsums}
    shares = {
        each.output.tensor: _shares(task, each, vectors[each.output.tensor], tiles, workers)
        for each in model.graph.einsums
    }
    return WorkersCostModel(**given, shares=shares)


def _shares(
    task: TransferTask, einsum: EinSum, vector: Choice, tiles: Mapping[str, Choice], workers: int
) -> WorkersShares:
    moved = task.model.moved(einsum, vector)
    operands = []
    for operand in einsum.operands:
        name, wanted = operand.tensor, reference_tiles(einsum, operand, vector)
        pieces = task.model.pieces(name, wanted)
        joined = moved.calls / pieces.count if pieces.count else 0.0
        before = task.repartition(name, tiles[name], wanted) if name in tiles else 0.0
        operands.append((name, joined + (before / pieces.floats if pieces.floats else 0.0)))
    floats = task.model.floats(einsum.output.tensor)
    bounds = [max(task.model.graph.bound_of(einsum, label), 1) for label in einsum.labels]
    largest = math.prod(extent_of(tile, bound) / bound for tile, bound in zip(vector, bounds, strict=True))
    return WorkersShares(largest * workers, tuple(operands), moved.aggregation / floats if floats else 0.0)
