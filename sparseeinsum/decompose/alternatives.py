"""Decompose: the plans beside one: the best of all, and those that differ from it in a single EinSum."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.choices import allowed_choices
from sparseeinsum.decompose.clusters.pricing import Machines
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.optimizers import OPTIMIZERS, optimise
from sparseeinsum.decompose.plan import DecomposedGraph, price_choices
from sparseeinsum.decompose.tiling import tiles_by_label
from sparseeinsum.errors import PlanError
from sparseeinsum.language.tensors import Decomposition

# A plan with tiles must be expected to take at most this share of the time of one without (measured: bench/tiles.py).
_WORTH_TILING = 0.8

_MOST_PRICED = 64  # choices of one EinSum, each of which prices the whole plan


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Everything that may be chosen for a graph.

    Attributes:
        optimizer: A name of OPTIMIZERS.
        model: Prices choices.
        stored: Decomposition of every input.
        layouts: Decomposition of every output to be delivered; one that has none is delivered as it comes.
        pinned: For some results, the labels to promote in the EinSum that computes them, and their tiles.
        tiles: Tiles of several indices that any label may have.
        cut: For some results, labels that are cut among workers, and the tiles that one worker has of them.
        machines: A cluster, where plans are for one.
    """

    optimizer: str
    model: CostModel
    stored: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]
    pinned: Mapping[str, Mapping[str, int]]
    tiles: tuple[int, ...]
    cut: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    machines: Machines | None = None

    def best(self, k: int) -> list[DecomposedGraph]:
        """The k cheapest plans that the optimizer finds, best first.

        Raises:
            PlanError: There is no such optimizer, or no plan.
        """
        return optimise(
            self.optimizer,
            self.model,
            self.stored,
            self.layouts,
            self.pinned,
            k,
            self.tiles,
            self.cut,
            self.machines,
        )

    def priced(self, choices: Mapping[str, Choice]) -> DecomposedGraph:
        """The plan of some choices, by result."""
        return price_choices(self.model, choices, self.stored, self.layouts, self.machines)

    def chosen(self, k: int) -> list[DecomposedGraph]:
        """The same, but a plan without tiles that nobody stored comes first unless others are much cheaper.

        To cut arrays into tiles is priced less surely than to leave them as they are.
        """
        found = self.best(k)
        if not self.tiles:
            return found
        try:
            (whole,) = replace(self, tiles=()).best(1)
        except PlanError:  # too large without tiles
            return found
        if found[0].seconds <= _WORTH_TILING * whole.seconds:
            return found
        return [whole, *(each for each in found if choices_of(each) != choices_of(whole))][:k]

    def beside(self, plan: DecomposedGraph, k: int) -> list[DecomposedGraph]:
        """The k cheapest plans that differ from one, best first."""
        return [other for other in self.best(k + 1) if choices_of(other) != choices_of(plan)][:k]

    def of_each(self, plan: DecomposedGraph, k: int) -> dict[str, list[DecomposedGraph]]:
        """For every result the k cheapest plans that choose as this one does for all other EinSums, best first."""
        tiles = tiles_by_label(self.model.graph, self.stored, self.tiles)
        allowed = allowed_choices(self.model, self.pinned, OPTIMIZERS[self.optimizer].allows, tiles, self.cut)
        return {name: self._varied(plan, name, choices)[:k] for name, choices in allowed.items()}

    def _varied(self, plan: DecomposedGraph, name: str, choices: tuple[Choice, ...]) -> list[DecomposedGraph]:
        step = plan.step_of(name)
        assert step is not None
        others = [choice for choice in choices if choice != step.choice]
        others.sort(key=lambda choice: self.model.vertex_cost(step.einsum, choice).seconds)
        taken = choices_of(plan)
        found = [self.priced({**taken, name: choice}) for choice in others[:_MOST_PRICED]]
        return sorted((other for other in found if other.impossible is None), key=lambda other: other.seconds)


def choices_of(plan: DecomposedGraph) -> dict[str, Choice]:
    """The choice for every result."""
    return {step.einsum.output.tensor: step.choice for step in plan.steps}
