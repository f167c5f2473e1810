"""Decompose: the optimizers by name: the joint search, and the baselines that it is compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice, is_single_array
from sparseeinsum.decompose.clusters.cluster_plans import search_for_cluster
from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.clusters.costs import most_sending_seconds
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, price_choices
from sparseeinsum.decompose.fused_choices import with_fused_products
from sparseeinsum.decompose.joint import search_by_cover, search_greedily, search_jointly
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.search_space import SearchSpace, any_choice, no_sending
from sparseeinsum.decompose.search_tasks import Candidate, GraphPricing, task_of
from sparseeinsum.decompose.tiling import tiles_by_label
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, Reference, write_reference
from sparseeinsum.language.tensors import DEMOTED, Decomposition
from sparseeinsum.presentation.spelling import did_you_mean


@dataclass(frozen=True, slots=True)
class Optimizer:
    """A search, and the choices that it considers.

    Attributes:
        search: Returns the k cheapest candidates that it finds.
        allows: Whether a choice of an EinSum is considered.
        keeps_in_memory: Whether statements may keep operands in memory, instead of joining and grouping them.
        looks_for_fused_products: Whether pairs of EinSums that one kernel computes are compared with their choices.
    """

    search: Callable[[GraphPricing, int], list[Candidate]]
    allows: Callable[[EinSum, Choice], bool]
    keeps_in_memory: bool = True
    looks_for_fused_products: bool = False


def _is_relational(einsum: EinSum, choice: Choice) -> bool:
    """Whether every label that may be promoted is promoted, in tiles of one index."""
    return all(tile == 1 or label in einsum.demoted_labels for label, tile in zip(einsum.labels, choice, strict=True))


OPTIMIZERS = {
    "dp": Optimizer(search_jointly, any_choice, looks_for_fused_products=True),
    "cover": Optimizer(search_by_cover, any_choice),
    "greedy": Optimizer(search_greedily, any_choice),
    "relational": Optimizer(search_greedily, _is_relational, keeps_in_memory=False),
    "dense": Optimizer(search_greedily, lambda _, choice: is_single_array(choice), keeps_in_memory=False),
}


def optimizer_named(name: str) -> Optimizer:
    """The optimizer of a name.

    Raises:
        PlanError: There is none.
    """
    if name not in OPTIMIZERS:
        raise PlanError(f"there is no optimizer {name!r}; {did_you_mean(name, OPTIMIZERS, otherwise='choose one of')}")
    return OPTIMIZERS[name]


def optimise(
    optimizer: str,
    space: SearchSpace,
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
    k: int,
    machines: Machines | None = None,
) -> list[DecomposedGraph]:
    """The k cheapest plans that an optimizer finds, best first.

    Args:
        optimizer: The name of an optimizer; see `OPTIMIZERS`.
        space: The choices among which it searches, from `search_space`, with the cost model.
        stored: Decompositions of the inputs; an input without one can be read in any at no cost.
        layouts: Decompositions in which outputs are delivered; an output without one is delivered as it is computed.
        k: The number of plans.
        machines: The cluster that the plans are for; None for one machine.

    Raises:
        PlanError: There is no plan.
    """
    model, allowed = space.model, space.allowed()
    task = task_of(model, allowed, stored, layouts)
    chosen = OPTIMIZERS[optimizer]
    candidates = chosen.search(task, k) if machines is None else search_for_cluster(task, machines, chosen.search, k)
    plans = [price_choices(model, dict(candidate.choices), stored, layouts, machines) for candidate in candidates]
    possible = [plan for plan in plans if plan.impossible is None]
    if not possible:
        check_possible(plans[0], model)
    best = sorted(possible, key=lambda plan: plan.cost)
    if machines is None and chosen.looks_for_fused_products:
        fused = with_fused_products(best[0], model, allowed, layouts)
        best = [fused, *[plan for plan in best if plan.choices != fused.choices]][:k]
    return best


def search_space(
    optimizer: str,
    model: CostModel,
    stored: Mapping[str, Decomposition],
    pinned: Mapping[str, Mapping[str, int]],
    tiles: Sequence[int] = (),
    cut: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    searches_all: bool = False,
    machines: Machines | None = None,
) -> SearchSpace:
    """The choices among which an optimizer searches.

    Args:
        optimizer: The name of an optimizer; see `OPTIMIZERS`.
        model: The cost model, which has the memory limit.
        stored: Decompositions of the inputs.
        pinned: For some results, the labels to promote in their EinSum, with their tiles.
        tiles: Sizes of tiles, greater than 1, that any label may have, in addition to those that inputs are stored in.
        cut: For some results, the labels that are divided among workers, with the tile of one worker.
        searches_all: Whether to look at all choices even if that takes longer than a run.
        machines: The cluster that plans are for; None for one machine.

    Raises:
        PlanError: There is no such optimizer.
    """
    limiting = None if searches_all or tiles else stored  # who asks for tiles asks for a longer search
    tiles_of_labels = tiles_by_label(model.graph, stored, tiles)
    sending = no_sending if machines is None else partial(most_sending_seconds, model, machines.compared.costs)
    return SearchSpace(model, pinned, optimizer_named(optimizer).allows, tiles_of_labels, cut, limiting, sending)


def check_possible(plan: DecomposedGraph, model: CostModel) -> None:
    """Refuse a plan that exceeds the memory limit.

    Raises:
        PlanError: The plan has a repartition that needs more memory; the message names its tensor.
    """
    if plan.impossible is None:
        return
    tensor, decomposition = plan.impossible
    needed = model.memory.total_bytes_for(plan.repartitions[plan.impossible].needed_bytes)
    axes = (axis.name for axis in model.graph.tensors[tensor].axes)
    tiles = {axis: tile for axis, tile in zip(axes, decomposition.tiles, strict=True) if tile != DEMOTED}
    reference = Reference(tensor, tuple(axis.name for axis in model.graph.tensors[tensor].axes))
    raise PlanError(
        f"to bring {tensor} into the layout {write_reference(reference, tiles)} needs a memory_limit of {needed:,} "
        f"bytes, more than the {model.memory.total_bytes:,} given; raise memory_limit or promote more labels"
    )
