"""EinDecomp: plans for several workers: partition vectors together with the plan that each worker runs.

For each of some vectors with few transfers, the best plan that is consistent with them is searched: it promotes the
labels that the vectors cut, in the tiles of the vector or in divisors of them, and its price includes the transfers.
How many floats a vector transfers depends on whether tensors are entries or arrays, which the plan decides. So the
search is repeated once with the sizes of the best plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.choice import Choice, promoted_tiles, reference_tiles
from sparseeinsum.decompose.choices import fixed_tiles
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.eindecomp.moves_search import search_moves
from sparseeinsum.decompose.eindecomp.objectives import SECONDS
from sparseeinsum.decompose.eindecomp.partition_vectors import fewer_workers, viable_choices
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning, partition_graph
from sparseeinsum.decompose.eindecomp.replay import replay
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, VectorAssignment
from sparseeinsum.decompose.eindecomp.workers_cost_model import with_workers
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import DEMOTED

FLOAT_BYTES = 8
_CANDIDATES = 4  # assignments of vectors that every round searches the best plan for


@dataclass(frozen=True, slots=True)
class WorkersPlan:
    """A plan for several workers.

    Attributes:
        alternatives: The plans that are consistent with the vectors.
        task: Counts the transferred floats, with tensors of the size that they have in the best of these plans.
        partitioning: The graph with its vectors.
        cost: What the objective minimises: the seconds or the floats of the best of these plans.
    """

    alternatives: Alternatives
    task: TransferTask
    partitioning: Partitioning
    cost: float


@dataclass(frozen=True, slots=True)
class _Trial:
    """Vectors, the plans that are consistent with them, and the seconds of the best plan on all workers together."""

    assignment: VectorAssignment
    alternatives: Alternatives
    task: TransferTask
    seconds: float

    def cost(self, objective: str, workers: int) -> float:
        """The seconds, or the floats that workers send each other, as the objective asks."""
        if objective == SECONDS:
            return self.seconds
        return replay(self.task.model, partition_graph(self.task, self.assignment, workers)).total.floats


def plan_for_workers(alternatives: Alternatives, workers: int, objective: str = SECONDS) -> WorkersPlan:
    """Plan a graph for several workers.

    Args:
        alternatives: The plans of one worker; promoted and pinned labels are cut only as they allow.
        workers: The number of workers.
        objective: `seconds` of all workers together, with transfer and waiting; or the `floats` that they send.

    Raises:
        PlanError: There is no plan, or `workers` is no whole number of 1 or more.
    """
    model = alternatives.model
    choices = {einsum.output.tensor: _vectors(alternatives, einsum, workers) for einsum in model.graph.einsums}
    stored = {name: _floats(model, name, stored.tiles) for name, stored in alternatives.stored.items()}
    task = TransferTask(TransferModel(model.graph, model.statistics, model.evaluations, stored), choices)
    costs = [(trial.cost(objective, workers), trial) for trial in _trials(alternatives, task, workers)]
    fastest = min((trial for _, trial in costs), key=lambda trial: trial.seconds)
    for resized in {id(trial): trial.task for trial in (fastest, _cheapest(costs)[1])}.values():
        costs += [(trial.cost(objective, workers), trial) for trial in _trials(alternatives, resized, workers)]
    cost, best = _cheapest(costs)
    vectors = best.assignment.vectors
    assignment = VectorAssignment(vectors, best.task.floats(vectors), is_optimal=False)
    return WorkersPlan(best.alternatives, best.task, partition_graph(best.task, assignment, workers), cost)


def _cheapest(costs: Sequence[tuple[float, _Trial]]) -> tuple[float, _Trial]:
    return min(costs, key=lambda pair: pair[0])


def _trials(alternatives: Alternatives, task: TransferTask, workers: int) -> list[_Trial]:
    """The plans for the assignments with the fewest transfers.

    Raises:
        PlanError: None of them has a plan.
    """
    trials, refusal = [], None
    for assignment in search_moves(task, workers, _CANDIDATES):
        vectors = assignment.vectors
        cut = {
            einsum.output.tensor: promoted_tiles(einsum, vectors[einsum.output.tensor])
            for einsum in alternatives.model.graph.einsums
        }
        replayed = replay(task.model, partition_graph(task, assignment, workers))
        model = with_workers(alternatives.model, replayed, vectors, workers)
        consistent = replace(alternatives, model=model, cut=cut)
        try:
            (plan,) = consistent.best(1)
        except PlanError as error:
            refusal = error
            continue
        resized = replace(task, model=task.model.with_stored_floats(_plan_floats(consistent.model, plan)))
        trials.append(_Trial(assignment, consistent, resized, plan.seconds))
    if not trials:
        assert refusal is not None
        raise refusal
    return trials


def _plan_floats(model: CostModel, plan: DecomposedGraph) -> dict[str, float]:
    """The floats of every tensor in a plan: results as they are computed, inputs as their first reader reads them."""
    floats: dict[str, float] = {}
    for step in plan.steps:
        for operand in step.einsum.operands:
            tiles = reference_tiles(step.einsum, operand, step.choice)
            floats.setdefault(operand.tensor, _floats(model, operand.tensor, tiles))
        name = step.einsum.output.tensor
        floats[name] = _floats(model, name, step.result.tiles)
    return floats


def _floats(model: CostModel, tensor: str, tiles: Choice) -> float:
    """The floats of all tuples of a tensor, including keys."""
    return model.sizes.relation_bytes(tensor, tiles) / FLOAT_BYTES


def _vectors(alternatives: Alternatives, einsum: EinSum, workers: int) -> tuple[Choice, ...]:
    """The vectors that agree with promoted and pinned labels; for fewer workers if those leave too few pieces."""
    graph = alternatives.model.graph
    bounds = [graph.bound_of(einsum, label) for label in einsum.labels]
    fixed = _fixed_tiles(alternatives.pinned.get(einsum.output.tensor), einsum)
    uncut = {position: 1 for position, label in enumerate(einsum.labels) if fixed.get(label) == DEMOTED}
    tiles = {position: fixed.get(label, 1) for position, label in enumerate(einsum.labels) if position not in uncut}
    while True:
        vectors = viable_choices(bounds, workers, uncut)
        fitting = tuple(
            vector for vector in vectors if all(vector[position] % tile == 0 for position, tile in tiles.items())
        )
        if fitting:
            return fitting
        workers = fewer_workers(workers)


def _fixed_tiles(pinned: Mapping[str, int] | None, einsum: EinSum) -> Mapping[str, int]:
    """The tiles of the labels that are not free: of all labels if they are pinned."""
    if pinned is None:
        return fixed_tiles(einsum)
    return {label: pinned.get(label, DEMOTED) for label in einsum.labels}
