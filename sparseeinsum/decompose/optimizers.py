"""Decompose: the optimizers by name: the dynamic programme, and the baselines that it is measured against."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choices import allowed_choices
from sparseeinsum.decompose.cover import Search, single_rounds, tree_rounds
from sparseeinsum.decompose.model import Choice, CostModel
from sparseeinsum.decompose.plan import DecomposedGraph, price_choices
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, Decomposition


@dataclass(frozen=True, slots=True)
class Optimizer:
    """How one optimizer searches.

    Attributes:
        rounds: Parts of the graph that it optimises one after the other.
        allows: What a choice must satisfy.
    """

    rounds: Callable[[EinGraph], Sequence[tuple[EinSum, ...]]]
    allows: Callable[[Choice], bool]


OPTIMIZERS = {
    "dp": Optimizer(tree_rounds, lambda _: True),
    "greedy": Optimizer(single_rounds, lambda _: True),
    "relational": Optimizer(single_rounds, lambda choice: all(tile == 1 for tile in choice)),
    "dense": Optimizer(single_rounds, lambda choice: all(tile == DEMOTED for tile in choice)),
}


def optimise(
    optimizer: str,
    model: CostModel,
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
    memory_limit: int,
    pinned: Mapping[str, Mapping[str, int]],
    k: int,
) -> list[DecomposedGraph]:
    """The k cheapest plans that an optimizer finds, best first.

    Args:
        optimizer: A name of OPTIMIZERS.
        model: Prices choices.
        stored: Decomposition of every input; one that has none is free in any.
        layouts: Decomposition of every output to be delivered; one that has none is delivered as it comes.
        memory_limit: Bytes that a run may take.
        pinned: For some results, the labels to promote in the EinSum that computes them, and their tiles.
        k: How many plans.

    Raises:
        PlanError: There is no such optimizer, or no plan.
    """
    if optimizer not in OPTIMIZERS:
        near = difflib.get_close_matches(optimizer, OPTIMIZERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(OPTIMIZERS)}"
        raise PlanError(f"there is no optimizer {optimizer!r}; {hint}")
    chosen = OPTIMIZERS[optimizer]
    choices = allowed_choices(model, memory_limit, pinned, chosen.allows)
    search = Search(
        model,
        choices,
        {name: _available(model, name, stored.get(name)) for name in _inputs(model.graph)},
        {name: layout.tiles for name, layout in layouts.items()},
        chosen.rounds(model.graph),
    )
    return [price_choices(model, dict(found.choices), stored, layouts) for found in search.run(k)]


def _inputs(graph: EinGraph) -> list[str]:
    computed = {einsum.output.tensor for einsum in graph.einsums}
    return [name for name in graph.tensors if name not in computed]


def _available(model: CostModel, name: str, stored: Decomposition | None) -> list[Choice]:
    """Decompositions that an input is to be had in: the stored one, or every one, as the paper has it."""
    if stored is not None:
        return [stored.tiles]
    tiles: list[Choice] = [()]
    for _ in model.graph.tensors[name].axes:
        tiles = [(*chosen, tile) for chosen in tiles for tile in (DEMOTED, 1)]
    return tiles
