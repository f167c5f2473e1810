"""EinDecomp: plans for several workers: which labels are cut among them, together with what each computes by itself.

Vectors that move few floats are tried with the best plan that keeps to them: a label that is cut is promoted, in the
tiles of the vector or in parts of them, and what is moved is priced with the rest. How many floats a vector moves
depends on how tensors are held, as entries or arrays, which the plan says: so the search goes on with what was found,
until it finds nothing cheaper.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.choice import Choice, promoted_tiles, reference_tiles
from sparseeinsum.decompose.choices import fixed_tiles
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning, partitioned
from sparseeinsum.decompose.eindecomp.pricing import with_workers
from sparseeinsum.decompose.eindecomp.search import Found, TransferTask, search_best
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vectors import viable_choices
from sparseeinsum.decompose.joint import TABLE_LIMIT
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import DEMOTED

FLOAT_BYTES = 8
_CANDIDATES = 4  # vectors that are tried with the local plans that they allow, in every round
_MOST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class WorkersPlan:
    """A plan for several workers.

    Attributes:
        alternatives: Plans that keep to the vectors.
        task: Counts the floats that are moved, of tensors held as the best of these plans holds them.
        partitioning: The vectors.
    """

    alternatives: Alternatives
    task: TransferTask
    partitioning: Partitioning


@dataclass(frozen=True, slots=True)
class _Tried:
    """Vectors, the plans that keep to them, and the seconds that the best of these takes all workers together."""

    found: Found
    alternatives: Alternatives
    task: TransferTask
    seconds: float


def plan_for_workers(alternatives: Alternatives, workers: int) -> WorkersPlan:
    """Cut the labels of a graph among workers.

    Args:
        alternatives: Plans of one worker; promoted and pinned labels are cut only as these wishes allow.
        workers: A power of two.

    Raises:
        PlanError: Workers are no power of two, or no plan keeps to what is asked.
    """
    model = alternatives.model
    choices = {each.output.tensor: _vectors(alternatives, each, workers) for each in model.graph.einsums}
    stored = {name: _floats(model, name, each.tiles) for name, each in alternatives.stored.items()}
    task = TransferTask(TransferModel(model.graph, model.statistics, model.evaluations, stored), choices)
    best: _Tried | None = None
    for _ in range(_MOST_ROUNDS):
        tried = _tried(alternatives, task, workers)
        if best is not None and tried.seconds >= best.seconds:
            break
        best = tried
        task = tried.task
    assert best is not None
    floats = best.task.floats(best.found.vectors)
    found = Found(best.found.vectors, floats, is_optimal=False)
    return WorkersPlan(best.alternatives, best.task, partitioned(best.task, found, workers))


def _tried(alternatives: Alternatives, task: TransferTask, workers: int) -> _Tried:
    """The best of the vectors that move the fewest floats.

    Raises:
        PlanError: None of them has a plan.
    """
    ways, refused = [], None
    for found in search_best(task, _CANDIDATES, TABLE_LIMIT):
        cut = {
            einsum.output.tensor: promoted_tiles(einsum, found.vectors[einsum.output.tensor])
            for einsum in alternatives.model.graph.einsums
        }
        within = replace(alternatives, model=with_workers(alternatives.model, task, found.vectors, workers), cut=cut)
        try:
            (plan,) = within.best(1)
        except PlanError as error:
            refused = error
            continue
        held = replace(task, model=task.model.holding(_held(within.model, plan)))
        ways.append(_Tried(found, within, held, plan.seconds))
    if not ways:
        assert refused is not None
        raise refused
    return min(ways, key=lambda way: way.seconds)


def _held(model: CostModel, plan: DecomposedGraph) -> dict[str, float]:
    """Floats of every tensor as a plan has it: results as they come out, inputs as their first reader wants them."""
    held: dict[str, float] = {}
    for step in plan.steps:
        for operand in step.einsum.operands:
            tiles = reference_tiles(step.einsum, operand, step.choice)
            held.setdefault(operand.tensor, _floats(model, operand.tensor, tiles))
        name = step.einsum.output.tensor
        held[name] = _floats(model, name, step.result.tiles)
    return held


def _floats(model: CostModel, tensor: str, tiles: Choice) -> float:
    """Of all tuples of a tensor, keys included."""
    return model.tuples(tensor, tiles) * model.tuple_bytes(tensor, tiles) / FLOAT_BYTES


def _vectors(alternatives: Alternatives, einsum: EinSum, workers: int) -> tuple[Choice, ...]:
    """The vectors that keep to what is promoted by hand and pinned, of as many workers as that has work for."""
    graph = alternatives.model.graph
    bounds = [graph.bound_of(einsum, label) for label in einsum.labels]
    wished = _wished(alternatives.pinned.get(einsum.output.tensor), einsum)
    whole = {at: 1 for at, label in enumerate(einsum.labels) if wished.get(label) == DEMOTED}
    tiles = {at: wished.get(label, 1) for at, label in enumerate(einsum.labels) if at not in whole}
    while True:
        found = viable_choices(bounds, workers, whole)
        fitting = tuple(each for each in found if all(each[at] % tile == 0 for at, tile in tiles.items()))
        if fitting:
            return fitting
        workers //= 2


def _wished(pinned: Mapping[str, int] | None, einsum: EinSum) -> Mapping[str, int]:
    """Tiles of the labels that are not free."""
    if pinned is None:
        return fixed_tiles(einsum)
    return {label: pinned.get(label, DEMOTED) for label in einsum.labels}
