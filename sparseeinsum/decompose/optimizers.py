"""Decompose: the optimizers by name: the dynamic programme, and the baselines that it is measured against."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.choices import allowed_choices
from sparseeinsum.decompose.clusters.cluster_plans import search_for_cluster
from sparseeinsum.decompose.clusters.pricing import Machines
from sparseeinsum.decompose.joint import search_by_cover, search_greedily, search_jointly
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph, price_choices
from sparseeinsum.decompose.search import Candidate, GraphPricing, task_of
from sparseeinsum.decompose.tiling import tiles_by_label
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, Reference, write_reference
from sparseeinsum.language.tensors import DEMOTED, Decomposition


@dataclass(frozen=True, slots=True)
class Optimizer:
    """How one optimizer searches.

    Attributes:
        search: Finds so many plans.
        allows: What a choice must satisfy.
    """

    search: Callable[[GraphPricing, int], list[Candidate]]
    allows: Callable[[EinSum, Choice], bool]


def _is_relational(einsum: EinSum, choice: Choice) -> bool:
    """Whether every label that may be a key is one."""
    return all(tile == 1 or label in einsum.demoted_labels for label, tile in zip(einsum.labels, choice, strict=True))


OPTIMIZERS = {
    "dp": Optimizer(search_jointly, lambda *_: True),
    "cover": Optimizer(search_by_cover, lambda *_: True),
    "greedy": Optimizer(search_greedily, lambda *_: True),
    "relational": Optimizer(search_greedily, _is_relational),
    "dense": Optimizer(search_greedily, lambda _, choice: all(tile == DEMOTED for tile in choice)),
}


def optimise(
    optimizer: str,
    model: CostModel,
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
    pinned: Mapping[str, Mapping[str, int]],
    k: int,
    tiles: Sequence[int] = (),
    cut: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    machines: Machines | None = None,
) -> list[DecomposedGraph]:
    """The k cheapest plans that an optimizer finds, best first.

    Args:
        optimizer: A name of OPTIMIZERS.
        model: Prices choices, and knows the memory.
        stored: Decomposition of every input; one that has none is free in any.
        layouts: Decomposition of every output to be delivered; one that has none is delivered as it comes.
        pinned: For some results, the labels to promote in the EinSum that computes them, and their tiles.
        k: How many plans.
        tiles: Tiles of several indices that any label may have; besides them those that inputs are stored in.
        cut: For some results, labels that are cut among workers, and the tiles that one worker has of them.
        machines: A cluster, where the plans are for one.

    Raises:
        PlanError: There is no such optimizer, or no plan.
    """
    if optimizer not in OPTIMIZERS:
        near = difflib.get_close_matches(optimizer, OPTIMIZERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(OPTIMIZERS)}"
        raise PlanError(f"there is no optimizer {optimizer!r}; {hint}")
    chosen = OPTIMIZERS[optimizer]
    candidates = tiles_by_label(model.graph, stored, tiles)
    choices = allowed_choices(model, pinned, chosen.allows, candidates, cut)
    task = task_of(model, choices, stored, layouts)
    searched = chosen.search(task, k) if machines is None else search_for_cluster(task, machines, chosen.search, k)
    found = [price_choices(model, dict(each.choices), stored, layouts, machines) for each in searched]
    possible = [plan for plan in found if plan.impossible is None]
    if not possible:
        check_possible(found[0], model)
    return sorted(possible, key=lambda plan: plan.seconds)


def check_possible(plan: DecomposedGraph, model: CostModel) -> None:
    """Refuse a plan that memory is too small for.

    Raises:
        PlanError: It names the tensor that cannot be put together.
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
