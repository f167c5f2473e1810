"""Random programs to plan, each small enough to be priced in every way."""

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evaluated_programs import evaluations_of

import sparseeinsum as se
from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, price_choices
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.optimizers import optimise, search_space
from sparseeinsum.decompose.repartition_costs import RepartitionCosts
from sparseeinsum.decompose.search_tasks import Candidate, SearchTask
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor
from sparseeinsum.semantics.exactness import Absence, JoinKind
from sparseeinsum.statistics.estimate import Statistics, estimate

UNLIMITED = 1 << 62
LABELS = "ijk"
MOST_PLANS = 512  # in a graph all of whose plans are priced
# An operator costs a thousandth of its measured time, so that plans of small tensors differ.
CONSTANTS = CostConstants(
    fixed_seconds_per_tuple=1e-8,
    transfer_seconds_per_byte=4e-10,
    kernel_seconds_per_operation=1e-10,
    matrix_seconds_per_operation=2e-11,
    expression_seconds_per_operation=6e-10,
    hashing_seconds_per_tuple=2e-8,
    fixed_seconds_per_operator=1e-6,
)


@dataclass(frozen=True)
class Problem:
    """A graph with its cost model, the decompositions of its inputs, and the layouts of its outputs."""

    model: CostModel
    stored: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]

    def optimise(
        self,
        optimizer: str = "dp",
        k: int = 1,
        pinned: Mapping[str, Mapping[str, int]] | None = None,
        machines: Machines | None = None,
    ) -> list[DecomposedGraph]:
        space = search_space(optimizer, self.model, self.stored, pinned or {})
        return optimise(optimizer, space, self.stored, self.layouts, k, machines)

    def price(self, choices: Mapping[str, Choice]) -> float:
        return price_choices(self.model, choices, self.stored, self.layouts).seconds

    def all_plans(self) -> list[dict[str, Choice]]:
        """Every way to promote labels, by brute force."""
        einsums = self.model.graph.einsums
        choices_by_einsum = [itertools.product((DEMOTED, 1), repeat=len(einsum.labels)) for einsum in einsums]
        names = [einsum.output.tensor for einsum in einsums]
        return [dict(zip(names, choices, strict=True)) for choices in itertools.product(*choices_by_einsum)]

    def all_costs(self) -> list[float]:
        return sorted(self.price(choices) for choices in self.all_plans())


def problem_of(
    text: str,
    inputs: Mapping[str, tuple[Tensor, Statistics]],
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
    outputs: tuple[str, ...] = (),
) -> Problem:
    """A problem; `outputs` are results to deliver though others read them."""
    program = lower_text(text)
    bound = bind(program, {name: tensor for name, (tensor, _) in inputs.items()})
    computed = [einsum.output.tensor for einsum in bound.einsums]
    delivered = tuple(name for name in computed if name in bound.outputs or name in outputs)
    graph = EinGraph(bound.tensors, bound.einsums, delivered)
    evaluations = evaluations_of(graph, inputs)
    statistics = estimate(graph, {name: measured for name, (_, measured) in inputs.items()}, evaluations)
    model = CostModel(graph, statistics, evaluations, CONSTANTS)
    return Problem(model, stored, {name: layout for name, layout in layouts.items() if name in delivered})


class Drawing:
    """Draws a random program with its inputs and their storage; a seed determines all."""

    def __init__(self, seed: int, is_tree: bool) -> None:
        self.rng = random.Random(seed)
        self.is_tree = is_tree
        self.bounds = {label: self.rng.choice((1, 3, 20, 100, 1000)) for label in LABELS}
        self.inputs: dict[str, tuple[Tensor, Statistics]] = {}
        self.results: dict[str, list[str]] = {}
        self.unread: list[str] = []

    def problem(self) -> Problem:
        text = "\n".join(self._statement(f"R{number}") for number in range(self.rng.randint(2, 4)))
        tensors = {name: len(tensor.axes) for name, (tensor, _) in self.inputs.items()}
        ranks = {name: len(labels) for name, labels in self.results.items()}
        outputs = tuple(name for name in self.results if self.rng.random() < 0.2)
        return problem_of(text, self.inputs, self._layouts(tensors), self._layouts(ranks), outputs)

    def _layouts(self, ranks: Mapping[str, int]) -> dict[str, Decomposition]:
        """A decomposition for most of the tensors."""
        drawn = {name: tuple(self.rng.choice((DEMOTED, 1)) for _ in range(rank)) for name, rank in ranks.items()}
        return {name: Decomposition(tiles) for name, tiles in drawn.items() if self.rng.random() < 0.7}

    def _statement(self, name: str) -> str:
        operands = dict(self._operand() for _ in range(self.rng.choice((1, 2, 2))))
        used = sorted({label for labels in operands.values() for label in labels})
        result_labels = [label for label in used if self.rng.random() < 0.7]
        self.rng.shuffle(result_labels)
        joins = ("{}", "relu({})", "exp({})") if len(operands) == 1 else ("{} * {}", "{} + {}", "{} * ({} + 1)")
        body = self.rng.choice(joins).format(
            *(f"{operand}[{', '.join(labels)}]" for operand, labels in operands.items())
        )
        self.results[name] = result_labels
        self.unread.append(name)
        return f"{name}[{', '.join(result_labels)}] = {body if len(result_labels) == len(used) else f'sum({body})'}"

    def _operand(self) -> tuple[str, list[str]]:
        """A tensor to read: mostly a result; in a tree, no result is read twice."""
        candidates = self.unread if self.is_tree else list(self.results)
        if candidates and self.rng.random() < 0.75:
            name = self.rng.choice(candidates)
            self.unread = [other for other in self.unread if other != name]
            return name, self.results[name]
        return self._input()

    def _input(self) -> tuple[str, list[str]]:
        name = f"I{len(self.inputs)}"
        labels = self.rng.sample(LABELS, self.rng.choice((1, 2, 2, 3)))
        shape = [self.bounds[label] for label in labels]
        entries = max(1, round(math.prod(shape) * self.rng.choice((1, 0.5, 0.1, 0.01))))
        distinct = tuple(float(min(bound, entries)) for bound in shape)
        statistics = Statistics(float(entries), distinct, tuple(shape))
        self.inputs[name] = (Tensor(name, tuple(Axis(label, self.bounds[label]) for label in labels)), statistics)
        return name, labels


def drawn(is_tree: bool, count: int) -> Iterator[Problem]:
    """The first random problems, each with few enough plans to price all; the same ones for every test."""
    known, endless = _DRAWN[is_tree]
    known.extend(itertools.islice(endless, max(0, count - len(known))))
    return iter(known[:count])


def _endless(is_tree: bool) -> Iterator[Problem]:
    for seed in itertools.count():
        problem = Drawing(seed, is_tree).problem()
        graph = problem.model.graph
        is_shared = any(graph.count_readers()[einsum.output.tensor] > 1 for einsum in graph.einsums)
        plans = 2 ** sum(len(einsum.labels) for einsum in graph.einsums)
        if plans <= MOST_PLANS and is_shared != is_tree:
            yield problem


_DRAWN: dict[bool, tuple[list[Problem], Iterator[Problem]]] = {
    is_tree: ([], _endless(is_tree)) for is_tree in (True, False)
}


@dataclass(frozen=True)
class RandomPrices:
    """Numbers between 0 and 1, the same for the same arguments; a share of them is infinite."""

    seed: int = 0
    endless: float = 0

    def draw(self, *of: object) -> float:
        drawn = random.Random(f"{self.seed} {of}").random()
        return math.inf if drawn < self.endless else drawn


@dataclass(frozen=True)
class RepartitionsPricedByHand(RepartitionCosts):
    """Random costs of every change of tiles, independent of sizes."""

    prices: RandomPrices = field(default_factory=RandomPrices)

    def seconds(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        return 0.0 if before == after else self.prices.draw(tensor, before, after)

    def price_key(self, tensor: str, tiles: Choice) -> tuple[float, ...]:
        return tiles


@dataclass(frozen=True)
class PricedByHand(CostModel):
    """Random costs, independent of sizes: of every choice, and of every change of tiles."""

    prices: RandomPrices = field(default_factory=RandomPrices)

    def __post_init__(self) -> None:
        super().__post_init__()
        costs = RepartitionsPricedByHand(
            self.graph, self.sizes, self.constants, self.accounting, self.memory, prices=self.prices
        )
        object.__setattr__(self, "repartitions", costs)

    def vertex_cost(self, einsum: EinSum, choice: Choice) -> VertexCost:
        seconds = 10 ** self.prices.draw(einsum.output.tensor, choice)
        return VertexCost(0, 0, Work(), Work(), Work(), seconds, Absence(JoinKind.INNER, ()), None)


TILES = (DEMOTED, 1, 4)


@dataclass(frozen=True)
class Priced:
    """A search problem with random prices, in tiles of every kind."""

    task: SearchTask

    def price(self, choices: Mapping[str, Choice]) -> float:
        """Seconds of a plan, added up one after the other."""
        model, tiles, seconds = self.task.model, dict(self.task.stored), 0.0
        for einsum in model.graph.einsums:
            name, choice = einsum.output.tensor, choices[einsum.output.tensor]
            seconds += model.vertex_cost(einsum, choice).seconds
            for operand in einsum.operands:
                needed = reference_tiles(einsum, operand, choice)
                seconds += model.repartitions.seconds(operand.tensor, tiles.get(operand.tensor, needed), needed)
            tiles[name] = result_tiles(einsum, choice)
            seconds += model.repartitions.seconds(name, tiles[name], self.task.layouts.get(name, tiles[name]))
        return seconds

    def all_plans(self) -> list[Candidate]:
        """Every plan there is, cheapest first."""
        combinations = itertools.product(*self.task.choices.values())
        plans = (dict(zip(self.task.choices, choices, strict=True)) for choices in combinations)
        return sorted(Candidate(self.price(plan), tuple(sorted(plan.items()))) for plan in plans)


def priced_by_hand(is_tree: bool, count: int, endless: float = 0) -> Iterator[Priced]:
    """Random problems with choices of tiles of every kind, each with few enough plans to price all."""
    for seed, problem in enumerate(drawn(is_tree, count)):
        rng = random.Random(seed)
        graph = problem.model.graph
        most = round(MOST_PLANS ** (1 / len(graph.einsums)))
        choices = {}
        for einsum in graph.einsums:
            all_choices = list(itertools.product(TILES, repeat=len(einsum.labels)))
            choices[einsum.output.tensor] = rng.sample(all_choices, min(len(all_choices), rng.randint(1, most)))
        computed = {einsum.output.tensor for einsum in graph.einsums}
        tiles = {name: tuple(rng.choice(TILES) for _ in tensor.axes) for name, tensor in graph.tensors.items()}
        stored = {name: tiles[name] for name in tiles if name not in computed and rng.random() < 0.7}
        layouts = {name: tiles[name] for name in graph.outputs if rng.random() < 0.7}
        yield Priced(
            SearchTask(
                PricedByHand(graph, {}, {}, CONSTANTS, prices=RandomPrices(seed, endless)),
                choices,
                stored,
                layouts,
            )
        )


def choices_of(plan: DecomposedGraph) -> tuple[Choice, ...]:
    return tuple(step.choice for step in plan.steps)


def promoted(plan: se.Plan, name: str) -> frozenset[str]:
    """Labels that a plan promotes in the statement of this result."""
    step = plan.data.decomposed.step_of(name)
    assert step is not None
    return step.promoted
