"""Plans: what several sites send each other if they compute a plan, as its decompositions allow."""

from collections.abc import Mapping

from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.choice import promoted_tiles
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.eindecomp.baselines import named_axis
from sparseeinsum.decompose.eindecomp.moves_search import search_moves
from sparseeinsum.decompose.eindecomp.partition_vectors import check_workers, partition_choices
from sparseeinsum.decompose.eindecomp.partitioning import partition_graph
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask
from sparseeinsum.decompose.places.blocks import BlockPlacement
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.presentation.spelling import did_you_mean

InputPlace = (
    Distribution | int | str
)  # where an input is: a distribution, the axis that it is cut along, or `everywhere`


def distribute_plan(
    alternatives: Alternatives,
    plan: DecomposedGraph,
    sites: int | None,
    stored: Mapping[str, InputPlace] | None,
) -> PartitionedProgram:
    """Cut a plan among sites so that they send each other the fewest floats; the pieces consist of whole tuples.

    Args:
        alternatives: What the plan was chosen from.
        plan: The plan.
        sites: The number of sites; by default the machines of the cluster that the plan is for.
        stored: Where inputs are, by name; by default as on that cluster. Others are available in any partition.

    Raises:
        PlanError: The plan is for one machine and `sites` is missing, or a place does not exist.
    """
    machines, model = alternatives.machines, alternatives.model
    if machines is not None:
        sites = machines.costs.cluster.sites if sites is None else sites
        stored = machines.distributions if stored is None else stored
    if sites is None:
        raise PlanError("the plan is for one machine; say how many sites there are")
    blocks = _blocks(model.graph, check_workers(sites, "sites"), {} if stored is None else stored)
    tiles = {step.einsum.output.tensor: promoted_tiles(step.einsum, step.choice) for step in plan.steps}
    task = TransferTask(
        TransferModel(model.graph, model.statistics, model.evaluations, blocks),
        partition_choices(model.graph, sites, tiles),
    )
    best = next(search_moves(task, sites))
    return PartitionedProgram(task, partition_graph(task, best, sites))


def _blocks(graph: EinGraph, sites: int, places: Mapping[str, InputPlace]) -> dict[str, BlockPlacement]:
    if not isinstance(places, Mapping):
        raise PlanError(f"stored is {places!r}; give places by name, as in {{'A': 0, 'B': 'everywhere'}}")
    inputs = graph.inputs
    for name in places:
        if name not in inputs:
            raise PlanError(f"{name} is placed, and no input; {did_you_mean(name, inputs, 'inputs are')}")
    return {
        name: BlockPlacement.of_distribution(_distribution(graph, name, place), inputs[name].shape, sites)
        for name, place in places.items()
    }


def _distribution(graph: EinGraph, name: str, place: InputPlace) -> Distribution:
    if isinstance(place, Distribution):
        return place
    return Replicated() if place == "everywhere" else Hashed(named_axis(graph, name, place))
