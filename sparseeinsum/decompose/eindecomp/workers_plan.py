"""EinDecomp: plans for several workers: partition vectors together with the plan that each worker runs.

For each of some vectors with few transfers, the best plan that is consistent with them is searched: it promotes the
labels that the vectors cut, in the tiles of the vector or in divisors of them, and its price includes the transfers.
For the fewest seconds, keys count when vectors are compared, because they take time; the floats of a plan have none.
"""

from dataclasses import dataclass, replace
from itertools import islice

from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.choice import promoted_tiles
from sparseeinsum.decompose.eindecomp.moves_search import search_moves
from sparseeinsum.decompose.eindecomp.objectives import FLOATS, SECONDS
from sparseeinsum.decompose.eindecomp.partition_vectors import partition_choices
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning, partition_graph
from sparseeinsum.decompose.eindecomp.replay import replay
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask
from sparseeinsum.decompose.eindecomp.workers_cost_model import with_workers
from sparseeinsum.decompose.places.computed_blocks import ComputedBlocks
from sparseeinsum.errors import PlanError

_CANDIDATES = 8  # assignments of vectors that the best plan is searched for


@dataclass(frozen=True, slots=True)
class WorkersPlan:
    """A plan for several workers.

    Attributes:
        alternatives: The plans that are consistent with the vectors.
        task: The possible vectors, and the floats that they transfer.
        partitioning: The graph with its vectors.
        cost: What the objective minimises: the seconds of the best of these plans on all workers together, with
            transfer and waiting, or the floats that workers send each other.
    """

    alternatives: Alternatives
    task: TransferTask
    partitioning: Partitioning
    cost: float


def plan_for_workers(alternatives: Alternatives, workers: int, objective: str = SECONDS) -> WorkersPlan:
    """Plan a graph for several workers.

    Args:
        alternatives: The plans of one worker; promoted and pinned labels are cut only as they allow.
        workers: The number of workers.
        objective: What to minimise: `seconds` or `floats`.

    Raises:
        PlanError: There is no plan, or `workers` is no whole number of 1 or more.
    """
    model = alternatives.model
    choices = partition_choices(model.graph, workers, alternatives.pinned)
    task = TransferTask(TransferModel(model.graph, model.statistics, model.evaluations), choices)
    plans, refusal, computed = [], PlanError("no labels can be cut"), ComputedBlocks()
    compared = replace(task, model=replace(task.model, counts_keys=objective == SECONDS))
    for assignment in islice(search_moves(compared, workers, computed), _CANDIDATES):
        partitioning = partition_graph(task, assignment, workers)
        try:
            plans.append(_consistent_plan(alternatives, task, partitioning, objective, computed))
        except PlanError as error:
            refusal = error
            continue
        if objective == FLOATS:  # the first assignment sends the fewest
            break
    if not plans:
        raise refusal
    return min(plans, key=lambda plan: plan.cost)


def _consistent_plan(
    alternatives: Alternatives,
    task: TransferTask,
    partitioning: Partitioning,
    objective: str,
    computed: ComputedBlocks,
) -> WorkersPlan:
    """The best plan that is consistent with the vectors of a partition.

    Raises:
        PlanError: There is none.
    """
    cut = {step.einsum.output.tensor: promoted_tiles(step.einsum, step.choice) for step in partitioning.steps}
    replayed = replay(task.model, partitioning, computed)
    model = with_workers(alternatives.model, replayed, partitioning)
    consistent = replace(alternatives, model=model, cut=cut)
    (plan,) = consistent.best(1)
    cost = plan.seconds if objective == SECONDS else replayed.total.floats
    return WorkersPlan(consistent, task, partitioning, cost)
