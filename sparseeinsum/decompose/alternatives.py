"""Decompose: the plans for a graph: the cheapest ones, and variants that differ in the choice of one EinSum."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.compressed_access import is_sparse
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, price_choices
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.optimizers import optimise, search_space
from sparseeinsum.decompose.search_space import SearchSpace
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import DEMOTED, Decomposition

# A plan with tiles must be expected to take at most this share of the time of one without (measured: bench/tiles.py).
_TILING_THRESHOLD = 0.8

# A plan whose statements pass arrays between rows and single arrays must be expected to take at most this share of the
# time of one over single arrays: what they pass gets a table, which is priced for neighbours only (measured: training
# a graph network with 256 hidden features).
_ROWS_THRESHOLD = 0.85

_MOST_PRICED = 64  # choices of one EinSum, each of which prices the whole plan


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The plans that can be chosen for a graph.

    Attributes:
        optimizer: The name of an optimizer; see `OPTIMIZERS`.
        model: The cost model.
        stored: Decompositions of the inputs.
        layouts: Decompositions in which outputs are delivered; an output without one is delivered as it is computed.
        pinned: For some results, the labels to promote in their EinSum, with their tiles.
        tiles: Sizes of tiles, greater than 1, that any label may have.
        cut: For some results, the labels that are divided among workers, with the tile of one worker.
        machines: The cluster that plans are for; None for one machine.
        searches_all: Whether to look at all choices even if that takes longer than a run.
    """

    optimizer: str
    model: CostModel
    stored: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]
    pinned: Mapping[str, Mapping[str, int]]
    tiles: tuple[int, ...]
    cut: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    machines: Machines | None = None
    searches_all: bool = False

    def best(self, k: int) -> list[DecomposedGraph]:
        """The k cheapest plans that the optimizer finds, best first.

        Raises:
            PlanError: There is no such optimizer, or no plan.
        """
        return self._best_of(self.search_space(), k)

    def _best_of(self, space: SearchSpace, k: int) -> list[DecomposedGraph]:
        return optimise(self.optimizer, space, self.stored, self.layouts, k, self.machines)

    def priced(self, choices: Mapping[str, Choice]) -> DecomposedGraph:
        """The plan that follows from a choice for every result."""
        return price_choices(self.model, choices, self.stored, self.layouts, self.machines)

    def preferred(self, k: int) -> list[DecomposedGraph]:
        """The k cheapest plans, but first the best one without new tiles or rows, unless others are much cheaper.

        The reason is that the cost of cutting arrays is predicted less precisely.
        """
        space = self.search_space()
        plans = self._with_single_arrays(self._best_of(space, k), space)[:k]
        if not self.tiles:
            return plans
        try:
            (untiled,) = replace(self, tiles=()).best(1)
        except PlanError:  # too large without tiles
            return plans
        if plans[0].cost <= _TILING_THRESHOLD * untiled.cost:
            return plans
        return [untiled, *(plan for plan in plans if plan.choices != untiled.choices)][:k]

    def _with_single_arrays(self, plans: list[DecomposedGraph], space: SearchSpace) -> list[DecomposedGraph]:
        """Plans, before them the first one over single arrays where it reads some, unless it is much cheaper."""
        first, model = plans[0], self.model
        if not model.chains_arrays or all(any(step.choice) for step in first.steps):
            return plans
        allowed, choices = space.allowed(), first.choices
        for step in first.steps:
            name, whole = step.einsum.output.tensor, (DEMOTED,) * len(step.choice)
            if whole in allowed[name] and (DEMOTED in step.choice or not self._has_sparse(step.einsum)):
                choices[name] = whole
        if choices == first.choices:
            return plans
        single = self.priced(choices)
        row_bytes = sum(
            model.sizes.tuple_bytes(step.einsum.output.tensor, step.result.tiles)
            for step in single.steps
            if not any(step.choice)
        )
        is_possible = row_bytes <= model.memory.largest_row_bytes and single.impossible is None
        return [single, *plans] if is_possible and _ROWS_THRESHOLD * single.cost <= first.cost else plans

    def _has_sparse(self, einsum: EinSum) -> bool:
        """Whether an EinSum reads or computes tensors that are sparse."""
        tensors, statistics = self.model.graph.tensors, self.model.statistics
        names = einsum.output.tensor, *(operand.tensor for operand in einsum.operands)
        return any(is_sparse(statistics[name].entries, tensors[name].size) for name in names)

    def other_plans(self, plan: DecomposedGraph, k: int) -> list[DecomposedGraph]:
        """The k cheapest plans other than `plan`, best first."""
        return [other for other in self.best(k + 1) if other.choices != plan.choices][:k]

    def variants_by_result(self, plan: DecomposedGraph, k: int) -> dict[str, list[DecomposedGraph]]:
        """For every result, the k cheapest plans that differ from `plan` only in the choice of its EinSum."""
        return {
            name: self._variants(plan, name, choices)[:k] for name, choices in self.search_space().allowed().items()
        }

    def search_space(self) -> SearchSpace:
        """The choices among which the optimizer searches."""
        return search_space(
            self.optimizer,
            self.model,
            self.stored,
            self.pinned,
            self.tiles,
            self.cut,
            self.searches_all,
            self.machines,
        )

    def _variants(self, plan: DecomposedGraph, name: str, choices: tuple[Choice, ...]) -> list[DecomposedGraph]:
        step = plan.step_of(name)
        assert step is not None
        others = [choice for choice in choices if choice != step.choice]
        others.sort(key=lambda choice: self.model.vertex_cost(step.einsum, choice).seconds)
        fixed = plan.choices
        plans = [self.priced({**fixed, name: choice}) for choice in others[:_MOST_PRICED]]
        return sorted((other for other in plans if other.impossible is None), key=lambda other: other.cost)
